/* test_philox.c - known answers of Philox4x32-10, the counter layout, uniform and normal numbers.
 */
#include <math.h>

#include <criterion/criterion.h>

#include "contract/philox.h"

/* The known-answer vectors that Random123 publishes for philox4x32, 10 rounds. */
Test(philox, known_answers)
{
    static const U32 kat[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u},
        {0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0x408f276du,
         0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu},
        {0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u, 0xa4093822u, 0x299f31d0u, 0xd16cfe09u,
         0x94fdccebu, 0x5001e420u, 0x24126ea1u},
    };
    for (int i = 0; i < 3; i++) {
        const U32 *k = kat[i];
        struct lks_words w = lks_philox(k[0], k[1], k[2], k[3], k[4], k[5]);
        cr_assert(w.w0 == k[6] && w.w1 == k[7] && w.w2 == k[8] && w.w3 == k[9], "vector %d", i);
    }
}

/* Key and counter as rule 10 has them, checked against the bare generator. */
Test(philox, layout)
{
    U64 seed = 0x299f31d0a4093822u, e = ((U64)0x85a308d3u << 32 | 0x243f6a88u) << 2;
    /* the top two bits of the block number do not fit an element index */
    struct lks_words w = lks_philox(0x243f6a88u, 0x05a308d3u, 5u, 9u, 0xa4093822u, 0x299f31d0u);
    cr_assert(lks_random_word(seed, 5u, 9u, e) == w.w0);
    cr_assert(lks_random_word(seed, 5u, 9u, e + 1) == w.w1);
    cr_assert(lks_random_word(seed, 5u, 9u, e + 2) == w.w2);
    cr_assert(lks_random_word(seed, 5u, 9u, e + 3) == w.w3);
    cr_assert(lks_random_word(seed, 5u, 9u, e + 4) != w.w0);
    struct lks_normal_pair p = lks_normal(w.w0, w.w1), q = lks_normal(w.w2, w.w3);
    cr_assert(lks_random_normal(seed, 5u, 9u, e) == p.even);
    cr_assert(lks_random_normal(seed, 5u, 9u, e + 1) == p.odd);
    cr_assert(lks_random_normal(seed, 5u, 9u, e + 2) == q.even);
    cr_assert(lks_random_normal(seed, 5u, 9u, e + 3) == q.odd);
    cr_assert(lks_random_uniform(seed, 5u, 9u, e + 3) == lks_uniform(w.w3));
}

Test(philox, uniform_ends)
{
    cr_assert(lks_uniform(0u) == 0.0f && lks_uniform(255u) == 0.0f);
    cr_assert(lks_uniform(0xffffffffu) == 0x1.fffffep-1f);
    cr_assert(lks_uniform_log(0u) == 0x1p-24f && lks_uniform_log(0xffffffffu) == 1.0f);
    for (U32 w = 0; w < 0xffff0000u; w += 65521)
        cr_assert(lks_uniform(w) == (F32)((double)(w >> 8) * 0x1p-24));
}

/* Known words: the extremes of the radius, and the quarter turns. */
Test(philox, normal_ends)
{
    struct lks_normal_pair p = lks_normal(0xffffffffu, 0u);
    cr_assert(lks_bits(p.even) == 0u && lks_bits(p.odd) == 0u, "radius 0");
    p = lks_normal(0u, 0u);
    cr_assert(fabs(p.even - sqrt(48 * M_LN2)) < 1e-6 && p.odd == 0.0f, "largest radius");
    p = lks_normal(0u, 0x40000000u);
    cr_assert(p.even == 0.0f && p.odd > 5.76f, "a quarter turn");
    p = lks_normal(0u, 0x80000000u);
    cr_assert(p.even < -5.76f && p.odd == 0.0f, "half a turn");
}

/* Moments of 2^20 numbers, at five standard deviations of each estimate. */
Test(philox, normal_moments)
{
    enum { N = 1 << 20 };
    double m[5] = {0}, cross = 0, before = 0;
    for (U64 e = 0; e < N; e++) {
        double z = lks_random_normal(1u, 2u, 3u, e), power = 1;
        for (int k = 0; k < 5; k++, power *= z)
            m[k] += power / N;
        cross += z * before / N;
        before = z;
    }
    double s = 5 / sqrt(N);
    cr_assert(fabs(m[1]) < s, "mean %g", m[1]);
    cr_assert(fabs(m[2] - 1) < s * sqrt(2), "variance %g", m[2]);
    cr_assert(fabs(m[3]) < s * sqrt(15), "third moment %g", m[3]);
    cr_assert(fabs(m[4] - 3) < s * sqrt(96), "fourth moment %g", m[4]);
    cr_assert(fabs(cross) < s, "neighbours %g", cross);
}

/* Against double, over many elements: the radius and the angle are each good to a few ulp. */
Test(philox, normal_accuracy)
{
    for (U64 e = 0; e < 200000; e += 2) {
        struct lks_words b = lks_random_block(11u, 4u, 0u, e);
        U32 wa = (e & 2u) != 0 ? b.w2 : b.w0, wb = (e & 2u) != 0 ? b.w3 : b.w1;
        double radius = sqrt(-2 * log(((wa >> 8) + 1.0) * 0x1p-24));
        double angle = 2 * M_PI * ((wb >> 8) * 0x1p-24);
        cr_assert(fabs(lks_random_normal(11u, 4u, 0u, e) - radius * cos(angle)) <= 2e-7 * radius);
        cr_assert(fabs(lks_random_normal(11u, 4u, 0u, e + 1) - radius * sin(angle)) <=
                  2e-7 * radius);
    }
}
