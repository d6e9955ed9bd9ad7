/*
 * conv2d_weight_grad.h - contract of the convolution's gradient for its weights,
 * dw[k][r][s][c/groups] from x and dy.
 *
 * One item is one element of dw. The batch is cut into leaves over (n, oh, ow) as leaf.h says.
 *   1. A leaf: the chain of fma(x, dy, acc) for n, for oh, for ow of the leaf, all upward, in
 *      pieces of LKS_STRETCH positions (piece.h), which are taken one after the other. Positions
 *      whose tap falls into the padding count as x = +0 and may be skipped.
 *   2. The leaves of a cut sample meet in a tree.
 *   3. The samples, or the groups of joined samples, meet in a tree over the batch.
 *   4. + 0.0f, once.
 */
#ifndef LKS_CONTRACT_CONV2D_WEIGHT_GRAD_H
#define LKS_CONTRACT_CONV2D_WEIGHT_GRAD_H

#include "contract/conv.h"

/* Leaf `leaf` of the weight (k, r, s, c of the group). */
LKS_INLINE F32 lks_conv_weight_leaf(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *dy,
                                    const struct lks_conv_dims *d, U32 k, U32 r, U32 s, U32 c,
                                    U32 leaf)
{
    U32 n0, n1, r0, r1;
    U32 xc = k / (d->k / d->groups) * (d->c / d->groups) + c;
    struct lks_stretch sum;
    lks_stretch_init(&sum);
    lks_leaf_range(&d->leaf, leaf, &n0, &n1, &r0, &r1);
    for (U32 n = n0; n < n1; n++) {
        for (U32 oh = r0; oh < r1; oh++) {
            U32 ih = lks_conv_in(oh, r, d->stride_h, d->dil_h, d->pad_h);
            U64 yo = ((U64)n * d->oh + oh) * d->ow;
            U64 xo = ((U64)n * d->h + ih) * d->w;
            for (U32 ow = 0u; ow < d->ow; ow++) {
                U32 iw = lks_conv_in(ow, s, d->stride_w, d->dil_w, d->pad_w);
                lks_stretch_next(&sum);
                if (ih < d->h && iw < d->w)
                    sum.acc = lks_fma(x[(xo + iw) * d->c + xc], dy[(yo + ow) * d->k + k], sum.acc);
            }
        }
    }
    return lks_stretch_end(&sum);
}

LKS_INLINE void conv2d_weight_grad_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *dy,
                                        LKS_GLOBAL F32 *dw, const struct lks_conv_dims *d, U64 i)
{
    U32 cg = d->c / d->groups;
    U32 c = (U32)(i % cg);
    U32 s = (U32)(i / cg % d->s);
    U32 r = (U32)(i / cg / d->s % d->r);
    U32 k = (U32)(i / cg / d->s / d->r);
    struct lks_leaf_tree t;
    lks_leaf_tree_init(&t);
    for (U32 j = 0u; j < d->leaf.leaves; j++)
        lks_leaf_tree_push(&t, &d->leaf, lks_conv_weight_leaf(x, dy, d, k, r, s, c, j));
    dw[i] = lks_leaf_tree_root(&t) + 0.0f;
}

#endif
