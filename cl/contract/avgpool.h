/*
 * avgpool.h - contract of avgpool and avgpool_grad, channels last; windows as in maxpool.h. Global
 * average pooling is one window over the whole image.
 *
 * avgpool:  y[n,oh,ow,c] = (sum over the taps of the window inside the image) / count
 *   1. The taps in order (r, s), s innermost, are a row of KH*KW elements (numerics.md, rule 6): 32
 *      lanes, lane j chains elements j, j+32, ...; pieces of 4096; trees. Taps outside the image
 *      count as +0 and may be skipped.
 *   2. + 0.0f.
 *   3. lks_div by (F32)count: the taps inside the image; with `count_pad` those inside the padded
 *      image (a window of `ceil` may leave it).
 * avgpool_grad:  dx[n,h,w,c] = sum over the windows with a tap on x[n,h,w,c] of dy / count
 *   1. acc = +0. For r, then s upward: if a window has x[n,h,w,c] at its tap (r, s),
 *      acc = fma(dy, lks_div(1, (F32)count of the window), acc).
 *   2. acc + 0.0f.
 * Special values follow IEEE-754. Error bounds, U = 2^-24 and k taps: min(k, 4096)/32 + 6 +
 * log2(k/4096) roundings of the magnitudes; of the gradient one for each window and one more.
 */
#ifndef LKS_CONTRACT_AVGPOOL_H
#define LKS_CONTRACT_AVGPOOL_H

#include "contract/pool.h"
#include "contract/sum.h"

/* The divisor of window (oh, ow). */
LKS_INLINE F32 lks_pool_count(LKS_CONST struct maxpool_dims *d, U32 oh, U32 ow)
{
    U32 top = oh * d->sh, left = ow * d->sw;
    U32 rows = lks_pool_end(top, d->ch1, d->dh, d->kh) - lks_pool_first(top, d->ch0, d->dh);
    U32 cols = lks_pool_end(left, d->cw1, d->dw, d->kw) - lks_pool_first(left, d->cw0, d->dw);
    return (F32)(rows * cols);
}

LKS_INLINE void avgpool_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL F32 *y,
                             LKS_CONST struct maxpool_dims *d, U64 i)
{
    U32 c = (U32)(i % d->c);
    U64 p = i / d->c;
    U32 ow = (U32)(p % d->ow), oh = (U32)(p / d->ow % d->oh);
    U64 n = p / d->ow / d->oh;
    U32 r, s;
    struct lks_row row;
    lks_row_init(&row);
    for (r = 0u; r < d->kh; r += 1u) {
        U32 h = oh * d->sh + r * d->dh - d->pt; /* wraps in the padding */
        for (s = 0u; s < d->kw; s += 1u) {
            U32 w = ow * d->sw + s * d->dw - d->pl;
            I32 inside = h < d->h && w < d->w;
            lks_row_add(&row, inside ? x[((n * d->h + h) * d->w + w) * d->c + c] : 0.0f);
        }
    }
    y[i] = lks_div(lks_final(lks_row_end(&row)), lks_pool_count(d, oh, ow));
}

LKS_INLINE void avgpool_grad_item(LKS_GLOBAL LKS_CONST F32 *dy, LKS_GLOBAL F32 *dx,
                                  LKS_CONST struct maxpool_dims *d, U64 i)
{
    U32 c = (U32)(i % d->c);
    U64 p = i / d->c;
    U32 w = (U32)(p % d->w), h = (U32)(p / d->w % d->h);
    U64 n = p / d->w / d->h;
    U32 r, s;
    F32 acc = 0.0f;
    for (r = 0u; r < d->kh; r += 1u) {
        U32 oh = lks_pool_window(h + d->pt, r * d->dh, d->sh);
        if (oh >= d->oh)
            continue;
        for (s = 0u; s < d->kw; s += 1u) {
            U32 ow = lks_pool_window(w + d->pl, s * d->dw, d->sw);
            if (ow < d->ow)
                acc = lks_fma(dy[((n * d->oh + oh) * d->ow + ow) * d->c + c],
                              lks_div(1.0f, lks_pool_count(d, oh, ow)), acc);
        }
    }
    dx[i] = acc + 0.0f;
}

#endif
