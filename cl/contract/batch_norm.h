/*
 * batch_norm.h - contracts of batch_norm, batch_norm_grad, batch_norm_infer and batch_norm_running
 * (numerics.md, rule 8). x is [N,C] (one position a sample) or [N,H,W,C]; M = N*H*W.
 *
 * batch_norm: mean, variance and invstd = 1/sqrt(variance + eps) of each channel, and
 * y = (x - mean) * invstd * gamma + beta. One item a channel.
 *   1. The batch is cut by leaf.h. A leaf: its positions in the order (n, h, w) are cut into pieces
 *      of LKS_SPAN (piece.h), each acc = +0; acc = acc + x, and the pieces meet in a tree;
 *      leaf mean = lks_div(root, positions of the leaf).
 *   2. M2: the same of acc = fma(d, d, acc) with d = x - leaf mean.
 *   3. The leaves of a cut sample meet in a tree, then samples or groups in a tree, by chan.h.
 *   4. mean = root mean + 0.0f; variance = lks_div(root M2, (F32)M), the biased one.
 *   5. invstd = lks_div(1, lks_sqrt(variance + eps)), a NaN if variance + eps is infinite: 0 would
 *      make y finite, and guard (rule 12) would not see that the variance is lost.
 *   6. xhat = (x - mean) * invstd; y = fma(xhat, gamma, beta).
 *   7. y = y + rest, if there is a `rest` of x's shape (the other operand of an `add` behind).
 *   8. y = y <= 0 ? +0 : y, if `relu` is set.
 * batch_norm_grad: from x, dy, mean, invstd, gamma
 *   1. xhat as above. Leaves in pieces as above: db = db + dy; dg = fma(dy, xhat, dg), from +0;
 *      each in the trees of piece.h and leaf.h, then + 0.0f: dbeta, dgamma.
 *   2. inv = (F32)(1.0/M) from the host; a = dbeta * inv; b = dgamma * inv; k = gamma * invstd.
 *   3. dx = k * fma(-xhat, b, dy - a).
 * batch_norm_infer: steps 5 to 8 with the running statistics.
 * batch_norm_running: unless flag[0] != 0 (then nothing changes), with the momentum m,
 *   1. running_mean = fma(m, mean - running_mean, running_mean)
 *   2. running_var = fma(m, variance * u - running_var, running_var), u = (F32)(M/(M-1.0)) from the
 *      host, 1 if M = 1: the running variance is the unbiased one, as in PyTorch.
 *   3. A result that is not finite is not taken: the running one stays.
 * Special values follow IEEE-754. Error bounds, with U = 2^-24, P = LKS_SPAN + log2 of a leaf's
 * pieces, L levels and E = (P + 3L + 2) U max|x|: the mean is off by E; M2 by (P + 6L + 2) U M2 + M
 * (L+1) E^2 + 2 E sqrt(M2 M L); y follows with 4 U more. Sums of the gradient: (P + L + 2) U of the
 * magnitudes.
 */
#ifndef LKS_CONTRACT_BATCH_NORM_H
#define LKS_CONTRACT_BATCH_NORM_H

#include "contract/chan.h"
#include "contract/leaf.h"
#include "contract/num.h"
#include "contract/piece.h"

struct batch_norm_dims {
    U32 n, h, w, c;
    U32 leaf; /* samples a block */
    F32 eps;
    F32 count;    /* M */
    F32 inverse;  /* 1/M */
    F32 momentum; /* of the running statistics */
    F32 unbias;   /* M/(M-1) */
    U32 rest;     /* 1: step 7 */
    U32 relu;     /* 1: step 8 */
    struct lks_chan chan;
};

/* The positions [*p0, *p1) of leaf j: rows of one sample, or whole samples. */
LKS_INLINE void lks_norm_range(LKS_CONST struct batch_norm_dims *d, LKS_CONST struct lks_leaf *f,
                               U32 j, U64 *p0, U64 *p1)
{
    U32 n0, n1, r0, r1;
    lks_leaf_range(f, j, &n0, &n1, &r0, &r1);
    *p0 = ((U64)n0 * d->h + r0) * d->w;
    *p1 = ((U64)(n1 - 1u) * d->h + r1) * d->w;
}

LKS_INLINE F32 lks_norm_invstd(F32 variance, F32 eps)
{
    F32 v = variance + eps;
    return lks_isfinite(v) ? lks_div(1.0f, lks_sqrt(v)) : lks_nan();
}

/* Steps 6 to 8 for element e of channel c. */
LKS_INLINE F32 lks_norm_apply(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *rest, U64 e,
                              F32 mean, F32 invstd, F32 gamma, F32 beta,
                              LKS_CONST struct batch_norm_dims *d)
{
    F32 y = lks_fma((x[e] - mean) * invstd, gamma, beta);
    if (d->rest != 0u)
        y = y + rest[e];
    return d->relu != 0u && y <= 0.0f ? 0.0f : y;
}

/* Mean and M2 of leaf j of channel c. */
LKS_INLINE struct lks_moments lks_norm_leaf(LKS_GLOBAL LKS_CONST F32 *x,
                                            LKS_CONST struct batch_norm_dims *d,
                                            LKS_CONST struct lks_leaf *f, U32 j, U64 c)
{
    struct lks_moments v;
    U64 p, p0, p1;
    struct lks_span sum;
    lks_norm_range(d, f, j, &p0, &p1);
    lks_span_init(&sum);
    for (p = p0; p < p1; p += 1u)
        lks_span_add(&sum, x[p * d->c + c]);
    v.mean = lks_div(lks_span_end(&sum), (F32)(U32)(p1 - p0));
    lks_span_init(&sum);
    for (p = p0; p < p1; p += 1u) {
        F32 e = x[p * d->c + c] - v.mean;
        lks_span_fma(&sum, e, e);
    }
    v.m2 = lks_span_end(&sum);
    return v;
}

LKS_INLINE void batch_norm_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *gamma,
                                LKS_GLOBAL LKS_CONST F32 *beta, LKS_GLOBAL LKS_CONST F32 *rest,
                                LKS_GLOBAL F32 *y, LKS_GLOBAL F32 *mean, LKS_GLOBAL F32 *variance,
                                LKS_GLOBAL F32 *invstd, LKS_CONST struct batch_norm_dims *d, U64 i)
{
    struct lks_leaf f = lks_leaf_make(d->n, d->h, d->w, d->leaf);
    struct lks_chan_counter sample, batch;
    struct lks_moments v;
    U64 p, positions = (U64)d->n * d->h * d->w;
    U32 j;
    F32 m, s;
    batch.count = 0u;
    sample.count = 0u;
    for (j = 0u; j < f.leaves; j += 1u) {
        lks_chan_push(&sample, &d->chan.sample, f.cut, lks_norm_leaf(x, d, &f, j, i));
        if (sample.count == f.cut) {
            lks_chan_push(&batch, &d->chan.batch, f.leaves / f.cut,
                          lks_chan_root(&sample, &d->chan.sample));
            sample.count = 0u;
        }
    }
    v = lks_chan_root(&batch, &d->chan.batch);
    m = v.mean + 0.0f;
    mean[i] = m;
    variance[i] = lks_div(v.m2, d->count);
    s = lks_norm_invstd(variance[i], d->eps);
    invstd[i] = s;
    for (p = 0u; p < positions; p += 1u)
        y[p * d->c + i] = lks_norm_apply(x, rest, p * d->c + i, m, s, gamma[i], beta[i], d);
}

LKS_INLINE void batch_norm_grad_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *dy,
                                     LKS_GLOBAL LKS_CONST F32 *mean,
                                     LKS_GLOBAL LKS_CONST F32 *invstd,
                                     LKS_GLOBAL LKS_CONST F32 *gamma, LKS_GLOBAL F32 *dx,
                                     LKS_GLOBAL F32 *dgamma, LKS_GLOBAL F32 *dbeta,
                                     LKS_CONST struct batch_norm_dims *d, U64 i)
{
    struct lks_leaf f = lks_leaf_make(d->n, d->h, d->w, d->leaf);
    struct lks_leaf_tree gt, bt;
    U64 p, p0, p1, positions = (U64)d->n * d->h * d->w;
    U32 j;
    F32 a, b, m = mean[i], s = invstd[i], k = gamma[i] * s;
    lks_leaf_tree_init(&gt);
    lks_leaf_tree_init(&bt);
    for (j = 0u; j < f.leaves; j += 1u) {
        struct lks_span dg, db;
        lks_span_init(&dg);
        lks_span_init(&db);
        lks_norm_range(d, &f, j, &p0, &p1);
        for (p = p0; p < p1; p += 1u) {
            F32 g = dy[p * d->c + i];
            lks_span_add(&db, g);
            lks_span_fma(&dg, g, (x[p * d->c + i] - m) * s);
        }
        lks_leaf_tree_push(&gt, &f, lks_span_end(&dg));
        lks_leaf_tree_push(&bt, &f, lks_span_end(&db));
    }
    b = lks_leaf_tree_root(&gt) + 0.0f;
    a = lks_leaf_tree_root(&bt) + 0.0f;
    dgamma[i] = b;
    dbeta[i] = a;
    a = a * d->inverse;
    b = b * d->inverse;
    for (p = 0u; p < positions; p += 1u) {
        F32 xhat = (x[p * d->c + i] - m) * s;
        dx[p * d->c + i] = k * lks_fma(-xhat, b, dy[p * d->c + i] - a);
    }
}

LKS_INLINE void batch_norm_infer_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *gamma,
                                      LKS_GLOBAL LKS_CONST F32 *beta,
                                      LKS_GLOBAL LKS_CONST F32 *mean,
                                      LKS_GLOBAL LKS_CONST F32 *variance,
                                      LKS_GLOBAL LKS_CONST F32 *rest, LKS_GLOBAL F32 *y,
                                      LKS_CONST struct batch_norm_dims *d, U64 i)
{
    U64 c = i % d->c;
    F32 s = lks_norm_invstd(variance[c], d->eps);
    y[i] = lks_norm_apply(x, rest, i, mean[c], s, gamma[c], beta[c], d);
}

LKS_INLINE void
batch_norm_running_item(LKS_GLOBAL LKS_CONST F32 *mean, LKS_GLOBAL LKS_CONST F32 *variance,
                        LKS_GLOBAL LKS_CONST F32 *old_mean, LKS_GLOBAL LKS_CONST F32 *old_variance,
                        LKS_GLOBAL LKS_CONST I32 *flag, LKS_GLOBAL F32 *new_mean,
                        LKS_GLOBAL F32 *new_variance, LKS_CONST struct batch_norm_dims *d, U64 i)
{
    F32 rm = old_mean[i], rv = old_variance[i];
    F32 m = lks_fma(d->momentum, mean[i] - rm, rm);
    F32 v = lks_fma(d->momentum, variance[i] * d->unbias - rv, rv);
    new_mean[i] = flag[0] != 0 || !lks_isfinite(m) ? rm : m;
    new_variance[i] = flag[0] != 0 || !lks_isfinite(v) ? rv : v;
}

#endif
