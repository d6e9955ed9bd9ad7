/*
 * add.h - contract of add: y = a + b, element by element. Branches join with it, and so do the
 * gradients of a value that is used more than once, in the order of its uses (rule 9).
 *
 * 1. One addition; its error is half an ulp. Special values follow IEEE-754, so -0 + -0 = -0.
 */
#ifndef LKS_CONTRACT_ADD_H
#define LKS_CONTRACT_ADD_H

#include "contract/num.h"

struct add_dims {
    U64 n; /* elements */
};

LKS_INLINE void add_item(LKS_GLOBAL LKS_CONST F32 *a, LKS_GLOBAL LKS_CONST F32 *b,
                         LKS_GLOBAL F32 *y, LKS_CONST struct add_dims *d, U64 i)
{
    (void)d;
    y[i] = a[i] + b[i];
}

#endif
