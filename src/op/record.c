/*
 * record.c - operator `record`: ring[slots * width], step I32[2 or more], width numbers -> ring, in
 * place.
 */
#include <string.h>

#include "contract/record.h"
#include "op/shape.h"

LKSI_ITEM(record, in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], out[0])

static lks_status infer(struct lksi_call *call)
{
    int64_t width = call->n_in - 2, n;
    lks_status st = lksi_want(call, 0, "the ring", LKSI_F32, 1, 1);
    if (st == LKS_OK)
        st = lksi_want(call, 1, "the step", LKSI_I32, 1, 1); /* more may stand behind it */
    for (int i = 2; i < call->n_in && st == LKS_OK; i++)
        st = lksi_want_desc(call, i, "a number", lksi_desc_make(LKSI_F32, 1, (int64_t)1));
    if (st != LKS_OK)
        return st;
    n = call->in[0].dim[0];
    if (n % width != 0 || call->in[1].dim[0] < 2)
        return lksi_fail(LKS_E_ARGUMENT,
                         "record: a step of 2 words and a ring of %lld numbers a slot wanted, the "
                         "ring has %lld",
                         (long long)width, (long long)n);
    call->out[0] = call->in[0];
    LKSI_SET_DIMS(call, record_dims, {.slots = (U32)(n / width), .width = (U32)width});
    return LKS_OK;
}

static U64 items(const struct lksi_call *call)
{
    (void)call;
    return 1;
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const int64_t slots[] = {1, 2, 7, 64, 3, 256};
    (void)long_run;
    (void)attr;
    if (index >= (int)LKSI_COUNT(slots))
        return false;
    call->leaf = 8;
    call->n_in = 3 + index;
    call->in[0] = lksi_desc_make(LKSI_F32, 1, slots[index] * (index + 1));
    call->in[1] = lksi_desc_make(LKSI_I32, 1, (int64_t)(2 + index));
    for (int i = 0; i <= index; i++)
        call->in[2 + i] = lksi_desc_make(LKSI_F32, 1, (int64_t)1);
    return true;
}

static const struct lksi_op record = {
    .name = "record",
    .contract = "contract/record.h",
    .dims = "record_dims",
    .min_in = 3,
    .max_in = 8,
    .n_out = 1,
    .alias = {1},
    .infer = infer,
    .items = items,
    .item = record_item_c,
    .test_case = test_case,
};

extern const struct lksi_op *const lksi_ops_record[];
const struct lksi_op *const lksi_ops_record[] = {&record, NULL};
