/*
 * reduce.cl - fast schedules of sums and means over axes, and of expand.
 *
 *   rows          (`cpu`, ROWS) sum, mean over the last axes: a work-item a row
 *   lanes         (`gpu`, LANES) the same, 32 work-items a row
 *   columns       (`cpu`) sum, mean over axes before the last: a work-item 32 lanes of VEC columns
 *   leaves, tree  sum_samples, mean_samples: a work-item VEC outputs of a leaf; one an output
 *   runs          (`cpu`) expand: a work-item a run along the last axis
 *
 * MEAN: the sum times d.scale.
 */
#include "contract/reduce.h"
#include "op/row.h"

#ifdef MEAN
#define SCALED(v) ((v) * d.scale)
#else
#define SCALED(v) (v)
#endif

#ifdef ROWS
__kernel void LKS_KERNEL(rows)(__global const F32 *restrict x, __global F32 *restrict out,
                               struct reduce_dims d)
{
    U64 row = get_global_id(0);
    __global const F32 *p = x + row * d.positions;
    struct LKS_FN(row) sum;
    U32 e = 0u;
    LKS_FN(begin)(&sum);
    for (; e + LKS_ROW_LANES <= d.positions; e += LKS_ROW_LANES) {
        if (sum.fill == LKS_ROW_PIECE)
            LKS_FN(piece)(&sum);
        sum.low = sum.low + vload16(0, p + e);
        sum.high = sum.high + vload16(1, p + e);
        sum.fill += LKS_ROW_LANES;
    }
    if (e < d.positions) {
        if (sum.fill == LKS_ROW_PIECE)
            LKS_FN(piece)(&sum);
        TAIL(sum, d.positions - e, lane[k] + p[e + k]);
    }
    out[row] = SCALED(LKS_FN(end)(&sum));
}
#endif

#ifdef LANES
__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void
LKS_KERNEL(lanes)(__global const F32 *restrict x, __global F32 *restrict out, struct reduce_dims d)
{
    __local F32 lane[LKS_ROW_LANES];
    U64 row = get_group_id(0);
    U32 j = get_local_id(0);
    __global const F32 *p = x + row * d.positions;
    struct lks_counter pieces;
    lks_counter_init(&pieces);
    for (U32 e0 = 0u; e0 < d.positions; e0 += LKS_ROW_PIECE) {
        U32 e1 = d.positions - e0 < LKS_ROW_PIECE ? d.positions : e0 + LKS_ROW_PIECE;
        F32 a = 0.0f;
        for (U32 e = e0 + j; e < e1; e += LKS_ROW_LANES)
            a = lks_chain(a, p[e]);
        lks_counter_push(&pieces, LKS_FN(tree)(a, lane, j));
    }
    if (j == 0u)
        out[row] = SCALED(lks_final(lks_counter_root(&pieces)));
}
#endif

#if defined(COLUMNS) || defined(LEAVES)
#include "op/vec.h"

/* The first `live` lanes, VEC or fewer, of neighbours in memory. */
static V LKS_FN(get)(__global const F32 *p, U32 live)
{
#if VEC > 1
    if (live < VEC) {
        F32 t[VEC];
        for (U32 i = 0u; i < VEC; i++)
            t[i] = i < live ? p[i] : 0.0f;
        return VEC_JOIN(vload, VEC)(0, t);
    }
#endif
    return LOAD(p);
}

static void LKS_FN(put)(V v, __global F32 *p, U32 live)
{
#if VEC > 1
    if (live < VEC) {
        F32 t[VEC];
        VEC_JOIN(vstore, VEC)(v, 0, t);
        for (U32 i = 0u; i < live; i++)
            p[i] = t[i];
        return;
    }
#endif
    STORE(v, p);
}
#endif

#ifdef COLUMNS
/* Work-item (vector of columns, block): at most one piece of rows, `width` apart. */
__kernel ALONE void LKS_KERNEL(columns)(__global const F32 *restrict x, __global F32 *restrict out,
                                        U32 width, struct reduce_dims d)
{
    U32 c = get_global_id(0) * VEC, live = width - c < VEC ? width - c : VEC, r = 0u;
    U64 block = get_global_id(1);
    __global const F32 *p = x + block * d.positions * width + c;
    V lane[LKS_ROW_LANES];
    for (U32 j = 0u; j < LKS_ROW_LANES; j++)
        lane[j] = (V)(0.0f);
    for (; r < d.positions; r++)
        lane[r % LKS_ROW_LANES] =
            fma(LKS_FN(get)(p + (U64)r * width, live), (V)(1.0f), lane[r % LKS_ROW_LANES]);
    for (U32 s = 1u; s < LKS_ROW_LANES; s *= 2u)
        for (U32 j = 0u; j + s < LKS_ROW_LANES; j += 2u * s)
            lane[j] = lane[j] + lane[j + s];
    LKS_FN(put)(SCALED(lane[0] + 0.0f), out + block * width + c, live);
}
#endif

#ifdef LEAVES
#define NV 1
#include "op/span.h"

/* Work-item (vector of outputs, leaf) into parts[leaf][output]; vectors lie along runs of `run`
 * outputs that are neighbours in x. PLAIN: a sample's positions are `off_step[0]` apart. */
__kernel void LKS_KERNEL(leaves)(__global const F32 *restrict x, __global F32 *restrict parts,
                                 U32 run, U64 outputs, struct reduce_dims d)
{
    struct lks_leaf f = lks_leaf_make(d.samples, d.positions, 1u, d.leaf);
    U32 leaf = get_global_id(1), per = (run + VEC - 1u) / VEC, n0, n1, r0, r1;
    U64 v = get_global_id(0);
    U32 c = (U32)(v % per) * VEC, live = run - c < VEC ? run - c : VEC;
    U64 e = v / per * run + c, at;
    V acc[NV] = {(V)(0.0f)};
    struct LKS_FN(span) sum = {0};
    U32 fill = 0u;
    if (leaf >= f.leaves || e >= outputs)
        return;
    at = lks_reduce_kept(&d, e);
    lks_leaf_range(&f, leaf, &n0, &n1, &r0, &r1);
    for (U32 n = n0; n < n1; n++) {
        __global const F32 *p = x + at + (U64)n * d.sample_step;
#ifdef PLAIN
        p += (U64)r0 * d.off_step[0];
#define PLACE p + (r - r0) * d.off_step[0]
#else
#define PLACE p + lks_reduce_off(&d, r)
#endif
        for (U32 r = r0; r < r1; r++) {
            if (fill == LKS_SPAN) {
                LKS_FN(span_push)(&sum, acc);
                fill = 0u;
            }
            acc[0] = fma(LKS_FN(get)(PLACE, live), (V)(1.0f), acc[0]);
            fill++;
        }
    }
    LKS_FN(span_push)(&sum, acc);
    LKS_FN(span_root)(&sum, acc);
    LKS_FN(put)(acc[0], parts + (U64)leaf * outputs + e, live);
}
#endif

#ifdef TREE
__kernel void LKS_KERNEL(tree)(__global const F32 *restrict parts, __global F32 *restrict out,
                               U64 outputs, struct reduce_dims d)
{
    struct lks_leaf f = lks_leaf_make(d.samples, d.positions, 1u, d.leaf);
    struct lks_leaf_tree tree;
    U64 e = get_global_id(0);
    if (e >= outputs)
        return;
    lks_leaf_tree_init(&tree);
    for (U32 j = 0u; j < f.leaves; j++)
        lks_leaf_tree_push(&tree, &f, parts[(U64)j * outputs + e]);
    out[e] = SCALED(lks_leaf_tree_root(&tree) + 0.0f);
}
#endif

#ifdef RUNS
/* Work-item: a run along the last axis, whose step in v is 0 or 1. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
LKS_KERNEL(runs)(__global const F32 *restrict v, __global F32 *restrict out, struct reduce_dims d)
{
    U32 length = d.all[d.n_all - 1u];
    U64 e = get_global_id(0) * (U64)length;
    __global const F32 *p = v + lks_expand_place(&d, e);
    if (d.all_step[d.n_all - 1u] == 0u) {
        F32 s = SCALED(p[0]);
        for (U32 i = 0u; i < length; i++)
            out[e + i] = s;
    } else {
        for (U32 i = 0u; i < length; i++)
            out[e + i] = SCALED(p[i]);
    }
}
#endif
