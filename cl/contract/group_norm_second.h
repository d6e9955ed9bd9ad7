/*
 * group_norm_second.h - contract of group_norm_second, the gradient of group_norm_grad (numerics.md,
 * rule 6): rows, R and items as in group_norm.h. From x, dy, mean, invstd, gamma and u, what flows
 * back to dx = group_norm_grad(x, dy, ...):
 *
 *   1. g = dy * gamma; xhat = (x - mean) * invstd. Row sums + 0.0f, each times (F32)(1.0/R):
 *      a of g, b of fma(g, xhat, .), p of u, q of fma(u, xhat, .), r of fma(u, g, .).
 *   2. ju = invstd * fma(-xhat, q, u - p); jg = invstd * fma(-xhat, b, g - a).
 *   3. ddy = ju * gamma; for gamma, element by element, dg = ju * dy.
 *   4. e = r - fma(p, a, q * b); dx = -invstd * fma(invstd * xhat, e, fma(b, ju, q * jg)).
 *      It holds what reaches x through mean and invstd too.
 * Special values follow IEEE-754. Error bound: the five means are off by r U of their magnitudes, as
 * in group_norm.h; the results by these and 8 U more.
 */
#ifndef LKS_CONTRACT_GROUP_NORM_SECOND_H
#define LKS_CONTRACT_GROUP_NORM_SECOND_H

#include "contract/group_norm.h"

/* The factors of an element. */
struct lks_norm_place {
    F32 xhat, g, u;
};

LKS_INLINE struct lks_norm_place
lks_norm_at(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *dy,
            LKS_GLOBAL LKS_CONST F32 *gamma, LKS_GLOBAL LKS_CONST F32 *u, F32 m, F32 s, U64 e,
            U32 c)
{
    struct lks_norm_place v;
    v.xhat = (x[e] - m) * s;
    v.g = dy[e] * gamma[c];
    v.u = u[e];
    return v;
}

LKS_INLINE void group_norm_second_item(
    LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *dy, LKS_GLOBAL LKS_CONST F32 *mean,
    LKS_GLOBAL LKS_CONST F32 *invstd, LKS_GLOBAL LKS_CONST F32 *gamma, LKS_GLOBAL LKS_CONST F32 *u,
    LKS_GLOBAL F32 *dx, LKS_GLOBAL F32 *ddy, LKS_GLOBAL F32 *dg,
    LKS_CONST struct group_norm_dims *d, U64 i)
{
    U32 grp, p, c, k;
    for (grp = 0u; grp < d->groups; grp += 1u) {
        U64 at = i * d->places * d->c + grp * d->cg;
        F32 m = mean[i * d->groups + grp], s = invstd[i * d->groups + grp];
        F32 sum[5]; /* a, b, p, q, r */
        F32 rest;
        for (k = 0u; k < 5u; k += 1u) {
            struct lks_row row;
            lks_row_init(&row);
            for (p = 0u; p < d->places; p += 1u) {
                for (c = 0u; c < d->cg; c += 1u) {
                    struct lks_norm_place v = lks_norm_at(x, dy, gamma, u, m, s,
                                                          at + (U64)p * d->c + c, grp * d->cg + c);
                    if (k == 0u || k == 2u)
                        lks_row_add(&row, k == 0u ? v.g : v.u);
                    else
                        lks_row_fma(&row, k == 1u ? v.g : v.u, k == 4u ? v.g : v.xhat);
                }
            }
            sum[k] = lks_final(lks_row_end(&row)) * d->inverse;
        }
        rest = sum[4] - lks_fma(sum[2], sum[0], sum[3] * sum[1]);
        for (p = 0u; p < d->places; p += 1u) {
            for (c = 0u; c < d->cg; c += 1u) {
                U64 e = at + (U64)p * d->c + c;
                struct lks_norm_place v =
                    lks_norm_at(x, dy, gamma, u, m, s, e, grp * d->cg + c);
                F32 ju = s * lks_fma(-v.xhat, sum[3], v.u - sum[2]);
                F32 jg = s * lks_fma(-v.xhat, sum[1], v.g - sum[0]);
                ddy[e] = ju * gamma[grp * d->cg + c];
                dg[e] = ju * dy[e];
                dx[e] = -s * lks_fma(s * v.xhat, rest, lks_fma(sum[1], ju, sum[3] * jg));
            }
        }
    }
}

#endif
