/*
 * check.h - the contract harness: every schedule of every operator against the contract's item
 * function, bit by bit (docs/architecture.md, "The contract harness").
 *
 * Neighbours: regime.c draws inputs, oracle.c computes what the contract says, trial.c runs one
 * schedule between guard bands, smallest.c picks cases for simulators, harness.c walks operators,
 * cases, schedules and regimes.
 */
#ifndef LKSI_CHECK_CHECK_H
#define LKSI_CHECK_CHECK_H

#include "check/regime.h"
#include "op/op.h"
#include "op/sample.h"

enum lksi_check_fault {
    LKSI_FAULT_NONE,
    LKSI_FAULT_BITS,      /* an output element differs from the contract */
    LKSI_FAULT_UNWRITTEN, /* an output element still holds what stood there before the run */
    LKSI_FAULT_RUNS,      /* the first run was right, the second, on the same inputs, is not */
    LKSI_FAULT_GUARD,     /* memory in front of or behind a buffer was changed */
    LKSI_FAULT_INPUT,     /* an input was changed */
    LKSI_FAULT_STATUS,    /* a call failed: build, launch, transfer */
    LKSI_FAULT_CONTRACT,  /* the item function itself breaks a rule (see text) */
    LKSI_FAULT_UNREACHED  /* no case reaches this schedule, on no class of devices */
};

/* The first failure of a row. Strings of `op` and `schedule` are static. */
struct lksi_check_failure {
    enum lksi_check_fault fault;
    const struct lksi_op *op;
    const char *schedule;
    char device[128];
    int case_index;
    enum lksi_regime regime;
    uint64_t seed;
    bool long_run;
    bool located; /* diff holds an output, an index and bits */
    struct lksi_diff diff;
    char shapes[512]; /* "[2,8,8,3] [4,3,3,3] -> [2,6,6,4], leaf 8" */
    char text[512];   /* what happened, for faults that diff does not tell */
};

enum lksi_check_verdict {
    LKSI_CHECK_PASSED,
    LKSI_CHECK_FAILED,
    LKSI_CHECK_NOT_HERE /* this device is not one of those the schedule serves; `reason` says why */
};

/* One line of the table: a schedule of an operator. On `ref` the schedules are `ref`, the fast C
 * loop where there is one, and `plain`, the items one by one. */
struct lksi_check_row {
    const struct lksi_op *op;
    const char *schedule;
    enum lksi_check_verdict verdict;
    int cases, declined; /* cases it served, cases it declined */
    int runs, passed;    /* (case, regime) pairs */
    const char *reason;  /* of the first decline; NULL if there was none */
    struct lksi_check_failure failure;
};

/* Zero is a legal value of each field. */
struct lksi_check_options {
    const struct lksi_op *const *ops;   /* ends with NULL; NULL: all operators of the library */
    const char *op, *schedule, *regime; /* only this one; NULL: all */
    int only_case;                      /* 1 + index; 0: all */
    double max_flops;                   /* only cases of at most so many operations; 0: all */
    int smallest; /* only so many cases for each set of kernels, the smallest ones (smallest.h), and
                   * the smallest of each schedule whatever max_flops says; 0: all */
    uint64_t seed;
    bool long_run;
};

typedef void (*lksi_check_fn)(void *user, const struct lksi_check_row *row);

/*
 * Runs the harness on `dev` and calls `fn` once a row, in order of operators and schedules.
 * `*failed` (may be NULL) receives the number of rows that failed. LKS_E_ARGUMENT if a filter names
 * nothing, LKS_E_MEMORY; a schedule that fails is a row, not a status. Blocks.
 */
lks_status lksi_check_run(struct lksi_dev *dev, const struct lksi_check_options *options,
                          lksi_check_fn fn, void *user, size_t *failed);

/* A failure as lines for people, the last one being the command that repeats it. */
void lksi_check_failure_text(const struct lksi_check_failure *f, struct lksi_str *s);

#endif
