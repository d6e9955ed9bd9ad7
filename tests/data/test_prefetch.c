/*
 * test_prefetch.c - the batches of a prefetcher are those of plain gathers, whatever the timing;
 * failures arrive in the trainer's thread. Races are looked for in race_prefetch.c.
 */
#include <signal.h>
#include <unistd.h>

#include "data/prefetch.h"
#include "helpers.h"

enum { COUNT = 23, SAMPLE = 3, BATCH = 4 };

static uint8_t pixels[COUNT * SAMPLE];
static int32_t labels[COUNT];
static uint32_t order[COUNT];

static struct lksi_dataset *make_data(void)
{
    struct lksi_dataset *ds;
    struct lksi_dataset_params p = {
        .count = COUNT, .h = 1, .w = SAMPLE, .c = 1, .pixels = pixels, .labels = labels};
    for (int i = 0; i < COUNT; i++) {
        labels[i] = i % 10;
        order[i] = (uint32_t)(i * 7 % COUNT);
        for (int k = 0; k < SAMPLE; k++)
            pixels[i * SAMPLE + k] = (uint8_t)(i * 11 + k);
    }
    EXPECT_OK(lksi_dataset_create(&ds, &p));
    return ds;
}

static void expect_epoch(struct lksi_prefetch *p, const struct lksi_dataset *ds,
                         const uint32_t *places, size_t first, size_t end)
{
    struct lksi_batch b;
    uint8_t x[BATCH * SAMPLE];
    int32_t y[BATCH];
    lksi_prefetch_start(p, places, first, end);
    for (size_t at = first; at < end; at += BATCH) {
        size_t n = end - at < BATCH ? end - at : BATCH;
        EXPECT_OK(lksi_prefetch_next(p, &b));
        cr_assert_eq(b.first, at);
        cr_assert_eq(b.n, n);
        if (at % 3 == 0)
            usleep(500);
        lksi_dataset_gather_bytes(ds, places, at, n, x, y);
        cr_assert_eq(memcmp(x, b.x, n * SAMPLE * sizeof *x), 0);
        cr_assert_eq(memcmp(y, b.labels, n * sizeof *y), 0);
        lksi_prefetch_release(p);
    }
    for (int again = 0; again < 2; again++) {
        EXPECT_OK(lksi_prefetch_next(p, &b));
        cr_assert_eq(b.n, 0);
        cr_assert_eq(b.first, end);
    }
}

Test(prefetch, epochs, .timeout = 60)
{
    struct lksi_dataset *ds = make_data();
    struct lksi_prefetch *p;
    EXPECT_OK(lksi_prefetch_create(&p, ds, BATCH));
    expect_epoch(p, ds, order, 0, COUNT);
    expect_epoch(p, ds, NULL, 0, COUNT);
    expect_epoch(p, ds, order, 8, 20);
    expect_epoch(p, ds, order, 5, 5);
    for (int i = 0; i < 50; i++)
        expect_epoch(p, ds, order, 0, COUNT);
    lksi_prefetch_destroy(&p);
    cr_assert_null(p);
    lksi_prefetch_destroy(&p);
    lksi_dataset_destroy(&ds);
}

/* Epochs given up at every point, with the old order's memory reused at once. */
Test(prefetch, restart_and_destroy_anywhere, .timeout = 60)
{
    struct lksi_dataset *ds = make_data();
    for (int round = 0; round < 60; round++) {
        uint32_t *old = malloc(sizeof order);
        struct lksi_prefetch *p;
        struct lksi_batch b;
        memcpy(old, order, sizeof order);
        EXPECT_OK(lksi_prefetch_create(&p, ds, BATCH));
        lksi_prefetch_start(p, old, 0, COUNT);
        for (int i = 0; i < round % 6; i++) {
            EXPECT_OK(lksi_prefetch_next(p, &b));
            if (i + 1 < round % 6 || round % 2 == 0)
                lksi_prefetch_release(p);
        }
        lksi_prefetch_start(p, order, 0, COUNT);
        memset(old, 0xff, sizeof order);
        free(old);
        if (round % 3 > 0)
            expect_epoch(p, ds, order, 0, COUNT);
        lksi_prefetch_stop(p);
        EXPECT_OK(lksi_prefetch_next(p, &b));
        cr_assert_eq(b.n, 0, "a stopped epoch goes on");
        lksi_prefetch_destroy(&p);
    }
    lksi_dataset_destroy(&ds);
}

struct script {
    int calls;
    size_t bad;
    bool signals_blocked;
};

static lks_status fill(void *user, size_t index, float *x, int32_t *label)
{
    struct script *s = user;
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    s->signals_blocked = sigismember(&blocked, SIGINT) == 1;
    s->calls++;
    x[0] = (float)index;
    *label = 0;
    return index == s->bad ? LKS_E_IO : LKS_OK;
}

Test(prefetch, failure_arrives_at_its_batch, .timeout = 60)
{
    struct script script = {.bad = 9};
    struct lksi_dataset_params params = {
        .count = 20, .h = 1, .w = 1, .c = 1, .classes = 1, .fill = fill, .user = &script};
    struct lksi_dataset *ds;
    struct lksi_prefetch *p;
    struct lksi_batch b;
    EXPECT_OK(lksi_dataset_create(&ds, &params));
    EXPECT_OK(lksi_prefetch_create(&p, ds, BATCH));
    lksi_prefetch_start(p, NULL, 0, 20);
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(lksi_prefetch_next(p, &b));
        cr_assert_eq(b.n, BATCH);
        lksi_prefetch_release(p);
    }
    EXPECT_FAIL(LKS_E_IO, lksi_prefetch_next(p, &b), "sample 9", "LKS_E_IO");
    EXPECT_FAIL(LKS_E_IO, lksi_prefetch_next(p, &b), "sample 9");
    lksi_prefetch_start(p, NULL, 12, 20);
    EXPECT_OK(lksi_prefetch_next(p, &b));
    cr_assert_eq(((const float *)b.x)[0], 12.0f);
    lksi_prefetch_destroy(&p);
    cr_assert(script.signals_blocked);
    cr_assert_geq(script.calls, 2 * BATCH + 2 + BATCH);
    lksi_dataset_destroy(&ds);
}

Test(prefetch, refusals)
{
    struct lksi_dataset *ds = make_data();
    struct lksi_prefetch *p = NULL;
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_prefetch_create(&p, ds, 0), "a batch of 0 samples");
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_prefetch_create(&p, ds, SIZE_MAX / 2), "not possible");
    cr_assert_null(p);
    lksi_dataset_destroy(&ds);
}
