/*
 * lamb.h - contract of lamb_direction and lamb_apply (numerics.md, rule 16): LAMB in three
 * operators; between these two, segment_norm takes the norms of p and u of each parameter.
 * update.h says which elements, and where their numbers stand.
 *
 * lamb_direction, m and v in place; u is new:
 *   1. m = fma(c1, grad - m, m)
 *   2. v = fma(c2 * grad, grad, b2 * v)
 *   3. u = fma(wd, p, (m * r1) / fma(sqrt(v), r2, eps))       +0 where nothing is to be done
 * lamb_apply, p in place; tensor[b] is the parameter of block b:
 *   4. trust = |p| / |u| of the parameter; 1 if one of them is 0
 *   5. p = fma(-lr * trust, u, p)
 * hyper: [0] lr, [1] c1 = 1 - beta1, [2] b2 = beta2, [3] c2 = 1 - beta2, [4] r2 = 1 / sqrt(1 -
 * beta2^t), [5] eps, [6] wd, [7] r1 = 1 / (1 - beta1^t); each computed in double and rounded once.
 * Every operation rounds once. Special values follow IEEE-754; eps > 0 keeps the divisor above 0.
 */
#ifndef LKS_CONTRACT_LAMB_H
#define LKS_CONTRACT_LAMB_H

#include "contract/update.h"

/* *u holds the parameter and receives the direction. */
LKS_INLINE void lamb_direction_one(F32 g, F32 *u, F32 *m, F32 *v, LKS_CONST F32 *h)
{
    *m = lks_fma(h[1], g - *m, *m);
    *v = lks_fma(h[3] * g, g, h[2] * *v);
    *u = lks_fma(h[6], *u, lks_div(*m * h[7], lks_fma(lks_sqrt(*v), h[4], h[5])));
}

LKS_INLINE F32 lamb_trust(F32 norm_p, F32 norm_u)
{
    return norm_p > 0.0f && norm_u > 0.0f ? lks_div(norm_p, norm_u) : 1.0f;
}

LKS_INLINE void lamb_direction_item(LKS_GLOBAL LKS_CONST F32 *param,
                                    LKS_GLOBAL LKS_CONST F32 *grad,
                                    LKS_GLOBAL LKS_CONST F32 *first,
                                    LKS_GLOBAL LKS_CONST F32 *second,
                                    LKS_GLOBAL LKS_CONST F32 *hyper,
                                    LKS_GLOBAL LKS_CONST I32 *flag,
                                    LKS_GLOBAL LKS_CONST I32 *group, LKS_GLOBAL F32 *u_out,
                                    LKS_GLOBAL F32 *first_out, LKS_GLOBAL F32 *second_out,
                                    LKS_CONST struct update_dims *d, U64 i)
{
    F32 h[LKS_UPDATE_HYPER], u = param[i], m = first[i], v = second[i];
    (void)d;
    if (lks_update_row(hyper, flag, group, i, h))
        lamb_direction_one(grad[i], &u, &m, &v, h);
    else
        u = 0.0f;
    u_out[i] = u;
    first_out[i] = m;
    second_out[i] = v;
}

LKS_INLINE void lamb_apply_item(LKS_GLOBAL LKS_CONST F32 *param, LKS_GLOBAL LKS_CONST F32 *u,
                                LKS_GLOBAL LKS_CONST F32 *norm_p,
                                LKS_GLOBAL LKS_CONST F32 *norm_u,
                                LKS_GLOBAL LKS_CONST F32 *hyper, LKS_GLOBAL LKS_CONST I32 *flag,
                                LKS_GLOBAL LKS_CONST I32 *group,
                                LKS_GLOBAL LKS_CONST I32 *tensor, LKS_GLOBAL F32 *param_out,
                                LKS_CONST struct update_dims *d, U64 i)
{
    F32 h[LKS_UPDATE_HYPER], p = param[i];
    U64 t = (U64)(U32)tensor[i / LKS_UPDATE_BLOCK];
    (void)d;
    if (lks_update_row(hyper, flag, group, i, h))
        p = lks_fma(-h[0] * lamb_trust(norm_p[t], norm_u[t]), u[i], p);
    param_out[i] = p;
}

#endif
