/*
 * concat.c - concat: up to eight tensors joined along one axis. Its gradient cuts dy apart (move).
 */
#include <stdio.h>
#include <string.h>

#include "contract/concat.h"
#include "op/attr.h"
#include "op/flat.h"
#include "op/shape.h"

_Static_assert(LKS_CONCAT_IN == LKSI_MAX_IN, "an operator's inputs");

LKSI_ITEM(concat, in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], out[0])

static const struct concat_dims *dims_of(const struct lksi_call *call)
{
    return (const void *)call->dims.bytes;
}

static lks_status infer(struct lksi_call *call)
{
    const struct lksi_concat_attr *a = call->attr;
    struct lksi_desc y = call->in[0];
    struct concat_dims d = {.n = (U32)call->n_in};
    char text[96];
    double size = 0, row = 0;
    lks_status st = lksi_want(call, 0, "input 0", y.dtype, 1, LKSI_MAX_RANK);
    if (st != LKS_OK)
        return st;
    if (a->axis < 0 || a->axis >= y.rank)
        return lksi_fail(LKS_E_ARGUMENT, "concat: axis %d of %s, 0 to %d wanted", a->axis,
                         lksi_desc_text(&y, text), y.rank - 1);
    y.dim[a->axis] = 0;
    for (int i = 0; i < call->n_in; i++) {
        struct lksi_desc wanted = y;
        char what[24];
        snprintf(what, sizeof what, "input %d", i);
        if (call->in[i].rank == y.rank)
            wanted.dim[a->axis] = call->in[i].dim[a->axis];
        else
            wanted.dim[a->axis] = call->in[0].dim[a->axis];
        st = lksi_want_desc(call, i, what, wanted);
        if (st == LKS_OK)
            st = lksi_want(call, i, what, y.dtype, 1, LKSI_MAX_RANK);
        if (st != LKS_OK)
            return st;
        size += (double)call->in[i].dim[a->axis];
    }
    row = size;
    for (int k = a->axis + 1; k < y.rank; k++)
        row *= (double)y.dim[k];
    for (int k = 0; k < a->axis; k++)
        size *= (double)y.dim[k];
    for (int k = a->axis + 1; k < y.rank; k++)
        size *= (double)y.dim[k];
    if (size > INT32_MAX)
        return lksi_fail(LKS_E_ARGUMENT, "concat: %d tensors like %s are more elements than 31 "
                                         "bits count", call->n_in,
                         lksi_desc_text(&call->in[0], text));
    for (int i = 0; i < call->n_in; i++) {
        U32 part = (U32)call->in[i].dim[a->axis];
        y.dim[a->axis] += part;
        for (int k = a->axis + 1; k < y.rank; k++)
            part *= (U32)y.dim[k];
        d.end[i] = (i > 0 ? d.end[i - 1] : 0) + part;
    }
    d.row = (U32)row;
    call->out[0] = y;
    memcpy(call->dims.bytes, &d, sizeof d);
    call->dims_size = sizeof d;
    return LKS_OK;
}

static lks_status grad(const struct lksi_backward *g)
{
    const struct lksi_concat_attr *a = g->call->attr;
    int32_t begin = 0;
    lks_status st = LKS_OK;
    for (int i = 0; i < g->call->n_in && st == LKS_OK; i++) {
        struct lksi_move_attr cut;
        memset(&cut, 0, sizeof cut);
        cut.rank = g->call->out[0].rank;
        for (int k = 0; k < cut.rank; k++)
            cut.axis[k].from = k;
        cut.axis[a->axis].begin = begin;
        cut.axis[a->axis].size = (int32_t)g->call->in[i].dim[a->axis];
        begin += cut.axis[a->axis].size;
        st = lksi_flow(g, i, "move", &cut, g->dout[0]);
    }
    return st;
}

/* ---- ref ---- */

enum { PART = 8192 };

static U64 ref_parts(const struct lksi_call *call)
{
    return ((U64)lksi_desc_count(&call->out[0]) + PART - 1) / PART;
}

static void ref(const struct lksi_call *call, const void *const *in, void *const *out, U64 p0,
                U64 p1)
{
    U64 n = (U64)lksi_desc_count(&call->out[0]), end = p1 * PART < n ? p1 * PART : n;
    const void *x[LKSI_MAX_IN];
    for (int i = 0; i < LKSI_MAX_IN; i++)
        x[i] = in[i < call->n_in ? i : 0];
    lks_concat_range(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], out[0], dims_of(call),
                     p0 * PART, end);
}

/* ---- schedules ---- */

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    const struct concat_dims *d = dims_of(call);
    struct lksi_launch *l = &r->launch[0];
    U64 n = (U64)lksi_desc_count(&call->out[0]), chunk = 4, items;
    bool gpu = dev->type == LKSI_DEV_GPU;
    if (gpu)
        for (U32 i = 0; i < d->n; i++)
            chunk = d->end[i] % 4 != 0 ? 1 : chunk;
    else
        chunk = 16384;
    r->n_launch = 1;
    l->source = "op/concat.cl";
    l->kernel = gpu ? "flat" : "chunks";
    snprintf(l->defines, sizeof l->defines, gpu ? "VEC=%u" : "CHUNKS VEC=%u",
             gpu ? (unsigned)chunk : 1u);
    for (int i = 0; i < LKSI_MAX_IN; i++) /* an absent input is never read: any buffer does */
        l->arg[l->n_arg++] = LKSI_IN(i < call->n_in ? i : 0);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->arg[l->n_arg++] = LKSI_U64(n);
    if (!gpu)
        l->arg[l->n_arg++] = LKSI_U32(chunk);
    items = (n + chunk - 1) / chunk;
    l->dims = 1;
    l->local[0] = gpu ? lksi_group(dev, 128) : 1;
    l->global[0] = (size_t)((items + l->local[0] - 1) / l->local[0] * l->local[0]);
}

static const struct lksi_schedule schedules[] = {{"flat", lksi_flat_declines, recipe},
                                                 {NULL, NULL, NULL}};

/* ---- tests ---- */

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const struct {
        int n, rank, axis;
        int64_t dim[LKSI_MAX_RANK];
        int64_t size[LKSI_MAX_IN];
    } cases[] = {
        {1, 1, 0, {0}, {5}},
        {2, 1, 0, {0}, {1, 40008}},
        {2, 4, 3, {2, 5, 7, 0}, {3, 4}},
        {3, 4, 3, {2, 5, 7, 0}, {16, 4, 8}},
        {8, 4, 3, {2, 3, 3, 0}, {1, 2, 3, 4, 5, 6, 7, 17}},
        {2, 4, 2, {2, 5, 0, 6}, {3, 4}},
        {2, 4, 1, {3, 0, 5, 4}, {7, 1}},
        {4, 3, 0, {0, 5, 4}, {2, 1, 1, 3}},
        {2, 5, 4, {2, 3, 4, 5, 0}, {33, 31}},
        {2, 4, 3, {8, 56, 56, 0}, {64, 64}},
    };
    int plain = (int)LKSI_COUNT(cases) - 1;
    if (index > plain || (index == plain && !long_run))
        return false;
    ((struct lksi_concat_attr *)attr)->axis = cases[index].axis;
    call->n_in = cases[index].n;
    for (int i = 0; i < call->n_in; i++) {
        call->in[i] = (struct lksi_desc){.dtype = index == 6 ? LKSI_I32 : LKSI_F32,
                                         .rank = cases[index].rank};
        memcpy(call->in[i].dim, cases[index].dim, sizeof call->in[i].dim);
        call->in[i].dim[cases[index].axis] = cases[index].size[i];
    }
    return true;
}

static const struct lksi_op concat = {
    .name = "concat",
    .contract = "contract/concat.h",
    .dims = "concat_dims",
    .min_in = 1,
    .max_in = LKSI_MAX_IN,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_concat_attr),
    .infer = infer,
    .item = concat_item_c,
    .ref_parts = ref_parts,
    .ref = ref,
    .schedules = schedules,
    .grad = grad,
    .test_case = test_case,
};

const struct lksi_op *const lksi_ops_concat[] = {&concat, NULL};
