/*
 * guard.h - contract of guard (numerics.md, rule 12): raises the flag at a non-finite value.
 *
 * flag[0], in place: if it is 0 and any element of grad, or loss[0], is a NaN or infinite, it
 * becomes step[0] + 1; else it stays.
 *   1. One item scans everything; only bit patterns are looked at, so the order does not matter.
 */
#ifndef LKS_CONTRACT_GUARD_H
#define LKS_CONTRACT_GUARD_H

#include "contract/num.h"

struct guard_dims {
    U64 n; /* elements of grad */
};

LKS_INLINE void guard_item(LKS_GLOBAL LKS_CONST F32 *grad, LKS_GLOBAL LKS_CONST F32 *loss,
                           LKS_GLOBAL LKS_CONST I32 *step, LKS_GLOBAL LKS_CONST I32 *flag,
                           LKS_GLOBAL I32 *flag_out, LKS_CONST struct guard_dims *d, U64 i)
{
    I32 bad = !lks_isfinite(loss[0]);
    U64 j;
    for (j = 0u; j < d->n && !bad; j += 1u)
        bad = !lks_isfinite(grad[j]);
    flag_out[i] = flag[i] == 0 && bad ? step[0] + 1 : flag[i];
}

#endif
