/*
 * segment_norm.h - contract of segment_norm: Euclidean norms of parts of an arena.
 *
 * Part t starts at element part[2 t] and has part[2 t + 1] elements, cut off at the end of x.
 *   1. The squares of a part are one row by rule 6, each element entering as lane = fma(x, x, lane).
 *   2. norm[t] = sqrt(row + 0.0f)
 * Error: that of a row of products, and half an ulp of the root. A sum that overflows is infinite.
 */
#ifndef LKS_CONTRACT_SEGMENT_NORM_H
#define LKS_CONTRACT_SEGMENT_NORM_H

#include "contract/sum.h"

struct segment_norm_dims {
    U64 n; /* elements of x */
};

/* Elements of part t. */
LKS_INLINE U64 segment_norm_count(LKS_GLOBAL LKS_CONST I32 *part, U64 n, U64 t)
{
    U64 start = (U64)(U32)part[2u * t], count = (U64)(U32)part[2u * t + 1u];
    return start >= n ? 0u : count < n - start ? count : n - start;
}

LKS_INLINE void segment_norm_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST I32 *part,
                                  LKS_GLOBAL F32 *norm, LKS_CONST struct segment_norm_dims *d,
                                  U64 t)
{
    LKS_GLOBAL LKS_CONST F32 *from = x + (U64)(U32)part[2u * t];
    norm[t] = lks_sqrt(lks_final(lks_row_dot(from, 1u, from, 1u,
                                             segment_norm_count(part, d->n, t))));
}

#endif
