/*
 * ema.h - contract of ema: an exponential moving average of the parameters, in place.
 *
 *   1. e = fma(w, p - e, e), if flag[0] == 0 (else nothing changes)
 * w = 1 - decay, computed in double and rounded once. Two roundings. Special values follow IEEE-754.
 */
#ifndef LKS_CONTRACT_EMA_H
#define LKS_CONTRACT_EMA_H

#include "contract/num.h"

struct ema_dims {
    U64 n; /* elements */
    F32 w;
};

LKS_INLINE void ema_item(LKS_GLOBAL LKS_CONST F32 *average, LKS_GLOBAL LKS_CONST F32 *param,
                         LKS_GLOBAL LKS_CONST I32 *flag, LKS_GLOBAL F32 *average_out,
                         LKS_CONST struct ema_dims *d, U64 i)
{
    F32 e = average[i];
    average_out[i] = flag[0] == 0 ? lks_fma(d->w, param[i] - e, e) : e;
}

#endif
