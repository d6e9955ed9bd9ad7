/*
 * lamb_apply.cl - schedule `flat` of lamb_apply. Macro VEC: vector width. Output 0 is input 0's
 * memory.
 */
#include "contract/lamb.h"
#include "op/vec.h"

__kernel void LKS_KERNEL(lamb_apply)(__global const F32 *param, __global const F32 *restrict u,
                                     __global const F32 *restrict norm_p,
                                     __global const F32 *restrict norm_u,
                                     __global const F32 *restrict hyper,
                                     __global const I32 *restrict flag,
                                     __global const I32 *restrict group,
                                     __global const I32 *restrict tensor,
                                     __global F32 *param_out, U64 n, U32 chunk)
{
    U64 i = get_global_id(0) * (U64)chunk, end = i + chunk < n ? i + chunk : n;
    while (i < end) {
        U64 stop = (i / LKS_UPDATE_BLOCK + 1u) * LKS_UPDATE_BLOCK;
        U32 t = tensor[i / LKS_UPDATE_BLOCK];
        F32 h[LKS_UPDATE_HYPER], rate;
        stop = stop < end ? stop : end;
        if (!lks_update_row(hyper, flag, group, i, h)) {
            i = stop;
            continue;
        }
        rate = -h[0] * lamb_trust(norm_p[t], norm_u[t]);
        for (; i + VEC <= stop; i += VEC)
            STORE(fma((V)(rate), LOAD(u + i), LOAD(param + i)), param_out + i);
        for (; i < stop; i++)
            param_out[i] = lks_fma(rate, u[i], param[i]);
    }
}
