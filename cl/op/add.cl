/*
 * add.cl - schedule `flat` of add. Macro VEC: vector width.
 */
#include "contract/num.h"
#include "op/vec.h"

__kernel void LKS_KERNEL(add)(__global const F32 *restrict a, __global const F32 *restrict b,
                              __global F32 *restrict y, U64 n, U32 chunk)
{
    U64 i = get_global_id(0) * (U64)chunk, end = i + chunk < n ? i + chunk : n;
    for (; i + VEC <= end; i += VEC)
        STORE(LOAD(a + i) + LOAD(b + i), y + i);
    for (; i < end; i++)
        y[i] = a[i] + b[i];
}
