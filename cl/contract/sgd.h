/*
 * sgd.h - contract of sgd and sgd_nesterov (numerics.md, rule 16): momentum and weight decay, in
 * place. update.h says which elements, and where their numbers stand.
 *
 *   1. g = fma(wd, p, grad)
 *   2. m = fma(mu, m, g)
 *   3. sgd:           p = fma(-lr, m, p)
 *      sgd_nesterov:  p = fma(-lr, fma(mu, m, g), p)
 * hyper: [0] lr, [1] mu (momentum), [2] wd (weight decay).
 * One rounding a line and one more in Nesterov's; the error of p is 0.5 ulp of each step's result.
 * Special values follow IEEE-754.
 */
#ifndef LKS_CONTRACT_SGD_H
#define LKS_CONTRACT_SGD_H

#include "contract/update.h"

LKS_INLINE void sgd_one(F32 grad, F32 *p, F32 *m, LKS_CONST F32 *h, I32 nesterov)
{
    F32 g = lks_fma(h[2], *p, grad);
    *m = lks_fma(h[1], *m, g);
    g = nesterov ? lks_fma(h[1], *m, g) : *m;
    *p = lks_fma(-h[0], g, *p);
}

LKS_INLINE void sgd_any(LKS_GLOBAL LKS_CONST F32 *param, LKS_GLOBAL LKS_CONST F32 *grad,
                        LKS_GLOBAL LKS_CONST F32 *momentum, LKS_GLOBAL LKS_CONST F32 *hyper,
                        LKS_GLOBAL LKS_CONST I32 *flag, LKS_GLOBAL LKS_CONST I32 *group,
                        LKS_GLOBAL F32 *param_out, LKS_GLOBAL F32 *momentum_out, U64 i,
                        I32 nesterov)
{
    F32 h[LKS_UPDATE_HYPER], p = param[i], m = momentum[i];
    if (lks_update_row(hyper, flag, group, i, h))
        sgd_one(grad[i], &p, &m, h, nesterov);
    param_out[i] = p;
    momentum_out[i] = m;
}

LKS_INLINE void sgd_item(LKS_GLOBAL LKS_CONST F32 *param, LKS_GLOBAL LKS_CONST F32 *grad,
                         LKS_GLOBAL LKS_CONST F32 *momentum, LKS_GLOBAL LKS_CONST F32 *hyper,
                         LKS_GLOBAL LKS_CONST I32 *flag, LKS_GLOBAL LKS_CONST I32 *group,
                         LKS_GLOBAL F32 *param_out, LKS_GLOBAL F32 *momentum_out,
                         LKS_CONST struct update_dims *d, U64 i)
{
    (void)d;
    sgd_any(param, grad, momentum, hyper, flag, group, param_out, momentum_out, i, 0);
}

LKS_INLINE void sgd_nesterov_item(LKS_GLOBAL LKS_CONST F32 *param, LKS_GLOBAL LKS_CONST F32 *grad,
                                  LKS_GLOBAL LKS_CONST F32 *momentum,
                                  LKS_GLOBAL LKS_CONST F32 *hyper, LKS_GLOBAL LKS_CONST I32 *flag,
                                  LKS_GLOBAL LKS_CONST I32 *group, LKS_GLOBAL F32 *param_out,
                                  LKS_GLOBAL F32 *momentum_out, LKS_CONST struct update_dims *d,
                                  U64 i)
{
    (void)d;
    sgd_any(param, grad, momentum, hyper, flag, group, param_out, momentum_out, i, 1);
}

#endif
