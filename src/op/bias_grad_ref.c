/*
 * bias_grad_ref.c - the C loop of bias_grad. A part is 16 channels, whose chains run side by side.
 */
#include <string.h>

#include "op/bias_grad.h"

#define LANES 16

struct sums {
    F32 v[LANES];
};

struct counter {
    U32 count;
    struct sums partial[32];
};

/* Always inlined, so that it is compiled for the clone that calls it. */
#define REF_INLINE static inline __attribute__((always_inline))

REF_INLINE void sums_add(struct sums *to, const struct sums *left)
{
    for (int j = 0; j < LANES; j++)
        to->v[j] = left->v[j] + to->v[j];
}

REF_INLINE void push(struct counter *t, struct sums *v)
{
    U32 level = 0;
    for (U32 k = t->count; (k & 1) != 0; k >>= 1)
        sums_add(v, &t->partial[level++]);
    t->partial[level] = *v;
    t->count++;
}

REF_INLINE void root(const struct counter *t, struct sums *v)
{
    bool have = false;
    for (U32 k = t->count, level = 0; k != 0; k >>= 1, level++) {
        if ((k & 1) == 0)
            continue;
        if (have)
            sums_add(v, &t->partial[level]);
        else
            *v = t->partial[level];
        have = true;
    }
}

/* One leaf of `lanes` channels that begin at dy. */
REF_INLINE void leaf(const struct bias_grad_dims *d, const struct lks_leaf *f, U32 index,
                     const F32 *dy, U32 lanes, struct sums *to)
{
    struct counter pieces = {.count = 0}; /* piece.h */
    struct sums s;
    U32 n0, n1, r0, r1, fill = 0;
    memset(&s, 0, sizeof s);
    lks_leaf_range(f, index, &n0, &n1, &r0, &r1);
    for (U32 n = n0; n < n1; n++) {
        const F32 *p = dy + ((U64)n * d->h + r0) * d->w * d->k;
        for (U64 i = (U64)(r1 - r0) * d->w; i > 0; i--, p += d->k) {
            if (fill == LKS_SPAN) {
                push(&pieces, &s);
                memset(&s, 0, sizeof s);
                fill = 0;
            }
            fill++;
            if (lanes == LANES)
                for (int j = 0; j < LANES; j++)
                    s.v[j] = s.v[j] + p[j];
            else
                for (U32 j = 0; j < lanes; j++)
                    s.v[j] = s.v[j] + p[j];
        }
    }
    push(&pieces, &s);
    root(&pieces, to);
}

U64 lksi_bias_grad_ref_parts(const struct lksi_call *call)
{
    return (lksi_bias_grad_dims(call)->k + LANES - 1) / LANES;
}

LKSI_CLONES void lksi_bias_grad_ref(const struct lksi_call *call, const void *const *in,
                                    void *const *out, U64 p0, U64 p1)
{
    const struct bias_grad_dims *d = lksi_bias_grad_dims(call);
    struct lks_leaf f = lks_leaf_make(d->n, d->h, d->w, d->leaf);
    struct counter sample, batch;
    struct sums s;
    for (U64 part = p0; part < p1; part++) {
        U32 k0 = (U32)part * LANES, lanes = d->k - k0 < LANES ? d->k - k0 : LANES;
        const F32 *dy = (const F32 *)in[0] + k0;
        batch.count = 0;
        for (U32 j = 0; j < f.leaves; j += f.cut) {
            sample.count = 0;
            for (U32 c = 0; c < f.cut; c++) {
                leaf(d, &f, j + c, dy, lanes, &s);
                push(&sample, &s);
            }
            root(&sample, &s);
            push(&batch, &s);
        }
        root(&batch, &s);
        for (U32 j = 0; j < lanes; j++)
            ((F32 *)out[0])[k0 + j] = s.v[j] + 0.0f;
    }
}
