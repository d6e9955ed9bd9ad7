/*
 * product_gpu.cl - schedules `nv` and `gpu` of conv2d, conv2d_data_grad, dense and
 * dense_data_grad: implicit matrix products, rows are positions of the result, columns its
 * channels, and the chain runs over (r, s, channels of the source).
 *
 * Macros: tile and PTX as product_core.h has them; GRAD=1 for data gradients; A_WIDTH=4 if the
 * channels of a group of the source are a multiple of 4, else 1. A tap's channels are filled up to
 * `cp`, a multiple of BK, by zeros on both sides; or (GATHER=1, with A_WIDTH=1 and without PIECES)
 * the chain is gathered element by element. The weights are read as they stand in memory by
 * DIRECT=1 (GRAD, in whose rows the columns are neighbours; with GATHER one tap only) and TURNED=1
 * (forward, where the chain's elements are); else product_pack_gpu.cl has put them into
 * [group][chain][np]. PIECES=1: chains are more than one piece. FULL=1: a tap's channels are a
 * multiple of BK. WIDE=1: results are stored in fours. BIAS, MASK, RELU: what follows the sum.
 *
 * Data gradients with a stride (PHASED=1): work-groups with another third index compute the rows
 * and columns of the result that have another remainder modulo the stride, and walk their own taps
 * only.
 */
#include "contract/conv.h"

#define KMAJOR 0
#if !GATHER
#define NA      (BM * BK / A_WIDTH / NT)
#define A_COLS  (BK / A_WIDTH)
#define A_TO(i) ((a_row + (i) * (NT / A_COLS)) * (BK + 4) + a_col * A_WIDTH)
#define A_FROM(i) (from_a + at[i])
#if FULL
#define A_LIVE(i) live[i]
#else
#define A_LIVE(i) (live[i] && kc + a_col * A_WIDTH < (int)src_c.y)
#endif
#define ADVANCE                                                                                    \
    kc += BK;                                                                                      \
    from_a += BK;                                                                                  \
    from_b += B_TILE;                                                                              \
    if (kc >= (int)shape.x)                                                                        \
        NEXT_TAP
#define TAP     (r * (int)taps.y + s)
#define ANY_TAP (r < (int)taps.x)
#else
#define NA      (BM * BK / NT)
#define A_COLS  BK
#define A_TO(i) ((a_row + (i) * (NT / A_COLS)) * (BK + 4) + a_col)
#define A_FROM(i) (source + (pixel[a_row + (i) * (NT / A_COLS)].x + shift))
#define A_LIVE(i)                                                                                  \
    (meets && (U32)(pixel[a_row + (i) * (NT / A_COLS)].y + tap_h) < src_hw.x &&                    \
     (U32)(pixel[a_row + (i) * (NT / A_COLS)].z + tap_w) < src_hw.y)
#define ADVANCE                                                                                    \
    kc += BK;                                                                                      \
    SET_ELEMENT
#endif
#define A_STEP(i)

#if TURNED
#define B_WIDTH   A_WIDTH
#define B_COLS    (BK / B_WIDTH)
#define B_ROWS    (NT / B_COLS) /* columns of the product */
#define NB        (BN / B_ROWS)
#define B_TO(i)   ((b_row + (i) * B_ROWS) * (BK + 4) + b_col * B_WIDTH)
#define B_COLUMN(i) (column + b_row + (i) * B_ROWS)
#if !GATHER
#define B_PITCH   (int)(taps.x * taps.y * src_c.y)
#define B_TILE    BK
#define B_TAP     src_c.y
#define B_START   ((U64)(U32)(column + b_row) * (taps.x * taps.y * src_c.y) + b_col * B_WIDTH)
#define B_FROM(i) (from_b + (i) * B_ROWS * B_PITCH)
#if FULL
#define B_LIVE(i) (ANY_TAP && B_COLUMN(i) < (int)dst_c.y)
#else
#define B_LIVE(i)                                                                                  \
    (ANY_TAP && kc + b_col * B_WIDTH < (int)src_c.y && B_COLUMN(i) < (int)dst_c.y)
#endif
#else
#define B_FROM(i) (weights + (B_COLUMN(i) * chain + kc + b_col))
#define B_LIVE(i) (kc + b_col < chain && B_COLUMN(i) < (int)dst_c.y)
#endif
#else
#define B_WIDTH 4
#define B_COLS  (BN / 4)
#define B_ROWS  (NT / B_COLS)
#define NB      (BK / B_ROWS)
#define B_TO(i) ((b_row + (i) * B_ROWS) * BN + b_col * 4)
#define B_ROW(i) (kc + b_row + (i) * B_ROWS)
#if !GATHER
#define B_TILE    ((int)BK * B_PITCH)
#define B_START   ((U64)(U32)b_row * B_PITCH + (U32)(column + b_col * 4))
#define B_FROM(i) (from_b + (i) * B_ROWS * B_PITCH)
#if DIRECT
#define B_PITCH   (int)(taps.x * taps.y * dst_c.y)
#define B_TAP     dst_c.y
#if FULL
#define B_LIVE(i) (ANY_TAP && column + b_col * 4 < (int)dst_c.y)
#else
#define B_LIVE(i)                                                                                  \
    (ANY_TAP && B_ROW(i) < (int)src_c.y && column + b_col * 4 < (int)dst_c.y)
#endif
#else
#define B_PITCH   (int)shape.y
#define B_TAP     (shape.x * shape.y)
#define B_LIVE(i) ANY_TAP
#endif
#elif DIRECT /* one tap */
#define B_FROM(i) (weights + ((U64)(U32)B_ROW(i) * dst_c.y + column + b_col * 4))
#define B_LIVE(i) (B_ROW(i) < (int)src_c.y && column + b_col * 4 < (int)dst_c.y)
#else
#define B_FROM(i) (weights + ((U64)(kc + b_row + (i) * B_ROWS) * shape.y + column + b_col * 4))
#define B_LIVE(i) (kc < chain)
#endif
#endif
#define B_STEP(i)
#include "op/product_core.h"

/* Does tap (r, s) meet this work-group's positions, and where from a position's base. */
#if PHASED
#define MEETS(r, s)                                                                                \
    ((U32)(r) * dil.x % stride.x == remainder_h && (U32)(s) * dil.y % stride.y == remainder_w)
#define TAP_H(r) (-(int)((U32)(r) * dil.x / stride.x))
#define TAP_W(s) (-(int)((U32)(s) * dil.y / stride.y))
#elif GRAD
#define MEETS(r, s) 1
#define TAP_H(r)    (-(int)((U32)(r) * dil.x))
#define TAP_W(s)    (-(int)((U32)(s) * dil.y))
#else
#define MEETS(r, s) 1
#define TAP_H(r)    ((int)((U32)(r) * dil.x))
#define TAP_W(s)    ((int)((U32)(s) * dil.y))
#endif

/* Goes to the next tap that meets, or to r = taps.x where nothing is live. */
#define NEXT_TAP                                                                                   \
    {                                                                                              \
        do {                                                                                       \
            if (++s == (int)taps.y) {                                                              \
                s = 0;                                                                             \
                r++;                                                                               \
            }                                                                                      \
        } while (r < (int)taps.x && !(MEETS(r, s)));                                               \
        kc = 0;                                                                                    \
        const int tap_h = TAP_H(r), tap_w = TAP_W(s);                                              \
        from_a = source + (tap_h * (int)src_hw.y + tap_w) * (int)src_c.x;                          \
        from_b = weights + (U64)(U32)TAP * B_TAP;                                                  \
        UNROLL for (int i_ = 0; i_ < NA; i_++)                                                     \
            live[i_] = r < (int)taps.x && (U32)(at_h[i_] + tap_h) < src_hw.x &&                    \
                       (U32)(at_w[i_] + tap_w) < src_hw.y;                                         \
    }

/* GATHER: the element of the chain that this work-item copies next. */
#define SET_ELEMENT                                                                                \
    {                                                                                              \
        const int e_ = kc + a_col, tap = e_ / (int)src_c.y, r_ = tap / (int)taps.y,                \
                  s_ = tap - r_ * (int)taps.y;                                                     \
        meets = e_ < chain && MEETS(r_, s_);                                                       \
        tap_h = TAP_H(r_);                                                                         \
        tap_w = TAP_W(s_);                                                                         \
        shift = (tap_h * (int)src_hw.y + tap_w) * (int)src_c.x + (e_ - tap * (int)src_c.y);        \
    }

#if PIECES
/* Where the piece behind the one that begins at tile `cut_at` begins. */
#define NEXT_CUT                                                                                  \
    if (cut.y != 0u) {                                                                             \
        if (cut_at == tap_end)                                                                       \
            tap_end += cut.y;                                                                      \
        cut_at = min(cut_at + cut.x, tap_end);                                                         \
    } else {                                                                                       \
        NEXT_TAPS                                                                                  \
    }
#if PHASED
#define NEXT_TAPS                                                                                  \
    U32 met = 0u;                                                                                  \
    while (met == 0u && next_tap < taps.x * taps.y) {                                              \
        const U32 end_ = min(next_tap + piece_taps, taps.x * taps.y);                                   \
        for (; next_tap < end_; next_tap++)                                                        \
            met += (U32)(MEETS(next_tap / taps.y, next_tap % taps.y));                             \
    }                                                                                              \
    cut_at += met * cut.x;
#else
#define NEXT_TAPS cut_at += cut.x;
#endif
#endif

/* The first channel of the group at position p of this work-group's result. */
#if PHASED
#define DESTINATION(p)                                                                             \
    (((U64)((U32)(p) / (rows * cols) * dst_hw.x +                                                  \
            (U32)(p) % (rows * cols) / cols * stride.x + phase_h) *                                \
          dst_hw.y +                                                                               \
      (U32)(p) % (rows * cols) % cols * stride.y + phase_w) *                                      \
         dst_c.x +                                                                                 \
     group * dst_c.y)
#else
#define DESTINATION(p) ((U64)(p) * dst_c.x + group * dst_c.y)
#endif
#define AT_ONCE (TM % 4 == 0 ? 4 : TM % 3 == 0 ? 3 : TM % 2 == 0 ? 2 : 1)

/*
 * source [n][src_hw][src_c.x], result [n][dst_hw][dst_c.x]; .y of the channels: of a group.
 * batch: samples, groups. shape: cp (without GATHER), columns of a packed row. cut: tiles a piece
 * (PHASED, with several taps a piece: tiles a tap), tiles of a tap if taps are cut, else 0.
 */
__kernel __attribute__((reqd_work_group_size(NT, 1, 1))) void
LKS_KERNEL(product)(__global const float *restrict source, __global const float *restrict weights,
                    __global const float *restrict extra, __global float *restrict result,
                    uint2 batch, uint2 src_hw, uint2 src_c, uint2 dst_hw, uint2 dst_c, uint2 taps,
                    uint2 stride, uint2 pad, uint2 dil, uint2 shape
#if PIECES
                    , uint2 cut, U32 piece_taps
#endif
)
{
    TILE_VARIABLES
    const U32 group = (U32)get_group_id(2) % batch.y;
    const int row0 = (int)get_group_id(1) * BM, column = (int)get_group_id(0) * BN;
#if PHASED
    const U32 phase = (U32)get_group_id(2) / batch.y;
    const U32 phase_h = phase / stride.y, phase_w = phase % stride.y;
    if (phase_h >= dst_hw.x || phase_w >= dst_hw.y)
        return;
    const U32 rows = (dst_hw.x - phase_h - 1u) / stride.x + 1u;
    const U32 cols = (dst_hw.y - phase_w - 1u) / stride.y + 1u;
    const U32 remainder_h = (phase_h + pad.x) % stride.x, remainder_w = (phase_w + pad.y) % stride.y;
#else
    const U32 rows = dst_hw.x, cols = dst_hw.y;
#endif
    const int positions = (int)(batch.x * rows * cols);
    if (row0 >= positions)
        return;
    source += group * src_c.y;
#if DIRECT || TURNED
    weights += (U64)group * src_c.y * dst_c.y * (taps.x * taps.y);
#endif
    const int a_row = item / A_COLS, a_col = item % A_COLS;
    const int b_row = item / B_COLS, b_col = item % B_COLS;
    int kc = 0;
#if PHASED
#define BASE_H(y) ((int)((y) + (phase_h + pad.x) / stride.x))
#define BASE_W(x) ((int)((x) + (phase_w + pad.y) / stride.y))
#elif GRAD
#define BASE_H(y) ((int)((y) + pad.x))
#define BASE_W(x) ((int)((x) + pad.y))
#else
#define BASE_H(y) ((int)((y) * stride.x - pad.x))
#define BASE_W(x) ((int)((x) * stride.y - pad.y))
#endif
#if !GATHER
    const int chain = (int)(taps.x * taps.y * shape.x);
    (void)chain; /* of some variants */
    int at[NA], at_h[NA], at_w[NA], live[NA];
    UNROLL for (int i = 0; i < NA; i++)
    {
        const int p = row0 + a_row + i * (NT / A_COLS);
        const U32 p_ = (U32)min(p, positions - 1), n = p_ / (rows * cols), q = p_ % (rows * cols);
        at_h[i] = BASE_H(q / cols);
        at_w[i] = BASE_W(q % cols);
        at[i] = (((int)n * (int)src_hw.x + at_h[i]) * (int)src_hw.y + at_w[i]) * (int)src_c.x;
        if (p >= positions)
            at_h[i] = -0x40000000; /* no tap of it is live */
    }
    int r = 0, s = -1, tiles = 0;
    __global const float *from_a, *from_b; /* this tile's, of this work-item */
#if PHASED
    for (U32 i = 0u; i < taps.x; i++)
        tiles += i * dil.x % stride.x == remainder_h;
    int across = 0;
    for (U32 i = 0u; i < taps.y; i++)
        across += i * dil.y % stride.y == remainder_w;
    tiles *= across * (int)(shape.x / BK);
#else
    tiles = chain / BK;
#endif
#if !DIRECT && !TURNED
    weights += (U64)group * (U32)chain * shape.y;
#endif
    source += a_col * A_WIDTH;
    weights += B_START;
    NEXT_TAP
#else
    const int chain = (int)(taps.x * taps.y * src_c.y), tiles = (chain + BK - 1) / BK;
    __local int4 pixel[BM];
    int meets, shift, tap_h, tap_w;
    for (int m = item; m < BM; m += NT) {
        const int p = row0 + m;
        const U32 p_ = (U32)min(p, positions - 1), n = p_ / (rows * cols), q = p_ % (rows * cols);
        const int h = BASE_H(q / cols), w = BASE_W(q % cols);
        pixel[m] = (int4)((((int)n * (int)src_hw.x + h) * (int)src_hw.y + w) * (int)src_c.x,
                          p < positions ? h : -0x40000000, w, 0);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    SET_ELEMENT
#if !DIRECT && !TURNED
    weights += (U64)group * (U32)tiles * BK * shape.y;
#endif
#endif
#if PIECES
    const U32 never = taps.x >> 31;
    U32 cut_at = 0u, tap_end = 0u;
#if PHASED
    U32 next_tap = 0u;
#endif
    NEXT_CUT
#endif
    TILE_RUN(tiles)

#if WIDE
    /* Masks are read some rows ahead of their use. */
    UNROLL for (int i0 = 0; i0 < TM; i0 += AT_ONCE)
    {
        U64 to[AT_ONCE];
#if MASK
        float4 extra_of[AT_ONCE][TN / 4];
#endif
        UNROLL for (int i = 0; i < AT_ONCE; i++)
        {
            const int p = row0 + ROW(i0 + i);
            to[i] = DESTINATION(p);
#if MASK
            UNROLL for (int j = 0; j < TN / 4; j++)
            {
                const int c = column + COLUMN(4 * j);
                if (p < positions && c < (int)dst_c.y)
                    extra_of[i][j] = *(__global const float4 *)(extra + to[i] + c);
            }
#endif
        }
        UNROLL for (int i = 0; i < AT_ONCE; i++)
        {
            UNROLL for (int j = 0; j < TN / 4; j++)
            {
                const int p = row0 + ROW(i0 + i), c = column + COLUMN(4 * j);
                float *sum = &acc[i0 + i][4 * j];
                float4 v = (float4)(sum[0], sum[1], sum[2], sum[3]);
                if (p < positions && c < (int)dst_c.y) {
#if BIAS
                    v = v + *(__global const float4 *)(extra + group * dst_c.y + c);
#endif
                    v = v + (float4)(0.0f);
#if MASK
                    v = select(v, (float4)(0.0f), (int4)(extra_of[i][j] <= 0.0f));
#endif
#if RELU
                    v = select(v, (float4)(0.0f), (int4)(v <= 0.0f));
#endif
                    *(__global float4 *)(result + to[i] + c) = v;
                }
            }
        }
    }
#else
    UNROLL for (int i = 0; i < TM; i++)
    {
        const int p = row0 + ROW(i);
        const U64 to = DESTINATION(p);
        UNROLL for (int j = 0; j < TN; j++)
        {
            const int c = column + COLUMN(j);
            float v = acc[i][j];
            if (p < positions && c < (int)dst_c.y) {
#if BIAS
                v = v + extra[group * dst_c.y + c];
#endif
                v = v + 0.0f;
#if MASK
                v = extra[to + c] <= 0.0f ? 0.0f : v;
#endif
#if RELU
                v = lks_conv_relu(v);
#endif
                result[to + c] = v;
            }
        }
    }
#endif
}
