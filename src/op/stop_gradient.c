/*
 * stop_gradient.c - the same value, through which no gradient flows; a view, so a plan launches
 * nothing.
 */
#include <string.h>

#include "contract/stop_gradient.h"
#include "op/shape.h"

LKSI_ITEM(stop_gradient, in[0], out[0])

static lks_status infer(struct lksi_call *call)
{
    lks_status st = lksi_want(call, 0, "x", call->in[0].dtype, 1, LKSI_MAX_RANK);
    if (st != LKS_OK)
        return st;
    call->out[0] = call->in[0];
    LKSI_SET_DIMS(call, stop_gradient_dims, {(U64)lksi_desc_count(&call->in[0])});
    return LKS_OK;
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    (void)attr;
    (void)long_run;
    call->n_in = 1;
    call->in[0] = lksi_desc_make(index == 0 ? LKSI_F32 : LKSI_I32, 2, (int64_t)3, (int64_t)17);
    return index < 2;
}

static const struct lksi_op stop_gradient = {
    .name = "stop_gradient",
    .contract = "contract/stop_gradient.h",
    .dims = "stop_gradient_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .view = true,
    .stops_gradient = true,
    .infer = infer,
    .item = stop_gradient_item_c,
    .test_case = test_case,
};

const struct lksi_op *const lksi_ops_stop_gradient[] = {&stop_gradient, NULL};
