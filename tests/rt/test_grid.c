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

static cl_event gate;

static lks_status queue_gate(void *ctx)
{
    (void)ctx;
    cl_int e = clEnqueueMarkerWithWaitList(dev->queue, 1, &gate, NULL);
    return e == CL_SUCCESS ? LKS_OK : lksi_fail(LKS_E_DEVICE, "no marker: %d", e);
}

/* Enough copies are loaded for PoCL to unload some; a kernel that was used lately still needs no
 * waiting when its width changes: the work in front of it cannot end here. */
Test(grid, a_kernel_used_lately_waits_for_nothing, .timeout = 20)
{
    cl_int e = CL_SUCCESS;
    OPEN_CPU(dev);
    lksi_grid_loaded(200);
    EXPECT_OK(lksi_grid_launch(dev, 7, 128, queue, NULL));
    gate = clCreateUserEvent(dev->context, &e);
    cr_assert_eq(e, CL_SUCCESS);
    EXPECT_OK(lksi_grid_launch(dev, 7, 128, queue_gate, NULL));
    EXPECT_OK(lksi_grid_launch(dev, 7, 64, queue, NULL));
    EXPECT_OK(lksi_grid_launch(dev, 7, 128, queue, NULL));
    clSetUserEventStatus(gate, CL_COMPLETE);
    clReleaseEvent(gate);
    lksi_dev_close(&dev);
}

static void *open_gate(void *ctx)
{
    wait_ms(300);
    atomic_store(&inside, 1);
    clSetUserEventStatus(gate, CL_COMPLETE);
    return ctx;
}

/* As many copies were used since as PoCL keeps: what is wider than the latest launch goes alone. */
Test(grid, a_kernel_that_may_be_unloaded_waits, .timeout = 20)
{
    pthread_t thread;
    cl_int e = CL_SUCCESS;
    OPEN_CPU(dev);
    EXPECT_OK(lksi_grid_launch(dev, 7, 128, queue, NULL));
    for (uint64_t id = 100; id < 300; id++)
        EXPECT_OK(lksi_grid_launch(dev, id, 64, queue, NULL));
    EXPECT_OK(lksi_grid_launch(dev, 7, 64, queue, NULL));
    gate = clCreateUserEvent(dev->context, &e);
    cr_assert_eq(e, CL_SUCCESS);
    EXPECT_OK(lksi_grid_launch(dev, 7, 64, queue_gate, NULL));
    atomic_store(&inside, 0);
    cr_assert_eq(pthread_create(&thread, NULL, open_gate, NULL), 0);
    EXPECT_OK(lksi_grid_launch(dev, 7, 128, queue, NULL));
    cr_expect_eq(atomic_load(&inside), 1, "the wide launch did not wait");
    pthread_join(thread, NULL);
    clReleaseEvent(gate);
    lksi_dev_close(&dev);
}
