/*
 * relu.c - relu and relu_grad.
 */
#include <string.h>

#include "contract/relu.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(relu, in[0], out[0])
LKSI_ITEM(relu_grad, in[0], in[1], out[0])

static lks_status infer(struct lksi_call *call)
{
    lks_status st = lksi_want(call, 0, "x", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st != LKS_OK)
        return st;
    call->out[0] = call->in[0];
    LKSI_SET_DIMS(call, relu_dims, {(U64)lksi_desc_count(&call->in[0])});
    return LKS_OK;
}

static lks_status infer_grad(struct lksi_call *call)
{
    lks_status st = lksi_want(call, 0, "y", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "dy", call->in[0]);
    if (st != LKS_OK)
        return st;
    call->out[0] = call->in[0];
    LKSI_SET_DIMS(call, relu_dims, {(U64)lksi_desc_count(&call->in[0])});
    return LKS_OK;
}

static lks_status grad(const struct lksi_backward *g)
{
    return lksi_flow(g, 0, "relu_grad", NULL, g->out[0], g->dout[0]);
}

/* Nothing flows to y: a step has slope 0. */
static lks_status grad_grad(const struct lksi_backward *g)
{
    return lksi_flow(g, 1, "relu_grad", NULL, g->in[0], g->dout[0]);
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    (void)attr;
    call->n_in = 1;
    return lksi_flat_case(index, long_run, &call->in[0]);
}

static bool test_case_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    (void)attr;
    call->n_in = 2;
    if (!lksi_flat_case(index, long_run, &call->in[0]))
        return false;
    call->in[1] = call->in[0];
    return true;
}

/* ---- schedules ---- */

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    lksi_flat_recipe(call, dev, "op/relu.cl", "relu", r);
}

static void recipe_grad(const struct lksi_call *call, const struct lksi_limits *dev,
                        struct lksi_recipe *r)
{
    lksi_flat_recipe(call, dev, "op/relu.cl", "relu_grad", r);
}

static const struct lksi_schedule schedules[] = {{"flat", lksi_flat_declines, recipe},
                                                 {NULL, NULL, NULL}};

static const struct lksi_schedule schedules_grad[] = {{"flat", lksi_flat_declines, recipe_grad},
                                                      {NULL, NULL, NULL}};

static const struct lksi_op relu = {
    .name = "relu",
    .contract = "contract/relu.h",
    .dims = "relu_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .infer = infer,
    .item = relu_item_c,
    .schedules = schedules,
    .grad = grad,
    .test_case = test_case,
};

static const struct lksi_op relu_grad = {
    .name = "relu_grad",
    .contract = "contract/relu.h",
    .dims = "relu_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .infer = infer_grad,
    .item = relu_grad_item_c,
    .schedules = schedules_grad,
    .grad = grad_grad,
    .test_case = test_case_grad,
};

const struct lksi_op *const lksi_ops_relu[] = {&relu, &relu_grad, NULL};
