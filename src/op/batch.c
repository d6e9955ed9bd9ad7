/*
 * batch.c - sums over a batch of numbers: batch_sum, batch_mean and its gradient.
 */
#include <string.h>

#include "contract/batch.h"
#include "op/attr.h"
#include "op/shape.h"

LKSI_ITEM(batch_sum, in[0], out[0])
LKSI_ITEM(batch_mean, in[0], out[0])
LKSI_ITEM(batch_mean_grad, in[0], out[0])

static lks_status infer(struct lksi_call *call)
{
    lks_status st = lksi_want_leaf(call);
    if (st == LKS_OK)
        st = lksi_want(call, 0, "v", LKSI_F32, 1, 1);
    if (st != LKS_OK)
        return st;
    call->out[0] = lksi_desc_make(LKSI_F32, 1, (int64_t)1);
    LKSI_SET_DIMS(call, batch_dims,
                  {.n = (U32)call->in[0].dim[0],
                   .leaf = call->leaf,
                   .scale = (F32)(1.0 / (double)call->in[0].dim[0])});
    return LKS_OK;
}

static lks_status infer_grad(struct lksi_call *call)
{
    const struct lksi_batch_mean_grad_attr *a = call->attr;
    lks_status st = lksi_want_desc(call, 0, "dout", lksi_desc_make(LKSI_F32, 1, (int64_t)1));
    if (st != LKS_OK)
        return st;
    if (a->n < 1 || a->n > INT32_MAX)
        return lksi_fail(LKS_E_ARGUMENT, "batch_mean_grad: %lld samples, 1 to 2^31 - 1 wanted",
                         (long long)a->n);
    call->out[0] = lksi_desc_make(LKSI_F32, 1, a->n);
    LKSI_SET_DIMS(call, batch_dims, {.n = (U32)a->n, .scale = (F32)(1.0 / (double)a->n)});
    return LKS_OK;
}

static lks_status grad(struct lksi_builder *b, const struct lksi_call *call, const lksi_value *in,
                       const lksi_value *out, const lksi_value *dout, const bool *need,
                       lksi_value *din)
{
    struct lksi_batch_mean_grad_attr a = {call->in[0].dim[0]};
    (void)in;
    (void)out;
    (void)need;
    return b->apply(b, "batch_mean_grad", &a, 1, &dout[0], &din[0]);
}

static double flops(const struct lksi_call *call)
{
    return (double)call->in[0].dim[0];
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const struct {
        uint32_t leaf;
        int64_t n;
    } cases[] = {{8, 1},       {8, 2},    {8, 7},    {8, 8},     {8, 9},     {1, 13},
                 {2, 64},      {8, 64},   {8, 65},   {16, 100},  {64, 1000}, {8, 509},
                 {2048, 5000}, {1, 2048}, {1, 2049}, {8, 100003}};
    (void)attr;
    if (index >= (int)LKSI_COUNT(cases) - (long_run ? 0 : 1))
        return false;
    call->leaf = cases[index].leaf;
    call->n_in = 1;
    call->in[0] = lksi_desc_make(LKSI_F32, 1, cases[index].n);
    return true;
}

static bool test_case_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const int64_t n[] = {1, 3, 16, 17, 64, 1000};
    struct lksi_batch_mean_grad_attr *a = attr;
    (void)long_run;
    if (index >= (int)LKSI_COUNT(n))
        return false;
    a->n = n[index];
    call->n_in = 1;
    call->in[0] = lksi_desc_make(LKSI_F32, 1, (int64_t)1);
    return true;
}

static const struct lksi_op batch_sum = {
    .name = "batch_sum",
    .contract = "contract/batch.h",
    .dims = "batch_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .infer = infer,
    .item = batch_sum_item_c,
    .flops = flops,
    .test_case = test_case,
};

static const struct lksi_op batch_mean = {
    .name = "batch_mean",
    .contract = "contract/batch.h",
    .dims = "batch_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .infer = infer,
    .item = batch_mean_item_c,
    .grad = grad,
    .flops = flops,
    .test_case = test_case,
};

static const struct lksi_op batch_mean_grad = {
    .name = "batch_mean_grad",
    .contract = "contract/batch.h",
    .dims = "batch_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_batch_mean_grad_attr),
    .infer = infer_grad,
    .item = batch_mean_grad_item_c,
    .test_case = test_case_grad,
};

const struct lksi_op *const lksi_ops_batch[] = {&batch_sum, &batch_mean, &batch_mean_grad, NULL};
