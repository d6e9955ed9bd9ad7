/*
 * real.h - every operator once more, in double precision and without any thought of order.
 *
 * Same bits are not yet right numbers: accuracy.c holds the contracts against these functions, and
 * gradient.c differentiates these. Write them from the operator's formula, not from its contract.
 */
#ifndef LKSI_CHECK_REAL_H
#define LKSI_CHECK_REAL_H

#include "op/op.h"

/* Inputs and outputs as doubles, also those of I32. err[j][e] bounds what a computation in fp32, in
 * the contract's kind of order, may be off; err is NULL where nobody asks. */
struct lksi_real_io {
    const struct lksi_call *call;
    const double *const *in;
    double *const *out;
    double *const *err;
};
typedef void (*lksi_real_fn)(const struct lksi_real_io *io);

/* NULL: there is none, which fails the suites that need it. */
lksi_real_fn lksi_real_find(const char *op);

/* ---- for the functions themselves ---- */

#define LKSI_REAL_U 5.9604644775390625e-8 /* 2^-24, half an ulp of 1 */

/* Bound of n roundings over terms whose magnitudes add up to mag: n*u*mag / (1 - n*u), and half the
 * smallest subnormal number for each. */
double lksi_real_gamma(double n, double mag);
/* Roundings on the way from one product of a chain over taps and channels to its end: the longest
 * piece (piece.h), and the pieces. */
double lksi_real_piece_depth(double taps, double channels);
/* The same of an element of a sum by rule 8 to its root: of a leaf, which is one chain, or products in
 * pieces of LKS_STRETCH, or a sum in pieces of LKS_SPAN; and of the tree. */
double lksi_real_leaf_depth(uint32_t n, uint32_t rows, uint32_t cols, uint32_t leaf);
double lksi_real_stretch_depth(uint32_t n, uint32_t rows, uint32_t cols, uint32_t leaf);
double lksi_real_span_depth(uint32_t n, uint32_t rows, uint32_t cols, uint32_t leaf);
/* The same for a row by rule 6. */
double lksi_real_row_depth(double n);

static inline void lksi_real_put(const struct lksi_real_io *io, int j, uint64_t e, double value,
                                 double bound)
{
    io->out[j][e] = value;
    if (io->err != NULL)
        io->err[j][e] = bound;
}

/* The tables, each ended by a NULL name. */
struct lksi_real_entry {
    const char *op;
    lksi_real_fn fn;
};
extern const struct lksi_real_entry lksi_real_update[];
extern const struct lksi_real_entry lksi_real_basic[], lksi_real_norms[], lksi_real_windows[];
extern const struct lksi_real_entry lksi_real_shapes[];
extern const struct lksi_real_entry lksi_real_graph[];
extern const struct lksi_real_entry lksi_real_losses[];
extern const struct lksi_real_entry lksi_real_binary[], lksi_real_unary[];
extern const struct lksi_real_entry lksi_real_reduce[], lksi_real_winograd[];

#endif
