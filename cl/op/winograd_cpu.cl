/*
 * winograd_cpu.cl - schedule `cpu` of winograd and (GRAD 1) winograd_data_grad.
 *
 *   kernels  weights -> [block][place][chain][NB], transformed, zeros beyond the last channel
 *   conv     a work-item turns the patches of some tiles into the 16 places, in local memory, and for
 *            each of its blocks of NB = VEC * NV output channels runs the 16 products there, MR tiles
 *            by NB channels in registers, then the outputs of the tiles. What is transformed never
 *            leaves the cache.
 * One work-item is a work-group: local memory is its own, and there are no barriers.
 */
#ifndef MR
#define MR   6
#define NV   4
#define VEC  16
#define GRAD 0
#endif
#define NB (VEC * NV)

#include "contract/winograd.h"
#include "op/winograd_cpu.h"

/* Work-item (16 channels of the chain, block). */
__kernel ALONE void LKS_KERNEL(kernels)(__global const float *restrict w,
                                        __global float *restrict to, struct lks_conv_dims d)
{
    const U32 len = GRAD ? d.k : d.c, wide = GRAD ? d.c : d.k;
    const U32 c0 = (U32)get_global_id(0) * 16u, c1 = min(c0 + 16u, len);
    const U32 k0 = (U32)get_global_id(1) * NB, live = min((U32)NB, wide - k0);
    to += (U64)get_global_id(1) * 16u * len * NB;
    ROLLED for (U32 i = 0u; i < NB; i += 16u) {
        U32 c = c0;
#if !GRAD
        if (i + 16u <= live && c0 + 16u <= len) {
            /* tap by tap 16 x 16 weights, so that channels of the result become lanes */
            float16 g[9][16];
            ROLLED for (U32 t = 0u; t < 9u; t++) {
                float16 v[16];
                for (U32 j = 0u; j < 16u; j++)
                    v[j] = vload16(0, w + ((U64)(k0 + i + j) * 9u + t) * len + c0);
                LKS_FN(transpose)(v);
                for (U32 j = 0u; j < 16u; j++)
                    g[t][j] = v[j];
            }
            ROLLED for (; c < c1; c++) {
                float16 h[9], u[16];
                UNROLL for (U32 t = 0u; t < 9u; t++)
                    h[t] = g[t][c - c0];
                LKS_WINOGRAD_KERNEL(float16, h, u)
                UNROLL for (U32 p = 0u; p < 16u; p++)
                    vstore16(u[p], 0, to + ((U64)p * len + c) * NB + i);
            }
        }
#else
        if (i + 16u <= live)
            ROLLED for (; c < c1; c++) {
                float16 h[9], u[16];
                UNROLL for (U32 t = 0u; t < 9u; t++)
                    h[t] = vload16(0, w + ((U64)c * 9u + 8u - t) * wide + k0 + i);
                LKS_WINOGRAD_KERNEL(float16, h, u)
                UNROLL for (U32 p = 0u; p < 16u; p++)
                    vstore16(u[p], 0, to + ((U64)p * len + c) * NB + i);
            }
#endif
        ROLLED for (; c < c1; c++)
            ROLLED for (U32 k = i; k < min(i + 16u, (U32)NB); k++) {
                float h[9], u[16];
                UNROLL for (U32 t = 0u; t < 9u; t++)
                    h[t] = k >= live ? 0.0f
                           : GRAD    ? w[((U64)c * 9u + 8u - t) * wide + k0 + k]
                                     : w[((U64)(k0 + k) * 9u + t) * len + c];
                LKS_WINOGRAD_KERNEL(float, h, u)
                UNROLL for (U32 p = 0u; p < 16u; p++)
                    to[((U64)p * len + c) * NB + k] = u[p];
            }
    }
}

/* The chains of MR tiles, rows of a that are `stride` elements apart, by NB channels; to m. */
static inline void LKS_FN(product)(__local const float *a, U32 stride, __global const float *b,
                                   U32 len, __local float *m)
{
    for (U32 c0 = 0u; c0 < len; c0 += LKS_PIECE) {
        V acc[MR * NV];
        UNROLL for (int i = 0; i < MR * NV; i++)
            acc[i] = (V)(0.0f);
        for (U32 c = c0; c < min(c0 + LKS_PIECE, len); c++, b += NB) {
            V w[NV];
            UNROLL for (int j = 0; j < NV; j++)
                w[j] = LOAD(b + VEC * j);
            UNROLL for (int i = 0; i < MR; i++) {
                const V x = (V)(a[i * stride + c]);
                UNROLL for (int j = 0; j < NV; j++)
                    acc[i * NV + j] = fma(x, w[j], acc[i * NV + j]);
            }
        }
        if (c0 > 0u)
            UNROLL for (int i = 0; i < MR * NV; i++)
                acc[i] = LOAD(m + i * VEC) + acc[i];
        UNROLL for (int i = 0; i < MR * NV; i++)
            STORE(acc[i], m + i * VEC);
    }
}

static inline V LKS_FN(drop)(V v, V test)
{
    return select(v, (V)(0.0f), test <= 0.0f);
}

/* Lanes [0, live) of v, which are channels k on. */
static inline void LKS_FN(put)(V v, __global float *to, __global const float *extra, U64 at, U32 k,
                               U32 live, const struct lks_conv_dims *d)
{
    float lane[VEC], more[VEC];
    const int mask = GRAD && d->extra == 1u, bias = d->extra == (GRAD ? 2u : 1u);
    V e = (V)(0.0f);
    if (mask || bias) {
        __global const float *from = mask ? extra + at : extra + k;
        if (live >= VEC) {
            e = LOAD(from);
        } else {
            ROLLED for (U32 i = 0u; i < VEC; i++)
                more[i] = i < live ? from[i] : 0.0f;
            e = LOAD(more);
        }
    }
    if (bias)
        v = v + e;
    v = v + 0.0f;
    if (mask)
        v = LKS_FN(drop)(v, e);
    if (!GRAD && d->relu != 0u)
        v = LKS_FN(drop)(v, v);
    if (live >= VEC) {
        STORE(v, to + at);
    } else {
        STORE(v, lane);
        ROLLED for (U32 i = 0u; i < live; i++)
            to[at + i] = lane[i];
    }
}

/* Work-item (tiles, blocks); `tiles`: how many it takes, a multiple of MR; row: elements of local memory
 * from tile to tile, at least the chain. */
__kernel ALONE void LKS_KERNEL(conv)(__global const float *restrict src,
                                     __global const float *restrict wp,
                                     __global const float *restrict extra,
                                     __global float *restrict dst, __local float *restrict patches,
                                     __local float *restrict products, struct lks_conv_dims d,
                                     U32 tiles, U32 row, U32 blocks)
{
#if GRAD
    const struct LKS_FN(picture) m = {src, d.oh, d.ow, d.k, d.pad_h - 2u, d.pad_w - 2u};
    const U32 oh = d.h, ow = d.w, wide = d.c;
#else
    const struct LKS_FN(picture) m = {src, d.h, d.w, d.c, 0u - d.pad_h, 0u - d.pad_w};
    const U32 oh = d.oh, ow = d.ow, wide = d.k;
#endif
    const U32 len = m.channels, th = lks_winograd_tiles(oh), tw = lks_winograd_tiles(ow);
    const U32 total = d.n * th * tw, first = (U32)get_global_id(0) * tiles;
    const U32 live = min(tiles, total - first), used = (live + MR - 1u) / MR * MR;
    const U32 block0 = (U32)get_global_id(1) * blocks, all = (wide + NB - 1u) / NB;
    ROLLED for (U32 t = 0u; t < used; t++) /* beyond the last one, that one again */
        LKS_FN(patch)(&m, LKS_FN(where)(first + min(t, live - 1u), th, tw), 0u, len, len,
                      patches + t * row, tiles * row);
    for (U32 block = block0; block < min(block0 + blocks, all); block++) {
        for (U32 p = 0u; p < 16u; p++)
            for (U32 t = 0u; t < used; t += MR)
                LKS_FN(product)(patches + (p * tiles + t) * row, row,
                                wp + ((U64)block * 16u + p) * len * NB, len,
                                products + (p * tiles + t) * NB);
        ROLLED for (U32 t = 0u; t < live; t++) {
            const struct LKS_FN(where) at = LKS_FN(where)(first + t, th, tw);
            ROLLED for (U32 j = 0u; j < NB && block * NB + j < wide; j += VEC) {
                const U32 k = block * NB + j;
                V q[16], y[4];
                UNROLL for (U32 p = 0u; p < 16u; p++)
                    q[p] = LOAD(products + (p * tiles + t) * NB + j);
                LKS_WINOGRAD_OUTPUTS(V, q, y)
                UNROLL for (U32 i = 0u; i < 4u; i++) {
                    const U32 r = 2u * at.th + i / 2u, c = 2u * at.tw + i % 2u;
                    if (r < oh && c < ow)
                        LKS_FN(put)(y[i], dst, extra, (((U64)at.n * oh + r) * ow + c) * wide + k,
                                    k, wide - k, &d);
                }
            }
        }
    }
}
