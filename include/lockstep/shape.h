/*
 * shape.h - the same elements in another shape.
 */
#ifndef LOCKSTEP_SHAPE_H
#define LOCKSTEP_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include <lockstep/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Adds a view of [H,W,C] as [H*W*C], in that order. */
LKS_API lks_status lks_graph_flatten(lks_graph *graph, lks_value x, lks_value *y);

#ifdef __cplusplus
}
#endif
#endif
