/*
 * dropout.c - elements dropped at random, the others scaled; an evaluation passes all of them on.
 */
#include <string.h>

#include "contract/dropout.h"
#include "op/attr.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(dropout, in[0], in[1], out[0])

static lks_status infer(struct lksi_call *call)
{
    const struct lksi_dropout_attr *a = call->attr;
    const struct lksi_desc *x = &call->in[0];
    lks_status st = lksi_want(call, 0, "x", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = lksi_want(call, 1, "the step", LKSI_I32, 1, 1);
    if (st != LKS_OK)
        return st;
    if (call->in[1].dim[0] < 5 || !(a->p >= 0.0 && a->p < 1.0))
        return lksi_fail(LKS_E_ARGUMENT, "dropout: p is %g, 0 to below 1 wanted, and a step of 5 "
                                         "words", a->p);
    call->out[0] = *x;
    LKSI_SET_DIMS(call, dropout_dims,
                  {.n = (U64)lksi_desc_count(x),
                   .f = (U64)(lksi_desc_count(x) / x->dim[0]),
                   .stream = a->stream,
                   .p = (F32)a->p,
                   .scale = (F32)(1.0 / (1.0 - a->p))});
    return LKS_OK;
}

/* The same elements of dy, drawn again. */
static lks_status grad(const struct lksi_backward *g)
{
    return lksi_flow(g, 0, "dropout", g->call->attr, g->dout[0], g->in[1]);
}

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    struct lksi_launch *l = &r->launch[0];
    lksi_flat_recipe(call, dev, "op/dropout.cl", "dropout", r);
    l->arg[l->n_arg++] = LKSI_DIMS;
}

static const struct lksi_schedule schedules[] = {{"flat", lksi_flat_declines, recipe},
                                                 {NULL, NULL, NULL}};

#define REF_CHUNK 16384

static U64 ref_parts(const struct lksi_call *call)
{
    return ((U64)lksi_desc_count(&call->out[0]) + REF_CHUNK - 1) / REF_CHUNK;
}

static void ref(const struct lksi_call *call, const void *const *in, void *const *out, U64 p0,
                U64 p1)
{
    const struct dropout_dims *d = (const void *)call->dims.bytes;
    U64 end = p1 * REF_CHUNK < d->n ? p1 * REF_CHUNK : d->n;
    lks_dropout_range(in[0], in[1], out[0], d, p0 * REF_CHUNK, end);
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const double p[] = {0.5, 0.1, 0.9, 0.0};
    struct lksi_dropout_attr *a = attr;
    *a = (struct lksi_dropout_attr){.p = p[index % 4], .stream = 0x9e3779b9u + (uint32_t)index};
    call->n_in = 2;
    call->in[1] = lksi_desc_make(LKSI_I32, 1, (int64_t)5);
    return lksi_flat_case(index, long_run, &call->in[0]);
}

static const struct lksi_op dropout = {
    .name = "dropout",
    .contract = "contract/dropout.h",
    .dims = "dropout_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_dropout_attr),
    .evaluation = "stop_gradient",
    .infer = infer,
    .item = dropout_item_c,
    .ref_parts = ref_parts,
    .ref = ref,
    .schedules = schedules,
    .grad = grad,
    .test_case = test_case,
};

const struct lksi_op *const lksi_ops_dropout[] = {&dropout, NULL};
