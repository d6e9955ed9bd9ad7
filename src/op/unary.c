/*
 * unary.c - functions of one element, their gradients and the gradients of those: an operator for
 * each line of the tables in contract/unary.h.
 */
#include <stdio.h>
#include <string.h>

#include "contract/unary.h"
#include "op/attr.h"
#include "op/flat.h"
#include "op/shape.h"

/* Shapes of all of them: every input is as input 0. */
static lks_status infer(struct lksi_call *call)
{
    static const char *const what[] = {"x", "dy", "ddx"};
    const struct lksi_unary_attr *a = call->attr;
    lks_status st = lksi_want(call, 0, "x", LKSI_F32, 1, LKSI_MAX_RANK);
    for (int i = 1; i < call->n_in && st == LKS_OK; i++)
        st = lksi_want_desc(call, i, what[i], call->in[0]);
    if (st != LKS_OK)
        return st;
    call->out[0] = call->in[0];
    LKSI_SET_DIMS(call, unary_dims, {(U64)lksi_desc_count(&call->in[0]), a->a, a->b});
    return LKS_OK;
}

/* ---- gradients ---- */

static lks_status grad_at(const struct lksi_backward *g, lksi_value at)
{
    char name[64];
    snprintf(name, sizeof name, "%s_grad", g->call->op->name);
    return lksi_flow(g, 0, name, g->call->attr, at, g->dout[0]);
}

/* Steps: nothing flows, and din[] stays absent. */
static lks_status grad_STEP(const struct lksi_backward *g)
{
    g->din[0] = LKSI_NONE;
    return LKS_OK;
}

/* The slope is taken at x ... */
static lks_status grad_X(const struct lksi_backward *g)
{
    return grad_at(g, g->in[0]);
}

/* ... or at y. */
static lks_status grad_Y(const struct lksi_backward *g)
{
    return grad_at(g, g->out[0]);
}

/* NAME_grad is linear in dy: the same operator again. */
static lks_status grad_grad(const struct lksi_backward *g)
{
    return lksi_flow(g, 1, g->call->op->name, g->call->attr, g->in[0], g->dout[0]);
}

static lks_status grad_curve(const struct lksi_backward *g)
{
    char name[64];
    lks_status st = grad_grad(g);
    snprintf(name, sizeof name, "%s2", g->call->op->name);
    return st != LKS_OK ? st
                        : lksi_flow(g, 0, name, g->call->attr, g->in[0], g->in[1], g->dout[0]);
}

/* Of log_grad2 = -(1/v)^2 dy ddx, linear in dy and in ddx; into v flows -2 log_grad2 / v. */
static lks_status grad_LOG(const struct lksi_backward *g)
{
    const struct lksi_unary_attr twice = {-2.0f, 0.0f};
    const char *op = g->call->op->name;
    lksi_value v;
    lks_status st = lksi_flow(g, 1, op, g->call->attr, g->in[0], g->dout[0], g->in[2]);
    if (st == LKS_OK)
        st = lksi_flow(g, 2, op, g->call->attr, g->in[0], g->in[1], g->dout[0]);
    if (st != LKS_OK || !g->need[0])
        return st;
    st = lksi_apply(g->b, "mul", NULL, &v, g->dout[0], g->out[0]);
    if (st == LKS_OK)
        st = lksi_apply(g->b, "mul_const", &twice, &v, v);
    return st == LKS_OK ? lksi_flow(g, 0, "div", NULL, v, g->in[0]) : st;
}

/* a x^(a-1) dy */
static lks_status grad_POWER(const struct lksi_backward *g)
{
    const struct lksi_unary_attr *a = g->call->attr, less = {a->a - 1.0f, 0.0f};
    lksi_value v;
    lks_status st;
    if (a->a == 0.0f || a->a == 1.0f) {
        g->din[0] = a->a == 0.0f ? LKSI_NONE : g->dout[0];
        return LKS_OK;
    }
    st = lksi_apply(g->b, "pow_const", &less, &v, g->in[0]);
    if (st == LKS_OK)
        st = lksi_apply(g->b, "mul_const", a, &v, v);
    return st == LKS_OK ? lksi_flow(g, 0, "mul", NULL, v, g->dout[0]) : st;
}

/* ---- schedule ---- */

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    const struct lksi_unary_attr *a = call->attr;
    struct lksi_launch *l = &r->launch[0];
    size_t used;
    lksi_flat_recipe(call, dev, "op/unary.cl", "unary", r);
    used = strlen(l->defines);
    snprintf(l->defines + used, sizeof l->defines - used, " OF=%s_of INPUTS=%d%s", call->op->name,
             call->n_in, dev->type == LKSI_DEV_GPU ? " ACROSS" : "");
    l->arg[l->n_arg++] = LKSI_F32V(a->a);
    l->arg[l->n_arg++] = LKSI_F32V(a->b);
}

static const struct lksi_schedule schedules[] = {{"flat", lksi_flat_declines, recipe},
                                                 {NULL, NULL, NULL}};

/* ---- the C loops: a part is a chunk of elements ---- */

#define REF_CHUNK 16384

static U64 ref_parts(const struct lksi_call *call)
{
    return ((U64)lksi_desc_count(&call->out[0]) + REF_CHUNK - 1) / REF_CHUNK;
}

#define REF_LOOP(name, value)                                                                      \
    LKSI_CLONES static void name##_ref(const struct lksi_call *call, const void *const *in,        \
                                       void *const *out, U64 p0, U64 p1)                           \
    {                                                                                              \
        const struct unary_dims *d = (const void *)call->dims.bytes;                               \
        const F32 *x = in[0], *g = call->n_in > 1 ? in[1] : x, *h = call->n_in > 2 ? in[2] : x;    \
        const F32 a = d->a, b = d->b;                                                              \
        F32 *restrict y = out[0];                                                                  \
        U64 end = p1 * REF_CHUNK < d->n ? p1 * REF_CHUNK : d->n;                                   \
        (void)g;                                                                                   \
        (void)h;                                                                                   \
        for (U64 i = p0 * REF_CHUNK; i < end; i++)                                                 \
            y[i] = value;                                                                          \
    }

/* ---- tests ---- */

/* Numbers for a and b that every function accepts. */
static bool test_case(int index, bool long_run, int n_in, struct lksi_call *call, void *attr)
{
    static const int64_t size[] = {1, 17, 509, 2049};
    struct lksi_unary_attr *a = attr;
    a->a = index % 2 == 0 ? 0.25f : 0.1f;
    a->b = index % 2 == 0 ? 0.5f : 0.7f;
    if (index < (int)LKSI_COUNT(size))
        call->in[0] = lksi_desc_make(LKSI_F32, 1, size[index]);
    else if (index == (int)LKSI_COUNT(size))
        call->in[0] = lksi_desc_make(LKSI_F32, 4, (int64_t)2, (int64_t)5, (int64_t)7, (int64_t)3);
    else if (long_run && index == (int)LKSI_COUNT(size) + 1)
        call->in[0] = lksi_desc_make(LKSI_F32, 1, (int64_t)3000017);
    else
        return false;
    call->n_in = n_in;
    for (int i = 1; i < call->n_in; i++)
        call->in[i] = call->in[0];
    return true;
}

#define TEST_CASE(n)                                                                               \
    static bool test_case##n(int index, bool long_run, struct lksi_call *call, void *attr)         \
    {                                                                                              \
        return test_case(index, long_run, n, call, attr);                                          \
    }
TEST_CASE(1)
TEST_CASE(2)
TEST_CASE(3)

/* Functions with a pole at 0 are asked away from it, where differences see slopes. */
static uint32_t test_nonzero(const struct lksi_call *call, int index, uint32_t bits)
{
    F32 v = lks_float(bits), m = lks_abs(v);
    (void)call;
    if (index == 0 && m >= 0.0009765625f && m <= 1.0f)
        v = 0.5f * v + lks_copysign(0.5f, v);
    return lks_bits(v);
}

static uint32_t test_positive(const struct lksi_call *call, int index, uint32_t bits)
{
    return index == 0 ? test_nonzero(call, index, bits & 0x7fffffffu) : bits;
}

/* Exponents of several kinds. */
static bool test_power(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const float exponents[] = {2.5f, -1.0f, 3.0f, -0.4f, 0.5f, 1.0f, 0.0f};
    struct lksi_unary_attr *a = attr;
    if (!test_case(index, long_run, 1, call, attr) && index >= (int)LKSI_COUNT(exponents))
        return false;
    if (call->in[0].rank == 0)
        call->in[0] = lksi_desc_make(LKSI_F32, 2, (int64_t)3, (int64_t)11);
    call->n_in = 1;
    *a = (struct lksi_unary_attr){exponents[index % (int)LKSI_COUNT(exponents)], 0.0f};
    return true;
}

#define TEST_ANY      NULL
#define TEST_NONZERO  test_nonzero
#define TEST_POSITIVE test_positive

/* ---- descriptors ---- */

#define DESCRIBE(op, inputs, gradient, domain)                                                     \
    DESCRIBE_CASES(op, inputs, gradient, domain, test_case##inputs)

#define DESCRIBE_CASES(op, inputs, gradient, domain, cases)                                        \
    static const struct lksi_op op_##op = {                                                        \
        .name = #op,                                                                               \
        .contract = "contract/unary.h",                                                            \
        .dims = "unary_dims",                                                                      \
        .min_in = inputs,                                                                          \
        .max_in = inputs,                                                                          \
        .n_out = 1,                                                                                \
        .attr_size = sizeof(struct lksi_unary_attr),                                               \
        .infer = infer,                                                                            \
        .item = op##_item_c,                                                                       \
        .ref_parts = ref_parts,                                                                    \
        .ref = op##_ref,                                                                           \
        .schedules = schedules,                                                                    \
        .grad = gradient,                                                                          \
        .test_case = cases,                                                                        \
        .test_input = TEST_##domain,                                                               \
    };

#define MAKE_POWER(name, f)                                                                        \
    LKSI_ITEM(name, in[0], out[0])                                                                 \
    REF_LOOP(name, name##_of(x[i], a, b))                                                          \
    DESCRIBE_CASES(name, 1, grad_POWER, POSITIVE, test_power)

#define MAKE_STEP_AT(name, at, domain)                                                             \
    LKSI_ITEM(name, in[0], out[0])                                                                 \
    REF_LOOP(name, name##_of(x[i], a, b))                                                          \
    DESCRIBE(name, 1, grad_##at, domain)

#define MAKE_LINEAR_WITH(name, at, domain, second)                                                 \
    MAKE_STEP_AT(name, at, domain)                                                                 \
    LKSI_ITEM(name##_grad, in[0], in[1], out[0])                                                   \
    REF_LOOP(name##_grad, name##_grad_of(x[i], a, b) * g[i])                                       \
    DESCRIBE(name##_grad, 2, second, domain)

#define MAKE_STEP(name, f)                        MAKE_STEP_AT(name, STEP, ANY)
#define MAKE_LINEAR(name, at, domain, f, slope)   MAKE_LINEAR_WITH(name, at, domain, grad_grad)
#define MAKE_CURVED_WITH(name, at, domain, third)                                                  \
    MAKE_LINEAR_WITH(name, at, domain, grad_curve)                                                 \
    LKSI_ITEM(name##_grad2, in[0], in[1], in[2], out[0])                                           \
    REF_LOOP(name##_grad2, name##_grad2_of(x[i], a, b) * g[i] * h[i])                              \
    DESCRIBE(name##_grad2, 3, third, domain)
#define MAKE_CURVED(name, at, domain, f, slope, curve) MAKE_CURVED_WITH(name, at, domain, NULL)
#define MAKE_LOG(name, at, domain, f, slope, curve)    MAKE_CURVED_WITH(name, at, domain, grad_LOG)

LKS_UNARY_STEP(MAKE_STEP)
LKS_UNARY_POWER(MAKE_POWER)
LKS_UNARY_LINEAR(MAKE_LINEAR)
LKS_UNARY_CURVED(MAKE_CURVED)
LKS_UNARY_LOG(MAKE_LOG)

#define LIST_STEP(name, f)                             &op_##name,
#define LIST_LINEAR(name, at, domain, f, slope)        &op_##name, &op_##name##_grad,
#define LIST_CURVED(name, at, domain, f, slope, curve)                                             \
    &op_##name, &op_##name##_grad, &op_##name##_grad2,

const struct lksi_op *const lksi_ops_unary[] = {
    LKS_UNARY_STEP(LIST_STEP) LKS_UNARY_POWER(LIST_STEP) LKS_UNARY_LINEAR(LIST_LINEAR)
        LKS_UNARY_CURVED(LIST_CURVED) LKS_UNARY_LOG(LIST_CURVED) NULL};
