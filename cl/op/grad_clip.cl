/*
 * grad_clip.cl - schedule `flat` of grad_clip. Macro VEC: vector width. The output is input 0's
 * memory.
 */
#include "contract/grad_clip.h"
#include "op/vec.h"

__kernel void LKS_KERNEL(grad_clip)(__global const F32 *grad, __global const F32 *restrict norm,
                                    __global F32 *grad_out, U64 n, U32 chunk, F32 limit, F32 value)
{
    U64 i = get_global_id(0) * (U64)chunk, end = i + chunk < n ? i + chunk : n;
    F32 s = grad_clip_scale(norm[0], limit);
    for (; i + VEC <= end; i += VEC) {
        V x = LOAD(grad + i) * s;
        if (value > 0.0f)
            x = PICK(x < -value, -value, PICK(x > value, value, x));
        STORE(x, grad_out + i);
    }
    for (; i < end; i++)
        grad_out[i] = grad_clip_one(grad[i], s, value);
}
