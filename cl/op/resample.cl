/*
 * resample.cl - schedules `vec` of resample and resample_grad. Macro VEC: channels of a vector.
 * FLAT (GPU): a work-item is one vector of one pixel. Else (CPU) it is a row of pixels; the
 * gradient's walks over the outputs that read its row, in the contract's order.
 */
#include "contract/resample.h"
#include "op/vec.h"

/* Channels from x on of what the taps h and w read; x: the sample and its first channel. */
static V LKS_FN(gather)(__global const F32 *x, const struct resample_dims *d, struct lks_taps h,
                        struct lks_taps w)
{
    U64 row = (U64)d->w.in * d->c;
    V acc = 0.0f;
    x += h.at * row + (U64)w.at * d->c;
    if (d->linear == 0)
        return LOAD(x);
    acc = fma((V)(h.w0 * w.w0), LOAD(x), acc);
    if (w.n == 2)
        acc = fma((V)(h.w0 * w.w1), LOAD(x + d->c), acc);
    if (h.n == 2) {
        acc = fma((V)(h.w1 * w.w0), LOAD(x + row), acc);
        if (w.n == 2)
            acc = fma((V)(h.w1 * w.w1), LOAD(x + row + d->c), acc);
    }
    return acc + 0.0f;
}

#ifdef FLAT

__kernel void LKS_KERNEL(resample)(__global const F32 *restrict x, __global F32 *restrict y,
                                   struct resample_dims d, U64 n)
{
    U32 e = (U32)get_global_id(0) * VEC, pixel = e / d.c, c = e - pixel * d.c;
    U32 row = pixel / d.w.out, s = row / d.h.out;
    if (e >= n)
        return;
    struct lks_taps h = lks_resample_taps(&d.h, d.linear, row - s * d.h.out);
    struct lks_taps w = lks_resample_taps(&d.w, d.linear, pixel - row * d.w.out);
    V v = LKS_FN(gather)(x + (U64)s * d.h.in * d.w.in * d.c + c, &d, h, w);
    STORE(v, y + e);
}

__kernel void LKS_KERNEL(resample_grad)(__global const F32 *restrict dy, __global F32 *restrict dx,
                                        struct resample_dims d, U64 n)
{
    U32 e = (U32)get_global_id(0) * VEC, pixel = e / d.c, c = e - pixel * d.c;
    U32 row = pixel / d.w.in, s = row / d.h.in, ih = row - s * d.h.in, iw = pixel - row * d.w.in;
    U32 oh, oh_end, first, end;
    V acc = 0.0f;
    if (e >= n)
        return;
    dy += (U64)s * d.h.out * d.w.out * d.c + c;
    lks_resample_reach(&d.h, d.linear, ih, &oh, &oh_end);
    lks_resample_reach(&d.w, d.linear, iw, &first, &end);
    for (; oh < oh_end; oh++) {
        struct lks_taps h = lks_resample_taps(&d.h, d.linear, oh);
        U32 i = ih - h.at;
        if (i >= h.n)
            continue;
        for (U32 ow = first; ow < end; ow++) {
            struct lks_taps w = lks_resample_taps(&d.w, d.linear, ow);
            U32 j = iw - w.at;
            if (j < w.n)
                acc = fma((V)(lks_tap_weight(h, i) * lks_tap_weight(w, j)),
                          LOAD(dy + ((U64)oh * d.w.out + ow) * d.c), acc);
        }
    }
    STORE(acc + 0.0f, dx + e);
}

#else

/* A row of y. The last vector is moved back to end at the last channel. */
__kernel void LKS_KERNEL(resample)(__global const F32 *restrict x, __global F32 *restrict y,
                                   struct resample_dims d)
{
    U32 row = (U32)get_global_id(0), n = row / d.h.out;
    struct lks_taps h = lks_resample_taps(&d.h, d.linear, row - n * d.h.out);
    x += (U64)n * d.h.in * d.w.in * d.c;
    y += (U64)row * d.w.out * d.c;
    for (U32 ow = 0; ow < d.w.out; ow++, y += d.c) {
        struct lks_taps w = lks_resample_taps(&d.w, d.linear, ow);
        for (U32 c = 0; c < d.c; c += VEC) {
            U32 at = d.c - c < VEC ? d.c - VEC : c;
            STORE(LKS_FN(gather)(x + at, &d, h, w), y + at);
        }
    }
}

__kernel void LKS_KERNEL(resample_grad)(__global const F32 *restrict dy, __global F32 *restrict dx,
                                        struct resample_dims d)
{
    U32 row = (U32)get_global_id(0), n = row / d.h.in, ih = row - n * d.h.in, oh, end;
    U32 length = d.w.in * d.c;
    dx += (U64)row * length;
    for (U32 e = 0; e < length; e++)
        dx[e] = 0.0f;
    lks_resample_reach(&d.h, d.linear, ih, &oh, &end);
    for (; oh < end; oh++) {
        struct lks_taps h = lks_resample_taps(&d.h, d.linear, oh);
        __global const F32 *g = dy + ((U64)n * d.h.out + oh) * d.w.out * d.c;
        U32 i = ih - h.at;
        if (i >= h.n)
            continue;
        for (U32 ow = 0; ow < d.w.out; ow++, g += d.c) {
            struct lks_taps w = lks_resample_taps(&d.w, d.linear, ow);
            for (U32 j = 0; j < w.n; j++) {
                __global F32 *to = dx + (w.at + j) * d.c;
                F32 k = lks_tap_weight(h, i) * lks_tap_weight(w, j);
                U32 c = 0;
                for (; c + VEC <= d.c; c += VEC)
                    STORE(fma((V)(k), LOAD(g + c), LOAD(to + c)), to + c);
                for (; c < d.c; c++)
                    to[c] = lks_fma(k, g[c], to[c]);
            }
        }
    }
    for (U32 e = 0; e < length; e++)
        dx[e] += 0.0f;
}

#endif
