/*
 * softmax_cross_entropy.c - the classification loss of each sample, with probabilities and hits.
 */
#include <string.h>

#include "contract/softmax_cross_entropy.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(softmax_cross_entropy, in[0], in[1], out[0], out[1], out[2])
LKSI_ITEM(softmax_cross_entropy_grad, in[0], in[1], in[2], out[0])

static lks_status rows(struct lksi_call *call, const char *what, struct lksi_desc *loss)
{
    const struct lksi_desc *x = &call->in[0];
    lks_status st = lksi_want(call, 0, what, LKSI_F32, 2, 2);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "the labels", lksi_desc_make(LKSI_I32, 1, x->dim[0]));
    if (st != LKS_OK)
        return st;
    *loss = lksi_desc_make(LKSI_F32, 1, x->dim[0]);
    LKSI_SET_DIMS(call, softmax_dims, {.n = (U32)x->dim[0], .f = (U32)x->dim[1]});
    return LKS_OK;
}

static lks_status infer(struct lksi_call *call)
{
    struct lksi_desc loss;
    lks_status st = rows(call, "the logits", &loss);
    if (st != LKS_OK)
        return st;
    call->out[0] = loss;
    call->out[1] = call->in[0];
    call->out[2] = loss;
    return LKS_OK;
}

static lks_status infer_grad(struct lksi_call *call)
{
    struct lksi_desc loss;
    lks_status st = rows(call, "prob", &loss);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 2, "dloss", loss);
    if (st == LKS_OK)
        call->out[0] = call->in[0];
    return st;
}

static U64 items(const struct lksi_call *call)
{
    return (U64)call->in[0].dim[0];
}

static lks_status grad(const struct lksi_backward *g)
{
    const lksi_value *dout = g->dout;
    if (dout[1] != LKSI_NONE || dout[2] != LKSI_NONE)
        return lksi_fail(LKS_E_ARGUMENT, "softmax_cross_entropy: only the loss has a gradient, "
                                         "not the probabilities or the hits");
    if (dout[0] == LKSI_NONE)
        return LKS_OK;
    return lksi_flow(g, 0, "softmax_cross_entropy_grad", NULL, g->out[1], g->in[1], dout[0]);
}

/* ---- schedule `gpu` ---- */

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    struct lksi_launch *l = &r->launch[0];
    (void)dev;
    r->n_launch = 1;
    l->source = "op/softmax_cross_entropy_gpu.cl";
    l->kernel = "rows";
    for (int i = 0; i < 2; i++)
        l->arg[l->n_arg++] = LKSI_IN(i);
    for (int i = 0; i < 3; i++)
        l->arg[l->n_arg++] = LKSI_OUT(i);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->dims = 1;
    l->global[0] = (size_t)call->in[0].dim[0] * 32;
    l->local[0] = 32;
}

static const struct lksi_schedule schedules[] = {{"gpu", lksi_lanes_declines, recipe},
                                                 {NULL, NULL, NULL}};

/* An exp counts as 16, a log as 24: the operations of their contracts, roughly. */
static double flops(const struct lksi_call *call)
{
    return (double)lksi_desc_count(&call->in[0]) * 20.0 + (double)call->in[0].dim[0] * 24.0;
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const int64_t cases[][2] = {{1, 1},    {2, 2},    {3, 10},    {64, 10},    {5, 31},
                                       {4, 32},   {7, 33},   {17, 100},  {2, 1000},   {3, 4095},
                                       {2, 4096}, {2, 4097}, {1, 12289}, {128, 1000}, {300, 20011}};
    (void)attr;
    if (index >= (int)LKSI_COUNT(cases) - (long_run ? 0 : 2))
        return false;
    call->n_in = 2;
    call->in[0] = lksi_desc_make(LKSI_F32, 2, cases[index][0], cases[index][1]);
    call->in[1] = lksi_desc_make(LKSI_I32, 1, cases[index][0]);
    return true;
}

static bool test_case_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    if (!test_case(index, long_run, call, attr))
        return false;
    call->n_in = 3;
    call->in[2] = lksi_desc_make(LKSI_F32, 1, call->in[0].dim[0]);
    return true;
}

static const struct lksi_op softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .contract = "contract/softmax_cross_entropy.h",
    .dims = "softmax_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 3,
    .infer = infer,
    .items = items,
    .item = softmax_cross_entropy_item_c,
    .schedules = schedules,
    .grad = grad,
    .flops = flops,
    .test_case = test_case,
};

static const struct lksi_op softmax_cross_entropy_grad = {
    .name = "softmax_cross_entropy_grad",
    .contract = "contract/softmax_cross_entropy.h",
    .dims = "softmax_dims",
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .infer = infer_grad,
    .item = softmax_cross_entropy_grad_item_c,
    .test_case = test_case_grad,
};

const struct lksi_op *const lksi_ops_softmax_cross_entropy[] = {&softmax_cross_entropy,
                                                                &softmax_cross_entropy_grad, NULL};
