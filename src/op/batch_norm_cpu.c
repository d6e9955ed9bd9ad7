/*
 * batch_norm_cpu.c - launches of the schedules `whole` and `shared` of batch_norm and batch_norm_grad
 * for CPU devices. A launch costs about as much as a few thousand elements there, so what fits into
 * a cache is one launch, and the rest two. See cl/op/batch_norm_cpu.cl.
 */
#include <stdio.h>

#include "op/batch_norm.h"
#include "op/flat.h"

#define WHOLE_BYTES (1ull << 20) /* of one tensor */

static bool is_grad(const struct lksi_call *call)
{
    return call->n_out == 3;
}

static struct lksi_launch *add_launch(const struct lksi_call *call, struct lksi_recipe *r,
                                      const char *kernel, const char *define, unsigned vec,
                                      unsigned nv)
{
    const struct batch_norm_dims *d = lksi_batch_norm_dims(call);
    struct lksi_launch *l = &r->launch[r->n_launch++];
    l->source = "op/batch_norm_cpu.cl";
    l->kernel = kernel;
    snprintf(l->defines, sizeof l->defines, "%s VEC=%u NV=%u%s%s%s", define, vec, nv,
             is_grad(call) ? " SUMS" : "", d->rest != 0 ? " REST" : "",
             d->relu != 0 ? " RELU" : "");
    l->dims = 1;
    l->local[0] = l->local[1] = l->local[2] = 1;
    return l;
}

/* Inputs, then outputs. */
static void add_tensors(const struct lksi_call *call, struct lksi_launch *l)
{
    for (int i = 0; i < call->n_in; i++)
        l->arg[l->n_arg++] = LKSI_IN(i);
    for (int j = 0; j < call->n_out; j++)
        l->arg[l->n_arg++] = LKSI_OUT(j);
}

/* ---- whole ---- */

/* Lanes that divide c, and vectors a work-item: neighbours in memory, as long as there are work-items
 * for all. */
static unsigned whole_shape(const struct batch_norm_dims *d, const struct lksi_limits *dev,
                            unsigned *nv)
{
    unsigned vec = 16;
    while (d->c % vec != 0)
        vec /= 2;
    for (*nv = 4; *nv > 1 && d->c / (vec * *nv) < 4 * dev->compute_units; *nv /= 2)
        continue;
    return vec;
}

static const char *whole_declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    const struct batch_norm_dims *d = lksi_batch_norm_dims(call);
    unsigned nv, vec = whole_shape(d, dev, &nv);
    if (lksi_cpu_declines(call, dev) != NULL)
        return lksi_cpu_declines(call, dev);
    if ((uint64_t)lksi_desc_count(&call->in[0]) * 4 > WHOLE_BYTES)
        return "made for tensors that fit into a cache";
    if (vec < 8 || d->c / vec < 2 * dev->compute_units)
        return "too few channels";
    return NULL;
}

static void recipe_whole(const struct lksi_call *call, const struct lksi_limits *dev,
                         struct lksi_recipe *r)
{
    const struct batch_norm_dims *d = lksi_batch_norm_dims(call);
    unsigned nv, vec = whole_shape(d, dev, &nv), group;
    struct lksi_launch *l = add_launch(call, r, "whole", "WHOLE", vec, nv);
    group = vec * nv;
    add_tensors(call, l);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->global[0] = (d->c + group - 1) / group;
    l->global[1] = l->global[2] = 1;
}

/* ---- leaves and finish ---- */

/* Shares of the positions: several a compute unit, but each tree must be little beside a share. */
static uint64_t shares(const struct batch_norm_dims *d, uint64_t leaves,
                       const struct lksi_limits *dev)
{
    uint64_t positions = (uint64_t)d->n * d->h * d->w, n = 8ull * dev->compute_units;
    return n < positions / (32 * leaves) ? n : positions / (32 * leaves);
}

static const char *shared_declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    const struct batch_norm_dims *d = lksi_batch_norm_dims(call);
    uint64_t leaves = lks_leaf_make(d->n, d->h, d->w, d->leaf).leaves;
    if (lksi_cpu_declines(call, dev) != NULL)
        return lksi_cpu_declines(call, dev);
    if ((uint64_t)d->n * d->h * d->w > UINT32_MAX)
        return "too many positions";
    return shares(d, leaves, dev) < 2 * dev->compute_units ? "made for longer leaves" : NULL;
}

static void recipe_shared(const struct lksi_call *call, const struct lksi_limits *dev,
                       struct lksi_recipe *r)
{
    const struct batch_norm_dims *d = lksi_batch_norm_dims(call);
    unsigned vec = lksi_lanes(d->c), vectors = (d->c + vec - 1) / vec;
    unsigned nv = vectors > 4 ? 4 : vectors;
    uint64_t leaves = lks_leaf_make(d->n, d->h, d->w, d->leaf).leaves;
    uint64_t positions = (uint64_t)d->n * d->h * d->w, n = shares(d, leaves, dev);
    uint64_t chunk = (positions + n - 1) / n;
    struct lksi_launch *l = add_launch(call, r, "leaves", "LEAVES", vec, nv);
    n = (positions + chunk - 1) / chunk;
    r->n_work = 2; /* the leaves' numbers; what each share takes of them */
    r->work_bytes[0] = leaves * 2 * d->c * sizeof(F32);
    r->work_bytes[1] = n * (is_grad(call) ? 3 : 2) * d->c * sizeof(F32);
    for (int i = 0; i < (is_grad(call) ? 4 : 1); i++) /* x, dy, mean, invstd */
        l->arg[l->n_arg++] = LKSI_IN(i);
    l->arg[l->n_arg++] = LKSI_WORK(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->dims = 2;
    l->global[0] = (vectors + nv - 1) / nv;
    l->global[1] = leaves;
    l->global[2] = 1;
    l = add_launch(call, r, "finish", "FINISH", vec, 1);
    l->arg[l->n_arg++] = LKSI_WORK(0);
    add_tensors(call, l);
    l->arg[l->n_arg++] = LKSI_WORK(1);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->arg[l->n_arg++] = LKSI_U32(chunk);
    l->global[0] = n;
    l->global[1] = l->global[2] = 1;
}

const struct lksi_schedule lksi_batch_norm_schedules[] = {
    {"whole", whole_declines, recipe_whole},
    {"shared", shared_declines, recipe_shared},
    {"cpu", lksi_cpu_declines, lksi_batch_norm_recipe},
    {"gpu", lksi_gpu_declines, lksi_batch_norm_recipe},
    {NULL, NULL, NULL}};
const struct lksi_schedule lksi_batch_norm_grad_schedules[] = {
    {"whole", whole_declines, recipe_whole},
    {"shared", shared_declines, recipe_shared},
    {"cpu", lksi_cpu_declines, lksi_batch_norm_grad_recipe},
    {"gpu", lksi_gpu_declines, lksi_batch_norm_grad_recipe},
    {NULL, NULL, NULL}};
