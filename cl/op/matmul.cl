/*
 * matmul.cl - schedules of the batched matrix product.
 *
 *   pack, product  (`cpu`) b into panels [k][16 * NV], zeros beyond the last column; then a
 *                  work-item keeps MR rows x NV vectors in registers and runs whole chains
 *   tiled          (`gpu`) groups of 16 x 16 work-items, 64 x 64 results, 16 k's in local memory
 */
#include "contract/matmul.h"

#define UNROLL _Pragma("unroll")
#ifdef NV
#define WIDTH (16u * NV)
#endif

#ifdef PACK
/* Work-item (k block of 64, panel, matrix). */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
LKS_KERNEL(pack)(__global const F32 *restrict b, __global F32 *restrict out, struct matmul_dims d)
{
    U32 panel = get_global_id(1), k0 = get_global_id(0) * 64u, n0 = panel * WIDTH;
    U32 k1 = k0 + 64u < d.k ? k0 + 64u : d.k, live = d.n - n0 < WIDTH ? d.n - n0 : WIDTH;
    U64 s = get_global_id(2), panels = (d.n + WIDTH - 1u) / WIDTH;
    __global const F32 *src = b + s * d.k * d.n + (U64)n0 * d.bn;
    __global F32 *dst = out + (s * panels + panel) * WIDTH * d.k;
    if (d.bn == 1u && live == WIDTH) {
        for (U32 k = k0; k < k1; k++)
            UNROLL for (U32 j = 0u; j < NV; j++)
                vstore16(vload16(j, src + (U64)k * d.bk), j, dst + (U64)k * WIDTH);
        return;
    }
    for (U32 j = 0u; j < WIDTH; j++)
        for (U32 k = k0; k < k1; k++)
            dst[(U64)k * WIDTH + j] = j < live ? src[(U64)j * d.bn + (U64)k * d.bk] : 0.0f;
}
#endif

#ifdef PRODUCT
/* Work-item (row tile, panel, matrix). */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
LKS_KERNEL(product)(__global const F32 *restrict a, __global const F32 *restrict b,
                    __global F32 *restrict y, struct matmul_dims d)
{
    U32 m0 = get_global_id(0) * MR, n0 = get_global_id(1) * WIDTH;
    U64 s = get_global_id(2), panels = (d.n + WIDTH - 1u) / WIDTH;
    __global const F32 *p = b + (s * panels + get_global_id(1)) * WIDTH * d.k;
    __global const F32 *row[MR];
    float16 acc[MR][NV], sum[MR][NV]; /* of a piece; of those before it (piece.h) */
    UNROLL for (U32 i = 0u; i < MR; i++) {
        row[i] = a + s * d.m * d.k + (U64)(m0 + i < d.m ? m0 + i : d.m - 1u) * d.am;
        UNROLL for (U32 j = 0u; j < NV; j++)
            sum[i][j] = (float16)(0.0f);
    }
    for (U32 k0 = 0u; k0 < d.k; k0 += LKS_PIECE) {
        UNROLL for (U32 i = 0u; i < MR; i++)
            UNROLL for (U32 j = 0u; j < NV; j++)
                acc[i][j] = (float16)(0.0f);
        for (U32 k = k0; k < min(k0 + LKS_PIECE, d.k); k++) {
            float16 v[NV];
            UNROLL for (U32 j = 0u; j < NV; j++)
                v[j] = vload16(j, p);
            p += WIDTH;
            UNROLL for (U32 i = 0u; i < MR; i++) {
                float16 t = (float16)(row[i][(U64)k * d.ak]);
                UNROLL for (U32 j = 0u; j < NV; j++)
                    acc[i][j] = fma(t, v[j], acc[i][j]);
            }
        }
        UNROLL for (U32 i = 0u; i < MR; i++)
            UNROLL for (U32 j = 0u; j < NV; j++)
                sum[i][j] = sum[i][j] + acc[i][j];
    }
    UNROLL for (U32 i = 0u; i < MR; i++) {
        if (m0 + i < d.m) {
            __global F32 *to = y + (s * d.m + m0 + i) * d.n + n0;
            UNROLL for (U32 j = 0u; j < NV; j++) {
                float16 v = sum[i][j];
                if (n0 + 16u * j + 16u <= d.n) {
                    vstore16(v, j, to);
                } else {
                    F32 t[16];
                    vstore16(v, 0, t);
                    for (U32 l = 0u; l < 16u && n0 + 16u * j + l < d.n; l++)
                        to[16u * j + l] = t[l];
                }
            }
        }
    }
}
#endif

#ifdef TILED
#define SIDE 64u
#define DEEP 16u

/* Work-item (x, y) has columns x + 16 i and rows y + 16 j of the tile. */
__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void
LKS_KERNEL(tiled)(__global const F32 *restrict a, __global const F32 *restrict b,
                  __global F32 *restrict y, struct matmul_dims d)
{
    __local F32 ta[DEEP][SIDE + 1u], tb[DEEP][SIDE + 1u];
    const U32 lx = get_local_id(0), ly = get_local_id(1), id = ly * 16u + lx;
    const U32 n0 = (U32)get_group_id(0) * SIDE, m0 = (U32)get_group_id(1) * SIDE;
    const U64 s = get_group_id(2);
    __global const F32 *pa = a + s * d.m * d.k, *pb = b + s * d.k * d.n;
    F32 acc[4][4], sum[4][4];
    UNROLL for (U32 i = 0u; i < 4u; i++)
        UNROLL for (U32 j = 0u; j < 4u; j++)
            acc[i][j] = sum[i][j] = 0.0f;
    for (U32 k0 = 0u; k0 < d.k; k0 += DEEP) {
        const U32 live = d.k - k0 < DEEP ? d.k - k0 : DEEP;
        /* Neighbouring items read neighbours in memory, whichever axis that is. */
        for (U32 i = id; i < DEEP * SIDE; i += 256u) {
            U32 k = d.ak == 1u ? i % DEEP : i / SIDE, m = d.ak == 1u ? i / DEEP : i % SIDE;
            ta[k][m] = k < live && m0 + m < d.m
                           ? pa[(U64)(m0 + m) * d.am + (U64)(k0 + k) * d.ak]
                           : 0.0f;
            k = d.bk == 1u ? i % DEEP : i / SIDE;
            m = d.bk == 1u ? i / DEEP : i % SIDE;
            tb[k][m] = k < live && n0 + m < d.n
                           ? pb[(U64)(n0 + m) * d.bn + (U64)(k0 + k) * d.bk]
                           : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (U32 k = 0u; k < live; k++) {
            F32 v[4], w[4];
            UNROLL for (U32 i = 0u; i < 4u; i++)
            {
                v[i] = ta[k][ly + 16u * i];
                w[i] = tb[k][lx + 16u * i];
            }
            UNROLL for (U32 i = 0u; i < 4u; i++)
                UNROLL for (U32 j = 0u; j < 4u; j++)
                    acc[i][j] = lks_fma(v[i], w[j], acc[i][j]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if ((k0 + DEEP) % LKS_PIECE == 0u || k0 + DEEP >= d.k)
            UNROLL for (U32 i = 0u; i < 4u; i++)
                UNROLL for (U32 j = 0u; j < 4u; j++)
                {
                    sum[i][j] = sum[i][j] + acc[i][j];
                    acc[i][j] = 0.0f;
                }
    }
    UNROLL for (U32 i = 0u; i < 4u; i++)
        UNROLL for (U32 j = 0u; j < 4u; j++)
        {
            const U32 m = m0 + ly + 16u * i, n = n0 + lx + 16u * j;
            if (m < d.m && n < d.n)
                y[(s * d.m + m) * d.n + n] = sum[i][j];
        }
}
#endif
