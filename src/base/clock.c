/*
 * clock.c - a clock for waiting and reporting; no result depends on it.
 */
#include <time.h>

#include "base/base.h"

double lksi_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}
