/*
 * binary.h - broadcasting, for operators whose gradients need it.
 */
#ifndef LKSI_OP_BINARY_H
#define LKSI_OP_BINARY_H

#include "op/op.h"

/* The sum of `dy` over the axes along which a tensor shaped as `like` was repeated; dy itself where
 * the shapes are equal. */
lks_status lksi_sum_to(struct lksi_builder *b, lksi_value dy, lksi_value like, lksi_value *out);

#endif
