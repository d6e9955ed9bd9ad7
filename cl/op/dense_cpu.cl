/*
 * dense_cpu.cl - schedules `cpu` of dense, dense_data_grad and dense_weight_grad: one work-item
 * keeps a tile of MR rows x NV vectors in registers and runs whole chains. No local memory, no
 * barriers, groups of one.
 *
 *   pack         rows of a matrix into panels [panel][k][16 * NV], zeros beyond the last row
 *   product      c = a b over panels of b. TRANS: the tile is stored transposed
 *   weight_grad  leaves chained in registers, the tree over them in private memory
 *
 * Macros: MR, NV tile; TRANS, BIAS, RELU say what `product` does.
 */
#include "contract/dense.h"
#include "contract/num.h"

#define VEC 16
#include "op/vec.h"

#ifndef MR
#define MR 6
#endif
#ifndef NV
#define NV 4
#endif
#define WIDTH (16 * NV)

#ifdef PACK
/* Work-item (k block of 64, panel of `width` rows). */
__kernel ALONE void LKS_KERNEL(pack)(__global const F32 *restrict m, __global F32 *restrict out,
                                     U32 rows, U32 k, U32 width)
{
    U32 panel = get_global_id(1), k0 = get_global_id(0) * 64u;
    U32 k1 = k0 + 64u < k ? k0 + 64u : k;
    U32 live = rows - panel * width < width ? rows - panel * width : width;
    __global const F32 *src = m + (U64)panel * width * k;
    __global F32 *dst = out + (U64)panel * width * k;
    /* Row by row: columns of a matrix whose rows are a power of two apart share a cache set. */
    for (U32 j = 0u; j < live; j++)
        for (U32 i = k0; i < k1; i++)
            dst[(U64)i * width + j] = src[(U64)j * k + i];
    for (U32 i = k0; i < k1; i++)
        for (U32 j = live; j < width; j++)
            dst[(U64)i * width + j] = 0.0f;
}
#endif

#if defined(WEIGHT) || defined(PRODUCT) && !defined(TRANS)
/* Lanes [skip, live) of v to p[skip ..], 0 where `mask`, if there is one, is not above 0. */
static void LKS_FN(edge)(float16 v, U32 skip, U32 live, __global F32 *p, __global const F32 *mask)
{
    F32 lane[16];
    if (skip == 0u && live == 16u) {
        if (mask != 0)
            v = vload16(0, mask) <= 0.0f ? (float16)(0.0f) : v;
        vstore16(v, 0, p);
        return;
    }
    vstore16(v, 0, lane);
    ROLLED for (U32 l = skip; l < live; l++)
        p[l] = mask != 0 && mask[l] <= 0.0f ? 0.0f : lane[l];
}
#endif

#if defined(PRODUCT) || defined(WEIGHT)
/* Ends a piece of the chains (piece.h): what stands in acc is the sum, or joins what there is of it. */
static void LKS_FN(turn)(float16 (*sum)[NV], float16 (*acc)[NV], int more)
{
    UNROLL for (int i = 0; i < MR; i++)
        UNROLL for (int j = 0; j < NV; j++) {
            sum[i][j] = more ? sum[i][j] + acc[i][j] : acc[i][j];
            acc[i][j] = (float16)(0.0f);
        }
}
#endif

#ifdef PRODUCT
static float16 LKS_FN(finish)(float16 v, float16 bias)
{
#ifdef BIAS
    v = v + bias;
#endif
    v = v + 0.0f;
#ifdef RELU
    v = v <= 0.0f ? (float16)(0.0f) : v;
#endif
    return v;
}

/*
 * Work-item (row tile, panel). c[m][n] = sum_k a[m*k + ..] b[..][n], rows of a broadcast.
 * TRANS: b is packed, c is stored as c[n*m + ..] and bias belongs to the rows.
 * PACKED: b is packed, bias belongs to the columns.
 * Else b[k][n] is read in place; vectors over the border move back into the matrix.
 * `masked`: c is 0 where `extra` is not above 0.
 */
__kernel ALONE void LKS_KERNEL(product)(__global const F32 *restrict a,
                                        __global const F32 *restrict b,
                                        __global const F32 *restrict extra,
                                        __global F32 *restrict c, U32 m, U32 n, U32 k, U32 masked)
{
    U32 m0 = get_global_id(0) * MR, n0 = get_global_id(1) * WIDTH;
    __global const F32 *row[MR];
    float16 acc[MR][NV], sum[MR][NV];
#if defined(TRANS) || defined(PACKED)
    __global const F32 *p = b + (U64)n0 * k;
#else
    U32 col[NV];
    UNROLL for (int j = 0; j < NV; j++)
        col[j] = n0 + 16u * j + 16u <= n ? n0 + 16u * j : n - 16u;
#endif
    UNROLL for (int i = 0; i < MR; i++) {
        row[i] = a + (U64)(m0 + i < m ? m0 + i : m - 1u) * k;
        UNROLL for (int j = 0; j < NV; j++)
            acc[i][j] = (float16)(0.0f);
    }
    for (U32 t0 = 0u; t0 < k; t0 += LKS_PIECE) {
        if (t0 > 0u)
            LKS_FN(turn)(sum, acc, t0 > LKS_PIECE);
        for (U32 t = t0; t < min(t0 + LKS_PIECE, k); t++) {
            float16 v[NV];
#if defined(TRANS) || defined(PACKED)
            UNROLL for (int j = 0; j < NV; j++)
                v[j] = vload16(j, p);
            p += WIDTH;
#else
            UNROLL for (int j = 0; j < NV; j++)
                v[j] = vload16(0, b + (U64)t * n + col[j]);
#endif
            UNROLL for (int i = 0; i < MR; i++) {
                float16 s = (float16)(row[i][t]);
                UNROLL for (int j = 0; j < NV; j++)
                    acc[i][j] = fma(s, v[j], acc[i][j]);
            }
        }
    }
    if (k > LKS_PIECE)
        UNROLL for (int i = 0; i < MR; i++)
            UNROLL for (int j = 0; j < NV; j++)
                acc[i][j] = sum[i][j] + acc[i][j];
#ifdef TRANS
    {
        F32 tile[MR][WIDTH];
        U32 live_m = m - m0 < MR ? m - m0 : MR, live_n = n - n0 < WIDTH ? n - n0 : WIDTH;
        UNROLL for (int i = 0; i < MR; i++) {
#ifdef BIAS
            float16 bias = (float16)(extra[m0 + i < m ? m0 + i : m - 1u]);
#else
            float16 bias = (float16)(0.0f);
#endif
            UNROLL for (int j = 0; j < NV; j++)
                vstore16(LKS_FN(finish)(acc[i][j], bias), j, tile[i]);
        }
        for (U32 j = 0u; j < live_n; j++)
            for (U32 i = 0u; i < live_m; i++)
                c[(U64)(n0 + j) * m + m0 + i] = tile[i][j];
    }
#else
    if (m0 + MR <= m && n0 + WIDTH <= n) {
        UNROLL for (int j = 0; j < NV; j++) {
#ifdef BIAS
            float16 bias = vload16(j, extra + n0);
#else
            float16 bias = (float16)(0.0f);
#endif
            UNROLL for (int i = 0; i < MR; i++)
                acc[i][j] = LKS_FN(finish)(acc[i][j], bias);
        }
        if (masked != 0u)
            UNROLL for (int i = 0; i < MR; i++)
                UNROLL for (int j = 0; j < NV; j++)
                    acc[i][j] = vload16(j, extra + (U64)(m0 + i) * n + n0) <= 0.0f
                                    ? (float16)(0.0f) : acc[i][j];
        UNROLL for (int i = 0; i < MR; i++)
            UNROLL for (int j = 0; j < NV; j++)
                vstore16(acc[i][j], j, c + (U64)(m0 + i) * n + n0);
    } else {
        /* At the border, from memory: unrolled it would take long to compile. */
        float16 tile[MR][NV];
        F32 bias[WIDTH];
        ROLLED for (U32 l = 0u; l < WIDTH; l++)
#ifdef BIAS
            bias[l] = n0 + l < n ? extra[n0 + l] : 0.0f;
#else
            bias[l] = 0.0f;
#endif
        UNROLL for (int i = 0; i < MR; i++)
            UNROLL for (int j = 0; j < NV; j++)
                tile[i][j] = acc[i][j];
        ROLLED for (U32 i = 0u; i < MR && m0 + i < m; i++)
            ROLLED for (U32 j = 0u; j < NV && n0 + 16u * j < n; j++) {
#if defined(PACKED)
                U32 from = n0 + 16u * j;
#else
                U32 from = min(n0 + 16u * j, n - 16u); /* lanes before it: another vector's */
#endif
                LKS_FN(edge)(LKS_FN(finish)(tile[i][j], vload16(j, bias)), n0 + 16u * j - from,
                             min(16u, n - from), c + (U64)(m0 + i) * n + from,
                             masked != 0u ? extra + (U64)(m0 + i) * n + from : 0);
            }
    }
#endif
}
#endif

#ifdef WEIGHT
/* The tree keeps one partial tile a level; levels are filled like the bits of a counter. */
#define LEVELS 32

/*
 * Work-item (rows of a block of `rows`, panel of columns): dw[o][i] for its rows o, MR at a time.
 * Needs i >= 16; vectors over the border move back, and their first lanes are not stored.
 */
__kernel ALONE void LKS_KERNEL(weight_grad)(__global const F32 *restrict x,
                                            __global const F32 *restrict dy,
                                            __global F32 *restrict dw, U32 n, U32 width, U32 height,
                                            U32 join, U32 rows)
{
    U32 o0 = get_global_id(0) * rows, i0 = get_global_id(1) * WIDTH;
    U32 o1 = o0 + rows < height ? o0 + rows : height;
    float16 part[LEVELS][MR][NV];
    U32 col[NV];
    UNROLL for (int j = 0; j < NV; j++)
        col[j] = i0 + 16u * j + 16u <= width ? i0 + 16u * j : width - 16u;
    for (U32 o = o0; o < o1; o += MR) {
        U32 at[MR], count = 0u, level = 0u;
        float16 acc[MR][NV], sum[MR][NV];
        UNROLL for (int r = 0; r < MR; r++)
            at[r] = o + r < height ? o + r : height - 1u;
        for (U32 s0 = 0u; s0 < n; s0 += join) {
            U32 s1 = n - s0 < join ? n : s0 + join;
            UNROLL for (int r = 0; r < MR; r++)
                UNROLL for (int j = 0; j < NV; j++)
                    acc[r][j] = (float16)(0.0f);
            for (U32 t0 = s0; t0 < s1; t0 += LKS_STRETCH) {
                if (t0 > s0)
                    LKS_FN(turn)(sum, acc, t0 > s0 + LKS_STRETCH);
                for (U32 s = t0; s < min(t0 + LKS_STRETCH, s1); s++) {
                    __global const F32 *xs = x + (U64)s * width, *ds = dy + (U64)s * height;
                    float16 v[NV];
                    UNROLL for (int j = 0; j < NV; j++)
                        v[j] = vload16(0, xs + col[j]);
                    UNROLL for (int r = 0; r < MR; r++) {
                        float16 d = (float16)(ds[at[r]]);
                        UNROLL for (int j = 0; j < NV; j++)
                            acc[r][j] = fma(v[j], d, acc[r][j]);
                    }
                }
            }
            if (s1 - s0 > LKS_STRETCH)
                UNROLL for (int r = 0; r < MR; r++)
                    UNROLL for (int j = 0; j < NV; j++)
                        acc[r][j] = sum[r][j] + acc[r][j];
            level = 0u;
            for (U32 bits = count; (bits & 1u) != 0u; bits >>= 1, level++)
                UNROLL for (int r = 0; r < MR; r++)
                    UNROLL for (int j = 0; j < NV; j++)
                        acc[r][j] = part[level][r][j] + acc[r][j];
            count++;
            UNROLL for (int r = 0; r < MR; r++)
                UNROLL for (int j = 0; j < NV; j++)
                    part[level][r][j] = acc[r][j];
        }
        /* The last leaf sits in acc at `level`, the lowest set bit of count: join what is above. */
        for (U32 bits = count >> (level + 1u); bits != 0u; bits >>= 1) {
            level++;
            if ((bits & 1u) != 0u)
                UNROLL for (int r = 0; r < MR; r++)
                    UNROLL for (int j = 0; j < NV; j++)
                        acc[r][j] = part[level][r][j] + acc[r][j];
        }
        if (o + MR <= height && i0 + WIDTH <= width) {
            UNROLL for (int r = 0; r < MR; r++)
                UNROLL for (int j = 0; j < NV; j++)
                    vstore16(acc[r][j] + 0.0f, j, dw + (U64)(o + r) * width + i0);
        } else {
            float16 tile[MR][NV];
            UNROLL for (int r = 0; r < MR; r++)
                UNROLL for (int j = 0; j < NV; j++)
                    tile[r][j] = acc[r][j] + 0.0f;
            ROLLED for (U32 r = 0u; r < MR && o + r < height; r++)
                ROLLED for (U32 i = i0; i < width && i < i0 + WIDTH; i += 16u) {
                    U32 from = min(i, width - 16u);
                    LKS_FN(edge)(tile[r][(i - i0) / 16u], i - from, 16u,
                                 dw + (U64)(o + r) * width + from, 0);
                }
        }
    }
}
#endif
