/*
 * layers.h - layers with parameters: convolution, dense, embedding, normalisations.
 *
 * The parameters of a layer NAME are called NAME.weight, NAME.bias, ... in weights files. Where a
 * struct has `share`, it names an earlier layer of the same shapes, and this layer has no parameters
 * of its own but uses those (recurrence, siamese networks).
 */
#ifndef LOCKSTEP_LAYERS_H
#define LOCKSTEP_LAYERS_H

#include <stdbool.h>
#include <stdint.h>

#include <lockstep/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Adds a convolution with its parameters NAME.weight [out][kernel][kernel_w][C / groups] and
 * NAME.bias [out], and writes its value to *y: y[n,oh,ow,k] = sum over r,s,c of
 * x[n, oh*stride - top + r*dilation, ow*stride_w - left + s*dilation_w, c] * w[k,r,s,c] + b[k].
 * x is [H,W,C], y is [OH,OW,out] with OH = (H + top + bottom - dilation (kernel - 1) - 1) / stride +
 * 1, rounded down; OW alike. LKS_E_ARGUMENT for an algo that the other fields do not allow.
 */
enum lks_conv_algo {
    LKS_CONV_DIRECT,
    LKS_CONV_WINOGRAD /* F(2x2, 3x3): other bits; kernel 3, stride, dilation and groups 1 only */
};
struct lks_conv2d_params {
    const char *name;             /* of the layer; NULL: conv1, conv2, ... */
    const char *share;            /* NULL, or an earlier layer whose parameters this one takes */
    int32_t out;                  /* channels; required */
    int32_t kernel;               /* height and width; required */
    int32_t stride, dilation;     /* 0 means 1 */
    int32_t pad;                  /* at each border */
    int32_t groups;               /* 0 means 1 */
    bool no_bias;
    int32_t kernel_w, stride_w, dilation_w; /* of the width, if it differs from the height's; 0: not */
    int32_t pads[4]; /* top, bottom, left, right; in place of `pad` if one is not 0 */
    enum lks_conv_algo algo; /* which sums are taken, hence the bits (docs/numerics.md, rule 7) */
};
#ifndef __cplusplus
#define lks_conv2d_params(...) (&(struct lks_conv2d_params){__VA_ARGS__})
#endif
/* stride, dilation and groups are 1, all else is zero. Thread-safe. */
LKS_API struct lks_conv2d_params lks_conv2d_params_default(void);
LKS_API lks_status lks_graph_conv2d(lks_graph *graph, lks_value x,
                                    const struct lks_conv2d_params *params, lks_value *y);
/*
 * The same over a sequence x [L,C]: y is [OL,out]. NAME.weight is [out][1][kernel][C / groups]; the
 * fields for a width say nothing, pads[0] and pads[1] are the two ends. A NULL name
 * means conv1d_1, conv1d_2, ...
 */
LKS_API lks_status lks_graph_conv1d(lks_graph *graph, lks_value x,
                                    const struct lks_conv2d_params *params, lks_value *y);

/*
 * Adds a transposed convolution, the transpose of what lks_graph_conv2d does with the same window:
 * y[n, ih*stride - top + r*dilation, iw*stride_w - left + s*dilation_w, k] is the sum of
 * x[n,ih,iw,c] * w[c,r,s,k] over all ih, iw, r, s, c that lead there, + b[k]. NAME.weight is
 * [C][kernel][kernel_w][out / groups], NAME.bias [out]. x is [H,W,C], y is [OH,OW,out] with
 * OH = (H - 1) stride + dilation (kernel - 1) + 1 + output_pad - top - bottom; OW alike.
 */
struct lks_conv_transpose2d_params {
    const char *name;         /* NULL: conv_transpose1, conv_transpose2, ... */
    const char *share;        /* NULL, or an earlier layer whose parameters this one takes */
    int32_t out;              /* channels; required */
    int32_t kernel;           /* height and width; required */
    int32_t stride, dilation; /* 0 means 1 */
    int32_t pad;              /* cut off at each border */
    int32_t groups;           /* 0 means 1 */
    bool no_bias;
    int32_t kernel_w, stride_w, dilation_w; /* of the width, if it differs from the height's; 0: not */
    int32_t pads[4]; /* top, bottom, left, right; in place of `pad` if one is not 0 */
    int32_t output_pad, output_pad_w; /* rows and columns more at the end, fewer than the strides */
};
#ifndef __cplusplus
#define lks_conv_transpose2d_params(...) (&(struct lks_conv_transpose2d_params){__VA_ARGS__})
#endif
/* stride, dilation and groups are 1, all else is zero. Thread-safe. */
LKS_API struct lks_conv_transpose2d_params lks_conv_transpose2d_params_default(void);
LKS_API lks_status lks_graph_conv_transpose2d(lks_graph *graph, lks_value x,
                                              const struct lks_conv_transpose2d_params *params,
                                              lks_value *y);

/*
 * Adds a fully connected layer with NAME.weight [out][in] and NAME.bias [out]:
 * y[n,o] = sum over i of x[n,i] * w[o,i] + b[o]; x is flattened in order (h, w, c) first.
 */
struct lks_dense_params {
    const char *name; /* NULL: dense1, dense2, ... */
    const char *share; /* NULL, or an earlier layer whose parameters this one takes */
    int32_t out;      /* required */
    bool no_bias;
    bool last_axis;   /* over the last axis alone: [.., I] becomes [.., out], the rest stays */
};
#ifndef __cplusplus
#define lks_dense_params(...) (&(struct lks_dense_params){__VA_ARGS__})
#endif
/* All zero. Thread-safe. */
LKS_API struct lks_dense_params lks_dense_params_default(void);
LKS_API lks_status lks_graph_dense(lks_graph *graph, lks_value x,
                                   const struct lks_dense_params *params, lks_value *y);

/*
 * Adds an embedding with NAME.weight [vocabulary][out]: y[n,s,d] = weight[token[n,s]][d]. `tokens`
 * is an input of integers (lks_graph_input_tokens) [S]; y is [S,out]. A token that is not in
 * [0, vocabulary) gives a NaN, which stops the training (LKS_E_NONFINITE), and reads no memory.
 * A dense layer over the last axis of `vocabulary` outputs without bias can share the table.
 */
struct lks_embedding_params {
    const char *name;   /* NULL: embedding1, embedding2, ... */
    const char *share;  /* NULL, or an earlier layer whose parameter this one takes */
    int32_t vocabulary; /* rows of the table; required */
    int32_t out;        /* required */
};
#ifndef __cplusplus
#define lks_embedding_params(...) (&(struct lks_embedding_params){__VA_ARGS__})
#endif
/* All zero. Thread-safe. */
LKS_API struct lks_embedding_params lks_embedding_params_default(void);
LKS_API lks_status lks_graph_embedding(lks_graph *graph, lks_value tokens,
                                       const struct lks_embedding_params *params, lks_value *y);

/* Adds learned positions, NAME.weight in the shape of a sample: y[n] = x[n] + weight. */
struct lks_positions_params {
    const char *name;  /* NULL: positions1, positions2, ... */
    const char *share; /* NULL, or an earlier layer whose parameter this one takes */
};
#ifndef __cplusplus
#define lks_positions_params(...) (&(struct lks_positions_params){__VA_ARGS__})
#endif
/* All zero. Thread-safe. */
LKS_API struct lks_positions_params lks_positions_params_default(void);
/* `params` may be NULL. */
LKS_API lks_status lks_graph_positions(lks_graph *graph, lks_value x,
                                       const struct lks_positions_params *params, lks_value *y);

/*
 * Adds a batch normalisation with NAME.weight [C] and NAME.bias [C]:
 * y = (x - mean) / sqrt(variance + eps) * weight + bias for each channel of an image (or feature of
 * a vector), mean and biased variance taken over the whole batch and its positions. An evaluation
 * uses running statistics instead: running = running + momentum * (batch - running), the variance's
 * being the unbiased one; they begin at 0 and 1 and are saved as NAME.running_mean and
 * NAME.running_var. A step stopped for a number that is not finite leaves them as they were.
 */
struct lks_batch_norm_params {
    const char *name; /* NULL: batch_norm1, batch_norm2, ... */
    double eps;       /* 0 means 1e-5 */
    double momentum;  /* 0 means 0.1 */
};
#ifndef __cplusplus
#define lks_batch_norm_params(...) (&(struct lks_batch_norm_params){__VA_ARGS__})
#endif
/* eps 1e-5, momentum 0.1. Thread-safe. */
LKS_API struct lks_batch_norm_params lks_batch_norm_params_default(void);
/* `params` may be NULL. */
LKS_API lks_status lks_graph_batch_norm(lks_graph *graph, lks_value x,
                                        const struct lks_batch_norm_params *params, lks_value *y);

/*
 * Adds a group normalisation with NAME.weight [C] and NAME.bias [C]: the formula of
 * lks_graph_batch_norm with the mean and the biased variance of one sample and one group of
 * neighbouring channels, over all positions. `groups` divides the channels. Training and evaluation
 * are alike.
 */
struct lks_group_norm_params {
    const char *name; /* NULL: group_norm1, group_norm2, ... */
    const char *share; /* NULL, or an earlier layer whose parameters this one takes */
    int32_t groups;   /* required */
    double eps;       /* 0 means 1e-5 */
};
#ifndef __cplusplus
#define lks_group_norm_params(...) (&(struct lks_group_norm_params){__VA_ARGS__})
#endif
/* eps 1e-5; groups must be set. Thread-safe. */
LKS_API struct lks_group_norm_params lks_group_norm_params_default(void);
LKS_API lks_status lks_graph_group_norm(lks_graph *graph, lks_value x,
                                        const struct lks_group_norm_params *params, lks_value *y);

/*
 * Layer norm: mean and variance of one position (of an image, of a sequence) or of one vector, over
 * its channels.
 * Instance norm: of one sample and one channel, over the positions. NAME.weight and NAME.bias are
 * [C] in both.
 */
struct lks_norm_params {
    const char *name; /* NULL: layer_norm1, instance_norm1, ... */
    const char *share; /* NULL, or an earlier layer whose parameters this one takes */
    double eps;       /* 0 means 1e-5 */
};
#ifndef __cplusplus
#define lks_norm_params(...) (&(struct lks_norm_params){__VA_ARGS__})
#endif
/* eps 1e-5. Thread-safe. */
LKS_API struct lks_norm_params lks_norm_params_default(void);
/* `params` may be NULL. */
LKS_API lks_status lks_graph_layer_norm(lks_graph *graph, lks_value x,
                                        const struct lks_norm_params *params, lks_value *y);
LKS_API lks_status lks_graph_instance_norm(lks_graph *graph, lks_value x,
                                           const struct lks_norm_params *params, lks_value *y);

#ifdef __cplusplus
}
#endif
#endif
