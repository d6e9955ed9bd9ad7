/*
 * record.h - keeps two numbers of a step in a ring on the device, so that the host reads many
 * steps at once.
 *
 * ring[2 s] = a[0], ring[2 s + 1] = b[0] with s = step[1] mod slots; the rest of the ring stays.
 * No rounding. One item.
 */
#ifndef LKS_RECORD_H
#define LKS_RECORD_H

#include "contract/num.h"

struct record_dims {
    U32 slots;
};

LKS_INLINE void record_item(LKS_GLOBAL const F32 *a, LKS_GLOBAL const F32 *b,
                            LKS_GLOBAL const I32 *step, LKS_GLOBAL const F32 *before,
                            LKS_GLOBAL F32 *ring, LKS_CONST struct record_dims *d, U64 i)
{
    U32 s = (U32)step[1] % d->slots;
    (void)before;
    (void)i;
    ring[2u * s] = a[0];
    ring[2u * s + 1u] = b[0];
}

#endif
