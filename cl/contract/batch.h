/*
 * batch.h - contracts of batch_sum, batch_mean and batch_mean_grad (numerics.md, rule 8).
 *
 * batch_sum:  out[0] = sum_n v[n]
 *   1. The batch is cut by leaf.h with one position a sample. A leaf: acc = +0; acc = acc + v[n]
 *      for n upward. The leaves meet in the tree.
 *   2. + 0.0f.
 * batch_mean:  out[0] = that * scale, scale = (F32)(1.0 / N) from the host. One more rounding.
 * batch_mean_grad:  dv[n] = dout[0] * scale; v gives the shape alone.
 * Special values follow IEEE-754. Error bound: (leaf + log2 of the leaves) ulp of the sum of
 * magnitudes; the mean adds 1 ulp for the scale and 0.5 for the product.
 */
#ifndef LKS_CONTRACT_BATCH_H
#define LKS_CONTRACT_BATCH_H

#include "contract/leaf.h"
#include "contract/num.h"

struct batch_dims {
    U32 n;
    U32 leaf; /* samples a block */
    F32 scale;
};

/* The sum of leaf j. */
LKS_INLINE F32 lks_batch_leaf(LKS_GLOBAL LKS_CONST F32 *v, LKS_CONST struct lks_leaf *f, U32 j)
{
    U32 n0, n1, r0, r1, n;
    F32 acc = 0.0f;
    lks_leaf_range(f, j, &n0, &n1, &r0, &r1);
    for (n = n0; n < n1; n += 1u)
        acc = lks_chain(acc, v[n]);
    return acc;
}

LKS_INLINE void batch_sum_item(LKS_GLOBAL LKS_CONST F32 *v, LKS_GLOBAL F32 *out,
                               LKS_CONST struct batch_dims *d, U64 i)
{
    struct lks_leaf f = lks_leaf_make(d->n, 1u, 1u, d->leaf);
    struct lks_leaf_tree tree;
    U32 j;
    lks_leaf_tree_init(&tree);
    for (j = 0u; j < f.leaves; j += 1u)
        lks_leaf_tree_push(&tree, &f, lks_batch_leaf(v, &f, j));
    out[i] = lks_leaf_tree_root(&tree) + 0.0f;
}

LKS_INLINE void batch_mean_item(LKS_GLOBAL LKS_CONST F32 *v, LKS_GLOBAL F32 *out,
                                LKS_CONST struct batch_dims *d, U64 i)
{
    batch_sum_item(v, out, d, i);
    out[i] = out[i] * d->scale;
}

LKS_INLINE void batch_mean_grad_item(LKS_GLOBAL LKS_CONST F32 *dout, LKS_GLOBAL LKS_CONST F32 *v,
                                     LKS_GLOBAL F32 *dv, LKS_CONST struct batch_dims *d, U64 i)
{
    (void)v;
    dv[i] = dout[0] * d->scale;
}

#endif
