/*
 * winograd_gpu.cl - schedules `nv` and `gpu` of the operators of winograd.h: everything but the
 * products, which product_gpu.cl and product_weight_gpu.cl do for all 16 places at once.
 *
 *   kernels  weights -> [place][c][k]
 *   patches  source  -> [tile][place][c]
 *   outputs  products [tile][place][k] -> the result, with what follows the sum
 *   spread   dy      -> [tile][place][k]
 *   weights  sums [place][k][c] -> dw
 * Channels of workspaces are filled up with zeros to multiples of 4. A turn holds a slice of the samples;
 * the last one's absent samples are zeros. A work-item takes a tile and four channels.
 *
 * Macros: GRAD=1 for the data gradient; W4=1 if the channels of the tensor that is read or written are a
 * multiple of 4; BIAS, MASK, RELU: what follows the sum.
 */
#include "contract/winograd.h"

#ifndef GRAD
#define GRAD 0
#define W4   0
#define BIAS 0
#define MASK 0
#define RELU 0
#endif
#define UNROLL _Pragma("unroll")
#define SIDE   16u

/* Channels c to c + 3, zeros from `channels` on. */
static inline float4 LKS_FN(read)(__global const float *from, U32 c, U32 channels)
{
#if W4
    return *(__global const float4 *)(from + c);
#else
    float4 v = (float4)(0.0f);
    if (c < channels)
        v.x = from[c];
    if (c + 1u < channels)
        v.y = from[c + 1u];
    if (c + 2u < channels)
        v.z = from[c + 2u];
    if (c + 3u < channels)
        v.w = from[c + 3u];
    return v;
#endif
}

static inline void LKS_FN(write)(__global float *to, float4 v, U32 c, U32 channels)
{
#if W4
    *(__global float4 *)(to + c) = v;
#else
    if (c < channels)
        to[c] = v.x;
    if (c + 1u < channels)
        to[c + 1u] = v.y;
    if (c + 2u < channels)
        to[c + 2u] = v.z;
    if (c + 3u < channels)
        to[c + 3u] = v.w;
#endif
}

/* The tile and the channels of this work-item; returns from the kernel beyond the end. */
#define PLACE(padded)                                                                              \
    const U32 quads = (padded) / 4u, id = (U32)get_global_id(0);                                   \
    const U32 c = id % quads * 4u, tile = id / quads, n_ = tile / (tiles.x * tiles.y);             \
    const U32 th = tile / tiles.y % tiles.x, tw = tile % tiles.y, n = turn * batch.y + n_;         \
    if (n_ >= batch.y)                                                                             \
        return;

/* batch: samples, samples of a turn. off: row and column of the patch of tile (0, 0). */
__kernel void LKS_KERNEL(patches)(__global const float *restrict source,
                                  __global float *restrict patches, uint2 batch, uint2 hw,
                                  uint2 tiles, uint2 off, uint2 channels, U32 turn)
{
    float4 d[16];
    PLACE(channels.y)
    UNROLL for (U32 i = 0u; i < 16u; i++)
    {
        const U32 row = 2u * th + off.x + i / 4u, col = 2u * tw + off.y + i % 4u;
        d[i] = (float4)(0.0f);
        if (n < batch.x && row < hw.x && col < hw.y)
            d[i] = LKS_FN(read)(source + (((U64)n * hw.x + row) * hw.y + col) * channels.x, c,
                                channels.x);
    }
    LKS_WINOGRAD_PATCH(float4, d)
    patches += (U64)tile * 16u * channels.y + c;
    UNROLL for (U32 i = 0u; i < 16u; i++)
        *(__global float4 *)(patches + i * channels.y) = d[i];
}

__kernel void LKS_KERNEL(spread)(__global const float *restrict dy, __global float *restrict to,
                                 uint2 batch, uint2 hw, uint2 tiles, uint2 channels, U32 turn)
{
    float4 e[4], f[16];
    PLACE(channels.y)
    UNROLL for (U32 i = 0u; i < 4u; i++)
    {
        const U32 row = 2u * th + i / 2u, col = 2u * tw + i % 2u;
        e[i] = (float4)(0.0f);
        if (n < batch.x && row < hw.x && col < hw.y)
            e[i] = LKS_FN(read)(dy + (((U64)n * hw.x + row) * hw.y + col) * channels.x, c,
                                channels.x);
    }
    LKS_WINOGRAD_SPREAD(float4, e, f)
    to += (U64)tile * 16u * channels.y + c;
    UNROLL for (U32 i = 0u; i < 16u; i++)
        *(__global float4 *)(to + i * channels.y) = f[i];
}

__kernel void LKS_KERNEL(outputs)(__global const float *restrict products,
                                  __global const float *restrict extra,
                                  __global float *restrict result, uint2 batch, uint2 hw,
                                  uint2 tiles, uint2 channels, U32 turn)
{
    float4 m[16], y[4];
    PLACE(channels.y)
    if (n >= batch.x)
        return;
    products += (U64)tile * 16u * channels.y + c;
    UNROLL for (U32 i = 0u; i < 16u; i++)
        m[i] = *(__global const float4 *)(products + i * channels.y);
    LKS_WINOGRAD_OUTPUTS(float4, m, y)
    UNROLL for (U32 i = 0u; i < 4u; i++)
    {
        const U32 row = 2u * th + i / 2u, col = 2u * tw + i % 2u;
        const U64 at = (((U64)n * hw.x + row) * hw.y + col) * channels.x;
        float4 v = y[i];
        if (row >= hw.x || col >= hw.y)
            continue;
#if BIAS
        v = v + LKS_FN(read)(extra, c, channels.x);
#endif
        v = v + 0.0f;
#if MASK
        v = select(v, (float4)(0.0f), LKS_FN(read)(extra + at, c, channels.x) <= 0.0f);
#endif
#if RELU
        v = select(v, (float4)(0.0f), v <= 0.0f);
#endif
        LKS_FN(write)(result + at, v, c, channels.x);
    }
}

/* Work-groups SIDE x SIDE. from, to: channels c, channels k; as they are and filled up. Of the weights
 * [k of w][tap][c of w] the neighbours in memory are c's, or, with GRAD, k's. */
__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1))) void
LKS_KERNEL(kernels)(__global const float *restrict w, __global float *restrict to, uint2 from,
                    uint2 fill)
{
    const U32 x = (U32)get_local_id(0), y = (U32)get_local_id(1);
    const U32 x0 = (U32)get_group_id(0) * SIDE, y0 = (U32)get_group_id(1) * SIDE;
    float g[9], u[16];
#if GRAD
    const U32 c = y0 + y, k = x0 + x, wide = from.y;
#else
    const U32 c = x0 + x, k = y0 + y, wide = from.x;
    __local float turn[16][SIDE][SIDE + 1];
#endif
    UNROLL for (U32 i = 0u; i < 9u; i++)
    {
        g[i] = 0.0f;
        if (c < from.x && k < from.y)
#if GRAD
            g[i] = w[((U64)c * 9u + 8u - i) * wide + k];
#else
            g[i] = w[((U64)k * 9u + i) * wide + c];
#endif
    }
    LKS_WINOGRAD_KERNEL(float, g, u)
#if GRAD
    if (c < fill.x && k < fill.y) {
        UNROLL for (U32 i = 0u; i < 16u; i++)
            to[((U64)i * fill.x + c) * fill.y + k] = u[i];
    }
#else
    UNROLL for (U32 i = 0u; i < 16u; i++)
        turn[i][y][x] = u[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (x0 + y < fill.x && y0 + x < fill.y) {
        UNROLL for (U32 i = 0u; i < 16u; i++)
            to[((U64)i * fill.x + x0 + y) * fill.y + y0 + x] = turn[i][x][y];
    }
#endif
}

/* Work-item (c, k): sums[place][k][c], with channels filled up to `fill` (c, k), to dw[k][tap][c]. */
__kernel void LKS_KERNEL(weights)(__global const float *restrict sums, __global float *restrict dw,
                                  uint2 channels, uint2 fill)
{
    const U32 c = (U32)get_global_id(0), k = (U32)get_global_id(1);
    float q[16], out[9];
    if (c >= channels.x || k >= channels.y)
        return;
    UNROLL for (U32 i = 0u; i < 16u; i++)
        q[i] = sums[((U64)i * fill.y + k) * fill.x + c];
    LKS_WINOGRAD_WEIGHTS(float, q, out)
    UNROLL for (U32 i = 0u; i < 9u; i++)
        dw[((U64)k * 9u + i) * channels.x + c] = out[i] + 0.0f;
}
