/*
 * reduce_max.c - the greatest and the least over axes, with their places, which lead the gradients:
 * reduce_put and reduce_pick are each the other's gradient.
 */
#include <string.h>

#include "contract/reduce_max.h"
#include "op/attr.h"
#include "op/reduce.h"
#include "op/shape.h"

#define MAX_PLACES (1 << 24) /* whole numbers that a float holds */

LKSI_ITEM(reduce_max, in[0], out[0], out[1])
LKSI_ITEM(reduce_min, in[0], out[0], out[1])
LKSI_ITEM(reduce_put, in[0], in[1], in[2], out[0])
LKSI_ITEM(reduce_pick, in[0], in[1], out[0])

/* ---- shapes ---- */

/* `x` is the larger tensor. */
static lks_status fill_dims(struct lksi_call *call, const struct lksi_desc *x)
{
    const struct lksi_reduce_attr *a = call->attr;
    int64_t places = 1;
    lks_status st = lksi_reduce_dims(call, x);
    if (st != LKS_OK)
        return st;
    if ((a->axes & 1u) != 0)
        return lksi_fail(LKS_E_ARGUMENT, "%s: axis 0, the samples, cannot be reduced",
                         call->op->name);
    for (int k = 0; k < x->rank; k++)
        places *= (a->axes >> k & 1u) != 0 ? x->dim[k] : 1;
    return places <= MAX_PLACES ? LKS_OK
                                : lksi_fail(LKS_E_ARGUMENT, "%s: over %lld elements, at most %d "
                                            "wanted", call->op->name, (long long)places,
                                            MAX_PLACES);
}

static struct lksi_desc small(const struct lksi_call *call, const struct lksi_desc *x)
{
    const struct lksi_reduce_attr *a = call->attr;
    return lksi_reduced(x, a->axes, a->keep != 0);
}

static lks_status infer(struct lksi_call *call)
{
    lks_status st = lksi_want(call, 0, "x", LKSI_F32, 2, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = fill_dims(call, &call->in[0]);
    if (st == LKS_OK)
        call->out[0] = call->out[1] = small(call, &call->in[0]);
    return st;
}

static lks_status infer_put(struct lksi_call *call)
{
    lks_status st = lksi_want(call, 2, "like", LKSI_F32, 2, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = fill_dims(call, &call->in[2]);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 0, "dy", small(call, &call->in[2]));
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "at", call->in[0]);
    if (st == LKS_OK)
        call->out[0] = call->in[2];
    return st;
}

static lks_status infer_pick(struct lksi_call *call)
{
    lks_status st = lksi_want(call, 0, "v", LKSI_F32, 2, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = fill_dims(call, &call->in[0]);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "at", small(call, &call->in[0]));
    if (st == LKS_OK)
        call->out[0] = call->in[1];
    return st;
}

/* ---- gradients ---- */

static lks_status grad(const struct lksi_backward *g)
{
    if (g->dout[0] == LKSI_NONE)
        return LKS_OK;
    return lksi_flow(g, 0, "reduce_put", g->call->attr, g->dout[0], g->out[1], g->in[0]);
}

static lks_status grad_put(const struct lksi_backward *g)
{
    return lksi_flow(g, 0, "reduce_pick", g->call->attr, g->dout[0], g->in[1]);
}

static lks_status grad_pick(const struct lksi_backward *g)
{
    return lksi_flow(g, 0, "reduce_put", g->call->attr, g->dout[0], g->in[1], g->in[0]);
}

static double flops(const struct lksi_call *call)
{
    return (double)lksi_desc_count(&call->in[0]);
}

/* ---- tests ---- */

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const struct {
        unsigned axes;
        int rank;
        int64_t dim[5];
    } cases[] = {
        {2, 2, {1, 1}},       {2, 2, {5, 17}},     {2, 2, {7, 4097}},   {2, 3, {3, 33, 17}},
        {6, 3, {3, 9, 11}},   {4, 3, {3, 40, 31}}, {6, 4, {2, 7, 8, 16}},
        {10, 4, {2, 3, 5, 35}}, {18, 5, {2, 3, 4, 5, 6}}, {4, 4, {3, 2, 37, 1}},
        {14, 4, {2, 64, 63, 5}},
    };
    struct lksi_reduce_attr *a = attr;
    if (index >= (int)LKSI_COUNT(cases) - (long_run ? 0 : 1))
        return false;
    a->axes = cases[index].axes;
    a->keep = index % 2;
    call->n_in = 1;
    call->in[0] = (struct lksi_desc){.dtype = LKSI_F32, .rank = cases[index].rank};
    memcpy(call->in[0].dim, cases[index].dim, sizeof cases[index].dim);
    return true;
}

static bool test_case_put(int index, bool long_run, struct lksi_call *call, void *attr)
{
    const struct lksi_reduce_attr *a = attr;
    if (!test_case(index, long_run, call, attr))
        return false;
    call->n_in = 3;
    call->in[2] = call->in[0];
    call->in[0] = call->in[1] = lksi_reduced(&call->in[2], a->axes, a->keep != 0);
    return true;
}

static bool test_case_pick(int index, bool long_run, struct lksi_call *call, void *attr)
{
    const struct lksi_reduce_attr *a = attr;
    if (!test_case(index, long_run, call, attr))
        return false;
    call->n_in = 2;
    call->in[1] = lksi_reduced(&call->in[0], a->axes, a->keep != 0);
    return true;
}

/* Places are whole numbers below those that there are. */
static uint32_t test_input(const struct lksi_call *call, int index, uint32_t bits)
{
    const struct reduce_dims *d = (const void *)call->dims.bytes;
    return index == 1 ? lks_bits((F32)(bits % d->positions)) : bits;
}

#define OP(NAME, INPUTS, OUTPUTS, INFER, GRAD, CASE, INPUT)                                        \
    static const struct lksi_op NAME = {                                                           \
        .name = #NAME,                                                                             \
        .contract = "contract/reduce_max.h",                                                       \
        .dims = "reduce_dims",                                                                     \
        .min_in = INPUTS,                                                                          \
        .max_in = INPUTS,                                                                          \
        .n_out = OUTPUTS,                                                                          \
        .attr_size = sizeof(struct lksi_reduce_attr),                                              \
        .infer = INFER,                                                                            \
        .item = NAME##_item_c,                                                                     \
        .grad = GRAD,                                                                              \
        .flops = flops,                                                                            \
        .test_case = CASE,                                                                         \
        .test_input = INPUT,                                                                       \
    }

OP(reduce_max, 1, 2, infer, grad, test_case, NULL);
OP(reduce_min, 1, 2, infer, grad, test_case, NULL);
OP(reduce_put, 3, 1, infer_put, grad_put, test_case_put, test_input);
OP(reduce_pick, 2, 1, infer_pick, grad_pick, test_case_pick, test_input);

const struct lksi_op *const lksi_ops_reduce_max[] = {&reduce_max, &reduce_min, &reduce_put,
                                                     &reduce_pick, NULL};
