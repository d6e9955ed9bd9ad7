/*
 * product_pack_gpu.cl - weights [k][r][s][c of a group] put into [group][chain][np] for
 * product_gpu.cl, with zeros where the chain or the columns are filled up.
 * GRAD=0: chain (r, s, c), columns k. GRAD=1: chain (r, s, k), columns c.
 */
#include "contract/conv.h"

#define SIDE 16

/* Work-groups SIDE x SIDE: columns, chain, group. src_c.y, dst_c.y: channels of a group on the
 * chain and in the columns; cp: chain of one tap, filled up. */
__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1))) void
LKS_KERNEL(pack)(__global const float *restrict w, __global float *restrict packed, uint2 src_c,
                 uint2 dst_c, U32 taps, U32 cp, U32 rows, U32 np)
{
    const U32 x = get_local_id(0), y = get_local_id(1), group = (U32)get_group_id(2);
    const U32 column0 = (U32)get_group_id(0) * SIDE, row0 = (U32)get_group_id(1) * SIDE;
#if GRAD
    const U32 column = column0 + x, row = row0 + y;
#else
    const U32 column = column0 + y, row = row0 + x; /* the chain is contiguous in w */
    __local float turn[SIDE][SIDE + 1];
#endif
    const U32 tap = row / cp, c = row % cp;
    float v = 0.0f;
    if (tap < taps && c < src_c.y && column < dst_c.y)
#if GRAD
        v = w[((U64)(group * src_c.y + c) * taps + tap) * dst_c.y + column];
    if (row < rows && column < np)
        packed[((U64)group * rows + row) * np + column] = v;
#else
        v = w[((U64)(group * dst_c.y + column) * taps + tap) * src_c.y + c];
    turn[y][x] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (row0 + y < rows && column0 + x < np)
        packed[((U64)group * rows + row0 + y) * np + column0 + x] = turn[x][y];
#endif
}
