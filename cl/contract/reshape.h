/*
 * reshape.h - contract of reshape: y[i] = x[i] over flat indices; only the shape changes.
 *
 * 1. Each element is copied bit for bit. A plan makes y a view of x and launches nothing; the item
 *    below serves checks alone.
 */
#ifndef LKS_CONTRACT_RESHAPE_H
#define LKS_CONTRACT_RESHAPE_H

#include "contract/num.h"

struct reshape_dims {
    U64 n; /* elements */
};

LKS_INLINE void reshape_item(LKS_GLOBAL LKS_CONST U32 *x, LKS_GLOBAL U32 *y,
                             LKS_CONST struct reshape_dims *d, U64 i)
{
    (void)d;
    y[i] = x[i];
}

#endif
