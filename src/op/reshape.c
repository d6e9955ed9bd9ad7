/*
 * reshape.c - another shape over the same elements; a view, so a plan launches nothing.
 */
#include <string.h>

#include "contract/reshape.h"
#include "op/attr.h"
#include "op/shape.h"

LKSI_ITEM(reshape, in[0], out[0])

static lks_status infer(struct lksi_call *call)
{
    const struct lksi_reshape_attr *a = call->attr;
    const struct lksi_desc *x = &call->in[0];
    struct lksi_desc y = {.dtype = x->dtype, .rank = a->rank};
    char from[96], to[96];
    int64_t n, known = 1;
    int open = -1;
    lks_status st = lksi_want(call, 0, "x", x->dtype, 1, LKSI_MAX_RANK);
    if (st != LKS_OK)
        return st;
    n = lksi_desc_count(x);
    if (a->rank < 1 || a->rank > LKSI_MAX_RANK)
        return lksi_fail(LKS_E_ARGUMENT, "reshape: rank %d, 1 to %d wanted", a->rank,
                         LKSI_MAX_RANK);
    for (int i = 0; i < a->rank; i++) {
        y.dim[i] = a->dim[i];
        if (a->dim[i] == -1 && open < 0) {
            open = i;
            continue;
        }
        if (a->dim[i] < 1 || a->dim[i] > n)
            return lksi_fail(LKS_E_ARGUMENT,
                             "reshape: dimension %d of %s is impossible for %s (one may be -1)", i,
                             lksi_desc_text(&y, to), lksi_desc_text(x, from));
        known = known <= n / a->dim[i] ? known * a->dim[i] : n + 1; /* n + 1: too many */
    }
    if (open >= 0)
        y.dim[open] = known <= n && n % known == 0 ? n / known : 0;
    if (open >= 0 ? y.dim[open] == 0 : known != n) {
        if (open >= 0)
            y.dim[open] = -1;
        return lksi_fail(LKS_E_ARGUMENT,
                         "reshape: %s has %lld elements, which do not fit the shape %s",
                         lksi_desc_text(x, from), (long long)n, lksi_desc_text(&y, to));
    }
    call->out[0] = y;
    LKSI_SET_DIMS(call, reshape_dims, {(U64)n});
    return LKS_OK;
}

static lks_status grad(const struct lksi_backward *g)
{
    struct lksi_reshape_attr back = {.rank = g->call->in[0].rank};
    memcpy(back.dim, g->call->in[0].dim, sizeof back.dim);
    back.dim[0] = -1; /* so that it serves another batch */
    return lksi_flow(g, 0, "reshape", &back, g->dout[0]);
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_reshape_attr *a = attr;
    (void)long_run;
    call->n_in = 1;
    call->in[0] = lksi_desc_make(LKSI_F32, 4, (int64_t)2, (int64_t)3, (int64_t)5, (int64_t)7);
    if (index == 0)
        *a = (struct lksi_reshape_attr){2, {2, -1}};
    else if (index == 1)
        *a = (struct lksi_reshape_attr){3, {-1, 7, 6}};
    else if (index == 2)
        *a = (struct lksi_reshape_attr){1, {210}};
    else
        return false;
    return true;
}

static const struct lksi_op reshape = {
    .name = "reshape",
    .contract = "contract/reshape.h",
    .dims = "reshape_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_reshape_attr),
    .view = true,
    .infer = infer,
    .item = reshape_item_c,
    .grad = grad,
    .test_case = test_case,
};

const struct lksi_op *const lksi_ops_reshape[] = {&reshape, NULL};
