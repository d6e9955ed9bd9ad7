/*
 * group_norm.cl - schedules of group, layer and instance normalisation.
 *
 *   lanes         (`gpu`) y or (GRAD) dx: a group of 32 items a row, item j being lane j of rule 6
 *   rows          (`cpu`) the same, an item a row; a row is one run of neighbours, or runs whose
 *                 length is a multiple of 32, so that the lanes are two vectors of 16
 *   leaves, tree  dgamma and dbeta, a work-item a channel (and leaf)
 */
#include "contract/group_norm.h"
#include "op/row.h"

/* Element e of a row that begins at `at`. */
#define PLACE(e) ((U64)((e) / d.cg) * d.c + (e) % d.cg)

#if defined(LANES) || defined(ROWS)
#ifdef GRAD
#define ARGUMENTS                                                                                  \
    __global const F32 *restrict x, __global const F32 *restrict dy,                               \
        __global const F32 *restrict mean, __global const F32 *restrict invstd,                    \
        __global const F32 *restrict gamma, __global F32 *restrict y
#else
#define ARGUMENTS                                                                                  \
    __global const F32 *restrict x, __global const F32 *restrict gamma,                            \
        __global const F32 *restrict beta, __global F32 *restrict y, __global F32 *restrict mean,  \
        __global F32 *restrict invstd
#endif
#endif

#ifdef LANES
__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void
LKS_KERNEL(lanes)(ARGUMENTS, struct group_norm_dims d)
{
    __local F32 lane[LKS_ROW_LANES];
    U64 row = get_group_id(0);
    U32 j = get_local_id(0), g = (U32)(row % d.groups), size = d.places * d.cg;
    U64 at = row / d.groups * d.places * d.c + g * d.cg;
    struct lks_counter one, two;
    F32 m, s, a, b;
    lks_counter_init(&one);
    lks_counter_init(&two);
#ifdef GRAD
    m = mean[row];
    s = invstd[row];
    for (U32 e0 = 0u; e0 < size; e0 += LKS_ROW_PIECE) {
        U32 e1 = size - e0 < LKS_ROW_PIECE ? size : e0 + LKS_ROW_PIECE;
        a = b = 0.0f;
        for (U32 e = e0 + j; e < e1; e += LKS_ROW_LANES) {
            U64 p = at + PLACE(e);
            F32 t = dy[p] * gamma[g * d.cg + e % d.cg];
            a = a + t;
            b = lks_fma(t, (x[p] - m) * s, b);
        }
        lks_counter_push(&one, LKS_FN(tree)(a, lane, j));
        lks_counter_push(&two, LKS_FN(tree)(b, lane, j));
    }
    a = lks_final(lks_counter_root(&one)) * d.inverse;
    b = lks_final(lks_counter_root(&two)) * d.inverse;
    for (U32 e = j; e < size; e += LKS_ROW_LANES) {
        U64 p = at + PLACE(e);
        y[p] = s * lks_fma(-((x[p] - m) * s), b, dy[p] * gamma[g * d.cg + e % d.cg] - a);
    }
#else
    for (U32 e0 = 0u; e0 < size; e0 += LKS_ROW_PIECE) {
        U32 e1 = size - e0 < LKS_ROW_PIECE ? size : e0 + LKS_ROW_PIECE;
        a = 0.0f;
        for (U32 e = e0 + j; e < e1; e += LKS_ROW_LANES)
            a = a + x[at + PLACE(e)];
        lks_counter_push(&one, LKS_FN(tree)(a, lane, j));
    }
    m = lks_div(lks_final(lks_counter_root(&one)), d.count);
    for (U32 e0 = 0u; e0 < size; e0 += LKS_ROW_PIECE) {
        U32 e1 = size - e0 < LKS_ROW_PIECE ? size : e0 + LKS_ROW_PIECE;
        b = 0.0f;
        for (U32 e = e0 + j; e < e1; e += LKS_ROW_LANES) {
            a = x[at + PLACE(e)] - m;
            b = lks_fma(a, a, b);
        }
        lks_counter_push(&two, LKS_FN(tree)(b, lane, j));
    }
    s = lks_div(lks_final(lks_counter_root(&two)), d.count);
    s = lks_div(1.0f, lks_sqrt(s + d.eps));
    if (j == 0u) {
        mean[row] = m;
        invstd[row] = s;
    }
    for (U32 e = j; e < size; e += LKS_ROW_LANES) {
        U64 p = at + PLACE(e);
        y[p] = lks_fma((x[p] - m) * s, gamma[g * d.cg + e % d.cg], beta[g * d.cg + e % d.cg]);
    }
#endif
}
#endif

#ifdef ROWS
#include "op/vec.h"

/* Work-item: a row. RUN: it is one run of neighbours. */
__kernel void LKS_KERNEL(rows)(ARGUMENTS, struct group_norm_dims d)
{
    U64 row = get_global_id(0);
    U32 g = (U32)(row % d.groups);
#ifdef RUN
    U32 runs = 1u, length = d.places * d.cg, step = 0u;
#else
    U32 runs = d.places, length = d.cg, step = d.c;
#endif
    U64 at = row / d.groups * d.places * d.c + g * d.cg;
    struct LKS_FN(row) one;
    F32 m, s;
    LKS_FN(begin)(&one);
#ifdef GRAD
    struct LKS_FN(row) two;
    F32 a, b;
    m = mean[row];
    s = invstd[row];
    LKS_FN(begin)(&two);
    for (U32 q = 0u; q < runs; q++) {
        __global const F32 *p = x + at + (U64)q * step, *t = dy + at + (U64)q * step;
        U32 e = 0u;
        for (; e + LKS_ROW_LANES <= length; e += LKS_ROW_LANES) {
            __global const F32 *w = gamma + g * d.cg + e % d.cg;
            float16 l, h;
            if (one.fill == LKS_ROW_PIECE) {
                LKS_FN(piece)(&one);
                LKS_FN(piece)(&two);
            }
            if (e % d.cg + LKS_ROW_LANES <= d.cg) {
                l = vload16(0, w);
                h = vload16(1, w);
            } else {
                F32 lane[LKS_ROW_LANES];
                for (U32 k = 0u; k < LKS_ROW_LANES; k++)
                    lane[k] = gamma[g * d.cg + (e + k) % d.cg];
                l = vload16(0, lane);
                h = vload16(1, lane);
            }
            l = vload16(0, t + e) * l;
            h = vload16(1, t + e) * h;
            one.low = one.low + l;
            one.high = one.high + h;
            two.low = fma(l, (vload16(0, p + e) - m) * s, two.low);
            two.high = fma(h, (vload16(1, p + e) - m) * s, two.high);
            one.fill += LKS_ROW_LANES;
            two.fill += LKS_ROW_LANES;
        }
        if (e < length) {
            if (one.fill == LKS_ROW_PIECE) {
                LKS_FN(piece)(&one);
                LKS_FN(piece)(&two);
            }
            TAIL(one, length - e, lane[k] + t[e + k] * gamma[g * d.cg + (e + k) % d.cg]);
            TAIL(two, length - e,
                 lks_fma(t[e + k] * gamma[g * d.cg + (e + k) % d.cg], (p[e + k] - m) * s, lane[k]));
        }
    }
    a = LKS_FN(end)(&one) * d.inverse;
    b = LKS_FN(end)(&two) * d.inverse;
#else
    for (int pass = 0; pass < 2; pass++) {
        F32 shift = pass == 0 ? 0.0f : m;
        for (U32 q = 0u; q < runs; q++) {
            __global const F32 *p = x + at + (U64)q * step;
            U32 e = 0u;
            for (; e + LKS_ROW_LANES <= length; e += LKS_ROW_LANES) {
                float16 l = vload16(0, p + e), h = vload16(1, p + e);
                if (one.fill == LKS_ROW_PIECE)
                    LKS_FN(piece)(&one);
                if (pass == 0) {
                    one.low = one.low + l;
                    one.high = one.high + h;
                } else {
                    l = l - shift;
                    h = h - shift;
                    one.low = fma(l, l, one.low);
                    one.high = fma(h, h, one.high);
                }
                one.fill += LKS_ROW_LANES;
            }
            if (e < length) {
                if (one.fill == LKS_ROW_PIECE)
                    LKS_FN(piece)(&one);
                TAIL(one, length - e,
                     pass == 0 ? lane[k] + p[e + k]
                               : lks_fma(p[e + k] - shift, p[e + k] - shift, lane[k]));
            }
        }
        if (pass == 0) {
            m = lks_div(LKS_FN(end)(&one), d.count);
            LKS_FN(begin)(&one);
        }
    }
    s = lks_div(LKS_FN(end)(&one), d.count);
    s = lks_div(1.0f, lks_sqrt(s + d.eps));
    mean[row] = m;
    invstd[row] = s;
#endif
    for (U32 q = 0u; q < d.places; q++) {
        for (U32 c_ = 0u; c_ < d.cg; c_ += VEC) {
            U32 c = c_ + VEC <= d.cg ? c_ : d.cg - VEC;
            U64 p = at + (U64)q * d.c + c;
            V xhat = (LOAD(x + p) - m) * s;
#ifdef GRAD
            STORE(s * fma(-xhat, (V)(b), LOAD(dy + p) * LOAD(gamma + g * d.cg + c) - a), y + p);
#else
            STORE(fma(xhat, LOAD(gamma + g * d.cg + c), LOAD(beta + g * d.cg + c)), y + p);
#endif
        }
    }
}
#endif

#ifdef LEAVES
/* Work-item (channel, leaf): parts[leaf][2][c]. */
__kernel void LKS_KERNEL(leaves)(__global const F32 *restrict x, __global const F32 *restrict dy,
                                 __global const F32 *restrict mean,
                                 __global const F32 *restrict invstd,
                                 __global F32 *restrict parts, struct group_norm_dims d)
{
    struct lks_leaf f = lks_leaf_make(d.n, d.h, d.w, d.leaf);
    U32 c = get_global_id(0), leaf = get_global_id(1);
    F32 dg, db;
    if (leaf >= f.leaves || c >= d.c)
        return;
    lks_group_leaf(x, dy, mean, invstd, &d, &f, leaf, c, &dg, &db);
    parts[(U64)leaf * 2u * d.c + c] = dg;
    parts[((U64)leaf * 2u + 1u) * d.c + c] = db;
}
#endif

#ifdef TREE
__kernel void LKS_KERNEL(tree)(__global const F32 *restrict parts, __global F32 *restrict dgamma,
                               __global F32 *restrict dbeta, struct group_norm_dims d)
{
    struct lks_leaf f = lks_leaf_make(d.n, d.h, d.w, d.leaf);
    struct lks_leaf_tree one, two;
    U32 c = get_global_id(0);
    if (c >= d.c)
        return;
    lks_leaf_tree_init(&one);
    lks_leaf_tree_init(&two);
    for (U32 j = 0u; j < f.leaves; j++) {
        lks_leaf_tree_push(&one, &f, parts[(U64)j * 2u * d.c + c]);
        lks_leaf_tree_push(&two, &f, parts[((U64)j * 2u + 1u) * d.c + c]);
    }
    dgamma[c] = lks_leaf_tree_root(&one) + 0.0f;
    dbeta[c] = lks_leaf_tree_root(&two) + 0.0f;
}
#endif
