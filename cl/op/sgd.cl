/*
 * sgd.cl - schedule `flat` of sgd. Macro VEC: vector width. Outputs are the inputs' memory.
 */
#include "contract/sgd.h"
#include "op/vec.h"

__kernel void LKS_KERNEL(sgd)(__global const F32 *param, __global const F32 *restrict grad,
                              __global const F32 *momentum, __global const F32 *restrict hyper,
                              __global const I32 *restrict flag, __global F32 *param_out,
                              __global F32 *momentum_out, U64 n, U32 chunk)
{
    U64 i = get_global_id(0) * (U64)chunk, end = i + chunk < n ? i + chunk : n;
    F32 lr = -hyper[0], mu = hyper[1], wd = hyper[2];
    if (flag[0] != 0)
        return;
    for (; i + VEC <= end; i += VEC) {
        V p = LOAD(param + i), m = LOAD(momentum + i), g = LOAD(grad + i);
        g = fma((V)(wd), p, g);
        m = fma((V)(mu), m, g);
        p = fma((V)(lr), m, p);
        STORE(p, param_out + i);
        STORE(m, momentum_out + i);
    }
    for (; i < end; i++) {
        F32 p = param[i], g = lks_fma(wd, p, grad[i]), m = lks_fma(mu, momentum[i], g);
        param_out[i] = lks_fma(lr, m, p);
        momentum_out[i] = m;
    }
}
