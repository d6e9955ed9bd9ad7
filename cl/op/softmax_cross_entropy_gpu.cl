/*
 * softmax_cross_entropy_gpu.cl - schedule `gpu` of softmax_cross_entropy: a group of 32 items a
 * row, item j being lane j of rule 6.
 */
#define LANES
#include "contract/softmax_cross_entropy.h"
#include "op/row.h"

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void
LKS_KERNEL(rows)(__global const F32 *restrict logits, __global const I32 *restrict labels,
                 __global F32 *restrict loss, __global F32 *restrict prob,
                 __global F32 *restrict hit, __global F32 *restrict weight,
                 struct cross_entropy_dims d)
{
    __local F32 lane[LKS_ROW_LANES];
    __local U32 index[LKS_ROW_LANES];
    U64 n = get_group_id(0);
    __global const F32 *x = logits + n * d.f;
    __global F32 *p = prob + n * d.f;
    struct lks_counter pieces;
    U32 j = get_local_id(0), arg = 0u;
    F32 top = x[0], sum, lse, smooth = 0.0f;
    /* The scan: every lane starts from x[0], so a NaN there stays, as in the contract; of equals
     * the lower index wins. */
    for (U32 f = j; f < d.f; f += LKS_ROW_LANES) {
        if (x[f] > top) {
            top = x[f];
            arg = f;
        }
    }
    lane[j] = top;
    index[j] = arg;
    for (U32 s = 1u; s < LKS_ROW_LANES; s *= 2u) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (j % (2u * s) == 0u) {
            F32 other = lane[j + s];
            if (other > lane[j] || (other == lane[j] && index[j + s] < index[j])) {
                lane[j] = other;
                index[j] = index[j + s];
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    top = lane[0];
    arg = index[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    lks_counter_init(&pieces);
    for (U32 f0 = 0u; f0 < d.f; f0 += LKS_ROW_PIECE) {
        U32 f1 = d.f - f0 < LKS_ROW_PIECE ? d.f : f0 + LKS_ROW_PIECE;
        F32 acc = 0.0f;
        for (U32 f = f0 + j; f < f1; f += LKS_ROW_LANES) {
            F32 e = lks_exp(x[f] - top);
            p[f] = e;
            acc = acc + e;
        }
        lks_counter_push(&pieces, LKS_FN(tree)(acc, lane, j));
    }
    sum = lks_final(lks_counter_root(&pieces));
    for (U32 f = j; f < d.f; f += LKS_ROW_LANES)
        p[f] = lks_div(p[f], sum);
    lse = lks_log(sum);
    if (d.smooth) {
        lks_counter_init(&pieces);
        for (U32 f0 = 0u; f0 < d.f; f0 += LKS_ROW_PIECE) {
            U32 f1 = d.f - f0 < LKS_ROW_PIECE ? d.f : f0 + LKS_ROW_PIECE;
            F32 acc = 0.0f;
            for (U32 f = f0 + j; f < f1; f += LKS_ROW_LANES)
                acc = lks_fma(lks_class_weight(&d, f), lse - (x[f] - top), acc);
            lks_counter_push(&pieces, LKS_FN(tree)(acc, lane, j));
        }
        smooth = lks_final(lks_counter_root(&pieces));
    }
    if (j == 0u)
        lks_cross_entropy(x, labels[n], arg, top, lse, smooth, loss + n, hit + n, weight + n, &d);
}
