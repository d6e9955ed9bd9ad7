/*
 * maxpool.cl - schedules `vec` of maxpool and maxpool_grad: vectors over the channels.
 *
 *   pool     the maximum of every window
 *   apart    the gradient where windows do not overlap (kernel <= stride): each window's own
 *            pixels, and the pixels between it and the next
 *   winners  the winning tap of every window, for
 *   gather   the gradient where windows overlap: each pixel looks at its windows
 *
 * Macros: VEC and ROWS, see pool.h. MASK: x was the output of a relu. GPU: kernel KH x KW, stride
 * SH x SW, dilation DH x DW as constants, so that no division is left.
 */
#include "contract/maxpool.h"
#include "op/pool.h"

#ifdef GPU
#define CONSTANTS(d)                                                                               \
    (d).kh = KH;                                                                                   \
    (d).kw = KW;                                                                                   \
    (d).sh = SH;                                                                                   \
    (d).sw = SW;                                                                                   \
    (d).dh = DH;                                                                                   \
    (d).dw = DW;
#else
#define CONSTANTS(d)
#endif

#define WINS(v, best) (((v) > (best)) | (((v) != (v)) & ((best) == (best))))

/* The window's winning tap, lane by lane; its value in *best. `x` is the sample's image. */
static VI LKS_FN(winner)(__global const F32 *x, const struct maxpool_dims *d,
                         const struct LKS_FN(window) *w, U32 c, V *best)
{
    VI tap = (VI)((I32)(w->r0 * d->kw + w->s0));
    V v = (V)(0.0f);
    int have = 0;
    for (U32 r = w->r0; r < w->r1; r++) {
        __global const F32 *p =
            x + ((U64)(w->top + r * d->dh - d->pt) * d->w + (w->left + w->s0 * d->dw - d->pl)) * d->c +
            c;
        for (U32 s = w->s0; s < w->s1; s++, p += d->dw * d->c) {
            V t = LOAD(p);
            VI wins = WINS(t, v);
            if (!have) {
                v = t;
                have = 1;
            } else {
                v = PICK(wins, t, v);
                tap = select(tap, (VI)((I32)(r * d->kw + s)), wins);
            }
        }
    }
    *best = v;
    return tap;
}

#ifdef POOL
__kernel void LKS_KERNEL(pool)(__global const F32 *restrict x, __global F32 *restrict y,
                               struct maxpool_dims d)
{
    CONSTANTS(d)
    FOR_ROW(row, (U64)d.n * d.oh)
    {
        U32 n = (U32)row / d.oh, oh = (U32)row % d.oh;
        __global const F32 *image = x + (U64)n * d.h * d.w * d.c;
        FOR_COLUMN(ow, d.ow)
        {
            struct LKS_FN(window) w = LKS_FN(window_at)(&d, oh, ow);
            FOR_CHANNEL(c, d)
            {
                V best;
                LKS_FN(winner)(image, &d, &w, c, &best);
                STORE(best, y + (row * d.ow + ow) * d.c + c);
            }
        }
    }
}
#endif

#ifdef APART
__kernel void LKS_KERNEL(apart)(__global const F32 *restrict x, __global const F32 *restrict dy,
                                __global F32 *restrict dx, struct maxpool_dims d)
{
    CONSTANTS(d)
    FOR_ROW(row, (U64)d.n * d.oh)
    {
        U32 n = (U32)row / d.oh, oh = (U32)row % d.oh;
        __global const F32 *image = x + (U64)n * d.h * d.w * d.c;
        __global F32 *out = dx + (U64)n * d.h * d.w * d.c;
        FOR_COLUMN(ow, d.ow)
        {
            struct LKS_FN(window) w = LKS_FN(window_at)(&d, oh, ow);
            /* Up to the next window, or to the border of the image behind the last one. */
            U32 r1 = oh + 1u < d.oh ? d.sh : d.h + d.pt - w.top;
            U32 s1 = ow + 1u < d.ow ? d.sw : d.w + d.pl - w.left;
            FOR_CHANNEL(c, d)
            {
                V best, g = LOAD(dy + (row * d.ow + ow) * d.c + c) + 0.0f;
                VI tap = LKS_FN(winner)(image, &d, &w, c, &best);
                for (U32 r = w.r0; r < r1; r++) {
                    for (U32 s = w.s0; s < s1; s++) {
                        U64 at = ((U64)(w.top + r - d.pt) * d.w + (w.left + s - d.pl)) * d.c + c;
                        I32 mine = r < d.kh && s < d.kw ? (I32)(r * d.kw + s) : -1;
                        V v = PICK(tap == mine, g, 0.0f);
#ifdef MASK
                        v = PICK(LOAD(image + at) <= 0.0f, 0.0f, v);
#endif
                        STORE(v, out + at);
                    }
                }
            }
        }
    }
}
#endif

#ifdef WINNERS
__kernel void LKS_KERNEL(winners)(__global const F32 *restrict x, __global I32 *restrict taps,
                                  struct maxpool_dims d)
{
    CONSTANTS(d)
    FOR_ROW(row, (U64)d.n * d.oh)
    {
        U32 n = (U32)row / d.oh, oh = (U32)row % d.oh;
        __global const F32 *image = x + (U64)n * d.h * d.w * d.c;
        FOR_COLUMN(ow, d.ow)
        {
            struct LKS_FN(window) w = LKS_FN(window_at)(&d, oh, ow);
            FOR_CHANNEL(c, d)
            {
                V best;
                STORE(LKS_FN(winner)(image, &d, &w, c, &best), taps + (row * d.ow + ow) * d.c + c);
            }
        }
    }
}
#endif

#ifdef GATHER
__kernel void LKS_KERNEL(gather)(__global const F32 *restrict x, __global const F32 *restrict dy,
                                 __global const I32 *restrict taps, __global F32 *restrict dx,
                                 struct maxpool_dims d)
{
    CONSTANTS(d)
    FOR_ROW(row, (U64)d.n * d.h)
    {
        U32 n = (U32)row / d.h, at_h = (U32)row % d.h + d.pt, h0, h1;
        LKS_FN(windows)(at_h, d.sh, d.kh, d.dh, d.oh, &h0, &h1);
        FOR_COLUMN(w, d.w)
        {
            U32 at_w = w + d.pl, w0, w1;
            LKS_FN(windows)(at_w, d.sw, d.kw, d.dw, d.ow, &w0, &w1);
            FOR_CHANNEL(c, d)
            {
                U64 at = (row * d.w + w) * d.c + c;
                V acc = (V)(0.0f);
                /* The tap (r, s) goes up while the window goes down. */
                for (U32 oh = h1; oh-- > h0;) {
                    U32 r = (at_h - oh * d.sh) / d.dh;
                    if (r * d.dh != at_h - oh * d.sh)
                        continue;
                    for (U32 ow = w1; ow-- > w0;) {
                        U64 o = (((U64)n * d.oh + oh) * d.ow + ow) * d.c + c;
                        U32 s = (at_w - ow * d.sw) / d.dw;
                        I32 mine = s * d.dw == at_w - ow * d.sw ? (I32)(r * d.kw + s) : -1;
                        acc = PICK(LOAD(taps + o) == mine, acc + LOAD(dy + o), acc);
                    }
                }
                acc = acc + 0.0f;
#ifdef MASK
                acc = PICK(LOAD(x + at) <= 0.0f, 0.0f, acc);
#endif
                STORE(acc, dx + at);
            }
        }
    }
}
#endif
