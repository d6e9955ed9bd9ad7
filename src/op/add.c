/*
 * add.c - the sum of two tensors of one shape.
 */
#include <string.h>

#include "contract/add.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(add, in[0], in[1], out[0])

static lks_status infer(struct lksi_call *call)
{
    lks_status st = lksi_want(call, 0, "a", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "b", call->in[0]);
    if (st != LKS_OK)
        return st;
    call->out[0] = call->in[0];
    LKSI_SET_DIMS(call, add_dims, {(U64)lksi_desc_count(&call->in[0])});
    return LKS_OK;
}

static lks_status grad(const struct lksi_backward *g)
{
    for (int k = 0; k < 2; k++)
        g->din[k] = g->need[k] ? g->dout[0] : LKSI_NONE;
    return LKS_OK;
}

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    lksi_flat_recipe(call, dev, "op/add.cl", "add", r);
}

static const struct lksi_schedule schedules[] = {{"flat", lksi_flat_declines, recipe},
                                                 {NULL, NULL, NULL}};

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    (void)attr;
    call->n_in = 2;
    if (!lksi_flat_case(index, long_run, &call->in[0]))
        return false;
    call->in[1] = call->in[0];
    return true;
}

static const struct lksi_op add = {
    .name = "add",
    .contract = "contract/add.h",
    .dims = "add_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .infer = infer,
    .item = add_item_c,
    .schedules = schedules,
    .grad = grad,
    .test_case = test_case,
};

const struct lksi_op *const lksi_ops_add[] = {&add, NULL};
