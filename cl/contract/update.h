/*
 * update.h - what the optimisers share (numerics.md, rule 16).
 *
 * Parameters, gradients and states are flat arenas of n elements. Block b, elements 1024 b to
 * 1024 b + 1023, belongs to one parameter; group[b] is the row of its numbers in hyper[rows][16].
 * Which number means what, the header of an optimiser says; [15] is 0, or 1 to let the row's
 * elements rest in this step.
 *
 * An element stays as it is, states too, while flag[0] != 0 (rule 12) or its row rests.
 */
#ifndef LKS_CONTRACT_UPDATE_H
#define LKS_CONTRACT_UPDATE_H

#include "contract/num.h"

#define LKS_UPDATE_BLOCK 1024u
#define LKS_UPDATE_HYPER 16u
#define LKS_UPDATE_REST  15u

struct update_dims {
    U64 n; /* elements */
};

/* Copies the row of element i into h; 1 if the element is to be updated. */
LKS_INLINE I32 lks_update_row(LKS_GLOBAL LKS_CONST F32 *hyper, LKS_GLOBAL LKS_CONST I32 *flag,
                              LKS_GLOBAL LKS_CONST I32 *group, U64 i, F32 *h)
{
    U64 row = (U64)(U32)group[i / LKS_UPDATE_BLOCK];
    U32 k;
    for (k = 0u; k < LKS_UPDATE_HYPER; k += 1u)
        h[k] = hyper[row * LKS_UPDATE_HYPER + k];
    return flag[0] == 0 && h[LKS_UPDATE_REST] < 1.0f;
}

#endif
