/*
 * smallest.h - for devices that are slow by thousands, like simulators: which cases of an operator
 * are the smallest ones that still run every kernel.
 */
#ifndef LKSI_CHECK_SMALLEST_H
#define LKSI_CHECK_SMALLEST_H

#include "check/oracle.h"

/* A schedule in a case. Kernels that differ in source, name, macros, options or local size are
 * other kernels: `kernels` is a hash of those that it launches. */
struct lksi_smallest_entry {
    size_t row;
    int case_index;
    double flops;
    uint64_t kernels;
    bool taken;
};

struct lksi_smallest {
    struct lksi_smallest_entry *entry; /* owned */
    size_t count, capacity;
};

/*
 * Takes, for each schedule of `op` and each set of kernels it launches, the `keep` cases of fewest
 * operations among those that it serves on `dev`; the first ones of equal cases. With `max_flops`
 * above 0 larger ones are left out, but for the smallest case of a schedule, so that each one runs.
 */
lks_status lksi_smallest_find(struct lksi_smallest *s, struct lksi_dev *dev,
                              const struct lksi_op *op, bool long_run, int keep, double max_flops);
bool lksi_smallest_has(const struct lksi_smallest *s, size_t row, int case_index);
void lksi_smallest_close(struct lksi_smallest *s);

#endif
