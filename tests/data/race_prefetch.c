/*
 * race_prefetch.c - epochs of a prefetcher under the thread sanitizer, which ends the program with
 * an error at the first data race. It has its own main, since Criterion cannot run under it. With
 * the argument "race" it makes one on purpose, so that a sanitizer that sees nothing is noticed.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/prefetch.h"

enum { COUNT = 50, BATCH = 8, EPOCHS = 60 };

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n%s\n", __LINE__, #condition, lks_error_message());       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int shared;

static void *touch(void *unused)
{
    shared++;
    return unused;
}

static void race_on_purpose(void)
{
    pthread_t t;
    CHECK(pthread_create(&t, NULL, touch, NULL) == 0);
    shared++;
    pthread_join(t, NULL);
}

/* A slow source, so that an epoch is given up in the middle of a gather. */
static lks_status slow_fill(void *user, size_t index, float *x, int32_t *label)
{
    (void)user;
    usleep(50);
    x[0] = (float)index / 255.0f;
    *label = (int32_t)index % 10;
    return LKS_OK;
}

static void one_epoch(struct lksi_prefetch *p, uint32_t *order, int epoch, bool bytes)
{
    struct lksi_batch b;
    uint64_t sum = 0;
    size_t seen = 0;
    /* The order is rewritten before each start, as a training does. */
    for (int i = 0; i < COUNT; i++)
        order[i] = (uint32_t)((i + epoch) % COUNT);
    lksi_prefetch_start(p, order, 0, COUNT);
    for (;;) {
        CHECK(lksi_prefetch_next(p, &b) == LKS_OK);
        if (b.n == 0)
            break;
        for (size_t i = 0; i < b.n; i++) {
            CHECK(b.labels[i] == (int32_t)order[b.first + i] % 10);
            sum += bytes ? ((const uint8_t *)b.x)[i]
                         : (uint64_t)(((const float *)b.x)[i] * 255.0f + 0.5f);
        }
        seen += b.n;
        if (epoch % 3 == 0)
            usleep(100);
        lksi_prefetch_release(p);
        /* The thread has just been given a buffer to fill. */
        if (epoch % 4 == 3 && seen > 20)
            break;
    }
    if (epoch % 4 == 3)
        lksi_prefetch_stop(p);
    else
        CHECK(seen == COUNT && sum == COUNT * (COUNT - 1) / 2);
}

static void train(const struct lksi_dataset_params *params)
{
    static uint32_t order[COUNT];
    struct lksi_dataset *ds;
    struct lksi_prefetch *p;
    CHECK(lksi_dataset_create(&ds, params) == LKS_OK);
    CHECK(lksi_prefetch_create(&p, ds, BATCH) == LKS_OK);
    for (int e = 0; e < EPOCHS; e++)
        one_epoch(p, order, e, params->pixels != NULL);
    lksi_prefetch_destroy(&p);
    lksi_dataset_destroy(&ds);
}

int main(int argc, char **argv)
{
    static uint8_t pixels[COUNT];
    static int32_t labels[COUNT];
    struct lksi_dataset_params params = {
        .count = COUNT, .h = 1, .w = 1, .c = 1, .pixels = pixels, .labels = labels};
    if (argc > 1 && strcmp(argv[1], "race") == 0)
        race_on_purpose();
    for (int i = 0; i < COUNT; i++) {
        pixels[i] = (uint8_t)i;
        labels[i] = i % 10;
    }
    train(&params);
    params = (struct lksi_dataset_params){
        .count = COUNT, .h = 1, .w = 1, .c = 1, .classes = 10, .fill = slow_fill};
    train(&params);
    return 0;
}
