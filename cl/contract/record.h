/*
 * record.h - keeps up to 6 numbers of a step in a ring on the device, so that the host reads many
 * steps at once.
 *
 * ring[width s + k] = a_k[0] for k < width, with s = step[1] mod slots; the rest of the ring stays.
 * No rounding. One item.
 */
#ifndef LKS_RECORD_H
#define LKS_RECORD_H

#include "contract/num.h"

struct record_dims {
    U32 slots, width;
};

LKS_INLINE void record_item(LKS_GLOBAL const F32 *before, LKS_GLOBAL const I32 *step,
                            LKS_GLOBAL const F32 *a0, LKS_GLOBAL const F32 *a1,
                            LKS_GLOBAL const F32 *a2, LKS_GLOBAL const F32 *a3,
                            LKS_GLOBAL const F32 *a4, LKS_GLOBAL const F32 *a5,
                            LKS_GLOBAL F32 *ring, LKS_CONST struct record_dims *d, U64 i)
{
    U32 s = (U32)step[1] % d->slots * d->width;
    (void)before;
    (void)i;
    ring[s] = a0[0];
    if (d->width > 1u)
        ring[s + 1u] = a1[0];
    if (d->width > 2u)
        ring[s + 2u] = a2[0];
    if (d->width > 3u)
        ring[s + 3u] = a3[0];
    if (d->width > 4u)
        ring[s + 4u] = a4[0];
    if (d->width > 5u)
        ring[s + 5u] = a5[0];
}

#endif
