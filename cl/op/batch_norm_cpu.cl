/*
 * batch_norm_cpu.cl - batch_norm and (SUMS) batch_norm_grad on CPU devices in one launch, for
 * tensors that fit into a cache: a work-item has NV vectors of channels, from the leaves to the
 * last element. Macros: VEC lanes a vector, a divisor of c; REST, RELU: steps 7 and 8.
 */
#include "contract/batch_norm.h"
#include "op/vec.h"
#include "op/batch_norm_tree.h"

#ifdef SUMS
#define INPUTS                                                                                     \
    __global const F32 *restrict x, __global const F32 *restrict dy,                               \
        __global const F32 *restrict mean, __global const F32 *restrict invstd,                    \
        __global const F32 *restrict gamma
#elif defined(REST)
#define INPUTS                                                                                     \
    __global const F32 *restrict x, __global const F32 *restrict gamma,                            \
        __global const F32 *restrict beta, __global const F32 *restrict rest
#else
#define INPUTS                                                                                     \
    __global const F32 *restrict x, __global const F32 *restrict gamma,                            \
        __global const F32 *restrict beta
#endif

/* What the elements of a vector of channels are made with: mean, invstd, gamma and beta; or with
 * SUMS mean, invstd, k, a and b of the contract. */
struct LKS_FN(factors) {
    V mean, invstd, k, a, b;
};

/* Element of y from x and the rest, or of dx from x and dy. */
static inline V LKS_FN(element)(V x, V other, const struct LKS_FN(factors) *f)
{
    V xhat = (x - f->mean) * f->invstd;
#ifdef SUMS
    return f->k * fma(-xhat, f->b, other - f->a);
#else
    V y = fma(xhat, f->k, f->a);
#ifdef REST
    y = y + other;
#endif
#ifdef RELU
    y = PICK(y <= 0.0f, 0.0f, y);
#endif
    return y;
#endif
}

/* The two numbers of a leaf of `count` positions from x (and dy) on, for NV vectors. */
static inline void LKS_FN(leaf)(__global const F32 *x, __global const F32 *dy, const U32 *at,
                                const V *m, const V *s, U32 c, U32 count, V *one, V *two)
{
    struct LKS_FN(span) first = {0}, second = {0};
    UNROLL for (int j = 0; j < NV; j++)
        one[j] = two[j] = (V)(0.0f);
#ifdef SUMS
    FOR_SPANS(count, SUMS_STEP(x, dy, at, c), LKS_FN(span_push)(&first, one);
              LKS_FN(span_push)(&second, two);)
    LKS_FN(span_root)(&first, one);
    LKS_FN(span_root)(&second, two);
#else
    __global const F32 *p = x;
    FOR_SPANS(count, SUM_STEP(p, at, c), LKS_FN(span_push)(&first, one);)
    LKS_FN(span_root)(&first, one);
    UNROLL for (int j = 0; j < NV; j++)
        one[j] = LKS_FN(div)(one[j], (F32)count);
    /* The leaf once more; it stands in a cache by now. */
    FOR_SPANS(count, SQUARE_STEP(x, at, c), LKS_FN(span_push)(&second, two);)
    LKS_FN(span_root)(&second, two);
#endif
}

/* Stores what the root of the tree says of the channels from `at` on, and makes the factors of the
 * elements. */
static inline struct LKS_FN(factors) LKS_FN(results)(struct LKS_FN(pair) v, INPUTS, RESULTS, U32 at,
                                                     const struct batch_norm_dims *d)
{
    struct LKS_FN(factors) f;
#ifdef SUMS
    v.two = v.two + 0.0f;
    STORE(v.one, dgamma + at);
    STORE(v.two, dbeta + at);
    f.mean = LOAD(mean + at);
    f.invstd = LOAD(invstd + at);
    f.k = LOAD(gamma + at) * f.invstd;
    f.a = v.two * d->inverse;
    f.b = v.one * d->inverse;
#else
    v.two = LKS_FN(div)(v.two, d->count);
    f.mean = v.one;
    f.invstd = LKS_FN(invstd)(v.two, d->eps);
    f.k = LOAD(gamma + at);
    f.a = f.b = LOAD(beta + at);
    STORE(v.one, mean + at);
    STORE(v.two, variance + at);
    STORE(f.invstd, invstd + at);
#endif
    return f;
}

#ifdef SUMS
#define GIVEN   x, dy, mean, invstd, gamma, dgamma, dbeta
#define OTHER   dy
#elif defined(REST)
#define GIVEN   x, gamma, beta, rest, mean, variance, invstd
#define OTHER   rest
#else
#define GIVEN   x, gamma, beta, mean, variance, invstd
#define OTHER   x
#endif

/* Work-item: NV vectors of c. */
ALONE __kernel void LKS_KERNEL(whole)(INPUTS, __global F32 *restrict y, RESULTS,
                                      struct batch_norm_dims d)
{
    struct lks_leaf f = lks_leaf_make(d.n, d.h, d.w, d.leaf);
    struct LKS_FN(counter) sample[NV], batch[NV];
    struct LKS_FN(factors) factors[NV];
    U32 c0 = get_global_id(0) * (NV * VEC), at[NV];
    U64 p0, p1, positions = (U64)d.n * d.h * d.w;
    V m[NV], s[NV], one[NV], two[NV];
    UNROLL for (int j = 0; j < NV; j++) {
        at[j] = min(c0 + j * VEC, d.c - VEC);
        batch[j].count = 0u;
#ifdef SUMS
        m[j] = LOAD(mean + at[j]);
        s[j] = LOAD(invstd + at[j]);
#endif
    }
    for (U32 leaf = 0u; leaf < f.leaves; leaf += f.cut) {
        for (int j = 0; j < NV; j++)
            sample[j].count = 0u;
        for (U32 i = 0u; i < f.cut; i++) {
            lks_norm_range(&d, &f, leaf + i, &p0, &p1);
            LKS_FN(leaf)(x + p0 * d.c, OTHER + p0 * d.c, at, m, s, d.c, (U32)(p1 - p0), one, two);
            UNROLL for (int j = 0; j < NV; j++) {
                struct LKS_FN(pair) v = {one[j], two[j]};
                LKS_FN(push)(&sample[j], &d.chan.sample, f.cut, v);
            }
        }
        for (int j = 0; j < NV; j++)
            LKS_FN(push)(&batch[j], &d.chan.batch, f.leaves / f.cut,
                         LKS_FN(root)(&sample[j], &d.chan.sample));
    }
    for (int j = 0; j < NV; j++) {
        struct LKS_FN(pair) v = LKS_FN(root)(&batch[j], &d.chan.batch);
        v.one = v.one + 0.0f;
        factors[j] = LKS_FN(results)(v, GIVEN, at[j], &d);
    }
    for (U64 p = 0u; p < positions; p++)
        UNROLL for (int j = 0; j < NV; j++) {
            U64 e = p * d.c + at[j];
            STORE(LKS_FN(element)(LOAD(x + e), LOAD(OTHER + e), &factors[j]), y + e);
        }
}
