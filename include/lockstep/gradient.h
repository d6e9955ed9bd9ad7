/*
 * gradient.h - gradients as part of a network, and where they end.
 */
#ifndef LOCKSTEP_GRADIENT_H
#define LOCKSTEP_GRADIENT_H

#include <lockstep/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Adds y = x, through which no gradient flows back: what made x is not trained by what follows.
 * Takes no memory and no time. */
LKS_API lks_status lks_graph_stop_gradient(lks_graph *graph, lks_value x, lks_value *y);

/*
 * Adds the operators that compute *dx = d(sum of all elements of y) / dx, in the shape of x: an
 * input or any value that y is computed from. As the samples of a batch do not mix in most networks,
 * that is each sample's own gradient. *dx is a value like others, and a loss made of it can be
 * differentiated again: a gradient penalty is
 *
 *     lks_graph_gradient(g, score, image, &dx);    then    (norm(dx) - 1)^2 of each sample.
 *
 * A batch normalisation does mix them: then it is the gradient of the whole batch's sum, through its
 * statistics too; an evaluation takes the running ones as constants, in the gradient as well.
 *
 * LKS_E_ARGUMENT if x does not lead to y, or if the way leads through an operator without a gradient;
 * the text names the layer.
 */
LKS_API lks_status lks_graph_gradient(lks_graph *graph, lks_value y, lks_value x, lks_value *dx);

#ifdef __cplusplus
}
#endif
#endif
