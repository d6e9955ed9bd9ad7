/*
 * product_weight_gpu.cl - schedules `nv` and `gpu` of conv2d_weight_grad: rows are output
 * channels, columns the elements (r, s, c) of their weights, and the chain runs over the positions
 * of one leaf. Each leaf goes into a workspace [leaf][k][r][s][c]; `tree` adds them.
 *
 * Macros: tile and PTX as product_core.h has them; A_WIDTH=4 if the output channels of a group are
 * a multiple of 4, B_WIDTH=4 if the input channels of a group are, else 1. RUN: a power of two that
 * divides a row of the result, 16 at most. TURNS: the launch is repeated, and each time has its own
 * leaves. PIECES=1: leaves are more than one piece.
 */
#include "contract/conv.h"

#define KMAJOR 1
#define TURNED 0
/* The copies of a work-item are runs of positions that follow one another in a row of the result:
 * copy i is RUN_ROW(i) rows below its first. */
#define LESS(a, b) ((a) < (b) ? (a) : (b))
#define RUN_ROW(i, rows, run) ((i) / (run) * ((rows) * (run)) + (i) % (run))
#define A_COLS (BM / A_WIDTH)
#define A_ROWS (NT / A_COLS)
#define NA     (BK / A_ROWS)
#define A_RUN  LESS(RUN, NA)
#define A_AT(i)   RUN_ROW(i, A_ROWS, A_RUN)
#define A_TO(i)   ((a_row + A_AT(i)) * BM + a_col * A_WIDTH)
#define A_FROM(i) (dy + (int)A_AT(i) * (int)channels.y)
#define A_LIVE(i) (a_row + ((i) - (i) % A_RUN) * A_ROWS < a_left)
#define A_STEP(i)

#define B_COLS (BN / B_WIDTH)
#define B_ROWS (NT / B_COLS)
#define NB     (BK / B_ROWS)
#define B_RUN  LESS(RUN, NB)
#define B_AT(i)   RUN_ROW(i, B_ROWS, B_RUN)
#define B_TO(i)   ((b_row + B_AT(i)) * BN + b_col * B_WIDTH)
#define B_FROM(i) (x + (at + (i) % B_RUN * next))
#define B_LIVE(i)                                                                                  \
    ((U32)h < in_hw.x && b_row + ((i) - (i) % B_RUN) * B_ROWS < b_left &&                          \
     (U32)(w + (i) % B_RUN * (int)stride.y) < in_hw.y)
/* Behind a run: on to the next, B_ROWS * B_RUN positions further. */
#define B_STEP(i)                                                                                  \
    if ((i) % B_RUN == B_RUN - 1) {                                                                \
        w += step_w;                                                                               \
        h += step_h;                                                                               \
        at += step_at;                                                                             \
        if (w >= end_w) {                                                                          \
            w -= turn_w;                                                                           \
            h += (int)stride.x;                                                                    \
            at += turn_w_at;                                                                       \
        }                                                                                          \
        if (h >= end_h) {                                                                          \
            h -= turn_h;                                                                           \
            at += turn_h_at;                                                                       \
        }                                                                                          \
    }
#define NEXT_CUT cut_at += LKS_STRETCH / BK;
#define ADVANCE                                                                                    \
    dy += BK * channels.y;                                                                         \
    a_left -= BK;                                                                                  \
    b_left -= BK;
#include "op/product_core.h"

/*
 * channels: input, output; of: the same of a group. leaf: samples joined, leaves of a cut sample;
 * cut: rows of such a leaf, leaves in all. Work-groups: (columns, rows, leaf + leaves * group).
 */
__kernel __attribute__((reqd_work_group_size(NT, 1, 1))) void
LKS_KERNEL(leaves)(__global const float *restrict x, __global const float *restrict dy,
                   __global float *restrict part, uint2 batch, uint2 in_hw, uint2 out_hw,
                   uint2 channels, uint2 of, uint2 taps, uint2 stride, uint2 pad, uint2 dil,
                   uint2 leaf, uint2 cut
#ifdef TURNS
                   , U32 turn
#endif
)
{
    TILE_VARIABLES
    const U32 which = (U32)get_group_id(2) % cut.y, group = (U32)get_group_id(2) / cut.y;
    const int row0 = (int)get_group_id(1) * BM, column0 = (int)get_group_id(0) * BN;
    const U32 wide = taps.x * taps.y * of.x;
    struct lks_leaf f;
    U32 n0, n1, r0, r1;
    f.n = batch.x;
    f.rows = out_hw.x;
    f.join = leaf.x;
    f.cut = leaf.y;
    f.step = cut.x;
    lks_leaf_range(&f, which, &n0, &n1, &r0, &r1);
    /* The positions of a leaf follow one another: of whole samples, or rows of one. */
    const int place = (int)((n0 * out_hw.x + r0) * out_hw.y);
    const int count = (int)((n1 - n0) * (r1 - r0) * out_hw.y);
    const int tiles = (count + BK - 1) / BK;

    const int a_row = item / A_COLS * A_RUN, a_col = item % A_COLS;
    const int b_row = item / B_COLS * B_RUN, b_col = item % B_COLS;
    /* Positions left; none for a work-item whose column lies beyond the end. */
    int a_left = row0 + a_col * A_WIDTH < (int)of.y ? count : 0;
    dy += (U64)(U32)(place + a_row) * channels.y + (group * of.y + row0 + a_col * A_WIDTH);

    /* This work-item's column of B: tap (r, s), channel c. */
    const U32 e = (U32)(column0 + b_col * B_WIDTH), tap = e / of.x, c = e % of.x;
    int b_left = e < wide ? count : 0;
    const int tap_h = (int)(tap / taps.y * dil.x) - (int)pad.x;
    const int tap_w = (int)(tap % taps.y * dil.y) - (int)pad.y;
    x += group * of.x + c;
    /* The input position that the tap meets; its walk is the output position's, scaled. */
    const int step = B_ROWS * B_RUN, in_w = (int)in_hw.y, in_c = (int)channels.x;
    const U32 first = (U32)(place + b_row), n = first / (out_hw.x * out_hw.y);
    const U32 q = first % (out_hw.x * out_hw.y);
    int h = (int)(q / out_hw.y * stride.x) + tap_h, w = (int)(q % out_hw.y * stride.y) + tap_w;
    int at = (((int)(n * in_hw.x) + h) * in_w + w) * in_c;
    const int step_w = (int)(step % out_hw.y * stride.y);
    const int step_h = (int)(step / out_hw.y % out_hw.x * stride.x);
    const int step_n = (int)(step / out_hw.y / out_hw.x);
    const int turn_w = (int)(out_hw.y * stride.y), end_w = turn_w + tap_w;
    const int turn_h = (int)(out_hw.x * stride.x), end_h = turn_h + tap_h;
    const int next = (int)stride.y * in_c;
    const int step_at = ((step_n * (int)in_hw.x + step_h) * in_w + step_w) * in_c;
    const int turn_w_at = ((int)stride.x * in_w - turn_w) * in_c;
    const int turn_h_at = ((int)in_hw.x - turn_h) * in_w * in_c;
#if PIECES
    const U32 never = taps.x >> 31;
    U32 cut_at = LKS_STRETCH / BK;
#endif
    TILE_RUN(tiles)

#ifdef TURNS
    part += (U64)turn * cut.y * channels.y * wide;
#endif
    part += ((U64)which * channels.y + group * of.y) * wide;
    UNROLL for (int i = 0; i < TM; i++)
    {
        const int m = row0 + ROW(i);
        __global float *to = part + (U64)(U32)m * wide;
        UNROLL for (int j = 0; j < TN; j++)
        {
            const int k = column0 + COLUMN(j);
            if (m < (int)of.y && k < (int)wide) {
#if B_WIDTH == 1
                to[k] = acc[i][j];
#else
                if ((j & 3) == 3)
                    *(__global float4 *)(to + k - 3) =
                        (float4)(acc[i][j - 3], acc[i][j - 2], acc[i][j - 1], acc[i][j]);
#endif
            }
        }
    }
}
