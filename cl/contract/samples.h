/*
 * samples.h - contracts of samples and samples_grad: some neighbouring samples of a batch.
 *
 * samples:       y = x[first .. first + count) along dimension 0. Each element is copied bit for bit.
 * samples_grad:  dx[n] = n in [first, first + count) ? dy[n - first] : +0; dx has the shape of `like`.
 *
 * 1. Nothing rounds, so the error is 0.
 */
#ifndef LKS_CONTRACT_SAMPLES_H
#define LKS_CONTRACT_SAMPLES_H

#include "contract/num.h"

struct samples_dims {
    U64 begin, end; /* elements of x or dx before the samples, and up to their end */
};

LKS_INLINE void samples_item(LKS_GLOBAL LKS_CONST U32 *x, LKS_GLOBAL U32 *y,
                             LKS_CONST struct samples_dims *d, U64 i)
{
    y[i] = x[d->begin + i];
}

LKS_INLINE void samples_grad_item(LKS_GLOBAL LKS_CONST F32 *dy, LKS_GLOBAL LKS_CONST F32 *like,
                                  LKS_GLOBAL F32 *dx, LKS_CONST struct samples_dims *d, U64 i)
{
    (void)like;
    dx[i] = 0.0f;
    if (i >= d->begin && i < d->end)
        dx[i] = dy[i - d->begin];
}

#endif
