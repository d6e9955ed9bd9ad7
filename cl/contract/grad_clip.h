/*
 * grad_clip.h - contract of grad_clip: gradients limited by their global norm, then one by one, in
 * place.
 *
 *   1. with a norm: s = limit / (norm + 1e-6), 1 where that is not below 1;  g = g * s
 *   2. with a value: g = g < -value ? -value : g > value ? value : g
 * A sum of squares that overflows gives an infinite norm and so s = 0. Every operation of 1 rounds
 * once, 2 rounds nothing. A NaN stays.
 */
#ifndef LKS_CONTRACT_GRAD_CLIP_H
#define LKS_CONTRACT_GRAD_CLIP_H

#include "contract/num.h"

struct grad_clip_dims {
    U64 n;            /* elements */
    F32 limit, value; /* 0: not so limited */
};

LKS_INLINE F32 grad_clip_scale(F32 norm, F32 limit)
{
    F32 s = lks_div(limit, norm + 1e-6f);
    return limit > 0.0f && s < 1.0f ? s : 1.0f;
}

LKS_INLINE F32 grad_clip_one(F32 g, F32 scale, F32 value)
{
    F32 x = g * scale;
    F32 y = x < -value ? -value : x > value ? value : x;
    return value > 0.0f ? y : x;
}

LKS_INLINE void grad_clip_item(LKS_GLOBAL LKS_CONST F32 *grad, LKS_GLOBAL LKS_CONST F32 *norm,
                               LKS_GLOBAL F32 *grad_out, LKS_CONST struct grad_clip_dims *d,
                               U64 i)
{
    grad_out[i] = grad_clip_one(grad[i], grad_clip_scale(norm[0], d->limit), d->value);
}

#endif
