/*
 * pool.c - what the schedules and the harness's cases of max and average pooling share.
 */
#include <stdio.h>

#include "op/flat.h"
#include "op/maxpool.h"

struct lksi_launch *lksi_pool_launch(struct lksi_recipe *r, const struct lksi_limits *dev,
                                     const struct maxpool_dims *d, const char *source,
                                     const char *kernel, const char *macro, const char *more,
                                     U64 rows, uint32_t columns)
{
    struct lksi_launch *l = &r->launch[r->n_launch++];
    l->source = source;
    l->kernel = kernel;
    l->dims = 3;
    if (dev->type == LKSI_DEV_GPU) {
        unsigned vec = d->c % 4 == 0 ? 4 : 1;
        size_t vectors = d->c / vec, lx = 1, ly = lksi_group(dev, 64);
        while (lx < vectors && ly > 1) {
            lx *= 2;
            ly /= 2;
        }
        snprintf(l->defines, sizeof l->defines, "%s VEC=%u%s", macro, vec, more);
        l->local[0] = lx;
        l->local[1] = ly;
        l->local[2] = 1;
        l->global[0] = (vectors + lx - 1) / lx * lx;
        l->global[1] = (columns + ly - 1) / ly * ly;
    } else {
        snprintf(l->defines, sizeof l->defines, "%s ROWS VEC=%u%s", macro, lksi_lanes(d->c), more);
        l->local[0] = l->local[1] = l->local[2] = 1;
        l->global[0] = l->global[1] = 1;
    }
    l->global[2] = (size_t)rows;
    return l;
}

bool lksi_pool_case(int index, bool long_run, bool large, struct lksi_desc *x,
                    struct lksi_maxpool_attr *attr)
{
    static const struct {
        int64_t n, h, w, c;
        struct lksi_maxpool_attr a;
    } cases[] = {
        {1, 1, 1, 1, {1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0}},
        {2, 4, 4, 16, {2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0}},
        {3, 6, 8, 33, {2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0}},
        {2, 7, 5, 17, {2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0}},  /* stride drops the tails */
        {2, 7, 9, 15, {3, 3, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0}},  /* windows overlap, padded */
        {1, 8, 8, 64, {3, 3, 2, 2, 0, 1, 0, 1, 0, 0, 0, 0}},  /* padded on one side */
        {2, 5, 6, 3, {3, 2, 1, 1, 2, 1, 1, 0, 0, 0, 0, 0}},   /* every pixel in many windows */
        {1, 11, 13, 5, {2, 3, 3, 5, 0, 0, 1, 2, 0, 0, 0, 0}}, /* pixels between the windows */
        {1, 1, 17, 31, {1, 4, 1, 3, 0, 0, 3, 3, 0, 0, 0, 0}},
        {5, 3, 3, 48, {3, 3, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0}}, /* global */
        {2, 9, 9, 32, {2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0}},
        {2, 9, 11, 18, {3, 2, 1, 1, 0, 0, 0, 0, 0, 2, 3, 0}}, /* dilation */
        {2, 9, 10, 20, {2, 3, 3, 2, 1, 2, 2, 4, 0, 2, 2, 0}}, /* and padding, stride, no overlap */
        {2, 10, 9, 4, {3, 3, 4, 5, 2, 1, 3, 0, 0, 2, 2, 1}},  /* and ceil */
        {2, 8, 7, 19, {3, 3, 2, 2, 0, 0, 0, 0, 0, 0, 0, 1}},  /* ceil: windows are cut */
        {1, 8, 8, 16, {3, 3, 2, 2, 1, 1, 1, 1, 0, 0, 0, 1}},  /* the same behind padding */
        {3, 6, 7, 5, {2, 2, 3, 3, 1, 0, 0, 1, 0, 0, 0, 1}},   /* the last would begin outside */
        {2, 7, 5, 37, {2, 3, 3, 3, 0, 1, 0, 0, 0, 0, 0, 1}},
        {2, 1, 9, 6, {1, 5, 1, 1, 0, 0, 2, 2, 0, 0, 0, 0}},     /* one row */
        {2, 9, 10, 7, {9, 10, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}},   /* global, more than 32 taps */
        {1, 70, 61, 3, {70, 61, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}}, /* more than 4096 */
        {1, 72, 70, 4, {70, 60, 2, 9, 1, 1, 3, 2, 0, 0, 0, 1}}, /* padded pieces */
        {64, 28, 28, 32, {2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0}},
        {16, 112, 112, 64, {3, 3, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0}},
    };
    int count = (int)LKSI_COUNT(cases), first_large = count - 4;
    if (!large && index >= first_large)
        index += 2;
    if (index >= count - (long_run ? 0 : 2))
        return false;
    *attr = cases[index].a;
    *x =
        lksi_desc_make(LKSI_F32, 4, cases[index].n, cases[index].h, cases[index].w, cases[index].c);
    return true;
}
