/*
 * batch.c - sums over a batch of numbers: batch_sum, batch_mean and its gradient.
 */
#include <stdio.h>
#include <string.h>

#include "contract/batch.h"
#include "op/attr.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(batch_sum, in[0], out[0])
LKSI_ITEM(batch_mean, in[0], out[0])
LKSI_ITEM(batch_mean_grad, in[0], in[1], out[0])

static lks_status infer(struct lksi_call *call)
{
    lks_status st = lksi_want_leaf(call);
    if (st == LKS_OK)
        st = lksi_want(call, 0, "v", LKSI_F32, 1, 1);
    if (st != LKS_OK)
        return st;
    call->out[0] = lksi_desc_make(LKSI_F32, 1, (int64_t)1);
    LKSI_SET_DIMS(call, batch_dims,
                  {.n = (U32)call->in[0].dim[0],
                   .leaf = call->leaf,
                   .scale = (F32)(1.0 / (double)call->in[0].dim[0])});
    return LKS_OK;
}

static lks_status infer_grad(struct lksi_call *call)
{
    int64_t n = call->in[1].dim[0];
    lks_status st = lksi_want_desc(call, 0, "dout", lksi_desc_make(LKSI_F32, 1, (int64_t)1));
    if (st == LKS_OK)
        st = lksi_want(call, 1, "v", LKSI_F32, 1, 1);
    if (st != LKS_OK)
        return st;
    call->out[0] = call->in[1];
    LKSI_SET_DIMS(call, batch_dims, {.n = (U32)n, .scale = (F32)(1.0 / (double)n)});
    return LKS_OK;
}

static lks_status grad(const struct lksi_backward *g)
{
    return lksi_flow(g, 0, "batch_mean_grad", NULL, g->dout[0], g->in[0]);
}

static lks_status grad_sum(const struct lksi_backward *g)
{
    return lksi_flow(g, 0, "spread", NULL, g->dout[0], g->in[0]);
}

static lks_status grad_grad(const struct lksi_backward *g)
{
    return lksi_flow(g, 0, "batch_mean", NULL, g->dout[0]);
}

/* ---- schedule `gpu` of the sums ---- */

static const char *declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    const struct batch_dims *d = (const void *)call->dims.bytes;
    struct lks_leaf f = lks_leaf_make(d->n, 1, 1, d->leaf);
    if (dev->type != LKSI_DEV_GPU)
        return "made for GPUs";
    if ((U64)f.leaves * sizeof(F32) > dev->local_memory / 2)
        return "more leaves than local memory holds";
    return NULL;
}

static void sum_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                       struct lksi_recipe *r, const char *defines)
{
    const struct batch_dims *d = (const void *)call->dims.bytes;
    struct lksi_launch *l = &r->launch[0];
    struct lks_leaf f = lks_leaf_make(d->n, 1, 1, d->leaf);
    r->n_launch = 1;
    l->source = "op/batch_gpu.cl";
    l->kernel = "sum";
    snprintf(l->defines, sizeof l->defines, "%s", defines);
    l->arg[l->n_arg++] = LKSI_IN(0);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->arg[l->n_arg++] = LKSI_LOCAL(f.leaves * sizeof(F32));
    l->dims = 1;
    l->global[0] = l->local[0] = lksi_group(dev, 128);
}

static void recipe_sum(const struct lksi_call *call, const struct lksi_limits *dev,
                       struct lksi_recipe *r)
{
    sum_recipe(call, dev, r, "");
}

static void recipe_mean(const struct lksi_call *call, const struct lksi_limits *dev,
                        struct lksi_recipe *r)
{
    sum_recipe(call, dev, r, "MEAN");
}

static const struct lksi_schedule schedules_sum[] = {{"gpu", declines, recipe_sum},
                                                     {NULL, NULL, NULL}};

static const struct lksi_schedule schedules_mean[] = {{"gpu", declines, recipe_mean},
                                                      {NULL, NULL, NULL}};

static double flops(const struct lksi_call *call)
{
    return (double)call->in[0].dim[0];
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const struct {
        uint32_t leaf;
        int64_t n;
    } cases[] = {{8, 1},       {8, 2},    {8, 7},    {8, 8},     {8, 9},     {1, 13},
                 {2, 64},      {8, 64},   {8, 65},   {16, 100},  {64, 1000}, {8, 509},
                 {2048, 5000}, {1, 2048}, {1, 2049}, {8, 100003}};
    (void)attr;
    if (index >= (int)LKSI_COUNT(cases) - (long_run ? 0 : 1))
        return false;
    call->leaf = cases[index].leaf;
    call->n_in = 1;
    call->in[0] = lksi_desc_make(LKSI_F32, 1, cases[index].n);
    return true;
}

static bool test_case_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const int64_t n[] = {1, 3, 16, 17, 64, 1000};
    (void)attr;
    (void)long_run;
    if (index >= (int)LKSI_COUNT(n))
        return false;
    call->n_in = 2;
    call->in[0] = lksi_desc_make(LKSI_F32, 1, (int64_t)1);
    call->in[1] = lksi_desc_make(LKSI_F32, 1, n[index]);
    return true;
}

static const struct lksi_op batch_sum = {
    .name = "batch_sum",
    .contract = "contract/batch.h",
    .dims = "batch_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .sums_samples = 1,
    .infer = infer,
    .item = batch_sum_item_c,
    .schedules = schedules_sum,
    .grad = grad_sum,
    .flops = flops,
    .test_case = test_case,
};

static const struct lksi_op batch_mean = {
    .name = "batch_mean",
    .contract = "contract/batch.h",
    .dims = "batch_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .infer = infer,
    .item = batch_mean_item_c,
    .schedules = schedules_mean,
    .grad = grad,
    .flops = flops,
    .test_case = test_case,
};

static const struct lksi_op batch_mean_grad = {
    .name = "batch_mean_grad",
    .contract = "contract/batch.h",
    .dims = "batch_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .infer = infer_grad,
    .item = batch_mean_grad_item_c,
    .grad = grad_grad,
    .test_case = test_case_grad,
};

const struct lksi_op *const lksi_ops_batch[] = {&batch_sum, &batch_mean, &batch_mean_grad, NULL};
