/*
 * philox.h - random numbers without state: Philox4x32-10 (Salmon et al., SC 2011).
 *
 * Key: the 64-bit seed (low word first). Counter: c0, c1 = low and high word of floor(e / 4),
 * c2 = stream, c3 = step. Element e takes word e mod 4 of the block. e counts in the whole batch
 * or tensor, so no split of the work can change a number.
 *
 * lks_uniform(w)     = (w >> 8) * 2^-24, in [0, 1), exact.
 * lks_uniform_log(w) = ((w >> 8) + 1) * 2^-24, in (0, 1], exact; what a logarithm may take.
 *
 * Normal numbers by Box-Muller on the pairs (wa, wb) = (w0, w1) and (w2, w3):
 *     radius = sqrt(0 - 2 log(lks_uniform_log(wa))), angle = 2 lks_uniform(wb), in half turns
 *     even element (0 and 2 of a block): radius * cospi(angle)
 *     odd element  (1 and 3 of a block): radius * sinpi(angle)
 * with the own log, sqrt, sinpi and cospi. The largest magnitude is sqrt(48 log 2) = 5.7682.
 */
#ifndef LKS_CONTRACT_PHILOX_H
#define LKS_CONTRACT_PHILOX_H

#include "contract/num.h"
#include "contract/log.h"
#include "contract/trig.h"

struct lks_words {
    U32 w0, w1, w2, w3;
};

/* High word of the 64-bit product. */
LKS_INLINE U32 lks_mul_high(U32 a, U32 b)
{
    return (U32)(((U64)a * (U64)b) >> 32);
}

/* Ten rounds over counter (c0, c1, c2, c3) with key (k0, k1). */
LKS_INLINE struct lks_words lks_philox(U32 c0, U32 c1, U32 c2, U32 c3, U32 k0, U32 k1)
{
    struct lks_words out;
    I32 round;
    for (round = 0; round < 10; round += 1) {
        U32 h0 = lks_mul_high(0xd2511f53u, c0);
        U32 l0 = 0xd2511f53u * c0;
        U32 h1 = lks_mul_high(0xcd9e8d57u, c2);
        U32 l1 = 0xcd9e8d57u * c2;
        c0 = h1 ^ c1 ^ k0;
        c1 = l1;
        c2 = h0 ^ c3 ^ k1;
        c3 = l0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    out.w0 = c0;
    out.w1 = c1;
    out.w2 = c2;
    out.w3 = c3;
    return out;
}

/* The block of four words that holds element e. */
LKS_INLINE struct lks_words lks_random_block(U64 seed, U32 stream, U32 step, U64 e)
{
    return lks_philox((U32)(e >> 2), (U32)(e >> 34), stream, step, (U32)seed, (U32)(seed >> 32));
}

/* The word of element e. */
LKS_INLINE U32 lks_random_word(U64 seed, U32 stream, U32 step, U64 e)
{
    struct lks_words b = lks_random_block(seed, stream, step, e);
    U32 low = lks_select_u((e & 1u) != 0u, b.w1, b.w0);
    U32 high = lks_select_u((e & 1u) != 0u, b.w3, b.w2);
    return lks_select_u((e & 2u) != 0u, high, low);
}

LKS_INLINE F32 lks_uniform(U32 w)
{
    return (F32)(I32)(w >> 8) * 5.9604645e-8f;
}

LKS_INLINE F32 lks_uniform_log(U32 w)
{
    return (F32)(I32)((w >> 8) + 1u) * 5.9604645e-8f;
}

/* Uniform number of element e, in [0, 1). */
LKS_INLINE F32 lks_random_uniform(U64 seed, U32 stream, U32 step, U64 e)
{
    return lks_uniform(lks_random_word(seed, stream, step, e));
}

struct lks_normal_pair {
    F32 even, odd;
};

/* Two normal numbers from two words. */
LKS_INLINE struct lks_normal_pair lks_normal(U32 wa, U32 wb)
{
    struct lks_normal_pair out;
    F32 radius = lks_sqrt(0.0f - 2.0f * lks_log(lks_uniform_log(wa)));
    F32 angle = 2.0f * lks_uniform(wb);
    out.even = radius * lks_cospi(angle);
    out.odd = radius * lks_sinpi(angle);
    return out;
}

/* Standard normal number of element e. */
LKS_INLINE F32 lks_random_normal(U64 seed, U32 stream, U32 step, U64 e)
{
    struct lks_words b = lks_random_block(seed, stream, step, e);
    I32 second = (e & 2u) != 0u;
    struct lks_normal_pair p =
        lks_normal(lks_select_u(second, b.w2, b.w0), lks_select_u(second, b.w3, b.w1));
    return lks_select((e & 1u) != 0u, p.odd, p.even);
}

#endif
