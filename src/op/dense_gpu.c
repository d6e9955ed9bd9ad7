/*
 * dense_gpu.c - schedules `nv` and `gpu` of the dense layer: convolutions with one tap over one
 * pixel (product_gpu.h), and a kernel of its own for the weight gradient, whose chains are short
 * (a leaf of samples).
 */
#include <stdio.h>

#include "op/conv_gpu.h"
#include "op/dense.h"
#include "op/product_gpu.h"
#include "op/product_tile.h"

#define PIECE 64u  /* samples in local memory, at most */
#define WHOLE 128u /* samples that a work-group adds in registers, if leaves are short */

static struct lks_conv_dims as_conv(const struct lksi_call *call)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    return (struct lks_conv_dims){
        .n = d->n,
        .h = 1,
        .w = 1,
        .c = d->i,
        .oh = 1,
        .ow = 1,
        .k = d->o,
        .r = 1,
        .s = 1,
        .stride_h = 1,
        .stride_w = 1,
        .dil_h = 1,
        .dil_w = 1,
        .groups = 1,
        .extra = d->extra,
        .relu = d->relu,
    };
}

static const char *declines(const struct lksi_call *call, bool grad, const struct lksi_limits *dev,
                            bool nv)
{
    struct lks_conv_dims d = as_conv(call);
    const char *reason = lksi_product_declines(&d, grad, dev, nv);
    if (reason == NULL && dev->type == LKSI_DEV_CPU && d.c < 16)
        reason = "`plain` is faster here";
    return reason;
}

static void recipe(const struct lksi_call *call, bool grad, const struct lksi_limits *dev, bool nv,
                   struct lksi_recipe *r)
{
    struct lks_conv_dims d = as_conv(call);
    lksi_product_recipe(&d, grad, dev, nv, r);
}

#define SCHEDULE(name, grad, nv)                                                                   \
    const char *lksi_##name##_declines(const struct lksi_call *call,                               \
                                       const struct lksi_limits *dev)                              \
    {                                                                                              \
        return declines(call, grad, dev, nv);                                                      \
    }                                                                                              \
    void lksi_##name##_recipe(const struct lksi_call *call, const struct lksi_limits *dev,         \
                              struct lksi_recipe *r)                                               \
    {                                                                                              \
        recipe(call, grad, dev, nv, r);                                                            \
    }

SCHEDULE(dense_nv, false, true)
SCHEDULE(dense_gpu, false, false)
SCHEDULE(dense_data_grad_nv, true, true)
SCHEDULE(dense_data_grad_gpu, true, false)

/* ---- weight gradient ---- */

/* Several positions a sample: an image of `rows` x 1. */
static struct lks_conv_dims as_image(const struct lksi_call *call)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    struct lks_conv_dims c = as_conv(call);
    c.h = c.oh = d->rows;
    c.leaf = lks_leaf_make(d->n, d->rows, 1, d->leaf);
    return c;
}

/* Samples in local memory at once: a power of two, no more than hold the batch. */
static U32 piece_of(U32 n, U32 join)
{
    U32 piece = PIECE;
    while (piece > 16 && piece / 2 >= n && piece / 2 > join)
        piece /= 2;
    return piece;
}

/* Samples that a work-group takes: whole leaves, at least a piece. */
static U32 chunk_of(U32 n, U32 join)
{
    U32 piece = piece_of(n, join);
    return join > piece ? join : n > PIECE && join < PIECE ? WHOLE : piece;
}

static const char *weight_declines(const struct lksi_call *call, const struct lksi_limits *dev,
                                   bool nv)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    U32 chunks = lksi_up(d->n, chunk_of(d->n, lks_leaf_make(d->n, 1, 1, d->leaf).join));
    const char *reason = lksi_product_device(dev, nv);
    U64 bytes = (U64)d->i * d->o * 4;
    if (d->rows > 1) {
        struct lks_conv_dims c = as_image(call);
        return lksi_leaves_declines(&c, dev, nv);
    }
    if (reason == NULL && (dev->max_group < 256 || dev->local_memory < 32 * 1024))
        reason = "work-groups are too small";
    if (reason == NULL && dev->type == LKSI_DEV_CPU && d->i < 16)
        reason = "`plain` is faster here";
    if (reason == NULL && ((U64)d->n * d->i > 0x7fffffffu || (U64)d->n * d->o > 0x7fffffffu ||
                           bytes / 4 > 0x7fffffffu))
        reason = "a tensor is too large for 31 bits";
    if (reason == NULL && chunks > 1 && (chunks > 16384 || chunks * bytes > dev->max_alloc))
        reason = "the partial sums take too much memory";
    return reason;
}

static void weight_recipe(const struct lksi_call *call, const struct lksi_limits *dev, bool nv,
                          struct lksi_recipe *r)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    if (d->rows > 1) {
        struct lks_conv_dims c = as_image(call);
        lksi_leaves_recipe(&c, dev, nv, r);
        return;
    }
    U32 join = lks_leaf_make(d->n, 1, 1, d->leaf).join, piece = piece_of(d->n, join), levels = 0;
    U32 chunk = chunk_of(d->n, join), chunks = lksi_up(d->n, chunk), depth;
    struct lksi_launch *l = &r->launch[r->n_launch++];
    const struct lksi_arg arg[] = {
        LKSI_IN(0),     LKSI_IN(1),     chunks > 1 ? LKSI_WORK(0) : LKSI_OUT(0),
        LKSI_U32(d->n), LKSI_U32(d->i), LKSI_U32(d->o),
        LKSI_U32(chunk)};
    while (join << levels < piece)
        levels++;
    depth = levels + (chunk > piece && levels > 0); /* WHOLE is two pieces */
    l->source = "op/dense_weight_gpu.cl";
    l->kernel = "weight";
    snprintf(l->defines, sizeof l->defines, "PIECE=%uu LEVELS=%u DEPTH=%u VECTOR=%d", piece,
             levels, depth, d->i % 4 == 0 && d->o % 4 == 0);
    for (size_t i = 0; i < LKSI_COUNT(arg); i++)
        lksi_add(l, arg[i]);
    lksi_set_groups(l, 16, 16, lksi_up(d->i, 64), lksi_up(d->o, 64), chunks);
    if (chunks > 1) {
        const struct lks_leaf f = {.cut = 1, .leaves = chunks};
        r->n_work = 1;
        r->work_bytes[0] = (U64)chunks * d->i * d->o * 4;
        lksi_tree_launch(r, &f, d->i * d->o, LKSI_WORK(0), LKSI_OUT(0));
    }
}

const char *lksi_dense_weight_grad_nv_declines(const struct lksi_call *call,
                                               const struct lksi_limits *dev)
{
    return weight_declines(call, dev, true);
}

void lksi_dense_weight_grad_nv_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                                      struct lksi_recipe *r)
{
    weight_recipe(call, dev, true, r);
}

const char *lksi_dense_weight_grad_gpu_declines(const struct lksi_call *call,
                                                const struct lksi_limits *dev)
{
    return weight_declines(call, dev, false);
}

void lksi_dense_weight_grad_gpu_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                                       struct lksi_recipe *r)
{
    weight_recipe(call, dev, false, r);
}

/* One position a sample is the kernel of this file, which has one tile. */
static bool leaves_tile(const struct lksi_call *call, bool nv, int index,
                        char text[LKSI_CHOICE_TEXT])
{
    return lksi_dense_dims(call)->rows > 1 && lksi_tile_name(LKSI_PRODUCT_WEIGHT, nv, index, text);
}

static bool nv_tile(const struct lksi_call *call, const struct lksi_limits *dev, int index,
                    char text[LKSI_CHOICE_TEXT])
{
    (void)dev;
    return leaves_tile(call, true, index, text);
}

static bool gpu_tile(const struct lksi_call *call, const struct lksi_limits *dev, int index,
                     char text[LKSI_CHOICE_TEXT])
{
    (void)dev;
    return leaves_tile(call, false, index, text);
}

const struct lksi_tunable lksi_dense_leaves_nv_tunables[] = {{"tile", nv_tile}, {NULL, NULL}};
const struct lksi_tunable lksi_dense_leaves_gpu_tunables[] = {{"tile", gpu_tile}, {NULL, NULL}};
