/*
 * stop_gradient.h - contract of stop_gradient: y = x, and no gradient flows back through it.
 *
 * 1. Each element is copied bit for bit. A plan makes y a view of x and launches nothing; the item
 *    below serves checks alone.
 */
#ifndef LKS_CONTRACT_STOP_GRADIENT_H
#define LKS_CONTRACT_STOP_GRADIENT_H

#include "contract/num.h"

struct stop_gradient_dims {
    U64 n; /* elements */
};

LKS_INLINE void stop_gradient_item(LKS_GLOBAL LKS_CONST U32 *x, LKS_GLOBAL U32 *y,
                                   LKS_CONST struct stop_gradient_dims *d, U64 i)
{
    (void)d;
    y[i] = x[i];
}

#endif
