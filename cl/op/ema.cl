/*
 * ema.cl - schedule `flat` of ema. Macro VEC: vector width. The output is input 0's memory.
 */
#include "contract/num.h"
#include "op/vec.h"

__kernel void LKS_KERNEL(ema)(__global const F32 *average, __global const F32 *restrict param,
                              __global const I32 *restrict flag, __global F32 *average_out, U64 n,
                              U32 chunk, F32 w)
{
    U64 i = get_global_id(0) * (U64)chunk, end = i + chunk < n ? i + chunk : n;
    if (flag[0] != 0)
        return;
    for (; i + VEC <= end; i += VEC) {
        V e = LOAD(average + i);
        STORE(fma((V)(w), LOAD(param + i) - e, e), average_out + i);
    }
    for (; i < end; i++)
        average_out[i] = lks_fma(w, param[i] - average[i], average[i]);
}
