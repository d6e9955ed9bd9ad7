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
 * A leaf is one chain over its positions in the order (sample, row, col).
 */
#ifndef LKS_LEAF_H
#define LKS_LEAF_H

#include "contract/num.h"

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
 * The tree over leaf sums that arrive in order 0, 1, ... as a binary counter: at most one partial a
 * level is kept. Zero-initialise `count`; push every leaf; finish gives the root.
 * Leaves of cut samples pass through an inner counter of their sample first.
 */
#define LKS_LEAF_LEVELS 32

struct lks_counter {
    U32 count;
    F32 partial[LKS_LEAF_LEVELS];
};

LKS_INLINE void lks_counter_push(struct lks_counter *t, F32 v)
{
    U32 level = 0u, k = t->count;
    while ((k & 1u) != 0u) {
        v = t->partial[level] + v;
        level++;
        k >>= 1;
    }
    t->partial[level] = v;
    t->count++;
}

/* The root of all pushed values; +0 if there are none. Without the final + 0.0f of rule 4. */
LKS_INLINE F32 lks_counter_root(const struct lks_counter *t)
{
    U32 level = 0u, k = t->count;
    F32 v = 0.0f;
    U32 have = 0u;
    for (; k != 0u; k >>= 1, level++) {
        if ((k & 1u) == 0u)
            continue;
        v = have != 0u ? t->partial[level] + v : t->partial[level];
        have = 1u;
    }
    return v;
}

#endif
