/*
 * tree_gpu.cl - the tree over leaves in a workspace [leaf][elements], for GPU devices. A cut
 * sample's leaves take `room` places, a power of two; absent ones are +0, which changes no bit but
 * the sign of a zero that the last step sets anyway. So it is one tree over all places.
 *
 * Macros: X elements and Y work-items an element of a group, Y a power of two.
 */
#include "contract/sum.h"

#define UNROLL _Pragma("unroll")

/* Two trees of 2^level leaves make one of the next level. */
#define MEET(level)                                                                                \
    if ((i & (1u << (level))) == 0u) {                                                             \
        p##level = v;                                                                              \
        continue;                                                                                  \
    }                                                                                              \
    v = p##level + v;

/* each: places of a work-item, a power of two from 8 to 2048. */
__kernel __attribute__((reqd_work_group_size(X, Y, 1))) void
LKS_KERNEL(tree)(__global const float *restrict part, __global float *restrict out, U32 elements,
                 U32 samples, U32 cut, U32 room, U32 each)
{
    const U32 lx = get_local_id(0), ly = get_local_id(1);
    const U32 e = (U32)get_group_id(0) * X + lx;
    const U32 e_ = e < elements ? e : elements - 1u;
    float p0 = 0.0f, p1 = 0.0f, p2 = 0.0f, p3 = 0.0f, p4 = 0.0f, p5 = 0.0f, p6 = 0.0f, p7 = 0.0f;
    float v = 0.0f;
    for (U32 i = 0u; i < each / 8u; i++) {
        float t[8];
        UNROLL for (U32 j = 0u; j < 8u; j++)
        {
            const U32 place = ly * each + i * 8u + j, sample = place / room, c = place % room;
            t[j] = 0.0f;
            if (c < cut && sample < samples)
                t[j] = part[(U64)(sample * cut + c) * elements + e_];
        }
        v = ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]));
        MEET(0) MEET(1) MEET(2) MEET(3) MEET(4) MEET(5) MEET(6) MEET(7)
    }
#if Y > 1
    __local float turn[Y][X];
    turn[ly][lx] = v;
    for (U32 s = 1u; s < Y; s *= 2u) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (ly % (2u * s) == 0u)
            turn[ly][lx] = turn[ly][lx] + turn[ly + s][lx];
    }
    v = turn[ly][lx];
#endif
    if (ly == 0u && e < elements)
        out[e] = v + 0.0f;
}
