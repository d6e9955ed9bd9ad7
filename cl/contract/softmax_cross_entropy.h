/*
 * softmax_cross_entropy.h - contracts of softmax_cross_entropy and its gradient (rule 6).
 *
 * prob[n,f] = exp(x[n,f] - max) / sum;  loss[n] = -log prob[n,label];  hit[n]: is the label first?
 *   1. max = x[n,0]; for f upward: if x[n,f] > max, max = x[n,f] and its index is the argmax.
 *   2. e_f = lks_exp(x[n,f] - max).
 *   3. sum = row sum of e_f: 32 lanes and a tree, in pieces of 4096 (sum.h), then + 0.0f.
 *   4. prob = lks_div(e_f, sum).
 *   5. loss = lks_log(sum) - (x[n,label] - max).
 *   6. hit = argmax == label ? 1 : 0.
 * Special values: a label outside [0, F) gives loss NaN and hit 0. A row with a NaN or +inf gives
 * NaN probabilities and loss. Error bound, with u = 2^-24 and D = max - x[n,f]: prob within
 * (D + ln F + 160) u of its value, loss within (3 ln F + 160 + 2 loss) u.
 *
 * softmax_cross_entropy_grad:  dlogits[n,f] = (prob[n,f] - onehot) * dloss[n]
 *   1. onehot = f == label ? 1 : 0 (0 everywhere for a label outside); one subtraction, one
 * product. Error bound: 1 ulp.
 */
#ifndef LKS_CONTRACT_SOFTMAX_CROSS_ENTROPY_H
#define LKS_CONTRACT_SOFTMAX_CROSS_ENTROPY_H

#include "contract/exp.h"
#include "contract/log.h"
#include "contract/num.h"
#include "contract/sum.h"

struct softmax_dims {
    U32 n, f; /* rows and classes */
};

/* Steps 1 to 4 for a row of f logits; returns the sum. */
LKS_INLINE F32 lks_softmax_probabilities(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL F32 *p, U32 f,
                                         F32 *top, U32 *arg)
{
    struct lks_row row;
    F32 sum;
    U32 i;
    *top = x[0];
    *arg = 0u;
    for (i = 1u; i < f; i += 1u) {
        if (x[i] > *top) {
            *top = x[i];
            *arg = i;
        }
    }
    lks_row_init(&row);
    for (i = 0u; i < f; i += 1u) {
        p[i] = lks_exp(x[i] - *top);
        lks_row_add(&row, p[i]);
    }
    sum = lks_final(lks_row_end(&row));
    for (i = 0u; i < f; i += 1u)
        p[i] = lks_div(p[i], sum);
    return sum;
}

/* One item a row. */
LKS_INLINE void softmax_cross_entropy_item(LKS_GLOBAL LKS_CONST F32 *logits,
                                           LKS_GLOBAL LKS_CONST I32 *labels, LKS_GLOBAL F32 *loss,
                                           LKS_GLOBAL F32 *prob, LKS_GLOBAL F32 *hit,
                                           LKS_CONST struct softmax_dims *d, U64 n)
{
    LKS_GLOBAL LKS_CONST F32 *x = logits + n * d->f;
    LKS_GLOBAL F32 *p = prob + n * d->f;
    I32 label = labels[n];
    U32 arg;
    F32 top, sum;
    sum = lks_softmax_probabilities(x, p, d->f, &top, &arg);
    if (label < 0 || (U32)label >= d->f) {
        loss[n] = lks_nan();
        hit[n] = 0.0f;
    } else {
        loss[n] = lks_log(sum) - (x[label] - top);
        hit[n] = arg == (U32)label ? 1.0f : 0.0f;
    }
}

LKS_INLINE void softmax_cross_entropy_grad_item(LKS_GLOBAL LKS_CONST F32 *prob,
                                                LKS_GLOBAL LKS_CONST I32 *labels,
                                                LKS_GLOBAL LKS_CONST F32 *dloss,
                                                LKS_GLOBAL F32 *dlogits,
                                                LKS_CONST struct softmax_dims *d, U64 i)
{
    U64 n = i / d->f;
    U32 f = (U32)(i % d->f);
    I32 label = labels[n];
    F32 one = label >= 0 && (U32)label == f ? 1.0f : 0.0f;
    dlogits[i] = (prob[i] - one) * dloss[n];
}

#endif
