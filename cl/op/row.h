/*
 * row.h - sums of rows by rule 6 in kernels.
 *
 *   LANES  a group of 32 work-items a row, item j being lane j: LKS_FN(tree)
 *   ROWS   a work-item a row, the lanes being two vectors of 16: LKS_FN(begin), 32 elements at a
 *          time into low and high (LKS_FN(piece) first where `fill` is LKS_ROW_PIECE; fill += 32),
 *          TAIL, LKS_FN(end)
 */
#include "contract/sum.h"

#ifdef LANES
/* Tree over the 32 lanes; every item gets the root. */
static F32 LKS_FN(tree)(F32 v, __local F32 *lane, U32 j)
{
    F32 root;
    lane[j] = v;
    for (U32 s = 1u; s < LKS_ROW_LANES; s *= 2u) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (j % (2u * s) == 0u)
            lane[j] = lane[j] + lane[j + s];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    root = lane[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return root;
}
#endif

#ifdef ROWS
/* A row under way: its lanes as two vectors. */
struct LKS_FN(row) {
    float16 low, high;
    U32 fill;
    struct lks_counter pieces;
};

static void LKS_FN(begin)(struct LKS_FN(row) *r)
{
    r->low = r->high = (float16)(0.0f);
    r->fill = 0u;
    lks_counter_init(&r->pieces);
}

static void LKS_FN(piece)(struct LKS_FN(row) *r)
{
    F32 lane[LKS_ROW_LANES];
    vstore16(r->low, 0, lane);
    vstore16(r->high, 1, lane);
    lks_counter_push(&r->pieces, lks_tree(lane, LKS_ROW_LANES));
    r->low = r->high = (float16)(0.0f);
    r->fill = 0u;
}

static F32 LKS_FN(end)(struct LKS_FN(row) *r)
{
    if (r->fill != 0u)
        LKS_FN(piece)(r);
    return lks_final(lks_counter_root(&r->pieces));
}

/* Fewer than 32 elements, the row's last. */
#define TAIL(r, n, ...)                                                                            \
    do {                                                                                           \
        F32 lane[LKS_ROW_LANES];                                                                   \
        vstore16((r).low, 0, lane);                                                                \
        vstore16((r).high, 1, lane);                                                               \
        for (U32 k = 0u; k < (n); k++)                                                             \
            lane[k] = __VA_ARGS__;                                                                 \
        (r).low = vload16(0, lane);                                                                \
        (r).high = vload16(1, lane);                                                               \
        (r).fill += (n);                                                                           \
    } while (0)
#endif
