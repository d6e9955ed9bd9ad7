/*
 * trig.h - lks_sinpi, lks_cospi, lks_sin, lks_cos.
 *
 * sinpi(x) = sin(pi x), cospi(x) = cos(pi x): x is reduced exactly to r in [-1/4, 1/4] and a
 * quarter turn. sin(pi r) = pi r + r^3 S(r^2), with pi as two numbers and S of degree 3 (2^-33);
 * cos(pi r) = 1 - (pi^2/2) r^2 + r^4 C(r^2), the second term as two numbers, C of degree 2 (2^-33).
 * sin(x), cos(x) for |x| <= 2^15: x - n pi/2 with pi/2 as three numbers, the first step exact and
 * the rest as two numbers; then polynomials of degree 9 and 8 (2^-32). Beyond 2^15 the result is
 * NaN: the caller must reduce.
 *
 * sinpi: +-0 and integers -> 0 with the sign of x; +-inf, NaN -> NaN.
 * cospi: odd halves -> +0; +-inf, NaN -> NaN.
 * sin:   +-0 -> +-0; |x| > 32768, NaN -> NaN.   cos: likewise.
 * Largest error over all inputs: see the table in elementary.h.
 */
#ifndef LKS_CONTRACT_TRIG_H
#define LKS_CONTRACT_TRIG_H

#include "contract/num.h"

/* sin(pi r) for |r| <= 1/4 */
LKS_ELEMENT F32 lks_sinpi_core(F32 r)
{
    F32 z = r * r;
    F32 p;
    p = lks_fma(z, 0.0791707262f, -0.598981857f);
    p = lks_fma(z, p, 2.55015469f);
    p = lks_fma(z, p, -5.16771269f);
    return lks_fma(r, 3.14159274f, lks_fma(r * z, p, r * -8.74227766e-8f));
}

/* cos(pi r) for |r| <= 1/4 */
LKS_ELEMENT F32 lks_cospi_core(F32 r)
{
    F32 z = r * r;
    F32 zl = lks_fma(r, r, -z);
    F32 m = z * -4.93480206f;
    F32 ml = lks_fma(z, -4.93480206f, -m) + lks_fma(z, -1.45185794e-7f, zl * -4.93480206f);
    F32 h = 1.0f + m;
    F32 p;
    p = lks_fma(z, 0.2318317f, -1.33511174f);
    p = lks_fma(z, p, 4.0587101f);
    return h + (((1.0f - h) + m) + lks_fma(z * z, p, ml));
}

/* sin(pi x) for shift = 0, cos(pi x) for shift = 1; x finite. */
LKS_ELEMENT F32 lks_turn(F32 x, U32 shift)
{
    F32 y = lks_fma(-2.0f, lks_trunc(0.5f * x), x); /* exact, in (-2, 2) */
    F32 n = lks_rint(y + y);
    F32 r = lks_fma(-0.5f, n, y);
    U32 k = (U32)(I32)n + shift;
    F32 v = lks_select((k & 1u) != 0u, lks_cospi_core(r), lks_sinpi_core(r));
    return lks_select((k & 2u) != 0u, -v, v);
}

/* sin(pi x) */
LKS_ELEMENT F32 lks_sinpi(F32 x)
{
    F32 c = lks_select(lks_isfinite(x), x, 0.0f);
    F32 y = lks_turn(c, 0u);
    y = lks_select(y == 0.0f, lks_copysign(0.0f, x), y);
    return lks_select(lks_isfinite(x), y, lks_nan());
}

/* cos(pi x) */
LKS_ELEMENT F32 lks_cospi(F32 x)
{
    F32 c = lks_select(lks_isfinite(x), x, 0.0f);
    F32 y = lks_turn(c, 1u) + 0.0f;
    return lks_select(lks_isfinite(x), y, lks_nan());
}

/* sin(r + rl) for |r| <= 0.8, |rl| at most about an ulp of r */
LKS_ELEMENT F32 lks_sin_core(F32 r, F32 rl)
{
    F32 z = r * r;
    F32 p;
    p = lks_fma(z, 2.82632732e-06f, -0.000198525609f);
    p = lks_fma(z, p, 0.00833337847f);
    p = lks_fma(z, p, -0.166666672f);
    return r + lks_fma(r * z, p, lks_fma(-0.5f * z, rl, rl));
}

/* cos(r + rl) likewise */
LKS_ELEMENT F32 lks_cos_core(F32 r, F32 rl)
{
    F32 z = r * r;
    F32 zl = lks_fma(r, r, -z);
    F32 m = 0.5f * z;
    F32 h = 1.0f - m;
    F32 p;
    p = lks_fma(z, 2.44300809e-05f, -0.00138872978f);
    p = lks_fma(z, p, 0.0416666456f);
    return h + (((1.0f - h) - m) + lks_fma(z * z, p, lks_fma(-r, rl, -0.5f * zl)));
}

/* sin(x) for shift = 0, cos(x) for shift = 1; |x| <= 2^15. */
LKS_ELEMENT F32 lks_turn_radians(F32 x, U32 shift)
{
    F32 n = lks_rint(x * 0.636619772f);
    F32 r = lks_fma(n, -1.57079637f, x); /* exact */
    F32 p = n * 4.37113883e-8f;
    F32 pl = lks_fma(n, 4.37113883e-8f, -p);
    F32 a = r + p;
    F32 t = a - r;
    F32 err = (r - (a - t)) + (p - t);
    F32 lo = err + lks_fma(n, 1.71512451e-15f, pl);
    F32 h = a + lo;
    F32 l = (a - h) + lo;
    U32 k = (U32)(I32)n + shift;
    F32 v = lks_select((k & 1u) != 0u, lks_cos_core(h, l), lks_sin_core(h, l));
    return lks_select((k & 2u) != 0u, -v, v);
}

/* sin(x), x in radians */
LKS_ELEMENT F32 lks_sin(F32 x)
{
    I32 in = lks_abs(x) <= 32768.0f;
    F32 y = lks_turn_radians(lks_select(in, x, 0.0f), 0u);
    y = lks_select(x == 0.0f, x, y);
    return lks_select(in, y, lks_nan());
}

/* cos(x), x in radians */
LKS_ELEMENT F32 lks_cos(F32 x)
{
    I32 in = lks_abs(x) <= 32768.0f;
    F32 y = lks_turn_radians(lks_select(in, x, 0.0f), 1u);
    return lks_select(in, y, lks_nan());
}

#endif
