/*
 * divsqrt.h - correctly rounded fp32 division and square root from fma and integers.
 *
 * For devices whose `/` and sqrt() are not correctly rounded. num.h includes this file and
 * chooses; no one else calls it. The results equal IEEE-754's on all inputs (NaN as a class).
 *
 * Method. Significands are taken out as integers, so that no subnormal number takes part in
 * floating-point arithmetic, and scaled so that the result lies in [1,2). A Newton iteration
 * gives the result to within one unit of 2^-23; the remainder, one fma, is then exact, and
 * comparing it with half a unit moves the result to the correctly rounded neighbour (a tie
 * cannot occur). The exponent is put back by integer addition; a subnormal quotient is rounded
 * in integers, the sign of the remainder serving as the sticky bit. Specials come last, by
 * select.
 */
#ifndef LKS_CONTRACT_DIVSQRT_H
#define LKS_CONTRACT_DIVSQRT_H

/* Splits the magnitude bits of a finite number > 0: returns its significand in [1,2) and its
 * binary exponent through the bit pattern of an exactly converted integer. */
LKS_INLINE F32 lks_div_significand(U32 mag)
{
    U32 sub = lks_bits((F32)(I32)mag); /* exact when mag is a subnormal pattern */
    U32 u = lks_select_u(mag < 0x00800000u, sub, mag);
    return lks_float((u & 0x007fffffu) | 0x3f800000u);
}

LKS_INLINE I32 lks_div_exponent(U32 mag)
{
    U32 sub = lks_bits((F32)(I32)mag);
    return lks_select_i(mag < 0x00800000u, (I32)(sub >> 23) - 127 - 149, (I32)(mag >> 23) - 127);
}

/* Quotient q in [1,2) rounded correctly, with exact remainder r, times 2^e, as bits. */
LKS_INLINE U32 lks_div_scale(F32 q, F32 r, I32 e)
{
    U32 uq = lks_bits(q);
    U32 normal = uq + ((U32)e << 23);
    /* Below 2^-126: four times the significand, nudged by the sign of the remainder, is
     * shifted right and rounded to even; at 28 or more every quotient has become +0. */
    I32 k = lks_select_i(e < -126, -126 - e, 1);
    U32 sh = (U32)lks_select_i(k > 26, 26, k) + 2u;
    U32 t = 4u * ((uq & 0x007fffffu) | 0x00800000u) + (U32)(r > 0.0f) - (U32)(r < 0.0f);
    U32 sub = (t + ((1u << (sh - 1u)) - 1u) + ((t >> sh) & 1u)) >> sh;
    U32 u = lks_select_u(e < -126, sub, normal);
    return lks_select_u(e > 127, 0x7f800000u, u);
}

LKS_INLINE F32 lks_div_soft(F32 a, F32 b)
{
    U32 ma = lks_bits(a) & 0x7fffffffu;
    U32 mb = lks_bits(b) & 0x7fffffffu;
    U32 sign = (lks_bits(a) ^ lks_bits(b)) & 0x80000000u;
    F32 x = lks_div_significand(ma);
    F32 d = lks_div_significand(mb);
    I32 e = lks_div_exponent(ma) - lks_div_exponent(mb);
    I32 low = x < d;
    F32 n = lks_select(low, x + x, x);
    F32 y, q, r, half_unit;
    U32 u;
    I32 bad;
    e -= low;

    y = lks_fma(d, -0.47058824f, 1.4117647f); /* 1/d within 1/17 */
    y = lks_fma(y, lks_fma(-d, y, 1.0f), y);
    y = lks_fma(y, lks_fma(-d, y, 1.0f), y);
    y = lks_fma(y, lks_fma(-d, y, 1.0f), y);
    q = n * y;
    q = lks_fma(lks_fma(-q, d, n), y, q);
    q = lks_select(q < 1.0f, 1.0f, q);
    r = lks_fma(-q, d, n);
    half_unit = d * 5.9604645e-8f; /* d * 2^-24 */
    q = q + lks_select(r > half_unit, 1.1920929e-7f, 0.0f);
    q = q - lks_select(r < -half_unit, 1.1920929e-7f, 0.0f);
    r = lks_fma(-q, d, n);

    u = lks_div_scale(q, r, e);
    u = lks_select_u(ma == 0u || mb == 0x7f800000u, 0u, u);
    u = lks_select_u(mb == 0u || ma == 0x7f800000u, 0x7f800000u, u);
    bad = ma > 0x7f800000u || mb > 0x7f800000u || (ma == 0u && mb == 0u) ||
          (ma == 0x7f800000u && mb == 0x7f800000u);
    return lks_float(lks_select_u(bad, 0x7fc00000u, u | sign));
}

LKS_INLINE F32 lks_sqrt_soft(F32 x)
{
    U32 mag = lks_bits(x) & 0x7fffffffu;
    F32 m = lks_div_significand(mag);
    I32 e = lks_div_exponent(mag);
    I32 odd = e & 1;
    F32 v = lks_select(odd, m + m, m); /* in [1,4) */
    F32 y, s, r, unit;
    U32 u;

    y = lks_fma(v, -0.16f, 1.09f); /* 1/sqrt(v) within 13 % */
    y = y * lks_fma(-0.5f * v * y, y, 1.5f);
    y = y * lks_fma(-0.5f * v * y, y, 1.5f);
    y = y * lks_fma(-0.5f * v * y, y, 1.5f);
    y = y * lks_fma(-0.5f * v * y, y, 1.5f);
    s = v * y;
    s = lks_fma(lks_fma(-s, s, v), 0.5f * y, s);
    s = lks_select(s < 1.0f, 1.0f, s);
    r = lks_fma(-s, s, v);
    unit = s * 1.1920929e-7f; /* s * 2^-23 */
    s = s + lks_select(r > unit, 1.1920929e-7f, 0.0f);
    s = s - lks_select(r <= -unit, 1.1920929e-7f, 0.0f);

    u = lks_bits(s) + ((U32)((e - odd) / 2) << 23);
    u = lks_select_u(mag == 0x7f800000u, 0x7f800000u, u);
    u = lks_select_u(lks_bits(x) > 0x80000000u || mag > 0x7f800000u, 0x7fc00000u, u);
    u = lks_select_u(mag == 0u, lks_bits(x), u);
    return lks_float(u);
}

#endif
