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

/* One item a row. */
LKS_INLINE void softmax_cross_entropy_item(LKS_GLOBAL LKS_CONST F32 *logits,
                                           LKS_GLOBAL LKS_CONST I32 *labels, LKS_GLOBAL F32 *loss,
                                           LKS_GLOBAL F32 *prob, LKS_GLOBAL F32 *hit,
                                           LKS_CONST struct softmax_dims *d, U64 n)
{
    LKS_GLOBAL LKS_CONST F32 *x = logits + n * d->f;
    LKS_GLOBAL F32 *p = prob + n * d->f;
    struct lks_row row;
    I32 label = labels[n];
    U32 f, arg = 0u;
    F32 top = x[0], sum;
    for (f = 1u; f < d->f; f += 1u) {
        if (x[f] > top) {
            top = x[f];
            arg = f;
        }
    }
    lks_row_init(&row);
    for (f = 0u; f < d->f; f += 1u) {
        p[f] = lks_exp(x[f] - top);
        lks_row_add(&row, p[f]);
    }
    sum = lks_final(lks_row_end(&row));
    for (f = 0u; f < d->f; f += 1u)
        p[f] = lks_div(p[f], sum);
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
