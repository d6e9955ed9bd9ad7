/*
 * conv2d_weight_grad_cpu.c - the CPU schedule of conv2d_weight_grad. Kernels:
 * cl/op/conv_weight_grad_cpu.cl.
 */
#include <stdio.h>

#include "op/conv_cpu.h"
#include "op/conv_gpu.h"

#define CHUNK_MAX   512 /* leaves, and groups, of a chunk: LEVELS in the kernels */
#define CHUNK_BYTES (512u << 10)
#define PART_BYTES  (64ull << 20)

/* How the work is laid out. */
struct layout {
    bool merge, swap, widen, depth;
    struct lksi_conv_frame frame; /* with `merge` only */
    U32 n_b, n_v; /* channels of either side */
    U32 tb, nv;
    U32 kw; /* channels dy has in memory */
    U64 tiles;
    U32 chunk_leaves, chunk_groups;
    U64 per_group, chunks;
};

/* Smallest estimated cost of a tile of tb x nv vectors over n_b x n_v channels: its fmas, at least
 * their latency, and its loads. Speed only. */
static double best_tile(U32 n_b, U32 n_v, U32 *tb, U32 *nv)
{
    U32 limit = lksi_cpu_wide() ? 24 : 6, nv_max = lksi_cpu_wide() ? 4 : 1;
    double best = 0;
    for (U32 v = 1; v <= nv_max && (v == 1 || 16 * v <= n_v); v++) {
        for (U32 b = 1; b <= 8 && b <= n_b && b * v <= limit; b++) {
            double tiles = (double)(lksi_div_up(n_b, b) * lksi_div_up(n_v, 16 * v));
            double cost = tiles * ((b * v > 4 ? b * v : 4) + 0.3 * (b + v) + 1);
            if (best == 0 || cost < best) {
                best = cost;
                *tb = b;
                *nv = v;
            }
        }
    }
    return best;
}

/* Tiles that tuning tries in place of the estimate's. */
static const U32 tiles[][2] = {{4, 4}, {5, 4}, {6, 4}, {8, 3}, {6, 3}, {4, 3}, {8, 2},
                               {6, 2}, {4, 2}, {8, 1}, {6, 1}, {4, 1}, {3, 1}};
/* Chunks of so many times the bytes. */
static const struct {
    const char *name;
    double factor;
} chunks[] = {{"quarter", 0.25}, {"half", 0.5}, {"double", 2}, {"fourfold", 4}};

/* The wanted one of those that lie within n_b and n_v channels; NULL past the last. */
static const U32 *tile_at(U32 n_b, U32 n_v, int wanted)
{
    for (size_t i = 0; i < LKSI_COUNT(tiles); i++)
        if (tiles[i][0] <= n_b && (tiles[i][1] == 1 || 16 * tiles[i][1] <= n_v) && --wanted == 0)
            return tiles[i];
    return NULL;
}

/* Chunks grow while their data stay in a cache, or while partial sums would take too much memory;
 * the former only as long as there is work for every compute unit. */
static void cut_into_chunks(struct layout *z, const struct lks_conv_dims *d,
                            const struct lksi_limits *dev, int wanted)
{
    const double limit = CHUNK_BYTES * (wanted > 0 ? chunks[wanted - 1].factor : 1);
    const struct lks_leaf *f = &d->leaf;
    U64 groups = f->leaves / f->cut, part = z->tiles * z->tb * z->nv * 64;
    U64 bytes =
        (U64)f->join * f->step * d->ow * (z->kw + (U64)d->stride_h * d->stride_w * d->c) * 4;
    U32 leaves = 1, g = 1;
    z->chunks = 0;
    for (;;) {
        U64 per_group = lksi_div_up(f->cut, leaves), all = per_group * lksi_div_up(groups, g);
        bool few = all * z->tiles < 8ull * dev->compute_units;
        if (z->chunks != 0 && z->chunks * part <= PART_BYTES && ((double)bytes > limit || few))
            return;
        z->chunk_leaves = leaves;
        z->chunk_groups = g;
        z->per_group = per_group;
        z->chunks = all;
        if (leaves < f->cut)
            leaves = leaves * 2 < f->cut ? leaves * 2 : f->cut;
        else
            g *= 2;
        if (all == 1 || leaves > CHUNK_MAX || g > CHUNK_MAX)
            return;
        bytes *= 2;
    }
}

static struct layout layout_of(const struct lks_conv_dims *d, const struct lksi_limits *dev,
                               const int *tuned)
{
    struct layout z = {.kw = d->k, .frame = lksi_conv_frame(d)};
    U32 tb = 1, nv = 1, cg = d->c / d->groups, kg = d->k / d->groups;
    z.depth = lksi_conv_cpu_depth(d);
    if (z.depth)
        kg = d->k;
    z.merge = d->c < LKSI_CONV_FEW && d->groups == 1 && d->dil_w == 1 && z.frame.fits;
    if (!z.merge)
        z.frame = (struct lksi_conv_frame){.h = d->h, .w = d->w};
    U32 n_b = z.merge || z.depth ? d->s * cg : cg, n_v = kg;
    double cost = best_tile(n_b, n_v, &z.tb, &z.nv);
    if (!z.merge && cg >= 16 && (best_tile(kg, cg, &tb, &nv) < cost || kg < 16)) {
        z.swap = true;
        z.tb = tb;
        z.nv = nv;
        n_b = kg;
        n_v = cg;
    }
    if (tuned[0] > 0) {
        const U32 *t = tile_at(n_b, n_v, tuned[0]);
        z.tb = t[0];
        z.nv = t[1];
    }
    z.n_b = n_b;
    z.n_v = n_v;
    z.widen = !z.swap && kg < 16;
    if (z.widen) /* the lanes of the last group end inside the row */
        z.kw = d->k - kg + 16;
    z.tiles = lksi_div_up(n_b, z.tb) * lksi_div_up(n_v, 16 * z.nv) * d->r *
              (z.merge || z.depth ? 1 : d->s) * (z.depth ? 1 : d->groups);
    cut_into_chunks(&z, d, dev, tuned[1]);
    return z;
}

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    struct layout z = layout_of(d, dev, r->tuned);
    struct lksi_launch *l;
    r->n_work = 3; /* partial sums, frame of x, widened dy */
    r->work_bytes[0] = z.chunks > 1 ? z.chunks * z.tiles * z.tb * z.nv * 64 : 64;
    r->work_bytes[1] = z.frame.copy ? d->n * z.frame.h * z.frame.w * d->c * 4 : 64;
    r->work_bytes[2] = z.widen ? (U64)d->n * d->oh * d->ow * z.kw * 4 : 64;
    if (z.frame.copy)
        lksi_conv_frame_launch(&r->launch[r->n_launch++], d, &z.frame, 1);
    if (z.widen) {
        l = &r->launch[r->n_launch++];
        l->kernel = "widen";
        const struct lksi_arg widen[] = {LKSI_IN(1), LKSI_WORK(2), LKSI_DIMS, LKSI_U32(z.kw)};
        lksi_launch_args(l, widen, LKSI_COUNT(widen));
        lksi_launch_size(l, (U64)d->n * d->oh, 1, 1);
    }
    l = &r->launch[r->n_launch++];
    l->kernel = "leaves";
    const struct lksi_arg leaves[] = {z.frame.copy ? LKSI_WORK(1) : LKSI_IN(0),
                                      z.widen ? LKSI_WORK(2) : LKSI_IN(1),
                                      LKSI_OUT(0),
                                      LKSI_WORK(0),
                                      LKSI_DIMS,
                                      LKSI_U32(z.frame.h),
                                      LKSI_U32(z.frame.w),
                                      LKSI_U32(z.kw),
                                      LKSI_U32(z.chunk_leaves),
                                      LKSI_U32(z.chunk_groups)};
    lksi_launch_args(l, leaves, LKSI_COUNT(leaves));
    lksi_launch_size(l, z.tiles, z.chunks, 1);
    if (z.chunks > 1) {
        l = &r->launch[r->n_launch++];
        l->kernel = "tree";
        const struct lksi_arg tree[] = {LKSI_WORK(0), LKSI_OUT(0), LKSI_DIMS, LKSI_U32(z.chunks),
                                        LKSI_U32(z.per_group)};
        lksi_launch_args(l, tree, LKSI_COUNT(tree));
        lksi_launch_size(l, z.tiles, 1, 1);
    }
    for (int i = 0; i < r->n_launch; i++) {
        r->launch[i].source = "op/conv_weight_grad_cpu.cl";
        snprintf(r->launch[i].defines, sizeof r->launch[i].defines,
                 "TB=%u NV=%u SWAP=%u MERGE=%u DEPTH=%u", z.tb, z.nv, z.swap, z.merge, z.depth);
    }
}

static bool tile(const struct lksi_call *call, const struct lksi_limits *dev, int index,
                 char text[LKSI_CHOICE_TEXT])
{
    const int none[LKSI_MAX_TUNABLE] = {0};
    struct layout z = layout_of(lksi_conv_dims(call), dev, none);
    const U32 *t = tile_at(z.n_b, z.n_v, index);
    if (t != NULL)
        snprintf(text, LKSI_CHOICE_TEXT, "%u x %u of 16 lanes", t[0], t[1]);
    return t != NULL;
}

static bool chunk(const struct lksi_call *call, const struct lksi_limits *dev, int index,
                  char text[LKSI_CHOICE_TEXT])
{
    (void)call;
    (void)dev;
    if ((size_t)index > LKSI_COUNT(chunks))
        return false;
    snprintf(text, LKSI_CHOICE_TEXT, "%s", chunks[index - 1].name);
    return true;
}

static const struct lksi_tunable tunables[] = {{"tile", tile}, {"chunk", chunk}, {NULL, NULL}};

const struct lksi_schedule lksi_conv2d_weight_grad_schedules[] = {
    {"cpu", lksi_conv_cpu_declines, recipe, tunables, 0},
    {"depth", lksi_conv_depth_weight_declines, lksi_conv_depth_weight_recipe},
    LKSI_GPU_LINES(conv2d_weight_grad, leaves),
    {NULL, NULL, NULL},
};
