/*
 * dense_weight_gpu.cl - schedules `nv` and `gpu` of dense_weight_grad: a work-group computes 64
 * outputs x 64 inputs over `chunk` samples, PIECE at a time, a work-item 4 x 4 of them. Leaves of
 * samples are chained and meet in a binary counter in registers. More samples than one group takes
 * go to other groups, whose roots tree_gpu.cl adds. Samples beyond the batch count as +0.
 *
 * Macros: PIECE; LEVELS: a leaf is PIECE >> LEVELS samples, or, with LEVELS=0, `chunk` samples, a
 * multiple of PIECE; DEPTH of the counter: LEVELS, more where a chunk is several pieces; VECTOR=1
 * if both sizes are multiples of 4.
 */
#include "contract/piece.h"

#define SIDE   64
#define UNROLL _Pragma("unroll")

#if VECTOR
#define WIDTH 4
#define FETCH(to, from, at, size)                                                                  \
    *(__local float4 *)(to) =                                                                      \
        (at) < (size) ? *(__global const float4 *)((from) + (at)) : (float4)(0.0f)
#else
#define WIDTH 1
#define FETCH(to, from, at, size) *(to) = (at) < (size) ? (from)[at] : 0.0f
#endif

/* Work-groups (inputs, outputs, chunk of samples); dw is [chunk][output][input]. */
__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void
LKS_KERNEL(weight)(__global const float *restrict x, __global const float *restrict dy,
                   __global float *restrict dw, U32 n, U32 inputs, U32 outputs, U32 chunk)
{
    __local float tile_x[PIECE * SIDE] __attribute__((aligned(16)));
    __local float tile_y[PIECE * SIDE] __attribute__((aligned(16)));
    const U32 lx = get_local_id(0), ly = get_local_id(1), item = ly * 16u + lx;
    const U32 i0 = (U32)get_group_id(0) * SIDE, o0 = (U32)get_group_id(1) * SIDE;
    const U32 first = (U32)get_group_id(2) * chunk;
#if LEVELS
    float4 kept[DEPTH][4];
#endif
    float4 v[4], sum[4]; /* LEVELS 0: of the pieces before (piece.h) */
    UNROLL for (int q = 0; q < 4; q++)
        v[q] = sum[q] = (float4)(0.0f);
    for (U32 piece = 0u; piece < chunk; piece += PIECE) {
        if (LEVELS == 0 && piece > 0u && piece % LKS_STRETCH == 0u)
            UNROLL for (int q = 0; q < 4; q++)
            {
                sum[q] = sum[q] + v[q];
                v[q] = (float4)(0.0f);
            }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (U32 e = item * WIDTH; e < PIECE * SIDE; e += 256u * WIDTH) {
            const U32 s = first + piece + e / SIDE, c = e % SIDE;
            const U32 in = s < n ? inputs : 0u, out = s < n ? outputs : 0u;
            FETCH(tile_x + e, x + (U64)s * inputs, i0 + c, in);
            FETCH(tile_y + e, dy + (U64)s * outputs, o0 + c, out);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (U32 leaf = 0u; leaf < 1u << LEVELS; leaf++) {
#if LEVELS
            UNROLL for (int q = 0; q < 4; q++)
                v[q] = (float4)(0.0f);
#endif
            UNROLL for (U32 t = 0u; t < (PIECE >> LEVELS); t++)
            {
                const U32 s = leaf * (PIECE >> LEVELS) + t;
                const float4 a = *(__local const float4 *)(tile_x + s * SIDE + 4u * lx);
                const float4 b = *(__local const float4 *)(tile_y + s * SIDE + 4u * ly);
                v[0] = fma(a, (float4)(b.x), v[0]);
                v[1] = fma(a, (float4)(b.y), v[1]);
                v[2] = fma(a, (float4)(b.z), v[2]);
                v[3] = fma(a, (float4)(b.w), v[3]);
            }
#if LEVELS
            const U32 number = piece / PIECE << LEVELS | leaf;
            int open = 1;
            UNROLL for (U32 level = 0u; level < DEPTH; level++)
            {
                if (open && (number >> level & 1u) == 0u) {
                    UNROLL for (int q = 0; q < 4; q++)
                        kept[level][q] = v[q];
                    open = 0;
                } else if (open) {
                    UNROLL for (int q = 0; q < 4; q++)
                        v[q] = kept[level][q] + v[q];
                }
            }
#endif
        }
    }
    UNROLL for (U32 q = 0u; q < 4u; q++)
    {
        const U32 o = o0 + 4u * ly + q, i = i0 + 4u * lx;
        __global float *to = dw + ((U64)get_group_id(2) * outputs + o) * inputs + i;
        const float4 f = (LEVELS == 0 ? sum[q] + v[q] : v[q]) + (float4)(0.0f);
#if VECTOR
        if (o < outputs && i < inputs)
            *(__global float4 *)to = f;
#else
        if (o < outputs && i < inputs)
            to[0] = f.x;
        if (o < outputs && i + 1u < inputs)
            to[1] = f.y;
        if (o < outputs && i + 2u < inputs)
            to[2] = f.z;
        if (o < outputs && i + 3u < inputs)
            to[3] = f.w;
#endif
    }
}
