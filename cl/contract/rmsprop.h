/*
 * rmsprop.h - contract of rmsprop and rmsprop_centered (numerics.md, rule 16), in place. update.h
 * says which elements, and where their numbers stand.
 *
 *   1. g = fma(wd, p, grad)
 *   2. s = fma(ca * g, g, a * s)
 *   3. rmsprop:           r = s
 *      rmsprop_centered:  e = fma(ca, g - e, e);  r = fma(-e, e, s), +0 where that is not above 0
 *   4. m = fma(mu, m, g / (sqrt(r) + eps))
 *   5. p = fma(-lr, m, p)
 * hyper: [0] lr, [1] mu (momentum), [2] wd, [3] a = alpha, [4] ca = 1 - alpha, [5] eps; each
 * rounded from double once. Every operation rounds once; s stays +0 or more. Special values follow
 * IEEE-754; eps > 0 keeps the divisor above 0.
 */
#ifndef LKS_CONTRACT_RMSPROP_H
#define LKS_CONTRACT_RMSPROP_H

#include "contract/update.h"

/* The end of both: r is the mean of squares, or the variance. */
LKS_INLINE void rmsprop_end(F32 g, F32 r, F32 *p, F32 *m, LKS_CONST F32 *h)
{
    *m = lks_fma(h[1], *m, lks_div(g, lks_sqrt(r) + h[5]));
    *p = lks_fma(-h[0], *m, *p);
}

LKS_INLINE void rmsprop_one(F32 grad, F32 *p, F32 *s, F32 *m, LKS_CONST F32 *h)
{
    F32 g = lks_fma(h[2], *p, grad);
    *s = lks_fma(h[4] * g, g, h[3] * *s);
    rmsprop_end(g, *s, p, m, h);
}

LKS_INLINE void rmsprop_centered_one(F32 grad, F32 *p, F32 *s, F32 *m, F32 *e, LKS_CONST F32 *h)
{
    F32 g = lks_fma(h[2], *p, grad), r;
    *s = lks_fma(h[4] * g, g, h[3] * *s);
    *e = lks_fma(h[4], g - *e, *e);
    r = lks_fma(-*e, *e, *s);
    rmsprop_end(g, r > 0.0f ? r : 0.0f, p, m, h);
}

LKS_INLINE void rmsprop_item(LKS_GLOBAL LKS_CONST F32 *param, LKS_GLOBAL LKS_CONST F32 *grad,
                             LKS_GLOBAL LKS_CONST F32 *square, LKS_GLOBAL LKS_CONST F32 *momentum,
                             LKS_GLOBAL LKS_CONST F32 *hyper, LKS_GLOBAL LKS_CONST I32 *flag,
                             LKS_GLOBAL LKS_CONST I32 *group, LKS_GLOBAL F32 *param_out,
                             LKS_GLOBAL F32 *square_out, LKS_GLOBAL F32 *momentum_out,
                             LKS_CONST struct update_dims *d, U64 i)
{
    F32 h[LKS_UPDATE_HYPER], p = param[i], s = square[i], m = momentum[i];
    (void)d;
    if (lks_update_row(hyper, flag, group, i, h))
        rmsprop_one(grad[i], &p, &s, &m, h);
    param_out[i] = p;
    square_out[i] = s;
    momentum_out[i] = m;
}

LKS_INLINE void rmsprop_centered_item(
    LKS_GLOBAL LKS_CONST F32 *param, LKS_GLOBAL LKS_CONST F32 *grad,
    LKS_GLOBAL LKS_CONST F32 *square, LKS_GLOBAL LKS_CONST F32 *momentum,
    LKS_GLOBAL LKS_CONST F32 *mean, LKS_GLOBAL LKS_CONST F32 *hyper,
    LKS_GLOBAL LKS_CONST I32 *flag, LKS_GLOBAL LKS_CONST I32 *group, LKS_GLOBAL F32 *param_out,
    LKS_GLOBAL F32 *square_out, LKS_GLOBAL F32 *momentum_out, LKS_GLOBAL F32 *mean_out,
    LKS_CONST struct update_dims *d, U64 i)
{
    F32 h[LKS_UPDATE_HYPER], p = param[i], s = square[i], m = momentum[i], e = mean[i];
    (void)d;
    if (lks_update_row(hyper, flag, group, i, h))
        rmsprop_centered_one(grad[i], &p, &s, &m, &e, h);
    param_out[i] = p;
    square_out[i] = s;
    momentum_out[i] = m;
    mean_out[i] = e;
}

#endif
