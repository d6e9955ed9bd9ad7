/*
 * conv_cpu.cl - convolution forward (GRAD 0) and its data gradient (GRAD 1) for CPU devices.
 *
 * One work-item owns tiles of MR positions by NB = VEC * NV output channels, all of it in vector
 * accumulators, and chains over the taps and the input channels; no local memory, no barriers.
 * Before it, `pack` lays the weights out as [block][chain][NB], zero-filled past the last channel.
 *   conv    taps in the padding, or that meet no output, read a row of zeros
 *   padded  forward only, for few input channels: x was copied by `pad` into a frame of zeros, so
 *           that the taps of a row are one run of elements
 * DEPTH 1 is for as many groups as channels on either side: lanes of x meet lanes of the weights.
 * GRAD 1 takes the positions of dx class by class (row and column modulo the stride, the third
 * dimension of the launch), so that all positions of a tile meet the same taps.
 */
#ifndef MR
#define MR     6
#define NV     4
#define VEC    16
#define GRAD   0
#define FRAMED 0 /* 1: the kernel `padded` in place of `conv` */
#define DEPTH  0
#define PIECES 0 /* 1: chains are more than one piece (piece.h); not with FRAMED */
#endif
#define NB     (VEC * NV)
#define BIASED (GRAD ? 2u : 1u) /* d.extra, where a bias is given */

#include "contract/conv.h"
#include "op/conv_frame.h"
#include "op/transpose.h"
#include "op/vec.h"

/* Where a block of output channels lies; blocks do not cross groups, but with DEPTH, where the last
 * one is moved back inside and leaves what it shares with its neighbour to that. */
struct LKS_FN(block) {
    U32 group, lane; /* its group, its first channel there */
    U32 skip, lanes; /* it stores the channels [skip, lanes) of its NB */
    U32 channel;     /* its first channel in the tensor */
};

static inline struct LKS_FN(block) LKS_FN(block_at)(U32 block, const struct lks_conv_dims *d)
{
    struct LKS_FN(block) b;
#if DEPTH
    b.group = 0u;
    b.lane = b.channel = min(block * NB, d->c - NB);
    b.skip = block * NB - b.lane;
    b.lanes = NB;
#else
    const U32 wide = (GRAD ? d->c : d->k) / d->groups, per_group = (wide + NB - 1u) / NB;
    b.group = block / per_group;
    b.lane = block % per_group * NB;
    b.skip = 0u;
    b.lanes = min((U32)NB, wide - b.lane);
    b.channel = b.group * wide + b.lane;
#endif
    return b;
}

/* ---- packing: work-item (PACKED chain elements, block) ---- */

#define PACKED 64u

#if !GRAD
/* 16 chain elements of 16 output channels. */
static inline void LKS_FN(pack_square)(__global const float *w, U32 chain, __global float *to)
{
    float16 v[16];
    for (int i = 0; i < 16; i++)
        v[i] = vload16(0, w + (U64)i * chain);
    LKS_FN(transpose)(v);
    for (int i = 0; i < 16; i++)
        vstore16(v[i], 0, to + i * NB);
}
#endif

/* Chain elements [e0, e1) of lanes [i0, i1) of a block. */
static inline void LKS_FN(pack_edge)(__global const float *w, __global float *to, U32 e0, U32 e1,
                                     U32 i0, U32 i1, const struct LKS_FN(block) *b,
                                     const struct lks_conv_dims *d)
{
    const U32 taps = d->r * d->s, cg = d->c / d->groups;
#if GRAD && !DEPTH
    const U32 kg = d->k / d->groups;
#endif
    for (U32 e = e0; e < e1; e++) {
#if GRAD && !DEPTH
        const U64 row = ((U64)(b->group * kg + e % kg) * taps + e / kg) * cg + b->lane;
        const U64 step = 1u;
#else
        const U64 step = (U64)taps * cg, row = b->channel * step + e;
#endif
        ROLLED for (U32 i = i0; i < i1; i++)
            to[(U64)e * NB + i] = i < b->lanes ? w[row + i * step] : 0.0f;
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
LKS_KERNEL(pack)(__global const float *restrict w, __global const float *restrict bias,
                 __global float *restrict wp, __global float *restrict bp,
                 __global float *restrict zeros, struct lks_conv_dims d, U32 n_zeros)
{
    const U32 block = get_global_id(1);
    const struct LKS_FN(block) b = LKS_FN(block_at)(block, &d);
    const U32 chain = d.r * d.s * ((GRAD ? d.k : d.c) / d.groups);
    const U32 e0 = (U32)get_global_id(0) * PACKED, e1 = min(e0 + PACKED, chain);
    __global float *to = wp + (U64)block * chain * NB;
#if GRAD
    LKS_FN(pack_edge)(w, to, e0, e1, 0u, NB, &b, &d);
#else
    ROLLED for (U32 i = 0u; i < NB; i += 16u) {
        U32 e = e0;
        if (i + 16u <= b.lanes)
            for (; e + 16u <= e1; e += 16u)
                LKS_FN(pack_square)(w + (U64)(b.channel + i) * chain + e, chain,
                                    to + (U64)e * NB + i);
        LKS_FN(pack_edge)(w, to, e, e1, i, min(i + 16u, (U32)NB), &b, &d);
    }
#endif
    if (e0 == 0u && d.extra == BIASED)
        for (U32 i = 0u; i < NB; i++)
            bp[block * NB + i] = i < b.lanes ? bias[b.channel + i] : 0.0f;
    if (e0 == 0u && block == 0u)
        for (U32 i = 0u; i < n_zeros; i++)
            zeros[i] = 0.0f;
}

/* ---- stores ---- */

static inline V LKS_FN(drop)(V v, V test)
{
    return select(v, (V)(0.0f), test <= 0.0f);
}

/* Lanes [from, end) of v, through the mask if there is one. */
static inline void LKS_FN(put)(V v, __global float *to, __global const float *mask, U32 from,
                               U32 end)
{
    float lane[VEC];
    if (from == 0u && end >= VEC) {
        STORE(mask != 0 ? LKS_FN(drop)(v, LOAD(mask)) : v, to);
        return;
    }
    STORE(v, lane);
    ROLLED for (U32 i = from; i < min(end, (U32)VEC); i++)
        to[i] = mask != 0 && mask[i] <= 0.0f ? 0.0f : lane[i];
}

/*
 * Finishes the first `live` positions of a tile and stores them, position i from to + out[i] on:
 * adds the bias, if there is one, applies relu, and the mask (where `to` points to) if there is
 * one.
 */
static inline void LKS_FN(finish)(V *acc, const U64 *out, U32 live, __global float *to,
                                  __global const float *bias, int relu,
                                  __global const float *mask, const struct LKS_FN(block) *b)
{
    if (bias != 0)
        UNROLL for (int i = 0; i < MR * NV; i++)
            acc[i] = acc[i] + LOAD(bias + VEC * (i % NV));
    UNROLL for (int i = 0; i < MR * NV; i++)
        acc[i] = acc[i] + 0.0f;
    if (relu)
        UNROLL for (int i = 0; i < MR * NV; i++)
            acc[i] = LKS_FN(drop)(acc[i], acc[i]);
    if (live >= MR && b->skip == 0u && b->lanes >= NB) {
        if (mask != 0)
            UNROLL for (int i = 0; i < MR * NV; i++)
                acc[i] = LKS_FN(drop)(acc[i], LOAD(mask + out[i / NV] + VEC * (i % NV)));
        UNROLL for (int i = 0; i < MR * NV; i++)
            STORE(acc[i], to + out[i / NV] + VEC * (i % NV));
    } else {
        /* At the border, from memory: unrolled it would take long to compile. */
        V tile[MR * NV];
        UNROLL for (int i = 0; i < MR * NV; i++)
            tile[i] = acc[i];
        ROLLED for (U32 i = 0u; i < min(live, (U32)MR) * NV; i++) {
            const U32 lane = i % NV * VEC;
            const U64 at = out[i / NV] + lane;
            if (lane < b->lanes)
                LKS_FN(put)(tile[i], to + at, mask != 0 ? mask + at : 0,
                            b->skip - min(b->skip, lane), b->lanes - lane);
        }
    }
}

#if PIECES
#define RUN LKS_PIECE /* channels chained at a time */

/* Ends a piece: what stands in acc joins the sum, which is kept in memory. */
static inline void LKS_FN(turn)(V *sum, V *acc)
{
    UNROLL for (int i = 0; i < MR * NV; i++) {
        sum[i] = sum[i] + acc[i];
        acc[i] = (V)(0.0f);
    }
}
#else
#define RUN len
#endif

/* Position p of [n][rows][cols], advanced one by one. */
struct LKS_FN(place) {
    U32 n, row, col;
};

static inline void LKS_FN(next)(struct LKS_FN(place) *p, U32 rows, U32 cols)
{
    p->col++;
    if (p->col == cols) {
        p->col = 0u;
        p->row++;
        if (p->row == rows) {
            p->row = 0u;
            p->n++;
        }
    }
}

static inline struct LKS_FN(place) LKS_FN(at)(U32 p, U32 rows, U32 cols)
{
    struct LKS_FN(place) at;
    at.col = p % cols;
    at.row = p / cols % rows;
    at.n = p / cols / rows;
    return at;
}

/* Asks for the lines that a tile will store to, which its chains then do not wait for. */
static inline void LKS_FN(ahead)(const U64 *out, U32 live, __global const float *to, U32 lanes)
{
#if defined(__clang__) && defined(__x86_64__)
    ROLLED for (U32 i = 0u; i < min(live, (U32)MR); i++)
        ROLLED for (U32 j = 0u; j < min(lanes, (U32)NB); j += 16u)
            __builtin_prefetch((const void *)(uintptr_t)(to + out[i] + j), 1, 3);
#endif
}

#if !FRAMED
/* ---- any number of channels: work-item (tiles, block, class) ---- */

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
LKS_KERNEL(conv)(__global const float *restrict src, __global const float *restrict wp,
                 __global const float *restrict zeros, __global const float *restrict extra,
                 __global float *restrict dst, struct lks_conv_dims d, U32 per_item)
{
    const U32 block = get_global_id(1);
#if GRAD
    const U32 class_h = (U32)get_global_id(2) / d.stride_w;
    const U32 class_w = (U32)get_global_id(2) % d.stride_w;
    if (class_h >= d.h || class_w >= d.w)
        return;
    const U32 rows = (d.h - class_h + d.stride_h - 1u) / d.stride_h;
    const U32 cols = (d.w - class_w + d.stride_w - 1u) / d.stride_w;
    const U32 src_h = d.oh, src_w = d.ow, src_c = d.k, dst_c = d.c;
    const U32 mul_h = 1u, mul_w = 1u;
#else
    const U32 rows = d.oh, cols = d.ow;
    const U32 src_h = d.h, src_w = d.w, src_c = d.c, dst_c = d.k;
    const U32 mul_h = d.stride_h, mul_w = d.stride_w;
#endif
    const U32 total = d.n * rows * cols;
    const U32 first = (U32)get_global_id(0) * per_item * MR;
    if (first >= total)
        return;
    const U32 end = min(total - first, per_item * MR) + first;
    const U32 len = src_c / d.groups;
    const struct LKS_FN(block) here = LKS_FN(block_at)(block, &d);
    __global const float *weights = wp + (U64)block * d.r * d.s * len * NB;
    struct LKS_FN(place) at = LKS_FN(at)(first, rows, cols);
    src += DEPTH ? here.channel : here.group * len;
#if PIECES
    const U32 piece_taps = lks_piece_taps(len);
#endif

    for (U32 p = first; p < end; p += MR) {
        U32 row[MR], col[MR], base[MR];
        U64 out[MR];
        V acc[MR * NV];
#pragma unroll
        for (int i = 0; i < MR; i++) {
            row[i] = at.row * mul_h;
            col[i] = at.col * mul_w;
            base[i] = (at.n * src_h + row[i]) * src_w + col[i];
#if GRAD
            out[i] = ((U64)at.n * d.h + class_h + (U64)at.row * d.stride_h) * d.w + class_w +
                     (U64)at.col * d.stride_w;
#else
            out[i] = p + i;
#endif
            out[i] = out[i] * dst_c + here.channel;
            if (p + i + 1u < total)
                LKS_FN(next)(&at, rows, cols);
#pragma unroll
            for (int j = 0; j < NV; j++)
                acc[i * NV + j] = (V)(0.0f);
        }
        LKS_FN(ahead)(out, end - p, dst, here.lanes);
#if PIECES
        V sum[MR * NV];
        U32 piece = 0u;
        UNROLL for (int i = 0; i < MR * NV; i++)
            sum[i] = (V)(0.0f);
#endif
        for (U32 r = 0u; r < d.r; r++) {
#if GRAD
            const I32 dr = (I32)(class_h + d.pad_h) - (I32)(r * d.dil_h);
            if (dr % (I32)d.stride_h != 0)
                continue;
            const U32 off_h = (U32)(dr / (I32)d.stride_h); /* offsets wrap where negative */
#else
            const U32 off_h = r * d.dil_h - d.pad_h; /* offsets wrap where negative */
#endif
            for (U32 s = 0u; s < d.s; s++) {
#if GRAD
                const I32 ds = (I32)(class_w + d.pad_w) - (I32)(s * d.dil_w);
                if (ds % (I32)d.stride_w != 0)
                    continue;
                const U32 off_w = (U32)(ds / (I32)d.stride_w);
#else
                const U32 off_w = s * d.dil_w - d.pad_w;
#endif
                const U32 shift = off_h * src_w + off_w;
                __global const float *b = weights + (U64)(r * d.s + s) * len * NB;
                __global const float *a[MR];
#pragma unroll
                for (int i = 0; i < MR; i++) {
                    int inside = row[i] + off_h < src_h && col[i] + off_w < src_w;
                    a[i] = inside ? src + (U64)(base[i] + shift) * src_c : zeros;
                }
#if PIECES
                if (piece != (r * d.s + s) / piece_taps) {
                    piece = (r * d.s + s) / piece_taps;
                    LKS_FN(turn)(sum, acc);
                }
#endif
                for (U32 c0 = 0u; c0 < len; c0 += RUN) {
#if PIECES
                    if (c0 > 0u)
                        LKS_FN(turn)(sum, acc);
#endif
                    for (U32 c = c0; c < min(c0 + RUN, len); c++) {
                        V w[NV];
#pragma unroll
                        for (int j = 0; j < NV; j++)
                            w[j] = LOAD(b + VEC * j);
                        b += NB;
#pragma unroll
                        for (int i = 0; i < MR; i++) {
#if DEPTH
#pragma unroll
                            for (int j = 0; j < NV; j++)
                                acc[i * NV + j] = fma(LOAD(a[i] + VEC * j), w[j], acc[i * NV + j]);
#else
                            const V x = (V)(a[i][c]);
#pragma unroll
                            for (int j = 0; j < NV; j++)
                                acc[i * NV + j] = fma(x, w[j], acc[i * NV + j]);
#endif
                        }
                    }
                }
            }
        }
#if PIECES
        LKS_FN(turn)(sum, acc);
        UNROLL for (int i = 0; i < MR * NV; i++)
            acc[i] = sum[i];
#endif
        LKS_FN(finish)(acc, out, end - p, dst, d.extra == BIASED ? extra + block * NB : 0,
                       !GRAD && d.relu != 0u, GRAD && d.extra == 1u ? extra : 0, &here);
    }
}

#else
/* ---- few input channels: x in a frame of zeros ---- */

/* Work-item (tiles, block). Each of the d.r rows of taps is `runs` runs of `len` elements,
 * `step` elements apart. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
LKS_KERNEL(padded)(__global const float *restrict frame, __global const float *restrict wp,
                   __global const float *restrict bias, __global float *restrict y,
                   struct lks_conv_dims d, U32 per_item, U32 fh, U32 fw, U32 runs, U32 len,
                   U32 step)
{
    const U32 block = get_global_id(1);
    const U32 total = d.n * d.oh * d.ow;
    const U32 first = (U32)get_global_id(0) * per_item * MR;
    if (first >= total)
        return;
    const U32 end = min(total - first, per_item * MR) + first;
    const struct LKS_FN(block) here = LKS_FN(block_at)(block, &d);
    __global const float *weights = wp + (U64)block * d.r * d.s * d.c * NB;
    struct LKS_FN(place) at = LKS_FN(at)(first, d.oh, d.ow);

    for (U32 p = first; p < end; p += MR) {
        U64 out[MR];
        V acc[MR * NV];
        __global const float *a[MR];
        __global const float *b = weights;
#pragma unroll
        for (int i = 0; i < MR; i++) {
            out[i] = (U64)(p + i) * d.k + here.channel;
            a[i] = frame + (((U64)at.n * fh + at.row * d.stride_h) * fw + at.col * d.stride_w) * d.c;
            if (p + i + 1u < total)
                LKS_FN(next)(&at, d.oh, d.ow);
#pragma unroll
            for (int j = 0; j < NV; j++)
                acc[i * NV + j] = (V)(0.0f);
        }
        LKS_FN(ahead)(out, end - p, y, here.lanes);
        for (U32 r = 0u; r < d.r; r++) {
            U64 run = (U64)r * d.dil_h * fw * d.c;
            for (U32 q = 0u; q < runs; q++, run += step) {
                for (U32 c = 0u; c < len; c++) {
                    V w[NV];
#pragma unroll
                    for (int j = 0; j < NV; j++)
                        w[j] = LOAD(b + VEC * j);
                    b += NB;
#pragma unroll
                    for (int i = 0; i < MR; i++) {
                        const V x = (V)(a[i][run + c]);
#pragma unroll
                        for (int j = 0; j < NV; j++)
                            acc[i * NV + j] = fma(x, w[j], acc[i * NV + j]);
                    }
                }
            }
        }
        LKS_FN(finish)(acc, out, end - p, y, d.extra == BIASED ? bias + block * NB : 0,
                       d.relu != 0u, 0, &here);
    }
}
#endif
