/*
 * relu.cl - schedules `flat` of relu and relu_grad. Macro VEC: vector width.
 */
#include "contract/num.h"
#include "op/vec.h"

__kernel void LKS_KERNEL(relu)(__global const F32 *restrict x, __global F32 *restrict y, U64 n,
                               U32 chunk)
{
    U64 i = get_global_id(0) * (U64)chunk, end = i + chunk < n ? i + chunk : n;
    for (; i + VEC <= end; i += VEC) {
        V v = LOAD(x + i);
        STORE(PICK(v <= 0.0f, 0.0f, v), y + i);
    }
    for (; i < end; i++)
        y[i] = x[i] <= 0.0f ? 0.0f : x[i];
}

__kernel void LKS_KERNEL(relu_grad)(__global const F32 *restrict y, __global const F32 *restrict dy,
                                    __global F32 *restrict dx, U64 n, U32 chunk)
{
    U64 i = get_global_id(0) * (U64)chunk, end = i + chunk < n ? i + chunk : n;
    for (; i + VEC <= end; i += VEC) {
        V v = LOAD(y + i), g = LOAD(dy + i);
        STORE(PICK(v <= 0.0f, 0.0f, g), dx + i);
    }
    for (; i < end; i++)
        dx[i] = y[i] <= 0.0f ? 0.0f : dy[i];
}
