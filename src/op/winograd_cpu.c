/*
 * winograd_cpu.c - schedules `cpu` of the operators of winograd.h, for CPU devices: transforms and
 * products of some tiles in one work-item, whose local memory stays in its processor's cache.
 * Kernels: cl/op/winograd_cpu.cl, cl/op/winograd_weight_cpu.cl.
 */
#include <stdio.h>

#include "op/conv_cpu.h"
#include "op/winograd.h"

#define PLACES      16u
#define TILES       32u          /* TILES of winograd_weight_cpu.cl */
#define PATCH_BYTES (640u << 10) /* of patches that a work-item keeps */
#define MOST        8u           /* times `mr` tiles at most */
#define SMALL       "the device's local memory is too small"

static const char *fits(U64 local, U64 work, const struct lksi_limits *dev)
{
    if (local > dev->local_memory)
        return SMALL;
    return work > dev->max_alloc ? "the workspace is above the device's largest allocation" : NULL;
}

/* ---- forward, data gradient ---- */

struct plan {
    struct lksi_winograd_view v;
    struct lksi_conv_tile t;
    U32 nb, row, tiles; /* lanes; elements of a tile's patch at one place; tiles of a work-item */
    U64 items, blocks, per; /* work-items over the tiles; blocks of lanes, and of a work-item */
    U64 patches, products, work; /* bytes */
};

static struct plan plan_of(const struct lks_conv_dims *d, bool grad, const struct lksi_limits *dev,
                           const int *tuned)
{
    struct plan z = {.v = lksi_winograd_view(d, grad)};
    U64 wanted = 8ull * dev->compute_units, all = (U64)d->n * z.v.th * z.v.tw, times;
    z.t = lksi_conv_cpu_tile(z.v.k, false, tuned[0]);
    z.nb = z.t.vec * z.t.nv;
    z.row = (U32)lksi_div_up(z.v.c, 16) * 16 + 16; /* not a power of two */
    z.blocks = lksi_div_up(z.v.k, z.nb);
    times = PATCH_BYTES / (PLACES * 4ull * z.t.mr * z.row);
    if (times > MOST)
        times = MOST;
    /* fewer tiles a work-item, where even with one block each there were too few of these */
    while (times > 1 && lksi_div_up(all, times * z.t.mr) * z.blocks < wanted)
        times--;
    z.tiles = (U32)(times > 1 ? times : 1) * z.t.mr;
    z.items = lksi_div_up(all, z.tiles);
    z.per = lksi_div_up(z.blocks, lksi_div_up(wanted, z.items));
    z.patches = (U64)PLACES * z.tiles * z.row * 4;
    z.products = (U64)PLACES * z.tiles * z.nb * 4;
    z.work = z.blocks * PLACES * z.v.c * z.nb * 4;
    return z;
}

static const char *declines(const struct lks_conv_dims *d, bool grad, const struct lksi_limits *dev)
{
    static const int none[LKSI_MAX_TUNABLE];
    if (dev->type != LKSI_DEV_CPU)
        return "made for CPU devices";
    const struct plan z = plan_of(d, grad, dev, none);
    return fits(z.patches + z.products, z.work, dev);
}

static void recipe(const struct lks_conv_dims *d, bool grad, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    const struct plan z = plan_of(d, grad, dev, r->tuned);
    struct lksi_launch *l = &r->launch[r->n_launch++];
    const struct lksi_arg kernels[] = {LKSI_IN(1), LKSI_WORK(0), LKSI_DIMS};
    l->kernel = "kernels";
    lksi_launch_args(l, kernels, LKSI_COUNT(kernels));
    lksi_launch_size(l, lksi_div_up(z.v.c, 16), z.blocks, 1);
    l = &r->launch[r->n_launch++];
    const struct lksi_arg conv[] = {
        LKSI_IN(0),     LKSI_WORK(0),          LKSI_IN(d->extra ? 2 : 0),
        LKSI_OUT(0),    LKSI_LOCAL(z.patches), LKSI_LOCAL(z.products),
        LKSI_DIMS,      LKSI_U32(z.tiles),     LKSI_U32(z.row),
        LKSI_U32(z.per)};
    l->kernel = "conv";
    lksi_launch_args(l, conv, LKSI_COUNT(conv));
    lksi_launch_size(l, z.items, lksi_div_up(z.blocks, z.per), 1);
    r->n_work = 1;
    r->work_bytes[0] = z.work;
    for (int i = 0; i < r->n_launch; i++) {
        r->launch[i].source = "op/winograd_cpu.cl";
        snprintf(r->launch[i].defines, sizeof r->launch[i].defines, "MR=%u NV=%u VEC=%u GRAD=%d",
                 z.t.mr, z.t.nv, z.t.vec, grad);
    }
}

/* ---- weight gradient ---- */

struct weight_plan {
    struct lksi_conv_tile t;
    bool swap; /* lanes are channels of x */
    U32 nb, rows;
    U64 row_blocks, lane_blocks;
    U64 a, b, sums, work; /* bytes */
};

static struct weight_plan weight_plan_of(const struct lks_conv_dims *d)
{
    struct weight_plan z = {.swap = d->c >= 16};
    U32 rows = z.swap ? d->k : d->c, lanes = z.swap ? d->c : d->k;
    z.t = lksi_conv_cpu_tile(lanes, false, 0);
    z.nb = z.t.vec * z.t.nv;
    /* about 64 rows, cut evenly */
    z.row_blocks = lksi_div_up(rows, 64);
    z.rows = (U32)lksi_div_up(lksi_div_up(rows, z.row_blocks), z.t.mr) * z.t.mr;
    z.row_blocks = lksi_div_up(rows, z.rows);
    z.lane_blocks = lksi_div_up(lanes, z.nb);
    z.a = (U64)PLACES * TILES * z.rows * 4;
    z.b = (U64)PLACES * TILES * z.nb * 4;
    z.sums = (U64)PLACES * z.rows * z.nb * 4;
    /* leaves, of which a single one is finished in place, and sums of pieces */
    z.work = d->leaf.leaves > 1 || (U64)d->n * d->leaf.rows * d->leaf.cols > LKS_STRETCH
                 ? d->leaf.leaves * z.row_blocks * z.lane_blocks * z.sums
                 : 64;
    return z;
}

static const char *weight_declines(const struct lks_conv_dims *d, const struct lksi_limits *dev)
{
    if (dev->type != LKSI_DEV_CPU)
        return "made for CPU devices";
    const struct weight_plan z = weight_plan_of(d);
    return fits(z.a + z.b + z.sums, z.work, dev);
}

static void weight_recipe(const struct lks_conv_dims *d, struct lksi_recipe *r)
{
    const struct weight_plan z = weight_plan_of(d);
    struct lksi_launch *l = &r->launch[r->n_launch++];
    const struct lksi_arg leaves[] = {LKSI_IN(0),         LKSI_IN(1),      LKSI_WORK(0),
                                      LKSI_OUT(0),        LKSI_LOCAL(z.a), LKSI_LOCAL(z.b),
                                      LKSI_LOCAL(z.sums), LKSI_DIMS,       LKSI_U32(z.rows)};
    l->kernel = "leaves";
    lksi_launch_args(l, leaves, LKSI_COUNT(leaves));
    lksi_launch_size(l, z.row_blocks, z.lane_blocks, d->leaf.leaves);
    if (d->leaf.leaves > 1) {
        l = &r->launch[r->n_launch++];
        const struct lksi_arg weights[] = {LKSI_WORK(0), LKSI_OUT(0), LKSI_DIMS, LKSI_U32(z.rows)};
        l->kernel = "weights";
        lksi_launch_args(l, weights, LKSI_COUNT(weights));
        lksi_launch_size(l, z.row_blocks, z.lane_blocks, 1);
    }
    r->n_work = 1;
    r->work_bytes[0] = z.work;
    for (int i = 0; i < r->n_launch; i++) {
        r->launch[i].source = "op/winograd_weight_cpu.cl";
        snprintf(r->launch[i].defines, sizeof r->launch[i].defines, "MR=%u NV=%u VEC=%u SWAP=%d",
                 z.t.mr, z.t.nv, z.t.vec, z.swap);
    }
}

/* ---- the lines of the tables ---- */

#define SCHEDULE(name, declines, recipe)                                                           \
    const char *lksi_##name##_cpu_declines(const struct lksi_call *call,                           \
                                           const struct lksi_limits *dev)                          \
    {                                                                                              \
        return declines;                                                                           \
    }                                                                                              \
    void lksi_##name##_cpu_recipe(const struct lksi_call *call, const struct lksi_limits *dev,     \
                                  struct lksi_recipe *r)                                           \
    {                                                                                              \
        (void)dev;                                                                                 \
        recipe;                                                                                    \
    }
#define D lksi_conv_dims(call)
SCHEDULE(winograd, declines(D, false, dev), recipe(D, false, dev, r))
SCHEDULE(winograd_data_grad, declines(D, true, dev), recipe(D, true, dev, r))
SCHEDULE(winograd_weight_grad, weight_declines(D, dev), weight_recipe(D, r))
