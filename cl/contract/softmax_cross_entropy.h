/*
 * softmax_cross_entropy.h - contracts of softmax_cross_entropy and its gradient (rule 6): cross
 * entropy over rows or positions, maybe with label smoothing, class weights, an ignored label.
 *
 * prob[r,f] = exp(x[r,f] - max) / sum;  loss[r] = -log prob[r,label];  hit[r]: is the label first?
 * A position r has F logits and a label; w is the weight of each class, 1 without weights;
 * keep = (F32)(1.0 - smoothing), part = (F32)(smoothing / F), both from the host.
 *   1. max = x[r,0]; for f upward: if x[r,f] > max, max = x[r,f] and its index is the argmax.
 *   2. e_f = lks_exp(x[r,f] - max).
 *   3. sum = row sum of e_f: 32 lanes and a tree, in pieces of 4096 (sum.h), then + 0.0f.
 *   4. prob = lks_div(e_f, sum).
 *   5. nll_f = lks_log(sum) - (x[r,f] - max).
 *   6. loss = (keep * w[label]) * nll_label.
 *   7. With smoothing: S = row of products w_f nll_f (rule 6), + 0.0f; loss = fma(part, S, loss).
 *   8. weight = w[label]. hit = argmax == label ? 1 : 0.
 *   9. The ignored label: loss, weight and hit are +0.
 * Then, outside, the mean of `loss` over the batch is divided by the mean of `weight`, if there are
 * weights or an ignored label.
 * Special values: another label outside [0, F) gives loss NaN, hit 0, weight 1. A row with a NaN or
 * +inf gives NaN probabilities and loss. Error bound, with u = 2^-24 and D = max - x[r,f]: prob
 * within (D + ln F + 160) u of its value, nll within (3 ln F + 160 + 2 nll) u; the loss within that
 * of each nll times its weight, and 4 roundings more.
 *
 * softmax_cross_entropy_grad:  dx_f = g * dloss[r]; 0 for the ignored label
 *   10. g = (keep * w[label]) * (prob_f - onehot); onehot = f == label ? 1 : 0 (0 everywhere for a
 *       label outside).
 *   11. With smoothing: g = fma(part, fma(W, prob_f, 0 - w_f), g), W = sum of w in double, rounded.
 * Error bound: 8 roundings of its terms; 1 ulp without options.
 */
#ifndef LKS_CONTRACT_SOFTMAX_CROSS_ENTROPY_H
#define LKS_CONTRACT_SOFTMAX_CROSS_ENTROPY_H

#include "contract/exp.h"
#include "contract/log.h"
#include "contract/num.h"
#include "contract/sum.h"

#define LKS_LOSS_CLASSES 96 /* classes that may have weights */

struct cross_entropy_dims {
    U32 f;
    U32 smooth, weighted, ignores; /* yes or no */
    I32 ignored;
    F32 keep, part, total;
    F32 w[LKS_LOSS_CLASSES];
};

LKS_INLINE F32 lks_class_weight(LKS_CONST struct cross_entropy_dims *d, U32 f)
{
    return d->weighted ? d->w[f] : 1.0f;
}

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

/* Steps 5, 6, 8 and 9 of a position, and the end of 7, whose S is `smooth`. */
LKS_INLINE void lks_cross_entropy(LKS_GLOBAL LKS_CONST F32 *x, I32 label, U32 arg, F32 top, F32 lse,
                                  F32 smooth, LKS_GLOBAL F32 *loss, LKS_GLOBAL F32 *hit,
                                  LKS_GLOBAL F32 *weight, LKS_CONST struct cross_entropy_dims *d)
{
    F32 w, value;
    if (d->ignores && label == d->ignored) {
        *loss = 0.0f;
        *hit = 0.0f;
        *weight = 0.0f;
    } else if (label < 0 || (U32)label >= d->f) {
        *loss = lks_nan();
        *hit = 0.0f;
        *weight = 1.0f;
    } else {
        w = lks_class_weight(d, (U32)label);
        value = d->keep * w * (lse - (x[label] - top));
        *loss = d->smooth ? lks_fma(d->part, smooth, value) : value;
        *hit = arg == (U32)label ? 1.0f : 0.0f;
        *weight = w;
    }
}

/* One item a position. */
LKS_INLINE void softmax_cross_entropy_item(LKS_GLOBAL LKS_CONST F32 *logits,
                                           LKS_GLOBAL LKS_CONST I32 *labels, LKS_GLOBAL F32 *loss,
                                           LKS_GLOBAL F32 *prob, LKS_GLOBAL F32 *hit,
                                           LKS_GLOBAL F32 *weight,
                                           LKS_CONST struct cross_entropy_dims *d, U64 r)
{
    LKS_GLOBAL LKS_CONST F32 *x = logits + r * d->f;
    struct lks_row row;
    U32 f, arg;
    F32 top, lse, smooth = 0.0f;
    lse = lks_log(lks_softmax_probabilities(x, prob + r * d->f, d->f, &top, &arg));
    if (d->smooth) {
        lks_row_init(&row);
        for (f = 0u; f < d->f; f += 1u)
            lks_row_fma(&row, lks_class_weight(d, f), lse - (x[f] - top));
        smooth = lks_final(lks_row_end(&row));
    }
    lks_cross_entropy(x, labels[r], arg, top, lse, smooth, loss + r, hit + r, weight + r, d);
}

LKS_INLINE void softmax_cross_entropy_grad_item(LKS_GLOBAL LKS_CONST F32 *prob,
                                                LKS_GLOBAL LKS_CONST I32 *labels,
                                                LKS_GLOBAL LKS_CONST F32 *dloss,
                                                LKS_GLOBAL F32 *dlogits,
                                                LKS_CONST struct cross_entropy_dims *d, U64 i)
{
    U64 r = i / d->f;
    U32 f = (U32)(i % d->f);
    I32 label = labels[r];
    I32 inside = label >= 0 && (U32)label < d->f;
    F32 one = inside && (U32)label == f ? 1.0f : 0.0f;
    F32 w = inside ? lks_class_weight(d, (U32)label) : 1.0f;
    F32 g = d->keep * w * (prob[i] - one);
    if (d->smooth)
        g = lks_fma(d->part, lks_fma(d->total, prob[i], 0.0f - lks_class_weight(d, f)), g);
    dlogits[i] = d->ignores && label == d->ignored ? 0.0f : g * dloss[r];
}

#endif
