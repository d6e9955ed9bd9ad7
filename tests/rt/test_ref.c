/*
 * The threads of `ref`: every item once, inner calls, uneven items, many jobs in a row.
 */
#include "rt_help.h"

struct job {
    struct lksi_dev *dev;
    unsigned *hits;
    uint64_t count;
};

static void hit(void *ctx, uint64_t i)
{
    struct job *j = ctx;
    if (i % 97 == 0)
        usleep(200);
    __atomic_fetch_add(&j->hits[i], 1, __ATOMIC_RELAXED);
}

static void hit_nested(void *ctx, uint64_t i)
{
    struct job *outer = ctx;
    struct job inner = {outer->dev, outer->hits + i * 10, 10};
    lksi_ref_parallel(outer->dev, 10, hit, &inner);
}

static void run(int threads, uint64_t count)
{
    struct lksi_dev *dev = NULL;
    const struct lksi_dev_params params = {.select = "ref", .threads = threads};
    unsigned hits[1000] = {0};
    struct job j = {NULL, hits, count};
    EXPECT_OK(lksi_dev_open(&dev, &params));
    cr_expect(lksi_dev_is_ref(dev));
    cr_expect(lksi_ref_threads(dev) == threads);
    j.dev = dev;
    lksi_ref_parallel(dev, count, hit, &j);
    for (uint64_t i = 0; i < 1000; i++)
        cr_expect(hits[i] == (i < count), "item %d ran %u times", (int)i, hits[i]);
    lksi_dev_close(&dev);
    cr_expect(dev == NULL);
}

Test(ref, every_item_runs_once)
{
    const uint64_t counts[] = {0, 1, 2, 7, 1000};
    for (int threads = 1; threads <= 5; threads += 2)
        for (size_t c = 0; c < LKSI_COUNT(counts); c++)
            run(threads, counts[c]);
}

Test(ref, calls_inside_an_item_run_on_its_thread)
{
    struct lksi_dev *dev = NULL;
    const struct lksi_dev_params params = {.select = "ref", .threads = 3};
    unsigned hits[1000] = {0};
    EXPECT_OK(lksi_dev_open(&dev, &params));
    struct job j = {dev, hits, 1000};
    lksi_ref_parallel(dev, 100, hit_nested, &j);
    for (int i = 0; i < 1000; i++)
        cr_expect(hits[i] == 1);
    lksi_dev_close(&dev);
}

Test(ref, many_short_jobs)
{
    struct lksi_dev *dev = NULL;
    const struct lksi_dev_params params = {.select = "ref", .threads = 2};
    unsigned hits[1000] = {0};
    EXPECT_OK(lksi_dev_open(&dev, &params));
    struct job j = {dev, hits + 1, 5};
    for (int i = 0; i < 2000; i++)
        lksi_ref_parallel(dev, 5, hit, &j);
    for (int i = 1; i <= 5; i++)
        cr_expect(hits[i] == 2000);
    lksi_dev_close(&dev);
}

Test(ref, builds_no_programs)
{
    struct lksi_dev *dev = NULL;
    struct lksi_program *program = NULL;
    const struct lksi_dev_params params = {.select = "ref"};
    EXPECT_OK(lksi_dev_open(&dev, &params));
    EXPECT_FAIL(LKS_E_ARGUMENT, build_text(&program, dev, "", ""), "ref");
    cr_expect(program == NULL);
    lksi_dev_close(&dev);
}
