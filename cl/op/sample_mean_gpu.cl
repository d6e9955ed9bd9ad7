/*
 * sample_mean_gpu.cl - schedule `gpu` of sample_mean: a group of 32 items a sample, item j being
 * lane j of rule 6.
 */
#include "contract/sample_mean.h"

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void
LKS_KERNEL(rows)(__global const F32 *restrict x, __global F32 *restrict y,
                 struct sample_mean_dims d)
{
    __local F32 lane[LKS_ROW_LANES];
    __global const F32 *row = x + get_group_id(0) * d.f;
    struct lks_counter pieces;
    U32 j = get_local_id(0);
    lks_counter_init(&pieces);
    for (U64 f0 = 0u; f0 < d.f; f0 += LKS_ROW_PIECE) {
        U64 f1 = d.f - f0 < LKS_ROW_PIECE ? d.f : f0 + LKS_ROW_PIECE;
        F32 acc = 0.0f;
        for (U64 f = f0 + j; f < f1; f += LKS_ROW_LANES)
            acc = lks_chain(acc, row[f]);
        lane[j] = acc;
        for (U32 s = 1u; s < LKS_ROW_LANES; s *= 2u) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (j % (2u * s) == 0u)
                lane[j] = lane[j] + lane[j + s];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        lks_counter_push(&pieces, lane[0]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (j == 0u)
        y[get_group_id(0)] = lks_final(lks_counter_root(&pieces)) * d.scale;
}
