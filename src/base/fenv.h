/*
 * fenv.h - rule 1's floating-point environment around public entries.
 *
 * A caller may run with another rounding direction, with flush-to-zero (any program linked with
 * -ffast-math does) or with trapping exceptions. Every public entry that computes or calls OpenCL
 * stands between lksi_fenv_enter and lksi_fenv_leave; pairs may nest. A thread of ours calls
 * lksi_fenv_enter once at its start.
 */
#ifndef LKSI_FENV_H
#define LKSI_FENV_H

#include <fenv.h>

struct lksi_fenv {
    fenv_t saved;
    unsigned long long control; /* where the C library's fenv_t does not hold it */
};

/* Saves the calling thread's state in `f`; then round to nearest, subnormals kept, no traps. */
void lksi_fenv_enter(struct lksi_fenv *f);
/* The same state without saving, after a callback of the caller that may have changed it. */
void lksi_fenv_renew(void);
/* Restores exactly what lksi_fenv_enter found, its exception flags included. */
void lksi_fenv_leave(const struct lksi_fenv *f);

#endif
