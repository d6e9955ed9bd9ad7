/*
 * resample.h - the C loops of resample and resample_grad; a part is a row of the output.
 */
#ifndef LKSI_OP_RESAMPLE_H
#define LKSI_OP_RESAMPLE_H

#include "op/op.h"

U64 lksi_resample_ref_parts(const struct lksi_call *call);
void lksi_resample_ref(const struct lksi_call *call, const void *const *in, void *const *out,
                       U64 p0, U64 p1);
void lksi_resample_grad_ref(const struct lksi_call *call, const void *const *in, void *const *out,
                            U64 p0, U64 p1);

#endif
