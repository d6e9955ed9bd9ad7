/*
 * leaf_gpu.h - a launch for GPUs that makes the numbers of all leaves of a batch: the kernels of
 * cl/op/leaf_gpu.cl, for the schedules `gpu` of batch_norm, batch_norm_grad and bias_grad.
 */
#ifndef LKSI_OP_LEAF_GPU_H
#define LKSI_OP_LEAF_GPU_H

#include "op/op.h"
#include "contract/leaf.h"

enum lksi_leaf_numbers { LKSI_LEAF_MOMENTS, LKSI_LEAF_SUMS, LKSI_LEAF_BIAS };

/* The batch is [n][h][w][channels] in blocks of `leaf` samples. */
struct lksi_leaf_shape {
    U32 n, h, w, channels, leaf;
};

/* May the launch below serve? */
bool lksi_leaf_serves(enum lksi_leaf_numbers numbers, const struct lksi_leaf_shape *s,
                      const struct lksi_limits *dev);
/* Adds the launch: from input 0 (sums: dy is input 1, mean 2, invstd 3) into workspace 0,
 * [leaf][2][channels], or [leaf][channels] for a bias. */
void lksi_leaf_launch(enum lksi_leaf_numbers numbers, const struct lksi_leaf_shape *s,
                      struct lksi_recipe *r);

#endif
