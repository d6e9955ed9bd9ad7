/*
 * spread.c - spread: numbers repeated over the shape of another value, whatever its batch.
 */
#include <string.h>

#include "contract/spread.h"
#include "op/attr.h"
#include "op/shape.h"

LKSI_ITEM(spread, in[0], in[1], out[0])

static lks_status infer(struct lksi_call *call)
{
    const struct lksi_desc *v = &call->in[0], *like = &call->in[1];
    char text[96];
    int64_t tail = 1;
    lks_status st = lksi_want(call, 0, "v", LKSI_F32, 1, 1);
    if (st == LKS_OK)
        st = lksi_want(call, 1, "like", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st != LKS_OK)
        return st;
    for (int k = like->rank; k-- > 1 && tail < v->dim[0];)
        tail *= like->dim[k];
    if (v->dim[0] != 1 && v->dim[0] != tail)
        return lksi_fail(LKS_E_ARGUMENT, "spread: %lld numbers are no last dimensions of %s",
                         (long long)v->dim[0], lksi_desc_text(like, text));
    call->out[0] = *like;
    LKSI_SET_DIMS(call, spread_dims, {(U64)v->dim[0]});
    return LKS_OK;
}

/* bias_grad of dy as [N, rest, 1, c]. */
static lks_status grad(const struct lksi_backward *g)
{
    const struct lksi_desc *like = &g->call->in[1];
    int64_t c = g->call->in[0].dim[0];
    struct lksi_reshape_attr a = {4, {-1, lksi_desc_count(like) / like->dim[0] / c, 1, c}};
    lksi_value dy;
    lks_status st;
    if (!g->need[0])
        return LKS_OK;
    st = lksi_apply(g->b, "reshape", &a, &dy, g->dout[0]);
    return st == LKS_OK ? lksi_flow(g, 0, "bias_grad", NULL, dy) : st;
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const struct {
        int64_t c;
        int rank;
        int64_t dim[4];
    } cases[] = {
        {1, 1, {1}},          {1, 1, {17}},          {1, 2, {9, 1}},        {5, 2, {3, 5}},
        {33, 2, {64, 33}},    {1, 4, {3, 5, 4, 2}},  {7, 4, {2, 6, 5, 7}},  {35, 3, {4, 5, 7}},
        {31, 4, {9, 8, 8, 31}},
    };
    (void)attr;
    (void)long_run;
    if (index >= (int)LKSI_COUNT(cases))
        return false;
    call->n_in = 2;
    call->in[0] = lksi_desc_make(LKSI_F32, 1, cases[index].c);
    call->in[1] = (struct lksi_desc){.dtype = LKSI_F32, .rank = cases[index].rank};
    memcpy(call->in[1].dim, cases[index].dim, sizeof cases[index].dim);
    return true;
}

static const struct lksi_op spread = {
    .name = "spread",
    .contract = "contract/spread.h",
    .dims = "spread_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .infer = infer,
    .item = spread_item_c,
    .grad = grad,
    .test_case = test_case,
};

const struct lksi_op *const lksi_ops_spread[] = {&spread, NULL};
