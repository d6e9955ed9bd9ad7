/*
 * bias_grad.c - the gradient of a bias: a sum over the batch and the positions.
 */
#include <string.h>

#include "contract/bias_grad.h"
#include "op/shape.h"

LKSI_ITEM(bias_grad, in[0], out[0])

static lks_status infer(struct lksi_call *call)
{
    const struct lksi_desc *dy = &call->in[0];
    char text[96];
    lks_status st = lksi_want_leaf(call);
    if (st == LKS_OK)
        st = lksi_want(call, 0, "dy", LKSI_F32, 2, 4);
    if (st != LKS_OK)
        return st;
    if (dy->rank == 3)
        return lksi_fail(LKS_E_ARGUMENT, "bias_grad: dy is %s, [N,K] or [N,H,W,K] wanted",
                         lksi_desc_text(dy, text));
    call->out[0] = lksi_desc_make(LKSI_F32, 1, dy->dim[dy->rank - 1]);
    LKSI_SET_DIMS(call, bias_grad_dims,
                  {.n = (U32)dy->dim[0],
                   .h = dy->rank == 4 ? (U32)dy->dim[1] : 1u,
                   .w = dy->rank == 4 ? (U32)dy->dim[2] : 1u,
                   .k = (U32)dy->dim[dy->rank - 1],
                   .leaf = call->leaf});
    return LKS_OK;
}

static double flops(const struct lksi_call *call)
{
    return (double)lksi_desc_count(&call->in[0]);
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const struct {
        uint32_t leaf;
        int64_t n, h, w, k;
    } cases[] = {
        {8, 1, 0, 0, 1},      {1, 5, 0, 0, 17},    {2, 7, 0, 0, 16},    {8, 64, 0, 0, 10},
        {8, 65, 0, 0, 33},    {64, 130, 0, 0, 3},  {8, 9, 0, 0, 512},   {8, 3, 1, 1, 5},
        {8, 17, 7, 7, 48},    {1, 3, 32, 32, 16},  {2, 3, 33, 31, 15},  {8, 3, 32, 33, 64},
        {8, 2, 45, 46, 65},   {8, 2, 1, 1025, 3},  {2, 2, 3, 1500, 8},  {8, 11, 11, 13, 31},
        {4, 1, 100, 21, 100}, {8, 64, 56, 56, 64}, {8, 63, 28, 28, 37},
    };
    (void)attr;
    if (index >= (int)LKSI_COUNT(cases) - (long_run ? 0 : 2))
        return false;
    call->leaf = cases[index].leaf;
    call->n_in = 1;
    call->in[0] = cases[index].h == 0 ? lksi_desc_make(LKSI_F32, 2, cases[index].n, cases[index].k)
                                      : lksi_desc_make(LKSI_F32, 4, cases[index].n, cases[index].h,
                                                       cases[index].w, cases[index].k);
    return true;
}

static const struct lksi_op bias_grad = {
    .name = "bias_grad",
    .contract = "contract/bias_grad.h",
    .dims = "bias_grad_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .infer = infer,
    .item = bias_grad_item_c,
    .flops = flops,
    .test_case = test_case,
};

const struct lksi_op *const lksi_ops_bias_grad[] = {&bias_grad, NULL};
