/*
 * The floating-point environment: what enter sets, that leave restores, and that a device opened
 * in a hostile state works in the right one.
 */
#include <fenv.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "base/fenv.h"
#include "rt_help.h"

/* Through volatile operands and results: compilers know nothing of the environment and would move
 * or fold the arithmetic. */
static float half_of(float x)
{
    volatile float a = x, r = a * 0.5f;
    return r;
}

static float third(float x)
{
    volatile float a = x, three = 3.0f, r = a / three;
    return r;
}

/* Rounds upward and, where the machine can, flushes subnormal numbers. */
static void be_hostile(void)
{
    fesetround(FE_UPWARD);
#if defined(__SSE2__)
    _mm_setcsr(0x1f80 | 0x8040 | 0x4000); /* traps masked, FTZ and DAZ, upward */
#endif
}

static bool flushes(void)
{
    return half_of(2.0f * 0x1p-126f * 0.5f) == 0.0f;
}

Test(fenv, enter_sets_and_leave_restores)
{
    struct lksi_fenv outer, inner;
    float nearest = third(1.0f);
    be_hostile();
    cr_assert(third(-1.0f) != -nearest);
    bool flushed = flushes();
    lksi_fenv_enter(&outer);
    cr_expect(fegetround() == FE_TONEAREST);
    cr_expect(third(1.0f) == nearest && third(-1.0f) == -nearest);
    cr_expect(!flushes());
    lksi_fenv_enter(&inner);
    lksi_fenv_leave(&inner);
    cr_expect(!flushes() && fegetround() == FE_TONEAREST);
    lksi_fenv_leave(&outer);
    cr_expect(fegetround() == FE_UPWARD);
    cr_expect(flushes() == flushed);
    cr_expect(third(-1.0f) != -nearest);
#if defined(__SSE2__)
    cr_expect(flushed, "the hostile state did not flush, so this test shows nothing");
#endif
    fesetround(FE_TONEAREST);
}

Test(fenv, traps_are_masked_and_come_back)
{
    struct lksi_fenv f;
    feenableexcept(FE_DIVBYZERO);
    lksi_fenv_enter(&f);
    volatile float zero = 0.0f, r = 1.0f / zero; /* would be SIGFPE outside */
    cr_expect(r > 1e30f);
    lksi_fenv_leave(&f);
    cr_expect(fegetexcept() == FE_DIVBYZERO);
    cr_expect(fetestexcept(FE_DIVBYZERO) == 0);
    fedisableexcept(FE_DIVBYZERO);
}

Test(fenv, a_device_opened_in_a_hostile_state_is_right_and_the_state_stays)
{
    struct lksi_dev *dev = NULL;
    const struct lksi_dev_params params = {.select = "cpu", .cache_dir = ""};
    be_hostile();
    bool flushed = flushes();
    lks_status st = lksi_dev_open(&dev, &params);
    cr_expect(fegetround() == FE_UPWARD && flushes() == flushed);
    fesetround(FE_TONEAREST);
    if (!has_cpu())
        cr_skip_test("no OpenCL CPU device");
    cr_assert(st == LKS_OK, "%s", lks_error_message()); /* the probe passed on the workers */
    lksi_dev_close(&dev);
}

static void check_thread(void *ctx, uint64_t i)
{
    int *bad = ctx;
    (void)i;
    if (flushes() || fegetround() != FE_TONEAREST)
        __atomic_fetch_add(bad, 1, __ATOMIC_RELAXED);
    usleep(1000); /* so that every thread gets items */
}

Test(fenv, threads_of_ref_do_not_inherit_the_callers_state)
{
    struct lksi_dev *dev = NULL;
    const struct lksi_dev_params params = {.select = "ref", .threads = 3};
    struct lksi_fenv f;
    int bad = 0;
    be_hostile();
    EXPECT_OK(lksi_dev_open(&dev, &params));
    lksi_fenv_enter(&f); /* as every public entry does for its own thread */
    lksi_ref_parallel(dev, 30, check_thread, &bad);
    lksi_fenv_leave(&f);
    fesetround(FE_TONEAREST);
    cr_expect(bad == 0, "%d items ran in the wrong state", bad);
    lksi_dev_close(&dev);
}
