/*
 * dense_clblast.c - schedules `clblast` of the dense layer: C is filled with +0, an SGEMM with
 * alpha 1 and beta 1 for each piece of the chains, then bias, + 0.0f, relu, mask (numerics.md, rule
 * 4). The weight gradient is served where the batch is one leaf.
 *
 * A cold CLBlast builds for seconds, so these stand behind the own schedules.
 */
#include <stdio.h>
#include <string.h>

#include "op/dense.h"
#include "op/flat.h"

static struct lksi_launch *add_flat(struct lksi_recipe *r, const struct lksi_limits *dev,
                                    const char *kernel, U64 n)
{
    struct lksi_launch *l = &r->launch[r->n_launch++];
    size_t group = lksi_group(dev, dev->type == LKSI_DEV_GPU ? 128 : 16);
    l->source = "op/dense_clblast.cl";
    l->kernel = kernel;
    l->dims = 1;
    l->local[0] = group;
    l->global[0] = (size_t)((n + group - 1) / group * group);
    return l;
}

static void add_start(struct lksi_recipe *r, const struct lksi_limits *dev, U64 n)
{
    struct lksi_launch *l = add_flat(r, dev, "start", n);
    snprintf(l->defines, sizeof l->defines, "START");
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_U64(n);
}

/* `kind`: "BIAS" or "MASK", which input 2 is, or "". */
static void add_end(struct lksi_recipe *r, const struct lksi_limits *dev, const char *kind,
                    bool relu, U64 rows, uint32_t columns)
{
    struct lksi_launch *l = add_flat(r, dev, "end", rows * columns);
    snprintf(l->defines, sizeof l->defines, "END %s%s", kind, relu ? " RELU" : "");
    l->arg[l->n_arg++] = LKSI_IN(kind[0] != '\0' ? 2 : 0);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_U64(rows * columns);
    l->arg[l->n_arg++] = LKSI_U32(columns);
}

const char *lksi_dense_clblast_declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    const U64 limit = (U64)1 << 31;
    if ((U64)d->n * d->i >= limit || (U64)d->o * d->i >= limit || (U64)d->n * d->o >= limit)
        return "a matrix of 2^31 elements or more";
    return lksi_clblast_declines(dev);
}

const char *lksi_dense_weight_grad_clblast_declines(const struct lksi_call *call,
                                                    const struct lksi_limits *dev)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    if (lks_leaf_make(d->n, d->rows, 1, d->leaf).leaves > 1)
        return "the batch is more than one leaf";
    return lksi_dense_clblast_declines(call, dev);
}

/* ---- forward ---- */

static lks_status forward(struct lksi_dev *dev, const struct lksi_call *call,
                          struct lksi_buf *const *in, struct lksi_buf *const *out,
                          struct lksi_buf *const *work)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    (void)work;
    return lksi_clblast_sgemm(dev, false, true, d->n, d->o, d->i, LKS_PIECE, in[0], d->i, in[1],
                              d->i, out[0], d->o);
}

void lksi_dense_clblast_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                               struct lksi_recipe *r)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    add_start(r, dev, (U64)d->n * d->o);
    r->launch[r->n_launch++].host = forward;
    add_end(r, dev, d->extra ? "BIAS" : "", d->relu != 0, d->n, d->o);
}

/* ---- gradients ---- */

static lks_status data_grad(struct lksi_dev *dev, const struct lksi_call *call,
                            struct lksi_buf *const *in, struct lksi_buf *const *out,
                            struct lksi_buf *const *work)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    (void)work;
    return lksi_clblast_sgemm(dev, false, false, d->n, d->i, d->o, LKS_PIECE, in[0], d->o, in[1],
                              d->i, out[0], d->i);
}

void lksi_dense_data_grad_clblast_recipe(const struct lksi_call *call,
                                         const struct lksi_limits *dev, struct lksi_recipe *r)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    add_start(r, dev, (U64)d->n * d->i);
    r->launch[r->n_launch++].host = data_grad;
    add_end(r, dev, d->extra ? "MASK" : "", false, d->n, d->i);
}

static lks_status weight_grad(struct lksi_dev *dev, const struct lksi_call *call,
                              struct lksi_buf *const *in, struct lksi_buf *const *out,
                              struct lksi_buf *const *work)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    (void)work;
    return lksi_clblast_sgemm(dev, true, false, d->o, d->i, d->n * d->rows, LKS_STRETCH, in[1],
                              d->o, in[0], d->i, out[0], d->i);
}

void lksi_dense_weight_grad_clblast_recipe(const struct lksi_call *call,
                                           const struct lksi_limits *dev, struct lksi_recipe *r)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    add_start(r, dev, (U64)d->o * d->i);
    r->launch[r->n_launch++].host = weight_grad;
    add_end(r, dev, "", false, d->o, d->i);
}
