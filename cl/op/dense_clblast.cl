/*
 * dense_clblast.cl - what stands before and behind the SGEMM of dense_clblast.c.
 *
 *   start  c = +0
 *   end    c = c + bias of the column (BIAS), + 0.0f, then relu (RELU) or the mask (MASK)
 */
#include "contract/num.h"

#ifdef START
__kernel void LKS_KERNEL(start)(__global F32 *c, U64 n)
{
    U64 i = get_global_id(0);
    if (i < n)
        c[i] = 0.0f;
}
#endif

#ifdef END
__kernel void LKS_KERNEL(end)(__global const F32 *extra, __global F32 *c, U64 n, U32 columns)
{
    U64 i = get_global_id(0);
    if (i < n) {
        F32 v = c[i];
#ifdef BIAS
        v = v + extra[i % columns];
#endif
        v = v + 0.0f;
#ifdef RELU
        v = v <= 0.0f ? 0.0f : v;
#endif
#ifdef MASK
        v = extra[i] <= 0.0f ? 0.0f : v;
#endif
        c[i] = v;
    }
}
#endif
