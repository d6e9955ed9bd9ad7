/*
 * bias_grad.c - the gradient of a bias: a sum over the batch and the positions.
 */
#include <stdio.h>
#include <string.h>

#include "contract/bias_grad.h"
#include "op/bias_grad.h"
#include "op/flat.h"
#include "op/leaf_gpu.h"
#include "op/shape.h"

LKSI_ITEM(bias_grad, in[0], out[0])

static lks_status infer(struct lksi_call *call)
{
    const struct lksi_desc *dy = &call->in[0];
    lks_status st = lksi_want_leaf(call);
    if (st == LKS_OK)
        st = lksi_want(call, 0, "dy", LKSI_F32, 2, 4);
    if (st != LKS_OK)
        return st;
    call->out[0] = lksi_desc_make(LKSI_F32, 1, dy->dim[dy->rank - 1]);
    LKSI_SET_DIMS(call, bias_grad_dims,
                  {.n = (U32)dy->dim[0],
                   .h = dy->rank > 2 ? (U32)dy->dim[1] : 1u,
                   .w = dy->rank == 4 ? (U32)dy->dim[2] : 1u,
                   .k = (U32)dy->dim[dy->rank - 1],
                   .leaf = call->leaf});
    return LKS_OK;
}

static lks_status grad(const struct lksi_backward *g)
{
    return lksi_flow(g, 0, "spread", NULL, g->dout[0], g->in[0]);
}

/* ---- schedules: sums of leaves, then the trees ---- */

/* Vectors of `vec` lanes, `nv` a work-item, groups of lx vectors by ly leaves. */
static void add_leaves(const struct lksi_call *call, struct lksi_recipe *r, unsigned vec,
                       unsigned nv, const char *more, size_t lx, size_t ly)
{
    const struct bias_grad_dims *d = lksi_bias_grad_dims(call);
    struct lks_leaf f = lks_leaf_make(d->n, d->h, d->w, d->leaf);
    struct lksi_launch *l = &r->launch[r->n_launch++];
    size_t vectors = (d->k + vec - 1) / vec, items = (vectors + nv - 1) / nv;
    l->source = "op/bias_grad.cl";
    l->kernel = "leaves";
    snprintf(l->defines, sizeof l->defines, "LEAVES VEC=%u NV=%u%s", vec, nv, more);
    l->arg[l->n_arg++] = LKSI_IN(0);
    l->arg[l->n_arg++] = LKSI_WORK(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->dims = 2;
    l->local[0] = lx;
    l->local[1] = ly;
    l->global[0] = (items + lx - 1) / lx * lx;
    l->global[1] = (f.leaves + ly - 1) / ly * ly;
    r->n_work = 1;
    r->work_bytes[0] = (uint64_t)f.leaves * d->k * sizeof(F32);
}

static struct lksi_launch *add_tree(struct lksi_recipe *r, const char *kernel, size_t groups,
                                    size_t group)
{
    struct lksi_launch *l = &r->launch[r->n_launch++];
    l->source = "op/bias_grad.cl";
    l->kernel = kernel;
    l->arg[l->n_arg++] = LKSI_WORK(0);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->dims = 1;
    l->local[0] = group;
    l->global[0] = groups * group;
    return l;
}

static void recipe_cpu(const struct lksi_call *call, const struct lksi_limits *dev,
                       struct lksi_recipe *r)
{
    const struct bias_grad_dims *d = lksi_bias_grad_dims(call);
    unsigned vec = lksi_lanes(d->k), vectors = (d->k + vec - 1) / vec;
    struct lksi_launch *l;
    (void)dev;
    add_leaves(call, r, vec, vectors > 8 ? 8 : vectors, "", 1, 1);
    l = add_tree(r, "tree", vectors, 1);
    snprintf(l->defines, sizeof l->defines, "TREE VEC=%u", vec);
}

static void recipe_gpu(const struct lksi_call *call, const struct lksi_limits *dev,
                       struct lksi_recipe *r)
{
    const struct bias_grad_dims *d = lksi_bias_grad_dims(call);
    uint64_t leaves = lks_leaf_make(d->n, d->h, d->w, d->leaf).leaves, kx = 8;
    uint64_t limit = dev->local_memory / 2 / sizeof(F32);
    size_t lx = 1, ly = lksi_group(dev, 64);
    const struct lksi_leaf_shape shape = {d->n, d->h, d->w, d->k, d->leaf};
    struct lksi_launch *l;
    while (lx < 32 && lx < d->k && ly > 1) {
        lx *= 2;
        ly /= 2;
    }
    if (d->h * d->w > 1 && lksi_leaf_serves(LKSI_LEAF_BIAS, &shape, dev))
        lksi_leaf_launch(LKSI_LEAF_BIAS, &shape, r);
    else
        add_leaves(call, r, 1, 1, " AHEAD", lx, ly);
    while (kx > 1 && kx * leaves > limit)
        kx /= 2;
    if (leaves > limit) {
        l = add_tree(r, "tree", (d->k + lx - 1) / lx, lx);
        snprintf(l->defines, sizeof l->defines, "TREE VEC=1");
        return;
    }
    l = add_tree(r, "spread", (d->k + (size_t)kx - 1) / (size_t)kx, lksi_group(dev, 128));
    snprintf(l->defines, sizeof l->defines, "SPREAD VEC=1");
    l->arg[l->n_arg++] = LKSI_LOCAL(leaves * kx * sizeof(F32));
    l->arg[l->n_arg++] = LKSI_U32(kx);
}

static const struct lksi_schedule schedules[] = {
    {"cpu", lksi_cpu_declines, recipe_cpu},
    {"gpu", lksi_gpu_declines, recipe_gpu},
    {NULL, NULL, NULL}};

static double flops(const struct lksi_call *call)
{
    return (double)lksi_desc_count(&call->in[0]);
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const struct {
        uint32_t leaf;
        int64_t n, h, w, k;
    } cases[] = {
        {8, 1, 0, 0, 1},      {1, 5, 0, 0, 17},    {2, 7, 0, 0, 16},    {8, 64, 0, 0, 10},
        {8, 65, 0, 0, 33},    {64, 130, 0, 0, 3},  {8, 9, 0, 0, 512},   {8, 3, 1, 1, 5},
        {8, 17, 7, 7, 48},    {1, 3, 32, 32, 16},  {2, 3, 33, 31, 15},  {8, 3, 32, 33, 64},
        {8, 2, 45, 46, 65},   {8, 2, 1, 1025, 3},  {2, 2, 3, 1500, 8},  {8, 11, 11, 13, 31},
        {8, 9, 64, 0, 33},    {8, 2, 1500, 0, 24},
        {4, 1, 100, 21, 100}, {8, 64, 56, 56, 64}, {8, 63, 28, 28, 37},
    };
    (void)attr;
    if (index >= (int)LKSI_COUNT(cases) - (long_run ? 0 : 2))
        return false;
    call->leaf = cases[index].leaf;
    call->n_in = 1;
    call->in[0] = lksi_desc_make(LKSI_F32, 4, cases[index].n, cases[index].h, cases[index].w,
                                 cases[index].k);
    if (cases[index].h == 0)
        call->in[0] = lksi_desc_make(LKSI_F32, 2, cases[index].n, cases[index].k);
    else if (cases[index].w == 0) /* a sequence */
        call->in[0] = lksi_desc_make(LKSI_F32, 3, cases[index].n, cases[index].h, cases[index].k);
    return true;
}

static const struct lksi_op bias_grad = {
    .name = "bias_grad",
    .contract = "contract/bias_grad.h",
    .dims = "bias_grad_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .sums_samples = 1,
    .infer = infer,
    .item = bias_grad_item_c,
    .ref_parts = lksi_bias_grad_ref_parts,
    .ref = lksi_bias_grad_ref,
    .schedules = schedules,
    .grad = grad,
    .flops = flops,
    .test_case = test_case,
};

const struct lksi_op *const lksi_ops_bias_grad[] = {&bias_grad, NULL};
