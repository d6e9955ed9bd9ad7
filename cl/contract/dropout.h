/*
 * dropout.h - contract of dropout (numerics.md, rule 10); its gradient is dropout of dy.
 *
 * y[e'] = kept ? x[e'] * scale : +0, kept if lks_uniform(element e of the stream) >= p;
 * e = step[4] * f + e', f elements a sample; key step[2] (low word) and step[3] (high word),
 * c3 = step[0]. So no split of a batch changes what is kept.
 *
 * 1. scale = (F32)(1.0 / (1.0 - p)) from the host.
 * 2. One product: half an ulp, and half an ulp of the scale. A NaN that is dropped gives +0.
 */
#ifndef LKS_CONTRACT_DROPOUT_H
#define LKS_CONTRACT_DROPOUT_H

#include "contract/num.h"
#include "contract/philox.h"

struct dropout_dims {
    U64 n, f; /* elements, and those of a sample */
    U32 stream;
    F32 p, scale;
};

LKS_INLINE F32 lks_dropout(F32 x, U32 word, F32 p, F32 scale)
{
    return lks_select(lks_uniform(word) >= p, x * scale, 0.0f);
}

/* Elements [begin, end): four share the words of a block. */
LKS_INLINE void lks_dropout_range(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST I32 *step,
                                  LKS_GLOBAL F32 *y, LKS_CONST struct dropout_dims *d, U64 begin,
                                  U64 end)
{
    U64 seed = (U64)(U32)step[2] | (U64)(U32)step[3] << 32;
    U64 first = (U64)(U32)step[4] * d->f, i = begin;
    while (i < end) {
        struct lks_words w = lks_random_block(seed, d->stream, (U32)step[0], first + i);
        U32 k = (U32)(first + i) & 3u;
        for (; k < 4u && i < end; k += 1u) {
            U32 word = k == 0u ? w.w0 : k == 1u ? w.w1 : k == 2u ? w.w2 : w.w3;
            y[i] = lks_dropout(x[i], word, d->p, d->scale);
            i += 1u;
        }
    }
}

LKS_INLINE void dropout_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST I32 *step,
                             LKS_GLOBAL F32 *y, LKS_CONST struct dropout_dims *d, U64 i)
{
    lks_dropout_range(x, step, y, d, i, i + 1u);
}

#endif
