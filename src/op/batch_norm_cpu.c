/*
 * batch_norm_cpu.c - the schedule `whole` of batch_norm and batch_norm_grad for CPU devices, and
 * the list of all their schedules. A launch costs about as much as some ten thousand elements
 * there, so what fits into a cache is one launch in place of three. See cl/op/batch_norm_cpu.cl.
 */
#include <stdio.h>

#include "op/batch_norm.h"
#include "op/flat.h"

#define WHOLE_BYTES (1ull << 20) /* of one tensor */

/* Lanes that divide c, and vectors a work-item: neighbours in memory, as long as there are
 * work-items for all. */
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
    struct lksi_launch *l = &r->launch[r->n_launch++];
    unsigned nv, vec = whole_shape(d, dev, &nv);
    l->source = "op/batch_norm_cpu.cl";
    l->kernel = "whole";
    snprintf(l->defines, sizeof l->defines, "VEC=%u NV=%u%s%s%s", vec, nv,
             call->n_out == 3 ? " SUMS" : "", d->rest != 0 ? " REST" : "",
             d->relu != 0 ? " RELU" : "");
    for (int i = 0; i < call->n_in; i++)
        l->arg[l->n_arg++] = LKSI_IN(i);
    for (int j = 0; j < call->n_out; j++)
        l->arg[l->n_arg++] = LKSI_OUT(j);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->dims = 1;
    l->local[0] = 1;
    l->global[0] = (d->c + vec * nv - 1) / (vec * nv);
}

const struct lksi_schedule lksi_batch_norm_schedules[] = {
    {"whole", whole_declines, recipe_whole},
    {"cpu", lksi_cpu_declines, lksi_batch_norm_recipe},
    {"gpu", lksi_gpu_declines, lksi_batch_norm_recipe},
    {NULL, NULL, NULL}};
const struct lksi_schedule lksi_batch_norm_grad_schedules[] = {
    {"whole", whole_declines, recipe_whole},
    {"cpu", lksi_cpu_declines, lksi_batch_norm_grad_recipe},
    {"gpu", lksi_gpu_declines, lksi_batch_norm_grad_recipe},
    {NULL, NULL, NULL}};
