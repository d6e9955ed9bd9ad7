/*
 * dense_weight_gpu.cl - schedule `gpu` of dense_weight_grad: a work-item keeps 4 outputs x 4
 * inputs in registers, a leaf of samples at a time, and meets the leaves in a binary counter.
 *
 * Macros: LEVELS of the counter, for up to 2^LEVELS leaves; VECTOR=1 if both sizes are multiples
 * of 4. Leaves that the batch lacks count as +0.
 */
#include "contract/num.h"

#define UNROLL _Pragma("unroll")

#if VECTOR
#define FOUR(p, at, size) (*(__global const float4 *)((p) + (at)))
#else
static float4 LKS_FN(four)(__global const float *p, U32 at, U32 size)
{
    return (float4)(p[at], at + 1u < size ? p[at + 1u] : 0.0f, at + 2u < size ? p[at + 2u] : 0.0f,
                    at + 3u < size ? p[at + 3u] : 0.0f);
}
#define FOUR(p, at, size) LKS_FN(four)(p, at, size)
#endif

__kernel __attribute__((reqd_work_group_size(32, 2, 1))) void
LKS_KERNEL(weight)(__global const float *restrict x, __global const float *restrict dy,
                   __global float *restrict dw, U32 n, U32 inputs, U32 outputs, U32 join)
{
    const U32 i = 4u * (U32)get_global_id(0), o = 4u * (U32)get_global_id(1);
    float4 kept[LEVELS][4], v[4];
    if (i >= inputs || o >= outputs)
        return;
    for (U32 leaf = 0u; leaf < 1u << LEVELS; leaf++) {
        const U32 from = min(leaf * join, n), to = min(from + join, n);
        int open = 1;
        UNROLL for (int q = 0; q < 4; q++)
            v[q] = (float4)(0.0f);
        if (from == n && (leaf & (leaf - 1u)) == 0u && leaf > 0u)
            break; /* what is left would add +0 to a finished tree */
        for (U32 s = from; s < to; s++) {
            const float4 a = FOUR(x + (U64)s * inputs, i, inputs);
            const float4 b = FOUR(dy + (U64)s * outputs, o, outputs);
            v[0] = fma(a, (float4)(b.x), v[0]);
            v[1] = fma(a, (float4)(b.y), v[1]);
            v[2] = fma(a, (float4)(b.z), v[2]);
            v[3] = fma(a, (float4)(b.w), v[3]);
        }
        UNROLL for (U32 level = 0u; level < LEVELS; level++)
        {
            if (open && (leaf >> level & 1u) == 0u) {
                UNROLL for (int q = 0; q < 4; q++)
                    kept[level][q] = v[q];
                open = 0;
            } else if (open) {
                UNROLL for (int q = 0; q < 4; q++)
                    v[q] = kept[level][q] + v[q];
            }
        }
    }
    /* The root of 2^l leaves stands at level l, or in v if the counter ran full. */
    UNROLL for (U32 level = 0u; level < LEVELS; level++)
    {
        if ((U64)join << level >= n && (level == 0u || (U64)join << (level - 1u) < n)) {
            UNROLL for (int q = 0; q < 4; q++)
                v[q] = kept[level][q];
        }
    }
    UNROLL for (int q = 0; q < 4; q++)
    {
        __global float *to = dw + (U64)(o + q) * inputs + i;
        const float4 f = v[q] + (float4)(0.0f);
        if (o + q >= outputs)
            continue;
#if VECTOR
        *(__global float4 *)to = f;
#else
        to[0] = f.x;
        if (i + 1u < inputs)
            to[1] = f.y;
        if (i + 2u < inputs)
            to[2] = f.z;
        if (i + 3u < inputs)
            to[3] = f.w;
#endif
    }
}
