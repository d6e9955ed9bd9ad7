/*
 * layer_arithmetic.c - operators on two values, on a value and a number, and on a value and a
 * parameter a channel.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/stream.h"
#include "graph/layer_shape.h"
#include "op/attr.h"

/* ---- two values ---- */

/* Samples of fewer dimensions get leading ones: [N,C] becomes [N,1,1,C] beside an image. */
static lks_status align(lks_graph *g, const char *op, lks_value *x, int rank)
{
    const struct lksi_desc *d = &g->value[*x].desc;
    struct lksi_reshape_attr attr;
    lksi_value out;
    if (d->rank == rank)
        return LKS_OK;
    memset(&attr, 0, sizeof attr);
    attr.rank = rank;
    attr.dim[0] = -1;
    for (int k = 1; k < rank; k++)
        attr.dim[k] = k > rank - d->rank ? d->dim[k - (rank - d->rank)] : 1;
    lks_status st = lksi_graph_add_node(g, op, "reshape", &attr, 1, x, &out);
    if (st == LKS_OK)
        *x = out;
    return st;
}

/* In the words of one sample, and of the layer. */
static lks_status check_fit(const lks_graph *g, const char *op, lks_value a, lks_value b)
{
    struct lksi_desc d = lksi_sample(g, a), e = lksi_sample(g, b);
    char one[96], two[96];
    if (d.dtype != LKSI_F32 || e.dtype != LKSI_F32)
        return lksi_fail(LKS_E_ARGUMENT, "%s: it takes floats, not tokens", op);
    for (int k = 1; k <= d.rank && k <= e.rank; k++) {
        int64_t i = d.dim[d.rank - k], j = e.dim[e.rank - k];
        if (i != j && i != 1 && j != 1)
            return lksi_fail(LKS_E_ARGUMENT, "%s: %s and %s do not fit; from the last to the first, "
                                             "sizes must be equal, or one of them 1",
                             op, lksi_desc_text(&d, one), lksi_desc_text(&e, two));
    }
    return LKS_OK;
}

static lks_status apply_two(lks_graph *g, const char *op, lks_value a, lks_value b, lks_value *y)
{
    lksi_value in[2] = {a, b}, out;
    lks_status st = lksi_layer_check(g, op, a, y);
    if (st == LKS_OK)
        st = lksi_layer_check(g, op, b, y);
    if (st == LKS_OK)
        st = check_fit(g, op, a, b);
    if (st != LKS_OK)
        return st;
    int m = g->value[a].desc.rank, n = g->value[b].desc.rank;
    for (int k = 0; k < 2 && st == LKS_OK; k++)
        st = align(g, op, &in[k], m > n ? m : n);
    if (st != LKS_OK)
        return st;
    bool same = lksi_desc_equal(&g->value[in[0]].desc, &g->value[in[1]].desc);
    if (strcmp(op, "add") == 0 && !same)
        st = lksi_graph_add_node(g, op, "add_wide", NULL, 2, in, &out);
    else
        st = lksi_graph_add_node(g, op, op, NULL, 2, in, &out);
    if (st == LKS_OK)
        *y = out;
    return st;
}

#define TWO(name)                                                                                  \
    lks_status lks_graph_##name(lks_graph *g, lks_value a, lks_value b, lks_value *y)              \
    {                                                                                              \
        LKSI_RETURN_WHOLE(g, apply_two(g, #name, a, b, y));                                        \
    }
TWO(add)
TWO(sub)
TWO(mul)
TWO(div)
TWO(maximum)
TWO(minimum)
TWO(equal)
TWO(greater)
TWO(less)
TWO(pow)

/* ---- a value and a number ---- */

static lks_status apply_number(lks_graph *g, const char *op, lks_value x, double number,
                               lks_value *y)
{
    struct lksi_unary_attr attr = {(float)number, 0.0f};
    lks_status st = lksi_layer_check(g, op, x, y);
    if (st == LKS_OK && !(fabs(number) <= (double)FLT_MAX))
        return lksi_fail(LKS_E_ARGUMENT, "%s: the number is %g, a finite one wanted", op, number);
    return st == LKS_OK ? lksi_layer_apply(g, NULL, op, &attr, 1, &x, y) : st;
}

lks_status lks_graph_add_number(lks_graph *g, lks_value x, double number, lks_value *y)
{
    return apply_number(g, "add_const", x, number, y);
}

lks_status lks_graph_mul_number(lks_graph *g, lks_value x, double number, lks_value *y)
{
    return apply_number(g, "mul_const", x, number, y);
}

lks_status lks_graph_div_number(lks_graph *g, lks_value x, double number, lks_value *y)
{
    if ((float)number == 0.0f)
        return lksi_fail(LKS_E_ARGUMENT, "div_const: the number is %g, which is 0 as a float",
                         number);
    return apply_number(g, "div_const", x, number, y);
}

lks_status lks_graph_pow_number(lks_graph *g, lks_value x, double number, lks_value *y)
{
    return apply_number(g, "pow_const", x, number, y);
}

/* ---- a value and a parameter a channel ---- */

static lks_status channel_param(lks_graph *g, const char *prefix, const char *suffix, lks_value x,
                                const struct lks_channel_params *p, enum lksi_param_start start,
                                struct lksi_layer_head *l, lksi_value *param)
{
    const struct lksi_desc *d = &g->value[x].desc;
    int64_t channels = d->dim[d->rank - 1];
    struct lksi_desc one = lksi_desc_make(LKSI_F32, 1, channels);
    lksi_layer_begin(l, g, prefix, p != NULL ? p->name : NULL, p != NULL ? p->share : NULL);
    return lksi_layer_param(l, suffix, &one, channels, channels, start, param);
}

static lks_status apply_param(lks_graph *g, const char *prefix, const char *suffix, const char *op,
                              lks_value x, const struct lks_channel_params *p,
                              enum lksi_param_start start, lks_value *y)
{
    struct lksi_layer_head l;
    lksi_value in[2] = {x}, out;
    lks_status st = lksi_layer_check(g, prefix, x, y);
    if (st == LKS_OK)
        st = channel_param(g, prefix, suffix, x, p, start, &l, &in[1]);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, l.name, op, NULL, 2, in, &out);
    if (st == LKS_OK)
        *y = out;
    return st;
}

lks_status lks_graph_scale(lks_graph *g, lks_value x, const struct lks_channel_params *p,
                           lks_value *y)
{
    LKSI_RETURN_WHOLE(g, apply_param(g, "scale", "weight", "mul", x, p, LKSI_START_SCALE, y));
}

lks_status lks_graph_bias(lks_graph *g, lks_value x, const struct lks_channel_params *p,
                          lks_value *y)
{
    LKSI_RETURN_WHOLE(g, apply_param(g, "bias", "bias", "add_wide", x, p, LKSI_START_BIAS, y));
}

/* relu(x) + weight * min(x, 0): each element has one summand that is a zero. */
static lks_status prelu(lks_graph *g, lks_value x, const struct lks_channel_params *p, lks_value *y)
{
    struct lksi_unary_attr below = {-INFINITY, 0.0f};
    struct lksi_layer_head l;
    lksi_value weight = LKSI_NONE, part[2], low[2], out;
    lks_status st = lksi_layer_check(g, "prelu", x, y);
    if (st == LKS_OK)
        st = channel_param(g, "prelu", "weight", x, p, LKSI_START_QUARTER, &l, &weight);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, l.name, "relu", NULL, 1, &x, &part[0]);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, l.name, "clamp", &below, 1, &x, &low[0]);
    low[1] = weight;
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, l.name, "mul", NULL, 2, low, &part[1]);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, l.name, "add", NULL, 2, part, &out);
    if (st == LKS_OK)
        *y = out;
    return st;
}

lks_status lks_graph_prelu(lks_graph *g, lks_value x, const struct lks_channel_params *p,
                           lks_value *y)
{
    LKSI_RETURN_WHOLE(g, prelu(g, x, p, y));
}

/* ---- dropout ---- */

static lks_status dropout(lks_graph *g, lks_value x, const struct lks_dropout_params *p,
                          lks_value *y)
{
    struct lksi_dropout_attr attr;
    struct lksi_layer_head l;
    lksi_value in[2] = {x}, out;
    lks_status st = lksi_layer_check(g, "dropout", x, y);
    if (st != LKS_OK)
        return st;
    memset(&attr, 0, sizeof attr);
    attr.p = p != NULL ? p->p : 0.5;
    lksi_layer_begin(&l, g, "dropout", p != NULL ? p->name : NULL, NULL);
    attr.stream = lksi_stream_id("dropout", l.name);
    for (size_t i = 0; i < g->n_node; i++) {
        const struct lksi_call *c = &g->node[i].call;
        if (strcmp(c->op->name, "dropout") == 0 &&
            ((const struct lksi_dropout_attr *)c->attr)->stream == attr.stream)
            return lksi_fail(LKS_E_ARGUMENT, "dropout: `%s` and `%s` have one stream of random "
                                             "numbers; name it otherwise", g->node[i].name, l.name);
    }
    st = lksi_graph_step_value(g, &in[1]);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, l.name, "dropout", &attr, 2, in, &out);
    if (st == LKS_OK)
        *y = out;
    return st;
}

lks_status lks_graph_dropout(lks_graph *g, lks_value x, const struct lks_dropout_params *p,
                             lks_value *y)
{
    LKSI_RETURN_WHOLE(g, dropout(g, x, p, y));
}
