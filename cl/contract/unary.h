/*
 * unary.h - contract of the functions of one element, y = f(x), and of their gradients.
 *
 * LKS_UNARY_STEP, LKS_UNARY_LINEAR, LKS_UNARY_CURVED, LKS_UNARY_LOG and LKS_UNARY_POWER list them;
 * a line there makes operators:
 *     NAME        y  = f(x)
 *     NAME_grad   dx = slope(v) * dy                 v is x or y, as the line says
 *     NAME_grad2  dv = (curve(v) * dy) * ddx         the gradient of NAME_grad by v
 * The gradient of steps is zero; linear ones are straight lines, whose second gradient is zero. Of
 * a power NAME alone is made: its gradient is a x^(a-1) dy, in three operators, with a-1 rounded to
 * float; nothing flows for a = 0, so that each derivative of a whole power after its last is zero.
 *
 * 1. f, slope and curve are the expressions of the table, from left to right, rounded once an
 *    operation; a and b are numbers of the operator (a slope, a limit, ...), and the functions
 *    lks_* those of elementary.h.
 * 2. One product with dy; for grad2 two.
 * Error bounds, in units of half an ulp of the result unless said otherwise:
 *     exact      abs neg sign floor ceil round clamp thresholded_relu
 *     1          square sqrt reciprocal leaky_relu add_const mul_const div_const hard_sigmoid
 *     2          exp log erf sigmoid tanh sin cos softsign, hard_swish, pow_const
 *     4          softplus silu gelu, elu (of its curved half)
 *     8          mish
 *     gelu_tanh  4 + 4 |u| / (1 + exp(u)), u twice the argument of the tanh
 * A slope or curve that is a sum has its bound in units of the sum of magnitudes; src/check/
 * real_unary.c states each, and the suite `accuracy` holds them.
 * Special values: sin, cos and their gradients are NaN beyond |x| = 2^15. sign(+-0) = +0. A NaN
 * passes, but sign(NaN) = +0. A slope of 0 gives a zero with the sign of dy.
 */
#ifndef LKS_CONTRACT_UNARY_H
#define LKS_CONTRACT_UNARY_H

#include "contract/elementary.h"
#include "contract/num.h"

struct unary_dims {
    U64 n; /* elements */
    F32 a, b;
};

/* x limited to [lo, hi] */
LKS_ELEMENT F32 lks_limit(F32 x, F32 lo, F32 hi)
{
    F32 y = lks_select(x < lo, lo, x);
    return lks_select(y > hi, hi, y);
}

/* exp(-k x^2), k being 1 or 1/2 and the result 0 beyond |x| = reach; k reach^2 <= 160. */
LKS_ELEMENT F32 lks_gauss(F32 x, F32 k, F32 reach)
{
    F32 c = lks_limit(x, -reach, reach);
    F32 t = c * c;
    struct lks_exp_parts p = lks_exp_split(-k * t, -k * lks_fma(c, c, -t));
    return lks_scale(p.hi, p.n);
}

/* The density of the normal distribution. */
LKS_ELEMENT F32 lks_normal_density(F32 x)
{
    return 0.398942292f * lks_gauss(x, 0.5f, 15.0f);
}

/* Phi(x) + x phi(x) */
LKS_ELEMENT F32 lks_gelu_slope(F32 x)
{
    struct lks_exp_parts p = lks_normal_tail(lks_limit(lks_abs(x), 0.0f, 14.6f));
    F32 tail = lks_scale(p.hi + p.lo, p.n);
    F32 phi = lks_select(x < 0.0f, tail, 1.0f - tail);
    return lks_fma(x, lks_normal_density(x), phi);
}

/* s (1 + x (1 - s)), s = sigmoid(x) */
LKS_ELEMENT F32 lks_silu_slope(F32 x)
{
    return lks_sigmoid(x) * lks_fma(x, lks_sigmoid(-x), 1.0f);
}

/* s (1 - s) (2 + x (1 - 2 s)) */
LKS_ELEMENT F32 lks_silu_curve(F32 x)
{
    F32 s = lks_sigmoid(x), m = lks_sigmoid(-x);
    return s * m * lks_fma(x, m - s, 2.0f);
}

/* gelu with tanh: x (1 + tanh(k (x + c x^3))) / 2 = x sigmoid(u), u = x (2 k + 2 k c x^2), with
 * k = sqrt(2 / pi) and c = 0.044715. */
LKS_ELEMENT F32 lks_gelu_tanh(F32 x)
{
    F32 u = x * lks_fma(x * x, 0.0713548139f, 1.59576917f);
    return lks_select(x == 0.0f, x, x * lks_sigmoid(u));
}

/* s + x s (1 - s) w, w = u' = 2 k + 6 k c x^2; beyond |x| = 20 it is 0 or 1. */
LKS_ELEMENT F32 lks_gelu_tanh_slope(F32 x)
{
    F32 c = lks_limit(x, -20.0f, 20.0f);
    F32 u = c * lks_fma(c * c, 0.0713548139f, 1.59576917f);
    F32 w = lks_fma(c * c, 0.214064442f, 1.59576917f);
    F32 s = lks_sigmoid(u), m = lks_sigmoid(-u);
    return lks_fma(c * w * m, s, s);
}

/* s (1 - s) (2 w + x (w^2 (1 - 2 s) + w')), w' = 12 k c x */
LKS_ELEMENT F32 lks_gelu_tanh_curve(F32 x)
{
    F32 c = lks_limit(x, -20.0f, 20.0f);
    F32 u = c * lks_fma(c * c, 0.0713548139f, 1.59576917f);
    F32 w = lks_fma(c * c, 0.214064442f, 1.59576917f);
    F32 s = lks_sigmoid(u), m = lks_sigmoid(-u);
    F32 t = lks_fma(w * w, m - s, 0.428128883f * c);
    return s * m * lks_fma(c, t, w + w);
}

/* tanh(softplus(x)) = n / (n + 2), n = e (e + 2), e = exp(x); and 1 - tanh^2. */
LKS_ELEMENT F32 lks_mish_part(F32 x, I32 rest)
{
    F32 e = lks_exp(lks_limit(x, -104.0f, 40.0f));
    F32 n = e * (e + 2.0f);
    F32 t = lks_div(n, n + 2.0f);
    return lks_select(rest, lks_div(2.0f, n + 2.0f) * (1.0f + t), t);
}

/* t + x (1 - t^2) s */
LKS_ELEMENT F32 lks_mish_slope(F32 x)
{
    return lks_fma(x * lks_mish_part(x, 1), lks_sigmoid(x), lks_mish_part(x, 0));
}

/* (1 - t^2) s (2 + x ((1 - s) - 2 t s)), 0 above 40 */
LKS_ELEMENT F32 lks_mish_curve(F32 x)
{
    F32 s = lks_sigmoid(x), t = lks_mish_part(x, 0);
    F32 k = lks_fma(-2.0f * t, s, lks_sigmoid(-x));
    return lks_select(x > 40.0f, 0.0f, lks_mish_part(x, 1) * s * lks_fma(x, k, 2.0f));
}

/* 1 / (1 + |x|) to the third power, with the other sign than x, doubled. */
LKS_ELEMENT F32 lks_softsign_curve(F32 x)
{
    F32 r = lks_div(1.0f, 1.0f + lks_abs(x));
    return lks_copysign(2.0f * (r * r * r), -x);
}

LKS_ELEMENT F32 lks_square(F32 x)
{
    return x * x;
}

/* ---- the tables ---- */

/* U(name, f(v)): the gradient is zero. */
#define LKS_UNARY_STEP(U)                                                                          \
    U(ceil, -lks_floor(-v))                                                                        \
    U(floor, lks_floor(v))                                                                         \
    U(round, lks_rint(v)) /* ties to even */                                                       \
    U(sign, lks_select(v > 0.0f, 1.0f, lks_select(v < 0.0f, -1.0f, 0.0f)))

/* U(name, X or Y, domain, f(v), slope(v)): the slope is taken at x or at y. */
#define LKS_UNARY_LINEAR(U)                                                                        \
    U(abs, X, ANY, lks_abs(v), lks_select(v > 0.0f, 1.0f, lks_select(v < 0.0f, -1.0f, 0.0f)))      \
    U(add_const, X, ANY, v + a, 1.0f)                                                              \
    U(clamp, X, ANY, lks_limit(v, a, b), lks_select(v < a || v > b, 0.0f, 1.0f))                   \
    U(div_const, X, ANY, lks_div(v, a), lks_div(1.0f, a))                                          \
    U(hard_sigmoid, Y, ANY, lks_limit(lks_fma(v, a, b), 0.0f, 1.0f),                               \
      lks_select(v > 0.0f && v < 1.0f, a, 0.0f))                                                   \
    U(leaky_relu, X, ANY, lks_select(v > 0.0f, v, a * v), lks_select(v > 0.0f, 1.0f, a))           \
    U(mul_const, X, ANY, v * a, a)                                                                 \
    U(neg, X, ANY, -v, -1.0f)                                                                      \
    U(thresholded_relu, X, ANY, lks_select(v > a, v, 0.0f), lks_select(v > a, 1.0f, 0.0f))

/* U(name, X or Y, domain, f(v), slope(v), curve(v)): the curve is the slope's derivative by v. */
#define LKS_UNARY_CURVED(U)                                                                        \
    U(celu, Y, ANY, lks_select(v > 0.0f, v, a * lks_expm1(lks_div(v, a))),                         \
      lks_select(v > 0.0f, 1.0f, lks_div(v, a) + 1.0f),                                            \
      lks_select(v > 0.0f, 0.0f, lks_div(1.0f, a)))                                                \
    U(cos, X, ANY, lks_cos(v), -lks_sin(v), -lks_cos(v))                                           \
    U(elu, Y, ANY, lks_select(v > 0.0f, a * v, b * lks_expm1(v)),                                  \
      lks_select(v > 0.0f, a, v + b), lks_select(v > 0.0f, 0.0f, 1.0f))                            \
    U(erf, X, ANY, lks_erf(v), 1.12837923f * lks_gauss(v, 1.0f, 12.0f),                            \
      -2.0f * v * (1.12837923f * lks_gauss(v, 1.0f, 12.0f)))                                       \
    U(exp, Y, ANY, lks_exp(v), v, 1.0f)                                                            \
    U(gelu, X, ANY, lks_gelu(v), lks_gelu_slope(v),                                                \
      lks_normal_density(v) * lks_fma(-v, v, 2.0f))                                                \
    U(gelu_tanh, X, ANY, lks_gelu_tanh(v), lks_gelu_tanh_slope(v), lks_gelu_tanh_curve(v))         \
    U(hard_swish, X, ANY, v * lks_limit(lks_fma(v, a, b), 0.0f, 1.0f),                             \
      lks_select(lks_fma(v, a, b) <= 0.0f, 0.0f,                                                   \
                 lks_select(lks_fma(v, a, b) >= 1.0f, 1.0f, lks_fma(v + v, a, b))),                \
      lks_select(lks_fma(v, a, b) > 0.0f && lks_fma(v, a, b) < 1.0f, a + a, 0.0f))                 \
    U(mish, X, ANY, v * lks_mish_part(v, 0), lks_mish_slope(v), lks_mish_curve(v))                 \
    U(reciprocal, Y, NONZERO, lks_div(1.0f, v), -(v * v), -2.0f * v)                               \
    U(sigmoid, Y, ANY, lks_sigmoid(v), v * (1.0f - v), lks_fma(-2.0f, v, 1.0f))                    \
    U(silu, X, ANY, lks_silu(v), lks_silu_slope(v), lks_silu_curve(v))                             \
    U(sin, X, ANY, lks_sin(v), lks_cos(v), -lks_sin(v))                                            \
    U(softplus, X, ANY, lks_softplus(v), lks_sigmoid(v), lks_sigmoid(v) * lks_sigmoid(-v))         \
    U(softsign, X, ANY, lks_div(v, 1.0f + lks_abs(v)),                                             \
      lks_square(lks_div(1.0f, 1.0f + lks_abs(v))), lks_softsign_curve(v))                         \
    U(sqrt, Y, POSITIVE, lks_sqrt(v), lks_div(0.5f, v), -lks_div(lks_div(0.5f, v), v))             \
    U(square, X, ANY, v * v, v + v, 2.0f)                                                          \
    U(tanh, Y, ANY, lks_tanh(v), lks_fma(-v, v, 1.0f), -2.0f * v)

/* As the curved ones; it has gradients of every order. */
#define LKS_UNARY_LOG(U)                                                                           \
    U(log, X, POSITIVE, lks_log(v), lks_div(1.0f, v), -lks_square(lks_div(1.0f, v)))

/* U(name, f(v)): the gradient is made of powers. */
#define LKS_UNARY_POWER(U) U(pow_const, lks_pow(v, a))

/* ---- what a line makes ---- */

/* A name meets ## in the first macro that sees it, since implementations of OpenCL make macros of
 * words such as `abs`. */

#define LKS_UNARY_OF(function, expression)                                                         \
    LKS_ELEMENT F32 function(F32 v, F32 a, F32 b)                                                   \
    {                                                                                              \
        (void)v;                                                                                   \
        (void)a;                                                                                   \
        (void)b;                                                                                   \
        return expression;                                                                         \
    }

#define LKS_UNARY_F(item, of, f)                                                                   \
    LKS_UNARY_OF(of, f)                                                                            \
    LKS_INLINE void item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL F32 *y,                           \
                         LKS_CONST struct unary_dims *d, U64 i)                                    \
    {                                                                                              \
        y[i] = of(x[i], d->a, d->b);                                                               \
    }

#define LKS_UNARY_SLOPE(item, of, slope)                                                           \
    LKS_UNARY_OF(of, slope)                                                                        \
    LKS_INLINE void item(LKS_GLOBAL LKS_CONST F32 *v, LKS_GLOBAL LKS_CONST F32 *dy,                \
                         LKS_GLOBAL F32 *dx, LKS_CONST struct unary_dims *d, U64 i)                \
    {                                                                                              \
        dx[i] = of(v[i], d->a, d->b) * dy[i];                                                      \
    }

#define LKS_UNARY_CURVE(item, of, curve)                                                           \
    LKS_UNARY_OF(of, curve)                                                                        \
    LKS_INLINE void item(LKS_GLOBAL LKS_CONST F32 *v, LKS_GLOBAL LKS_CONST F32 *dy,                \
                         LKS_GLOBAL LKS_CONST F32 *ddx, LKS_GLOBAL F32 *dv,                        \
                         LKS_CONST struct unary_dims *d, U64 i)                                    \
    {                                                                                              \
        dv[i] = of(v[i], d->a, d->b) * dy[i] * ddx[i];                                             \
    }

#define LKS_UNARY_MAKE_STEP(name, f) LKS_UNARY_F(name##_item, name##_of, f)
#define LKS_UNARY_MAKE_LINEAR(name, at, domain, f, slope)                                          \
    LKS_UNARY_F(name##_item, name##_of, f)                                                         \
    LKS_UNARY_SLOPE(name##_grad_item, name##_grad_of, slope)
#define LKS_UNARY_MAKE_CURVED(name, at, domain, f, slope, curve)                                   \
    LKS_UNARY_F(name##_item, name##_of, f)                                                         \
    LKS_UNARY_SLOPE(name##_grad_item, name##_grad_of, slope)                                       \
    LKS_UNARY_CURVE(name##_grad2_item, name##_grad2_of, curve)

LKS_UNARY_STEP(LKS_UNARY_MAKE_STEP)
LKS_UNARY_POWER(LKS_UNARY_MAKE_STEP)
LKS_UNARY_LINEAR(LKS_UNARY_MAKE_LINEAR)
LKS_UNARY_CURVED(LKS_UNARY_MAKE_CURVED)
LKS_UNARY_LOG(LKS_UNARY_MAKE_CURVED)

#endif
