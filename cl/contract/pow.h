/*
 * pow.h - lks_pow, x to the power y.
 *
 * Method. |x| is m * 2^e with m in [2/3, 4/3), and f = m - 1, exactly. With s = f / (2 + f), kept
 * with the remainder of its division, and z = s^2
 *     log m = 2 s + s z (2/3 + z P(z))
 * where P is the series of the area tangent, cut off at a relative error of 2^-36; the product
 * s z (..) is kept with its rounding errors, since it must hold some 34 bits: y multiplies the
 * logarithm up to 104, and what is lost of the product is lost of the result. log |x| = e ln 2 +
 * log m, in two parts, with ln 2 of 16 bits and a rest; then y log |x| in two parts, and
 * lks_exp_split of exp.h, whose result is scaled last.
 *
 * Special values, those of C99: pow(x, +-0) = 1 and pow(1, y) = 1, also beside a NaN;
 * pow(-1, +-inf) = 1; pow(x, +inf) = +0 for |x| < 1 and +inf for |x| > 1, pow(x, -inf) the other
 * way; pow(+-0, y) is a zero for y > 0 and infinite for y < 0, pow(+-inf, y) the other way, with
 * the sign of x if y is an odd integer, else positive; a number below 0 to a finite power that is
 * no integer is NaN, below 0 to an odd integer negative. Other NaNs pass. Subnormal results are
 * rounded once more.
 * Largest error that tests/math measured: see the table in elementary.h.
 */
#ifndef LKS_CONTRACT_POW_H
#define LKS_CONTRACT_POW_H

#include "contract/exp.h"
#include "contract/log.h"
#include "contract/num.h"

/* log(x) for x > 0 and finite, with a relative error below 2^-33; hi is that rounded. */
LKS_ELEMENT struct lks_log_parts lks_log_wide(F32 x)
{
    struct lks_log_parts out;
    U32 mag = lks_bits(x);
    I32 sub = mag < 0x00800000u;
    U32 u = lks_select_u(sub, lks_bits((F32)(I32)(mag & 0x007fffffu)), mag);
    I32 e = lks_log_exponent(u);
    F32 n = (F32)(e - lks_select_i(sub, 149, 0));
    F32 f = lks_float(u - ((U32)e << 23)) - 1.0f;
    F32 v = 2.0f + f;
    F32 vl = f - (v - 2.0f);
    F32 r = lks_div(1.0f, v);
    F32 s = f * r;
    F32 sl = lks_fma(-s, vl, lks_fma(-s, v, f)) * r;
    F32 z = s * s;
    F32 zl = lks_fma(s + s, sl, lks_fma(s, s, -z));
    F32 p, c, cl, t, tl, w, wl, base, top;
    p = lks_fma(z, 0.153846160f, 0.181818187f);
    p = lks_fma(z, p, 0.222222224f);
    p = lks_fma(z, p, 0.285714298f);
    p = lks_fma(z, p, 0.400000006f);
    p = z * p;
    c = 0.666666687f + p;
    cl = ((0.666666687f - c) + p) - 1.98682151e-8f;
    t = z * c;
    tl = lks_fma(z, cl, lks_fma(zl, c, lks_fma(z, c, -t)));
    w = s * t;
    wl = lks_fma(s, tl, lks_fma(sl, t, lks_fma(s, t, -w)));
    top = (s + s) + w;
    wl = wl + (sl + sl) + (((s + s) - top) + w);
    base = n * 0.693145752f;
    t = base + top;
    tl = ((base - t) + top) + lks_fma(n, 1.42860677e-6f, wl);
    out.hi = t + tl;
    out.lo = (t - out.hi) + tl;
    return out;
}

/* x^y */
LKS_ELEMENT F32 lks_pow(F32 x, F32 y)
{
    F32 ax = lks_abs(x), ay = lks_abs(y);
    struct lks_log_parts g = lks_log_wide(ax);
    F32 t = y * g.hi;
    F32 tl = lks_fma(y, g.lo, lks_fma(y, g.hi, -t));
    I32 in = lks_abs(t) < 160.0f;
    F32 whole = lks_rint(ay);
    I32 odd = ((I32)lks_select(ay < 16777216.0f, whole, 0.0f) & 1) != 0 && whole == ay;
    struct lks_exp_parts p = lks_exp_split(lks_select(in, t, lks_copysign(160.0f, t)),
                                           lks_select(in, tl, 0.0f));
    F32 r = lks_scale(p.hi, p.n);
    F32 end = lks_select((ax == 0.0f) == (y < 0.0f), lks_inf(), 0.0f);
    r = lks_select(ax == 0.0f || lks_isinf(ax), end, r);
    r = lks_select(ax == 1.0f, 1.0f, r);
    r = lks_select(lks_bits(x) >> 31 != 0u && odd, -r, r);
    r = lks_select(x < 0.0f && whole != ay && !lks_isinf(x), lks_nan(), r);
    r = lks_select(lks_isnan(x) || lks_isnan(y), lks_nan(), r);
    return lks_select(y == 0.0f || x == 1.0f, 1.0f, r);
}

#endif
