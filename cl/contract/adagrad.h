/*
 * adagrad.h - contract of adagrad (numerics.md, rule 16), in place. update.h says which elements,
 * and where their numbers stand.
 *
 *   1. g = fma(wd, p, grad)
 *   2. s = fma(g, g, s)
 *   3. p = fma(-lr, g / (sqrt(s) + eps), p)
 * hyper: [0] lr, [2] wd, [5] eps; each computed in double and rounded once. Every operation rounds
 * once; s stays +0 or more. Special values follow IEEE-754; eps > 0 keeps the divisor above 0.
 */
#ifndef LKS_CONTRACT_ADAGRAD_H
#define LKS_CONTRACT_ADAGRAD_H

#include "contract/update.h"

LKS_INLINE void adagrad_one(F32 grad, F32 *p, F32 *s, LKS_CONST F32 *h)
{
    F32 g = lks_fma(h[2], *p, grad);
    *s = lks_fma(g, g, *s);
    *p = lks_fma(-h[0], lks_div(g, lks_sqrt(*s) + h[5]), *p);
}

LKS_INLINE void adagrad_item(LKS_GLOBAL LKS_CONST F32 *param, LKS_GLOBAL LKS_CONST F32 *grad,
                             LKS_GLOBAL LKS_CONST F32 *square, LKS_GLOBAL LKS_CONST F32 *hyper,
                             LKS_GLOBAL LKS_CONST I32 *flag, LKS_GLOBAL LKS_CONST I32 *group,
                             LKS_GLOBAL F32 *param_out, LKS_GLOBAL F32 *square_out,
                             LKS_CONST struct update_dims *d, U64 i)
{
    F32 h[LKS_UPDATE_HYPER], p = param[i], s = square[i];
    (void)d;
    if (lks_update_row(hyper, flag, group, i, h))
        adagrad_one(grad[i], &p, &s, h);
    param_out[i] = p;
    square_out[i] = s;
}

#endif
