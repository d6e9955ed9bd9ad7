/*
 * bias_grad.cl - schedules `cpu` and `gpu` of bias_grad.
 *
 *   leaves  sums of all leaves into parts[leaf][k]
 *   tree    the trees over them, a work-item a vector of k
 *   spread  the trees over them, a group for some k, its items sharing the additions of a level
 * Macros: VEC lanes a vector (at most k), NV vectors a work-item of `leaves`; AHEAD: the
 * positions of a piece are read before they are added (NV 1). Vectors over the end of k move back;
 * the lanes that another vector owns are not stored.
 */
#include "contract/bias_grad.h"
#include "op/vec.h"

/* Lanes of v from `want` on, where the vector was moved from `want` back to `at`. */
#if defined(LEAVES) || defined(TREE)
static void LKS_FN(store)(V v, __global F32 *out, U32 want, U32 at, U32 k)
{
    if (want == at) {
        STORE(v, out + at);
    } else if (want < k) {
        F32 lane[VEC];
        STORE(v, lane);
        ROLLED for (U32 c = want; c < k; c++)
            out[c] = lane[c - at];
    }
}
#endif

#ifdef LEAVES
#include "op/span.h"

/* Work-item (NV vectors of k, leaf). */
__kernel void LKS_KERNEL(leaves)(__global const F32 *restrict dy, __global F32 *restrict parts,
                                 struct bias_grad_dims d)
{
    struct lks_leaf f = lks_leaf_make(d.n, d.h, d.w, d.leaf);
    U32 leaf = get_global_id(1), k0 = get_global_id(0) * (NV * VEC);
    U32 n0, n1, r0, r1, count, at[NV];
    __global const F32 *p;
    V acc[NV];
    struct LKS_FN(span) sum = {0};
    if (leaf >= f.leaves || k0 >= d.k)
        return;
    lks_leaf_range(&f, leaf, &n0, &n1, &r0, &r1);
    UNROLL for (int j = 0; j < NV; j++) {
        at[j] = k0 + (j + 1) * VEC <= d.k ? k0 + j * VEC : d.k - VEC;
        acc[j] = (V)(0.0f);
    }
    /* The positions of a leaf are neighbours: rows of one sample, or whole samples. */
    p = dy + ((U64)n0 * d.h + r0) * d.w * d.k;
    count = f.cut > 1u ? (r1 - r0) * d.w : (n1 - n0) * d.h * d.w;
#ifdef AHEAD
    for (; count >= LKS_SPAN; count -= LKS_SPAN, p += (U64)LKS_SPAN * d.k) {
        V v[LKS_SPAN];
        UNROLL for (U32 i = 0u; i < LKS_SPAN; i++)
            v[i] = LOAD(p + (U64)i * d.k + at[0]);
        UNROLL for (U32 i = 0u; i < LKS_SPAN; i++)
            acc[0] = acc[0] + v[i];
        LKS_FN(span_push)(&sum, acc);
    }
#endif
    FOR_SPANS(count, {
        UNROLL for (int j = 0; j < NV; j++)
            acc[j] = acc[j] + LOAD(p + at[j]);
        p += d.k;
    }, LKS_FN(span_push)(&sum, acc);)
    LKS_FN(span_root)(&sum, acc);
    UNROLL for (int j = 0; j < NV; j++)
        LKS_FN(store)(acc[j], parts + (U64)leaf * d.k, k0 + j * VEC, at[j], d.k);
}
#endif

#ifdef TREE
#include "op/vec_tree.h"

/* Work-item: a vector of k. */
__kernel void LKS_KERNEL(tree)(__global const F32 *restrict parts, __global F32 *restrict db,
                               struct bias_grad_dims d)
{
    struct lks_leaf f = lks_leaf_make(d.n, d.h, d.w, d.leaf);
    struct LKS_FN(counter) sample, batch;
    U32 want = get_global_id(0) * VEC, at = want + VEC <= d.k ? want : d.k - VEC;
    if (want >= d.k)
        return;
    batch.count = 0u;
    for (U32 j = 0u; j < f.leaves; j += f.cut) {
        V v = LOAD(parts + (U64)j * d.k + at);
        if (f.cut > 1u) {
            sample.count = 0u;
            LKS_FN(push)(&sample, v);
            for (U32 c = 1u; c < f.cut; c++)
                LKS_FN(push)(&sample, LOAD(parts + (U64)(j + c) * d.k + at));
            v = LKS_FN(root)(&sample);
        }
        LKS_FN(push)(&batch, v);
    }
    LKS_FN(store)(LKS_FN(root)(&batch) + 0.0f, db, want, at, d.k);
}
#endif

#ifdef SPREAD
/* Trees over `blocks` rows of m values, `step` rows of kx lanes apart, side by side. */
static void LKS_FN(level)(__local F32 *v, U32 m, U32 blocks, U32 step, U32 kx)
{
    U32 l = get_local_id(0), size = get_local_size(0);
    for (U32 s = 1u; s < m; s *= 2u) {
        U32 pairs = (m - s - 1u) / (2u * s) + 1u;
        for (U32 t = l; t < blocks * pairs * kx; t += size) {
            U32 c = t % kx, r = t / kx, i = r % pairs * 2u * s, b = r / pairs;
            U32 at = (b * m + i) * step * kx + c;
            v[at] = v[at] + v[at + s * step * kx];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* A group for kx neighbours of k; v holds kx floats a leaf. */
__kernel void LKS_KERNEL(spread)(__global const F32 *restrict parts, __global F32 *restrict db,
                                 struct bias_grad_dims d, __local F32 *v, U32 kx)
{
    struct lks_leaf f = lks_leaf_make(d.n, d.h, d.w, d.leaf);
    U32 l = get_local_id(0), size = get_local_size(0), k0 = get_group_id(0) * kx;
    for (U32 t = l; t < f.leaves * kx; t += size) {
        U32 j = t / kx, c = t % kx;
        v[t] = k0 + c < d.k ? parts[(U64)j * d.k + k0 + c] : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    LKS_FN(level)(v, f.cut, f.leaves / f.cut, 1u, kx);
    LKS_FN(level)(v, f.leaves / f.cut, 1u, f.cut, kx);
    for (U32 c = l; c < kx && k0 + c < d.k; c += size)
        db[k0 + c] = v[c] + 0.0f;
}
#endif
