/*
 * guard.c - raises the step's flag if a gradient or the loss is not finite.
 */
#include <string.h>

#include "contract/guard.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(guard, in[0], in[1], in[2], in[3], out[0])

static lks_status infer(struct lksi_call *call)
{
    struct lksi_desc one = lksi_desc_make(LKSI_I32, 1, (int64_t)1);
    lks_status st = lksi_want(call, 0, "the gradient", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "the loss", lksi_desc_make(LKSI_F32, 1, (int64_t)1));
    if (st == LKS_OK)
        st = lksi_want(call, 2, "the step", LKSI_I32, 1, 1); /* more may stand behind it */
    if (st == LKS_OK)
        st = lksi_want_desc(call, 3, "the flag", one);
    if (st != LKS_OK)
        return st;
    call->out[0] = one;
    LKSI_SET_DIMS(call, guard_dims, {(U64)lksi_desc_count(&call->in[0])});
    return LKS_OK;
}

static double flops(const struct lksi_call *call)
{
    return (double)lksi_desc_count(&call->in[0]);
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    (void)attr;
    if (!lksi_flat_case(index, long_run, &call->in[0]))
        return false;
    call->n_in = 4;
    call->in[1] = lksi_desc_make(LKSI_F32, 1, (int64_t)1);
    call->in[2] = call->in[3] = lksi_desc_make(LKSI_I32, 1, (int64_t)1);
    return true;
}

/* Now and then a gradient or a loss that is not finite, and a flag that is raised already. */
static uint32_t test_input(const struct lksi_call *call, int index, uint32_t bits)
{
    static const uint32_t bad[] = {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00001u};
    (void)call;
    if (index == 3)
        return bits % 3u == 0u ? 7u : 0u;
    if (index == 0 && bits % 1024u < 4u)
        return bad[bits % 4u];
    return index == 1 && bits % 8u == 0u ? bad[bits / 8u % 4u] : bits;
}

static const struct lksi_op guard = {
    .name = "guard",
    .contract = "contract/guard.h",
    .dims = "guard_dims",
    .min_in = 4,
    .max_in = 4,
    .n_out = 1,
    .alias = {4},
    .infer = infer,
    .item = guard_item_c,
    .flops = flops,
    .test_case = test_case,
    .test_input = test_input,
};

const struct lksi_op *const lksi_ops_guard[] = {&guard, NULL};
