/*
 * dense.h - what the files of the dense layer share: C loops for `ref`, schedules.
 */
#ifndef LKSI_OP_DENSE_H
#define LKSI_OP_DENSE_H

#include "contract/dense.h"
#include "op/op.h"

static inline const struct dense_dims *lksi_dense_dims(const struct lksi_call *call)
{
    return (const struct dense_dims *)(const void *)call->dims.bytes;
}

/* dense_ref.c */
U64 lksi_dense_ref_parts(const struct lksi_call *call);
void lksi_dense_ref(const struct lksi_call *call, const void *const *in, void *const *out, U64 p0,
                    U64 p1);
U64 lksi_dense_data_grad_ref_parts(const struct lksi_call *call);
void lksi_dense_data_grad_ref(const struct lksi_call *call, const void *const *in, void *const *out,
                              U64 p0, U64 p1);
U64 lksi_dense_weight_grad_ref_parts(const struct lksi_call *call);
void lksi_dense_weight_grad_ref(const struct lksi_call *call, const void *const *in,
                                void *const *out, U64 p0, U64 p1);

/* dense_cpu.c */
const char *lksi_dense_cpu_declines(const struct lksi_call *call, const struct lksi_limits *dev);
void lksi_dense_cpu_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                           struct lksi_recipe *r);
const char *lksi_dense_data_grad_cpu_declines(const struct lksi_call *call,
                                              const struct lksi_limits *dev);
void lksi_dense_data_grad_cpu_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                                     struct lksi_recipe *r);
const char *lksi_dense_weight_grad_cpu_declines(const struct lksi_call *call,
                                                const struct lksi_limits *dev);
void lksi_dense_weight_grad_cpu_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                                       struct lksi_recipe *r);

extern const struct lksi_tunable lksi_dense_cpu_tunables[];

/* dense_clblast.c */
const char *lksi_dense_clblast_declines(const struct lksi_call *call,
                                        const struct lksi_limits *dev);
void lksi_dense_clblast_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                               struct lksi_recipe *r);
void lksi_dense_data_grad_clblast_recipe(const struct lksi_call *call,
                                         const struct lksi_limits *dev, struct lksi_recipe *r);
const char *lksi_dense_weight_grad_clblast_declines(const struct lksi_call *call,
                                                    const struct lksi_limits *dev);
void lksi_dense_weight_grad_clblast_recipe(const struct lksi_call *call,
                                           const struct lksi_limits *dev, struct lksi_recipe *r);

#endif
