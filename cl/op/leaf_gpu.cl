/*
 * leaf_gpu.cl - numbers of the leaves of a batch for the schedules `gpu` of batch_norm,
 * batch_norm_grad and bias_grad. The chain of a leaf is long and there are few, so a work-group
 * takes KX channels of one leaf: all its work-items bring positions into local memory, KX of them
 * walk the chains there.
 *
 *   moments  mean and M2 of x into parts[leaf][2][channels]; `tile` holds KX floats for each
 *            position of a leaf
 *   sums     the sums behind dgamma and dbeta into the same; BIAS: the sum of dy into
 *            parts[leaf][channels]
 * Macros: one of MOMENTS, SUMS, BIAS; NT work-items; KX, a multiple of 4. PIECE: positions at a time
 * of `sums`. Channels are a multiple of 4.
 */
#include "contract/leaf.h"

#define UNROLL _Pragma("unroll")
#define COLS   (KX / 4)
#define ROWS   (NT / COLS) /* positions side by side */
#define AHEAD  8

/* The work-group's leaf and channels, this work-item's place. */
#define WHERE                                                                                      \
    const U32 item = get_local_id(0), row = item / COLS, col = item % COLS * 4u;                   \
    const U32 c0 = get_group_id(0) * KX, which = get_group_id(1);                                  \
    /* The chains of neighbouring groups are walked by different sub-groups. */                    \
    const U32 lane = (item + (which + get_group_id(0)) * 32u) % NT;                                \
    const int chains = lane < KX && c0 + lane < channels, live = c0 + col < channels;              \
    struct lks_leaf f = lks_leaf_make(n, h, w, leaf);                                              \
    U32 n0, n1, r0, r1;                                                                            \
    lks_leaf_range(&f, which, &n0, &n1, &r0, &r1);                                                 \
    const U64 first = ((U64)n0 * h + r0) * w * channels + c0;                                      \
    const U32 count = f.cut > 1u ? (r1 - r0) * w : (n1 - n0) * h * w;

/* Runs STEP for the positions of the lane's channel, upward; the element stands at place p. */
#define WALK(count_, STEP)                                                                         \
    {                                                                                              \
        U32 p = lane;                                                                              \
        const U32 end_ = (count_)*KX + lane, whole_ = (count_) / 16u * (16u * KX) + lane;          \
        while (p < whole_) {                                                                       \
            UNROLL for (U32 k_ = 0u; k_ < 16u; k_++, p += KX)                                      \
            {                                                                                      \
                STEP                                                                               \
            }                                                                                      \
        }                                                                                          \
        for (; p < end_; p += KX) {                                                                \
            STEP                                                                                   \
        }                                                                                          \
    }

#ifdef MOMENTS
__kernel __attribute__((reqd_work_group_size(NT, 1, 1))) void
LKS_KERNEL(moments)(__global const F32 *restrict x, __global F32 *restrict parts, U32 n, U32 h,
                    U32 w, U32 channels, U32 leaf, __local float4 *fours)
{
    __local F32 *tile = (__local F32 *)fours; /* the type makes it aligned for stores of four */
    WHERE
    __global const F32 *from = x + first + col;
    for (U32 i = row; live && i < count; i += ROWS * AHEAD) {
        float4 v[AHEAD];
        UNROLL for (U32 k = 0u; k < AHEAD; k++)
        {
            const U32 at = i + k * ROWS;
            if (at < count)
                v[k] = *(__global const float4 *)(from + (U64)at * channels);
        }
        UNROLL for (U32 k = 0u; k < AHEAD; k++)
        {
            const U32 at = i + k * ROWS;
            if (at < count)
                *(__local float4 *)(tile + at * KX + col) = v[k];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!chains)
        return;
    F32 sum = 0.0f, m2 = 0.0f;
    WALK(count, sum = lks_chain(sum, tile[p]);)
    const F32 mean = lks_div(sum, (F32)count);
    WALK(count, const F32 d = tile[p] - mean; m2 = lks_fma(d, d, m2);)
    parts += (U64)which * 2u * channels + c0 + lane;
    parts[0] = mean;
    parts[channels] = m2;
}
#else
#define EACH (PIECE / ROWS) /* positions of a piece that a work-item brings */
#ifdef SUMS
#define INPUTS                                                                                     \
    __global const F32 *restrict x, __global const F32 *restrict dy,                               \
        __global const F32 *restrict mean, __global const F32 *restrict invstd
#else
#define INPUTS __global const F32 *restrict dy
#endif

/* This work-item's part of the piece from position `done` on. */
#define FETCH(done)                                                                                \
    UNROLL for (U32 k = 0u; k < EACH; k++)                                                         \
    {                                                                                              \
        const U32 at = (done) + row + k * ROWS;                                                    \
        if (live && at < count) {                                                                  \
            g[k] = *(__global const float4 *)(dy + (U64)at * channels);                            \
            FETCH_X                                                                                \
        }                                                                                          \
    }
#ifdef SUMS
#define FETCH_X u[k] = *(__global const float4 *)(x + (U64)at * channels);
#else
#define FETCH_X
#endif

__kernel __attribute__((reqd_work_group_size(NT, 1, 1))) void
LKS_KERNEL(sums)(INPUTS, __global F32 *restrict parts, U32 n, U32 h, U32 w, U32 channels, U32 leaf)
{
    WHERE
    __local F32 tile_g[PIECE * KX] __attribute__((aligned(16)));
    float4 g[EACH];
    F32 db = 0.0f;
    dy += first + col;
#ifdef SUMS
    __local F32 tile_x[PIECE * KX] __attribute__((aligned(16)));
    float4 u[EACH], m = (float4)(0.0f), s = (float4)(0.0f);
    F32 dg = 0.0f;
    x += first + col;
    if (live) {
        m = *(__global const float4 *)(mean + c0 + col);
        s = *(__global const float4 *)(invstd + c0 + col);
    }
#endif
    FETCH(0u)
    for (U32 done = 0u; done < count; done += PIECE) {
        const U32 left = count - done < PIECE ? count - done : PIECE;
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL for (U32 k = 0u; k < EACH; k++)
        {
            *(__local float4 *)(tile_g + (row + k * ROWS) * KX + col) = g[k];
#ifdef SUMS
            *(__local float4 *)(tile_x + (row + k * ROWS) * KX + col) = (u[k] - m) * s;
#endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        FETCH(done + PIECE)
        if (chains) {
#ifdef SUMS
            WALK(left, db = lks_chain(db, tile_g[p]); dg = lks_fma(tile_g[p], tile_x[p], dg);)
#else
            WALK(left, db = lks_chain(db, tile_g[p]);)
#endif
        }
    }
    if (!chains)
        return;
#ifdef SUMS
    parts += (U64)which * 2u * channels + c0 + lane;
    parts[0] = dg;
    parts[channels] = db;
#else
    parts[(U64)which * channels + c0 + lane] = db;
#endif
}
#endif
