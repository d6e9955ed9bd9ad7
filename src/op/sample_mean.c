/*
 * sample_mean.c - sample_mean and sample_mean_grad: the mean, or the sum, over each sample.
 */
#include <string.h>

#include "contract/sample_mean.h"
#include "op/attr.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(sample_mean, in[0], out[0])
LKSI_ITEM(sample_mean_grad, in[0], in[1], out[0])

static void set_dims(struct lksi_call *call, const struct lksi_desc *x)
{
    const struct lksi_sample_mean_attr *a = call->attr;
    int64_t f = lksi_desc_count(x) / x->dim[0];
    LKSI_SET_DIMS(call, sample_mean_dims,
                  {.f = (U64)f, .scale = a->sum ? 1.0f : (F32)(1.0 / (double)f)});
}

static lks_status infer(struct lksi_call *call)
{
    lks_status st = lksi_want(call, 0, "x", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st != LKS_OK)
        return st;
    call->out[0] = lksi_desc_make(LKSI_F32, 1, call->in[0].dim[0]);
    set_dims(call, &call->in[0]);
    return LKS_OK;
}

static lks_status infer_grad(struct lksi_call *call)
{
    lks_status st = lksi_want(call, 1, "the shape", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 0, "dy", lksi_desc_make(LKSI_F32, 1, call->in[1].dim[0]));
    if (st != LKS_OK)
        return st;
    call->out[0] = call->in[1];
    set_dims(call, &call->in[1]);
    return LKS_OK;
}

static lks_status grad(const struct lksi_backward *g)
{
    return lksi_flow(g, 0, "sample_mean_grad", g->call->attr, g->dout[0], g->in[0]);
}

static lks_status grad_grad(const struct lksi_backward *g)
{
    return lksi_flow(g, 0, "sample_mean", g->call->attr, g->dout[0]);
}

/* ---- schedule `gpu`: a group of 32 items a sample, item j being lane j of rule 6 ---- */

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    struct lksi_launch *l = &r->launch[0];
    (void)dev;
    r->n_launch = 1;
    l->source = "op/sample_mean_gpu.cl";
    l->kernel = "rows";
    l->arg[l->n_arg++] = LKSI_IN(0);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->dims = 1;
    l->global[0] = (size_t)call->in[0].dim[0] * 32;
    l->local[0] = 32;
}

static const struct lksi_schedule schedules[] = {{"gpu", lksi_lanes_declines, recipe},
                                                 {NULL, NULL, NULL}};

static double flops(const struct lksi_call *call)
{
    return (double)lksi_desc_count(&call->in[0]);
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const int64_t cases[][2] = {{1, 1},    {2, 2},    {3, 31},   {64, 10}, {4, 32},
                                       {7, 33},   {17, 100}, {3, 4095}, {2, 4096}, {2, 4097},
                                       {1, 12289}, {300, 20011}};
    struct lksi_sample_mean_attr *a = attr;
    if (index >= (int)LKSI_COUNT(cases) - (long_run ? 0 : 1))
        return false;
    a->sum = index % 3 == 2;
    call->n_in = 1;
    call->in[0] = lksi_desc_make(LKSI_F32, 3, cases[index][0], (int64_t)1, cases[index][1]);
    return true;
}

static bool test_case_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    if (!test_case(index, long_run, call, attr))
        return false;
    call->n_in = 2;
    call->in[1] = call->in[0];
    call->in[0] = lksi_desc_make(LKSI_F32, 1, call->in[1].dim[0]);
    return true;
}

static const struct lksi_op sample_mean = {
    .name = "sample_mean",
    .contract = "contract/sample_mean.h",
    .dims = "sample_mean_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_sample_mean_attr),
    .infer = infer,
    .item = sample_mean_item_c,
    .schedules = schedules,
    .grad = grad,
    .flops = flops,
    .test_case = test_case,
};

static const struct lksi_op sample_mean_grad = {
    .name = "sample_mean_grad",
    .contract = "contract/sample_mean.h",
    .dims = "sample_mean_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_sample_mean_attr),
    .infer = infer_grad,
    .item = sample_mean_grad_item_c,
    .grad = grad_grad,
    .test_case = test_case_grad,
};

const struct lksi_op *const lksi_ops_sample_mean[] = {&sample_mean, &sample_mean_grad, NULL};
