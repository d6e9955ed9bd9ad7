/*
 * record.c - operator `record`: a[1], b[1], step I32[2 or more], ring[2 slots] -> ring, in place.
 */
#include <string.h>

#include "contract/record.h"
#include "op/op.h"

static lks_status infer(struct lksi_call *call)
{
    struct record_dims d;
    int64_t n = lksi_desc_count(&call->in[3]);
    if (lksi_desc_count(&call->in[0]) != 1 || lksi_desc_count(&call->in[1]) != 1 ||
        call->in[2].dtype != LKSI_I32 || lksi_desc_count(&call->in[2]) < 2 || n < 2 ||
        n % 2 != 0 || n / 2 > UINT32_MAX)
        return lksi_fail(LKS_E_ARGUMENT,
                         "record: expected two numbers, the words of a step (2 or more) and a ring");
    d.slots = (U32)(n / 2);
    call->out[0] = call->in[3];
    memcpy(call->dims.bytes, &d, sizeof d);
    call->dims_size = sizeof d;
    return LKS_OK;
}

static U64 items(const struct lksi_call *call)
{
    (void)call;
    return 1;
}

LKSI_ITEM(record, in[0], in[1], in[2], in[3], out[0])

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const int64_t slots[] = {1, 2, 7, 64};
    (void)long_run;
    (void)attr;
    if (index >= (int)LKSI_COUNT(slots))
        return false;
    call->leaf = 8;
    call->n_in = 4;
    call->in[0] = call->in[1] = lksi_desc_make(LKSI_F32, 1, (int64_t)1);
    call->in[2] = lksi_desc_make(LKSI_I32, 1, (int64_t)(2 + index));
    call->in[3] = lksi_desc_make(LKSI_F32, 1, 2 * slots[index]);
    return true;
}

static const struct lksi_op record = {
    .name = "record",
    .contract = "contract/record.h",
    .dims = "record_dims",
    .min_in = 4,
    .max_in = 4,
    .n_out = 1,
    .alias = {4},
    .infer = infer,
    .items = items,
    .item = record_item_c,
    .test_case = test_case,
};

extern const struct lksi_op *const lksi_ops_record[];
const struct lksi_op *const lksi_ops_record[] = {&record, NULL};
