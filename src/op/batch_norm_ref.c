/*
 * batch_norm_ref.c - the C loops of batch_norm and batch_norm_grad. A part is 16 channels, whose
 * chains run side by side.
 */
#include <string.h>

#include "op/batch_norm.h"

#define LANES 16

/* Two numbers of a leaf or a subtree: mean and M2, or two sums. */
struct pair {
    F32 one[LANES], two[LANES];
};

struct counter {
    U32 count;
    struct pair part[LKS_TREE_LEVEL];
};

/* Always inlined, so that it is compiled for the clone that calls it. */
#define REF_INLINE static inline __attribute__((always_inline))

/* Right meets left. Without a tree of coefficients: sums. */
REF_INLINE void meet(const struct lks_chan_tree *t, U32 level, bool last, const struct pair *left,
                     struct pair *right)
{
    F32 fb = last && t != NULL ? t->last_b[level] : 0.5f;
    F32 fab = t == NULL ? 0.0f : last ? t->last_ab[level] : t->mid * (F32)(1u << level);
    if (t == NULL)
        for (int j = 0; j < LANES; j++) {
            right->one[j] = left->one[j] + right->one[j];
            right->two[j] = left->two[j] + right->two[j];
        }
    else
        for (int j = 0; j < LANES; j++) {
            F32 d = right->one[j] - left->one[j];
            right->one[j] = lks_fma(d, fb, left->one[j]);
            right->two[j] = lks_fma(d * d, fab, left->two[j] + right->two[j]);
        }
}

REF_INLINE void push(struct counter *c, const struct lks_chan_tree *t, U32 leaves, struct pair *v)
{
    U32 level = 0;
    bool last = c->count + 1 == leaves;
    for (U32 k = c->count; (k & 1) != 0; k >>= 1, level++)
        meet(t, level, last, &c->part[level], v);
    c->part[level] = *v;
    c->count++;
}

REF_INLINE void root(const struct counter *c, const struct lks_chan_tree *t, struct pair *v)
{
    bool have = false;
    for (U32 k = c->count, level = 0; k != 0; k >>= 1, level++) {
        if ((k & 1) == 0)
            continue;
        if (have)
            meet(t, level, true, &c->part[level], v);
        else
            *v = c->part[level];
        have = true;
    }
}

/* One step of a chain over positions, for each lane `j`. */
#define FOR_LANES(lanes, ...)                                                                      \
    do {                                                                                           \
        if ((lanes) == LANES) {                                                                    \
            for (int j = 0; j < LANES; j++)                                                        \
                __VA_ARGS__;                                                                       \
        } else {                                                                                   \
            for (U32 j = 0; j < (lanes); j++)                                                      \
                __VA_ARGS__;                                                                       \
        }                                                                                          \
    } while (0)

/* Positions [i, end) of `count` are the next piece of a leaf (piece.h). */
#define FOR_PIECES(count)                                                                          \
    for (U64 i = 0, end; end = i + LKS_SPAN < (count) ? i + LKS_SPAN : (count), i < (count);)

REF_INLINE void moments(const F32 *x, U64 count, U64 c, U32 lanes, struct pair *v)
{
    struct counter pieces = {.count = 0};
    struct pair acc;
    const F32 *p = x;
    F32 mean[LANES];
    FOR_PIECES(count)
    {
        memset(&acc, 0, sizeof acc);
        for (; i < end; i++, p += c)
            FOR_LANES(lanes, acc.one[j] = acc.one[j] + p[j]);
        push(&pieces, NULL, 0, &acc);
    }
    root(&pieces, NULL, v);
    for (int j = 0; j < LANES; j++)
        mean[j] = lks_div(v->one[j], (F32)count);
    p = x;
    pieces.count = 0;
    FOR_PIECES(count)
    {
        memset(&acc, 0, sizeof acc);
        for (; i < end; i++, p += c)
            FOR_LANES(lanes, {
                F32 d = p[j] - mean[j];
                acc.two[j] = lks_fma(d, d, acc.two[j]);
            });
        push(&pieces, NULL, 0, &acc);
    }
    root(&pieces, NULL, v);
    memcpy(v->one, mean, sizeof mean);
}

REF_INLINE void sums(const F32 *x, const F32 *dy, const F32 *mean, const F32 *invstd, U64 count,
                     U64 c, U32 lanes, struct pair *v)
{
    struct counter pieces = {.count = 0};
    struct pair acc;
    FOR_PIECES(count)
    {
        memset(&acc, 0, sizeof acc);
        for (; i < end; i++, x += c, dy += c)
            FOR_LANES(lanes, {
                acc.one[j] = lks_fma(dy[j], (x[j] - mean[j]) * invstd[j], acc.one[j]);
                acc.two[j] = acc.two[j] + dy[j];
            });
        push(&pieces, NULL, 0, &acc);
    }
    root(&pieces, NULL, v);
}

U64 lksi_batch_norm_ref_parts(const struct lksi_call *call)
{
    return (lksi_batch_norm_dims(call)->c + LANES - 1) / LANES;
}

REF_INLINE void forward(const struct batch_norm_dims *d, const void *const *in, void *const *out,
                        U32 c0, U32 lanes)
{
    const F32 *x = (const F32 *)in[0] + c0, *gamma = (const F32 *)in[1] + c0;
    const F32 *beta = (const F32 *)in[2] + c0;
    F32 *restrict y = (F32 *)out[0] + c0;
    struct lks_leaf f = lks_leaf_make(d->n, d->h, d->w, d->leaf);
    struct counter sample, batch;
    struct pair v;
    F32 s[LANES] = {0};
    U64 p0, p1, positions = (U64)d->n * d->h * d->w;
    batch.count = 0;
    for (U32 k = 0; k < f.leaves; k += f.cut) {
        sample.count = 0;
        for (U32 i = 0; i < f.cut; i++) {
            lks_norm_range(d, &f, k + i, &p0, &p1);
            moments(x + p0 * d->c, p1 - p0, d->c, lanes, &v);
            push(&sample, &d->chan.sample, f.cut, &v);
        }
        root(&sample, &d->chan.sample, &v);
        push(&batch, &d->chan.batch, f.leaves / f.cut, &v);
    }
    root(&batch, &d->chan.batch, &v);
    for (U32 j = 0; j < lanes; j++) {
        F32 variance = lks_div(v.two[j], d->count);
        v.one[j] = v.one[j] + 0.0f;
        s[j] = lks_norm_invstd(variance, d->eps);
        ((F32 *)out[1])[c0 + j] = v.one[j];
        ((F32 *)out[2])[c0 + j] = variance;
        ((F32 *)out[3])[c0 + j] = s[j];
    }
    const F32 *rest = d->rest != 0 ? (const F32 *)in[3] + c0 : x;
    for (U64 p = 0; p < positions; p++, x += d->c, y += d->c, rest += d->c) {
        FOR_LANES(lanes, y[j] = lks_fma((x[j] - v.one[j]) * s[j], gamma[j], beta[j]));
        if (d->rest != 0)
            FOR_LANES(lanes, y[j] = y[j] + rest[j]);
        if (d->relu != 0)
            FOR_LANES(lanes, y[j] = y[j] <= 0.0f ? 0.0f : y[j]);
    }
}

REF_INLINE void backward(const struct batch_norm_dims *d, const void *const *in, void *const *out,
                         U32 c0, U32 lanes)
{
    const F32 *x = (const F32 *)in[0] + c0, *dy = (const F32 *)in[1] + c0;
    const F32 *mean = (const F32 *)in[2] + c0, *invstd = (const F32 *)in[3] + c0;
    const F32 *gamma = (const F32 *)in[4] + c0;
    F32 *restrict dx = (F32 *)out[0] + c0;
    struct lks_leaf f = lks_leaf_make(d->n, d->h, d->w, d->leaf);
    struct counter sample, batch;
    struct pair v;
    F32 k[LANES] = {0};
    U64 p0, p1, positions = (U64)d->n * d->h * d->w;
    batch.count = 0;
    for (U32 l = 0; l < f.leaves; l += f.cut) {
        sample.count = 0;
        for (U32 i = 0; i < f.cut; i++) {
            lks_norm_range(d, &f, l + i, &p0, &p1);
            sums(x + p0 * d->c, dy + p0 * d->c, mean, invstd, p1 - p0, d->c, lanes, &v);
            push(&sample, NULL, f.cut, &v);
        }
        root(&sample, NULL, &v);
        push(&batch, NULL, f.leaves / f.cut, &v);
    }
    root(&batch, NULL, &v);
    for (U32 j = 0; j < lanes; j++) {
        v.one[j] = v.one[j] + 0.0f;
        v.two[j] = v.two[j] + 0.0f;
        ((F32 *)out[1])[c0 + j] = v.one[j];
        ((F32 *)out[2])[c0 + j] = v.two[j];
        v.one[j] = v.one[j] * d->inverse;
        v.two[j] = v.two[j] * d->inverse;
        k[j] = gamma[j] * invstd[j];
    }
    for (U64 p = 0; p < positions; p++, x += d->c, dy += d->c, dx += d->c)
        FOR_LANES(lanes, {
            F32 xhat = (x[j] - mean[j]) * invstd[j];
            dx[j] = k[j] * lks_fma(-xhat, v.one[j], dy[j] - v.two[j]);
        });
}

LKSI_CLONES void lksi_batch_norm_ref(const struct lksi_call *call, const void *const *in,
                                     void *const *out, U64 p0, U64 p1)
{
    const struct batch_norm_dims *d = lksi_batch_norm_dims(call);
    for (U64 p = p0; p < p1; p++) {
        U32 c0 = (U32)p * LANES;
        forward(d, in, out, c0, d->c - c0 < LANES ? d->c - c0 : LANES);
    }
}

LKSI_CLONES void lksi_batch_norm_grad_ref(const struct lksi_call *call, const void *const *in,
                                          void *const *out, U64 p0, U64 p1)
{
    const struct batch_norm_dims *d = lksi_batch_norm_dims(call);
    for (U64 p = p0; p < p1; p++) {
        U32 c0 = (U32)p * LANES;
        backward(d, in, out, c0, d->c - c0 < LANES ? d->c - c0 : LANES);
    }
}
