/*
 * softmax.c - softmax and log_softmax over the last axis, and their gradients.
 */
#include <stdio.h>
#include <string.h>

#include "contract/softmax.h"
#include "op/attr.h"
#include "op/flat.h"
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
SOFTMAX(softmax_grad, 2, test_case_grad, );
SOFTMAX(log_softmax_grad, 2, test_case_log_grad, );

const struct lksi_op *const lksi_ops_softmax[] = {&softmax, &log_softmax, &softmax_grad,
                                                  &log_softmax_grad, NULL};
