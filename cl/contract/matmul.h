/*
 * matmul.h - contract of matmul (numerics.md, rules 4 and 7).
 *
 * y[b,m,n] = sum_k A[b,m,k] * B[b,k,n], where A and B may be stored with their last two axes turned
 *   1. The chain of fma(A, B, acc) for k upward, in pieces of LKS_PIECE (piece.h), which are taken
 *      one after the other.
 *   2. + 0.0f.
 * Special values follow IEEE-754; a zero result is +0. Error bound: q * 2^-24 / (1 - q * 2^-24) of
 * the sum of magnitudes, q being the longest piece and the number of pieces.
 */
#ifndef LKS_CONTRACT_MATMUL_H
#define LKS_CONTRACT_MATMUL_H

#include "contract/num.h"
#include "contract/piece.h"

struct matmul_dims {
    U32 batch, m, n, k;
    U32 am, ak; /* steps in one matrix of a */
    U32 bk, bn; /* steps in one matrix of b */
};

LKS_INLINE void matmul_item(LKS_GLOBAL LKS_CONST F32 *a, LKS_GLOBAL LKS_CONST F32 *b,
                            LKS_GLOBAL F32 *y, LKS_CONST struct matmul_dims *d, U64 item)
{
    U64 n = item % d->n, m = item / d->n % d->m, s = item / d->n / d->m;
    LKS_GLOBAL LKS_CONST F32 *p = a + s * d->m * d->k + m * d->am;
    LKS_GLOBAL LKS_CONST F32 *q = b + s * d->k * d->n + n * d->bn;
    F32 sum = 0.0f, acc = 0.0f;
    U32 k;
    for (k = 0u; k < d->k; k += 1u) {
        if (k % LKS_PIECE == 0u) {
            sum = sum + acc;
            acc = 0.0f;
        }
        acc = lks_fma(p[(U64)k * d->ak], q[(U64)k * d->bk], acc);
    }
    y[item] = sum + acc + 0.0f;
}

#endif
