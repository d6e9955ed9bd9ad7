/*
 * fenv.c - the floating-point environment: <fenv.h> for rounding and traps, the machine's control
 * register for flush-to-zero, which C does not know.
 */
#include <float.h>

#include "base/fenv.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

_Static_assert(FLT_EVAL_METHOD == 0, "float expressions must be evaluated in float");

static unsigned long long control_get(void)
{
#if defined(__SSE2__)
    return _mm_getcsr();
#elif defined(__aarch64__)
    unsigned long long v;
    __asm__ volatile("mrs %0, fpcr" : "=r"(v));
    return v;
#else
    return 0;
#endif
}

static void control_set(unsigned long long v)
{
#if defined(__SSE2__)
    _mm_setcsr((unsigned)v);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(v));
#else
    (void)v;
#endif
}

static void set_rule_1(void)
{
    fesetround(FE_TONEAREST);
#if defined(__SSE2__)
    control_set(0x1f80); /* all traps masked, to nearest, no FTZ, no DAZ, no flags */
#elif defined(__aarch64__)
    control_set(0); /* the same; clears FZ, FZ16, AH, FIZ and NEP too */
#endif
}

void lksi_fenv_enter(struct lksi_fenv *f)
{
    f->control = control_get();
    feholdexcept(&f->saved);
    set_rule_1();
}

void lksi_fenv_renew(void)
{
    fenv_t unused;
    feholdexcept(&unused);
    set_rule_1();
}

void lksi_fenv_leave(const struct lksi_fenv *f)
{
    fesetenv(&f->saved);
    control_set(f->control);
}
