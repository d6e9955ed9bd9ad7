/*
 * element_loss.h - contracts of element_loss and element_loss_grad: how far x is from a target t, for
 * each element. t is an input or one number. With d = x - t and a = |d|:
 *
 *   LKS_LOSS_MSE        d * d
 *   LKS_LOSS_L1         a
 *   LKS_LOSS_HUBER      a < beta ? (0.5 d) d : beta (a - 0.5 beta)
 *   LKS_LOSS_SMOOTH_L1  a < beta ? (0.5 d) d / beta : a - 0.5 beta
 *   LKS_LOSS_BCE        log(1 + exp(x)) - x t, as (max(x, 0) - x t) + log1p(exp(-|x|)): binary cross
 *                       entropy with the logit x
 *
 * 1. Every operation above is rounded by itself, in the order of the brackets, from left to right.
 * 2. element_loss_grad multiplies by dy last: mse (d dy) + (d dy); l1 sign(d) dy, 0 at d = 0; huber
 *    (a < beta ? d : beta sign(d)) dy; smooth_l1 (a < beta ? d / beta : sign(d)) dy; bce
 *    (sigmoid(x) - t) dy. With respect to the target: the negative of that; bce (0 - x) dy.
 * Special values follow IEEE-754. Error bound: 4 roundings, bce 1 ulp more for each function.
 */
#ifndef LKS_CONTRACT_ELEMENT_LOSS_H
#define LKS_CONTRACT_ELEMENT_LOSS_H

#include "contract/exp.h"
#include "contract/log.h"
#include "contract/num.h"
#include "contract/sigmoid.h"

#define LKS_LOSS_MSE       0u
#define LKS_LOSS_L1        1u
#define LKS_LOSS_HUBER     2u
#define LKS_LOSS_SMOOTH_L1 3u
#define LKS_LOSS_BCE       4u

struct element_loss_dims {
    U64 n; /* elements */
    U32 kind;
    U32 fixed;     /* the target is `target`, not the input */
    U32 of_target; /* the gradient with respect to the target */
    F32 target, beta;
    U32 unused;
};

LKS_INLINE F32 lks_element_loss(U32 kind, F32 beta, F32 x, F32 t)
{
    F32 d = x - t;
    F32 a = lks_abs(d);
    if (kind == LKS_LOSS_MSE)
        return d * d;
    if (kind == LKS_LOSS_L1)
        return a;
    if (kind == LKS_LOSS_HUBER)
        return a < beta ? 0.5f * d * d : beta * (a - 0.5f * beta);
    if (kind == LKS_LOSS_SMOOTH_L1)
        return a < beta ? lks_div(0.5f * d * d, beta) : a - 0.5f * beta;
    return (lks_select(x > 0.0f, x, 0.0f) - x * t) + lks_log1p(lks_exp(0.0f - lks_abs(x)));
}

/* The slope with respect to x; of mse half of it. */
LKS_INLINE F32 lks_element_slope(U32 kind, F32 beta, F32 x, F32 t)
{
    F32 d = x - t;
    F32 a = lks_abs(d);
    F32 sign = d > 0.0f ? 1.0f : d < 0.0f ? -1.0f : d;
    if (kind == LKS_LOSS_MSE)
        return d;
    if (kind == LKS_LOSS_L1)
        return sign;
    if (kind == LKS_LOSS_HUBER)
        return a < beta ? d : beta * sign;
    if (kind == LKS_LOSS_SMOOTH_L1)
        return a < beta ? lks_div(d, beta) : sign;
    return lks_sigmoid(x) - t;
}

LKS_INLINE void element_loss_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *t,
                                  LKS_GLOBAL F32 *y, LKS_CONST struct element_loss_dims *d, U64 i)
{
    y[i] = lks_element_loss(d->kind, d->beta, x[i], d->fixed ? d->target : t[i]);
}

LKS_INLINE void element_loss_grad_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *dy,
                                       LKS_GLOBAL LKS_CONST F32 *t, LKS_GLOBAL F32 *dx,
                                       LKS_CONST struct element_loss_dims *d, U64 i)
{
    F32 target = d->fixed ? d->target : t[i];
    F32 slope = lks_element_slope(d->kind, d->beta, x[i], target);
    F32 g;
    if (d->of_target)
        slope = d->kind == LKS_LOSS_BCE ? 0.0f - x[i] : 0.0f - slope;
    g = slope * dy[i];
    dx[i] = d->kind == LKS_LOSS_MSE ? g + g : g;
}

#endif
