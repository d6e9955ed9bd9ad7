/*
 * peak.cl - what a device reaches at best, for `lockstep bench`; no operator uses it.
 *
 *   peak_fma   CHAINS independent chains of fma an item, in registers; one store at the end
 *   peak_copy  out[i] = in[i], `chunk` neighbours an item
 *
 * Macros: VEC lanes of a vector, CHAINS.
 */
#include "contract/num.h"
#include "op/vec.h"

#ifdef CHAINS
__kernel void LKS_KERNEL(peak_fma)(__global F32 *out, F32 a, F32 b, U32 rounds)
{
    V acc[CHAINS];
    V va = (V)(a), vb = (V)(b);
    F32 start = (F32)(I32)(get_global_id(0) & 255u);
    UNROLL for (int i = 0; i < CHAINS; i++)
        acc[i] = (V)(start + (F32)i);
    for (U32 r = 0u; r < rounds; r++)
        UNROLL for (int k = 0; k < 8; k++)
            UNROLL for (int i = 0; i < CHAINS; i++)
                acc[i] = fma(acc[i], va, vb);
    UNROLL for (int i = 1; i < CHAINS; i++)
        acc[0] = acc[0] + acc[i];
    STORE(acc[0], out + get_global_id(0) * VEC);
}
#else
__kernel void LKS_KERNEL(peak_copy)(__global const F32 *restrict in, __global F32 *restrict out,
                                    U64 n, U32 chunk)
{
    U64 i = get_global_id(0) * (U64)chunk, end = i + chunk < n ? i + chunk : n;
    for (; i + VEC <= end; i += VEC)
        STORE(LOAD(in + i), out + i);
    for (; i < end; i++)
        out[i] = in[i];
}
#endif
