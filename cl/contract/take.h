/*
 * take.h - contracts of take and take_pixels: a batch out of a data set that lies on the device, by
 * the numbers of its samples.
 *
 * take:         y[n] = x[which[n]] along dimension 0, the bits copied.
 * take_pixels:  y[n][k] = table[256 values][c]: element (b, k mod c), b being byte which[n] S + k
 *               of x, S values a sample. x holds four bytes a word, the first in the lowest bits.
 *
 * 1. Copies: nothing rounds, so the error is 0.
 *
 * which[n] is the number of a sample of x. The shape of x may tell fewer samples than its memory
 * holds: it is what there is at least.
 */
#ifndef LKS_CONTRACT_TAKE_H
#define LKS_CONTRACT_TAKE_H

#include "contract/num.h"

struct take_dims {
    U64 size; /* elements a sample */
    U32 c;    /* take_pixels: columns of the table */
};

LKS_INLINE void take_item(LKS_GLOBAL LKS_CONST U32 *x, LKS_GLOBAL LKS_CONST U32 *which,
                          LKS_GLOBAL U32 *y, LKS_CONST struct take_dims *d, U64 i)
{
    y[i] = x[which[i / d->size] * d->size + i % d->size];
}

LKS_INLINE void take_pixels_item(LKS_GLOBAL LKS_CONST U32 *x, LKS_GLOBAL LKS_CONST U32 *which,
                                 LKS_GLOBAL LKS_CONST F32 *table, LKS_GLOBAL F32 *y,
                                 LKS_CONST struct take_dims *d, U64 i)
{
    U64 at = which[i / d->size] * d->size + i % d->size;
    U32 b = (x[at >> 2] >> (8u * (U32)(at & 3u))) & 255u;
    y[i] = table[(U64)b * d->c + i % d->size % d->c];
}

#endif
