/*
 * real_unary.c - the functions of one element in double precision; see real.h and, for the list,
 * contract/unary.h.
 */
#include <float.h>
#include <math.h>

#include "check/real.h"
#include "op/attr.h"

#define G lksi_real_gamma

/* A number and what fp32 may be off. */
struct value {
    double v, err;
};

/* One function at one point: `v` is x, or y where slopes are taken at the result. */
typedef struct value (*point_fn)(double v, double a, double b);

static struct value with(double v, double units)
{
    return (struct value){v, G(units, fabs(v)) + 0x1p-149};
}

/* The same where a factor `by` multiplies a part that may be subnormal. */
static struct value scaled(double v, double err, double by)
{
    return (struct value){v, err + (1 + fabs(by)) * 0x1p-147};
}

static struct value within(double v, double err)
{
    return (struct value){v, err + 0x1p-149};
}

static double sigma(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static double density(double x)
{
    return exp(-x * x / 2) * 0.39894228040143267794;
}

static double normal(double x)
{
    return erfc(-x * M_SQRT1_2) / 2;
}

static double sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}

static double limit(double x, double lo, double hi)
{
    return isnan(x) ? x : x < lo ? lo : x > hi ? hi : x;
}

/* sin and cos are given up beyond 2^15. */
static double turn(double x, double (*f)(double))
{
    return fabs(x) <= 32768 ? f(x) : NAN;
}

static struct value gelu_slope(double x)
{
    double p = normal(x), q = x * density(x);
    return scaled(p + q, G(5, fabs(p) + fabs(q)), x);
}

static struct value silu(double x)
{
    return with(x < -800 ? -0.0 : x * sigma(x), 4);
}

static struct value silu_slope(double x)
{
    double s = sigma(x), m = sigma(-x);
    return scaled(s * (1 + x * m), G(7, s * (1 + fabs(x) * m)), x);
}

static struct value silu_curve(double x)
{
    double s = sigma(x), m = sigma(-x);
    return scaled(s * m * (2 + x * (m - s)), G(10, s * m * (2 + fabs(x))), x);
}

/* The argument of the sigmoid in gelu_tanh, and its first two derivatives. */
#define GELU_K (2 * 0.79788456080286535588)
#define GELU_C 0.044715
static void gelu_inner(double x, double u[3])
{
    u[0] = GELU_K * (x + GELU_C * x * x * x);
    u[1] = GELU_K * (1 + 3 * GELU_C * x * x);
    u[2] = GELU_K * 6 * GELU_C * x;
}

static struct value gelu_tanh(double x)
{
    double u[3];
    gelu_inner(x, u);
    return with(x < -800 ? -0.0 : x * sigma(u[0]), 4 + 4 * fabs(u[0]) * sigma(-u[0]));
}

static struct value gelu_tanh_slope(double x)
{
    double u[3], s, q;
    gelu_inner(limit(x, -30, 30), u);
    s = sigma(u[0]);
    q = limit(x, -30, 30) * s * sigma(-u[0]) * u[1];
    return within(s + q, G(6 + 4 * fabs(u[0]) * sigma(-u[0]), s) +
                             G(12 + 4 * fabs(u[0]), fabs(q)) + 1e-37);
}

static struct value gelu_tanh_curve(double x)
{
    double u[3], s, m, c = limit(x, -30, 30);
    gelu_inner(c, u);
    s = sigma(u[0]);
    m = sigma(-u[0]);
    return within(s * m * (2 * u[1] + c * (u[1] * u[1] * (m - s) + u[2])),
                  G(20 + 4 * fabs(u[0]),
                    s * m * (2 * u[1] + fabs(c) * (u[1] * u[1] + fabs(u[2])))) +
                      1e-37);
}

static double mish_tanh(double x)
{
    double e = exp(limit(x, -1000, 100)), n = e * (e + 2);
    return n / (n + 2);
}

static double mish_rest(double x)
{
    double e = exp(limit(x, -1000, 100)), n = e * (e + 2);
    return 2 / (n + 2) * (1 + n / (n + 2));
}

static struct value mish_slope(double x)
{
    double t = mish_tanh(x), q = x * mish_rest(x) * sigma(x);
    return within(t + q, G(8, t) + G(16, fabs(q)) + 1e-30);
}

static struct value mish_curve(double x)
{
    double t = mish_tanh(x), s = sigma(x), m = sigma(-x), w = mish_rest(x) * s;
    return within(w * (2 + x * (m - 2 * t * s)),
                  G(24, w * (2 + fabs(x) * (m + 2 * t * s))) + 1e-30);
}

/* F(name, f) for steps, with slope, with slope and curve: each gives a struct value. */
#define STEPS(F)                                                                                   \
    F(ceil, with(ceil(v), 0))                                                                      \
    F(floor, with(floor(v), 0))                                                                    \
    F(pow_const, with(pow(v, a), 2))                                                               \
    F(round, with(rint(v), 0))                                                                     \
    F(sign, with(sign(v), 0))
#define LINEAR(F)                                                                                  \
    F(abs, with(fabs(v), 0), with(sign(v), 0))                                                     \
    F(add_const, with(v + a, 1), with(1, 0))                                                       \
    F(clamp, with(limit(v, a, b), 0), with(v < a || v > b ? 0 : 1, 0))                             \
    F(div_const, with(v / a, 1), with(1 / a, 1))                                                   \
    F(hard_sigmoid, within(limit(v * a + b, 0, 1), G(1, 1)), with(v > 0 && v < 1 ? a : 0, 0))      \
    F(leaky_relu, with(v > 0 ? v : a * v, 1), with(v > 0 ? 1 : a, 0))                              \
    F(mul_const, with(v * a, 1), with(a, 0))                                                       \
    F(neg, with(-v, 0), with(-1, 0))                                                               \
    F(thresholded_relu, with(v > a ? v : 0, 0), with(v > a ? 1 : 0, 0))
#define CURVED(F)                                                                                  \
    F(celu, with(v > 0 ? v : a * expm1(v / a), 5),                                                 \
      v > 0 ? with(1, 0) : within(v / a + 1, G(2, fabs(v / a) + 1)),                               \
      v > 0 ? with(0, 0) : with(1 / a, 1))                                                         \
    F(cos, with(turn(v, cos), 2), with(-turn(v, sin), 2), with(-turn(v, cos), 2))                  \
    F(elu, with(v > 0 ? a * v : b * expm1(v), 4), with(v > 0 ? a : v + b, 1),                      \
      with(v > 0 ? 0 : 1, 0))                                                                      \
    F(erf, with(erf(v), 2), with(exp(-v * v) * M_2_SQRTPI, 4),                                     \
      scaled(-2 * v * exp(-v * v) * M_2_SQRTPI,                                                    \
             G(5, 2 * fabs(v) * exp(-v * v) * M_2_SQRTPI), v))                                     \
    F(exp, with(exp(v), 2), with(v, 0), with(1, 0))                                                \
    F(gelu, with(v < -800 ? -0.0 : v * normal(v), 4), gelu_slope(v),                               \
      scaled(density(v) * (2 - v * v), G(6, density(v) * (2 + v * v)), v * v))                     \
    F(gelu_tanh, gelu_tanh(v), gelu_tanh_slope(v), gelu_tanh_curve(v))                             \
    F(hard_swish, within(v * limit(v * a + b, 0, 1), G(3, fabs(v))),                               \
      v * a + b <= 0   ? with(0, 0)                                                                \
      : v * a + b >= 1 ? with(1, 0)                                                                \
                       : within(2 * v * a + b, G(2, 2 * fabs(v * a) + b)),                         \
      with(v * a + b > 0 && v * a + b < 1 ? 2 * a : 0, 0))                                         \
    F(log, with(log(v), 2), with(1 / v, 1), with(-1 / (v * v), 4))                                 \
    F(mish, scaled(v * mish_tanh(v), G(8, fabs(v * mish_tanh(v))), v), mish_slope(v),              \
      mish_curve(v))                                                                               \
    F(reciprocal, with(1 / v, 1), with(-v * v, 1), with(-2 * v, 0))                                \
    F(sigmoid, with(sigma(v), 2), within(v * (1 - v), G(3, fabs(v * (1 - v)))),                    \
      with(1 - 2 * v, 1))                                                                          \
    F(silu, silu(v), silu_slope(v), silu_curve(v))                                                 \
    F(sin, with(turn(v, sin), 2), with(turn(v, cos), 2), with(-turn(v, sin), 2))                   \
    F(softplus, with(v > 0 ? v + log1p(exp(-v)) : log1p(exp(v)), 4), with(sigma(v), 2),            \
      with(sigma(v) * sigma(-v), 6))                                                               \
    F(softsign, with(v / (1 + fabs(v)), 2), with(1 / ((1 + fabs(v)) * (1 + fabs(v))), 6),          \
      with(copysign(2 / ((1 + fabs(v)) * (1 + fabs(v)) * (1 + fabs(v))), -v), 10))                 \
    F(sqrt, with(sqrt(v), 1), with(0.5 / v, 1), with(-0.5 / v / v, 2))                             \
    F(square, with(v * v, 1), with(2 * v, 0), with(2, 0))                                          \
    F(tanh, with(tanh(v), 2), with(1 - v * v, 1), with(-2 * v, 0))

/* ---- from points to operators ---- */

/* A number that left the range of fp32 on the way is infinite from there on. */
static double reach(double v)
{
    return fabs(v) > (double)FLT_MAX * (1 + LKSI_REAL_U / 2) ? copysign(INFINITY, v) : v;
}

static void run(const struct lksi_real_io *io, point_fn f)
{
    const struct lksi_unary_attr *attr = io->call->attr;
    uint64_t n = (uint64_t)lksi_desc_count(&io->call->out[0]);
    for (uint64_t e = 0; e < n; e++) {
        struct value p = f(io->in[0][e], (double)attr->a, (double)attr->b);
        for (int k = 1; k < io->call->n_in; k++) {
            double g = io->in[k][e];
            p.v = reach(p.v) * g;
            p.err = p.err * fabs(g) + G(1, fabs(p.v) + p.err * fabs(g)) + 0x1p-149;
        }
        lksi_real_put(io, 0, e, p.v, p.err);
    }
}

#define POINT(name, point)                                                                         \
    static struct value at_##name(double v, double a, double b)                                    \
    {                                                                                              \
        (void)v;                                                                                   \
        (void)a;                                                                                   \
        (void)b;                                                                                   \
        return point;                                                                              \
    }                                                                                              \
    static void real_##name(const struct lksi_real_io *io)                                         \
    {                                                                                              \
        run(io, at_##name);                                                                        \
    }
#define POINT2(name, f, slope)        POINT(name, f) POINT(name##_grad, slope)
#define POINT3(name, f, slope, curve) POINT2(name, f, slope) POINT(name##_grad2, curve)
STEPS(POINT)
LINEAR(POINT2)
CURVED(POINT3)

#define ROW(name, f)                {#name, real_##name},
#define ROW2(name, f, slope)        ROW(name, f) ROW(name##_grad, slope)
#define ROW3(name, f, slope, curve) ROW2(name, f, slope) ROW(name##_grad2, curve)
const struct lksi_real_entry lksi_real_unary[] = {STEPS(ROW) LINEAR(ROW2) CURVED(ROW3){NULL, NULL}};
