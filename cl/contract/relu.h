/*
 * relu.h - contract of relu and relu_grad.
 *
 * relu:       y = x <= 0 ? +0 : x
 * relu_grad:  dx = y <= 0 ? +0 : dy, where y is the output (or the input) of a relu
 *
 * 1. One comparison and one select an element; nothing rounds, so the error is 0.
 * Special values: -0 gives +0; the gradient at 0 is +0; a NaN passes (it is not <= 0).
 */
#ifndef LKS_CONTRACT_RELU_H
#define LKS_CONTRACT_RELU_H

#include "contract/num.h"

struct relu_dims {
    U64 n; /* elements */
};

LKS_INLINE void relu_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL F32 *y,
                          LKS_CONST struct relu_dims *d, U64 i)
{
    F32 v = x[i];
    (void)d;
    y[i] = v <= 0.0f ? 0.0f : v;
}

LKS_INLINE void relu_grad_item(LKS_GLOBAL LKS_CONST F32 *y, LKS_GLOBAL LKS_CONST F32 *dy,
                               LKS_GLOBAL F32 *dx, LKS_CONST struct relu_dims *d, U64 i)
{
    F32 v = y[i];
    F32 g = dy[i];
    (void)d;
    dx[i] = v <= 0.0f ? 0.0f : g;
}

#endif
