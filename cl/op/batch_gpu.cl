/*
 * batch_gpu.cl - schedules `gpu` of batch_sum and batch_mean: one group; its items chain the
 * leaves into local memory, then run the tree level by level. MEAN: times the scale.
 */
#include "contract/batch.h"

__kernel void LKS_KERNEL(sum)(__global const F32 *restrict v, __global F32 *restrict out,
                              struct batch_dims d, __local F32 *leaf)
{
    struct lks_leaf f = lks_leaf_make(d.n, 1u, 1u, d.leaf);
    U32 l = get_local_id(0), size = get_local_size(0);
    for (U32 j = l; j < f.leaves; j += size)
        leaf[j] = lks_batch_leaf(v, &f, j);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (U32 s = 1u; s < f.leaves; s *= 2u) {
        for (U32 i = l * 2u * s; i + s < f.leaves; i += size * 2u * s)
            leaf[i] = leaf[i] + leaf[i + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0u) {
        F32 sum = leaf[0] + 0.0f;
#ifdef MEAN
        sum = sum * d.scale;
#endif
        out[0] = sum;
    }
}
