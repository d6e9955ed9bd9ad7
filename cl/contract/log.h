/*
 * log.h - lks_log, lks_log1p, lks_softplus.
 *
 * Method. The argument is m * 2^e with m in [2/3, 4/3), and f = m - 1, exactly; where the argument
 * is itself a sum, fl is what rounding it lost. Then
 *     log = e ln2_hi + f - f^2/2 + f^3 P(f) + e ln2_lo + fl
 * with P a minimax polynomial of degree 7 (relative error of the logarithm 2^-27.5), ln2_hi of 16
 * bits, so that e ln2_hi is exact, and fl taken times 1 - f + f^2, nearly 1 / (1 + f). The first
 * sum is kept with its rounding error, so that the last addition is the only one that rounds at
 * full size.
 *
 * log:      log(1) = +0, log(+-0) = -inf, log(x < 0) = NaN, log(+inf) = +inf, NaN -> NaN.
 * log1p:    log(1 + x); +-0 -> +-0, log1p(-1) = -inf, below -1 NaN, +inf -> +inf, NaN -> NaN.
 * softplus: log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)); -inf -> +0, +inf -> +inf, NaN -> NaN.
 * Largest error over all 2^32 inputs: see the table in elementary.h.
 */
#ifndef LKS_CONTRACT_LOG_H
#define LKS_CONTRACT_LOG_H

#include "contract/num.h"
#include "contract/exp.h"

/* hi + lo; lo is small against hi unless hi is 0. */
struct lks_log_parts {
    F32 hi, lo;
};

/* log(2^e (1 + f + fl)) for f in [-1/3, 1/3], |fl| at most about an ulp of 1 + f. */
LKS_ELEMENT struct lks_log_parts lks_log_split(I32 e, F32 f, F32 fl)
{
    struct lks_log_parts out;
    F32 n = (F32)e;
    F32 base = n * 0.693145752f;
    F32 f2 = f * f;
    F32 p;
    fl = lks_fma(f2 - f, fl, fl);
    p = lks_fma(f, -0.125336796f, 0.140715882f);
    p = lks_fma(f, p, -0.122661956f);
    p = lks_fma(f, p, 0.139872745f);
    p = lks_fma(f, p, -0.166747436f);
    p = lks_fma(f, p, 0.200115979f);
    p = lks_fma(f, p, -0.249999166f);
    p = lks_fma(f, p, 0.333331943f);
    p = lks_fma(f, p, -0.5f);
    out.hi = base + f;
    out.lo = ((base - out.hi) + f) + lks_fma(f2, p, lks_fma(n, 1.42860677e-6f, fl));
    return out;
}

/* The e for which u * 2^-e lies in [2/3, 4/3); u is a positive normal pattern. */
LKS_ELEMENT I32 lks_log_exponent(U32 u)
{
    return (I32)((u + 0x00555555u) >> 23) - 127;
}

/* log(x) */
LKS_ELEMENT F32 lks_log(F32 x)
{
    U32 ux = lks_bits(x);
    U32 mag = ux & 0x7fffffffu;
    I32 sub = mag < 0x00800000u;
    U32 u = lks_select_u(sub, lks_bits((F32)(I32)mag), mag); /* a subnormal is mag * 2^-149 */
    I32 e = lks_log_exponent(u);
    F32 f = lks_float(u - ((U32)e << 23)) - 1.0f;
    struct lks_log_parts p = lks_log_split(e - lks_select_i(sub, 149, 0), f, 0.0f);
    F32 y = p.hi + p.lo;
    y = lks_select(ux == 0x7f800000u, lks_inf(), y);
    y = lks_select(ux > 0x7f800000u, lks_nan(), y);
    return lks_select(mag == 0u, -lks_inf(), y);
}

/* log(v + vl) for v in [2^-24, 2^128), where v is 1 + x + xl rounded and vl what that lost. Near 1
 * (e = 0) the summand itself serves as f. Where e is above 126, vl is too small to matter. */
LKS_ELEMENT struct lks_log_parts lks_log_sum(F32 v, F32 vl, F32 x, F32 xl)
{
    U32 u = lks_bits(v);
    I32 e = lks_log_exponent(u);
    F32 f = lks_float(u - ((U32)e << 23)) - 1.0f;
    F32 fl = vl * lks_float((U32)(127 - lks_select_i(e < 126, e, 126)) << 23);
    return lks_log_split(e, lks_select(e == 0, x, f), lks_select(e == 0, xl, fl));
}

/* log(1 + x) */
LKS_ELEMENT F32 lks_log1p(F32 x)
{
    U32 mag = lks_bits(x) & 0x7fffffffu;
    I32 in = x > -1.0f && mag < 0x7f800000u;
    F32 c = lks_select(in, x, 0.0f);
    F32 v = 1.0f + c;
    F32 t = v - 1.0f;
    F32 vl = (1.0f - (v - t)) + (c - t); /* v + vl = 1 + c exactly, whichever is larger */
    struct lks_log_parts p = lks_log_sum(v, vl, c, 0.0f);
    F32 y = p.hi + p.lo;
    y = lks_select(mag == 0u, x, y);
    y = lks_select(lks_bits(x) == 0x7f800000u, lks_inf(), y);
    y = lks_select(x == -1.0f, -lks_inf(), y);
    return lks_select(x < -1.0f || mag > 0x7f800000u, lks_nan(), y);
}

/* log(1 + exp(x)) */
LKS_ELEMENT F32 lks_softplus(F32 x)
{
    F32 c = -lks_abs(x);
    F32 eh, el, v, vl, big, s, t;
    struct lks_exp_parts p;
    struct lks_log_parts g;
    c = lks_select(c > -104.0f, c, -104.0f);
    p = lks_exp_split(c, 0.0f);
    eh = lks_scale(p.hi, p.n);
    el = lks_scale(p.lo, p.n);
    v = 1.0f + eh;
    vl = ((1.0f - v) + eh) + el;
    g = lks_log_sum(v, vl, eh, el);
    big = lks_select(x > 0.0f, x, 0.0f);
    s = big + g.hi;
    t = s - big;
    s = s + (((big - (s - t)) + (g.hi - t)) + g.lo);
    s = lks_select(x > 104.0f, x, s);
    return lks_select(lks_isnan(x), lks_nan(), s);
}

#endif
