/*
 * conv_ref.h - the inner loop that the C loops of conv2d and conv2d_data_grad share: a block of
 * positions times 16 output channels, one tap at a time, outputs innermost.
 *
 * The caller packs the weights of a tap as wp[chain][16], points `src` of every position at the
 * chain's other factors (NULL where the tap meets nothing) and calls conv_ref_tap, and
 * conv_ref_turn where a piece ends.
 */
#ifndef LKSI_OP_CONV_REF_H
#define LKSI_OP_CONV_REF_H

#include <string.h>

#include "contract/piece.h"

#define REF_LANES     16
#define REF_POSITIONS 128 /* a part's; a multiple of 4 */
#define REF_CHAIN     256 /* chain elements packed at a time */

/* Always inlined, so that it is compiled for the clone that calls it. */
#define REF_INLINE static inline __attribute__((always_inline))

static const F32 ref_zeros[REF_CHAIN];

struct ref_block {
    F32 sum[REF_POSITIONS][REF_LANES]; /* of the pieces before */
    F32 acc[REF_POSITIONS][REF_LANES];
    const F32 *src[REF_POSITIONS];
    F32 wp[REF_CHAIN][REF_LANES];
};

REF_INLINE void conv_ref_start(struct ref_block *b)
{
    memset(b->sum, 0, sizeof b->sum);
    memset(b->acc, 0, sizeof b->acc);
}

/* Ends a piece of the chains (piece.h); the last one too, before `sum` is read. */
REF_INLINE void conv_ref_turn(struct ref_block *b, U32 positions)
{
    for (U32 p = 0; p < positions; p++)
        for (int j = 0; j < REF_LANES; j++) {
            b->sum[p][j] = b->sum[p][j] + b->acc[p][j];
            b->acc[p][j] = 0.0f;
        }
}

/* acc[p][lane] = fma(src[p][i], wp[i][lane], acc[p][lane]) for i in [0, n). Four positions at a
 * time share a load of wp; four that meet nothing are passed over. */
REF_INLINE void conv_ref_tap(struct ref_block *b, U32 positions, U32 n)
{
    for (U32 p = 0; p < positions; p += 4) {
        const F32 *x[4];
        bool any = false;
        for (int q = 0; q < 4; q++) {
            any = any || b->src[p + q] != NULL;
            x[q] = b->src[p + q] != NULL ? b->src[p + q] : ref_zeros;
        }
        if (!any)
            continue;
        F32 a0[REF_LANES], a1[REF_LANES], a2[REF_LANES], a3[REF_LANES];
        for (int j = 0; j < REF_LANES; j++) {
            a0[j] = b->acc[p][j];
            a1[j] = b->acc[p + 1][j];
            a2[j] = b->acc[p + 2][j];
            a3[j] = b->acc[p + 3][j];
        }
        for (U32 i = 0; i < n; i++) {
            const F32 *w = b->wp[i];
            F32 x0 = x[0][i], x1 = x[1][i], x2 = x[2][i], x3 = x[3][i];
            for (int j = 0; j < REF_LANES; j++) {
                a0[j] = lks_fma(x0, w[j], a0[j]);
                a1[j] = lks_fma(x1, w[j], a1[j]);
                a2[j] = lks_fma(x2, w[j], a2[j]);
                a3[j] = lks_fma(x3, w[j], a3[j]);
            }
        }
        for (int j = 0; j < REF_LANES; j++) {
            b->acc[p][j] = a0[j];
            b->acc[p + 1][j] = a1[j];
            b->acc[p + 2][j] = a2[j];
            b->acc[p + 3][j] = a3[j];
        }
    }
}

#endif
