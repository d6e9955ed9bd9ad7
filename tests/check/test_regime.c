/*
 * test_regime.c - each regime of inputs must hold what it promises to bring to light.
 */
#include <math.h>

#include <criterion/criterion.h>

#include "check/regime.h"
#include "contract/sum.h"

#define N 4096

static float value[LKSI_REGIMES][N];

static void fill(void)
{
    for (int r = 0; r < LKSI_REGIMES; r++)
        for (uint64_t e = 0; e < N; e++)
            value[r][e] = lks_float(lksi_regime_bits((enum lksi_regime)r, 7, 3, e));
}

/* The share of values for which a test holds. */
#define SHARE(regime, test)                                                                        \
    __extension__({                                                                                \
        int hits_ = 0;                                                                             \
        for (int e_ = 0; e_ < N; e_++) {                                                           \
            float x = value[regime][e_];                                                           \
            hits_ += (test) ? 1 : 0;                                                               \
        }                                                                                          \
        (double)hits_ / N;                                                                         \
    })

TestSuite(regime, .init = fill);

Test(regime, is_finite_and_seeded)
{
    for (int r = 0; r < LKSI_REGIMES; r++) {
        int same = 0;
        cr_expect(SHARE(r, isfinite(x)) == 1.0, "%s", lksi_regime_name((enum lksi_regime)r));
        for (uint64_t e = 0; e < N; e++) {
            cr_assert(lks_bits(value[r][e]) == lksi_regime_bits((enum lksi_regime)r, 7, 3, e));
            same += lks_bits(value[r][e]) == lksi_regime_bits((enum lksi_regime)r, 8, 3, e);
        }
        cr_expect(same < N / 2, "%s: another seed, the same numbers",
                  lksi_regime_name((enum lksi_regime)r));
    }
}

Test(regime, names_are_found)
{
    enum lksi_regime found;
    for (int r = 0; r < LKSI_REGIMES; r++) {
        cr_assert(lksi_regime_find(lksi_regime_name((enum lksi_regime)r), &found));
        cr_assert(found == (enum lksi_regime)r);
    }
    cr_assert(!lksi_regime_find("unheard-of", &found));
}

Test(regime, uniform_fills_its_range)
{
    cr_expect(SHARE(LKSI_REGIME_UNIFORM, x >= -1.0f && x < 1.0f) == 1.0);
    cr_expect(fabs(SHARE(LKSI_REGIME_UNIFORM, x < -0.5f) - 0.25) < 0.03);
}

Test(regime, wide_shows_order)
{
    int differ = 0;
    cr_expect(SHARE(LKSI_REGIME_WIDE, fabsf(x) < 1e-3f) > 0.1);
    cr_expect(SHARE(LKSI_REGIME_WIDE, fabsf(x) > 1e3f) > 0.1);
    for (int i = 0; i < N; i += 16) { /* sums of 16, upward and downward */
        float up = 0.0f, down = 0.0f;
        for (int j = 0; j < 16; j++) {
            up += value[LKSI_REGIME_WIDE][i + j];
            down += value[LKSI_REGIME_WIDE][i + 15 - j];
        }
        differ += up != down;
    }
    cr_expect(differ > N / 16 / 4, "only %d of %d sums depend on the order", differ, N / 16);
}

Test(regime, subnormal_is_mostly_subnormal)
{
    cr_expect(SHARE(LKSI_REGIME_SUBNORMAL, fpclassify(x) == FP_SUBNORMAL) > 0.6);
    cr_expect(SHARE(LKSI_REGIME_SUBNORMAL, fabsf(x) > 1e-3f) > 0.05);
}

Test(regime, zeros_have_both_signs)
{
    cr_expect(fabs(SHARE(LKSI_REGIME_ZEROS, lks_bits(x) == 0u) - 0.25) < 0.03);
    cr_expect(fabs(SHARE(LKSI_REGIME_ZEROS, lks_bits(x) == 0x80000000u) - 0.25) < 0.03);
}

Test(regime, ties_repeat)
{
    int equal = 0;
    for (int e = 1; e < N; e++)
        equal += value[LKSI_REGIME_TIES][e] == value[LKSI_REGIME_TIES][e - 1];
    cr_expect(equal > N / 16 && equal < N / 4);
}

Test(regime, underflow_reaches_minus_zero)
{
    int minus = 0;
    for (int e = 1; e < N; e++) {
        float p =
            lks_fma(value[LKSI_REGIME_UNDERFLOW][e], value[LKSI_REGIME_UNDERFLOW][e - 1], 0.0f);
        cr_assert(p == 0.0f);
        minus += lks_bits(p) == 0x80000000u;
    }
    cr_expect(minus > N / 8, "only %d of %d products are -0", minus, N);
}
