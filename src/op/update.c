/*
 * update.c - the optimisers that treat each element alone: adam, rmsprop, adagrad, and LAMB's
 * direction. sgd.c and lamb.c have the others.
 */
#include "op/update.h"

#include "contract/adagrad.h"
#include "contract/adam.h"
#include "contract/lamb.h"
#include "contract/rmsprop.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(adam, in[0], in[1], in[2], in[3], in[4], in[5], in[6], out[0], out[1], out[2])
LKSI_ITEM(adagrad, in[0], in[1], in[2], in[3], in[4], in[5], out[0], out[1])
LKSI_ITEM(rmsprop, in[0], in[1], in[2], in[3], in[4], in[5], in[6], out[0], out[1], out[2])
LKSI_ITEM(rmsprop_centered, in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], out[0],
          out[1], out[2], out[3])
LKSI_ITEM(lamb_direction, in[0], in[1], in[2], in[3], in[4], in[5], in[6], out[0], out[1], out[2])

static int64_t blocks(const struct lksi_desc *d)
{
    return (lksi_desc_count(d) + LKS_UPDATE_BLOCK - 1) / LKS_UPDATE_BLOCK;
}

lks_status lksi_update_want_numbers(const struct lksi_call *call, int first)
{
    const struct lksi_desc *hyper = &call->in[first];
    char shape[96];
    lks_status st = lksi_want(call, first, "hyper", LKSI_F32, 2, 2);
    if (st == LKS_OK && hyper->dim[1] != LKS_UPDATE_HYPER)
        st = lksi_fail(LKS_E_ARGUMENT, "%s: hyper is %s, [rows,16] wanted", call->op->name,
                       lksi_desc_text(hyper, shape));
    if (st == LKS_OK)
        st = lksi_want_desc(call, first + 1, "the flag", lksi_desc_make(LKSI_I32, 1, (int64_t)1));
    if (st == LKS_OK)
        st = lksi_want_desc(call, first + 2, "the rows of blocks",
                            lksi_desc_make(LKSI_I32, 1, blocks(&call->in[0])));
    return st;
}

lks_status lksi_update_infer(struct lksi_call *call, int states)
{
    lks_status st = lksi_want(call, 0, "the parameters", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "the gradient", call->in[0]);
    for (int s = 0; s < states && st == LKS_OK; s++)
        st = lksi_want_desc(call, 2 + s, s == 0 ? "the first state" : "a state", call->in[0]);
    if (st == LKS_OK)
        st = lksi_update_want_numbers(call, 2 + states);
    if (st != LKS_OK)
        return st;
    for (int j = 0; j <= states; j++)
        call->out[j] = call->in[0];
    LKSI_SET_DIMS(call, update_dims, {(U64)lksi_desc_count(&call->in[0])});
    return LKS_OK;
}

bool lksi_update_case(int index, bool long_run, struct lksi_call *call, int states)
{
    if (!lksi_flat_case(index, long_run, &call->in[0]))
        return false;
    call->n_in = 5 + states;
    for (int k = 1; k < 2 + states; k++)
        call->in[k] = call->in[0];
    call->in[2 + states] = lksi_desc_make(LKSI_F32, 2, (int64_t)(1 + index % 3), (int64_t)16);
    call->in[3 + states] = lksi_desc_make(LKSI_I32, 1, (int64_t)1);
    call->in[4 + states] = lksi_desc_make(LKSI_I32, 1, blocks(&call->in[0]));
    return true;
}

/* Hyper lies in (0, 1.25), so that a fifth of the rows rest; the flag is raised in a quarter of the
 * draws; mean squares, the first state of some and the second of others, are not negative. */
uint32_t lksi_update_input(const struct lksi_call *call, int index, uint32_t bits, int states)
{
    if (index == 2 + states)
        return lks_bits(((F32)(bits >> 8) + 1.0f) * 0x1.4p-24f);
    if (index == 3 + states)
        return bits % 4u == 3u;
    if (index == 4 + states)
        return bits % (uint32_t)call->in[2 + states].dim[0];
    return index >= 2 ? bits & 0x7fffffffu : bits;
}

/* ---- descriptors ---- */

#define UPDATE(NAME, CONTRACT, STATES, FLOPS, ...)                                                 \
    static lks_status NAME##_infer(struct lksi_call *call)                                         \
    {                                                                                              \
        return lksi_update_infer(call, STATES);                                                    \
    }                                                                                              \
    static void NAME##_recipe(const struct lksi_call *call, const struct lksi_limits *dev,         \
                              struct lksi_recipe *r)                                               \
    {                                                                                              \
        lksi_flat_recipe(call, dev, "op/" #NAME ".cl", "update", r);                               \
    }                                                                                              \
    static const struct lksi_schedule NAME##_schedules[] = {                                       \
        {"flat", lksi_flat_declines, NAME##_recipe}, {NULL, NULL, NULL}};                          \
    static double NAME##_flops(const struct lksi_call *call)                                       \
    {                                                                                              \
        return FLOPS * (double)lksi_desc_count(&call->in[0]);                                      \
    }                                                                                              \
    static bool NAME##_case(int index, bool long_run, struct lksi_call *call, void *attr)          \
    {                                                                                              \
        (void)attr;                                                                                \
        return lksi_update_case(index, long_run, call, STATES);                                    \
    }                                                                                              \
    static uint32_t NAME##_input(const struct lksi_call *call, int index, uint32_t bits)           \
    {                                                                                              \
        return lksi_update_input(call, index, bits, STATES);                                       \
    }                                                                                              \
    static const struct lksi_op NAME = {                                                           \
        .name = #NAME,                                                                             \
        .contract = "contract/" CONTRACT ".h",                                                     \
        .dims = "update_dims",                                                                     \
        .min_in = 5 + STATES,                                                                      \
        .max_in = 5 + STATES,                                                                      \
        .n_out = 1 + STATES,                                                                       \
        .alias = {__VA_ARGS__},                                                                    \
        .infer = NAME##_infer,                                                                     \
        .item = NAME##_item_c,                                                                     \
        .schedules = NAME##_schedules,                                                             \
        .flops = NAME##_flops,                                                                     \
        .test_case = NAME##_case,                                                                  \
        .test_input = NAME##_input,                                                                \
    };

UPDATE(adam, "adam", 2, 14.0, 1, 3, 4)
UPDATE(adagrad, "adagrad", 1, 9.0, 1, 3)
UPDATE(rmsprop, "rmsprop", 2, 13.0, 1, 3, 4)
UPDATE(rmsprop_centered, "rmsprop", 3, 18.0, 1, 3, 4, 5)
UPDATE(lamb_direction, "lamb", 2, 14.0, 0, 3, 4)

const struct lksi_op *const lksi_ops_update[] = {&adam,     &rmsprop,        &rmsprop_centered,
                                                 &adagrad, &lamb_direction, NULL};
