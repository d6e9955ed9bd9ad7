/*
 * sample_mean.h - contracts of sample_mean and sample_mean_grad: the mean over each sample (rule 6).
 *
 * sample_mean:       y[n] = (sum of x[n, ...]) * scale, scale = (F32)(1.0 / f), f elements a sample
 *   1. The elements are one row: 32 lanes and a tree, in pieces of 4096 (sum.h).
 *   2. + 0.0f.
 *   3. times scale; 1.0f for a sum (`sum` in the attributes).
 * sample_mean_grad:  dx[n, ...] = dy[n] * scale, in the shape of `like`
 * Special values follow IEEE-754. Error bound: (depth of the row + 2) roundings over the magnitudes.
 */
#ifndef LKS_CONTRACT_SAMPLE_MEAN_H
#define LKS_CONTRACT_SAMPLE_MEAN_H

#include "contract/num.h"
#include "contract/sum.h"

struct sample_mean_dims {
    U64 f; /* elements a sample */
    F32 scale;
    U32 unused;
};

LKS_INLINE void sample_mean_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL F32 *y,
                                 LKS_CONST struct sample_mean_dims *d, U64 n)
{
    y[n] = lks_final(lks_row_sum(x + n * d->f, 1u, d->f)) * d->scale;
}

LKS_INLINE void sample_mean_grad_item(LKS_GLOBAL LKS_CONST F32 *dy, LKS_GLOBAL LKS_CONST U32 *like,
                                      LKS_GLOBAL F32 *dx, LKS_CONST struct sample_mean_dims *d,
                                      U64 i)
{
    (void)like;
    dx[i] = dy[i / d->f] * d->scale;
}

#endif
