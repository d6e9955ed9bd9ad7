/*
 * activation.h - functions of single elements, of any shape.
 */
#ifndef LOCKSTEP_ACTIVATION_H
#define LOCKSTEP_ACTIVATION_H

#include <stdbool.h>
#include <stdint.h>

#include <lockstep/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Adds y = x <= 0 ? +0 : x, element by element, any shape; its gradient at 0 is 0. */
LKS_API lks_status lks_graph_relu(lks_graph *graph, lks_value x, lks_value *y);

#ifdef __cplusplus
}
#endif
#endif
