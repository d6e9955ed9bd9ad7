/*
 * functions.h - the list of functions that the sweeps run, valid as C and as OpenCL C.
 *
 * MATH_FUNCTIONS(F) expands F(name, expression) for each; the expression takes a float x and gives
 * a float. `reciprocal` and `sqrt` stand for lks_div and lks_sqrt; `pow` draws an exponent for each
 * x; `normal` reads the bits of x as an element index and stands for Philox and Box-Muller.
 */
#ifndef LKS_TESTS_MATH_FUNCTIONS_H
#define LKS_TESTS_MATH_FUNCTIONS_H

#include "contract/elementary.h"
#include "contract/philox.h"
#include "contract/sum.h"

/* What draws the exponent of a pattern. */
LKS_INLINE U32 math_hash(F32 x)
{
    U32 h = lks_bits(x) * 2654435761u;
    h = (h ^ h >> 15) * 2246822519u;
    return h ^ h >> 13;
}

/* The exponent for x: one pattern of eight any at all, one a small integer, the others such that
 * the result fills the range of floats and passes its ends. Not 0, so that a NaN stays one. */
LKS_INLINE F32 math_power_exponent(F32 x)
{
    U32 h = math_hash(x), kind = h & 7u;
    F32 share = (F32)(I32)(h >> 8) * 5.9604644775390625e-8f;
    F32 y = lks_div((share - 0.5f) * 210.0f, lks_log(lks_abs(x)));
    I32 whole = (I32)(1u + (h >> 8 & 15u));
    y = lks_select(kind == 1u, (F32)lks_select_i(h >> 31 != 0u, -whole, whole), y);
    return lks_select(kind == 0u, lks_float(h ^ 0x5a5a5a5au), y);
}

/* x itself where the exponent may be an integer, else its magnitude. */
LKS_INLINE F32 math_power_base(F32 x)
{
    return lks_select((math_hash(x) & 7u) < 3u, x, lks_abs(x));
}

#define MATH_FUNCTIONS(F)                                                                          \
    F(exp, lks_exp(x))                                                                             \
    F(log, lks_log(x))                                                                             \
    F(log1p, lks_log1p(x))                                                                         \
    F(tanh, lks_tanh(x))                                                                           \
    F(sigmoid, lks_sigmoid(x))                                                                     \
    F(erf, lks_erf(x))                                                                             \
    F(sinpi, lks_sinpi(x))                                                                         \
    F(cospi, lks_cospi(x))                                                                         \
    F(softplus, lks_softplus(x))                                                                   \
    F(silu, lks_silu(x))                                                                           \
    F(gelu, lks_gelu(x))                                                                           \
    F(sin, lks_sin(x))                                                                             \
    F(cos, lks_cos(x))                                                                             \
    F(sqrt, lks_sqrt(x))                                                                           \
    F(reciprocal, lks_div(1.0f, x))                                                                \
    F(expm1, lks_expm1(x))                                                                         \
    F(pow, lks_pow(math_power_base(x), math_power_exponent(x)))                                    \
    F(normal, lks_random_normal(1u, 2u, 3u, (U64)lks_bits(x)))

/* The bits of y with every NaN as one pattern: what sweeps compare and hash. */
LKS_INLINE U32 math_canonical(F32 y)
{
    return lks_select_u(lks_isnan(y), 0x7fc00000u, lks_bits(y));
}

/* Bit patterns that try the division: i runs over sign, all 256 exponents and 8 significands. */
LKS_INLINE U32 math_div_pattern(U32 i)
{
    U32 s = i & 7u;
    U32 m = s == 0u   ? 0u
            : s == 1u ? 1u
            : s == 2u ? 0x7fffffu
            : s == 3u ? 0x400000u
            : s == 4u ? 0x2aaaaau
            : s == 5u ? 0x555555u
            : s == 6u ? 0x3fffffu
                      : (i * 2654435761u) >> 9;
    return ((i >> 3) << 23) | m;
}

#define MATH_DIV_PATTERNS 4096u

#endif
