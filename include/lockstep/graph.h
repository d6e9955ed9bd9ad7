/*
 * graph.h - networks: values, operators and parameters, all shapes known. What a network is made of
 * stands in layers.h, activation.h, pooling.h, shape.h and loss.h.
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
 * layer) and LKS_E_MEMORY. A call that fails leaves the graph as it was, so that a corrected one may
 * follow. Names are copied and must be unique in a graph. No function here blocks. A graph
 * is used by one thread at a time; a trainer takes its own copy.
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

/* Adds a batched input of `rank` (1 to 4) dimensions, each 1 or more, without the batch, of at most
 * 2^31 - 1 elements; *out is its value. A trainer feeds one input. */
LKS_API lks_status lks_graph_input(lks_graph *graph, const char *name, int rank,
                                   const int64_t *dims, lks_value *out);

/* The same, of 32-bit integers: what an embedding takes. */
LKS_API lks_status lks_graph_input_tokens(lks_graph *graph, const char *name, int rank,
                                          const int64_t *dims, lks_value *out);

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
