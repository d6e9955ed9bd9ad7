/*
 * conv2d.h - contract of the 2-D convolution, y[n][oh][ow][k] from x, w and an optional bias[k].
 *
 * One item is one output element:
 *   1. acc = +0; for r, for s, for c in the group, all upward: acc = fma(x, w, acc). A tap in the
 *      padding counts as x = +0 and may be skipped.
 *   2. acc = acc + bias[k], if there is a bias.
 *   3. acc = acc + 0.0f.
 *   4. acc = acc <= 0 ? +0 : acc, if `relu` is set.
 * Skipping is harmless: fma(+0, w, acc) changes finite numbers only from -0 to +0, which step 3
 * does in any case. Error: at most r*s*c/groups + 1 roundings, each within half an ulp.
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
    F32 acc = 0.0f;
    for (U32 r = 0u; r < d->r; r++) {
        U32 ih = lks_conv_in(oh, r, d->stride_h, d->dil_h, d->pad_h);
        for (U32 s = 0u; s < d->s; s++) {
            U32 iw = lks_conv_in(ow, s, d->stride_w, d->dil_w, d->pad_w);
            if (ih >= d->h || iw >= d->w)
                continue;
            U64 xo = ((n * d->h + ih) * d->w + iw) * d->c + first;
            U64 wo = (((U64)k * d->r + r) * d->s + s) * cg;
            for (U32 c = 0u; c < cg; c++)
                acc = lks_fma(x[xo + c], w[wo + c], acc);
        }
    }
    if (d->extra != 0u)
        acc = acc + bias[k];
    acc = acc + 0.0f;
    if (d->relu != 0u)
        acc = lks_conv_relu(acc);
    y[i] = acc;
}

#endif
