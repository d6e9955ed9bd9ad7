/*
 * bias_grad.h - what bias_grad.c and its C loop share.
 */
#ifndef LKSI_OP_BIAS_GRAD_H
#define LKSI_OP_BIAS_GRAD_H

#include "contract/bias_grad.h"
#include "op/op.h"

static inline const struct bias_grad_dims *lksi_bias_grad_dims(const struct lksi_call *call)
{
    return (const struct bias_grad_dims *)(const void *)call->dims.bytes;
}

/* bias_grad_ref.c */
U64 lksi_bias_grad_ref_parts(const struct lksi_call *call);
void lksi_bias_grad_ref(const struct lksi_call *call, const void *const *in, void *const *out,
                        U64 p0, U64 p1);

#endif
