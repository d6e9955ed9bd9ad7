/*
 * batch_norm_second.c - the gradient of batch_norm_grad, made of operators that exist, and
 * batch_norm_infer_grad, which stands for batch_norm_grad in an evaluation.
 *
 * For each channel, with g = dy, M positions, xhat = (x - mean) * invstd and P(v) = invstd * (v -
 * mean(v) - xhat * mean(v * xhat)), which is what batch_norm_grad gives for v where gamma is 1:
 *
 *     dx = gamma * P(g), dgamma = sum(g * xhat), dbeta = sum(g)
 *
 * Let u, v, w be what flows back into these three. As sum(P(g) * u) = sum(g * P(u)) and as P is the
 * derivative of xhat for x, too,
 *
 *     into g:      gamma * P(u) + v * xhat + w
 *     into gamma:  sum(g * P(u))
 *     into x:      P(g) * v - k * (P(u) * mean(g * xhat) + P(g) * mean(u * xhat)
 *                                  + xhat * mean(g * P(u))),  k = gamma * invstd
 *
 * What flows through mean and invstd is in the last one.
 */
#include <string.h>

#include "contract/batch_norm_infer_grad.h"
#include "op/attr.h"
#include "op/batch_norm.h"
#include "op/reduce.h"
#include "op/shape.h"

LKSI_ITEM(batch_norm_infer_grad, in[0], in[1], in[2], out[0])

/* The parts of the formulas above. */
struct second {
    struct lksi_builder *b;
    const struct lksi_backward *g;
    lksi_value x, dy, mean, invstd, gamma, u, v, w;
    lksi_value one, xhat;
};

static lks_status mul(const struct second *s, lksi_value a, lksi_value b, lksi_value *y)
{
    return lksi_apply(s->b, "mul", NULL, y, a, b);
}

/* *sum = *sum + more, or `more` alone. */
static lks_status plus(const struct second *s, lksi_value *sum, lksi_value more)
{
    if (*sum != LKSI_NONE)
        return lksi_apply(s->b, "add", NULL, sum, *sum, more);
    *sum = more;
    return LKS_OK;
}

static unsigned all_but_channels(const struct second *s)
{
    return (1u << (s->g->call->in[0].rank - 1)) - 1u;
}

/* Of a * b over all axes but the channels: "sum_samples" or "mean_samples". */
static lks_status over(const struct second *s, const char *op, lksi_value a, lksi_value b,
                       lksi_value *y)
{
    struct lksi_reduce_attr axes;
    lks_status st = mul(s, a, b, y);
    memset(&axes, 0, sizeof axes);
    axes.axes = all_but_channels(s);
    return st == LKS_OK ? lksi_apply(s->b, op, &axes, y, *y) : st;
}

static lks_status project(const struct second *s, lksi_value v, lksi_value *y)
{
    lksi_value three[3];
    lks_status st = lksi_apply(s->b, "batch_norm_grad", s->g->call->attr, three, s->x, v, s->mean,
                               s->invstd, s->one);
    *y = three[0];
    return st;
}

static lks_status begin(struct second *s)
{
    lks_status st = lksi_apply(s->b, "equal", NULL, &s->one, s->gamma, s->gamma);
    if (st == LKS_OK)
        st = lksi_apply(s->b, "sub", NULL, &s->xhat, s->x, s->mean);
    return st == LKS_OK ? mul(s, s->xhat, s->invstd, &s->xhat) : st;
}

/* Into dy; pu is P(u) or LKSI_NONE. */
static lks_status into_dy(const struct second *s, lksi_value pu, lksi_value *y)
{
    lksi_value t;
    lks_status st = LKS_OK;
    if (pu != LKSI_NONE)
        LKSI_TRY(mul(s, pu, s->gamma, y));
    if (s->v != LKSI_NONE) {
        LKSI_TRY(mul(s, s->xhat, s->v, &t));
        LKSI_TRY(plus(s, y, t));
    }
    if (s->w != LKSI_NONE) {
        LKSI_TRY(lksi_expand(s->b, s->w, s->dy, all_but_channels(s), false, &t));
        LKSI_TRY(plus(s, y, t));
    }
fail:
    return st;
}

static lks_status into_x(const struct second *s, lksi_value pu, lksi_value *y)
{
    struct lksi_unary_attr none;
    lksi_value pg, k, at, t, rest;
    lks_status st = LKS_OK;
    if (s->u == LKSI_NONE && s->v == LKSI_NONE)
        return LKS_OK;
    memset(&none, 0, sizeof none);
    LKSI_TRY(project(s, s->dy, &pg));
    if (s->u == LKSI_NONE)
        return mul(s, pg, s->v, y);
    LKSI_TRY(mul(s, s->gamma, s->invstd, &k));
    LKSI_TRY(over(s, "mean_samples", s->dy, s->xhat, &at));
    LKSI_TRY(mul(s, pu, at, &rest));
    LKSI_TRY(over(s, "mean_samples", s->dy, pu, &at));
    LKSI_TRY(mul(s, s->xhat, at, &t));
    LKSI_TRY(lksi_apply(s->b, "add", NULL, &rest, rest, t));
    LKSI_TRY(mul(s, rest, k, &rest));
    LKSI_TRY(over(s, "mean_samples", s->u, s->xhat, &at));
    LKSI_TRY(mul(s, k, at, &t));
    LKSI_TRY(mul(s, pg, t, &t));
    LKSI_TRY(lksi_apply(s->b, "add", NULL, &rest, rest, t));
    if (s->v == LKSI_NONE)
        return lksi_apply(s->b, "neg", &none, y, rest);
    LKSI_TRY(mul(s, pg, s->v, &t));
    LKSI_TRY(lksi_apply(s->b, "sub", NULL, y, t, rest));
fail:
    return st;
}

lks_status lksi_batch_norm_second(const struct lksi_backward *g)
{
    const lksi_value *in = g->in, *dout = g->dout;
    struct second s = {.b = g->b, .g = g, .x = in[0], .dy = in[1], .mean = in[2],
                       .invstd = in[3], .gamma = in[4], .u = dout[0], .v = dout[1], .w = dout[2]};
    lksi_value pu = LKSI_NONE;
    lks_status st;
    LKSI_TRY(begin(&s));
    if (s.u != LKSI_NONE)
        LKSI_TRY(project(&s, s.u, &pu));
    if (g->need[0])
        LKSI_TRY(into_x(&s, pu, &g->din[0]));
    if (g->need[1])
        LKSI_TRY(into_dy(&s, pu, &g->din[1]));
    if (g->need[4] && pu != LKSI_NONE)
        LKSI_TRY(over(&s, "sum_samples", s.dy, pu, &g->din[4]));
fail:
    return st;
}

/* ---- in an evaluation ---- */

static lks_status infer(struct lksi_call *call)
{
    static const char *const what[] = {"gamma", "the variance"};
    lks_status st = lksi_batch_norm_want(call);
    for (int i = 1; i < 3 && st == LKS_OK; i++)
        st = lksi_want_desc(call, i, what[i - 1], lksi_desc_make(LKSI_F32, 1,
                                                call->in[0].dim[call->in[0].rank - 1]));
    if (st == LKS_OK)
        call->out[0] = call->in[0];
    return st;
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const int64_t shape[][4] = {{1, 0, 0, 1}, {5, 0, 0, 17}, {64, 0, 0, 33}, {3, 4, 5, 16},
                                       {2, 7, 9, 31}, {64, 28, 28, 64}};
    if (index >= (int)LKSI_COUNT(shape) - (long_run ? 0 : 1))
        return false;
    const int64_t *d = shape[index];
    call->n_in = 3;
    call->leaf = 8;
    call->in[0] = d[1] == 0 ? lksi_desc_make(LKSI_F32, 2, d[0], d[3])
                            : lksi_desc_make(LKSI_F32, 4, d[0], d[1], d[2], d[3]);
    call->in[1] = call->in[2] = lksi_desc_make(LKSI_F32, 1, d[3]);
    ((struct lksi_batch_norm_attr *)attr)->eps = index % 2 == 0 ? 1e-5f : 0.25f;
    return true;
}

/* A variance is not negative. */
static uint32_t test_input(const struct lksi_call *call, int index, uint32_t bits)
{
    (void)call;
    return index == 2 ? bits & 0x7fffffffu : bits;
}

static const struct lksi_op batch_norm_infer_grad = {
    .name = "batch_norm_infer_grad",
    .contract = "contract/batch_norm_infer_grad.h",
    .dims = "batch_norm_dims",
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_batch_norm_attr),
    .infer = infer,
    .item = batch_norm_infer_grad_item_c,
    .test_case = test_case,
    .test_input = test_input,
};

const struct lksi_op *const lksi_ops_batch_norm_second[] = {&batch_norm_infer_grad, NULL};
