/*
 * reduce_max.h - contracts of the greatest and the least over axes, and of what moves with them
 * (numerics.md, rule 9). The axes are any but axis 0, which counts the samples.
 *
 * reduce_max:  y[kept] = the greatest of x over the reduced axes; at[kept] = its place among them, in
 *              the order of x, as a whole number
 *   1. The first element is the winner. A later one replaces it if it is greater (`>`), or if it is
 *      the first NaN. So of equal ones the first wins, of -0 and +0 the earlier one.
 * reduce_min:  the same with the least and `<`.
 * reduce_put:  dx[element] = dy[kept] where the element's place is at[kept], else +0
 * reduce_pick: y[kept] = v at the place at[kept]
 *
 * Nothing rounds; the error is 0. `at` comes from reduce_max or reduce_min: below the places, no NaN;
 * its fraction does not count.
 */
#ifndef LKS_CONTRACT_REDUCE_MAX_H
#define LKS_CONTRACT_REDUCE_MAX_H

#include "contract/num.h"
#include "contract/reduce.h"

LKS_INLINE void lks_reduce_winner(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL F32 *y,
                                  LKS_GLOBAL F32 *at, LKS_CONST struct reduce_dims *d, U64 e,
                                  I32 least)
{
    U64 begin = lks_reduce_kept(d, e);
    F32 best = x[begin];
    U32 p, winner = 0u;
    for (p = 1u; p < d->positions; p += 1u) {
        F32 v = x[begin + lks_reduce_off(d, p)];
        I32 wins = least ? v < best : v > best;
        if (wins || (lks_isnan(v) && !lks_isnan(best))) {
            best = v;
            winner = p;
        }
    }
    y[e] = best;
    at[e] = (F32)(I32)winner;
}

LKS_INLINE void reduce_max_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL F32 *y, LKS_GLOBAL F32 *at,
                                LKS_CONST struct reduce_dims *d, U64 e)
{
    lks_reduce_winner(x, y, at, d, e, 0);
}

LKS_INLINE void reduce_min_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL F32 *y, LKS_GLOBAL F32 *at,
                                LKS_CONST struct reduce_dims *d, U64 e)
{
    lks_reduce_winner(x, y, at, d, e, 1);
}

/* The place of element e among the reduced axes. */
LKS_INLINE U32 lks_reduce_place(LKS_CONST struct reduce_dims *d, U64 e)
{
    U32 p = 0u, size = 1u, k;
    for (k = d->n_all; k > 0u; k -= 1u) {
        U32 i = (U32)(e % d->all[k - 1u]);
        if (d->all_step[k - 1u] == 0u) {
            p += i * size;
            size *= d->all[k - 1u];
        }
        e /= d->all[k - 1u];
    }
    return p;
}

LKS_INLINE void reduce_put_item(LKS_GLOBAL LKS_CONST F32 *dy, LKS_GLOBAL LKS_CONST F32 *at,
                                LKS_GLOBAL LKS_CONST F32 *like, LKS_GLOBAL F32 *dx,
                                LKS_CONST struct reduce_dims *d, U64 e)
{
    U64 kept = lks_expand_place(d, e);
    (void)like;
    dx[e] = (U32)(I32)at[kept] == lks_reduce_place(d, e) ? dy[kept] : 0.0f;
}

LKS_INLINE void reduce_pick_item(LKS_GLOBAL LKS_CONST F32 *v, LKS_GLOBAL LKS_CONST F32 *at,
                                 LKS_GLOBAL F32 *y, LKS_CONST struct reduce_dims *d, U64 e)
{
    y[e] = v[lks_reduce_kept(d, e) + lks_reduce_off(d, (U32)(I32)at[e])];
}

#endif
