/*
 * conv2d.h - contract of the 2-D convolution, y[n][oh][ow][k] from x, w and an optional bias[k].
 *
 * One item is one output element:
 *   1. The chain of fma(x, w, acc) for r, for s, for c in the group, all upward, in pieces by
 *      piece.h, which are taken one after the other. A tap in the padding counts as x = +0 and may
 *      be skipped.
 *   2. acc = acc + bias[k], if there is a bias.
 *   3. acc = acc + 0.0f.
 *   4. acc = acc <= 0 ? +0 : acc, if `relu` is set.
 * Skipping is harmless: fma(+0, w, acc) changes finite numbers only from -0 to +0, which step 3
 * does in any case. Error: at most the longest piece (LKS_PIECE products), the number of pieces and
 * 1 roundings, each within half an ulp.
 */
#ifndef LKS_CONTRACT_CONV2D_H
#define LKS_CONTRACT_CONV2D_H

#include "contract/conv.h"

LKS_INLINE void conv2d_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *w,
                            LKS_GLOBAL LKS_CONST F32 *bias, LKS_GLOBAL F32 *y,
                            const struct lks_conv_dims *d, U64 i)
{
    U32 cg = d->c / d->groups;
    U32 k = (U32)(i % d->k);
    U64 p = i / d->k;
    U32 ow = (U32)(p % d->ow);
    U32 oh = (U32)(p / d->ow % d->oh);
    U64 n = p / d->ow / d->oh;
    U32 first = k / (d->k / d->groups) * cg;
    U32 taps = lks_piece_taps(cg);
    F32 sum = 0.0f, acc = 0.0f;
    for (U32 r = 0u; r < d->r; r++) {
        U32 ih = lks_conv_in(oh, r, d->stride_h, d->dil_h, d->pad_h);
        for (U32 s = 0u; s < d->s; s++) {
            U32 iw = lks_conv_in(ow, s, d->stride_w, d->dil_w, d->pad_w);
            if (lks_piece_begins(r * d->s + s, 0u, taps)) {
                sum = sum + acc;
                acc = 0.0f;
            }
            if (ih >= d->h || iw >= d->w)
                continue;
            U64 xo = ((n * d->h + ih) * d->w + iw) * d->c + first;
            U64 wo = (((U64)k * d->r + r) * d->s + s) * cg;
            for (U32 c = 0u; c < cg; c++) {
                if (c != 0u && lks_piece_begins(0u, c, taps)) {
                    sum = sum + acc;
                    acc = 0.0f;
                }
                acc = lks_fma(x[xo + c], w[wo + c], acc);
            }
        }
    }
    acc = sum + acc;
    if (d->extra != 0u)
        acc = acc + bias[k];
    acc = acc + 0.0f;
    if (d->relu != 0u)
        acc = lks_conv_relu(acc);
    y[i] = acc;
}

#endif
