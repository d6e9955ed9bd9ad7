/*
 * exp.h - lks_exp, lks_expm1, and the exponential in two parts that other functions build on.
 *
 * Method. n = rint(x / ln 2) and a + b = x - n ln 2, with |a| < 0.35 and b the rounding error:
 * the first step of the subtraction is exact, since the significand of the high part of ln 2
 * ends at 2^-24. exp(a + b) = 1 + a + b + a^2 q(a), where q is a minimax polynomial of degree 4
 * (relative error 2^-28), kept as an unevaluated sum hi + lo. The factor 2^n is applied last.
 *
 * Special values of lks_exp: exp(+-0) = 1, exp(-inf) = +0, exp(+inf) = +inf, NaN -> NaN;
 * +inf above 88.72284, +0 below -103.97208; subnormal results are rounded once more.
 * lks_expm1, exp(x) - 1: +-0 -> +-0, -inf -> -1, +inf -> +inf, NaN -> NaN. Where n = 0 the part hi
 * lies in [1/2, 2], so that hi - 1 is exact and small results keep all their digits.
 * Largest error over all 2^32 inputs: see the table in elementary.h.
 */
#ifndef LKS_CONTRACT_EXP_H
#define LKS_CONTRACT_EXP_H

#include "contract/num.h"

/* (hi + lo) * 2^n */
struct lks_exp_parts {
    F32 hi, lo;
    I32 n;
};

/* v * 2^n for |n| <= 250, in two steps of which only the second can round or overflow when v lies
 * in about [2^-2, 2^2]. */
LKS_ELEMENT F32 lks_scale(F32 v, I32 n)
{
    I32 part = n / 2;
    F32 first = lks_float((U32)(part + 127) << 23);
    F32 second = lks_float((U32)(n - part + 127) << 23);
    return v * first * second;
}

/* exp(x + xl) for |x| <= 170 and |xl| at most about one ulp of x; hi lies in [0.7, 1.42]. */
LKS_ELEMENT struct lks_exp_parts lks_exp_split(F32 x, F32 xl)
{
    struct lks_exp_parts out;
    F32 n = lks_rint(x * 1.44269502f);
    F32 r = lks_fma(n, -0.693147182f, x);
    F32 rl = lks_fma(n, 1.90465421e-9f, xl);
    F32 a = r + rl;
    F32 b = (r - a) + rl;
    F32 q, h, l;
    q = lks_fma(a, 0.00138250703f, 0.00836991612f);
    q = lks_fma(a, q, 0.0416682325f);
    q = lks_fma(a, q, 0.166665092f);
    q = lks_fma(a, q, 0.49999994f);
    h = 1.0f + a;
    l = (1.0f - h) + a;
    l = l + lks_fma(a * a, q, b);
    out.hi = h + l;
    out.lo = (h - out.hi) + l;
    out.n = (I32)n;
    return out;
}

/* exp(x) */
LKS_ELEMENT F32 lks_exp(F32 x)
{
    struct lks_exp_parts p;
    F32 c = lks_select(x > -104.0f, x, -104.0f); /* a NaN is replaced too, until the end */
    c = lks_select(c < 89.0f, c, 89.0f);
    p = lks_exp_split(c, 0.0f);
    return lks_select(lks_isnan(x), lks_nan(), lks_scale(p.hi, p.n));
}

/* exp(x) - 1 */
LKS_ELEMENT F32 lks_expm1(F32 x)
{
    struct lks_exp_parts p;
    F32 s, t, b, y;
    F32 c = lks_select(x > -104.0f, x, -104.0f);
    c = lks_select(c < 89.0f, c, 89.0f);
    p = lks_exp_split(c, 0.0f);
    s = lks_scale(p.hi, p.n);
    t = s - 1.0f;
    b = t - s; /* t, and what it lost */
    y = t + (((s - (t - b)) + (-1.0f - b)) + lks_scale(p.lo, p.n));
    y = lks_select(lks_isinf(t), t, y);
    y = lks_select(x == 0.0f, x, y);
    return lks_select(lks_isnan(x), lks_nan(), y);
}

#endif
