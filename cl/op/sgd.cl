/*
 * sgd.cl - schedule `flat` of sgd and sgd_nesterov. Macros: VEC, vector width; NESTEROV, 0 or 1.
 * Outputs are the inputs' memory.
 */
#include "contract/sgd.h"
#include "op/vec.h"

__kernel void LKS_KERNEL(sgd)(__global const F32 *param, __global const F32 *restrict grad,
                              __global const F32 *momentum, __global const F32 *restrict hyper,
                              __global const I32 *restrict flag,
                              __global const I32 *restrict group, __global F32 *param_out,
                              __global F32 *momentum_out, U64 n, U32 chunk)
{
    U64 i = get_global_id(0) * (U64)chunk, end = i + chunk < n ? i + chunk : n;
    while (i < end) {
        U64 stop = (i / LKS_UPDATE_BLOCK + 1u) * LKS_UPDATE_BLOCK;
        F32 h[LKS_UPDATE_HYPER], lr, mu, wd;
        stop = stop < end ? stop : end;
        if (!lks_update_row(hyper, flag, group, i, h)) {
            i = stop;
            continue;
        }
        lr = -h[0];
        mu = h[1];
        wd = h[2];
        for (; i + VEC <= stop; i += VEC) {
            V p = LOAD(param + i), m = LOAD(momentum + i), g = LOAD(grad + i);
            g = fma((V)(wd), p, g);
            m = fma((V)(mu), m, g);
            g = NESTEROV ? fma((V)(mu), m, g) : m;
            p = fma((V)(lr), g, p);
            STORE(p, param_out + i);
            STORE(m, momentum_out + i);
        }
        for (; i < stop; i++) {
            F32 p = param[i], m = momentum[i];
            sgd_one(grad[i], &p, &m, h, NESTEROV);
            param_out[i] = p;
            momentum_out[i] = m;
        }
    }
}
