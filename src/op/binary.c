/*
 * binary.c - operators on two tensors with broadcasting, for each line of the tables in
 * contract/binary.h.
 */
#include <stdio.h>
#include <string.h>

#include "contract/binary.h"
#include "op/attr.h"
#include "op/binary.h"
#include "op/flat.h"
#include "op/reduce.h"
#include "op/shape.h"

/* ---- shapes ---- */

/* The dimension of y's axis k in an operand: 1 where it repeats. */
static int64_t along(const struct lksi_desc *x, int rank, int k)
{
    int own = k - (rank - x->rank);
    return own < 0 ? 1 : x->dim[own];
}

static lks_status broadcast(const struct lksi_call *call, struct lksi_desc *y)
{
    const struct lksi_desc *a = &call->in[0], *b = &call->in[1];
    char one[96], two[96];
    *y = lksi_desc_make(LKSI_F32, 0);
    y->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int k = 0; k < y->rank; k++) {
        int64_t i = along(a, y->rank, k), j = along(b, y->rank, k);
        if (i != j && i != 1 && j != 1)
            return lksi_fail(LKS_E_ARGUMENT,
                             "%s: %s and %s do not broadcast: from the right, dimensions must be "
                             "equal or 1",
                             call->op->name, lksi_desc_text(a, one), lksi_desc_text(b, two));
        y->dim[k] = i > j ? i : j;
    }
    return LKS_OK;
}

/* Axes of length 1 go, and neighbours meet where both operands run on or stand still. */
static void set_dims(struct lksi_call *call)
{
    const struct lksi_desc *y = &call->out[0];
    struct binary_dims d;
    U64 step_a = 1, step_b = 1;
    int used = 5;
    memset(&d, 0, sizeof d);
    d.n = (U64)lksi_desc_count(y);
    for (int k = y->rank; k-- > 0;) {
        U64 size = (U64)y->dim[k];
        U64 a = (U64)along(&call->in[0], y->rank, k), b = (U64)along(&call->in[1], y->rank, k);
        U64 sa = a == 1 ? 0 : step_a, sb = b == 1 ? 0 : step_b;
        step_a *= a;
        step_b *= b;
        if (size == 1)
            continue;
        if (used < 5 && sa == d.a[used] * d.size[used] && sb == d.b[used] * d.size[used]) {
            d.size[used] *= size;
            continue;
        }
        used--;
        d.size[used] = size;
        d.a[used] = sa;
        d.b[used] = sb;
    }
    if (used == 5)
        d.size[--used] = 1;
    d.axes = (U32)(5 - used);
    memmove(d.size, d.size + used, d.axes * sizeof *d.size);
    memmove(d.a, d.a + used, d.axes * sizeof *d.a);
    memmove(d.b, d.b + used, d.axes * sizeof *d.b);
    LKSI_SET_DIMS(call, binary_dims, d);
}

static lks_status infer(struct lksi_call *call)
{
    lks_status st = lksi_want(call, 0, "a", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = lksi_want(call, 1, "b", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = broadcast(call, &call->out[0]);
    if (st == LKS_OK && call->n_in == 3)
        st = lksi_want_desc(call, 2, "dy", call->out[0]);
    if (st == LKS_OK)
        set_dims(call);
    return st;
}

/* ---- gradients ---- */

lks_status lksi_sum_to(struct lksi_builder *b, lksi_value dy, lksi_value like, lksi_value *out)
{
    const struct lksi_desc from = *b->desc(b, dy), to = *b->desc(b, like);
    struct lksi_reshape_attr flat = {4, {-1, 1, 1, 1}}, back = {.rank = to.rank};
    int64_t c = lksi_desc_count(&to), rest = lksi_desc_count(&from) / from.dim[0];
    int missing = from.rank - to.rank;
    unsigned axes = (1u << missing) - 1u;
    bool tail = missing > 0; /* only whole leading axes repeat */
    lksi_value v, sum;
    lks_status st;
    for (int k = missing; k < from.rank; k++)
        if (to.dim[k - missing] != from.dim[k]) {
            axes |= 1u << k;
            tail = false;
        }
    memcpy(back.dim, to.dim, sizeof back.dim);
    if (axes == 0) {
        *out = dy;
        return LKS_OK;
    }
    if (!tail) {
        st = lksi_sum(b, dy, axes, true, missing > 0 ? &v : out);
        return st == LKS_OK && missing > 0 ? b->apply(b, "reshape", &back, 1, &v, out) : st;
    }
    /* As a bias: the batch is summed. */
    flat.dim[1] = rest / c;
    flat.dim[3] = c;
    st = b->apply(b, "reshape", &flat, 1, &dy, &v);
    if (st == LKS_OK)
        st = b->apply(b, "bias_grad", NULL, 1, &v, to.rank == 1 ? out : &sum);
    if (st == LKS_OK && to.rank > 1)
        st = b->apply(b, "reshape", &back, 1, &sum, out);
    return st;
}

/* Sums the gradient `v` of operand k down to its shape. */
static lks_status settle(const struct lksi_backward *g, int k, lksi_value v)
{
    return lksi_sum_to(g->b, v, g->in[k], &g->din[k]);
}

static lks_status grad_add_wide(const struct lksi_backward *g)
{
    lks_status st = LKS_OK;
    for (int k = 0; k < 2 && st == LKS_OK; k++)
        if (g->need[k])
            st = settle(g, k, g->dout[0]);
    return st;
}

static lks_status grad_sub(const struct lksi_backward *g)
{
    const struct lksi_unary_attr none = {0};
    lks_status st = g->need[0] ? settle(g, 0, g->dout[0]) : LKS_OK;
    lksi_value v;
    if (st != LKS_OK || !g->need[1])
        return st;
    st = lksi_apply(g->b, "neg", &none, &v, g->dout[0]);
    return st == LKS_OK ? settle(g, 1, v) : st;
}

/* da = dy b, db = dy a, by the operator `op`. */
static lks_status product(const struct lksi_backward *g, const char *op)
{
    lks_status st = LKS_OK;
    lksi_value v;
    for (int k = 0; k < 2 && st == LKS_OK; k++) {
        if (!g->need[k])
            continue;
        st = lksi_apply(g->b, op, NULL, &v, g->dout[0], g->in[1 - k]);
        if (st == LKS_OK)
            st = settle(g, k, v);
    }
    return st;
}

static lks_status grad_mul(const struct lksi_backward *g)
{
    return product(g, "mul");
}

/* da = dy / b, db = -(dy / b) y */
static lks_status grad_div(const struct lksi_backward *g)
{
    const struct lksi_unary_attr none = {0};
    lksi_value part, v;
    lks_status st = lksi_apply(g->b, "div", NULL, &part, g->dout[0], g->in[1]);
    if (st == LKS_OK && g->need[0])
        st = settle(g, 0, part);
    if (st != LKS_OK || !g->need[1])
        return st;
    st = lksi_apply(g->b, "mul", NULL, &v, part, g->out[0]);
    if (st == LKS_OK)
        st = lksi_apply(g->b, "neg", &none, &v, v);
    return st == LKS_OK ? settle(g, 1, v) : st;
}

/* da = dy b a^(b-1), db = dy y log(a). A factor of 0 wins over an infinite one: a power whose
 * exponent is 0 is flat at a = 0 too, and so is each derivative of a whole power after its last. */
static lks_status grad_pow(const struct lksi_backward *g)
{
    const struct lksi_unary_attr none = {0}, less = {-1.0f, 0.0f};
    const lksi_value a = g->in[0], b = g->in[1];
    lksi_value part, v;
    lks_status st = LKS_OK;
    if (g->need[0]) {
        st = lksi_apply(g->b, "add_const", &less, &v, b);
        if (st == LKS_OK)
            st = lksi_apply(g->b, "pow", NULL, &v, a, v);
        if (st == LKS_OK)
            st = lksi_apply(g->b, "mul_zero", NULL, &part, g->dout[0], b);
        if (st == LKS_OK)
            st = lksi_apply(g->b, "mul_zero", NULL, &v, part, v);
        if (st == LKS_OK)
            st = settle(g, 0, v);
    }
    if (st != LKS_OK || !g->need[1])
        return st;
    st = lksi_apply(g->b, "log", &none, &v, a);
    if (st == LKS_OK)
        st = lksi_apply(g->b, "mul_zero", NULL, &part, g->dout[0], g->out[0]);
    if (st == LKS_OK)
        st = lksi_apply(g->b, "mul_zero", NULL, &v, part, v);
    return st == LKS_OK ? settle(g, 1, v) : st;
}

static lks_status grad_mul_zero(const struct lksi_backward *g)
{
    return product(g, "mul_zero");
}

static lks_status pick(const struct lksi_backward *g)
{
    lks_status st = LKS_OK;
    for (int k = 0; k < 2 && st == LKS_OK; k++) {
        lksi_value v;
        char name[64];
        if (!g->need[k])
            continue;
        snprintf(name, sizeof name, "%s_grad_%c", g->call->op->name, "ab"[k]);
        st = lksi_apply(g->b, name, NULL, &v, g->in[0], g->in[1], g->dout[0]);
        if (st == LKS_OK)
            st = settle(g, k, v);
    }
    return st;
}

/* Comparisons: nothing flows. */
static lks_status grad_none(const struct lksi_backward *g)
{
    g->din[0] = g->din[1] = LKSI_NONE;
    return LKS_OK;
}
#define grad_maximum pick
#define grad_minimum pick
#define grad_equal   grad_none
#define grad_greater grad_none
#define grad_less    grad_none

/* The gradients of maximum and minimum are linear in dy. */
static lks_status grad_pick(const struct lksi_backward *g)
{
    return lksi_flow(g, 2, g->call->op->name, NULL, g->in[0], g->in[1], g->dout[0]);
}

/* ---- schedule ---- */

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    const struct binary_dims *d = (const void *)call->dims.bytes;
    struct lksi_launch *l = &r->launch[0];
    size_t used;
    lksi_flat_recipe(call, dev, "op/binary.cl", "binary", r);
    used = strlen(l->defines);
    snprintf(l->defines + used, sizeof l->defines - used, " OF=%s_of A=%d B=%d%s%s", call->op->name,
             d->a[d->axes - 1] != 0, d->b[d->axes - 1] != 0, call->n_in == 3 ? " PICK_DY" : "",
             dev->type == LKSI_DEV_GPU ? " ACROSS" : "");
    l->arg[l->n_arg++] = LKSI_DIMS;
}

static const struct lksi_schedule schedules[] = {{"flat", lksi_flat_declines, recipe},
                                                 {NULL, NULL, NULL}};

/* ---- the C loops: a part is a chunk of elements ---- */

#define REF_CHUNK 16384

static U64 ref_parts(const struct lksi_call *call)
{
    return ((U64)lksi_desc_count(&call->out[0]) + REF_CHUNK - 1) / REF_CHUNK;
}

#define REF_LOOP(name, ...)                                                                        \
    LKSI_CLONES static void name##_ref(const struct lksi_call *call, const void *const *in,        \
                                       void *const *out, U64 p0, U64 p1)                           \
    {                                                                                              \
        const struct binary_dims *d = (const void *)call->dims.bytes;                              \
        const U64 last = d->size[d->axes - 1], sa = d->a[d->axes - 1], sb = d->b[d->axes - 1];     \
        U64 end = p1 * REF_CHUNK < d->n ? p1 * REF_CHUNK : d->n, run;                              \
        for (U64 i = p0 * REF_CHUNK; i < end; i += run) {                                          \
            struct lks_pair at = lks_binary_at(d, i);                                              \
            const F32 *a = (const F32 *)in[0] + at.a, *b = (const F32 *)in[1] + at.b;              \
            const F32 *dy = call->n_in > 2 ? (const F32 *)in[2] + i : NULL;                        \
            F32 *restrict y = (F32 *)out[0] + i;                                                   \
            run = last - i % last < end - i ? last - i % last : end - i;                           \
            (void)dy;                                                                              \
            for (U64 k = 0; k < run; k++)                                                          \
                y[k] = name##_of(__VA_ARGS__);                                                     \
        }                                                                                          \
    }

/* ---- tests ---- */

static bool test_case(int index, bool long_run, int n_in, struct lksi_call *call)
{
    static const struct {
        int a, b; /* ranks */
        int64_t dim_a[5], dim_b[5];
    } cases[] = {
        {1, 1, {1}, {1}},
        {1, 1, {2051}, {2051}},
        {2, 1, {37, 21}, {21}},
        {1, 4, {19}, {2, 5, 7, 19}},
        {4, 4, {2, 5, 7, 19}, {2, 1, 1, 19}},
        {4, 4, {3, 1, 1, 1}, {3, 6, 5, 7}},
        {4, 4, {3, 5, 4, 9}, {3, 5, 4, 1}},
        {4, 4, {3, 5, 1, 9}, {1, 5, 6, 1}},
        {5, 5, {2, 1, 3, 1, 4}, {1, 5, 1, 6, 1}},
        {2, 1, {130, 70}, {1}},
        {4, 3, {4, 6, 5, 16}, {6, 5, 16}},
        {4, 1, {64, 14, 14, 256}, {256}},
    };
    if (index >= (int)LKSI_COUNT(cases) - (long_run ? 0 : 1))
        return false;
    call->n_in = n_in;
    call->in[0] = (struct lksi_desc){.dtype = LKSI_F32, .rank = cases[index].a};
    call->in[1] = (struct lksi_desc){.dtype = LKSI_F32, .rank = cases[index].b};
    memcpy(call->in[0].dim, cases[index].dim_a, sizeof cases[index].dim_a);
    memcpy(call->in[1].dim, cases[index].dim_b, sizeof cases[index].dim_b);
    return n_in < 3 || broadcast(call, &call->in[2]) == LKS_OK;
}

static bool test_two(int index, bool long_run, struct lksi_call *call, void *attr)
{
    (void)attr;
    return test_case(index, long_run, 2, call);
}

static bool test_three(int index, bool long_run, struct lksi_call *call, void *attr)
{
    (void)attr;
    return test_case(index, long_run, 3, call);
}

/* Divisors stay away from 0, where differences see slopes, and the bases of powers above it. */
static uint32_t test_operand(const struct lksi_call *call, int index, uint32_t bits)
{
    F32 v = lks_float(bits), m = lks_abs(v);
    if (strcmp(call->op->name, "pow") == 0 && index == 0 && m >= 2.9802322e-8f && m <= 1.0f)
        v = 0.5f + m;
    else if (index == 1 && m >= 0.0009765625f && m <= 1.0f)
        v = 0.5f * v + lks_copysign(0.5f, v);
    return lks_bits(v);
}

/* ---- descriptors ---- */

#define DESCRIBE(op, inputs, gradient, cases, input)                                               \
    static const struct lksi_op op_##op = {                                                        \
        .name = #op,                                                                               \
        .contract = "contract/binary.h",                                                           \
        .dims = "binary_dims",                                                                     \
        .min_in = inputs,                                                                          \
        .max_in = inputs,                                                                          \
        .n_out = 1,                                                                                \
        .infer = infer,                                                                            \
        .ref_parts = ref_parts,                                                                    \
        .ref = op##_ref,                                                                           \
        .item = op##_item_c,                                                                       \
        .schedules = schedules,                                                                    \
        .grad = gradient,                                                                          \
        .test_case = cases,                                                                        \
        .test_input = input,                                                                       \
    };

#define MAKE(name, f)                                                                              \
    LKSI_ITEM(name, in[0], in[1], out[0])                                                          \
    REF_LOOP(name, a[k * sa], b[k * sb])                                                           \
    DESCRIBE(name, 2, grad_##name, test_two, test_operand)
#define MAKE_PICK(name, condition)                                                                 \
    LKSI_ITEM(name, in[0], in[1], in[2], out[0])                                                   \
    REF_LOOP(name, a[k * sa], b[k * sb], dy[k])                                                    \
    DESCRIBE(name, 3, grad_pick, test_three, NULL)

LKS_BINARY(MAKE)
LKS_BINARY_PICK(MAKE_PICK)

#define LIST(name, f) &op_##name,
const struct lksi_op *const lksi_ops_binary[] = {LKS_BINARY(LIST) LKS_BINARY_PICK(LIST) NULL};
