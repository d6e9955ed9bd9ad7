/*
 * layer_shape.h - what layer_shape.c and layer_resize.c share.
 */
#ifndef LKSI_GRAPH_LAYER_SHAPE_H
#define LKSI_GRAPH_LAYER_SHAPE_H

#include "graph/layer.h"
#include "op/attr.h"

/* The shape of x without the batch. */
struct lksi_desc lksi_sample(const lks_graph *g, lks_value x);
/* "[28,28,1]": that shape, into `text`; returns text. */
const char *lksi_sample_text(const lks_graph *g, lks_value x, char text[96]);
/* Adds a view of x as [-1, dims...]; what does not fit into dims goes to the front. */
lks_status lksi_layer_view(lks_graph *g, const char *name, lks_value x, int rank,
                           const int64_t *dims, lks_value *y);
/* The attribute of a move that leaves everything where it is; `rank` counts the batch. */
struct lksi_move_attr lksi_move_all(int rank);

#endif
