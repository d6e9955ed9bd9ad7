/*
 * sum.h - the orders of addition: the tree, its incremental form, and the row.
 *
 * Tree over v_0 .. v_{m-1} (m >= 1):
 *     for (s = 1; s < m; s *= 2) for (i = 0; i + s < m; i += 2*s) v[i] += v[i+s]
 * and the result is v_0. lks_tree does it in a private array, lks_tree_global in global memory,
 * and struct lks_counter on values that arrive one by one, keeping one partial a level; all three
 * give the same bits.
 *
 * Row: 32 lanes, lane j starts at +0 and chains elements j, j+32, ...; then the tree over the 32
 * lanes. Rows longer than 4096 are cut into pieces of 4096, each by lanes and tree, and the pieces
 * meet in a tree. struct lks_row takes elements in order, as sums (lks_row_add) or products
 * (lks_row_fma); lks_row_sum and lks_row_dot run it over strided arrays.
 *
 * None of these adds the + 0.0f that ends a summing contract: a caller does so once, with
 * lks_final, as its last operation, after any bias.
 */
#ifndef LKS_CONTRACT_SUM_H
#define LKS_CONTRACT_SUM_H

#include "contract/num.h"

#define LKS_ROW_LANES  32u
#define LKS_ROW_PIECE  4096u
#define LKS_TREE_LEVEL 32

/* The last operation of every summing contract: turns -0 into +0. */
LKS_INLINE F32 lks_final(F32 x)
{
    return x + 0.0f;
}

/* Tree over the m >= 1 values of a private array, which it overwrites. m < 2^31. */
LKS_INLINE F32 lks_tree(F32 *v, U32 m)
{
    U32 i, s;
    for (s = 1u; s < m; s *= 2u)
        for (i = 0u; i + s < m; i += 2u * s)
            v[i] = v[i] + v[i + s];
    return v[0];
}

/* The same over v[0], v[stride], ... in global memory, which it overwrites. */
LKS_INLINE F32 lks_tree_global(LKS_GLOBAL F32 *v, U64 stride, U32 m)
{
    U32 i, s;
    for (s = 1u; s < m; s *= 2u)
        for (i = 0u; i + s < m; i += 2u * s)
            v[i * stride] = v[i * stride] + v[(i + s) * stride];
    return v[0];
}

/* The tree as a binary counter: part[l] holds the root of 2^l values while bit l of count is
 * set. Takes up to 2^32 - 1 values. */
struct lks_counter {
    F32 part[LKS_TREE_LEVEL];
    U32 count;
};

LKS_INLINE void lks_counter_init(struct lks_counter *t)
{
    t->count = 0u;
}

LKS_INLINE void lks_counter_push(struct lks_counter *t, F32 v)
{
    U32 level = 0u;
    U32 bits = t->count;
    while ((bits & 1u) != 0u) {
        v = t->part[level] + v;
        bits >>= 1;
        level += 1u;
    }
    t->part[level] = v;
    t->count += 1u;
}

/* The root over all values pushed so far, +0 if none; more may be pushed afterwards. */
LKS_INLINE F32 lks_counter_root(const struct lks_counter *t)
{
    F32 v = 0.0f;
    I32 have = 0;
    U32 level;
    for (level = 0u; level < LKS_TREE_LEVEL; level += 1u) {
        if (((t->count >> level) & 1u) != 0u) {
            v = have ? t->part[level] + v : t->part[level];
            have = 1;
        }
    }
    return v;
}

/* A row under way: the lanes of the current piece, how many elements it has, finished pieces. */
struct lks_row {
    F32 lane[LKS_ROW_LANES];
    U32 fill;
    struct lks_counter pieces;
};

LKS_INLINE void lks_row_clear_lanes(struct lks_row *r)
{
    U32 j;
    for (j = 0u; j < LKS_ROW_LANES; j += 1u)
        r->lane[j] = 0.0f;
    r->fill = 0u;
}

LKS_INLINE void lks_row_init(struct lks_row *r)
{
    lks_row_clear_lanes(r);
    lks_counter_init(&r->pieces);
}

/* Ends a full piece before the next element arrives. */
LKS_INLINE void lks_row_turn(struct lks_row *r)
{
    if (r->fill == LKS_ROW_PIECE) {
        lks_counter_push(&r->pieces, lks_tree(r->lane, LKS_ROW_LANES));
        lks_row_clear_lanes(r);
    }
}

/* Next element of a plain sum: lane = lane + x. */
LKS_INLINE void lks_row_add(struct lks_row *r, F32 x)
{
    U32 j;
    lks_row_turn(r);
    j = r->fill % LKS_ROW_LANES;
    r->lane[j] = lks_chain(r->lane[j], x);
    r->fill += 1u;
}

/* Next element of a product sum: lane = fma(a, b, lane). */
LKS_INLINE void lks_row_fma(struct lks_row *r, F32 a, F32 b)
{
    U32 j;
    lks_row_turn(r);
    j = r->fill % LKS_ROW_LANES;
    r->lane[j] = lks_fma(a, b, r->lane[j]);
    r->fill += 1u;
}

/* The row's sum, +0 if it is empty. Uses the lanes up: call lks_row_init before another row. */
LKS_INLINE F32 lks_row_end(struct lks_row *r)
{
    if (r->fill != 0u)
        lks_counter_push(&r->pieces, lks_tree(r->lane, LKS_ROW_LANES));
    return lks_counter_root(&r->pieces);
}

/* Row sum of x[0], x[stride], ..., n elements. */
LKS_INLINE F32 lks_row_sum(LKS_GLOBAL LKS_CONST F32 *x, U64 stride, U64 n)
{
    struct lks_row r;
    U64 i;
    lks_row_init(&r);
    for (i = 0u; i < n; i += 1u)
        lks_row_add(&r, x[i * stride]);
    return lks_row_end(&r);
}

/* Row sum of products x[i * xs] * y[i * ys], n elements; x and y may be the same. */
LKS_INLINE F32 lks_row_dot(LKS_GLOBAL LKS_CONST F32 *x, U64 xs, LKS_GLOBAL LKS_CONST F32 *y, U64 ys,
                           U64 n)
{
    struct lks_row r;
    U64 i;
    lks_row_init(&r);
    for (i = 0u; i < n; i += 1u)
        lks_row_fma(&r, x[i * xs], y[i * ys]);
    return lks_row_end(&r);
}

#endif
