/*
 * sigmoid.h - lks_sigmoid, lks_silu, lks_tanh.
 *
 * sigmoid(x) = 1 / (1 + exp(-x)), as N / (1 + E) with E = exp(-|x|) and N = 1 or, below zero, E.
 * silu(x)    = x sigmoid(x).
 * tanh(x)    = x + x^3 P(x^2) for |x| < 0.6 (P of degree 4, relative error 2^-28.4), otherwise
 *              1 - 2 / (1 + exp(2|x|)) with the sign of x.
 * E is kept as an unevaluated sum of two numbers, and the quotient, one division, is corrected
 * by its remainder, so that only the last addition rounds at full size; a power of two is
 * applied after it.
 *
 * sigmoid: -inf -> +0, +-0 -> 1/2, +inf -> 1, NaN -> NaN.
 * silu:    -inf -> -0 (the limit), +-0 -> +-0, +inf -> +inf, NaN -> NaN.
 * tanh:    +-inf -> +-1, +-0 -> +-0, NaN -> NaN.
 * Largest error over all 2^32 inputs: see the table in elementary.h.
 */
#ifndef LKS_CONTRACT_SIGMOID_H
#define LKS_CONTRACT_SIGMOID_H

#include "contract/num.h"
#include "contract/exp.h"

/* sigmoid(x) = (hi + lo) * 2^n for |x| <= 170; n is 0 for x >= 0. */
LKS_ELEMENT struct lks_exp_parts lks_sigmoid_split(F32 x)
{
    struct lks_exp_parts out;
    struct lks_exp_parts p = lks_exp_split(-lks_abs(x), 0.0f);
    I32 neg = x < 0.0f;
    F32 eh = lks_scale(p.hi, p.n);
    F32 el = lks_scale(p.lo, p.n);
    F32 d = 1.0f + eh;
    F32 dl = ((1.0f - d) + eh) + el;
    F32 inv = lks_div(1.0f, d);
    F32 nh = lks_select(neg, p.hi, 1.0f);
    F32 nl = lks_select(neg, p.lo, 0.0f);
    F32 q = nh * inv;
    F32 r = lks_fma(-q, d, nh) + lks_fma(-q, dl, nl);
    out.hi = q;
    out.lo = r * inv;
    out.n = lks_select_i(neg, p.n, 0);
    return out;
}

/* 1 / (1 + exp(-x)) */
LKS_ELEMENT F32 lks_sigmoid(F32 x)
{
    struct lks_exp_parts p;
    F32 c = lks_select(x > -104.0f, x, -104.0f);
    c = lks_select(c < 104.0f, c, 104.0f);
    p = lks_sigmoid_split(c);
    return lks_select(lks_isnan(x), lks_nan(), lks_scale(p.hi + p.lo, p.n));
}

/* x / (1 + exp(-x)) */
LKS_ELEMENT F32 lks_silu(F32 x)
{
    struct lks_exp_parts p;
    F32 h, l, y;
    F32 c = lks_select(x > -120.0f, x, -120.0f);
    c = lks_select(c < 120.0f, c, 120.0f);
    p = lks_sigmoid_split(c);
    h = c * p.hi;
    l = lks_fma(c, p.lo, lks_fma(c, p.hi, -h));
    y = lks_scale(h + l, p.n);
    y = lks_select(x > 30.0f || x == 0.0f, x, y);
    return lks_select(lks_isnan(x), lks_nan(), y);
}

/* tanh(x) */
LKS_ELEMENT F32 lks_tanh(F32 x)
{
    F32 a = lks_abs(x);
    F32 z, p, small, c, eh, el, d, dl, inv, q, ql, h, y;
    struct lks_exp_parts e;

    c = lks_select(a < 0.6f, a, 0.6f);
    z = c * c;
    p = lks_fma(z, -0.00589826424f, 0.0207987521f);
    p = lks_fma(z, p, -0.0537847243f);
    p = lks_fma(z, p, 0.133319363f);
    p = lks_fma(z, p, -0.333332986f);
    small = lks_fma(z * p, c, c);

    c = lks_select(a < 10.0f, a, 10.0f);
    e = lks_exp_split(c + c, 0.0f);
    eh = lks_scale(e.hi, e.n);
    el = lks_scale(e.lo, e.n);
    d = eh + 1.0f;
    dl = ((eh - d) + 1.0f) + el;
    inv = lks_div(1.0f, d);
    q = inv + inv;
    ql = lks_fma(-q, dl, lks_fma(-q, d, 2.0f)) * inv;
    h = 1.0f - q;
    y = h + (((1.0f - h) - q) - ql);

    y = lks_copysign(lks_select(a < 0.6f, small, y), x);
    return lks_select(lks_isnan(x), lks_nan(), y);
}

#endif
