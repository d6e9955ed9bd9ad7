/*
 * test_functions.c - layers of one value, of two, and over axes: that each call of the C API makes
 * the function of its name, by formulas in double; and what they refuse.
 */
#include <math.h>

#include "api/items.h"
#include "train/train_help.h"

#define N 6

static const double points[N] = {-2.5, -0.5, 0.0, 0.75, 1.5, 7.0};

static float point(int64_t e, void *user)
{
    (void)user;
    return (float)points[e % N];
}

static lks_graph *start(int rank, const int64_t *dims, lks_value *x)
{
    lks_graph *g;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "x", rank, dims, x));
    return g;
}
#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

/* `got` is `want` to some units in the last place; NaN is NaN. */
static void expect_near(const char *what, int64_t e, float got, double want)
{
    bool same = isnan(want)   ? isnan(got)
                : isinf(want) ? (double)got == want
                              : fabs((double)got - want) <= 2e-6 * fmax(1.0, fabs(want));
    cr_assert(same, "%s: element %lld is %.9g, not %.9g", what, (long long)e, (double)got, want);
}

/* ---- of one value ---- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double softplus(double x)
{
    return log1p(exp(x));
}
static double elu(double x, double alpha)
{
    return x > 0 ? x : alpha * expm1(x);
}
static double limit(double x, double low, double high)
{
    return fmin(fmax(x, low), high);
}

#define FUNCTIONS(F)                                                                               \
    F(relu, x > 0 ? x : 0)                                                                         \
    F(abs, fabs(x))                                                                                \
    F(ceil, ceil(x))                                                                               \
    F(cos, cos(x))                                                                                 \
    F(erf, erf(x))                                                                                 \
    F(exp, exp(x))                                                                                 \
    F(floor, floor(x))                                                                             \
    F(gelu, x * 0.5 * erfc(-x / sqrt(2)))                                                          \
    F(gelu_tanh, x * 0.5 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x))))            \
    F(hard_swish, x *limit(x / 6 + 0.5, 0, 1))                                                     \
    F(log, log(x))                                                                                 \
    F(mish, x *tanh(softplus(x)))                                                                  \
    F(neg, -x)                                                                                     \
    F(reciprocal, 1 / x)                                                                           \
    F(relu6, limit(x, 0, 6))                                                                       \
    F(round, nearbyint(x))                                                                         \
    F(selu, 1.0507009873554805 * elu(x, 1.6732632423543772))                                       \
    F(sigmoid, sigmoid(x))                                                                         \
    F(sign, (x > 0) - (x < 0))                                                                     \
    F(silu, x *sigmoid(x))                                                                         \
    F(sin, sin(x))                                                                                 \
    F(softplus, softplus(x))                                                                       \
    F(softsign, x / (1 + fabs(x)))                                                                 \
    F(sqrt, sqrt(x))                                                                               \
    F(square, x *x)                                                                                \
    F(tanh, tanh(x))

/* The same with numbers: the call, the formula. */
#define WITH_NUMBERS(F)                                                                            \
    F(leaky_relu, x > 0 ? x : 0.25 * x, 0.25)                                                      \
    F(elu, elu(x, 0.5), 0.5)                                                                       \
    F(celu, x > 0 ? x : 0.5 * expm1(x / 0.5), 0.5)                                                 \
    F(thresholded_relu, x > 0.75 ? x : 0, 0.75)                                                    \
    F(clamp, limit(x, -1, 2), -1, 2)                                                               \
    F(hard_sigmoid, limit(0.25 * x + 0.375, 0, 1), 0.25, 0.375)                                    \
    F(add_number, x + 0.5, 0.5)                                                                    \
    F(mul_number, x * -3, -3)                                                                      \
    F(div_number, x / 4, 4)                                                                        \
    F(pow_number, pow(x, -3), -3)

#define CALL(name, value, ...)                                                                     \
    static double want_##name(double x)                                                            \
    {                                                                                              \
        return value;                                                                              \
    }                                                                                              \
    static lks_status call_##name(lks_graph *g, lks_value x, lks_value *y)                         \
    {                                                                                              \
        return lks_graph_##name(__VA_ARGS__, y);                                                   \
    }
#define PLAIN(name, value)        CALL(name, value, g, x)
#define NUMBERS(name, value, ...) CALL(name, value, g, x, __VA_ARGS__)
FUNCTIONS(PLAIN)
WITH_NUMBERS(NUMBERS)

#define ENTRY(name, ...) {#name, call_##name, want_##name},
static const struct {
    const char *name;
    lks_status (*call)(lks_graph *g, lks_value x, lks_value *y);
    double (*want)(double x);
} functions[] = {FUNCTIONS(ENTRY) WITH_NUMBERS(ENTRY)};

Test(functions, of_one_value)
{
    for (size_t f = 0; f < LKSI_COUNT(functions); f++) {
        int rank;
        int64_t dim[4], n;
        lks_value x, y = -7;
        lks_graph *g = start(2, DIMS(2, N / 2), &x);
        EXPECT_OK(functions[f].call(g, x, &y));
        EXPECT_OK(lks_graph_shape(g, y, &rank, dim));
        cr_assert(rank == 2 && dim[0] == 2 && dim[1] == N / 2, "%s keeps the shape",
                  functions[f].name);
        float *got = run_items(g, y, point, NULL, &n);
        cr_assert(n == N);
        for (int64_t e = 0; e < n; e++)
            expect_near(functions[f].name, e, got[e], functions[f].want(points[e]));
        free(got);
        y = -7;
        EXPECT_FAIL(LKS_E_ARGUMENT, functions[f].call(g, 999, &y), "999 is no value");
        EXPECT_FAIL(LKS_E_ARGUMENT, functions[f].call(g, x, NULL), "NULL");
        EXPECT_FAIL(LKS_E_ARGUMENT, functions[f].call(NULL, x, &y), "NULL");
        cr_assert(y == -7, "%s: a failure leaves the result alone", functions[f].name);
        lks_graph_destroy(&g);
    }
}

Test(functions, numbers_that_are_refused)
{
    lks_value x, y = -7;
    lks_graph *g = start(1, DIMS(3), &x);
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_leaky_relu(g, x, INFINITY, &y), "leaky_relu", "slope");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_thresholded_relu(g, x, NAN, &y), "threshold");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_elu(g, x, -1, &y), "alpha is -1");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_celu(g, x, 0, &y), "alpha is 0");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_clamp(g, x, 2, 1, &y), "low <= high");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_clamp(g, x, NAN, 1, &y), "low <= high");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_hard_sigmoid(g, x, 1, INFINITY, &y), "finite");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_add_number(g, x, NAN, &y), "finite");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_mul_number(g, x, 1e39, &y), "finite");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_div_number(g, x, 1e-60, &y), "0 as a float");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_pow_number(g, x, -INFINITY, &y), "finite");
    cr_assert(y == -7, "a failure leaves the result alone");
    EXPECT_OK(lks_graph_clamp(g, x, -INFINITY, INFINITY, &y));
    lks_graph_destroy(&g);
}

/* ---- of two values ---- */

static double quotient(double a, double b)
{
    return a / b;
}
static double difference(double a, double b)
{
    return a - b;
}
static double sum(double a, double b)
{
    return a + b;
}
static double product(double a, double b)
{
    return a * b;
}
static double equal(double a, double b)
{
    return a == b;
}
static double greater(double a, double b)
{
    return a > b;
}
static double less(double a, double b)
{
    return a < b;
}

/* a [2,3] beside its row 1, b [3]: each operator repeats b over the rows. */
Test(functions, of_two_values)
{
    static const struct {
        const char *name;
        lks_status (*call)(lks_graph *g, lks_value a, lks_value b, lks_value *y);
        double (*want)(double a, double b);
    } two[] = {{"add", lks_graph_add, sum},          {"sub", lks_graph_sub, difference},
               {"mul", lks_graph_mul, product},      {"div", lks_graph_div, quotient},
               {"maximum", lks_graph_maximum, fmax}, {"minimum", lks_graph_minimum, fmin},
               {"equal", lks_graph_equal, equal},    {"greater", lks_graph_greater, greater},
               {"less", lks_graph_less, less},
               {"pow", lks_graph_pow, pow}};
    for (size_t f = 0; f < LKSI_COUNT(two); f++) {
        int64_t n;
        lks_value x, b, y = -7, wide;
        lks_graph *g = start(2, DIMS(2, N / 2), &x);
        EXPECT_OK(lks_graph_select(g, x, 0, 1, &b));
        EXPECT_OK(two[f].call(g, x, b, &y));
        float *got = run_items(g, y, point, NULL, &n);
        cr_assert(n == N);
        for (int64_t e = 0; e < n; e++)
            expect_near(two[f].name, e, got[e], two[f].want(points[e], points[3 + e % 3]));
        free(got);
        EXPECT_OK(lks_graph_constant(g, 1, 1, DIMS(4), &wide));
        y = -7;
        EXPECT_FAIL(LKS_E_ARGUMENT, two[f].call(g, x, wide, &y), "4");
        EXPECT_FAIL(LKS_E_ARGUMENT, two[f].call(g, x, -2, &y), "-2 is no value");
        cr_assert(y == -7, "%s: a failure leaves the result alone", two[f].name);
        lks_graph_destroy(&g);
    }
}

/* ---- with a parameter a channel ---- */

Test(functions, with_a_parameter)
{
    static const struct {
        const char *parameter;
        lks_status (*call)(lks_graph *g, lks_value x, const struct lks_channel_params *p,
                           lks_value *y);
        double below; /* what a number below 0 is multiplied by at the start */
    } layers[] = {{"scale1.weight", lks_graph_scale, 1},
                  {"bias1.bias", lks_graph_bias, 1},
                  {"prelu1.weight", lks_graph_prelu, 0.25}};
    for (size_t f = 0; f < LKSI_COUNT(layers); f++) {
        int64_t n;
        lks_value x, y;
        lks_graph *g = start(2, DIMS(2, N / 2), &x);
        EXPECT_OK(layers[f].call(g, x, NULL, &y));
        cr_assert_str_eq(g->param[0].name, layers[f].parameter);
        cr_assert(lks_graph_parameter_count(g) == 1 && lks_graph_scalar_count(g) == N / 2);
        float *got = run_items(g, y, point, NULL, &n);
        for (int64_t e = 0; e < n; e++)
            expect_near(layers[f].parameter, e, got[e],
                        points[e] * (points[e] < 0 ? layers[f].below : 1));
        free(got);
        EXPECT_OK(layers[f].call(g, y, lks_channel_params(.name = "other"), &y));
        cr_assert(lks_graph_scalar_count(g) == N);
        EXPECT_FAIL(LKS_E_ARGUMENT, layers[f].call(g, x, lks_channel_params(.name = "other"), &y),
                    "other");
        EXPECT_FAIL(LKS_E_ARGUMENT, layers[f].call(g, x, lks_channel_params(.share = "none"), &y),
                    "none");
        cr_assert(lks_graph_scalar_count(g) == N);
        lks_graph_destroy(&g);
    }
}

/* ---- over axes ---- */

Test(functions, over_axes)
{
    static const int axis[] = {1}, twice[] = {1, 1}, far[] = {2};
    for (int keep = 0; keep < 2; keep++) {
        for (int mean = 0; mean < 2; mean++) {
            int rank;
            int64_t dim[4], n;
            lks_value x, y = -7;
            lks_graph *g = start(2, DIMS(2, N / 2), &x);
            lks_status (*call)(lks_graph *, lks_value, int, const int *, bool, lks_value *) =
                mean ? lks_graph_mean : lks_graph_sum;
            EXPECT_FAIL(LKS_E_ARGUMENT, call(g, x, 2, twice, keep, &y), "1");
            EXPECT_FAIL(LKS_E_ARGUMENT, call(g, x, 1, far, keep, &y), "2");
            cr_assert(y == -7, "a failure leaves the result alone");
            EXPECT_OK(call(g, x, 1, axis, keep, &y));
            EXPECT_OK(lks_graph_shape(g, y, &rank, dim));
            cr_assert(rank == 1 + keep && dim[0] == 2 && (!keep || dim[1] == 1));
            float *got = run_items(g, y, point, NULL, &n);
            cr_assert(n == 2);
            for (int64_t e = 0; e < n; e++)
                expect_near(mean ? "mean" : "sum", e, got[e],
                            (points[3 * e] + points[3 * e + 1] + points[3 * e + 2]) /
                                (mean ? 3 : 1));
            free(got);
            lks_graph_destroy(&g);
        }
    }
}

Test(functions, extremes_over_axes)
{
    static const int axis[] = {1};
    for (int least = 0; least < 2; least++) {
        int64_t n;
        lks_value x, y = -7;
        lks_graph *g = start(2, DIMS(2, N / 2), &x);
        lks_status (*call)(lks_graph *, lks_value, int, const int *, bool, lks_value *) =
            least ? lks_graph_min : lks_graph_max;
        EXPECT_FAIL(LKS_E_ARGUMENT, call(g, x, 1, (int[]){2}, false, &y), least ? "min" : "max");
        EXPECT_OK(call(g, x, 1, axis, false, &y));
        float *got = run_items(g, y, point, NULL, &n);
        cr_assert(n == 2);
        for (int64_t e = 0; e < n; e++) {
            const double *p = points + 3 * e;
            double want = least ? fmin(fmin(p[0], p[1]), p[2]) : fmax(fmax(p[0], p[1]), p[2]);
            expect_near(least ? "min" : "max", e, got[e], want);
        }
        free(got);
        lks_graph_destroy(&g);
    }
}

Test(functions, softmax)
{
    int64_t n;
    for (int is_log = 0; is_log < 2; is_log++) {
        lks_value x, y;
        lks_graph *g = start(2, DIMS(2, N / 2), &x);
        EXPECT_OK(is_log ? lks_graph_log_softmax(g, x, &y) : lks_graph_softmax(g, x, false, &y));
        float *got = run_items(g, y, point, NULL, &n);
        cr_assert(n == N);
        for (int64_t e = 0; e < n; e++) {
            const double *row = &points[e / 3 * 3];
            double all = exp(row[0]) + exp(row[1]) + exp(row[2]);
            expect_near("softmax", e, got[e], is_log ? points[e] - log(all) : exp(points[e]) / all);
        }
        free(got);
        EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_log_softmax(g, 77, &y), "77");
        lks_graph_destroy(&g);
    }
}

/* ---- dropout ---- */

Test(functions, dropout)
{
    static float x[16 * 512], y[16 * 512];
    lks_value in, out, flat, logits;
    lks_device *device = open_or_skip("ref");
    lks_graph *g = start(1, DIMS(512), &in);
    const int32_t labels[16] = {0};
    struct lks_trainer_params p = {
        .device = device, .batch = 16, .seed = 3, .keep = &out, .n_keep = 1, .sgd = {.lr = 0.1}};
    lks_trainer *t;
    int kept = 0;
    cr_assert(lks_dropout_params_default().p == 0.5);
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_dropout(g, in, lks_dropout_params(.p = 1), &out), "1");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_dropout(g, in, lks_dropout_params(.p = -0.5), &out),
                "-0.5");
    EXPECT_OK(lks_graph_dropout(g, in, lks_dropout_params(.p = 0.25), &out));
    EXPECT_OK(lks_graph_flatten(g, out, &flat));
    EXPECT_OK(lks_graph_dense(g, flat, lks_dense_params(.out = 3), &logits));
    EXPECT_OK(lks_graph_softmax_cross_entropy(g, logits));
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    for (int e = 0; e < 16 * 512; e++)
        x[e] = 3;
    EXPECT_OK(
        lks_trainer_forward(t, &(struct lks_batch){.x = x, .labels = labels, .samples = 16}, NULL));
    EXPECT_OK(lks_trainer_get_value(t, out, y, 16 * 512));
    for (int e = 0; e < 16 * 512; e++) {
        cr_assert(y[e] == 0 || y[e] == 4, "element %d is %g", e, (double)y[e]);
        kept += y[e] != 0;
    }
    /* 6144 expected; the standard deviation is 39 */
    cr_assert(kept > 5900 && kept < 6400, "%d of 8192 kept", kept);
    lks_trainer_destroy(&t);
    lks_graph_destroy(&g);
    lks_device_close(&device);
}
