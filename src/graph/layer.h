/*
 * layer.h - what the layer functions (layer_FAMILY.c) share: checks, names, parameters. A layer that
 * adds more than one value, node or parameter is a function of its own under LKSI_RETURN_WHOLE.
 */
#ifndef LKSI_GRAPH_LAYER_H
#define LKSI_GRAPH_LAYER_H

#include <lockstep/lockstep.h>

#include "graph/graph.h"

#define LKSI_LAYER_NAME 256

/* A layer that is being added. */
struct lksi_layer_head {
    lks_graph *g;
    char name[LKSI_LAYER_NAME];
    const char *share; /* the layer whose parameters it takes, or NULL */
};

/* Begins every public call: `x` is a value of the graph, and `out` is not NULL. */
lks_status lksi_layer_check(lks_graph *g, const char *what, lks_value x, const void *out);

/* Begins a layer with parameters: its name is `given`, or "PREFIXn" for the n-th of its kind. */
void lksi_layer_begin(struct lksi_layer_head *l, lks_graph *g, const char *prefix,
                      const char *given, const char *share);

/* How a parameter starts. */
enum lksi_param_start {
    LKSI_START_INIT, /* as the graph's `init` says */
    LKSI_START_BIAS, /* +0 */
    LKSI_START_SCALE, /* 1 */
    LKSI_START_QUARTER /* 0.25 */
};

/* Adds the parameter NAME.SUFFIX, or finds SHARE.SUFFIX, which must have this shape. */
lks_status lksi_layer_param(const struct lksi_layer_head *l, const char *suffix,
                            const struct lksi_desc *desc, int64_t fan_in, int64_t fan_out,
                            enum lksi_param_start start, lksi_value *out);

/* Adds NAME.SUFFIX, a vector kept with the parameters but not trained, which begins as `start`. */
lks_status lksi_layer_buffer(const struct lksi_layer_head *l, const char *suffix, int64_t n,
                             float start, lksi_value *out);

/* Adds the operator `op` without parameters behind `n_in` values and writes its output 0. */
lks_status lksi_layer_apply(lks_graph *g, const char *name, const char *op, const void *attr,
                            int n_in, const lks_value *in, lks_value *y);

/* A view of a sequence [N,L,C] as an image [N,1,L,C], and back. */
lks_status lksi_layer_as_image(lks_graph *g, lks_value x, lks_value *y);
lks_status lksi_layer_as_sequence(lks_graph *g, lks_value x, lks_value *y);

#endif
