/*
 * test_smallest.c - the cases that a simulator gets: for each schedule and each set of kernels the
 * smallest ones, and no kernel is left out.
 */
#include <criterion/criterion.h>

#include "check/smallest.h"
#include "helpers.h"

static struct lksi_dev *open_cpu(void)
{
    const struct lksi_dev_params params = {.select = "cpu", .cache_dir = ""};
    struct lksi_dev *dev = NULL;
    lks_status st = lksi_dev_open(&dev, &params);
    if (st == LKS_E_DEVICE)
        cr_skip_test("no CPU device: %s", lks_error_message());
    cr_assert(st == LKS_OK, "%s", lks_error_message());
    return dev;
}

static bool same_kernels(const struct lksi_smallest_entry *a, const struct lksi_smallest_entry *b)
{
    return a->row == b->row && a->kernels == b->kernels;
}

/* Every set of kernels has min(keep, its cases) cases, and none left out is smaller. */
static void expect_smallest(const struct lksi_smallest *s, int keep)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct lksi_smallest_entry *e = &s->entry[i];
        int all = 0, taken = 0;
        for (size_t k = 0; k < s->count; k++) {
            const struct lksi_smallest_entry *other = &s->entry[k];
            if (!same_kernels(e, other))
                continue;
            all++;
            taken += other->taken;
            cr_assert(!(other->taken && !e->taken && e->flops < other->flops),
                      "row %zu: case %d stands for the smaller case %d", e->row, other->case_index,
                      e->case_index);
        }
        cr_assert(taken == (all < keep ? all : keep), "row %zu: %d of %d cases", e->row, taken,
                  all);
        cr_assert(lksi_smallest_has(s, e->row, e->case_index) == e->taken);
    }
}

/* With a limit nothing above it is taken but the smallest case of a schedule, which always is. */
static void expect_limited(struct lksi_dev *dev, struct lksi_smallest *s)
{
    int rows = 0, over = 0;
    EXPECT_OK(lksi_smallest_find(s, dev, lksi_op_find("conv2d"), false, 2, 1.0));
    for (size_t i = 0; i < s->count; i++) {
        bool least = true, first = true;
        for (size_t k = 0; k < s->count; k++) {
            least &= s->entry[k].row != s->entry[i].row || s->entry[k].flops >= s->entry[i].flops;
            first &= s->entry[k].row != s->entry[i].row || k >= i;
        }
        rows += first;
        over += s->entry[i].taken;
        cr_assert(!s->entry[i].taken || least, "row %zu, case %d", s->entry[i].row,
                  s->entry[i].case_index);
    }
    cr_assert(rows > 1 && over == rows, "%d cases of %d schedules", over, rows);
}

/* A convolution has kernels of many macros, and schedules that serve some cases only. */
Test(smallest, every_kernel)
{
    struct lksi_dev *dev = open_cpu();
    struct lksi_smallest s = {0};
    size_t sets = 0;
    for (int keep = 1; keep <= 3; keep++) {
        EXPECT_OK(lksi_smallest_find(&s, dev, lksi_op_find("conv2d"), false, keep, 0));
        cr_assert(s.count > 30, "%zu entries", s.count);
        expect_smallest(&s, keep);
    }
    EXPECT_OK(lksi_smallest_find(&s, dev, lksi_op_find("conv2d"), false, 1, 0));
    for (size_t i = 0; i < s.count; i++)
        sets += s.entry[i].taken;
    cr_assert(sets > 5 && sets < s.count, "%zu sets of kernels in %zu entries", sets, s.count);
    cr_assert(!lksi_smallest_has(&s, 0, 100000));
    expect_limited(dev, &s);
    lksi_smallest_close(&s);
    lksi_dev_close(&dev);
}

static void collect(void *user, const struct lksi_check_row *row)
{
    int *cases = user;
    cr_assert(row->verdict == LKSI_CHECK_PASSED);
    *cases += row->cases;
}

/* The harness runs those cases and no others. */
Test(smallest, harness)
{
    struct lksi_dev *dev = open_cpu();
    struct lksi_check_options options = {.op = "relu", .schedule = "plain", .seed = 1};
    int all = 0, two = 0;
    EXPECT_OK(lksi_check_run(dev, &options, collect, &all, NULL));
    options.smallest = 2;
    EXPECT_OK(lksi_check_run(dev, &options, collect, &two, NULL));
    cr_assert(all > 2 && two == 2, "%d of %d cases", two, all);
    lksi_dev_close(&dev);
}
