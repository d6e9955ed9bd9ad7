/*
 * chan.h - mean and M2 (sum of squared deviations) over the leaves of a batch (numerics.md, rule
 * 8).
 *
 * Two neighbours a, b of the tree meet by Chan's update:
 *     d = mean_b - mean_a;  mean = fma(d, n_b/n, mean_a);  M2 = fma(d*d, n_a*n_b/n, M2_a + M2_b)
 * The coefficients come from the host, in double, rounded once. All leaves of a tree but the last
 * have one size p, so at level l a pair without the last leaf has n_b/n = 1/2 and n_a*n_b/n =
 * 2^l * p/2, and only pairs with the last leaf, one a level at most, need a table.
 */
#ifndef LKS_CONTRACT_CHAN_H
#define LKS_CONTRACT_CHAN_H

#include "contract/leaf.h"
#include "contract/num.h"

#define LKS_CHAN_LEVELS 20u

/* The coefficients of one tree. */
struct lks_chan_tree {
    F32 mid;                      /* p/2 */
    F32 last_b[LKS_CHAN_LEVELS];  /* n_b/n of the pair with the last leaf */
    F32 last_ab[LKS_CHAN_LEVELS]; /* n_a*n_b/n of it */
};

/* Of the trees over a cut sample's leaves and over the batch. */
struct lks_chan {
    struct lks_chan_tree sample, batch;
};

struct lks_moments {
    F32 mean, m2;
};

/* a and b meet at `level`; last: b holds the last leaf of the tree. */
LKS_INLINE struct lks_moments lks_chan_meet(LKS_CONST struct lks_chan_tree *c, U32 level, I32 last,
                                            struct lks_moments a, struct lks_moments b)
{
    struct lks_moments r;
    F32 d = b.mean - a.mean;
    F32 fb = last ? c->last_b[level] : 0.5f;
    F32 fab = last ? c->last_ab[level] : c->mid * (F32)(1u << level);
    r.mean = lks_fma(d, fb, a.mean);
    r.m2 = lks_fma(d * d, fab, a.m2 + b.m2);
    return r;
}

/* The tree as a binary counter, as in sum.h. */
struct lks_chan_counter {
    struct lks_moments part[LKS_CHAN_LEVELS];
    U32 count;
};

/* Leaf number t->count of `leaves`. */
LKS_INLINE void lks_chan_push(struct lks_chan_counter *t, LKS_CONST struct lks_chan_tree *c,
                              U32 leaves, struct lks_moments v)
{
    U32 level = 0u, bits = t->count;
    I32 last = t->count + 1u == leaves;
    while ((bits & 1u) != 0u) {
        v = lks_chan_meet(c, level, last, t->part[level], v);
        bits >>= 1;
        level += 1u;
    }
    t->part[level] = v;
    t->count += 1u;
}

/* The root, after the last leaf. */
LKS_INLINE struct lks_moments lks_chan_root(const struct lks_chan_counter *t,
                                            LKS_CONST struct lks_chan_tree *c)
{
    struct lks_moments v;
    I32 have = 0;
    U32 level;
    v.mean = 0.0f;
    v.m2 = 0.0f;
    for (level = 0u; level < LKS_CHAN_LEVELS; level += 1u) {
        if (((t->count >> level) & 1u) != 0u) {
            v = have ? lks_chan_meet(c, level, 1, t->part[level], v) : t->part[level];
            have = 1;
        }
    }
    return v;
}

#endif
