/*
 * test_divsqrt.c - the own division and square root against the processor's, and the primitives
 * of num.h.
 */
#include <math.h>

#include <criterion/criterion.h>

#include "functions.h"

static void expect_quotient(U32 ua, U32 ub)
{
    F32 a = lks_float(ua), b = lks_float(ub);
    F32 want = a / b, got = lks_div_soft(a, b);
    cr_assert(math_canonical(got) == math_canonical(want), "%a / %a (%08x / %08x) is %a, not %a", a,
              b, ua, ub, got, want);
}

/* Every pair of exponents and signs with eight significands each, in a few shuffles; this holds
 * zeros, infinities, NaN and subnormals as well. */
Test(division, exponents)
{
    for (U32 ea = 0; ea < 512; ea++)
        for (U32 eb = 0; eb < 256; eb++)
            for (U32 k = 0; k < 64; k++)
                expect_quotient(math_div_pattern(8 * ea + (k & 7u)),
                                math_div_pattern(8 * eb + (k >> 3)));
}

Test(division, special_values)
{
    static const U32 special[] = {
        0x00000000u, 0x00000001u, 0x00000002u, 0x00000003u, 0x007ffffeu, 0x007fffffu, 0x00800000u,
        0x00800001u, 0x00ffffffu, 0x01000000u, 0x33800000u, 0x3effffffu, 0x3f000000u, 0x3f7fffffu,
        0x3f800000u, 0x3f800001u, 0x40000000u, 0x40400000u, 0x4b7fffffu, 0x7e800000u, 0x7f000000u,
        0x7f7ffffeu, 0x7f7fffffu, 0x7f800000u, 0x7f800001u, 0x7fc00000u, 0x7fffffffu};
    enum { N = sizeof special / sizeof *special };
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (U32 s = 0; s < 4; s++)
                expect_quotient(special[i] | (s & 1u) << 31, special[j] | (s & 2u) << 30);
}

/* Random patterns; then quotients that fall below the normal range, where rounding is hardest. */
Test(division, random_pairs)
{
    U64 state = 1;
    for (int i = 0; i < 8000000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        U64 z = state ^ state >> 29;
        U32 a = (U32)(z >> 32), b = (U32)z;
        expect_quotient(a, b);
        U32 ea = 1u + (a >> 23 & 63u), eb = 126u + ea + (b >> 23 & 31u);
        expect_quotient(ea << 23 | (a & 0x7fffffu), (eb & 255u) << 23 | (b & 0x7fffffu));
    }
}

/* Products of short numbers, whose quotients are exact or lie next to the middle. */
Test(division, near_ties)
{
    for (U32 i = 1; i < 3000; i++)
        for (U32 j = 1; j < 300; j++) {
            F32 a = (F32)(i * j), b = (F32)j;
            expect_quotient(lks_bits(a), lks_bits(b));
            expect_quotient(lks_bits(a) + 1u, lks_bits(b));
            expect_quotient(lks_bits(a * 0x1p-140f), lks_bits(b * 0x1p6f));
        }
}

Test(square_root, stride_and_squares)
{
    for (U64 u = 0; u < (U64)1 << 32; u += 211) {
        F32 x = lks_float((U32)u);
        cr_assert(math_canonical(lks_sqrt_soft(x)) == math_canonical(sqrtf(x)), "sqrt(%a)", x);
    }
    for (U32 i = 0; i < 1u << 20; i++) {
        F32 r = lks_float(0x3f800000u + i * 8u);
        U32 u = lks_bits(r * r);
        for (U32 k = u - 1u; k <= u + 1u; k++)
            cr_assert(lks_bits(lks_sqrt_soft(lks_float(k))) == lks_bits(sqrtf(lks_float(k))),
                      "sqrt(%a)", lks_float(k));
    }
}

Test(square_root, special_values)
{
    static const U32 special[] = {0u,          0x80000000u, 1u,          2u,          0x007fffffu,
                                  0x00800000u, 0x7f7fffffu, 0x7f800000u, 0xff800000u, 0x7fc00000u,
                                  0xffffffffu, 0x80000001u, 0x3f800000u, 0x40800000u, 0xbf800000u};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        F32 x = lks_float(special[i]);
        cr_assert(math_canonical(lks_sqrt_soft(x)) == math_canonical(sqrtf(x)), "sqrt(%a) is %a", x,
                  lks_sqrt_soft(x));
    }
}

Test(num, primitives)
{
    cr_assert(lks_fma(0x1.000002p0f, 0x1.000002p0f, -0x1.000004p0f) == 0x1p-46f,
              "the product must not be rounded");
    cr_assert(lks_rint(2.5f) == 2.0f && lks_rint(3.5f) == 4.0f && lks_rint(-0.5f) == 0.0f);
    cr_assert(lks_floor(-0.5f) == -1.0f && lks_trunc(-1.5f) == -1.0f);
    cr_assert(lks_isnan(lks_nan()) && !lks_isnan(lks_inf()) && lks_isinf(-lks_inf()));
    cr_assert(!lks_isfinite(lks_nan()) && !lks_isfinite(lks_inf()) && lks_isfinite(0x1p127f));
    cr_assert(lks_bits(lks_abs(-0.0f)) == 0u);
    cr_assert(lks_bits(lks_copysign(0.0f, -1.0f)) == 0x80000000u);
    cr_assert(lks_select(1, 2.0f, 3.0f) == 2.0f && lks_select(0, 2.0f, 3.0f) == 3.0f);
    cr_assert(lks_select_u(0, 2u, 3u) == 3u && lks_select_i(-1, 2, 3) == 2);
}
