/*
 * dense_cpu.c - schedules `cpu` of the dense layer, for CPU devices: register tiles of 16-lane
 * vectors in cl/op/dense_cpu.cl, groups of one work-item.
 *
 * The choice of kernels depends on the layer alone, never on the batch, so that a short last
 * batch needs no build.
 */
#include <stdio.h>
#include <string.h>

#include "op/dense.h"

#define SOURCE "op/dense_cpu.cl"
#define FEW    64 /* outputs up to which the weights are packed, not the samples */

/* Vectors a panel, rows a tile: about 24 accumulators where the matrix is wide enough. */
struct tile {
    unsigned nv, mr;
};

/* Those that tuning tries. */
static const struct tile tiles[] = {{1, 8},  {2, 8},  {4, 6},  {3, 8}, {4, 4}, {4, 5}, {2, 12},
                                    {1, 16}, {1, 12}, {2, 10}, {3, 6}, {2, 6}, {1, 6}};

static bool tile_name(const struct lksi_call *call, const struct lksi_limits *dev, int index,
                      char text[LKSI_CHOICE_TEXT])
{
    (void)call;
    (void)dev;
    if ((size_t)index > LKSI_COUNT(tiles))
        return false;
    snprintf(text, LKSI_CHOICE_TEXT, "%u rows x %u of 16 lanes", tiles[index - 1].mr,
             tiles[index - 1].nv);
    return true;
}

const struct lksi_tunable lksi_dense_cpu_tunables[] = {{"tile", tile_name}, {NULL, NULL}};

static struct tile tile_for(uint32_t columns, int wanted)
{
    if (wanted > 0)
        return tiles[wanted - 1];
    if (columns <= 16)
        return (struct tile){1, 8};
    if (columns <= 32)
        return (struct tile){2, 8};
    return (struct tile){4, 6};
}

static unsigned ceil_div(unsigned a, unsigned b)
{
    return (a + b - 1) / b;
}

static struct lksi_launch *add_launch(struct lksi_recipe *r, const char *kernel, size_t g0,
                                      size_t g1)
{
    struct lksi_launch *l = &r->launch[r->n_launch++];
    l->source = SOURCE;
    l->kernel = kernel;
    l->dims = 2;
    l->global[0] = g0;
    l->global[1] = g1;
    l->local[0] = l->local[1] = 1;
    return l;
}

static void add_arg(struct lksi_launch *l, struct lksi_arg a)
{
    l->arg[l->n_arg++] = a;
}

/* Packs `rows` rows of input `in`, each `k` long, into workspace 0. */
static void add_pack(struct lksi_recipe *r, int in, uint32_t rows, uint32_t k, struct tile t)
{
    unsigned panels = ceil_div(rows, 16 * t.nv);
    struct lksi_launch *l = add_launch(r, "pack", ceil_div(k, 64), panels);
    snprintf(l->defines, sizeof l->defines, "PACK");
    add_arg(l, LKSI_IN(in));
    add_arg(l, LKSI_WORK(0));
    add_arg(l, LKSI_U32(rows));
    add_arg(l, LKSI_U32(k));
    add_arg(l, LKSI_U32(16 * t.nv));
    r->n_work = 1;
    r->work_bytes[0] = (uint64_t)panels * 16 * t.nv * k * sizeof(float);
}

static const char *declines(const struct lksi_limits *dev)
{
    return dev->type == LKSI_DEV_CPU ? NULL : "made for CPU devices";
}

/* ---- forward ---- */

const char *lksi_dense_cpu_declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    uint64_t packed = d->o <= FEW ? d->o : d->n;
    if (dev->type == LKSI_DEV_CPU && (packed + 64) * d->i * sizeof(float) > dev->max_alloc)
        return "the packed matrix is above the device's largest allocation";
    return declines(dev);
}

void lksi_dense_cpu_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                           struct lksi_recipe *r)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    bool few = d->o <= FEW;
    /* Few outputs: y = x w^T over panels of w. Else y^T = w x^T over panels of x. */
    uint32_t m = few ? d->n : d->o, n = few ? d->o : d->n;
    struct tile t = tile_for(few ? d->o : 64, r->tuned[0]);
    struct lksi_launch *l;
    (void)dev;
    add_pack(r, few ? 1 : 0, n, d->i, t);
    l = add_launch(r, "product", ceil_div(m, t.mr), ceil_div(n, 16 * t.nv));
    snprintf(l->defines, sizeof l->defines, "PRODUCT %s MR=%u NV=%u%s%s", few ? "PACKED" : "TRANS",
             t.mr, t.nv, d->extra ? " BIAS" : "", d->relu ? " RELU" : "");
    add_arg(l, LKSI_IN(few ? 0 : 1));
    add_arg(l, LKSI_WORK(0));
    add_arg(l, LKSI_IN(d->extra ? 2 : 0));
    add_arg(l, LKSI_OUT(0));
    add_arg(l, LKSI_U32(m));
    add_arg(l, LKSI_U32(n));
    add_arg(l, LKSI_U32(d->i));
    add_arg(l, LKSI_U32(0));
}

/* ---- gradients ---- */

const char *lksi_dense_data_grad_cpu_declines(const struct lksi_call *call,
                                              const struct lksi_limits *dev)
{
    if (lksi_dense_dims(call)->i < 16)
        return "fewer than 16 inputs, one vector";
    return declines(dev);
}

void lksi_dense_data_grad_cpu_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                                     struct lksi_recipe *r)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    struct tile t = tile_for(d->i, r->tuned[0]);
    struct lksi_launch *l =
        add_launch(r, "product", ceil_div(d->n, t.mr), ceil_div(d->i, 16 * t.nv));
    (void)dev;
    snprintf(l->defines, sizeof l->defines, "PRODUCT MR=%u NV=%u", t.mr, t.nv);
    add_arg(l, LKSI_IN(0));
    add_arg(l, LKSI_IN(1));
    add_arg(l, LKSI_IN(d->extra ? 2 : 0));
    add_arg(l, LKSI_OUT(0));
    add_arg(l, LKSI_U32(d->n));
    add_arg(l, LKSI_U32(d->i));
    add_arg(l, LKSI_U32(d->o));
    add_arg(l, LKSI_U32(d->extra));
}

const char *lksi_dense_weight_grad_cpu_declines(const struct lksi_call *call,
                                                const struct lksi_limits *dev)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    if (lks_leaf_make(d->n, d->rows, 1, d->leaf).cut > 1)
        return "samples are cut into leaves";
    return lksi_dense_data_grad_cpu_declines(call, dev);
}

void lksi_dense_weight_grad_cpu_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                                       struct lksi_recipe *r)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    struct lks_leaf f = lks_leaf_make(d->n, d->rows, 1, d->leaf);
    struct tile t = tile_for(d->i, r->tuned[0]);
    unsigned rows;
    struct lksi_launch *l;
    if (r->tuned[0] == 0)
        t.mr = t.nv == 4 ? 4 : 8;
    /* A panel of x stays in the cache while a work-item goes over its rows. */
    rows = 8 * t.mr;
    l = add_launch(r, "weight_grad", ceil_div(d->o, rows), ceil_div(d->i, 16 * t.nv));
    (void)dev;
    snprintf(l->defines, sizeof l->defines, "WEIGHT MR=%u NV=%u", t.mr, t.nv);
    add_arg(l, LKSI_IN(0));
    add_arg(l, LKSI_IN(1));
    add_arg(l, LKSI_OUT(0));
    add_arg(l, LKSI_U32(d->n * d->rows)); /* a leaf: `join` samples, one behind another */
    add_arg(l, LKSI_U32(d->i));
    add_arg(l, LKSI_U32(d->o));
    add_arg(l, LKSI_U32(f.join * d->rows));
    add_arg(l, LKSI_U32(rows));
}
