/*
 * test_elementary.c - the elementary functions: errors over a stride of all inputs and densely
 * around the joints of their pieces, special values, symmetries, and equal bits from every build.
 */
#include <math.h>

#include <criterion/criterion.h>
#include <criterion/logging.h>

#include "functions.h"
#include "table.h"

enum { BLOCK = 1 << 12 };

static void expect_within_bound(int index, uint32_t first, uint32_t stride, uint64_t total)
{
    const struct math_reference *ref = &math_references[index];
    struct math_worst worst = {0, first};
    uint32_t out[BLOCK];
    for (uint64_t done = 0; done < total; done += BLOCK) {
        uint32_t n = total - done < BLOCK ? (uint32_t)(total - done) : BLOCK;
        uint32_t start = first + (uint32_t)(done * stride);
        math_table(false)[index].run(start, stride, n, out);
        struct math_worst w = math_worst_of(ref, start, stride, n, out);
        if (w.ulp > worst.ulp)
            worst = w;
    }
    cr_assert(worst.ulp <= ref->bound + 1e-8, "%s(%a): %.6f ulp, allowed are %g", ref->name,
              lks_float(worst.input), worst.ulp, ref->bound);
}

Test(elementary, tables_agree)
{
    for (int i = 0; i < MATH_COUNT; i++)
        cr_assert_str_eq(math_references[i].name, math_base[i].name);
}

Test(elementary, stride_within_bound)
{
    for (int i = 0; i < MATH_COUNT; i++)
        if (math_references[i].exact != NULL)
            expect_within_bound(i, 0, 2003, ((uint64_t)1 << 32) / 2003);
}

/* 2 x 4096 neighbours around each input where a function changes its piece or saturates. */
Test(elementary, joints_within_bound)
{
    static const float joints[] = {
        0x1p-149f, 0x1p-126f, 0x1p-64f,   0x1p-24f, 0x1p-12f,    0.25f,          0.34657359f,
        0.5f,      0.6f,      0.6666667f, 0.75f,    1.0f,        1.25f,          1.3333334f,
        1.5f,      3.93f,     10.0f,      14.6f,    30.0f,       87.33654f,      88.0297f,
        88.72284f, 89.0f,     103.97208f, 104.0f,   120.0f,      170.0f,         32768.0f,
        0x1p23f,   0x1p24f,   0x1p31f,    0x1p126f, 0x1.55p127f, 0x1.fffffep127f};
    for (int i = 0; i < MATH_COUNT; i++)
        for (size_t j = 0; math_references[i].exact != NULL && j < sizeof joints / sizeof *joints;
             j++) {
            uint32_t u = lks_bits(joints[j]), first = u > BLOCK ? u - BLOCK : 0;
            expect_within_bound(i, first, 1, 2 * BLOCK);
            expect_within_bound(i, first | 0x80000000u, 1, 2 * BLOCK);
        }
}

/* Every build gives the same bits: with FMA instructions or the C library's fmaf, with native or
 * own division and square root. */
Test(elementary, builds_agree)
{
    const struct math_fn *others[] = {math_base_soft, math_table(false), math_table(true)};
    uint32_t want[BLOCK], got[BLOCK];
    for (int i = 0; i < MATH_COUNT; i++)
        for (uint32_t block = 0; block < 16; block++) {
            uint32_t stride = 65521, first = block * BLOCK * stride;
            math_base[i].run(first, stride, BLOCK, want);
            for (int k = 0; k < 3; k++) {
                others[k][i].run(first, stride, BLOCK, got);
                for (uint32_t j = 0; j < BLOCK; j++)
                    cr_assert(got[j] == want[j], "%s at pattern %08x, build %d: %08x, not %08x",
                              math_base[i].name, first + j * stride, k, got[j], want[j]);
            }
        }
}

struct value {
    F32 (*f)(F32);
    const char *name;
    float x, y;
};

#define V(f, x, y)                                                                                 \
    {                                                                                              \
        lks_##f, #f, x, y                                                                          \
    }

/* Exact results, compared bit by bit; NaN as a class. */
static const struct value values[] = {
    V(exp, 0.0f, 1.0f),
    V(exp, -0.0f, 1.0f),
    V(exp, INFINITY, INFINITY),
    V(exp, -INFINITY, 0.0f),
    V(exp, NAN, NAN),
    V(exp, 0x1.62e43p6f, INFINITY),
    V(exp, 0x1.62e42ep6f, 0x1.ffff08p127f),
    V(exp, -0x1.9fe368p6f, 0x1p-149f),
    V(exp, -0x1.9fe36ap6f, 0.0f),
    V(exp, 1e30f, INFINITY),
    V(exp, -1e30f, 0.0f),
    V(log, 1.0f, 0.0f),
    V(log, 0.0f, -INFINITY),
    V(log, -0.0f, -INFINITY),
    V(log, -1.0f, NAN),
    V(log, -0x1p-149f, NAN),
    V(log, -INFINITY, NAN),
    V(log, INFINITY, INFINITY),
    V(log, NAN, NAN),
    V(log, 0x1p-149f, -0x1.9d1dap6f),
    V(log, 0x1.fffffep127f, 0x1.62e43p6f),
    V(log1p, 0.0f, 0.0f),
    V(log1p, -0.0f, -0.0f),
    V(log1p, -1.0f, -INFINITY),
    V(log1p, -1.5f, NAN),
    V(log1p, -INFINITY, NAN),
    V(log1p, INFINITY, INFINITY),
    V(log1p, NAN, NAN),
    V(log1p, 0x1p-149f, 0x1p-149f),
    V(log1p, -0x1p-149f, -0x1p-149f),
    V(tanh, 0.0f, 0.0f),
    V(tanh, -0.0f, -0.0f),
    V(tanh, INFINITY, 1.0f),
    V(tanh, -INFINITY, -1.0f),
    V(tanh, NAN, NAN),
    V(tanh, 0x1p-149f, 0x1p-149f),
    V(tanh, 20.0f, 1.0f),
    V(sigmoid, 0.0f, 0.5f),
    V(sigmoid, -0.0f, 0.5f),
    V(sigmoid, INFINITY, 1.0f),
    V(sigmoid, -INFINITY, 0.0f),
    V(sigmoid, NAN, NAN),
    V(sigmoid, -1e30f, 0.0f),
    V(erf, 0.0f, 0.0f),
    V(erf, -0.0f, -0.0f),
    V(erf, INFINITY, 1.0f),
    V(erf, -INFINITY, -1.0f),
    V(erf, NAN, NAN),
    V(erf, 4.0f, 1.0f),
    V(sinpi, 0.0f, 0.0f),
    V(sinpi, -0.0f, -0.0f),
    V(sinpi, 1.0f, 0.0f),
    V(sinpi, -1.0f, -0.0f),
    V(sinpi, 2.0f, 0.0f),
    V(sinpi, -2.0f, -0.0f),
    V(sinpi, 0.5f, 1.0f),
    V(sinpi, 1.5f, -1.0f),
    V(sinpi, -0.5f, -1.0f),
    V(sinpi, 0x1p30f, 0.0f),
    V(sinpi, INFINITY, NAN),
    V(sinpi, -INFINITY, NAN),
    V(sinpi, NAN, NAN),
    V(sinpi, 8388607.5f, -1.0f),
    V(cospi, 0.0f, 1.0f),
    V(cospi, -0.0f, 1.0f),
    V(cospi, 1.0f, -1.0f),
    V(cospi, 0.5f, 0.0f),
    V(cospi, -0.5f, 0.0f),
    V(cospi, 1.5f, 0.0f),
    V(cospi, 2.0f, 1.0f),
    V(cospi, 8388609.0f, -1.0f),
    V(cospi, 0x1p30f, 1.0f),
    V(cospi, INFINITY, NAN),
    V(cospi, -INFINITY, NAN),
    V(cospi, NAN, NAN),
    V(softplus, -INFINITY, 0.0f),
    V(softplus, INFINITY, INFINITY),
    V(softplus, NAN, NAN),
    V(softplus, 0.0f, 0x1.62e43p-1f),
    V(softplus, 0x1.fffffep127f, 0x1.fffffep127f),
    V(softplus, -1e30f, 0.0f),
    V(silu, 0.0f, 0.0f),
    V(silu, -0.0f, -0.0f),
    V(silu, INFINITY, INFINITY),
    V(silu, -INFINITY, -0.0f),
    V(silu, NAN, NAN),
    V(silu, 0x1.fffffep127f, 0x1.fffffep127f),
    V(silu, -1e30f, -0.0f),
    V(gelu, 0.0f, 0.0f),
    V(gelu, -0.0f, -0.0f),
    V(gelu, INFINITY, INFINITY),
    V(gelu, -INFINITY, -0.0f),
    V(gelu, NAN, NAN),
    V(gelu, 0x1.fffffep127f, 0x1.fffffep127f),
    V(gelu, -1e30f, -0.0f),
    V(sin, 0.0f, 0.0f),
    V(sin, -0.0f, -0.0f),
    V(sin, 32768.004f, NAN),
    V(sin, INFINITY, NAN),
    V(sin, -INFINITY, NAN),
    V(sin, NAN, NAN),
    V(cos, 0.0f, 1.0f),
    V(cos, -0.0f, 1.0f),
    V(cos, -32768.004f, NAN),
    V(cos, INFINITY, NAN),
    V(cos, -INFINITY, NAN),
    V(cos, NAN, NAN),
};

Test(elementary, special_values)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const struct value *v = &values[i];
        F32 got = v->f(v->x);
        cr_assert(math_canonical(got) == math_canonical(v->y), "%s(%a) is %a, not %a", v->name,
                  v->x, got, v->y);
    }
}

/* Every pair of kinds of numbers: signs and special values as in C, in double. */
Test(elementary, powers)
{
    static const float kind[] = {
        0.0f,           0x1p-149f,      0x1p-126f, 0x1p-60f,       0.25f,   0x1.fffffep-1f,
        1.0f,           0x1.000002p0f,  1.5f,      2.0f,           2.5f,    0x1.8p1f,
        101.0f,         0x1.fffffep22f, 0x1p23f,   0x1.000002p23f, 0x1p24f, 0x1.fffffep23f,
        0x1.fffffep127f, 0x1p60f,       INFINITY,  NAN};
    enum { N = sizeof kind / sizeof *kind };
    for (int i = 0; i < 4 * N * N; i++) {
        float x = i & 1 ? -kind[i / 4 % N] : kind[i / 4 % N];
        float y = i & 2 ? -kind[i / 4 / N] : kind[i / 4 / N], got = lks_pow(x, y);
        double want = pow((double)x, (double)y);
        cr_assert(math_error(got, want) <= 1 && (isnan(want) || !signbit(got) == !signbit(want)),
                  "pow(%a, %a) is %a, not %a", x, y, got, want);
    }
}

/* Results that are floats come out so. */
Test(elementary, exact_powers)
{
    for (int e = -149; e < 128; e++)
        cr_assert(lks_pow(2.0f, (float)e) == ldexpf(1.0f, e), "2^%d", e);
    for (int i = 0; i < 4096; i++) {
        F32 x = (F32)i;
        cr_assert(lks_pow(x, 2.0f) == x * x && lks_pow(-x, 2.0f) == x * x, "%d^2", i);
        cr_assert(lks_pow(x * x, 0.5f) == x, "root of %d^2", i);
        cr_assert(i > 255 || lks_pow(-x, 3.0f) == -x * x * x, "-%d^3", i);
    }
    for (uint32_t u = 0; u < 0x7f800000u; u += 10007)
        cr_assert(lks_pow(lks_float(u), 1.0f) == lks_float(u), "%a^1", lks_float(u));
}

/* NaN with any payload and sign comes out as a NaN. */
Test(elementary, nan_payloads)
{
    static const uint32_t nans[] = {0x7f800001u, 0x7fbfffffu, 0x7fc00000u, 0x7fffffffu,
                                    0xff800001u, 0xffc00001u, 0xffffffffu};
    uint32_t out;
    for (int i = 0; i < MATH_COUNT; i++)
        for (size_t j = 0; math_references[i].exact != NULL && j < sizeof nans / sizeof *nans;
             j++) {
            math_table(false)[i].run(nans[j], 1, 1, &out);
            cr_assert(out == 0x7fc00000u, "%s(nan %08x) is %08x", math_base[i].name, nans[j], out);
        }
}

/* Odd and even functions are so bit by bit. */
Test(elementary, symmetries)
{
    for (uint32_t u = 0; u < 0x7f800000u; u += 10007) {
        F32 x = lks_float(u);
        cr_assert(lks_bits(lks_tanh(-x)) == lks_bits(-lks_tanh(x)), "tanh(%a)", x);
        cr_assert(lks_bits(lks_erf(-x)) == lks_bits(-lks_erf(x)), "erf(%a)", x);
        cr_assert(lks_bits(lks_sinpi(-x)) == lks_bits(-lks_sinpi(x)), "sinpi(%a)", x);
        cr_assert(lks_bits(lks_cospi(-x)) == lks_bits(lks_cospi(x)), "cospi(%a)", x);
        if (x <= 32768.0f) {
            cr_assert(lks_bits(lks_sin(-x)) == lks_bits(-lks_sin(x)), "sin(%a)", x);
            cr_assert(lks_bits(lks_cos(-x)) == lks_bits(lks_cos(x)), "cos(%a)", x);
        }
    }
}

/* The meter itself: a neighbour is one ulp away, in every binade and below the normal range. */
Test(elementary, error_meter)
{
    cr_assert(math_error(1.0f, 1.0) == 0);
    cr_assert(math_error(0x1.000002p0f, 1.0) == 1);
    cr_assert(math_error(0x1p-149f, 0.0) == 1);
    cr_assert(math_error(0x1p-126f, 0x1.fffffcp-127) == 1);
    cr_assert(math_error(0x1.fffffep127f, 0x1.fffffcp127) == 1);
    cr_assert(isinf(math_error(INFINITY, 1.0)) || math_error(INFINITY, 1.0) > 1e6);
    cr_assert(isinf(math_error(NAN, 1.0)));
    cr_assert(isinf(math_error(1.0f, NAN)));
    cr_assert(math_error(INFINITY, 0x1p128) == 0);
    cr_assert(math_error(0x1.fffffep127f, INFINITY) > 1);
}
