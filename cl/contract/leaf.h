/*
 * leaf.h - how a batch is cut into leaves (numerics.md, rule 8).
 *
 * A batch has n samples of rows x cols positions. With T = 1024:
 *   1. rows * cols > T: a sample is cut into leaves of whole rows. q = ceil(rows / max(1, T/cols)),
 *      each leaf takes ceil(rows/q) rows, the last may be shorter. The leaves of a sample meet in
 *      a tree, then the samples meet in a tree.
 *   2. otherwise samples join: `join` at a time, the largest power of two <= leaf with
 *      join * rows * cols <= T. The groups meet in a tree. The last group may be shorter.
 * `leaf` is a power of two, so a tree inside the blocks of `leaf` samples followed by a tree over
 * the blocks is one tree over all of them.
 * A leaf runs over its positions in the order (sample, row, col), in pieces (piece.h) or as one
 * chain, as its contract says.
 */
#ifndef LKS_LEAF_H
#define LKS_LEAF_H

#include "contract/num.h"
#include "contract/sum.h"

#define LKS_LEAF_T 1024u

struct lks_leaf {
    U32 n, rows, cols;
    U32 leaf;   /* samples a block, a power of two */
    U32 join;   /* samples a leaf; 1 where samples are cut */
    U32 cut;    /* leaves a sample; 1 where samples join */
    U32 step;   /* rows a leaf of a cut sample; `rows` where samples join */
    U32 leaves; /* in the whole batch */
};

LKS_INLINE struct lks_leaf lks_leaf_make(U32 n, U32 rows, U32 cols, U32 leaf)
{
    struct lks_leaf f;
    U64 positions = (U64)rows * cols;
    f.n = n;
    f.rows = rows;
    f.cols = cols;
    f.leaf = leaf;
    f.join = 1u;
    f.cut = 1u;
    f.step = rows;
    if (positions > LKS_LEAF_T) {
        U32 fit = LKS_LEAF_T / cols;
        U32 q = fit > 1u ? (rows + fit - 1u) / fit : rows;
        f.step = (rows + q - 1u) / q;
        f.cut = (rows + f.step - 1u) / f.step;
        f.leaves = n * f.cut;
    } else {
        while (f.join * 2u <= leaf && (U64)f.join * 2u * positions <= LKS_LEAF_T)
            f.join *= 2u;
        f.leaves = (n + f.join - 1u) / f.join;
    }
    return f;
}

/* Leaf j covers rows [*r0, *r1) of each of the samples [*n0, *n1). */
LKS_INLINE void lks_leaf_range(const struct lks_leaf *f, U32 j, U32 *n0, U32 *n1, U32 *r0, U32 *r1)
{
    U32 s = j / f->cut, c = j % f->cut;
    U32 end = (s + 1u) * f->join, row_end = (c + 1u) * f->step;
    *n0 = s * f->join;
    *n1 = end < f->n ? end : f->n;
    *r0 = c * f->step;
    *r1 = row_end < f->rows ? row_end : f->rows;
}

/*
 * The tree over the leaf sums of a batch, which arrive in order: a cut sample's leaves meet in a
 * counter of their own first. At most one partial a level is kept. Init, push every leaf, root.
 */
struct lks_leaf_tree {
    struct lks_counter sample, batch;
};

LKS_INLINE void lks_leaf_tree_init(struct lks_leaf_tree *t)
{
    lks_counter_init(&t->sample);
    lks_counter_init(&t->batch);
}

LKS_INLINE void lks_leaf_tree_push(struct lks_leaf_tree *t, const struct lks_leaf *f, F32 v)
{
    lks_counter_push(&t->sample, v);
    if (t->sample.count == f->cut) {
        lks_counter_push(&t->batch, lks_counter_root(&t->sample));
        lks_counter_init(&t->sample);
    }
}

/* The root of all pushed leaves, without the final + 0.0f of rule 4. */
LKS_INLINE F32 lks_leaf_tree_root(const struct lks_leaf_tree *t)
{
    return lks_counter_root(&t->batch);
}

#endif
