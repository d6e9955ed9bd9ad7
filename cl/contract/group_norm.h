/*
 * group_norm.h - contracts of group_norm, group_norm_grad and group_norm_param_grad (numerics.md,
 * rules 6 and 8): normalisation of each sample by itself. x is [N,C], [N,H,C] or [N,H,W,C]; its
 * channels form `groups` groups of C/groups neighbours. A row is one sample and one group and runs
 * over (h, w, c in the group); as layer norm a row is one position and runs over all channels (one
 * group). Instance norm has one channel a group. R elements a row.
 *
 * group_norm: y = (x - mean) * invstd * gamma + beta. One item a sample (layer norm: a position).
 *   1. mean = lks_div(row sum of x + 0.0f, (F32)R): 32 lanes and a tree, in pieces of 4096 (sum.h).
 *   2. d = x - mean; M2 = row sum of fma(d, d, .), + 0.0f; variance = lks_div(M2, (F32)R).
 *   3. invstd = lks_div(1, lks_sqrt(variance + eps)).
 *   4. xhat = (x - mean) * invstd; y = fma(xhat, gamma, beta).
 * group_norm_grad: dx, from x, dy, mean, invstd and gamma
 *   1. g = dy * gamma; xhat as above. a = row sum of g + 0.0f, b = row sum of fma(g, xhat, .) +
 *      0.0f; both times (F32)(1.0/R) from the host.
 *   2. dx = invstd * fma(-xhat, b, g - a).
 * group_norm_param_grad: dgamma, dbeta. One item a channel.
 *   1. The batch is cut by leaf.h over the positions of x. A leaf, in the order (n, h, w), in
 *      pieces of LKS_SPAN (piece.h) from +0: dg = fma(dy, xhat, dg), db = db + dy. The pieces meet
 *      in a tree, then the leaves in that of leaf.h, then + 0.0f.
 * Special values follow IEEE-754. Error bounds, with U = 2^-24 and r = min(R, 4096)/32 + 5 +
 * log2(R/4096) + 2: the mean is off by E = r U mean|x|, M2 by r U M2 + R E^2, a and b by r U of the
 * magnitudes; y follows with 4 U more.
 */
#ifndef LKS_CONTRACT_GROUP_NORM_H
#define LKS_CONTRACT_GROUP_NORM_H

#include "contract/leaf.h"
#include "contract/num.h"
#include "contract/piece.h"
#include "contract/sum.h"

struct group_norm_dims {
    U32 n, h, w, c;
    U32 leaf;       /* samples a block */
    U32 groups, cg; /* cg channels each */
    U32 layer;      /* a row is one position */
    U32 places;     /* positions of a row: h*w, or 1 */
    F32 eps;
    F32 count;   /* R */
    F32 inverse; /* 1/R */
};

LKS_INLINE void group_norm_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *gamma,
                                LKS_GLOBAL LKS_CONST F32 *beta, LKS_GLOBAL F32 *y,
                                LKS_GLOBAL F32 *mean, LKS_GLOBAL F32 *invstd,
                                LKS_CONST struct group_norm_dims *d, U64 i)
{
    U32 g, p, c;
    for (g = 0u; g < d->groups; g += 1u) {
        U64 at = i * d->places * d->c + g * d->cg;
        struct lks_row row;
        F32 m, s;
        lks_row_init(&row);
        for (p = 0u; p < d->places; p += 1u)
            for (c = 0u; c < d->cg; c += 1u)
                lks_row_add(&row, x[at + (U64)p * d->c + c]);
        m = lks_div(lks_final(lks_row_end(&row)), d->count);
        lks_row_init(&row);
        for (p = 0u; p < d->places; p += 1u) {
            for (c = 0u; c < d->cg; c += 1u) {
                F32 e = x[at + (U64)p * d->c + c] - m;
                lks_row_fma(&row, e, e);
            }
        }
        s = lks_div(lks_final(lks_row_end(&row)), d->count);
        s = lks_div(1.0f, lks_sqrt(s + d->eps));
        mean[i * d->groups + g] = m;
        invstd[i * d->groups + g] = s;
        for (p = 0u; p < d->places; p += 1u)
            for (c = 0u; c < d->cg; c += 1u)
                y[at + (U64)p * d->c + c] = lks_fma((x[at + (U64)p * d->c + c] - m) * s,
                                                    gamma[g * d->cg + c], beta[g * d->cg + c]);
    }
}

LKS_INLINE void group_norm_grad_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *dy,
                                     LKS_GLOBAL LKS_CONST F32 *mean,
                                     LKS_GLOBAL LKS_CONST F32 *invstd,
                                     LKS_GLOBAL LKS_CONST F32 *gamma, LKS_GLOBAL F32 *dx,
                                     LKS_CONST struct group_norm_dims *d, U64 i)
{
    U32 g, p, c;
    for (g = 0u; g < d->groups; g += 1u) {
        U64 at = i * d->places * d->c + g * d->cg;
        F32 m = mean[i * d->groups + g], s = invstd[i * d->groups + g], a, b;
        struct lks_row one, two;
        lks_row_init(&one);
        lks_row_init(&two);
        for (p = 0u; p < d->places; p += 1u) {
            for (c = 0u; c < d->cg; c += 1u) {
                U64 e = at + (U64)p * d->c + c;
                F32 t = dy[e] * gamma[g * d->cg + c];
                lks_row_add(&one, t);
                lks_row_fma(&two, t, (x[e] - m) * s);
            }
        }
        a = lks_final(lks_row_end(&one)) * d->inverse;
        b = lks_final(lks_row_end(&two)) * d->inverse;
        for (p = 0u; p < d->places; p += 1u) {
            for (c = 0u; c < d->cg; c += 1u) {
                U64 e = at + (U64)p * d->c + c;
                F32 xhat = (x[e] - m) * s;
                dx[e] = s * lks_fma(-xhat, b, dy[e] * gamma[g * d->cg + c] - a);
            }
        }
    }
}

/* The sums of leaf j for channel c. */
LKS_INLINE void lks_group_leaf(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *dy,
                               LKS_GLOBAL LKS_CONST F32 *mean, LKS_GLOBAL LKS_CONST F32 *invstd,
                               LKS_CONST struct group_norm_dims *d, LKS_CONST struct lks_leaf *f,
                               U32 j, U32 c, F32 *dg, F32 *db)
{
    U32 n0, n1, r0, r1, n;
    struct lks_span g, b;
    lks_span_init(&g);
    lks_span_init(&b);
    lks_leaf_range(f, j, &n0, &n1, &r0, &r1);
    for (n = n0; n < n1; n += 1u) {
        U64 p = ((U64)n * d->h + r0) * d->w, end = ((U64)n * d->h + r1) * d->w;
        for (; p < end; p += 1u) {
            U64 row = d->layer != 0u ? p : (U64)n * d->groups + c / d->cg;
            F32 t = dy[p * d->c + c];
            lks_span_fma(&g, t, (x[p * d->c + c] - mean[row]) * invstd[row]);
            lks_span_add(&b, t);
        }
    }
    *dg = lks_span_end(&g);
    *db = lks_span_end(&b);
}

LKS_INLINE void group_norm_param_grad_item(LKS_GLOBAL LKS_CONST F32 *x,
                                           LKS_GLOBAL LKS_CONST F32 *dy,
                                           LKS_GLOBAL LKS_CONST F32 *mean,
                                           LKS_GLOBAL LKS_CONST F32 *invstd, LKS_GLOBAL F32 *dgamma,
                                           LKS_GLOBAL F32 *dbeta,
                                           LKS_CONST struct group_norm_dims *d, U64 i)
{
    struct lks_leaf f = lks_leaf_make(d->n, d->h, d->w, d->leaf);
    struct lks_leaf_tree gt, bt;
    U32 j;
    lks_leaf_tree_init(&gt);
    lks_leaf_tree_init(&bt);
    for (j = 0u; j < f.leaves; j += 1u) {
        F32 dg, db;
        lks_group_leaf(x, dy, mean, invstd, d, &f, j, (U32)i, &dg, &db);
        lks_leaf_tree_push(&gt, &f, dg);
        lks_leaf_tree_push(&bt, &f, db);
    }
    dgamma[i] = lks_leaf_tree_root(&gt) + 0.0f;
    dbeta[i] = lks_leaf_tree_root(&bt) + 0.0f;
}

#endif
