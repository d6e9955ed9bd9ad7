/*
 * samples.cl - schedule `flat` of samples: a copy as integers, since no bit may move. Macro VEC:
 * words at once.
 */
#include "contract/num.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)

__kernel void LKS_KERNEL(samples)(__global const U32 *restrict x, __global U32 *restrict y, U64 n,
                                  U32 chunk, U64 begin)
{
    U64 i = get_global_id(0) * (U64)chunk, end = i + chunk < n ? i + chunk : n;
    for (; i + VEC <= end; i += VEC)
        JOIN(vstore, VEC)(JOIN(vload, VEC)(0, x + begin + i), 0, y + i);
    for (; i < end; i++)
        y[i] = x[begin + i];
}
