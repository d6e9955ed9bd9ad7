/*
 * dropout.cl - schedule `flat` of dropout: a chunk of neighbours a work-item.
 */
#include "contract/dropout.h"

__kernel void LKS_KERNEL(dropout)(__global const F32 *restrict x, __global const I32 *restrict step,
                                  __global F32 *restrict y, U64 n, U32 chunk,
                                  struct dropout_dims d)
{
    U64 i = get_global_id(0) * (U64)chunk, end = i + chunk < n ? i + chunk : n;
    if (i < end)
        lks_dropout_range(x, step, y, &d, i, end);
}
