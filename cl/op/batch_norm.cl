/*
 * batch_norm.cl - schedules `cpu` and `gpu` of batch_norm, batch_norm_grad and batch_norm_infer.
 *
 *   leaves  two numbers of every leaf into parts[leaf][2][c]: mean and M2, or (SUMS) the sums
 *           behind dgamma and dbeta
 *   tree    the trees over them, a work-item a vector of channels
 *   spread  the trees over them, a group for some channels, its items sharing the pairs of a level
 *   factor  invstd of the running statistics
 *   apply   y (REST: with an addend, RELU: relu behind), or (SUMS) dx
 * Macros: VEC lanes a vector (at most c), NV vectors a work-item of `leaves`; AHEAD: positions that
 * `apply` reads before it uses them (VEC divides c). Vectors over the end of c move back;
 * the lanes that another vector owns are not stored.
 */
#include "contract/batch_norm.h"
#include "op/vec.h"
#include "op/batch_norm_tree.h"

#ifdef LEAVES
#ifdef SUMS
#define STATISTICS , __global const F32 *restrict dy, __global const F32 *restrict mean,           \
                   __global const F32 *restrict invstd
#else
#define STATISTICS
#endif

/* Work-item (NV vectors of c, leaf). */
__kernel void LKS_KERNEL(leaves)(__global const F32 *restrict x STATISTICS,
                                 __global F32 *restrict parts, struct batch_norm_dims d)
{
    struct lks_leaf f = lks_leaf_make(d.n, d.h, d.w, d.leaf);
    U32 leaf = get_global_id(1), c0 = get_global_id(0) * (NV * VEC), count, at[NV];
    U64 p0, p1;
    __global const F32 *from, *p;
    V one[NV], two[NV];
    struct LKS_FN(span) first = {0}, second = {0};
    if (leaf >= f.leaves || c0 >= d.c)
        return;
    lks_norm_range(&d, &f, leaf, &p0, &p1);
    count = (U32)(p1 - p0);
    from = x + p0 * d.c;
    UNROLL for (int j = 0; j < NV; j++) {
        at[j] = c0 + (j + 1) * VEC <= d.c ? c0 + j * VEC : d.c - VEC;
        one[j] = two[j] = (V)(0.0f);
    }
#ifdef SUMS
    V m[NV], s[NV];
    __global const F32 *q = dy + p0 * d.c;
    UNROLL for (int j = 0; j < NV; j++) {
        m[j] = LOAD(mean + at[j]);
        s[j] = LOAD(invstd + at[j]);
    }
    p = from;
    FOR_SPANS(count, SUMS_STEP(p, q, at, d.c), LKS_FN(span_push)(&first, one);
              LKS_FN(span_push)(&second, two);)
    LKS_FN(span_root)(&first, one);
    LKS_FN(span_root)(&second, two);
#else
    p = from;
    FOR_SPANS(count, SUM_STEP(p, at, d.c), LKS_FN(span_push)(&first, one);)
    LKS_FN(span_root)(&first, one);
    UNROLL for (int j = 0; j < NV; j++)
        one[j] = LKS_FN(div)(one[j], (F32)count);
    /* The leaf once more; it stands in a cache by now. */
    p = from;
    FOR_SPANS(count, SQUARE_STEP(p, at, d.c), LKS_FN(span_push)(&second, two);)
    LKS_FN(span_root)(&second, two);
#endif
    UNROLL for (int j = 0; j < NV; j++) {
        LKS_FN(store)(one[j], parts + (U64)leaf * 2u * d.c, c0 + j * VEC, at[j], d.c);
        LKS_FN(store)(two[j], parts + ((U64)leaf * 2u + 1u) * d.c, c0 + j * VEC, at[j], d.c);
    }
}
#endif

#ifdef TREE
/* Work-item: a vector of channels. */
__kernel void LKS_KERNEL(tree)(__global const F32 *restrict parts, RESULTS,
                               struct batch_norm_dims d)
{
    U32 want = get_global_id(0) * VEC, at = want + VEC <= d.c ? want : d.c - VEC;
    if (want >= d.c)
        return;
    struct LKS_FN(pair) v = LKS_FN(tree)(parts, at, &d);
#ifdef SUMS
    LKS_FN(store)(v.one, dgamma, want, at, d.c);
    LKS_FN(store)(v.two + 0.0f, dbeta, want, at, d.c);
#else
    v.two = LKS_FN(div)(v.two, d.count);
    LKS_FN(store)(v.one, mean, want, at, d.c);
    LKS_FN(store)(v.two, variance, want, at, d.c);
    LKS_FN(store)(LKS_FN(invstd)(v.two, d.eps), invstd, want, at, d.c);
#endif
}
#endif

#ifdef SPREAD
/* Trees over `blocks` rows of m pairs, `step` pairs of kx lanes apart, side by side. */
static void LKS_FN(level)(__local F32 *v, const struct lks_chan_tree *tree, U32 m, U32 blocks,
                          U32 step, U32 kx)
{
    U32 l = get_local_id(0), size = get_local_size(0), level = 0u;
    for (U32 s = 1u; s < m; s *= 2u, level++) {
        U32 pairs = (m - s - 1u) / (2u * s) + 1u;
        for (U32 t = l; t < blocks * pairs * kx; t += size) {
            U32 c = t % kx, r = t / kx, i = r % pairs * 2u * s, b = r / pairs;
            U32 at = (b * m + i) * step * 2u * kx + c, to = at + s * step * 2u * kx;
            struct LKS_FN(pair) one, two;
            one.one = v[at];
            one.two = v[at + kx];
            two.one = v[to];
            two.two = v[to + kx];
            one = LKS_FN(meet)(tree, level, i + 2u * s >= m, one, two);
            v[at] = one.one;
            v[at + kx] = one.two;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* A group for kx neighbours of c; v holds 2 kx floats a leaf. */
__kernel void LKS_KERNEL(spread)(__global const F32 *restrict parts, RESULTS,
                                 struct batch_norm_dims d, __local F32 *v, U32 kx)
{
    struct lks_leaf f = lks_leaf_make(d.n, d.h, d.w, d.leaf);
    U32 l = get_local_id(0), size = get_local_size(0), c0 = get_group_id(0) * kx;
    for (U32 t = l; t < f.leaves * 2u * kx; t += size) {
        U32 j = t / kx, c = t % kx;
        v[t] = c0 + c < d.c ? parts[(U64)j * d.c + c0 + c] : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    LKS_FN(level)(v, &d.chan.sample, f.cut, f.leaves / f.cut, 1u, kx);
    LKS_FN(level)(v, &d.chan.batch, f.leaves / f.cut, 1u, f.cut, kx);
    for (U32 c = l; c < kx && c0 + c < d.c; c += size) {
#ifdef SUMS
        dgamma[c0 + c] = v[c] + 0.0f;
        dbeta[c0 + c] = v[kx + c] + 0.0f;
#else
        F32 var = lks_div(v[kx + c], d.count);
        mean[c0 + c] = v[c] + 0.0f;
        variance[c0 + c] = var;
        invstd[c0 + c] = lks_norm_invstd(var, d.eps);
#endif
    }
}
#endif

#ifdef FACTOR
__kernel void LKS_KERNEL(factor)(__global const F32 *restrict variance,
                                 __global F32 *restrict invstd, struct batch_norm_dims d)
{
    U32 want = get_global_id(0) * VEC, at = want + VEC <= d.c ? want : d.c - VEC;
    if (want < d.c)
        LKS_FN(store)(LKS_FN(invstd)(LOAD(variance + at), d.eps), invstd, want, at, d.c);
}
#endif

#ifdef APPLY
/* One vector: `more` is dy (SUMS), or what REST adds; the numbers behind it are the channels'. */
#ifdef SUMS
#define MORE    dy
#define CHANNEL m, s, a, b, k_
#define LOAD_CHANNEL(c)                                                                            \
    const V m = LOAD(mean + (c)), s = LOAD(invstd + (c)), a = LOAD(dbeta + (c)) * d.inverse,       \
            b = LOAD(dgamma + (c)) * d.inverse, k_ = LOAD(gamma + (c)) * s;
static V LKS_FN(apply_one)(V x, V dy, V mean, V invstd, V a, V b, V k)
{
    V xhat = (x - mean) * invstd;
    return k * fma(-xhat, b, dy - a);
}
#else
#ifdef REST
#define MORE rest
#else
#define MORE x
#endif
#define CHANNEL m, s, a, b
#define LOAD_CHANNEL(c)                                                                            \
    const V m = LOAD(mean + (c)), s = LOAD(invstd + (c)), a = LOAD(gamma + (c)),                   \
            b = LOAD(beta + (c));
static V LKS_FN(apply_one)(V x, V rest, V mean, V invstd, V gamma, V beta)
{
    V out = fma((x - mean) * invstd, gamma, beta);
#ifdef REST
    out = out + rest;
#endif
#ifdef RELU
    out = PICK(out <= 0.0f, 0.0f, out);
#endif
    return out;
}
#endif

/* Work-item (`span` vectors of c, `chunk` positions). */
__kernel void LKS_KERNEL(apply)(__global const F32 *restrict x,
#ifdef SUMS
                                __global const F32 *restrict dy, __global const F32 *restrict mean,
                                __global const F32 *restrict invstd,
                                __global const F32 *restrict gamma,
                                __global const F32 *restrict dgamma,
                                __global const F32 *restrict dbeta,
#else
                                __global const F32 *restrict gamma,
                                __global const F32 *restrict beta,
                                __global const F32 *restrict mean,
                                __global const F32 *restrict invstd,
#ifdef REST
                                __global const F32 *restrict rest,
#endif
#endif
                                __global F32 *restrict y, struct batch_norm_dims d, U32 span,
                                U32 chunk)
{
    U32 v0 = get_global_id(0) * span * VEC, v1 = v0 + span * VEC < d.c ? v0 + span * VEC : d.c;
    U64 positions = (U64)d.n * d.h * d.w, p = (U64)get_global_id(1) * chunk;
    U64 end = p + chunk < positions ? p + chunk : positions;
#ifdef AHEAD
    if (v0 < d.c && p + AHEAD <= end) { /* VEC divides c */
        const U64 at = p * d.c + v0;
        V u[AHEAD], more[AHEAD];
        UNROLL for (int k = 0; k < AHEAD; k++)
        {
            u[k] = *(__global const V *)(x + at + (U64)k * d.c);
            more[k] = *(__global const V *)(MORE + at + (U64)k * d.c);
        }
        LOAD_CHANNEL(v0)
        UNROLL for (int k = 0; k < AHEAD; k++)
            *(__global V *)(y + at + (U64)k * d.c) = LKS_FN(apply_one)(u[k], more[k], CHANNEL);
        return;
    }
#endif
    for (; p < end; p++) {
        for (U32 v = v0; v < v1; v += VEC) {
            U32 c = v + VEC <= d.c ? v : d.c - VEC;
            LOAD_CHANNEL(c)
            STORE(LKS_FN(apply_one)(LOAD(x + p * d.c + c), LOAD(MORE + p * d.c + c), CHANNEL),
                  y + p * d.c + c);
        }
    }
}
#endif
