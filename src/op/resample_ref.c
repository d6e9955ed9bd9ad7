/*
 * resample_ref.c - resample and resample_grad in C, a row of pixels at a time; see resample.h.
 */
#include <string.h>

#include "contract/resample.h"
#include "op/resample.h"

U64 lksi_resample_ref_parts(const struct lksi_call *call)
{
    return (U64)call->out[0].dim[0] * (U64)call->out[0].dim[1];
}

/* to += weight * from, channel by channel. */
static inline void add(float *restrict to, const float *restrict from, float weight, U32 c)
{
    for (U32 k = 0; k < c; k++)
        to[k] = lks_fma(weight, from[k], to[k]);
}

static inline void finish(float *x, U64 n)
{
    for (U64 i = 0; i < n; i++)
        x[i] += 0.0f;
}

LKSI_CLONES void lksi_resample_ref(const struct lksi_call *call, const void *const *in,
                                   void *const *out, U64 p0, U64 p1)
{
    const struct resample_dims *d = (const void *)call->dims.bytes;
    U64 length = (U64)d->w.out * d->c;
    for (U64 row = p0; row < p1; row++) {
        U64 n = row / d->h.out;
        struct lks_taps h = lks_resample_taps(&d->h, d->linear, (U32)(row - n * d->h.out));
        const float *x = (const float *)in[0] + (n * d->h.in + h.at) * d->w.in * d->c;
        float *y = (float *)out[0] + row * length;
        if (d->linear != 0)
            memset(y, 0, length * sizeof *y);
        for (U32 ow = 0; ow < d->w.out; ow++) {
            struct lks_taps w = lks_resample_taps(&d->w, d->linear, ow);
            float *to = y + (U64)ow * d->c;
            if (d->linear == 0)
                memcpy(to, x + (U64)w.at * d->c, d->c * sizeof *to);
            for (U32 i = 0; d->linear != 0 && i < h.n; i++)
                for (U32 j = 0; j < w.n; j++)
                    add(to, x + ((U64)i * d->w.in + w.at + j) * d->c,
                        lks_tap_weight(h, i) * lks_tap_weight(w, j), d->c);
        }
        if (d->linear != 0)
            finish(y, length);
    }
}

LKSI_CLONES void lksi_resample_grad_ref(const struct lksi_call *call, const void *const *in,
                                        void *const *out, U64 p0, U64 p1)
{
    const struct resample_dims *d = (const void *)call->dims.bytes;
    U64 length = (U64)d->w.in * d->c;
    for (U64 row = p0; row < p1; row++) {
        U64 n = row / d->h.in;
        U32 ih = (U32)(row - n * d->h.in), oh, end;
        float *dx = (float *)out[0] + row * length;
        memset(dx, 0, length * sizeof *dx);
        lks_resample_reach(&d->h, d->linear, ih, &oh, &end);
        for (; oh < end; oh++) {
            struct lks_taps h = lks_resample_taps(&d->h, d->linear, oh);
            const float *dy = (const float *)in[0] + (n * d->h.out + oh) * d->w.out * d->c;
            U32 i = ih - h.at;
            if (i >= h.n)
                continue;
            for (U32 ow = 0; ow < d->w.out; ow++) {
                struct lks_taps w = lks_resample_taps(&d->w, d->linear, ow);
                for (U32 j = 0; j < w.n; j++)
                    add(dx + (U64)(w.at + j) * d->c, dy + (U64)ow * d->c,
                        lks_tap_weight(h, i) * lks_tap_weight(w, j), d->c);
            }
        }
        finish(dx, length);
    }
}
