/*
 * resample.h - contracts of resample and resample_grad: images [N,H,W,C] in another height and
 * width, nearest or bilinear. It also repeats borders and single rows.
 *
 * In each of the two axes output o is read at p / d, p = a*o + b, whole numbers; q = p / d rounded
 * down, r = p - q*d:
 *     nearest:  one tap, element q moved to the closest of 0 to in-1, weight 1
 *     linear:   q < 0: element 0, weight 1;  q >= in-1: element in-1, weight 1;  r = 0: element q,
 *               weight 1;  else element q with (d-r)/d, then element q+1 with r/d
 *
 * 1. A weight is one division of whole numbers below 2^24, so it is rounded once.
 * 2. The coefficient of tap i of the height and tap j of the width is weight_i * weight_j, rounded.
 * 3. resample, linear: y = the chain acc = +0; acc = fma(coefficient, x, acc) over (i, j), j
 *    innermost; then + 0.0f. Nearest: the element itself, bit for bit.
 * 4. resample_grad: dx = the chain acc = +0; acc = fma(coefficient, dy[o,p], acc) over all (o, p, i,
 *    j) whose taps i, j meet the element, in that order; then + 0.0f.
 * Error: each output is off by at most 4 roundings a tap over the magnitudes of its terms, and the
 * roundings of the chain.
 */
#ifndef LKS_CONTRACT_RESAMPLE_H
#define LKS_CONTRACT_RESAMPLE_H

#include "contract/num.h"

/* An axis; b is kept as b + shift*d, which is not negative. All a*o + b are below 2^31. */
struct lks_resample_axis {
    U32 in, out, a, b, d, shift;
};

struct resample_dims {
    U32 n, c, linear;
    struct lks_resample_axis h, w;
};

/* What output o reads: n taps, 1 or 2. The second one lies behind the first. */
struct lks_taps {
    U32 n, at;
    F32 w0, w1;
};

LKS_INLINE struct lks_taps lks_resample_taps(LKS_CONST struct lks_resample_axis *x, U32 linear,
                                             U32 o)
{
    struct lks_taps t = {1, 0, 1.0f, 0.0f};
    U32 p = x->a * o + x->b, q = p / x->d, r = p - q * x->d;
    if (q < x->shift)
        return t;
    t.at = q - x->shift;
    if (t.at >= x->in - 1) {
        t.at = x->in - 1;
    } else if (linear != 0 && r != 0) {
        t.n = 2;
        t.w0 = lks_div((F32)(x->d - r), (F32)x->d);
        t.w1 = lks_div((F32)r, (F32)x->d);
    }
    return t;
}

/* The first output with q >= want, or out. */
LKS_INLINE U32 lks_resample_first(LKS_CONST struct lks_resample_axis *x, U32 want)
{
    U64 p = (U64)(want + x->shift) * x->d, o;
    if (p <= x->b)
        return 0;
    if (x->a == 0)
        return x->out;
    o = (p - x->b + x->a - 1) / x->a;
    return o < x->out ? (U32)o : x->out;
}

/* The outputs [*first, *end) beyond which none reads element i. */
LKS_INLINE void lks_resample_reach(LKS_CONST struct lks_resample_axis *x, U32 linear, U32 i,
                                   U32 *first, U32 *end)
{
    *first = i == 0 ? 0 : lks_resample_first(x, linear != 0 ? i - 1 : i);
    *end = i + 1 == x->in ? x->out : lks_resample_first(x, i + 1);
}

LKS_INLINE F32 lks_tap_weight(struct lks_taps t, U32 k)
{
    return k == 0 ? t.w0 : t.w1;
}

LKS_INLINE void resample_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL F32 *y,
                              LKS_CONST struct resample_dims *d, U64 e)
{
    U64 pixel = e / d->c, row = pixel / d->w.out, n = row / d->h.out;
    U32 c = (U32)(e - pixel * d->c);
    struct lks_taps h = lks_resample_taps(&d->h, d->linear, (U32)(row - n * d->h.out));
    struct lks_taps w = lks_resample_taps(&d->w, d->linear, (U32)(pixel - row * d->w.out));
    F32 acc = 0.0f;
    if (d->linear == 0) {
        y[e] = x[((n * d->h.in + h.at) * d->w.in + w.at) * d->c + c];
        return;
    }
    for (U32 i = 0; i < h.n; i++)
        for (U32 j = 0; j < w.n; j++)
            acc = lks_fma(lks_tap_weight(h, i) * lks_tap_weight(w, j),
                          x[((n * d->h.in + h.at + i) * d->w.in + w.at + j) * d->c + c], acc);
    y[e] = acc + 0.0f;
}

LKS_INLINE void resample_grad_item(LKS_GLOBAL LKS_CONST F32 *dy, LKS_GLOBAL F32 *dx,
                                   LKS_CONST struct resample_dims *d, U64 e)
{
    U64 pixel = e / d->c, row = pixel / d->w.in, n = row / d->h.in;
    U32 c = (U32)(e - pixel * d->c), ih = (U32)(row - n * d->h.in);
    U32 iw = (U32)(pixel - row * d->w.in), oh, oh_end, ow_first, ow_end;
    F32 acc = 0.0f;
    lks_resample_reach(&d->h, d->linear, ih, &oh, &oh_end);
    lks_resample_reach(&d->w, d->linear, iw, &ow_first, &ow_end);
    for (; oh < oh_end; oh++) {
        struct lks_taps h = lks_resample_taps(&d->h, d->linear, oh);
        U32 i = ih - h.at; /* the tap that meets the row */
        if (i >= h.n)
            continue;
        for (U32 ow = ow_first; ow < ow_end; ow++) {
            struct lks_taps w = lks_resample_taps(&d->w, d->linear, ow);
            U32 j = iw - w.at;
            if (j < w.n)
                acc = lks_fma(lks_tap_weight(h, i) * lks_tap_weight(w, j),
                              dy[((n * d->h.out + oh) * d->w.out + ow) * d->c + c], acc);
        }
    }
    dx[e] = acc + 0.0f;
}

#endif
