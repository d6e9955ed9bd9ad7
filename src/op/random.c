/*
 * random.c - random: new uniform or normal numbers in each step.
 */
#include <string.h>

#include "contract/random.h"
#include "op/attr.h"
#include "op/shape.h"

LKSI_ITEM(random, in[0], in[1], out[0])

static lks_status infer(struct lksi_call *call)
{
    const struct lksi_random_attr *a = call->attr;
    struct lksi_desc d = {.dtype = LKSI_F32, .rank = a->rank + 1};
    int64_t left = INT32_MAX;
    lks_status st = lksi_want(call, 1, "the step", LKSI_I32, 1, 1);
    if (st != LKS_OK)
        return st;
    if (call->in[1].dim[0] < 5 || call->in[0].rank < 1)
        return lksi_fail(LKS_E_ARGUMENT, "random: a batched value and a step of 5 words wanted");
    if (a->rank < 1 || a->rank > LKSI_MAX_RANK - 1)
        return lksi_fail(LKS_E_ARGUMENT, "random: a shape of %d dimensions, 1 to %d wanted",
                         a->rank, LKSI_MAX_RANK - 1);
    d.dim[0] = call->in[0].dim[0];
    for (int i = 0; i < a->rank; i++) {
        if (a->dim[i] < 1 || a->dim[i] > left)
            return lksi_fail(LKS_E_ARGUMENT, "random: dimension %d is %lld; every one must be 1 or "
                                             "more, and a sample less than 2^31 numbers",
                             i, (long long)a->dim[i]);
        left /= a->dim[i];
        d.dim[i + 1] = a->dim[i];
    }
    call->out[0] = d;
    LKSI_SET_DIMS(call, random_dims,
                  {.f = (U64)(lksi_desc_count(&d) / d.dim[0]),
                   .stream = a->stream,
                   .normal = a->normal != 0});
    return LKS_OK;
}

static double flops(const struct lksi_call *call)
{
    return (double)lksi_desc_count(&call->out[0]) * 100.0;
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const int64_t cases[][2] = {{1, 1}, {2, 3}, {5, 16}, {7, 33}, {64, 100}};
    struct lksi_random_attr *a = attr;
    (void)long_run;
    if (index >= 2 * (int)LKSI_COUNT(cases))
        return false;
    *a = (struct lksi_random_attr){.stream = 0x12345678u + (uint32_t)index, .normal = index % 2,
                                   .rank = 2, .dim = {1, cases[index / 2][1]}};
    call->n_in = 2;
    call->in[0] = lksi_desc_make(LKSI_F32, 2, cases[index / 2][0], (int64_t)4);
    call->in[1] = lksi_desc_make(LKSI_I32, 1, (int64_t)5);
    return true;
}

static const struct lksi_op random_op = {
    .name = "random",
    .contract = "contract/random.h",
    .dims = "random_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .stops_gradient = true,
    .attr_size = sizeof(struct lksi_random_attr),
    .infer = infer,
    .item = random_item_c,
    .flops = flops,
    .test_case = test_case,
};

const struct lksi_op *const lksi_ops_random[] = {&random_op, NULL};
