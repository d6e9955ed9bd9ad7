/*
 * softmax.h - contracts of softmax, log_softmax and their gradients, over the last axis
 * (numerics.md, rules 3 and 6). A row has f elements. With `causal` x is [.., q, f], and row i of
 * the q sees columns 0 to i alone: its length is min(i + 1, f).
 *
 * softmax:      y = exp(x - max) / sum exp(x - max)
 * log_softmax:  y = x - max - log(sum exp(x - max)); it has no causal form
 *   1. max starts at x[0]; a later element replaces it if `>`.
 *   2. e[j] = lks_exp(x[j] - max); s is their row by rule 6, + 0.0f.
 *   3. softmax: y[j] = e[j] / s. log_softmax: y[j] = (x[j] - max) - lks_log(s).
 *   4. Elements beyond the length are +0.
 * softmax_grad:      dx = y * (dy - s), s = row of fma(dy, y, lane) by rule 6, + 0.0f; beyond the
 *                    length +0
 * log_softmax_grad:  dx = fma(-exp(y), s, dy), s = row of dy by rule 6, + 0.0f
 *
 * Special values follow IEEE-754; a row with a NaN or +inf gives NaN. Error bound of e: 1 ulp for
 * exp and |x - max| * 2^-24 for its argument; s adds the depth of the row.
 */
#ifndef LKS_CONTRACT_SOFTMAX_H
#define LKS_CONTRACT_SOFTMAX_H

#include "contract/exp.h"
#include "contract/log.h"
#include "contract/num.h"
#include "contract/sum.h"

struct softmax_row_dims {
    U32 f, q;   /* elements a row; rows a causal square */
    U32 causal; /* 1: row i of q sees columns 0 to i */
};

LKS_INLINE U32 lks_softmax_length(LKS_CONST struct softmax_row_dims *d, U64 row)
{
    U32 i = (U32)(row % d->q);
    return d->causal != 0u && i + 1u < d->f ? i + 1u : d->f;
}

LKS_INLINE void softmax_item(LKS_GLOBAL LKS_CONST F32 *in, LKS_GLOBAL F32 *out,
                             LKS_CONST struct softmax_row_dims *d, U64 row)
{
    LKS_GLOBAL LKS_CONST F32 *x = in + row * d->f;
    LKS_GLOBAL F32 *y = out + row * d->f;
    U32 n = lks_softmax_length(d, row), j;
    struct lks_row sum;
    F32 top = x[0], s;
    for (j = 1u; j < n; j += 1u)
        top = x[j] > top ? x[j] : top;
    lks_row_init(&sum);
    for (j = 0u; j < n; j += 1u) {
        y[j] = lks_exp(x[j] - top);
        lks_row_add(&sum, y[j]);
    }
    s = lks_final(lks_row_end(&sum));
    for (j = 0u; j < d->f; j += 1u)
        y[j] = j < n ? lks_div(y[j], s) : 0.0f;
}

LKS_INLINE void log_softmax_item(LKS_GLOBAL LKS_CONST F32 *in, LKS_GLOBAL F32 *out,
                                 LKS_CONST struct softmax_row_dims *d, U64 row)
{
    LKS_GLOBAL LKS_CONST F32 *x = in + row * d->f;
    LKS_GLOBAL F32 *y = out + row * d->f;
    struct lks_row sum;
    F32 top = x[0], s;
    U32 j;
    for (j = 1u; j < d->f; j += 1u)
        top = x[j] > top ? x[j] : top;
    lks_row_init(&sum);
    for (j = 0u; j < d->f; j += 1u)
        lks_row_add(&sum, lks_exp(x[j] - top));
    s = lks_log(lks_final(lks_row_end(&sum)));
    for (j = 0u; j < d->f; j += 1u)
        y[j] = (x[j] - top) - s;
}

LKS_INLINE void softmax_grad_item(LKS_GLOBAL LKS_CONST F32 *y, LKS_GLOBAL LKS_CONST F32 *dy,
                                  LKS_GLOBAL F32 *dx, LKS_CONST struct softmax_row_dims *d, U64 row)
{
    U32 n = lks_softmax_length(d, row), j;
    U64 at = row * d->f;
    F32 s = lks_final(lks_row_dot(dy + at, 1u, y + at, 1u, n));
    for (j = 0u; j < d->f; j += 1u)
        dx[at + j] = j < n ? y[at + j] * (dy[at + j] - s) : 0.0f;
}

LKS_INLINE void log_softmax_grad_item(LKS_GLOBAL LKS_CONST F32 *y, LKS_GLOBAL LKS_CONST F32 *dy,
                                      LKS_GLOBAL F32 *dx, LKS_CONST struct softmax_row_dims *d,
                                      U64 row)
{
    U64 at = row * d->f;
    F32 s = lks_final(lks_row_sum(dy + at, 1u, d->f));
    U32 j;
    for (j = 0u; j < d->f; j += 1u)
        dx[at + j] = lks_fma(-lks_exp(y[at + j]), s, dy[at + j]);
}

#endif
