/*
 * bias_grad.c - the gradient of a bias: a sum over the batch and the positions.
 */
#include <stdio.h>
#include <string.h>

#include "contract/bias_grad.h"
#include "op/bias_grad.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(bias_grad, in[0], out[0])

static lks_status infer(struct lksi_call *call)
{
    const struct lksi_desc *dy = &call->in[0];
    char text[96];
    lks_status st = lksi_want_leaf(call);
    if (st == LKS_OK)
        st = lksi_want(call, 0, "dy", LKSI_F32, 2, 4);
    if (st != LKS_OK)
        return st;
    if (dy->rank == 3)
        return lksi_fail(LKS_E_ARGUMENT, "bias_grad: dy is %s, [N,K] or [N,H,W,K] wanted",
                         lksi_desc_text(dy, text));
    call->out[0] = lksi_desc_make(LKSI_F32, 1, dy->dim[dy->rank - 1]);
    LKSI_SET_DIMS(call, bias_grad_dims,
                  {.n = (U32)dy->dim[0],
                   .h = dy->rank == 4 ? (U32)dy->dim[1] : 1u,
                   .w = dy->rank == 4 ? (U32)dy->dim[2] : 1u,
                   .k = (U32)dy->dim[dy->rank - 1],
                   .leaf = call->leaf});
    return LKS_OK;
}

/* ---- schedules: sums of leaves, then the trees ---- */

static const char *declines_cpu(const struct lksi_call *call, const struct lksi_limits *dev)
{
    (void)call;
    return dev->type == LKSI_DEV_CPU ? NULL : "made for CPU devices";
}

static const char *declines_gpu(const struct lksi_call *call, const struct lksi_limits *dev)
{
    (void)call;
    return dev->type == LKSI_DEV_GPU ? NULL : "made for GPUs";
}

/* Vectors of `vec` lanes, `nv` a work-item, groups of lx vectors by ly leaves. */
static void two_stages(const struct lksi_call *call, struct lksi_recipe *r, unsigned vec,
                       unsigned nv, size_t lx, size_t ly)
{
    const struct bias_grad_dims *d = lksi_bias_grad_dims(call);
    struct lks_leaf f = lks_leaf_make(d->n, d->h, d->w, d->leaf);
    struct lksi_launch *leaves = &r->launch[0], *tree = &r->launch[1];
    size_t vectors = (d->k + vec - 1) / vec, items = (vectors + nv - 1) / nv;
    r->n_launch = 2;
    leaves->source = tree->source = "op/bias_grad.cl";
    leaves->kernel = "leaves";
    tree->kernel = "tree";
    snprintf(leaves->defines, sizeof leaves->defines, "LEAVES VEC=%u NV=%u", vec, nv);
    snprintf(tree->defines, sizeof tree->defines, "TREE VEC=%u", vec);
    leaves->arg[leaves->n_arg++] = LKSI_IN(0);
    leaves->arg[leaves->n_arg++] = LKSI_WORK(0);
    leaves->arg[leaves->n_arg++] = LKSI_DIMS;
    leaves->dims = 2;
    leaves->local[0] = lx;
    leaves->local[1] = ly;
    leaves->global[0] = (items + lx - 1) / lx * lx;
    leaves->global[1] = (f.leaves + ly - 1) / ly * ly;
    tree->arg[tree->n_arg++] = LKSI_WORK(0);
    tree->arg[tree->n_arg++] = LKSI_OUT(0);
    tree->arg[tree->n_arg++] = LKSI_DIMS;
    tree->dims = 1;
    tree->local[0] = lx;
    tree->global[0] = (vectors + lx - 1) / lx * lx;
    r->n_work = 1;
    r->work_bytes[0] = (uint64_t)f.leaves * d->k * sizeof(F32);
}

static void recipe_cpu(const struct lksi_call *call, const struct lksi_limits *dev,
                       struct lksi_recipe *r)
{
    const struct bias_grad_dims *d = lksi_bias_grad_dims(call);
    unsigned vec = lksi_lanes(d->k), nv = (d->k + vec - 1) / vec;
    (void)dev;
    two_stages(call, r, vec, nv > 8 ? 8 : nv, 1, 1);
}

static void recipe_gpu(const struct lksi_call *call, const struct lksi_limits *dev,
                       struct lksi_recipe *r)
{
    const struct bias_grad_dims *d = lksi_bias_grad_dims(call);
    size_t lx = 1, ly = lksi_group(dev, 64);
    while (lx < 32 && lx < d->k && ly > 1) {
        lx *= 2;
        ly /= 2;
    }
    two_stages(call, r, 1, 1, lx, ly);
}

static const struct lksi_schedule schedules[] = {
    {"cpu", declines_cpu, recipe_cpu}, {"gpu", declines_gpu, recipe_gpu}, {NULL, NULL, NULL}};

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
        {4, 1, 100, 21, 100}, {8, 64, 56, 56, 64}, {8, 63, 28, 28, 37},
    };
    (void)attr;
    if (index >= (int)LKSI_COUNT(cases) - (long_run ? 0 : 2))
        return false;
    call->leaf = cases[index].leaf;
    call->n_in = 1;
    call->in[0] = cases[index].h == 0 ? lksi_desc_make(LKSI_F32, 2, cases[index].n, cases[index].k)
                                      : lksi_desc_make(LKSI_F32, 4, cases[index].n, cases[index].h,
                                                       cases[index].w, cases[index].k);
    return true;
}

static const struct lksi_op bias_grad = {
    .name = "bias_grad",
    .contract = "contract/bias_grad.h",
    .dims = "bias_grad_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .infer = infer,
    .item = bias_grad_item_c,
    .ref_parts = lksi_bias_grad_ref_parts,
    .ref = lksi_bias_grad_ref,
    .schedules = schedules,
    .flops = flops,
    .test_case = test_case,
};

const struct lksi_op *const lksi_ops_bias_grad[] = {&bias_grad, NULL};
