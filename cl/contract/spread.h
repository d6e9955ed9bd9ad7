/*
 * spread.h - contract of spread: y[i] = v[i mod c], in the shape of `like`, v being [c]. One number
 * for all elements, or one a channel; the gradient of bias_grad and of batch_sum.
 *
 * 1. Each element is copied bit for bit; the error is 0.
 */
#ifndef LKS_CONTRACT_SPREAD_H
#define LKS_CONTRACT_SPREAD_H

#include "contract/num.h"

struct spread_dims {
    U64 c;
};

LKS_INLINE void spread_item(LKS_GLOBAL LKS_CONST U32 *v, LKS_GLOBAL LKS_CONST U32 *like,
                            LKS_GLOBAL U32 *y, LKS_CONST struct spread_dims *d, U64 i)
{
    (void)like;
    y[i] = v[i % d->c];
}

#endif
