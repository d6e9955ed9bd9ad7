/*
 * adam.h - contract of adam (numerics.md, rule 16): Adam, and AdamW with its decoupled decay, in
 * place. update.h says which elements, and where their numbers stand.
 *
 *   1. g = fma(wd, p, grad)
 *   2. m = fma(c1, g - m, m)
 *   3. v = fma(c2 * g, g, b2 * v)
 *   4. d = fma(sqrt(v), r2, eps)
 *   5. p = fma(-step, m / d, p * keep)
 * hyper: [0] step = lr / (1 - beta1^t), [1] c1 = 1 - beta1, [2] b2 = beta2, [3] c2 = 1 - beta2,
 * [4] r2 = 1 / sqrt(1 - beta2^t), [5] eps, [6] wd (of Adam, else 0), [7] keep = 1 - lr * weight
 * decay (of AdamW, else 1); each computed in double and rounded once. t counts updates from 1.
 * Every operation rounds once; v stays +0 or more. Special values follow IEEE-754; eps > 0 keeps
 * d above 0.
 */
#ifndef LKS_CONTRACT_ADAM_H
#define LKS_CONTRACT_ADAM_H

#include "contract/update.h"

LKS_INLINE void adam_one(F32 grad, F32 *p, F32 *m, F32 *v, LKS_CONST F32 *h)
{
    F32 g = lks_fma(h[6], *p, grad), d;
    *m = lks_fma(h[1], g - *m, *m);
    *v = lks_fma(h[3] * g, g, h[2] * *v);
    d = lks_fma(lks_sqrt(*v), h[4], h[5]);
    *p = lks_fma(-h[0], lks_div(*m, d), *p * h[7]);
}

LKS_INLINE void adam_item(LKS_GLOBAL LKS_CONST F32 *param, LKS_GLOBAL LKS_CONST F32 *grad,
                          LKS_GLOBAL LKS_CONST F32 *first, LKS_GLOBAL LKS_CONST F32 *second,
                          LKS_GLOBAL LKS_CONST F32 *hyper, LKS_GLOBAL LKS_CONST I32 *flag,
                          LKS_GLOBAL LKS_CONST I32 *group, LKS_GLOBAL F32 *param_out,
                          LKS_GLOBAL F32 *first_out, LKS_GLOBAL F32 *second_out,
                          LKS_CONST struct update_dims *d, U64 i)
{
    F32 h[LKS_UPDATE_HYPER], p = param[i], m = first[i], v = second[i];
    (void)d;
    if (lks_update_row(hyper, flag, group, i, h))
        adam_one(grad[i], &p, &m, &v, h);
    param_out[i] = p;
    first_out[i] = m;
    second_out[i] = v;
}

#endif
