/*
 * attr.h - the attribute structs of the operators that have any. Fill them from zero, since they
 * are copied and compared as bytes.
 */
#ifndef LKSI_OP_ATTR_H
#define LKSI_OP_ATTR_H

#include "op/op.h"

/* reshape: the new shape; one dimension may be -1 and is inferred. */
struct lksi_reshape_attr {
    int rank;
    int64_t dim[LKSI_MAX_RANK];
};

/* maxpool; maxpool_grad, which alone reads relu_mask: x was the output of a relu, whose gradient
 * is applied too. */
struct lksi_maxpool_attr {
    int kernel_h, kernel_w, stride_h, stride_w;
    int pad_top, pad_bottom, pad_left, pad_right;
    int relu_mask;
    int dilation_h, dilation_w; /* 0 counts as 1 */
    int ceil; /* a last window may leave the padded image, if it begins in the image or before it */
};

/* avgpool; avgpool_grad, which alone reads height and width. relu_mask of the window is not read. */
struct lksi_avgpool_attr {
    struct lksi_maxpool_attr window;
    int count_pad;     /* taps in the padding count in the divisor */
    int height, width; /* of x: the stride may have dropped its tail */
};

/* grad_clip: limit of the norm and of each gradient; 0: none. */
struct lksi_grad_clip_attr {
    float limit, value;
};

/* ema: the weight of the new parameters, 1 - decay. */
struct lksi_ema_attr {
    float w;
};

/* dense: a relu behind the sum. */
struct lksi_dense_attr {
    int relu;
};

/* batch_norm and its relatives; momentum and count are read by batch_norm_running alone. */
struct lksi_batch_norm_attr {
    float eps;
    float momentum; /* of the new statistics in the running ones */
    int64_t count;  /* positions that the statistics were taken over */
    int64_t relu;   /* 1: a relu behind; not of the gradient */
};

/* group_norm and its gradients: group norm, instance norm (a channel a group), layer norm. */
struct lksi_group_norm_attr {
    int64_t groups;
    int layer; /* each position by itself; then there is one group */
    float eps;
};

/* samples, samples_grad: samples [first, first + count) of dimension 0. */
struct lksi_samples_attr {
    int64_t first, count;
};

/* dropout: the share that is dropped, and the stream of "dropout:LAYER". */
struct lksi_dropout_attr {
    double p;
    uint32_t stream, unused; /* no padding: compared as bytes */
};

/* The functions of contract/unary.h: the numbers a and b of the function. */
struct lksi_unary_attr {
    float a, b;
};

/* sum, mean, sum_samples, mean_samples, expand, expand_mean: bit k is set where axis k of the larger
 * tensor is reduced; `keep`: the smaller one has dimension 1 there, else it lacks the axis (a
 * scalar is [1]). Use lksi_sum and lksi_expand of op/reduce.h, which choose the operator. */
struct lksi_reduce_attr {
    unsigned axes;
    int keep;
};

/* matmul: matrices that are stored with their last two axes turned; 0 or 1 each. */
struct lksi_matmul_attr {
    int transpose_a, transpose_b;
};

/* embedding_grad: rows of the table. */
struct lksi_embedding_attr {
    int64_t rows;
};

/* softmax, log_softmax and their gradients; causal: row i of the last matrix sees columns <= i. */
struct lksi_softmax_attr {
    int causal;
};

/* fill: the F32 tensor to make. */
struct lksi_fill_attr {
    float value;
    struct lksi_desc desc;
};

/* move: for each axis of y the axis of x that it reads, its own size (0: that of x's axis, as for
 * the batch), and t = begin + o*step, which is read at t / dilate (contract/move.h). Zero as step
 * or dilate means 1. `from` is a permutation. */
struct lksi_move_axis {
    int32_t from, size, begin, step, dilate;
};
struct lksi_move_attr {
    int rank;
    uint32_t value; /* bit pattern of what stands where x has nothing */
    struct lksi_move_axis axis[LKSI_MAX_RANK];
};

/* concat: the axis, the batch being 0. */
struct lksi_concat_attr {
    int axis;
};

/* resample, resample_grad: sizes of x and y in an axis, and where output o is read:
 * (a*o + b) / d (contract/resample.h). */
struct lksi_resample_axis {
    int32_t in, out, a, b, d;
};
struct lksi_resample_attr {
    int linear; /* 0: nearest, rounded down */
    struct lksi_resample_axis h, w;
};

/* element_loss and its gradient; kind is one of LKS_LOSS_... of the contract. */
struct lksi_element_loss_attr {
    int kind, constant; /* constant: the target is `target`, there is no input for it */
    int of_target;      /* the gradient: with respect to the target */
    float target, beta;
};

/* sample_mean and its gradient. */
struct lksi_sample_mean_attr {
    int sum; /* not the mean but the sum */
};

/* loss_sum; its gradient takes weight[0]. */
struct lksi_loss_sum_attr {
    float weight[6];
};

/* softmax_cross_entropy and its gradient; all zero: plain. */
struct lksi_cross_entropy_attr {
    double smoothing;
    int ignores, ignored, n_weight;
    float weight[96];
};

/* random: normal or uniform numbers, [N, dim...]. */
struct lksi_random_attr {
    uint32_t stream;
    int normal, rank;
    int64_t dim[LKSI_MAX_RANK - 1];
};

/* pixels, take_pixels: the shape of y, and the values of a position in the table. */
struct lksi_pixels_attr {
    int32_t rank, channels;
    int64_t dim[LKSI_MAX_RANK];
};

#endif
