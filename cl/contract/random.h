/*
 * random.h - contract of random: new random numbers in each step (numerics.md, rule 10).
 *
 * y[e'] = number e of the stream, e = step[4] * f + e', f elements a sample; key step[2] (low word)
 * and step[3] (high word), c3 = step[0]. So neither the size of an evaluation's batches nor a split
 * of a batch changes what a sample gets.
 *   uniform: lks_uniform, in [0, 1);  normal: Box-Muller, both as in philox.h.
 * Error bound: uniform numbers are exact; normal ones within 8 ulp.
 */
#ifndef LKS_CONTRACT_RANDOM_H
#define LKS_CONTRACT_RANDOM_H

#include "contract/num.h"
#include "contract/philox.h"

struct random_dims {
    U64 f; /* elements a sample */
    U32 stream, normal;
};

LKS_INLINE void random_item(LKS_GLOBAL LKS_CONST U32 *like, LKS_GLOBAL LKS_CONST I32 *step,
                            LKS_GLOBAL F32 *y, LKS_CONST struct random_dims *d, U64 i)
{
    U64 seed = (U64)(U32)step[2] | (U64)(U32)step[3] << 32;
    U64 e = (U64)(U32)step[4] * d->f + i;
    (void)like;
    y[i] = d->normal ? lks_random_normal(seed, d->stream, (U32)step[0], e)
                     : lks_random_uniform(seed, d->stream, (U32)step[0], e);
}

#endif
