/*
 * dense_gpu.c - schedules `nv` and `gpu` of the dense layer: convolutions with one tap over one
 * pixel (product_gpu.h), and a kernel of its own for the weight gradient, whose chains are short
 * (a leaf of samples) and whose tree fits into registers.
 */
#include <stdio.h>

#include "op/conv_gpu.h"
#include "op/dense.h"
#include "op/product_gpu.h"

#define TREE_LEVELS_MAX 8

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
    if (dev->type == LKSI_DEV_CPU && d.c < 16)
        return "`plain` is faster there";
    return lksi_product_declines(&d, grad, dev, nv);
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

static U32 levels_for(U32 leaves)
{
    U32 n = 0;
    while (1u << n < leaves)
        n++;
    return n;
}

static const char *weight_declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    struct lks_leaf f = lks_leaf_make(d->n, 1, 1, d->leaf);
    const char *reason = lksi_product_device(dev, false);
    if (reason == NULL && dev->type == LKSI_DEV_CPU && d->i < 16)
        reason = "`plain` is faster there";
    if (reason == NULL && levels_for(f.leaves) > TREE_LEVELS_MAX)
        reason = "too many leaves for a tree in registers";
    return reason;
}

static void weight_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                          struct lksi_recipe *r)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    struct lks_leaf f = lks_leaf_make(d->n, 1, 1, d->leaf);
    struct lksi_launch *l = &r->launch[r->n_launch++];
    const struct lksi_arg arg[] = {LKSI_IN(0),     LKSI_IN(1),     LKSI_OUT(0),     LKSI_U32(d->n),
                                   LKSI_U32(d->i), LKSI_U32(d->o), LKSI_U32(f.join)};
    (void)dev;
    l->source = "op/dense_weight_gpu.cl";
    l->kernel = "weight";
    /* A short last batch keeps the kernel: few leaves share one, many another. */
    snprintf(l->defines, sizeof l->defines, "LEVELS=%d VECTOR=%d",
             levels_for(f.leaves) <= 3 ? 3 : TREE_LEVELS_MAX, d->i % 4 == 0 && d->o % 4 == 0);
    for (size_t i = 0; i < LKSI_COUNT(arg); i++)
        l->arg[l->n_arg++] = arg[i];
    l->dims = 2;
    l->local[0] = 32;
    l->local[1] = 2;
    l->global[0] = (size_t)lksi_up(lksi_up(d->i, 4), 32) * 32;
    l->global[1] = (size_t)lksi_up(lksi_up(d->o, 4), 2) * 2;
}

const char *lksi_dense_weight_grad_nv_declines(const struct lksi_call *call,
                                               const struct lksi_limits *dev)
{
    const char *reason = lksi_product_device(dev, true);
    return reason != NULL ? reason : weight_declines(call, dev);
}

void lksi_dense_weight_grad_nv_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                                      struct lksi_recipe *r)
{
    weight_recipe(call, dev, r);
}

const char *lksi_dense_weight_grad_gpu_declines(const struct lksi_call *call,
                                                const struct lksi_limits *dev)
{
    return weight_declines(call, dev);
}

void lksi_dense_weight_grad_gpu_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                                       struct lksi_recipe *r)
{
    weight_recipe(call, dev, r);
}
