/*
 * loss_sum.h - contracts of the last steps of a loss, all of them one number.
 *
 * loss_sum:       y = w0 a0 + w1 a1 + ... for up to 6 terms
 *   1. acc = +0; acc = fma(w_k, a_k, acc) for k upward; + 0.0f.
 * loss_sum_grad:  da = w dy. One product.
 * loss_ratio:     y = a / b, one division: the weighted mean from two means
 * loss_ratio_grad: db = 0 - (dy y) / b, one product, one division; da is loss_ratio of dy and b
 * Special values follow IEEE-754: 0 / 0 is a NaN. Error bound: 6 roundings over the magnitudes; half
 * an ulp for the others.
 */
#ifndef LKS_CONTRACT_LOSS_SUM_H
#define LKS_CONTRACT_LOSS_SUM_H

#include "contract/num.h"

struct loss_sum_dims {
    U32 n;
    F32 w[6];
};

LKS_INLINE void loss_sum_item(LKS_GLOBAL LKS_CONST F32 *a0, LKS_GLOBAL LKS_CONST F32 *a1,
                              LKS_GLOBAL LKS_CONST F32 *a2, LKS_GLOBAL LKS_CONST F32 *a3,
                              LKS_GLOBAL LKS_CONST F32 *a4, LKS_GLOBAL LKS_CONST F32 *a5,
                              LKS_GLOBAL F32 *y, LKS_CONST struct loss_sum_dims *d, U64 i)
{
    F32 acc = lks_fma(d->w[0], a0[0], 0.0f);
    if (d->n > 1u)
        acc = lks_fma(d->w[1], a1[0], acc);
    if (d->n > 2u)
        acc = lks_fma(d->w[2], a2[0], acc);
    if (d->n > 3u)
        acc = lks_fma(d->w[3], a3[0], acc);
    if (d->n > 4u)
        acc = lks_fma(d->w[4], a4[0], acc);
    if (d->n > 5u)
        acc = lks_fma(d->w[5], a5[0], acc);
    y[i] = acc + 0.0f;
}

LKS_INLINE void loss_sum_grad_item(LKS_GLOBAL LKS_CONST F32 *dy, LKS_GLOBAL F32 *da,
                                   LKS_CONST struct loss_sum_dims *d, U64 i)
{
    da[i] = d->w[0] * dy[i];
}

LKS_INLINE void loss_ratio_item(LKS_GLOBAL LKS_CONST F32 *a, LKS_GLOBAL LKS_CONST F32 *b,
                                LKS_GLOBAL F32 *y, LKS_CONST struct loss_sum_dims *d, U64 i)
{
    (void)d;
    y[i] = lks_div(a[i], b[i]);
}

LKS_INLINE void loss_ratio_grad_item(LKS_GLOBAL LKS_CONST F32 *dy, LKS_GLOBAL LKS_CONST F32 *y,
                                     LKS_GLOBAL LKS_CONST F32 *b, LKS_GLOBAL F32 *db,
                                     LKS_CONST struct loss_sum_dims *d, U64 i)
{
    (void)d;
    db[i] = 0.0f - lks_div(dy[i] * y[i], b[i]);
}

#endif
