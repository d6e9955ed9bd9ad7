/*
 * concat.cl - schedules of concat: `chunks`, a chunk of consecutive elements a work-item (CPU), and
 * `flat`, VEC elements a work-item (GPU; every part of a row is a multiple of VEC).
 */
#include "contract/concat.h"
#include "op/vec.h"

#define INPUTS(T)                                                                                  \
    __global const T *restrict x0, __global const T *restrict x1, __global const T *restrict x2,   \
        __global const T *restrict x3, __global const T *restrict x4,                              \
        __global const T *restrict x5, __global const T *restrict x6, __global const T *restrict x7

#ifdef CHUNKS
__kernel void LKS_KERNEL(chunks)(INPUTS(U32), __global U32 *restrict y, struct concat_dims d,
                                 U64 n, U32 chunk)
{
    U64 i = get_global_id(0) * (U64)chunk;
    lks_concat_range(x0, x1, x2, x3, x4, x5, x6, x7, y, &d, i, n - i < chunk ? n : i + chunk);
}
#else
__kernel void LKS_KERNEL(flat)(INPUTS(I32), __global I32 *restrict y, struct concat_dims d, U64 n)
{
    U32 i = (U32)get_global_id(0) * VEC, r = i / d.row, c = i - r * d.row, start = 0, end = d.end[0];
    __global const I32 *x = x0;
#define NEXT(k)                                                                                    \
    if (k < d.n && c >= end) {                                                                     \
        start = end;                                                                               \
        end = d.end[k];                                                                            \
        x = x##k;                                                                                  \
    }
    NEXT(1) NEXT(2) NEXT(3) NEXT(4) NEXT(5) NEXT(6) NEXT(7)
    if (i < n) {
        VI v = LOAD(x + (U64)r * (end - start) + (c - start));
        STORE(v, y + i);
    }
}
#endif
