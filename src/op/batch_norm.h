/*
 * batch_norm.h - what batch_norm.c, its C loops and its schedules share.
 */
#ifndef LKSI_OP_BATCH_NORM_H
#define LKSI_OP_BATCH_NORM_H

#include "contract/batch_norm.h"
#include "op/op.h"

static inline const struct batch_norm_dims *lksi_batch_norm_dims(const struct lksi_call *call)
{
    return (const struct batch_norm_dims *)(const void *)call->dims.bytes;
}

/* batch_norm_ref.c */
U64 lksi_batch_norm_ref_parts(const struct lksi_call *call);
void lksi_batch_norm_ref(const struct lksi_call *call, const void *const *in, void *const *out,
                         U64 p0, U64 p1);
void lksi_batch_norm_grad_ref(const struct lksi_call *call, const void *const *in, void *const *out,
                              U64 p0, U64 p1);

/* x and the attributes of a call; fills its dims. */
lks_status lksi_batch_norm_want(struct lksi_call *call);

/* batch_norm_second.c: the gradient of batch_norm_grad */
lks_status lksi_batch_norm_second(const struct lksi_backward *g);

/* batch_norm_vec.c */
void lksi_batch_norm_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                            struct lksi_recipe *r);
void lksi_batch_norm_grad_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                                 struct lksi_recipe *r);
extern const struct lksi_schedule lksi_batch_norm_infer_schedules[];

/* batch_norm_cpu.c */
extern const struct lksi_schedule lksi_batch_norm_schedules[];
extern const struct lksi_schedule lksi_batch_norm_grad_schedules[];

#endif
