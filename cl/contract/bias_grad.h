/*
 * bias_grad.h - contract of bias_grad (numerics.md, rule 8).
 *
 * db[k] = sum over n, h, w of dy[n,h,w,k]; dy is [N,K] (one position a sample), [N,H,K] or
 * [N,H,W,K].
 *   1. The batch is cut by leaf.h over the positions of dy. A leaf: its positions in the order (n,
 *      h, w) are cut into pieces of LKS_SPAN (piece.h), each acc = +0; acc = acc + dy[..,k], and
 *      the pieces meet in a tree.
 *   2. The leaves of a cut sample meet in a tree, then the samples or groups meet in a tree.
 *   3. + 0.0f.
 * Special values follow IEEE-754; a zero result is +0. Error bound: LKS_SPAN, log2 of a leaf's
 * pieces and log2 of the leaves roundings of the sum of magnitudes.
 */
#ifndef LKS_CONTRACT_BIAS_GRAD_H
#define LKS_CONTRACT_BIAS_GRAD_H

#include "contract/leaf.h"
#include "contract/num.h"
#include "contract/piece.h"

struct bias_grad_dims {
    U32 n, h, w, k;
    U32 leaf; /* samples a block */
};

/* The sum of leaf j for channel k. */
LKS_INLINE F32 lks_bias_leaf(LKS_GLOBAL LKS_CONST F32 *dy, LKS_CONST struct bias_grad_dims *d,
                             LKS_CONST struct lks_leaf *f, U32 j, U32 k)
{
    U32 n0, n1, r0, r1, n;
    struct lks_span sum;
    lks_span_init(&sum);
    lks_leaf_range(f, j, &n0, &n1, &r0, &r1);
    for (n = n0; n < n1; n += 1u) {
        U64 p = ((U64)n * d->h + r0) * d->w, end = ((U64)n * d->h + r1) * d->w;
        for (; p < end; p += 1u)
            lks_span_add(&sum, dy[p * d->k + k]);
    }
    return lks_span_end(&sum);
}

LKS_INLINE void bias_grad_item(LKS_GLOBAL LKS_CONST F32 *dy, LKS_GLOBAL F32 *db,
                               LKS_CONST struct bias_grad_dims *d, U64 i)
{
    struct lks_leaf f = lks_leaf_make(d->n, d->h, d->w, d->leaf);
    struct lks_leaf_tree tree;
    U32 j;
    lks_leaf_tree_init(&tree);
    for (j = 0u; j < f.leaves; j += 1u)
        lks_leaf_tree_push(&tree, &f, lks_bias_leaf(dy, d, &f, j, (U32)i));
    db[i] = lks_leaf_tree_root(&tree) + 0.0f;
}

#endif
