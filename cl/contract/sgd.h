/*
 * sgd.h - contract of sgd (numerics.md, rule 16): momentum and weight decay, in place.
 *
 * For every element, if flag[0] == 0 (else nothing changes):
 *   1. g = fma(wd, p, grad)
 *   2. m = fma(mu, m, g)
 *   3. p = fma(-lr, m, p)
 * hyper: [0] lr, [1] mu (momentum), [2] wd (weight decay), [3] to [7] not read.
 * Three roundings; the error of p is 0.5 ulp of each step's result. Special values follow IEEE-754.
 */
#ifndef LKS_CONTRACT_SGD_H
#define LKS_CONTRACT_SGD_H

#include "contract/num.h"

struct sgd_dims {
    U64 n; /* elements */
};

LKS_INLINE void sgd_item(LKS_GLOBAL LKS_CONST F32 *param, LKS_GLOBAL LKS_CONST F32 *grad,
                         LKS_GLOBAL LKS_CONST F32 *momentum, LKS_GLOBAL LKS_CONST F32 *hyper,
                         LKS_GLOBAL LKS_CONST I32 *flag, LKS_GLOBAL F32 *param_out,
                         LKS_GLOBAL F32 *momentum_out, LKS_CONST struct sgd_dims *d, U64 i)
{
    F32 p = param[i], m = momentum[i];
    F32 g = lks_fma(hyper[2], p, grad[i]);
    F32 m1 = lks_fma(hyper[1], m, g);
    F32 p1 = lks_fma(-hyper[0], m1, p);
    (void)d;
    param_out[i] = flag[0] != 0 ? p : p1;
    momentum_out[i] = flag[0] != 0 ? m : m1;
}

#endif
