/*
 * broken_driver.c - an OpenCL driver that ends the process as soon as the loader loads it.
 */
#include <stdlib.h>

__attribute__((constructor)) static void die(void)
{
    abort();
}
