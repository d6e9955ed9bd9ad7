/*
 * winograd_gpu.c - schedules `nv` and `gpu` of the operators of winograd.h: transforms
 * (cl/op/winograd_gpu.cl) around 16 products at once (product_gpu.h). The samples pass in slices,
 * so that what is transformed needs a bounded workspace.
 */
#include <stdio.h>
#include <string.h>

#include "op/product_gpu.h"
#include "op/winograd.h"

#define PLACES      16u
/* Of transformed numbers, if a sample has fewer. On CPU devices tests alone come here. */
#define SLICE_BYTES     (512ull << 20)
#define SLICE_BYTES_CPU (64ull << 10)
#define GROUP       128u           /* work-items */
#define ELEMENTS    0x3fffffffull

static U32 four(U32 channels)
{
    return lksi_up(channels, 4) * 4;
}

static struct lksi_launch *launch(struct lksi_recipe *r, const char *kernel)
{
    struct lksi_launch *l = &r->launch[r->n_launch++];
    l->source = "op/winograd_gpu.cl";
    l->kernel = kernel;
    return l;
}

/* A work-item for each tile of a slice and four channels. */
static void over_tiles(struct lksi_launch *l, U64 tiles, U32 padded)
{
    l->dims = 1;
    l->local[0] = GROUP;
    l->global[0] = (size_t)((tiles * (padded / 4) + GROUP - 1) / GROUP * GROUP);
}

static void defines(struct lksi_launch *l, bool grad, U32 channels, bool bias, bool mask, bool relu)
{
    snprintf(l->defines, sizeof l->defines, "GRAD=%d W4=%d BIAS=%d MASK=%d RELU=%d", grad,
             channels % 4 == 0, bias, mask, relu);
}

/*
 * Samples of a slice, a multiple of `join`: as many as the bytes allow, or down to half of that if
 * fewer are then absent from the last turn.
 */
static U32 slice_of(U32 n, U32 join, U64 bytes_a_sample, const struct lksi_limits *dev)
{
    U64 bytes = dev->type == LKSI_DEV_CPU ? SLICE_BYTES_CPU : SLICE_BYTES;
    U64 most = bytes / (bytes_a_sample * join);
    U32 blocks = lksi_up(n, join), best, left;
    if (most >= blocks)
        return n;
    best = most > 1 ? (U32)most : 1;
    left = lksi_up(blocks, best) * best - blocks;
    for (U32 s = best - 1; s > 0 && s >= most / 2; s--) {
        U32 l = lksi_up(blocks, s) * s - blocks;
        if (l < left) {
            left = l;
            best = s;
        }
    }
    return best * join;
}

static void set_turns(struct lksi_recipe *r, int from, U32 n, U32 slice)
{
    r->turn_from = from;
    r->turn_to = r->n_launch;
    r->turns = lksi_up(n, slice);
}

static void patches(struct lksi_recipe *r, const struct lksi_winograd_view *v, U32 slice, int work)
{
    struct lksi_launch *l = launch(r, "patches");
    defines(l, false, v->c, false, false, false);
    lksi_add(l, LKSI_IN(0));
    lksi_add(l, LKSI_WORK(work));
    lksi_add_pair(l, v->n, slice);
    lksi_add_pair(l, v->h, v->w);
    lksi_add_pair(l, v->th, v->tw);
    lksi_add_pair(l, v->row, v->col);
    lksi_add_pair(l, v->c, four(v->c));
    lksi_add(l, LKSI_TURN);
    over_tiles(l, (U64)slice * v->th * v->tw, four(v->c));
}

static const char *device(const struct lksi_limits *dev, bool nv)
{
    const char *reason = lksi_product_device(dev, nv);
    if (reason == NULL && dev->max_group < 256)
        reason = "work-groups are too small";
    return reason;
}

/* ---- forward, data gradient: workspaces are kernels, patches, products ---- */

struct plan {
    struct lksi_winograd_view v;
    U32 slice;
    U64 tiles; /* of a slice */
    struct lksi_places p;
};

static struct plan plan_of(const struct lks_conv_dims *d, bool grad,
                           const struct lksi_limits *dev)
{
    struct plan z = {.v = lksi_winograd_view(d, grad)};
    U64 sample = (U64)z.v.th * z.v.tw;
    z.slice = slice_of(z.v.n, 1, sample * PLACES * 4 * (four(z.v.c) + four(z.v.k)), dev);
    z.tiles = sample * z.slice;
    z.p = (struct lksi_places){(U32)z.tiles, PLACES, four(z.v.c), four(z.v.k)};
    return z;
}

static const char *declines(const struct lks_conv_dims *d, bool grad, const struct lksi_limits *dev,
                            bool nv)
{
    const struct plan z = plan_of(d, grad, dev);
    const char *reason = device(dev, nv);
    U64 most = z.p.c > z.p.k ? z.p.c : z.p.k;
    if (reason == NULL && (z.tiles * PLACES * most > ELEMENTS ||
                           (U64)PLACES * z.p.c * z.p.k > ELEMENTS ||
                           z.tiles * PLACES * most * 4 > dev->max_alloc))
        reason = "a picture is too large";
    return reason != NULL ? reason : lksi_places_decline(&z.p, dev, nv);
}

static void recipe(const struct lks_conv_dims *d, bool grad, const struct lksi_limits *dev, bool nv,
                   struct lksi_recipe *r)
{
    const struct plan z = plan_of(d, grad, dev);
    const struct lksi_winograd_view *v = &z.v;
    struct lksi_launch *l = launch(r, "kernels");
    U32 across = grad ? z.p.k : z.p.c, down = grad ? z.p.c : z.p.k;
    defines(l, grad, 1, false, false, false);
    lksi_add(l, LKSI_IN(1));
    lksi_add(l, LKSI_WORK(0));
    lksi_add_pair(l, v->c, v->k);
    lksi_add_pair(l, z.p.c, z.p.k);
    l->dims = 2;
    l->local[0] = l->local[1] = 16;
    l->global[0] = (size_t)lksi_up(across, 16) * 16;
    l->global[1] = (size_t)lksi_up(down, 16) * 16;

    patches(r, v, z.slice, 1);
    lksi_places_launch(r, &z.p, dev, nv, LKSI_WORK(1), LKSI_WORK(0), LKSI_WORK(2));
    l = launch(r, "outputs");
    defines(l, grad, v->k, d->extra == (grad ? 2u : 1u), grad && d->extra == 1, !grad && d->relu);
    lksi_add(l, LKSI_WORK(2));
    lksi_add(l, LKSI_IN(d->extra ? 2 : 0));
    lksi_add(l, LKSI_OUT(0));
    lksi_add_pair(l, v->n, z.slice);
    lksi_add_pair(l, v->oh, v->ow);
    lksi_add_pair(l, v->th, v->tw);
    lksi_add_pair(l, v->k, z.p.k);
    lksi_add(l, LKSI_TURN);
    over_tiles(l, z.tiles, z.p.k);
    set_turns(r, 1, v->n, z.slice);

    r->n_work = 3;
    r->work_bytes[0] = (U64)PLACES * z.p.c * z.p.k * 4;
    r->work_bytes[1] = z.tiles * PLACES * z.p.c * 4;
    r->work_bytes[2] = z.tiles * PLACES * z.p.k * 4;
}

/* ---- weight gradient: workspaces are leaves, patches (then their sums), spread gradients ---- */

struct weight_plan {
    struct lksi_winograd_view v;
    struct lks_conv_dims leaves; /* the convolution of one tap over tiles, of one slice */
    U64 tiles, elements;
};

static struct weight_plan weight_plan_of(const struct lks_conv_dims *d,
                                         const struct lksi_limits *dev)
{
    struct weight_plan z = {.v = lksi_winograd_view(d, false)};
    U32 c = four(d->c), k = four(d->k), th = z.v.th, tw = z.v.tw;
    U32 slice = slice_of(d->n, d->leaf.join, (U64)th * tw * PLACES * 4 * (c + k), dev);
    z.leaves = (struct lks_conv_dims){.n = slice,
                                      .h = th,
                                      .w = tw,
                                      .c = PLACES * c,
                                      .oh = th,
                                      .ow = tw,
                                      .k = PLACES * k,
                                      .r = 1,
                                      .s = 1,
                                      .stride_h = 1,
                                      .stride_w = 1,
                                      .dil_h = 1,
                                      .dil_w = 1,
                                      .groups = PLACES,
                                      .leaf = lks_leaf_make(slice, th, tw, d->leaf.leaf)};
    z.tiles = (U64)slice * th * tw;
    z.elements = (U64)PLACES * c * k;
    return z;
}

static const char *weight_declines(const struct lks_conv_dims *d, const struct lksi_limits *dev,
                                   bool nv)
{
    const struct weight_plan z = weight_plan_of(d, dev);
    const char *reason = device(dev, nv);
    U64 most = z.leaves.c > z.leaves.k ? z.leaves.c : z.leaves.k;
    if (reason == NULL && (z.tiles * most > ELEMENTS || z.elements > ELEMENTS ||
                           z.tiles * most * 4 > dev->max_alloc))
        reason = "a picture is too large";
    if (reason == NULL)
        reason = lksi_leaves_fit(&z.leaves, dev, nv);
    return reason != NULL ? reason : lksi_tree_declines(&d->leaf, z.elements, dev);
}

static void weight_recipe(const struct lks_conv_dims *d, const struct lksi_limits *dev, bool nv,
                          struct lksi_recipe *r)
{
    const struct weight_plan z = weight_plan_of(d, dev);
    U32 c = four(d->c), k = four(d->k), slice = z.leaves.n;
    struct lksi_launch *l;
    patches(r, &z.v, slice, 1);
    l = launch(r, "spread");
    defines(l, false, d->k, false, false, false);
    lksi_add(l, LKSI_IN(1));
    lksi_add(l, LKSI_WORK(2));
    lksi_add_pair(l, d->n, slice);
    lksi_add_pair(l, d->oh, d->ow);
    lksi_add_pair(l, z.v.th, z.v.tw);
    lksi_add_pair(l, d->k, k);
    lksi_add(l, LKSI_TURN);
    over_tiles(l, z.tiles, k);
    lksi_leaves_launch(r, &z.leaves, dev, nv, LKSI_WORK(1), LKSI_WORK(2), LKSI_WORK(0), true);
    set_turns(r, 0, d->n, slice);
    lksi_tree_launch(r, &d->leaf, (U32)z.elements, LKSI_WORK(0), LKSI_WORK(1));
    l = launch(r, "weights");
    defines(l, false, 1, false, false, false);
    lksi_add(l, LKSI_WORK(1));
    lksi_add(l, LKSI_OUT(0));
    lksi_add_pair(l, d->c, d->k);
    lksi_add_pair(l, c, k);
    l->dims = 2;
    l->local[0] = 64;
    l->local[1] = 1;
    l->global[0] = (size_t)lksi_up(d->c, 64) * 64;
    l->global[1] = d->k;

    U64 sums = z.elements * 4, patched = z.tiles * PLACES * c * 4;
    r->n_work = 3;
    r->work_bytes[0] = (U64)r->turns * z.leaves.leaf.leaves * z.elements * 4;
    r->work_bytes[1] = patched > sums ? patched : sums;
    r->work_bytes[2] = z.tiles * PLACES * k * 4;
}

/* ---- the lines of the tables ---- */

#define SCHEDULE(name, declines, recipe)                                                           \
    const char *lksi_##name##_declines(const struct lksi_call *call,                               \
                                       const struct lksi_limits *dev)                              \
    {                                                                                              \
        return declines;                                                                           \
    }                                                                                              \
    void lksi_##name##_recipe(const struct lksi_call *call, const struct lksi_limits *dev,         \
                              struct lksi_recipe *r)                                               \
    {                                                                                              \
        recipe;                                                                                    \
    }
#define D lksi_conv_dims(call)
SCHEDULE(winograd_nv, declines(D, false, dev, true), recipe(D, false, dev, true, r))
SCHEDULE(winograd_gpu, declines(D, false, dev, false), recipe(D, false, dev, false, r))
SCHEDULE(winograd_data_grad_nv, declines(D, true, dev, true), recipe(D, true, dev, true, r))
SCHEDULE(winograd_data_grad_gpu, declines(D, true, dev, false), recipe(D, true, dev, false, r))
SCHEDULE(winograd_weight_grad_nv, weight_declines(D, dev, true), weight_recipe(D, dev, true, r))
SCHEDULE(winograd_weight_grad_gpu, weight_declines(D, dev, false), weight_recipe(D, dev, false, r))
