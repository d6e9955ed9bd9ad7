/*
 * pixels.h - contract of pixels: bytes as floats, by a table that the host computed in double and
 * rounded once (numerics.md, rule 1).
 *
 * y[i] = table[256 values][c]: element (b, i mod c), b being byte i of x. x holds four bytes a word,
 * the first in the lowest bits; y is channels-last with c channels.
 *
 * A copy: the error is 0.
 */
#ifndef LKS_CONTRACT_PIXELS_H
#define LKS_CONTRACT_PIXELS_H

#include "contract/num.h"

struct pixels_dims {
    U64 n; /* elements */
    U32 c;
};

LKS_INLINE void pixels_item(LKS_GLOBAL LKS_CONST U32 *x, LKS_GLOBAL LKS_CONST F32 *table,
                            LKS_GLOBAL F32 *y, LKS_CONST struct pixels_dims *d, U64 i)
{
    U32 b = (x[i >> 2] >> (8u * (U32)(i & 3u))) & 255u;
    y[i] = table[(U64)b * d->c + i % d->c];
}

#endif
