/*
 * maxpool.h - contract of maxpool, maxpool_grad and maxpool_pick (numerics.md, rule 9), channels
 * last.
 *
 * maxpool:  y[n,oh,ow,c] = max over r < KH, s < KW of x[n, oh*SH - PT + r*DH, ow*SW - PL + s*DW, c],
 *           taps outside the image left out. OH = (H + PT + PB - DH*(KH - 1) - 1) / SH + 1, rounded
 *           down; with `ceil` rounded up, less one if the last window would begin behind the image.
 *           Every window has a tap in the image.
 *   1. Taps in the order r, then s, both upward. The first tap inside the image is the winner.
 *   2. A later tap replaces it if it is greater (`>`), or if it is the first NaN.
 *   Equal taps: the first wins, so of -0 and +0 the earlier one. The error is 0.
 *
 * maxpool_grad:  dx[n,h,w,c] = sum of dy over the windows whose winner (as above) is that tap.
 *   1. acc = +0. For r, then s upward: if a window has x[n,h,w,c] at its tap (r, s), and that tap
 *      is its winner, acc = acc + dy of the window.
 *   2. acc + 0.0f.
 *   3. With relu_mask: x <= 0 ? +0 : that. (x was the output of a relu; its gradient joins here.)
 *   Error bound: (k - 1) ulp of the sum of magnitudes, k windows over one element.
 *
 * maxpool_pick:  y[n,oh,ow,c] = v at the winner of that window of x; the gradient of maxpool_grad.
 *   1. A copy; with relu_mask +0 where the winner is <= 0. The error is 0.
 */
#ifndef LKS_CONTRACT_MAXPOOL_H
#define LKS_CONTRACT_MAXPOOL_H

#include "contract/pool.h"

/* True if v replaces the winner so far. */
LKS_INLINE I32 lks_pool_wins(F32 v, F32 best)
{
    return v > best || (lks_isnan(v) && !lks_isnan(best));
}

/* The winner of window (n, oh, ow), channel c: its tap r * kw + s, and its value in *best. Window
 * borders outside the image are cut first; a window always meets the image. */
LKS_INLINE U32 lks_pool_winner(LKS_GLOBAL LKS_CONST F32 *x, LKS_CONST struct maxpool_dims *d, U32 n,
                               U32 oh, U32 ow, U32 c, F32 *best)
{
    U32 top = oh * d->sh, left = ow * d->sw; /* in coordinates shifted by the padding */
    U32 r0 = lks_pool_first(top, d->pt, d->dh), r1 = lks_pool_end(top, d->h + d->pt, d->dh, d->kh);
    U32 s0 = lks_pool_first(left, d->pl, d->dw), s1 = lks_pool_end(left, d->w + d->pl, d->dw, d->kw);
    U32 r, s, tap = r0 * d->kw + s0;
    F32 v = 0.0f;
    I32 have = 0;
    for (r = r0; r < r1; r += 1u) {
        U32 row = top + r * d->dh - d->pt;
        for (s = s0; s < s1; s += 1u) {
            U32 col = left + s * d->dw - d->pl;
            F32 t = x[(((U64)n * d->h + row) * d->w + col) * d->c + c];
            if (!have || lks_pool_wins(t, v)) {
                v = t;
                tap = r * d->kw + s;
            }
            have = 1;
        }
    }
    *best = v;
    return tap;
}

LKS_INLINE void maxpool_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL F32 *y,
                             LKS_CONST struct maxpool_dims *d, U64 i)
{
    U32 c = (U32)(i % d->c);
    U64 p = i / d->c;
    U32 ow = (U32)(p % d->ow), oh = (U32)(p / d->ow % d->oh), n = (U32)(p / d->ow / d->oh);
    F32 best;
    lks_pool_winner(x, d, n, oh, ow, c, &best);
    y[i] = best;
}

LKS_INLINE void maxpool_grad_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *dy,
                                  LKS_GLOBAL F32 *dx, LKS_CONST struct maxpool_dims *d, U64 i)
{
    U32 c = (U32)(i % d->c);
    U64 p = i / d->c;
    U32 w = (U32)(p % d->w), h = (U32)(p / d->w % d->h), n = (U32)(p / d->w / d->h);
    U32 r, s;
    F32 acc = 0.0f;
    for (r = 0u; r < d->kh; r += 1u) {
        U32 oh = lks_pool_window(h + d->pt, r * d->dh, d->sh);
        if (oh >= d->oh)
            continue;
        for (s = 0u; s < d->kw; s += 1u) {
            U32 ow = lks_pool_window(w + d->pl, s * d->dw, d->sw);
            F32 best;
            if (ow >= d->ow)
                continue;
            if (lks_pool_winner(x, d, n, oh, ow, c, &best) == r * d->kw + s)
                acc = lks_chain(acc, dy[(((U64)n * d->oh + oh) * d->ow + ow) * d->c + c]);
        }
    }
    acc = acc + 0.0f;
    dx[i] = d->relu_mask != 0u && x[i] <= 0.0f ? 0.0f : acc;
}

LKS_INLINE void maxpool_pick_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *v,
                                  LKS_GLOBAL F32 *y, LKS_CONST struct maxpool_dims *d, U64 i)
{
    U32 c = (U32)(i % d->c);
    U64 p = i / d->c;
    U32 ow = (U32)(p % d->ow), oh = (U32)(p / d->ow % d->oh), n = (U32)(p / d->ow / d->oh), tap;
    F32 best;
    tap = lks_pool_winner(x, d, n, oh, ow, c, &best);
    p = ((U64)n * d->h + (oh * d->sh + tap / d->kw * d->dh - d->pt)) * d->w +
        (ow * d->sw + tap % d->kw * d->dw - d->pl);
    best = d->relu_mask != 0u && best <= 0.0f ? 0.0f : v[p * d->c + c];
    y[i] = best;
}

#endif
