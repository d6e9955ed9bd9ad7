/*
 * accuracy.h - right numbers: each contract against double precision (real.h), within the bound of
 * a forward error analysis; and each gradient against central differences of those doubles.
 */
#ifndef LKSI_CHECK_ACCURACY_H
#define LKSI_CHECK_ACCURACY_H

#include "check/check.h"

/* One operator in one of the two suites. */
struct lksi_accuracy_row {
    const struct lksi_op *op;
    bool failed;
    int cases;        /* accuracy: (case, regime) pairs; gradient: cases */
    uint64_t values;  /* compared */
    uint64_t skipped; /* gradient: inputs that stand on a kink */
    double worst;     /* largest error as a share of what is allowed */
    char text[768];   /* the first failure */
};
typedef void (*lksi_accuracy_fn)(void *user, const struct lksi_accuracy_row *row);

/*
 * Every case and regime of every operator (options as for lksi_check_run; `schedule` is not read):
 * the item function's outputs lie within err of the double function's. An operator without a
 * double function, or without a case, fails. `fn` once an operator.
 */
lks_status lksi_accuracy_run(const struct lksi_check_options *options, lksi_accuracy_fn fn,
                             void *user, size_t *failed);

/*
 * Every operator with a `grad`: its gradient operators, run on random inputs and a random gradient
 * of output 0, once by item functions and once in double, against central differences of the double
 * function along up to 24 elements of each input. Cases above a size are left to the other suites.
 */
lks_status lksi_gradient_run(const struct lksi_check_options *options, lksi_accuracy_fn fn,
                             void *user, size_t *failed);

#endif
