/*
 * fill.h - contract of fill: y[i] = value.
 *
 * 1. Each element is the value of the attribute, bit for bit. The seed gradient 1.0 is one.
 */
#ifndef LKS_CONTRACT_FILL_H
#define LKS_CONTRACT_FILL_H

#include "contract/num.h"

struct fill_dims {
    U64 n; /* elements */
    F32 value;
    U32 unused;
};

LKS_INLINE void fill_item(LKS_GLOBAL F32 *y, LKS_CONST struct fill_dims *d, U64 i)
{
    y[i] = d->value;
}

#endif
