/*
 * sample.h - a run compared with its contract at chosen items. Admission (numerics.md, rule 14)
 * and the harness stand on it.
 */
#ifndef LKSI_OP_SAMPLE_H
#define LKSI_OP_SAMPLE_H

#include "op/op.h"

/* Where a run and its contract part. */
struct lksi_diff {
    int output;
    uint64_t index;     /* element of that output */
    uint32_t got, want; /* bit patterns */
    uint64_t ulp;       /* see lksi_bits_ulp */
};

/* Equal bits; two NaNs of F32 are equal. */
bool lksi_bits_same(enum lksi_dtype dtype, uint32_t a, uint32_t b);
/* How many F32 numbers lie from a to b (-0 and +0 one apart); UINT64_MAX if either is a NaN. For
 * I32 the absolute difference. */
uint64_t lksi_bits_ulp(enum lksi_dtype dtype, uint32_t a, uint32_t b);

/*
 * The items of a call worth looking at: corners and tile borders (4 to 128 along each dimension)
 * of output 0, and 256 drawn by Philox from `seed`; each once, ascending. Caller frees.
 */
lks_status lksi_sample_items(const struct lksi_call *call, uint64_t seed, uint64_t **items,
                             size_t *count);

/*
 * Computes `count` items of the contract from host copies `in` of the inputs as they were before
 * the run, and compares what the run left in `got` (host copies of the outputs). `*same` false and
 * `*diff` filled at the first difference. LKS_E_MEMORY only.
 */
lks_status lksi_check_sample(const struct lksi_call *call, const void *const *in,
                             const void *const *got, const uint64_t *items, size_t count,
                             bool *same, struct lksi_diff *diff);

#endif
