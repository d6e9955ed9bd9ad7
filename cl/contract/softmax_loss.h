/*
 * softmax_loss.h - contracts of softmax_loss and its gradient: cross entropy over positions, with
 * label smoothing, class weights and an ignored label. softmax_cross_entropy.h is the plain one.
 *
 * A position r has F logits and a label; w is the weight of each class, 1 without weights;
 * keep = (F32)(1.0 - smoothing), part = (F32)(smoothing / F), both from the host.
 *   1. top, argmax, e_f, sum, prob: steps 1 to 4 of softmax_cross_entropy.h. lse = lks_log(sum).
 *   2. nll_f = lse - (x_f - top).
 *   3. loss = (keep * w[label]) * nll_label.
 *   4. With smoothing: S = row of products w_f nll_f (rule 6), + 0.0f; loss = fma(part, S, loss).
 *   5. weight = w[label]. hit = argmax == label ? 1 : 0.
 *   6. The ignored label: loss, weight and hit are +0.
 * Then, outside, the mean of `loss` over the batch is divided by the mean of `weight`.
 * Special values: another label outside [0, F) gives loss NaN, hit 0, weight 1.
 *
 * softmax_loss_grad:  dx_f = g * dloss[r]; 0 for the ignored label
 *   7. g = (keep * w[label]) * (prob_f - onehot).
 *   8. With smoothing: g = fma(part, fma(W, prob_f, 0 - w_f), g), W = sum of w in double, rounded.
 * Error bound: that of softmax_cross_entropy for each nll, times its weight, and 4 roundings more.
 */
#ifndef LKS_CONTRACT_SOFTMAX_LOSS_H
#define LKS_CONTRACT_SOFTMAX_LOSS_H

#include "contract/exp.h"
#include "contract/log.h"
#include "contract/num.h"
#include "contract/softmax_cross_entropy.h"
#include "contract/sum.h"

#define LKS_LOSS_CLASSES 96 /* classes that may have weights */

struct softmax_loss_dims {
    U32 f;
    U32 smooth, weighted, ignores; /* yes or no */
    I32 ignored;
    F32 keep, part, total;
    F32 w[LKS_LOSS_CLASSES];
};

LKS_INLINE F32 lks_class_weight(LKS_CONST struct softmax_loss_dims *d, U32 f)
{
    return d->weighted ? d->w[f] : 1.0f;
}

LKS_INLINE void softmax_loss_item(LKS_GLOBAL LKS_CONST F32 *logits, LKS_GLOBAL LKS_CONST I32 *labels,
                                  LKS_GLOBAL F32 *loss, LKS_GLOBAL F32 *prob, LKS_GLOBAL F32 *hit,
                                  LKS_GLOBAL F32 *weight, LKS_CONST struct softmax_loss_dims *d,
                                  U64 r)
{
    LKS_GLOBAL LKS_CONST F32 *x = logits + r * d->f;
    LKS_GLOBAL F32 *p = prob + r * d->f;
    struct lks_row row;
    I32 label = labels[r];
    U32 f, arg;
    F32 top, sum, lse, value;
    sum = lks_softmax_probabilities(x, p, d->f, &top, &arg);
    if (d->ignores && label == d->ignored) {
        loss[r] = 0.0f;
        hit[r] = 0.0f;
        weight[r] = 0.0f;
    } else if (label < 0 || (U32)label >= d->f) {
        loss[r] = lks_nan();
        hit[r] = 0.0f;
        weight[r] = 1.0f;
    } else {
        lse = lks_log(sum);
        weight[r] = lks_class_weight(d, (U32)label);
        value = d->keep * weight[r] * (lse - (x[label] - top));
        if (d->smooth) {
            lks_row_init(&row);
            for (f = 0u; f < d->f; f += 1u)
                lks_row_fma(&row, lks_class_weight(d, f), lse - (x[f] - top));
            value = lks_fma(d->part, lks_final(lks_row_end(&row)), value);
        }
        loss[r] = value;
        hit[r] = arg == (U32)label ? 1.0f : 0.0f;
    }
}

LKS_INLINE void softmax_loss_grad_item(LKS_GLOBAL LKS_CONST F32 *prob,
                                       LKS_GLOBAL LKS_CONST I32 *labels,
                                       LKS_GLOBAL LKS_CONST F32 *dloss, LKS_GLOBAL F32 *dlogits,
                                       LKS_CONST struct softmax_loss_dims *d, U64 i)
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
