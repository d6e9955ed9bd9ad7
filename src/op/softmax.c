/*
 * softmax.c - softmax and log_softmax over the last axis, and their gradients.
 */
#include <stdio.h>
#include <string.h>

#include "contract/softmax.h"
#include "op/attr.h"
#include "op/flat.h"
#include "op/reduce.h"
#include "op/shape.h"

LKSI_ITEM(softmax, in[0], out[0])
LKSI_ITEM(log_softmax, in[0], out[0])
LKSI_ITEM(softmax_grad, in[0], in[1], out[0])
LKSI_ITEM(log_softmax_grad, in[0], in[1], out[0])

static bool is_log(const struct lksi_call *call)
{
    return strncmp(call->op->name, "log", 3) == 0;
}

/* Input 0 is x, or y of the gradients, whose input 1 is dy. */
static lks_status infer(struct lksi_call *call)
{
    const struct lksi_softmax_attr *a = call->attr;
    const struct lksi_desc *x = &call->in[0];
    char text[96];
    lks_status st = lksi_want(call, 0, call->n_in == 2 ? "y" : "x", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st == LKS_OK && call->n_in == 2)
        st = lksi_want_desc(call, 1, "dy", *x);
    if (st != LKS_OK)
        return st;
    if (a->causal && (is_log(call) || x->rank < 2))
        return lksi_fail(LKS_E_ARGUMENT, "%s: a causal mask wants a softmax of [.., rows, columns], "
                         "x is %s", call->op->name, lksi_desc_text(x, text));
    call->out[0] = *x;
    LKSI_SET_DIMS(call, softmax_row_dims,
                  {.f = (U32)x->dim[x->rank - 1],
                   .q = x->rank > 1 ? (U32)x->dim[x->rank - 2] : 1u,
                   .causal = a->causal != 0});
    return LKS_OK;
}

static U64 rows(const struct lksi_call *call)
{
    return (U64)(lksi_desc_count(&call->in[0]) / call->in[0].dim[call->in[0].rank - 1]);
}

static lks_status grad(const struct lksi_backward *g)
{
    return lksi_flow(g, 0, is_log(g->call) ? "log_softmax_grad" : "softmax_grad", g->call->attr,
                     g->out[0], g->dout[0]);
}

/* The sum of a b over the last axis, which stays; b absent: of a. */
static lks_status row_sum(const struct lksi_backward *g, lksi_value a, lksi_value b,
                          lksi_value *out)
{
    lksi_value v = a;
    lks_status st = b != LKSI_NONE ? lksi_apply(g->b, "mul", NULL, &v, a, b) : LKS_OK;
    return st == LKS_OK ? lksi_sum(g->b, v, 1u << (g->call->in[0].rank - 1), true, out) : st;
}

/* 1 where a causal row sees its columns, else 0; LKSI_NONE: it sees all. */
static lks_status seen(const struct lksi_backward *g, lksi_value *mask)
{
    const struct lksi_softmax_attr *a = g->call->attr;
    const struct lksi_unary_attr zero = {0};
    lks_status st = LKS_OK;
    *mask = LKSI_NONE;
    if (!a->causal)
        return LKS_OK;
    st = lksi_apply(g->b, "mul_const", &zero, mask, g->in[0]);
    if (st == LKS_OK)
        st = lksi_apply(g->b, "softmax", a, mask, *mask);
    return st == LKS_OK ? lksi_apply(g->b, "sign", &zero, mask, *mask) : st;
}

/* Of dx = y (dy - s), s = sum of y dy, into y: g (dy - s) - dy t, t = sum of g y; all over the
 * columns seen. */
static lks_status grad_second(const struct lksi_backward *g)
{
    const lksi_value dy = g->in[1], dd = g->dout[0];
    lksi_value y = g->in[0], mask, v, w;
    lks_status st = lksi_flow(g, 1, "softmax_grad", g->call->attr, y, dd);
    if (st != LKS_OK || !g->need[0])
        return st;
    st = seen(g, &mask);
    if (st == LKS_OK && mask != LKSI_NONE)
        st = lksi_apply(g->b, "mul", NULL, &y, y, mask);
    if (st == LKS_OK)
        st = row_sum(g, y, dy, &v);
    if (st == LKS_OK)
        st = lksi_apply(g->b, "sub", NULL, &v, dy, v);
    if (st == LKS_OK)
        st = lksi_apply(g->b, "mul", NULL, &v, dd, v);
    if (st == LKS_OK)
        st = row_sum(g, dd, y, &w);
    if (st == LKS_OK)
        st = lksi_apply(g->b, "mul", NULL, &w, dy, w);
    if (st == LKS_OK)
        st = lksi_apply(g->b, "sub", NULL, &g->din[0], v, w);
    return st == LKS_OK && mask != LKSI_NONE ? lksi_flow(g, 0, "mul", NULL, g->din[0], mask) : st;
}

/* Of dx = dy - p s, p = exp(y), s = sum of dy: into dy g - sum of g p, into y -(g p) s. */
static lks_status grad_second_log(const struct lksi_backward *g)
{
    const struct lksi_unary_attr none = {0};
    const lksi_value dd = g->dout[0];
    lksi_value p, v, s;
    lks_status st = lksi_apply(g->b, "exp", &none, &p, g->in[0]);
    if (st == LKS_OK)
        st = lksi_apply(g->b, "mul", NULL, &p, dd, p);
    if (st == LKS_OK && g->need[1]) {
        st = row_sum(g, p, LKSI_NONE, &v);
        if (st == LKS_OK)
            st = lksi_flow(g, 1, "sub", NULL, dd, v);
    }
    if (st != LKS_OK || !g->need[0])
        return st;
    st = row_sum(g, g->in[1], LKSI_NONE, &s);
    if (st == LKS_OK)
        st = lksi_apply(g->b, "mul", NULL, &v, p, s);
    return st == LKS_OK ? lksi_flow(g, 0, "neg", &none, v) : st;
}

/* ---- schedules ---- */

static const char *declines_gpu(const struct lksi_call *call, const struct lksi_limits *dev)
{
    (void)call;
    return dev->max_group < 32 || dev->max_item[0] < 32 ? "groups of 32 are too large" : NULL;
}

static void recipe(const struct lksi_call *call, struct lksi_recipe *r, const char *kernel,
                   const char *defines, size_t group)
{
    struct lksi_launch *l = &r->launch[r->n_launch++];
    l->source = "op/softmax.cl";
    l->kernel = kernel;
    snprintf(l->defines, sizeof l->defines, "%s%s%s", defines, is_log(call) ? " LOG" : "",
             call->n_in == 2 ? " GRAD" : "");
    for (int i = 0; i < call->n_in; i++)
        l->arg[l->n_arg++] = LKSI_IN(i);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->dims = 1;
    l->local[0] = group;
    l->global[0] = (size_t)rows(call) * group;
}

static void recipe_cpu(const struct lksi_call *call, const struct lksi_limits *dev,
                       struct lksi_recipe *r)
{
    (void)dev;
    recipe(call, r, "rows", "ROWS", 1);
}

static void recipe_gpu(const struct lksi_call *call, const struct lksi_limits *dev,
                       struct lksi_recipe *r)
{
    (void)dev;
    recipe(call, r, "lanes", "LANES", 32);
}

static const struct lksi_schedule schedules[] = {
    {"cpu", lksi_cpu_declines, recipe_cpu}, {"gpu", declines_gpu, recipe_gpu}, {NULL, NULL, NULL}};

/* ---- the C loop: the items, compiled for the clone that runs them ---- */

LKSI_CLONES static void ref(const struct lksi_call *call, const void *const *in, void *const *out,
                            U64 p0, U64 p1)
{
    const struct softmax_row_dims *d = (const void *)call->dims.bytes;
    bool log = is_log(call);
    for (U64 p = p0; p < p1; p++) {
        if (call->n_in == 2 && log)
            log_softmax_grad_item(in[0], in[1], out[0], d, p);
        else if (call->n_in == 2)
            softmax_grad_item(in[0], in[1], out[0], d, p);
        else if (log)
            log_softmax_item(in[0], out[0], d, p);
        else
            softmax_item(in[0], out[0], d, p);
    }
}

static double flops(const struct lksi_call *call)
{
    return (call->n_in == 2 ? 4.0 : 30.0) * (double)lksi_desc_count(&call->in[0]);
}

/* ---- tests ---- */

static bool row_case(int index, bool long_run, bool causal, struct lksi_call *call, void *attr)
{
    static const struct {
        int rank;
        int64_t dim[4];
        int causal;
    } cases[] = {
        {1, {1}, 0},          {2, {1, 17}, 0},       {2, {5, 32}, 1},        {3, {3, 7, 7}, 1},
        {2, {4, 33}, 0},      {4, {2, 3, 40, 40}, 1}, {3, {2, 65, 64}, 1},   {2, {2, 4096}, 0},
        {2, {2, 4097}, 0},    {3, {2, 33, 100}, 1},  {3, {1, 70, 31}, 1},    {2, {1, 9000}, 0},
        {4, {2, 8, 256, 256}, 1},
    };
    struct lksi_softmax_attr *a = attr;
    if (index >= (int)LKSI_COUNT(cases) - (long_run ? 0 : 1))
        return false;
    a->causal = causal && cases[index].causal;
    call->n_in = 1;
    call->in[0] = (struct lksi_desc){.dtype = LKSI_F32, .rank = cases[index].rank};
    memcpy(call->in[0].dim, cases[index].dim, sizeof cases[index].dim);
    return true;
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    return row_case(index, long_run, true, call, attr);
}

static bool test_case_log(int index, bool long_run, struct lksi_call *call, void *attr)
{
    return row_case(index, long_run, false, call, attr);
}

static bool test_case_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    if (!row_case(index, long_run, true, call, attr))
        return false;
    call->n_in = 2;
    call->in[1] = call->in[0];
    return true;
}

static bool test_case_log_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    if (!row_case(index, long_run, false, call, attr))
        return false;
    call->n_in = 2;
    call->in[1] = call->in[0];
    return true;
}

#define SOFTMAX(NAME, INPUTS, CASES, ...)                                                          \
    static const struct lksi_op NAME = {                                                           \
        .name = #NAME,                                                                             \
        .contract = "contract/softmax.h",                                                          \
        .dims = "softmax_row_dims",                                                                \
        .min_in = INPUTS,                                                                          \
        .max_in = INPUTS,                                                                          \
        .n_out = 1,                                                                                \
        .attr_size = sizeof(struct lksi_softmax_attr),                                             \
        .infer = infer,                                                                            \
        .items = rows,                                                                             \
        .item = NAME##_item_c,                                                                     \
        .ref_parts = rows,                                                                         \
        .ref = ref,                                                                                \
        .schedules = schedules,                                                                    \
        .flops = flops,                                                                            \
        .test_case = CASES,                                                                        \
        __VA_ARGS__                                                                                \
    }

SOFTMAX(softmax, 1, test_case, .grad = grad, );
SOFTMAX(log_softmax, 1, test_case_log, .grad = grad, );
SOFTMAX(softmax_grad, 2, test_case_grad, .grad = grad_second, );
SOFTMAX(log_softmax_grad, 2, test_case_log_grad, .grad = grad_second_log, );

const struct lksi_op *const lksi_ops_softmax[] = {&softmax, &log_softmax, &softmax_grad,
                                                  &log_softmax_grad, NULL};
