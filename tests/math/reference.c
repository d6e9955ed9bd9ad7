/*
 * reference.c - the functions in double. Each is right to a few units of 2^-53, some 2^-28 of an
 * ulp of fp32, so the errors measured with it are true to about seven digits.
 */
#include <math.h>
#include <string.h>

#include "functions.h"
#include "table.h"

static double ref_sigmoid(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static double ref_silu(double x)
{
    return x < -800 ? -0.0 : x * ref_sigmoid(x);
}

static double ref_softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double ref_gelu(double x)
{
    return x < -800 ? -0.0 : 0.5 * x * erfc(-x * M_SQRT1_2);
}

/* sin(pi x) for shift 0, cos(pi x) for shift 1 */
static double turn(double x, int shift)
{
    double y = x - 2 * trunc(x / 2), n = rint(2 * y), r = y - n / 2, v;
    if (isnan(y))
        return NAN;
    int k = (int)n + shift;
    v = (k & 1) != 0 ? cos(M_PI * r) : sin(M_PI * r);
    return (k & 2) != 0 ? -v : v;
}

static double ref_sinpi(double x)
{
    return turn(x, 0);
}

static double ref_cospi(double x)
{
    return turn(x, 1);
}

static double ref_sin(double x)
{
    return fabs(x) <= 32768 ? sin(x) : NAN;
}

static double ref_cos(double x)
{
    return fabs(x) <= 32768 ? cos(x) : NAN;
}

static double ref_reciprocal(double x)
{
    return 1 / x;
}

static double ref_pow(double x)
{
    return pow((double)math_power_base((float)x), (double)math_power_exponent((float)x));
}

const struct math_reference math_references[MATH_COUNT] = {
    {"exp", exp, 1},
    {"log", log, 1},
    {"log1p", log1p, 1},
    {"tanh", tanh, 1},
    {"sigmoid", ref_sigmoid, 1},
    {"erf", erf, 1},
    {"sinpi", ref_sinpi, 1},
    {"cospi", ref_cospi, 1},
    {"softplus", ref_softplus, 2},
    {"silu", ref_silu, 2},
    {"gelu", ref_gelu, 2},
    {"sin", ref_sin, 2},
    {"cos", ref_cos, 2},
    {"sqrt", sqrt, 0.5},
    {"reciprocal", ref_reciprocal, 0.5},
    {"expm1", expm1, 1},
    {"pow", ref_pow, 1},
    {"normal", NULL, 0},
};

double math_error(float got, double exact)
{
    int e;
    double g = got;
    if (isnan(exact) || isnan(got))
        return isnan(exact) && isnan(got) ? 0 : INFINITY;
    if (isinf(exact))
        return g == exact ? 0 : INFINITY;
    /* From half an ulp above the largest number on, infinity is the nearest. */
    if (fabs(exact) >= 0x1.ffffffp127 && isinf(got))
        return (got > 0) == (exact > 0) ? 0 : INFINITY;
    if (isinf(got))
        g = got > 0 ? 0x1p128 : -0x1p128;
    uint64_t bits, scale;
    memcpy(&bits, &exact, sizeof bits);
    e = (int)(bits >> 52 & 0x7ff) - 1022; /* |exact| lies in [2^(e-1), 2^e) */
    if (e < -125)
        e = -125;
    scale = (uint64_t)(1023 + 24 - e) << 52;
    double per_ulp;
    memcpy(&per_ulp, &scale, sizeof per_ulp);
    return fabs(g - exact) * per_ulp;
}

struct math_worst math_worst_of(const struct math_reference *ref, uint32_t first, uint32_t stride,
                                uint32_t n, const uint32_t *got)
{
    struct math_worst worst = {0, first};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t pattern = first + i * stride;
        float x, y;
        memcpy(&x, &pattern, sizeof x);
        memcpy(&y, &got[i], sizeof y);
        double ulp = math_error(y, ref->exact(x));
        if (ulp > worst.ulp)
            worst = (struct math_worst){ulp, pattern};
    }
    return worst;
}

bool math_fast_runs(void)
{
#ifdef MATH_HAVE_FAST
    return __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

const struct math_fn *math_table(bool soft)
{
#ifdef MATH_HAVE_FAST
    if (math_fast_runs())
        return soft ? math_fast_soft : math_fast;
#endif
    return soft ? math_base_soft : math_base;
}
