/*
 * segment_norm.cl - schedule `two_stage` of segment_norm.
 *
 *   pieces  roots[t * most + q] = piece q of part t, by lanes and tree; a part has at most `most`
 *   join    the tree over a part's pieces, and the root
 * On a CPU (CPU) a work-item takes whole pieces, lanes as vectors; elsewhere 32 items are the lanes,
 * and the items of `join` take runs of 2^k pieces, which are whole subtrees.
 */
#include "contract/segment_norm.h"

#define PIECE LKS_ROW_PIECE
#define LANES LKS_ROW_LANES

#ifdef CPU
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
LKS_KERNEL(pieces)(__global const F32 *restrict x, __global const I32 *restrict part,
                   __global F32 *restrict roots, U64 n, U32 most)
{
    U64 t = get_global_id(1), count = segment_norm_count(part, n, t);
    __global const F32 *from = x + (U32)part[2u * t];
    for (U64 q = get_global_id(0); q * PIECE < count; q += get_global_size(0)) {
        __global const F32 *p = from + q * PIECE;
        U64 left = count - q * PIECE;
        U32 size = left < PIECE ? (U32)left : PIECE, i = 0u;
        float16 a = (float16)(0.0f), b = a;
        F32 lane[LANES];
        for (; i + LANES <= size; i += LANES) {
            float16 u = vload16(0, p + i), v = vload16(1, p + i);
            a = fma(u, u, a);
            b = fma(v, v, b);
        }
        vstore16(a, 0, lane);
        vstore16(b, 1, lane);
        for (U32 j = 0u; i + j < size; j++)
            lane[j] = lks_fma(p[i + j], p[i + j], lane[j]);
        roots[t * most + q] = lks_tree(lane, LANES);
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
LKS_KERNEL(join)(__global const F32 *restrict roots, __global const I32 *restrict part,
                 __global F32 *restrict norm, U64 n, U32 most)
{
    U64 t = get_global_id(0), count = segment_norm_count(part, n, t);
    struct lks_counter c;
    lks_counter_init(&c);
    for (U64 q = 0u; q * PIECE < count; q++)
        lks_counter_push(&c, roots[t * most + q]);
    norm[t] = lks_sqrt(lks_final(lks_counter_root(&c)));
}
#else
__kernel void LKS_KERNEL(pieces)(__global const F32 *restrict x,
                                 __global const I32 *restrict part,
                                 __global F32 *restrict roots, U64 n, U32 most)
{
    __local F32 lanes[GROUP];
    U64 t = get_group_id(1), count = segment_norm_count(part, n, t), q0;
    U32 l = get_local_id(0), lane = l % LANES, sub = l / LANES, subs = GROUP / LANES, s;
    __global const F32 *from = x + (U32)part[2u * t];
    for (q0 = get_group_id(0) * (U64)subs; q0 * PIECE < count; q0 += get_num_groups(0) * (U64)subs) {
        U64 q = q0 + sub, i = q * PIECE + lane, end = (q + 1u) * PIECE;
        F32 acc = 0.0f;
        end = end < count ? end : count;
        for (; i < end; i += LANES)
            acc = lks_fma(from[i], from[i], acc);
        lanes[l] = acc;
        for (s = 1u; s < LANES; s *= 2u) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lane % (2u * s) == 0u)
                lanes[l] = lanes[l] + lanes[l + s];
        }
        if (lane == 0u && q * PIECE < count)
            roots[t * most + q] = lanes[l];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

__kernel void LKS_KERNEL(join)(__global const F32 *restrict roots,
                               __global const I32 *restrict part, __global F32 *restrict norm,
                               U64 n, U32 most)
{
    __local F32 tops[GROUP];
    U64 t = get_group_id(0), count = segment_norm_count(part, n, t);
    U32 m = (U32)((count + PIECE - 1u) / PIECE), l = get_local_id(0), run = 1u, tree, i, s;
    struct lks_counter c;
    while ((U64)run * GROUP < m)
        run *= 2u;
    tree = (m + run - 1u) / run;
    lks_counter_init(&c);
    for (i = l * run; i < (l + 1u) * run && i < m; i++)
        lks_counter_push(&c, roots[t * most + i]);
    tops[l] = lks_counter_root(&c);
    for (s = 1u; s < tree; s *= 2u) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l % (2u * s) == 0u && l + s < tree)
            tops[l] = tops[l] + tops[l + s];
    }
    if (l == 0u)
        norm[t] = lks_sqrt(lks_final(tops[0]));
}
#endif
