/*
 * reduce.h - contracts of sums and means over axes, and of expand, which is their gradient
 * (numerics.md, rules 6 and 8). The axes are any but none; the others are kept.
 *
 * sum:  out[kept] = sum over the reduced axes of x, axis 0 not among them
 *   1. The elements in the order of x are one row by rule 6.
 *   2. + 0.0f.
 * sum_samples:  the same with axis 0 among them, which counts the samples
 *   1. Rule 8: a sample's positions are the other reduced axes in the order of x (rows; one
 *      column). A leaf: its elements for (sample, position) upward are cut into pieces of
 *      LKS_SPAN (piece.h), each acc = +0; acc = acc + x, and the pieces meet in a tree. The leaves
 *      meet in the tree.
 *   2. + 0.0f.
 * mean, mean_samples:  that * scale, scale = (F32)(1.0 / elements of a sum) from the host.
 * expand:       out[element] = v[its kept axes], the shape being that of a second input
 * expand_mean:  that * scale.
 *
 * Special values follow IEEE-754; a zero sum is +0. expand moves bits and rounds nothing. Error
 * bound: the depth of the row (elements / 32 + 5, at most 133, + log2 of the pieces) or of a piece
 * and the trees, in units of 2^-24 of the sum of magnitudes; a mean adds 2.
 */
#ifndef LKS_CONTRACT_REDUCE_H
#define LKS_CONTRACT_REDUCE_H

#include "contract/leaf.h"
#include "contract/num.h"
#include "contract/piece.h"
#include "contract/sum.h"

/* Neighbouring axes of one kind count as one. Steps are in elements. */
struct reduce_dims {
    U32 n_kept, kept[5]; /* kept axes, outermost first */
    U64 kept_step[5];
    U32 n_off, off[5]; /* reduced axes, without axis 0 where that counts the samples */
    U64 off_step[5];
    U32 n_all, all[5]; /* expand: the axes of its output */
    U64 all_step[5];   /* and their steps in v; 0: reduced */
    U32 positions;     /* product of off */
    U32 samples;       /* 1 where axis 0 is kept */
    U64 sample_step;
    U32 leaf; /* samples a block */
    F32 scale;
};

/* Where output e begins, and position p behind that. */
LKS_INLINE U64 lks_reduce_kept(LKS_CONST struct reduce_dims *d, U64 e)
{
    U64 at = 0u;
    U32 k;
    for (k = d->n_kept; k > 0u; k -= 1u) {
        at += e % d->kept[k - 1u] * d->kept_step[k - 1u];
        e /= d->kept[k - 1u];
    }
    return at;
}

LKS_INLINE U64 lks_reduce_off(LKS_CONST struct reduce_dims *d, U32 p)
{
    U64 at = 0u;
    U32 k;
    for (k = d->n_off; k > 0u; k -= 1u) {
        at += p % d->off[k - 1u] * d->off_step[k - 1u];
        p /= d->off[k - 1u];
    }
    return at;
}

LKS_INLINE void sum_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL F32 *out,
                         LKS_CONST struct reduce_dims *d, U64 e)
{
    U64 at = lks_reduce_kept(d, e);
    struct lks_row row;
    U32 p;
    lks_row_init(&row);
    for (p = 0u; p < d->positions; p += 1u)
        lks_row_add(&row, x[at + lks_reduce_off(d, p)]);
    out[e] = lks_final(lks_row_end(&row));
}

LKS_INLINE void mean_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL F32 *out,
                          LKS_CONST struct reduce_dims *d, U64 e)
{
    sum_item(x, out, d, e);
    out[e] = out[e] * d->scale;
}

/* The sum of leaf j of the output that begins at `at`. */
LKS_INLINE F32 lks_reduce_leaf(LKS_GLOBAL LKS_CONST F32 *x, LKS_CONST struct reduce_dims *d,
                               LKS_CONST struct lks_leaf *f, U64 at, U32 j)
{
    U32 n0, n1, r0, r1, n, p;
    struct lks_span sum;
    lks_span_init(&sum);
    lks_leaf_range(f, j, &n0, &n1, &r0, &r1);
    for (n = n0; n < n1; n += 1u)
        for (p = r0; p < r1; p += 1u)
            lks_span_add(&sum, x[at + n * d->sample_step + lks_reduce_off(d, p)]);
    return lks_span_end(&sum);
}

LKS_INLINE void sum_samples_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL F32 *out,
                                 LKS_CONST struct reduce_dims *d, U64 e)
{
    struct lks_leaf f = lks_leaf_make(d->samples, d->positions, 1u, d->leaf);
    struct lks_leaf_tree tree;
    U64 at = lks_reduce_kept(d, e);
    U32 j;
    lks_leaf_tree_init(&tree);
    for (j = 0u; j < f.leaves; j += 1u)
        lks_leaf_tree_push(&tree, &f, lks_reduce_leaf(x, d, &f, at, j));
    out[e] = lks_leaf_tree_root(&tree) + 0.0f;
}

LKS_INLINE void mean_samples_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL F32 *out,
                                  LKS_CONST struct reduce_dims *d, U64 e)
{
    sum_samples_item(x, out, d, e);
    out[e] = out[e] * d->scale;
}

/* The element of v that element e of expand's output takes. */
LKS_INLINE U64 lks_expand_place(LKS_CONST struct reduce_dims *d, U64 e)
{
    U64 at = 0u;
    U32 k;
    for (k = d->n_all; k > 0u; k -= 1u) {
        at += e % d->all[k - 1u] * d->all_step[k - 1u];
        e /= d->all[k - 1u];
    }
    return at;
}

LKS_INLINE void expand_item(LKS_GLOBAL LKS_CONST F32 *v, LKS_GLOBAL LKS_CONST F32 *like,
                            LKS_GLOBAL F32 *out, LKS_CONST struct reduce_dims *d, U64 e)
{
    (void)like;
    out[e] = v[lks_expand_place(d, e)];
}

LKS_INLINE void expand_mean_item(LKS_GLOBAL LKS_CONST F32 *v, LKS_GLOBAL LKS_CONST F32 *like,
                                 LKS_GLOBAL F32 *out, LKS_CONST struct reduce_dims *d, U64 e)
{
    (void)like;
    out[e] = v[lks_expand_place(d, e)] * d->scale;
}

#endif
