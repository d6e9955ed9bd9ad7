/*
 * conv_gpu.h - schedules `nv` and `gpu` of the convolution operators, as lines of their tables.
 */
#ifndef LKSI_OP_CONV_GPU_H
#define LKSI_OP_CONV_GPU_H

#include "op/op.h"

#define LKSI_GPU_SCHEDULE(name)                                                                    \
    const char *lksi_##name##_declines(const struct lksi_call *call,                               \
                                       const struct lksi_limits *dev);                             \
    void lksi_##name##_recipe(const struct lksi_call *call, const struct lksi_limits *dev,         \
                              struct lksi_recipe *r)
LKSI_GPU_SCHEDULE(conv2d_nv);
LKSI_GPU_SCHEDULE(conv2d_gpu);
LKSI_GPU_SCHEDULE(conv2d_data_grad_nv);
LKSI_GPU_SCHEDULE(conv2d_data_grad_gpu);
LKSI_GPU_SCHEDULE(conv2d_weight_grad_nv);
LKSI_GPU_SCHEDULE(conv2d_weight_grad_gpu);
LKSI_GPU_SCHEDULE(winograd_nv);
LKSI_GPU_SCHEDULE(winograd_gpu);
LKSI_GPU_SCHEDULE(winograd_data_grad_nv);
LKSI_GPU_SCHEDULE(winograd_data_grad_gpu);
LKSI_GPU_SCHEDULE(winograd_weight_grad_nv);
LKSI_GPU_SCHEDULE(winograd_weight_grad_gpu);
LKSI_GPU_SCHEDULE(dense_nv);
LKSI_GPU_SCHEDULE(dense_gpu);
LKSI_GPU_SCHEDULE(dense_data_grad_nv);
LKSI_GPU_SCHEDULE(dense_data_grad_gpu);
LKSI_GPU_SCHEDULE(dense_weight_grad_nv);
LKSI_GPU_SCHEDULE(dense_weight_grad_gpu);
#undef LKSI_GPU_SCHEDULE

/* Their tiles: product_gpu.c. */
extern const struct lksi_tunable lksi_product_nv_tunables[], lksi_product_gpu_tunables[],
    lksi_leaves_nv_tunables[], lksi_leaves_gpu_tunables[], lksi_dense_leaves_nv_tunables[],
    lksi_dense_leaves_gpu_tunables[];

/* The two lines of a table; `kernel`: product, leaves or dense_leaves. */
#define LKSI_GPU_LINES(name, kernel)                                                               \
    {"nv", lksi_##name##_nv_declines, lksi_##name##_nv_recipe, lksi_##kernel##_nv_tunables, 0},    \
    {                                                                                              \
        "gpu", lksi_##name##_gpu_declines, lksi_##name##_gpu_recipe,                               \
            lksi_##kernel##_gpu_tunables, 0                                                        \
    }

#endif
