/*
 * embedding.cl - schedules `rows` of embedding and embedding_grad. Macros: VEC lanes a vector (at
 * most d); READ: embedding, else its gradient. The last vector of a row moves back where d is no
 * multiple, and writes some lanes a second time with the same bits.
 */
#include "contract/embedding.h"
#include "op/vec.h"

#ifdef READ
/* Work-item: some positions that follow each other. */
__kernel void LKS_KERNEL(read)(__global const F32 *restrict table,
                               __global const I32 *restrict token, __global F32 *restrict y,
                               struct embedding_dims d, U32 chunk)
{
    U32 all = d.n * d.s, p = get_global_id(0) * chunk, end = all - p < chunk ? all : p + chunk;
    U32 at = get_global_id(1) * VEC, last = d.d - VEC;
    if (p >= all)
        return;
    for (; p < end; p++) {
        U32 row = (U32)token[p];
        __global F32 *to = y + (U64)p * d.d;
        for (U32 k = at; k < d.d; k += get_global_size(1) * VEC) {
            U32 e = k < last ? k : last;
            STORE(row < d.v ? LOAD(table + (U64)row * d.d + e) : (V)(lks_nan()), to + e);
        }
    }
}
#else
#include "op/vec_tree.h"

/* Positions [p, end) of a leaf; 16 tokens are looked at together, most of which are others. */
static V LKS_FN(leaf)(__global const F32 *restrict dy, __global const I32 *restrict token, U32 p,
                      U32 end, U32 d, I32 row)
{
    V acc = (V)(0.0f);
    while (p < end) {
        U32 stop = end - p < 16u ? end : p + 16u;
        if (end - p >= 16u && !any(vload16(0, token + p) == row))
            p = stop;
        for (; p < stop; p++)
            if (token[p] == row)
                acc = acc + LOAD(dy + (U64)p * d);
    }
    return acc;
}

/* Work-item (vector of d, row). */
__kernel void LKS_KERNEL(gather)(__global const F32 *restrict dy,
                                 __global const I32 *restrict token, __global F32 *restrict dtable,
                                 struct embedding_dims d)
{
    struct lks_leaf f = lks_leaf_make(d.n, d.s, 1u, d.leaf);
    struct LKS_FN(counter) sample, batch;
    U32 k = get_global_id(0) * VEC, row = get_global_id(1), n0, n1, r0, r1;
    if (k >= d.d || row >= d.v)
        return;
    k = k < d.d - VEC ? k : d.d - VEC;
    sample.count = batch.count = 0u;
    for (U32 j = 0u; j < f.leaves; j++) {
        lks_leaf_range(&f, j, &n0, &n1, &r0, &r1);
        V v = LKS_FN(leaf)(dy + k, token, n0 * d.s + r0, (n1 - 1u) * d.s + r1, d.d, (I32)row);
        if (f.cut > 1u) {
            LKS_FN(push)(&sample, v);
            if (sample.count < f.cut)
                continue;
            v = LKS_FN(root)(&sample);
            sample.count = 0u;
        }
        LKS_FN(push)(&batch, v);
    }
    STORE(LKS_FN(root)(&batch) + 0.0f, dtable + (U64)row * d.d + k);
}
#endif
