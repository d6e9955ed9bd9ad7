/*
 * conv_depth.cl - depthwise convolution (as many groups as channels on either side) forward (GRAD 0)
 * and its data gradient (GRAD 1): lanes of x meet lanes of the weights. `pack` first lays the weights
 * out as [tap][channel].
 *
 *   rows    CPU devices: a work-item goes over rows of outputs, MR neighbours and NV vectors at once
 *   pixel   GPUs: a work-item is one vector of one output
 *   leaves  GPUs, weight gradient: a work-item is one weight over one leaf; tree_gpu.cl follows
 *
 * Macros: VEC lanes; NV vectors and MR outputs (rows); NV * VEC is at most the channels, and the last
 * block of channels is moved back. On a GPU VEC divides the channels.
 */
#include "contract/conv2d_weight_grad.h"
#include "op/vec.h"

#ifndef NV
#define NV   1
#define MR   1
#define GRAD 0
#endif
#define NB       (VEC * NV)
#define TAPS_MAX 128

#define SRC_H(d) (GRAD ? (d).oh : (d).h)
#define SRC_W(d) (GRAD ? (d).ow : (d).w)
#define DST_H(d) (GRAD ? (d).h : (d).oh)
#define DST_W(d) (GRAD ? (d).w : (d).ow)

/* Work-item (tap). */
#ifdef PACK
__kernel void LKS_KERNEL(pack)(__global const F32 *restrict w, __global F32 *restrict wp,
                               struct lks_conv_dims d)
{
    const U32 tap = get_global_id(0), taps = d.r * d.s;
    for (U32 c = 0u; c < d.c && tap < taps; c++)
        wp[(U64)tap * d.c + c] = w[(U64)c * taps + tap];
}
#endif

/* What follows the sum of channels c..., stored as element `to` of dst. */
static inline V LKS_FN(finish)(V v, __global const F32 *extra, const struct lks_conv_dims *d, U64 to,
                               U32 c)
{
    if (d->extra == (GRAD ? 2u : 1u))
        v = v + LOAD(extra + c);
    v = v + 0.0f;
    if (GRAD && d->extra == 1u)
        v = PICK(LOAD(extra + to) <= 0.0f, 0.0f, v);
    if (!GRAD && d->relu != 0u)
        v = PICK(v <= 0.0f, 0.0f, v);
    return v;
}

#ifdef ROWS
/* A tap that meets a row of outputs: output q has it at column q * mul + col of src (wrapping). */
struct LKS_FN(tap) {
    I32 col;
    U32 w;  /* its weights */
    U64 at; /* in src, for q = 0 and channel 0 (wrapping) */
};

/* Outputs [q0, q1) of a row share these. */
struct LKS_FN(line) {
    U32 n_tap, mul;
    U32 lo, hi;   /* outputs whose taps all lie inside src */
    U64 to;       /* element of dst of output 0, channel 0 */
    U64 step;     /* elements of dst from output to output */
    struct LKS_FN(tap) tap[TAPS_MAX];
};

/* The taps of row `row` of sample n, columns class, class + stride, ... (GRAD) or all. */
static void LKS_FN(line_at)(struct LKS_FN(line) *l, const struct lks_conv_dims *d, U32 n, U32 row,
                            U32 class, U32 cols)
{
    I32 least = 0, most = 0;
    l->n_tap = 0u;
    l->mul = GRAD ? 1u : d->stride_w;
    l->to = (((U64)n * DST_H(*d) + row) * DST_W(*d) + class) * d->c;
    l->step = (U64)(GRAD ? d->stride_w : 1u) * d->c;
    for (U32 r = 0u; r < d->r; r++) {
        const U32 h = GRAD ? lks_conv_out(row, r, d->stride_h, d->dil_h, d->pad_h, d->oh)
                           : lks_conv_in(row, r, d->stride_h, d->dil_h, d->pad_h);
        if (h >= SRC_H(*d))
            continue;
        for (U32 s = 0u; s < d->s; s++) {
            I32 col = (I32)(s * d->dil_w) - (I32)d->pad_w;
            if (GRAD) {
                col = (I32)class - col;
                if (col % (I32)d->stride_w != 0)
                    continue;
                col = col / (I32)d->stride_w;
            }
            least = l->n_tap == 0u || col < least ? col : least;
            most = l->n_tap == 0u || col > most ? col : most;
            l->tap[l->n_tap].col = col;
            l->tap[l->n_tap].w = (r * d->s + s) * d->c;
            l->tap[l->n_tap].at = (((U64)n * SRC_H(*d) + h) * SRC_W(*d) + (U64)col) * d->c;
            l->n_tap++;
        }
    }
    l->lo = least < 0 ? ((U32)-least + l->mul - 1u) / l->mul : 0u;
    l->hi = most < (I32)SRC_W(*d) ? (SRC_W(*d) - (U32)most + l->mul - 1u) / l->mul : 0u;
    l->hi = l->hi < cols ? l->hi : cols;
}

/* MR outputs from q on, all inside. */
static inline void LKS_FN(inside)(const struct LKS_FN(line) *l, U32 q, __global const F32 *src,
                                  __global const F32 *wp, __global const F32 *extra,
                                  __global F32 *dst, const struct lks_conv_dims *d)
{
    const U64 hop = (U64)l->mul * d->c;
    for (U32 c0 = 0u; c0 < d->c; c0 += NB) {
        const U32 c = c0 + NB <= d->c ? c0 : d->c - NB;
        V acc[MR * NV];
        UNROLL for (int i = 0; i < MR * NV; i++)
            acc[i] = (V)(0.0f);
        for (U32 t = 0u; t < l->n_tap; t++) {
            __global const F32 *p = src + (l->tap[t].at + q * hop + c);
            __global const F32 *b = wp + (l->tap[t].w + c);
            V w[NV];
            UNROLL for (int j = 0; j < NV; j++)
                w[j] = LOAD(b + VEC * j);
            UNROLL for (int i = 0; i < MR; i++)
            {
                UNROLL for (int j = 0; j < NV; j++)
                    acc[i * NV + j] = fma(LOAD(p + VEC * j), w[j], acc[i * NV + j]);
                p += hop;
            }
        }
        UNROLL for (int i = 0; i < MR; i++)
        {
            const U64 to = l->to + (q + i) * l->step + c;
            UNROLL for (int j = 0; j < NV; j++)
                STORE(LKS_FN(finish)(acc[i * NV + j], extra, d, to + VEC * j, c + VEC * j),
                      dst + (to + VEC * j));
        }
    }
}

/* One output, some of whose taps may lie outside. */
static void LKS_FN(border)(const struct LKS_FN(line) *l, U32 q, __global const F32 *src,
                           __global const F32 *wp, __global const F32 *extra, __global F32 *dst,
                           const struct lks_conv_dims *d)
{
    for (U32 c0 = 0u; c0 < d->c; c0 += VEC) {
        const U32 c = c0 + VEC <= d->c ? c0 : d->c - VEC;
        const U64 to = l->to + q * l->step + c;
        V acc = (V)(0.0f);
        for (U32 t = 0u; t < l->n_tap; t++)
            if (q * l->mul + (U32)l->tap[t].col < SRC_W(*d))
                acc = fma(LOAD(src + (l->tap[t].at + (U64)q * l->mul * d->c + c)),
                          LOAD(wp + (l->tap[t].w + c)), acc);
        STORE(LKS_FN(finish)(acc, extra, d, to, c), dst + to);
    }
}

/* Work-item (`per_item` rows, `chunk` columns of a class). */
__kernel ALONE void LKS_KERNEL(rows)(__global const F32 *restrict src,
                                     __global const F32 *restrict wp,
                                     __global const F32 *restrict extra,
                                     __global F32 *restrict dst, struct lks_conv_dims d,
                                     U32 per_item, U32 chunk)
{
    const U32 first = (U32)get_global_id(0) * per_item, all = d.n * DST_H(d);
    const U32 end = min(first + per_item, all), from = (U32)get_global_id(1) * chunk;
    const U32 step = GRAD ? d.stride_w : 1u;
    struct LKS_FN(line) l;
    for (U32 row = first; row < end; row++) {
        for (U32 class = 0u; class < min(step, DST_W(d)); class++) {
            const U32 cols = (DST_W(d) - class + step - 1u) / step, to = min(from + chunk, cols);
            LKS_FN(line_at)(&l, &d, row / DST_H(d), row % DST_H(d), class, cols);
            for (U32 q = from; q < to;) {
                if (q >= l.lo && q + MR <= min(l.hi, to)) {
                    LKS_FN(inside)(&l, q, src, wp, extra, dst, &d);
                    q += MR;
                } else {
                    LKS_FN(border)(&l, q, src, wp, extra, dst, &d);
                    q++;
                }
            }
        }
    }
}
#endif

#ifdef PIXEL
/* Work-item (vector of channels and column, row of all samples). Macros KR, KS, SH, SW: the window and
 * its strides, so that its loops unroll and no division is left where they are 1. */
__kernel void LKS_KERNEL(pixel)(__global const F32 *restrict src, __global const F32 *restrict wp,
                                __global const F32 *restrict extra, __global F32 *restrict dst,
                                struct lks_conv_dims d)
{
    const U32 vectors = d.c / VEC, at = get_global_id(0), line = get_global_id(1);
    const U32 c = at % vectors * VEC, col = at / vectors;
    const U32 n = line / DST_H(d), row = line % DST_H(d);
    __global const F32 *image = src + (U64)n * SRC_H(d) * SRC_W(d) * d.c + c;
    V acc = (V)(0.0f);
    if (col >= DST_W(d))
        return;
    UNROLL for (U32 r = 0u; r < KR; r++)
    {
        const U32 h = GRAD ? lks_conv_out(row, r, SH, d.dil_h, d.pad_h, d.oh)
                           : lks_conv_in(row, r, SH, d.dil_h, d.pad_h);
        UNROLL for (U32 s = 0u; s < KS; s++)
        {
            const U32 w = GRAD ? lks_conv_out(col, s, SW, d.dil_w, d.pad_w, d.ow)
                               : lks_conv_in(col, s, SW, d.dil_w, d.pad_w);
            if (h < SRC_H(d) && w < SRC_W(d))
                acc = fma(LOAD(image + (h * SRC_W(d) + w) * d.c),
                          LOAD(wp + ((r * KS + s) * d.c + c)), acc);
        }
    }
    const U64 to = ((U64)line * DST_W(d) + col) * d.c + c;
    STORE(LKS_FN(finish)(acc, extra, &d, to, c), dst + to);
}
#endif

#ifdef LEAVES
/* Work-item (channel, tap, leaf). */
__kernel void LKS_KERNEL(leaves)(__global const F32 *restrict x, __global const F32 *restrict dy,
                                 __global F32 *restrict part, struct lks_conv_dims d)
{
    const U32 c = get_global_id(0), tap = get_global_id(1), leaf = get_global_id(2);
    if (c < d.c)
        part[((U64)leaf * d.c + c) * (d.r * d.s) + tap] =
            lks_conv_weight_leaf(x, dy, &d, c, tap / d.s, tap % d.s, 0u, leaf);
}
#endif
