/*
 * Launches on PoCL: while a kernel is launched wider than ever, no other thread queues one.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "rt_help.h"

#include "rt/grid.h"

static struct lksi_dev *dev;
static atomic_int inside, overlap;

static void wait_ms(long ms)
{
    struct timespec ts = {0, ms * 1000000};
    nanosleep(&ts, NULL);
}

static lks_status queue(void *ctx)
{
    (void)ctx;
    if (atomic_load(&inside))
        atomic_store(&overlap, 1);
    return LKS_OK;
}

static lks_status queue_slowly(void *ctx)
{
    (void)ctx;
    atomic_store(&inside, 1);
    wait_ms(300);
    atomic_store(&inside, 0);
    return LKS_OK;
}

static void *launch_narrow(void *ctx)
{
    *(lks_status *)ctx = lksi_grid_launch(dev, 7, 64, queue_slowly, NULL);
    return NULL;
}

/* A wide launch comes when another thread is in the middle of queuing a narrow one. */
Test(grid, a_wide_launch_waits_for_a_narrow_one)
{
    lks_status st = LKS_E_DEVICE;
    pthread_t thread;
    OPEN_CPU(dev);
    EXPECT_OK(lksi_grid_launch(dev, 7, 64, queue, NULL));
    cr_assert_eq(pthread_create(&thread, NULL, launch_narrow, &st), 0);
    while (!atomic_load(&inside))
        wait_ms(1);
    EXPECT_OK(lksi_grid_launch(dev, 7, 128, queue, NULL));
    pthread_join(thread, NULL);
    EXPECT_OK(st);
    cr_expect_eq(atomic_load(&overlap), 0);
    lksi_dev_close(&dev);
}
