/*
 * batch_norm_tree.h - what the kernels of batch normalisation share: vectors of channels at the end
 * of c, and the trees over the two numbers of each leaf (mean and M2, or with SUMS two sums).
 * Behind contract/batch_norm.h and op/vec.h.
 */

/* Lanes of v from `want` on, where the vector was moved from `want` back to `at`. */
static inline void LKS_FN(store)(V v, __global F32 *out, U32 want, U32 at, U32 c)
{
    if (want == at) {
        STORE(v, out + at);
    } else if (want < c) {
        F32 lane[VEC];
        STORE(v, lane);
        for (U32 i = want; i < c; i++)
            out[i] = lane[i - at];
    }
}

static inline V LKS_FN(div)(V v, F32 by)
{
    F32 lane[VEC];
    STORE(v, lane);
    for (U32 i = 0u; i < VEC; i++)
        lane[i] = lks_div(lane[i], by);
    return LOAD(lane);
}

static inline V LKS_FN(invstd)(V v, F32 eps)
{
    F32 lane[VEC];
    STORE(v, lane);
    for (U32 i = 0u; i < VEC; i++)
        lane[i] = lks_norm_invstd(lane[i], eps);
    return LOAD(lane);
}

#ifdef NV
#include "op/span.h"

/* Steps of the chains in one[] and two[] of a leaf, for NV vectors of the position at p (and q), with
 * mean m[] and invstd s[]. */
#define SUM_STEP(p, at, c)                                                                         \
    UNROLL for (int j = 0; j < NV; j++)                                                            \
        one[j] = one[j] + LOAD((p) + at[j]);                                                       \
    (p) += (c);
#define SQUARE_STEP(p, at, c)                                                                      \
    UNROLL for (int j = 0; j < NV; j++)                                                            \
    {                                                                                              \
        V e_ = LOAD((p) + at[j]) - one[j];                                                         \
        two[j] = fma(e_, e_, two[j]);                                                              \
    }                                                                                              \
    (p) += (c);
#define SUMS_STEP(p, q, at, c)                                                                     \
    UNROLL for (int j = 0; j < NV; j++)                                                            \
    {                                                                                              \
        V g_ = LOAD((q) + at[j]);                                                                  \
        one[j] = fma(g_, (LOAD((p) + at[j]) - m[j]) * s[j], one[j]);                               \
        two[j] = two[j] + g_;                                                                      \
    }                                                                                              \
    (p) += (c);                                                                                    \
    (q) += (c);
#endif

/* The two numbers of a leaf, or of a subtree. */
struct LKS_FN(pair) {
    V one, two;
};

static inline struct LKS_FN(pair) LKS_FN(meet)(const struct lks_chan_tree *t, U32 level, int last,
                                               struct LKS_FN(pair) a, struct LKS_FN(pair) b)
{
    struct LKS_FN(pair) r;
#ifdef SUMS
    r.one = a.one + b.one;
    r.two = a.two + b.two;
#else
    F32 fb = last ? t->last_b[level] : 0.5f;
    F32 fab = last ? t->last_ab[level] : t->mid * (F32)(1u << level);
    V d = b.one - a.one;
    r.one = fma(d, (V)(fb), a.one);
    r.two = fma(d * d, (V)(fab), a.two + b.two);
#endif
    return r;
}

#ifdef SUMS
#define RESULTS __global F32 *restrict dgamma, __global F32 *restrict dbeta
#else
#define RESULTS                                                                                    \
    __global F32 *restrict mean, __global F32 *restrict variance, __global F32 *restrict invstd
#endif

struct LKS_FN(counter) {
    U32 count;
    struct LKS_FN(pair) part[LKS_CHAN_LEVELS];
};

/* Leaf number t->count of `leaves`. */
static inline void LKS_FN(push)(struct LKS_FN(counter) *t, const struct lks_chan_tree *c,
                                U32 leaves, struct LKS_FN(pair) v)
{
    U32 level = 0u;
    int last = t->count + 1u == leaves;
    for (U32 bits = t->count; (bits & 1u) != 0u; bits >>= 1, level++)
        v = LKS_FN(meet)(c, level, last, t->part[level], v);
    t->part[level] = v;
    t->count++;
}

static inline struct LKS_FN(pair) LKS_FN(root)(const struct LKS_FN(counter) *t,
                                               const struct lks_chan_tree *c)
{
    struct LKS_FN(pair) v;
    int have = 0;
    U32 level = 0u;
    v.one = v.two = (V)(0.0f);
    for (U32 bits = t->count; bits != 0u; bits >>= 1, level++) {
        if ((bits & 1u) == 0u)
            continue;
        v = have ? LKS_FN(meet)(c, level, 1, t->part[level], v) : t->part[level];
        have = 1;
    }
    return v;
}

/* Both trees over the numbers of the leaves in parts[leaf][2][c], for the vector at `at`. */
static inline struct LKS_FN(pair) LKS_FN(tree)(__global const F32 *parts, U32 at,
                                               const struct batch_norm_dims *d)
{
    struct lks_leaf f = lks_leaf_make(d->n, d->h, d->w, d->leaf);
    struct LKS_FN(counter) sample, batch;
    struct LKS_FN(pair) v;
    batch.count = 0u;
    for (U32 j = 0u; j < f.leaves; j += f.cut) {
        sample.count = 0u;
        for (U32 c = 0u; c < f.cut; c++) {
            __global const F32 *p = parts + (U64)(j + c) * 2u * d->c + at;
            v.one = LOAD(p);
            v.two = LOAD(p + d->c);
            LKS_FN(push)(&sample, &d->chan.sample, f.cut, v);
        }
        LKS_FN(push)(&batch, &d->chan.batch, f.leaves / f.cut,
                     LKS_FN(root)(&sample, &d->chan.sample));
    }
    v = LKS_FN(root)(&batch, &d->chan.batch);
    v.one = v.one + 0.0f;
    return v;
}
