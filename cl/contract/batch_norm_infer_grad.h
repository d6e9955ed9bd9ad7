/*
 * batch_norm_infer_grad.h - contract of batch_norm_infer_grad, which stands for batch_norm_grad in
 * an evaluation, where the statistics are constants.
 *
 * dx = (gamma * invstd) * dy, invstd = 1 / sqrt(variance + eps) as in batch_norm.h, step 5.
 *   1. One product a channel, one an element.
 * Special values follow IEEE-754. Error bound: 6 * 2^-24 of the result.
 */
#ifndef LKS_CONTRACT_BATCH_NORM_INFER_GRAD_H
#define LKS_CONTRACT_BATCH_NORM_INFER_GRAD_H

#include "contract/batch_norm.h"
#include "contract/num.h"

LKS_INLINE void batch_norm_infer_grad_item(LKS_GLOBAL LKS_CONST F32 *dy,
                                           LKS_GLOBAL LKS_CONST F32 *gamma,
                                           LKS_GLOBAL LKS_CONST F32 *variance, LKS_GLOBAL F32 *dx,
                                           LKS_CONST struct batch_norm_dims *d, U64 i)
{
    U64 c = i % d->c;
    dx[i] = gamma[c] * lks_norm_invstd(variance[c], d->eps) * dy[i];
}

#endif
