/*
 * dense.h - contracts of dense, dense_data_grad and dense_weight_grad (numerics.md, rules 4, 7, 8).
 *
 * dense:  y[n,o] = act(sum_i x[n,i] * w[o,i] + bias[o])
 *   1. The chain of fma(x[n,i], w[o,i], acc) for i upward, in pieces of LKS_PIECE (piece.h), which
 *      are taken one after the other.
 *   2. With a bias: acc = acc + bias[o].
 *   3. acc = acc + 0.0f.
 *   4. With the attribute relu: acc <= 0 ? +0 : acc.
 *
 * dense_data_grad:  dx[n,i] = sum_o dy[n,o] * w[o,i]
 *   1. The chain of fma(dy[n,o], w[o,i], acc) for o upward, in pieces as above.
 *   2. acc = acc + 0.0f.
 *   3. With a mask: mask[n,i] <= 0 ? +0 : acc. (The mask is the output of the relu before.)
 *
 * dense_weight_grad:  dw[o,i] = sum_n x[n,i] * dy[n,o]
 *   1. The batch is cut by leaf.h with `rows` positions a sample, its dimensions between the first
 *      and the last. A leaf: the chain of fma(x[n,i], dy[n,o], acc) for the positions n upward, in
 *      pieces of LKS_STRETCH, taken one after the other.
 *   2. The leaves meet in the tree.
 *   3. + 0.0f.
 *
 * x may have dimensions between the first and the last; n runs over all of them.
 * Special values follow IEEE-754; a zero result is +0. Error bound: within k * 2^-24 / (1 - k *
 * 2^-24) of the sum of magnitudes, k being the longest piece and the number of pieces; the tree
 * adds one to k a level.
 */
#ifndef LKS_CONTRACT_DENSE_H
#define LKS_CONTRACT_DENSE_H

#include "contract/leaf.h"
#include "contract/num.h"
#include "contract/piece.h"

struct dense_dims {
    U32 n, i, o; /* samples (of dense_weight_grad; else positions), inputs, outputs */
    U32 relu;    /* dense: apply step 4 */
    U32 extra;   /* dense: a bias is given; dense_data_grad: a mask is given */
    U32 leaf;    /* dense_weight_grad: samples a block */
    U32 rows;    /* dense_weight_grad: positions a sample */
};

LKS_INLINE void dense_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *w,
                           LKS_GLOBAL LKS_CONST F32 *bias, LKS_GLOBAL F32 *y,
                           LKS_CONST struct dense_dims *d, U64 item)
{
    U64 n = item / d->o, o = item % d->o;
    U32 i;
    F32 sum = 0.0f, acc = 0.0f;
    for (i = 0u; i < d->i; i += 1u) {
        if (i % LKS_PIECE == 0u) {
            sum = sum + acc;
            acc = 0.0f;
        }
        acc = lks_fma(x[n * d->i + i], w[o * d->i + i], acc);
    }
    acc = sum + acc;
    if (d->extra != 0u)
        acc = acc + bias[o];
    acc = acc + 0.0f;
    y[item] = d->relu != 0u && acc <= 0.0f ? 0.0f : acc;
}

LKS_INLINE void dense_data_grad_item(LKS_GLOBAL LKS_CONST F32 *dy, LKS_GLOBAL LKS_CONST F32 *w,
                                     LKS_GLOBAL LKS_CONST F32 *mask, LKS_GLOBAL F32 *dx,
                                     LKS_CONST struct dense_dims *d, U64 item)
{
    U64 n = item / d->i, i = item % d->i;
    U32 o;
    F32 sum = 0.0f, acc = 0.0f;
    for (o = 0u; o < d->o; o += 1u) {
        if (o % LKS_PIECE == 0u) {
            sum = sum + acc;
            acc = 0.0f;
        }
        acc = lks_fma(dy[n * d->o + o], w[(U64)o * d->i + i], acc);
    }
    acc = sum + acc;
    acc = acc + 0.0f;
    dx[item] = d->extra != 0u && mask[item] <= 0.0f ? 0.0f : acc;
}

LKS_INLINE void dense_weight_grad_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *dy,
                                       LKS_GLOBAL F32 *dw, LKS_CONST struct dense_dims *d, U64 item)
{
    struct lks_leaf f = lks_leaf_make(d->n, d->rows, 1u, d->leaf);
    struct lks_leaf_tree tree;
    U64 o = item / d->i, i = item % d->i;
    U32 j, n0, n1, r0, r1;
    U64 n, end;
    lks_leaf_tree_init(&tree);
    for (j = 0u; j < f.leaves; j += 1u) {
        struct lks_stretch sum;
        lks_stretch_init(&sum);
        lks_leaf_range(&f, j, &n0, &n1, &r0, &r1);
        end = (U64)(n1 - 1u) * d->rows + r1;
        for (n = (U64)n0 * d->rows + r0; n < end; n += 1u) {
            lks_stretch_next(&sum);
            sum.acc = lks_fma(x[n * d->i + i], dy[n * d->o + o], sum.acc);
        }
        lks_leaf_tree_push(&tree, &f, lks_stretch_end(&sum));
    }
    dw[item] = lks_leaf_tree_root(&tree) + 0.0f;
}

#endif
