/*
 * reduce.h - how other operators' gradients ask for sums over axes and for their broadcasting.
 */
#ifndef LKSI_OP_REDUCE_H
#define LKSI_OP_REDUCE_H

#include "op/op.h"

/* Sum of x over `axes` (bit k: axis k): by rule 8 if axis 0 is among them, else by rule 6. `keep`:
 * the reduced axes stay with dimension 1. No axes: x itself. */
lks_status lksi_sum(struct lksi_builder *b, lksi_value x, unsigned axes, bool keep, lksi_value *y);

/* The other way: v repeated along `axes` over the shape of `like`; `keep` says how v has them. */
lks_status lksi_expand(struct lksi_builder *b, lksi_value v, lksi_value like, unsigned axes,
                       bool keep, lksi_value *y);

/* What x becomes when reduced. */
struct lksi_desc lksi_reduced(const struct lksi_desc *x, unsigned axes, bool keep);

/* Checks the call's axes against the larger tensor x and fills its struct reduce_dims. */
lks_status lksi_reduce_dims(struct lksi_call *call, const struct lksi_desc *x);

#endif
