/*
 * conv2d_data_grad.h - contract of the convolution's gradient for its input, dx[n][h][w][c] from
 * dy and w. It is also the forward pass of a transposed convolution, then maybe with a bias[c].
 *
 * One item is one element of dx:
 *   1. The chain of fma(dy, w, acc) for r, for s, for k in the group, all upward, in pieces by
 *      piece.h, which are taken one after the other; dy is the output whose tap (r, s) meets this
 *      element. Taps that meet no output (stride, dilation, border) are skipped; counting them as
 *      dy = +0 gives the same bits.
 *   2. acc = acc + bias[c], if there is a bias.
 *   3. acc = acc + 0.0f.
 *   4. acc = mask <= 0 ? +0 : acc, if a mask of dx's shape is given: the relu output that x was.
 */
#ifndef LKS_CONTRACT_CONV2D_DATA_GRAD_H
#define LKS_CONTRACT_CONV2D_DATA_GRAD_H

#include "contract/conv.h"

LKS_INLINE void conv2d_data_grad_item(LKS_GLOBAL LKS_CONST F32 *dy, LKS_GLOBAL LKS_CONST F32 *w,
                                      LKS_GLOBAL LKS_CONST F32 *extra, LKS_GLOBAL F32 *dx,
                                      const struct lks_conv_dims *d, U64 i)
{
    U32 cg = d->c / d->groups, kg = d->k / d->groups;
    U32 c = (U32)(i % d->c);
    U64 p = i / d->c;
    U32 iw = (U32)(p % d->w);
    U32 ih = (U32)(p / d->w % d->h);
    U64 n = p / d->w / d->h;
    U32 first = c / cg * kg;
    U32 taps = lks_piece_taps(kg);
    F32 sum = 0.0f, acc = 0.0f;
    for (U32 r = 0u; r < d->r; r++) {
        U32 oh = lks_conv_out(ih, r, d->stride_h, d->dil_h, d->pad_h, d->oh);
        for (U32 s = 0u; s < d->s; s++) {
            U32 ow = lks_conv_out(iw, s, d->stride_w, d->dil_w, d->pad_w, d->ow);
            if (lks_piece_begins(r * d->s + s, 0u, taps)) {
                sum = sum + acc;
                acc = 0.0f;
            }
            if (oh >= d->oh || ow >= d->ow)
                continue;
            U64 yo = ((n * d->oh + oh) * d->ow + ow) * d->k + first;
            U64 wo = (((U64)first * d->r + r) * d->s + s) * cg + c % cg;
            for (U32 k = 0u; k < kg; k++) {
                if (k != 0u && lks_piece_begins(0u, k, taps)) {
                    sum = sum + acc;
                    acc = 0.0f;
                }
                acc = lks_fma(dy[yo + k], w[wo + (U64)k * d->r * d->s * cg], acc);
            }
        }
    }
    acc = sum + acc;
    if (d->extra == 2u)
        acc = acc + extra[c];
    acc = acc + 0.0f;
    if (d->extra == 1u)
        acc = lks_select(extra[i] <= 0.0f, 0.0f, acc);
    dx[i] = acc;
}

#endif
