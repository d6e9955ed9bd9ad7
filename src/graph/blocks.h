/*
 * blocks.h - the sum of what flows back to one value from its uses (numerics.md, rules 8 and 9).
 */
#ifndef LKSI_GRAPH_BLOCKS_H
#define LKSI_GRAPH_BLOCKS_H

#include "graph/graph.h"

/* Adds the `n` >= 1 gradients of one value, which stand in the graph order of its uses. `cut`:
 * those that sum over the samples are added block by block; else the batch is not known yet. */
lks_status lksi_graph_sum_uses(struct lks_graph *g, const lksi_value *part, size_t n, bool cut,
                               lksi_value *sum);

#endif
