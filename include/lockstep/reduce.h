/*
 * reduce.h - sums and extremes over axes, softmax and matrix products. Axes are those of a sample from 0, without
 * the batch; negative ones count from the end.
 */
#ifndef LOCKSTEP_REDUCE_H
#define LOCKSTEP_REDUCE_H

#include <stdbool.h>
#include <stdint.h>

#include <lockstep/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y = sum or mean of x over `n` axes (order does not matter; n 0: all of a sample). With `keep` the
 * axes stay, with dimension 1. LKS_E_ARGUMENT for an axis that is not there or stands twice. */
LKS_API lks_status lks_graph_sum(lks_graph *graph, lks_value x, int n, const int *axes, bool keep,
                                 lks_value *y);
LKS_API lks_status lks_graph_mean(lks_graph *graph, lks_value x, int n, const int *axes, bool keep,
                                  lks_value *y);

/* y = the greatest or the least of x over the axes, as above. The gradient goes to the first of equal
 * ones; a NaN is greater and less than any number. */
LKS_API lks_status lks_graph_max(lks_graph *graph, lks_value x, int n, const int *axes, bool keep,
                                 lks_value *y);
LKS_API lks_status lks_graph_min(lks_graph *graph, lks_value x, int n, const int *axes, bool keep,
                                 lks_value *y);

/* y = exp(x) / sum(exp(x)) over the last axis. `causal`, for scores [.., rows, columns]: row i sees
 * columns 0 to i alone, and the others are +0. */
LKS_API lks_status lks_graph_softmax(lks_graph *graph, lks_value x, bool causal, lks_value *y);
/* y = x - log(sum(exp(x))) over the last axis. */
LKS_API lks_status lks_graph_log_softmax(lks_graph *graph, lks_value x, lks_value *y);

/* y = A B for each sample and leading axis, A [.., M, K], B [.., K, N]; a value that is stored the
 * other way round says so. LKS_E_ARGUMENT where ranks, leading axes or K differ. */
LKS_API lks_status lks_graph_matmul(lks_graph *graph, lks_value a, lks_value b, bool transpose_a,
                                    bool transpose_b, lks_value *y);

#ifdef __cplusplus
}
#endif
#endif
