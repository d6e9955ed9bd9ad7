/*
 * samples.c - samples and samples_grad: neighbouring samples of a batch, as one block of rule 8.
 */
#include <string.h>

#include "contract/samples.h"
#include "op/attr.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(samples, in[0], out[0])
LKSI_ITEM(samples_grad, in[0], in[1], out[0])

/* Fills the dims; the whole batch is `all`. */
static lks_status cut(struct lksi_call *call, const struct lksi_desc *all)
{
    const struct lksi_samples_attr *a = call->attr;
    U64 size = (U64)(lksi_desc_count(all) / all->dim[0]);
    if (a->first < 0 || a->count < 1 || a->first > all->dim[0] - a->count)
        return lksi_fail(LKS_E_ARGUMENT, "%s: samples %lld to %lld of %lld do not exist",
                         call->op->name, (long long)a->first, (long long)(a->first + a->count - 1),
                         (long long)all->dim[0]);
    LKSI_SET_DIMS(call, samples_dims,
                  {(U64)a->first * size, (U64)(a->first + a->count) * size});
    return LKS_OK;
}

static lks_status infer(struct lksi_call *call)
{
    const struct lksi_samples_attr *a = call->attr;
    lks_status st = lksi_want(call, 0, "x", call->in[0].dtype, 1, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = cut(call, &call->in[0]);
    if (st != LKS_OK)
        return st;
    call->out[0] = call->in[0];
    call->out[0].dim[0] = a->count;
    return LKS_OK;
}

static lks_status infer_grad(struct lksi_call *call)
{
    const struct lksi_samples_attr *a = call->attr;
    struct lksi_desc dy = call->in[1];
    lks_status st = lksi_want(call, 1, "like", LKSI_F32, 1, LKSI_MAX_RANK);
    dy.dim[0] = a->count;
    if (st == LKS_OK)
        st = cut(call, &call->in[1]);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 0, "dy", dy);
    if (st == LKS_OK)
        call->out[0] = call->in[1];
    return st;
}

/* ---- gradients: each is the other's ---- */

static lks_status grad(const struct lksi_backward *g)
{
    return lksi_flow(g, 0, "samples_grad", g->call->attr, g->dout[0], g->in[0]);
}

static lks_status grad_grad(const struct lksi_backward *g)
{
    return lksi_flow(g, 0, "samples", g->call->attr, g->dout[0]);
}

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    const struct samples_dims *d = (const void *)call->dims.bytes;
    struct lksi_launch *l = &r->launch[0];
    lksi_flat_recipe(call, dev, "op/samples.cl", "samples", r);
    l->arg[l->n_arg++] = LKSI_U64(d->begin);
}

static const struct lksi_schedule schedules[] = {{"flat", lksi_flat_declines, recipe},
                                                 {NULL, NULL, NULL}};

/* ---- tests ---- */

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const struct {
        enum lksi_dtype dtype;
        int rank;
        int64_t dim[4], first, count;
    } cases[] = {
        {LKSI_F32, 1, {1}, 0, 1},          {LKSI_F32, 1, {9}, 8, 1},
        {LKSI_F32, 2, {5, 17}, 2, 2},      {LKSI_F32, 2, {8, 16}, 0, 8},
        {LKSI_F32, 2, {64, 63}, 8, 33},    {LKSI_F32, 4, {3, 5, 7, 2}, 1, 2},
        {LKSI_F32, 4, {4, 9, 9, 31}, 3, 1}, {LKSI_I32, 1, {13}, 4, 8},
        {LKSI_F32, 3, {9, 40, 33}, 1, 7},  {LKSI_F32, 4, {33, 28, 28, 32}, 8, 8},
    };
    struct lksi_samples_attr *a = attr;
    if (index >= (int)LKSI_COUNT(cases) - (long_run ? 0 : 1))
        return false;
    call->n_in = 1;
    call->in[0] = (struct lksi_desc){.dtype = cases[index].dtype, .rank = cases[index].rank};
    memcpy(call->in[0].dim, cases[index].dim, sizeof cases[index].dim);
    a->first = cases[index].first;
    a->count = cases[index].count;
    return true;
}

static bool test_case_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_samples_attr *a = attr;
    if (!test_case(index, long_run, call, attr))
        return false;
    call->in[0].dtype = LKSI_F32;
    call->n_in = 2;
    call->in[1] = call->in[0];
    call->in[0].dim[0] = a->count;
    return true;
}

static const struct lksi_op samples = {
    .name = "samples",
    .contract = "contract/samples.h",
    .dims = "samples_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_samples_attr),
    .infer = infer,
    .item = samples_item_c,
    .schedules = schedules,
    .grad = grad,
    .test_case = test_case,
};

static const struct lksi_op samples_grad = {
    .name = "samples_grad",
    .contract = "contract/samples.h",
    .dims = "samples_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_samples_attr),
    .infer = infer_grad,
    .item = samples_grad_item_c,
    .grad = grad_grad,
    .test_case = test_case_grad,
};

const struct lksi_op *const lksi_ops_samples[] = {&samples, &samples_grad, NULL};
