/*
 * lamb.c - lamb_apply: the last of LAMB's operators; update.c has the first, segment_norm.c the one
 * between.
 */
#include <stdio.h>

#include "contract/lamb.h"
#include "op/flat.h"
#include "op/shape.h"
#include "op/update.h"

LKSI_ITEM(lamb_apply, in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], out[0])

static lks_status infer(struct lksi_call *call)
{
    lks_status st = lksi_want(call, 0, "the parameters", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "the direction", call->in[0]);
    if (st == LKS_OK)
        st = lksi_want(call, 2, "the parameters' norms", LKSI_F32, 1, 1);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 3, "the directions' norms", call->in[2]);
    if (st == LKS_OK)
        st = lksi_update_want_numbers(call, 4);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 7, "the tensors of blocks", call->in[6]);
    if (st != LKS_OK)
        return st;
    call->out[0] = call->in[0];
    LKSI_SET_DIMS(call, update_dims, {(U64)lksi_desc_count(&call->in[0])});
    return LKS_OK;
}

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    lksi_flat_recipe(call, dev, "op/lamb_apply.cl", "lamb_apply", r);
}

static const struct lksi_schedule schedules[] = {{"flat", lksi_flat_declines, recipe},
                                                 {NULL, NULL, NULL}};

static double flops(const struct lksi_call *call)
{
    return 2.0 * (double)lksi_desc_count(&call->in[0]);
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    (void)attr;
    if (!lksi_update_case(index, long_run, call, 2))
        return false;
    call->n_in = 8;
    call->in[7] = call->in[6];
    call->in[2] = call->in[3] = lksi_desc_make(LKSI_F32, 1, (int64_t)(1 + index % 5));
    return true;
}

static uint32_t test_input(const struct lksi_call *call, int index, uint32_t bits)
{
    return index == 7 ? bits % (uint32_t)call->in[2].dim[0]
                      : lksi_update_input(call, index, bits, 2);
}

static const struct lksi_op lamb_apply = {
    .name = "lamb_apply",
    .contract = "contract/lamb.h",
    .dims = "update_dims",
    .min_in = 8,
    .max_in = 8,
    .n_out = 1,
    .alias = {1},
    .infer = infer,
    .item = lamb_apply_item_c,
    .schedules = schedules,
    .flops = flops,
    .test_case = test_case,
    .test_input = test_input,
};

const struct lksi_op *const lksi_ops_lamb[] = {&lamb_apply, NULL};
