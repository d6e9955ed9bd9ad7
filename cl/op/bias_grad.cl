/*
 * bias_grad.cl - schedules `cpu` and `gpu` of bias_grad.
 *
 *   leaves  sums of all leaves into parts[leaf][k]
 *   tree    the trees over them
 * Macros: VEC lanes a vector (at most k), NV vectors a work-item of `leaves`. Vectors over the end
 * of k move back; the lanes that another vector owns are not stored.
 */
#include "contract/bias_grad.h"
#include "op/vec.h"

/* A GPU item has one lane: it needs several loads under way. */
#if VEC == 1
#define MANY_LOADS _Pragma("unroll 8")
#else
#define MANY_LOADS
#endif

/* Lanes of v from `want` on, where the vector was moved from `want` back to `at`. */
static void LKS_FN(store)(V v, __global F32 *out, U32 want, U32 at, U32 k)
{
    if (want == at) {
        STORE(v, out + at);
    } else if (want < k) {
        F32 lane[VEC];
        STORE(v, lane);
        for (U32 c = want; c < k; c++)
            out[c] = lane[c - at];
    }
}

#ifdef LEAVES
/* Work-item (NV vectors of k, leaf). */
__kernel void LKS_KERNEL(leaves)(__global const F32 *restrict dy, __global F32 *restrict parts,
                                 struct bias_grad_dims d)
{
    struct lks_leaf f = lks_leaf_make(d.n, d.h, d.w, d.leaf);
    U32 leaf = get_global_id(1), k0 = get_global_id(0) * (NV * VEC);
    U32 n0, n1, r0, r1, at[NV];
    V acc[NV];
    if (leaf >= f.leaves || k0 >= d.k)
        return;
    lks_leaf_range(&f, leaf, &n0, &n1, &r0, &r1);
    UNROLL for (int j = 0; j < NV; j++) {
        at[j] = k0 + (j + 1) * VEC <= d.k ? k0 + j * VEC : d.k - VEC;
        acc[j] = (V)(0.0f);
    }
    for (U32 n = n0; n < n1; n++) {
        __global const F32 *p = dy + ((U64)n * d.h + r0) * d.w * d.k;
        U32 count = (r1 - r0) * d.w;
        MANY_LOADS for (U32 i = 0u; i < count; i++)
        {
            UNROLL for (int j = 0; j < NV; j++)
                acc[j] = acc[j] + LOAD(p + at[j]);
            p += d.k;
        }
    }
    UNROLL for (int j = 0; j < NV; j++)
        LKS_FN(store)(acc[j], parts + (U64)leaf * d.k, k0 + j * VEC, at[j], d.k);
}
#endif

#ifdef TREE
struct LKS_FN(counter) {
    U32 count;
    V part[LKS_TREE_LEVEL];
};

static void LKS_FN(push)(struct LKS_FN(counter) *t, V v)
{
    U32 level = 0u;
    for (U32 bits = t->count; (bits & 1u) != 0u; bits >>= 1)
        v = t->part[level++] + v;
    t->part[level] = v;
    t->count++;
}

static V LKS_FN(root)(const struct LKS_FN(counter) *t)
{
    V v = (V)(0.0f);
    int have = 0;
    U32 level = 0u;
    for (U32 bits = t->count; bits != 0u; bits >>= 1, level++) {
        if ((bits & 1u) == 0u)
            continue;
        v = have ? t->part[level] + v : t->part[level];
        have = 1;
    }
    return v;
}

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
