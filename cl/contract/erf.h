/*
 * erf.h - lks_erf, lks_gelu.
 *
 * erf:  x + x P(x^2) for |x| < 1 (P of degree 6, relative error 2^-29), otherwise 1 - exp(-p(|x|))
 *       with p of degree 6 (error of the result 2^-29.7) and the sign of x; 1 from 3.93 on.
 * gelu: x Phi(x) with Phi(x) = (1 + erf(x / sqrt 2)) / 2, through the tail
 *           T(a) = Phi(-a) = g p(u) exp(-a^2 / 2),  a = |x|,  g = 1 / (a + 3),  u = 1 - 6 g
 *       with p of degree 10 (relative error 2^-28.9 for a <= 14.6). gelu = x T(a) below zero and
 *       x - x T(a) above. g, p, a^2 and the exponential are unevaluated sums of two numbers.
 *
 * erf:  +-0 -> +-0, +-inf -> +-1, NaN -> NaN.
 * gelu: +-0 -> +-0, -inf -> -0 (the limit), +inf -> +inf, NaN -> NaN.
 * Largest error over all 2^32 inputs: see the table in elementary.h.
 */
#ifndef LKS_CONTRACT_ERF_H
#define LKS_CONTRACT_ERF_H

#include "contract/num.h"
#include "contract/exp.h"

/* erf(x) = 2 / sqrt(pi) * integral from 0 to x of exp(-t^2) dt */
LKS_ELEMENT F32 lks_erf(F32 x)
{
    F32 a = lks_abs(x);
    F32 c, z, p, m, s, sl, small, y;
    struct lks_exp_parts e;

    c = lks_select(a < 1.0f, a, 1.0f);
    z = c * c;
    p = lks_fma(z, 7.75432491e-05f, -0.000798406021f);
    p = lks_fma(z, p, 0.00518587371f);
    p = lks_fma(z, p, -0.0268528461f);
    p = lks_fma(z, p, 0.11283572f);
    p = lks_fma(z, p, -0.37612626f);
    p = lks_fma(z, p, 0.128379166f);
    small = lks_fma(c, p, c);

    c = lks_select(a < 3.93f, a, 3.93f);
    p = lks_fma(c, -0.000187605096f, 0.00296011753f);
    p = lks_fma(c, p, -0.0218896512f);
    p = lks_fma(c, p, 0.103218205f);
    p = lks_fma(c, p, 0.63801223f);
    /* the last two steps as two numbers */
    m = c * p;
    s = 1.12717164f + m;
    sl = ((1.12717164f - s) + m) + lks_fma(c, p, -m);
    p = lks_fma(c, s, 0.00032057779f);
    sl = lks_fma(c, sl, lks_fma(c, s, -p) + 0.00032057779f);
    e = lks_exp_split(-p, -sl);
    y = 1.0f - lks_scale(e.hi, e.n);

    y = lks_copysign(lks_select(a < 1.0f, small, y), x);
    return lks_select(lks_isnan(x), lks_nan(), y);
}

/* T(a) = Phi(-a) = (hi + lo) * 2^n for 0 <= a <= 14.6. */
LKS_ELEMENT struct lks_exp_parts lks_normal_tail(F32 a)
{
    struct lks_exp_parts out, e;
    F32 d = a + 3.0f;
    F32 t = d - a;
    F32 dl = (a - (d - t)) + (3.0f - t);
    F32 g = lks_div(1.0f, d);
    F32 gl = lks_fma(-g, dl, lks_fma(-g, d, 1.0f)) * g;
    F32 u = lks_fma(-6.0f, g, 1.0f);
    F32 ul = lks_fma(-6.0f, gl, lks_fma(-6.0f, g, 1.0f - u));
    F32 s, sl, m, h, l;

    /* p(u) = 0.729083717 - 2.6e-8 + u (-0.509332001 + u s) */
    s = lks_fma(u, 5.20110589e-05f, 0.000127078485f);
    s = lks_fma(u, s, -0.000243369213f);
    s = lks_fma(u, s, -0.00102793309f);
    s = lks_fma(u, s, 0.00102484378f);
    s = lks_fma(u, s, 0.00696755201f);
    s = lks_fma(u, s, -0.0104626175f);
    s = lks_fma(u, s, -0.0472624339f);
    s = lks_fma(u, s, 0.230017707f);
    m = u * s;
    h = -0.509332001f + m;
    sl = ((-0.509332001f - h) + m) + lks_fma(u, s, -m);
    ul = ul * (h + m); /* times nearly p'(u) */
    s = h;
    m = u * s;
    l = lks_fma(u, s, -m) + lks_fma(u, sl, ul - 2.64976769e-08f);
    h = 0.729083717f + m;
    t = h - 0.729083717f;
    l = l + ((0.729083717f - (h - t)) + (m - t));

    /* times g */
    m = h * g;
    l = lks_fma(h, g, -m) + lks_fma(h, gl, l * g);

    /* times exp(-a^2 / 2) */
    t = a * a;
    e = lks_exp_split(-0.5f * t, -0.5f * lks_fma(a, a, -t));
    out.hi = m * e.hi;
    out.lo = lks_fma(m, e.hi, -out.hi) + lks_fma(m, e.lo, l * e.hi);
    out.n = e.n;
    return out;
}

/* x Phi(x) */
LKS_ELEMENT F32 lks_gelu(F32 x)
{
    F32 a = lks_abs(x);
    F32 c = lks_select(a < 14.6f, a, 14.6f);
    struct lks_exp_parts p = lks_normal_tail(c);
    F32 h, l, neg, pos, y;

    h = c * p.hi;
    l = lks_fma(c, p.lo, lks_fma(c, p.hi, -h));
    neg = -lks_scale(h + l, p.n);

    h = lks_scale(p.hi, p.n);
    l = 1.0f - h;
    h = ((1.0f - l) - h) - lks_scale(p.lo, p.n);
    pos = c * l;
    pos = pos + lks_fma(c, h, lks_fma(c, l, -pos));

    y = lks_select(x < 0.0f, neg, pos);
    y = lks_select(x > 14.6f || x == 0.0f, x, y);
    return lks_select(lks_isnan(x), lks_nan(), y);
}

#endif
