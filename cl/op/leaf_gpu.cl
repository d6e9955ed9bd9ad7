/*
 * leaf_gpu.cl - numbers of the leaves of a batch for the schedules `gpu` of batch_norm,
 * batch_norm_grad and bias_grad. A work-group takes KX channels of one leaf: its work-items bring
 * positions into local memory, where each of them chains pieces (piece.h) of one channel; then the
 * pieces meet in their tree there.
 *
 *   moments  mean and M2 of x into parts[leaf][2][channels]; local memory holds the whole leaf
 *   sums     the sums behind dgamma and dbeta into the same; BIAS: the sum of dy into
 *            parts[leaf][channels]
 * Macros: one of MOMENTS, SUMS, BIAS; KX, a multiple of 4; NT work-items, a multiple of KX.
 * TOGETHER: positions at a time of `sums`, a piece a work-item. Channels are a multiple of 4.
 * `room` has a float for each channel and position of the longest leaf (with `moments`) and for the
 * gaps, then for each number, channel and piece.
 */
#include "contract/leaf.h"
#include "contract/piece.h"

#define UNROLL _Pragma("unroll")
#define COLS   (KX / 4)
#define ROWS   (NT / COLS) /* positions side by side */
#define SLOTS  (NT / KX)   /* pieces side by side */
#define AHEAD  8

/* Where position p stands, its first channel; behind each piece is a gap, so that neighbouring pieces
 * are read from other banks. */
#define GAP      KX
#define TILE(p)  ((p) * KX + (p) / LKS_SPAN * GAP)

/* The work-group's leaf and channels; this work-item's place when it brings and when it chains. */
#define WHERE                                                                                      \
    const U32 item = get_local_id(0), row = item / COLS, col = item % COLS * 4u;                   \
    const U32 channel = item % KX, slot = item / KX;                                               \
    const U32 c0 = get_group_id(0) * KX, which = get_group_id(1);                                  \
    const int live = c0 + col < channels;                                                          \
    struct lks_leaf f = lks_leaf_make(n, h, w, leaf);                                              \
    U32 n0, n1, r0, r1;                                                                            \
    lks_leaf_range(&f, which, &n0, &n1, &r0, &r1);                                                 \
    const U64 first = ((U64)n0 * h + r0) * w * channels + c0;                                      \
    const U32 count = f.cut > 1u ? (r1 - r0) * w : (n1 - n0) * h * w;                              \
    const U32 pieces = (count + LKS_SPAN - 1u) / LKS_SPAN;

/* Runs STEP for the positions [p0, p1) of a piece; the element stands at place `at` of a tile. */
#define CHAIN(p0, p1, STEP)                                                                        \
    {                                                                                              \
        U32 at = TILE(p0) + channel;                                                               \
        if ((p1) - (p0) == LKS_SPAN) {                                                             \
            UNROLL for (U32 k_ = 0u; k_ < LKS_SPAN; k_++, at += KX)                                \
            {                                                                                      \
                STEP                                                                               \
            }                                                                                      \
        } else {                                                                                   \
            for (U32 p_ = (p0); p_ < (p1); p_++, at += KX) {                                       \
                STEP                                                                               \
            }                                                                                      \
        }                                                                                          \
    }

/* The tree over part[pieces][KX]; its roots are part[channel]. All work-items come here. */
static inline void LKS_FN(tree)(__local F32 *part, U32 pieces)
{
    const U32 channel = (U32)get_local_id(0) % KX, slot = (U32)get_local_id(0) / KX;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (U32 s = 1u; s < pieces; s *= 2u) {
        for (U32 i = slot * 2u * s; i + s < pieces; i += SLOTS * 2u * s)
            part[i * KX + channel] = part[i * KX + channel] + part[(i + s) * KX + channel];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#ifdef MOMENTS
__kernel __attribute__((reqd_work_group_size(NT, 1, 1))) void
LKS_KERNEL(moments)(__global const F32 *restrict x, __global F32 *restrict parts, U32 n, U32 h,
                    U32 w, U32 channels, U32 leaf, __local float4 *room)
{
    __local F32 *tile = (__local F32 *)room; /* the type makes it aligned for stores of four */
    WHERE
    __local F32 *part = tile + TILE(pieces * LKS_SPAN);
    __global const F32 *from = x + first + col;
    for (U32 i = row; live && i < count; i += ROWS * AHEAD) {
        float4 v[AHEAD];
        UNROLL for (U32 k = 0u; k < AHEAD; k++)
        {
            const U32 p = i + k * ROWS;
            if (p < count)
                v[k] = *(__global const float4 *)(from + (U64)p * channels);
        }
        UNROLL for (U32 k = 0u; k < AHEAD; k++)
        {
            const U32 p = i + k * ROWS;
            if (p < count)
                *(__local float4 *)(tile + TILE(p) + col) = v[k];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (U32 i = slot; i < pieces; i += SLOTS) {
        F32 sum = 0.0f;
        CHAIN(i * LKS_SPAN, min((i + 1u) * LKS_SPAN, count), sum = lks_chain(sum, tile[at]);)
        part[i * KX + channel] = sum;
    }
    LKS_FN(tree)(part, pieces);
    const F32 mean = lks_div(part[channel], (F32)count);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (U32 i = slot; i < pieces; i += SLOTS) {
        F32 m2 = 0.0f;
        CHAIN(i * LKS_SPAN, min((i + 1u) * LKS_SPAN, count), const F32 d = tile[at] - mean;
              m2 = lks_fma(d, d, m2);)
        part[i * KX + channel] = m2;
    }
    LKS_FN(tree)(part, pieces);
    if (slot > 0u || c0 + channel >= channels)
        return;
    parts += (U64)which * 2u * channels + c0 + channel;
    parts[0] = mean;
    parts[channels] = part[channel];
}
#else
#define EACH (TOGETHER / ROWS) /* positions that a work-item brings at a time */
#ifdef SUMS
#define INPUTS                                                                                     \
    __global const F32 *restrict x, __global const F32 *restrict dy,                               \
        __global const F32 *restrict mean, __global const F32 *restrict invstd
#else
#define INPUTS __global const F32 *restrict dy
#endif

/* This work-item's part of the positions from `done` on. */
#define FETCH(done)                                                                                \
    UNROLL for (U32 k = 0u; k < EACH; k++)                                                         \
    {                                                                                              \
        const U32 p = (done) + row + k * ROWS;                                                     \
        if (live && p < count) {                                                                   \
            g[k] = *(__global const float4 *)(dy + (U64)p * channels);                             \
            FETCH_X                                                                                \
        }                                                                                          \
    }
#ifdef SUMS
#define FETCH_X u[k] = *(__global const float4 *)(x + (U64)p * channels);
#else
#define FETCH_X
#endif

__kernel __attribute__((reqd_work_group_size(NT, 1, 1))) void
LKS_KERNEL(sums)(INPUTS, __global F32 *restrict parts, U32 n, U32 h, U32 w, U32 channels, U32 leaf,
                 __local float4 *room)
{
    WHERE
    __local F32 tile_g[TILE(TOGETHER)] __attribute__((aligned(16)));
    __local F32 *part = (__local F32 *)room; /* db, then dg */
    float4 g[EACH];
    dy += first + col;
#ifdef SUMS
    __local F32 tile_x[TILE(TOGETHER)] __attribute__((aligned(16)));
    __local F32 *part_x = part + pieces * KX;
    float4 u[EACH], m = (float4)(0.0f), s = (float4)(0.0f);
    x += first + col;
    if (live) {
        m = *(__global const float4 *)(mean + c0 + col);
        s = *(__global const float4 *)(invstd + c0 + col);
    }
#endif
    FETCH(0u)
    for (U32 done = 0u; done < count; done += TOGETHER) {
        const U32 left = count - done < TOGETHER ? count - done : TOGETHER;
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL for (U32 k = 0u; k < EACH; k++)
        {
            *(__local float4 *)(tile_g + TILE(row + k * ROWS) + col) = g[k];
#ifdef SUMS
            *(__local float4 *)(tile_x + TILE(row + k * ROWS) + col) = (u[k] - m) * s;
#endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        FETCH(done + TOGETHER)
        if (slot * LKS_SPAN < left) {
            const U32 to = (done / LKS_SPAN + slot) * KX + channel;
            F32 db = 0.0f;
#ifdef SUMS
            F32 dg = 0.0f;
            CHAIN(slot * LKS_SPAN, min((slot + 1u) * LKS_SPAN, left),
                  db = lks_chain(db, tile_g[at]); dg = lks_fma(tile_g[at], tile_x[at], dg);)
            part_x[to] = dg;
#else
            CHAIN(slot * LKS_SPAN, min((slot + 1u) * LKS_SPAN, left),
                  db = lks_chain(db, tile_g[at]);)
#endif
            part[to] = db;
        }
    }
    LKS_FN(tree)(part, pieces);
#ifdef SUMS
    LKS_FN(tree)(part_x, pieces);
#endif
    if (slot > 0u || c0 + channel >= channels)
        return;
#ifdef SUMS
    parts += (U64)which * 2u * channels + c0 + channel;
    parts[0] = part_x[channel];
    parts[channels] = part[channel];
#else
    parts[(U64)which * channels + c0 + channel] = part[channel];
#endif
}
#endif
