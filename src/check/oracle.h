/*
 * oracle.h - one case of an operator on the host: its inputs, and what its contract makes of them.
 */
#ifndef LKSI_CHECK_ORACLE_H
#define LKSI_CHECK_ORACLE_H

#include "check/check.h"

/* Stands in outputs before a run; a NaN that no arithmetic makes. */
#define LKSI_POISON 0x7fa5c3e1u

struct lksi_oracle {
    struct lksi_call call;
    void *attr; /* owned; call.attr */
    int index;
    void *in[LKSI_MAX_IN], *out[LKSI_MAX_OUT]; /* owned; the contract's bits in out */
    uint64_t in_bytes[LKSI_MAX_IN], out_bytes[LKSI_MAX_OUT];
};

/* 1 + the input that output j shares memory with, or 0. */
int lksi_oracle_alias(const struct lksi_op *op, int j);

/* Makes case `index` of `op`. `*found` false past the last case. The struct may be moved. */
lks_status lksi_oracle_open(struct lksi_oracle *o, const struct lksi_op *op, int index,
                            bool long_run, bool *found);
void lksi_oracle_close(struct lksi_oracle *o);

/*
 * Draws the inputs and computes all items on the threads of `ref`. Fills *f (fault, text, diff)
 * with LKSI_FAULT_CONTRACT if the item function leaves an element unwritten, gives other bits when
 * it works in place, or makes a NaN of uniform inputs.
 */
lks_status lksi_oracle_compute(struct lksi_oracle *o, struct lksi_dev *ref, enum lksi_regime regime,
                               uint64_t seed, struct lksi_check_failure *f);

/* "[2,8,8,3] [4,3,3,3] -> [2,6,6,4], leaf 8" */
void lksi_oracle_shapes(const struct lksi_oracle *o, char *text, size_t size);

#endif
