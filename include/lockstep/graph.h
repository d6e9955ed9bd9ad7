/*
 * graph.h - networks: values, operators and parameters, all shapes known.
 *
 * Values are named by numbers that belong to their graph. Shapes leave out the batch: an input of
 * shape {28, 28, 1} stands for [N,28,28,1]. Images are channels-last (height, width, channels).
 *
 *     lks_graph *g;
 *     lks_value x, y;
 *     lks_graph_create(&g, NULL);
 *     lks_graph_input(g, "image", 3, (int64_t[]){28, 28, 1}, &x);
 *     lks_graph_conv2d(g, x, lks_conv2d_params(.out = 32, .kernel = 5, .pad = 2), &y);
 *
 * Building reports LKS_E_ARGUMENT for shapes or parameters that do not fit (the text names the
 * layer) and LKS_E_MEMORY; a graph in which a call failed is only good for lks_graph_destroy. Names
 * are copied and must be unique in a graph. No function here blocks. A graph is used by one thread
 * at a time; a trainer takes its own copy.
 *
 * In C++ the literal macros do not exist: take lks_conv2d_params_default() and set its fields.
 */
#ifndef LOCKSTEP_GRAPH_H
#define LOCKSTEP_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lks_graph lks_graph;
typedef int32_t lks_value;

/* How a parameter starts. The bits come from Philox with the run's seed and the parameter's name. */
typedef enum lks_init {
    LKS_INIT_GLOROT_UNIFORM, /* uniform in +-sqrt(6 / (fan_in + fan_out)); biases +0 */
    LKS_INIT_HE_NORMAL,      /* normal, standard deviation sqrt(2 / fan_in); biases +0 */
    LKS_INIT_ZERO
} lks_init;

struct lks_graph_params {
    lks_init init; /* of weights */
};
#ifndef __cplusplus
#define lks_graph_params(...) (&(struct lks_graph_params){__VA_ARGS__})
#endif
/* LKS_INIT_GLOROT_UNIFORM. Thread-safe. */
LKS_API struct lks_graph_params lks_graph_params_default(void);

/* Creates an empty graph. `params` may be NULL. The caller destroys *graph. LKS_E_MEMORY. */
LKS_API lks_status lks_graph_create(lks_graph **graph, const struct lks_graph_params *params);
/* Destroys the graph and sets *graph to NULL; NULL and a pointer to NULL are allowed. */
LKS_API void lks_graph_destroy(lks_graph **graph);

/* Adds a batched input of `rank` (1 to 3) dimensions, each 1 or more, without the batch, of at most
 * 2^31 - 1 elements; *out is its value. A trainer feeds one input. */
LKS_API lks_status lks_graph_input(lks_graph *graph, const char *name, int rank,
                                   const int64_t *dims, lks_value *out);

/*
 * Adds a convolution with its parameters NAME.weight [out][kernel][kernel][C / groups] and NAME.bias
 * [out], and writes its value to *y: y[n,oh,ow,k] = sum over r,s,c of x[n, oh*stride-pad+r*dilation, ..., c] *
 * w[k,r,s,c] + b[k]. x is [H,W,C], y is [OH,OW,out] with
 * OH = (H + 2 pad - dilation (kernel - 1) - 1) / stride + 1.
 */
struct lks_conv2d_params {
    const char *name;             /* of the layer; NULL: conv1, conv2, ... */
    int32_t out;                  /* channels; required */
    int32_t kernel;               /* height and width; required */
    int32_t stride, dilation;     /* 0 means 1 */
    int32_t pad;                  /* at each border */
    int32_t groups;               /* 0 means 1 */
    bool no_bias;
};
#ifndef __cplusplus
#define lks_conv2d_params(...) (&(struct lks_conv2d_params){__VA_ARGS__})
#endif
/* stride, dilation and groups are 1, all else is zero. Thread-safe. */
LKS_API struct lks_conv2d_params lks_conv2d_params_default(void);
LKS_API lks_status lks_graph_conv2d(lks_graph *graph, lks_value x,
                                    const struct lks_conv2d_params *params, lks_value *y);

/*
 * Adds a fully connected layer with NAME.weight [out][in] and NAME.bias [out]:
 * y[n,o] = sum over i of x[n,i] * w[o,i] + b[o]; x is flattened in order (h, w, c) first.
 */
struct lks_dense_params {
    const char *name; /* NULL: dense1, dense2, ... */
    int32_t out;      /* required */
    bool no_bias;
};
#ifndef __cplusplus
#define lks_dense_params(...) (&(struct lks_dense_params){__VA_ARGS__})
#endif
/* All zero. Thread-safe. */
LKS_API struct lks_dense_params lks_dense_params_default(void);
LKS_API lks_status lks_graph_dense(lks_graph *graph, lks_value x,
                                   const struct lks_dense_params *params, lks_value *y);

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
 * Layer norm: mean and variance of one position (of an image) or of one vector, over its channels.
 * Instance norm: of one sample and one channel, over the positions. NAME.weight and NAME.bias are
 * [C] in both.
 */
struct lks_norm_params {
    const char *name; /* NULL: layer_norm1, instance_norm1, ... */
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

/* Adds y = x <= 0 ? +0 : x, element by element, any shape; its gradient at 0 is 0. */
LKS_API lks_status lks_graph_relu(lks_graph *graph, lks_value x, lks_value *y);

/*
 * Adds y[n,oh,ow,c] = maximum over r,s of x[n, oh*stride-pad+r, ow*stride-pad+s, c], taps outside
 * the image left out. x is [H,W,C]; y is [OH,OW,C] with OH = (H + 2 pad - kernel) / stride + 1,
 * rounded down: windows that would leave the padded image are dropped. On ties the first tap in
 * order (r, s) takes the gradient.
 */
struct lks_pool_params {
    int32_t kernel; /* required */
    int32_t stride; /* 0 means kernel */
    int32_t pad;
};
#ifndef __cplusplus
#define lks_pool_params(...) (&(struct lks_pool_params){__VA_ARGS__})
#endif
/* All zero. Thread-safe. */
LKS_API struct lks_pool_params lks_pool_params_default(void);
LKS_API lks_status lks_graph_maxpool(lks_graph *graph, lks_value x,
                                     const struct lks_pool_params *params, lks_value *y);

/* Adds a view of [H,W,C] as [H*W*C], in that order. */
LKS_API lks_status lks_graph_flatten(lks_graph *graph, lks_value x, lks_value *y);

/*
 * Adds the loss of classification: the mean over the batch of -log softmax(logits)[label]; logits
 * are [classes]. Adds an input "label" (int32). A graph has one loss.
 */
LKS_API lks_status lks_graph_softmax_cross_entropy(lks_graph *graph, lks_value logits);

/* Writes rank and dimensions (without the batch) of a value; `dims` holds at least 4.
 * LKS_E_ARGUMENT if the graph has no such value. */
LKS_API lks_status lks_graph_shape(const lks_graph *graph, lks_value value, int *rank,
                                   int64_t *dims);
/* The number of parameters (tensors) and of trainable scalars; 0 for NULL. */
LKS_API size_t lks_graph_parameter_count(const lks_graph *graph);
LKS_API int64_t lks_graph_scalar_count(const lks_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
