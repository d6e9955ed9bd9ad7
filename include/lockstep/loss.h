/*
 * loss.h - what a training makes small.
 */
#ifndef LOCKSTEP_LOSS_H
#define LOCKSTEP_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#include <lockstep/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Adds the loss of classification: the mean over the batch of -log softmax(logits)[label]; logits
 * are [classes]. Adds an input "label" (int32). A graph has one loss.
 */
LKS_API lks_status lks_graph_softmax_cross_entropy(lks_graph *graph, lks_value logits);

#ifdef __cplusplus
}
#endif
#endif
