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

/*
 * Each adds y = f(x), element by element, any shape, with gradients and gradients of gradients.
 * Exact, or off by a few units in the last place, the same on every device: cl/contract/unary.h.
 * LKS_E_ARGUMENT if x is no value of the graph.
 */
/* |x|; its gradient at 0 is 0. */
LKS_API lks_status lks_graph_abs(lks_graph *graph, lks_value x, lks_value *y);
/* x rounded up; its gradient is 0, as those of floor, round and sign. */
LKS_API lks_status lks_graph_ceil(lks_graph *graph, lks_value x, lks_value *y);
/* cos x, NaN beyond |x| = 2^15. */
LKS_API lks_status lks_graph_cos(lks_graph *graph, lks_value x, lks_value *y);
/* the error function. */
LKS_API lks_status lks_graph_erf(lks_graph *graph, lks_value x, lks_value *y);
/* e^x. */
LKS_API lks_status lks_graph_exp(lks_graph *graph, lks_value x, lks_value *y);
/* x rounded down. */
LKS_API lks_status lks_graph_floor(lks_graph *graph, lks_value x, lks_value *y);
/* x Phi(x), Phi the normal distribution's function. */
LKS_API lks_status lks_graph_gelu(lks_graph *graph, lks_value x, lks_value *y);
/* x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2. */
LKS_API lks_status lks_graph_gelu_tanh(lks_graph *graph, lks_value x, lks_value *y);
/* x * (x / 6 + 1/2, limited to [0, 1]). */
LKS_API lks_status lks_graph_hard_swish(lks_graph *graph, lks_value x, lks_value *y);
/* the natural logarithm, NaN below 0. */
LKS_API lks_status lks_graph_log(lks_graph *graph, lks_value x, lks_value *y);
/* x tanh(log(1 + e^x)). */
LKS_API lks_status lks_graph_mish(lks_graph *graph, lks_value x, lks_value *y);
/* -x. */
LKS_API lks_status lks_graph_neg(lks_graph *graph, lks_value x, lks_value *y);
/* 1 / x. */
LKS_API lks_status lks_graph_reciprocal(lks_graph *graph, lks_value x, lks_value *y);
/* x limited to [0, 6]; its gradient at 0 is 1 and at 6 too. */
LKS_API lks_status lks_graph_relu6(lks_graph *graph, lks_value x, lks_value *y);
/* x rounded to the nearest integer, ties to even. */
LKS_API lks_status lks_graph_round(lks_graph *graph, lks_value x, lks_value *y);
/* 1.0507009873554805 elu(x) with alpha 1.6732632423543772. */
LKS_API lks_status lks_graph_selu(lks_graph *graph, lks_value x, lks_value *y);
/* 1 / (1 + e^-x). */
LKS_API lks_status lks_graph_sigmoid(lks_graph *graph, lks_value x, lks_value *y);
/* 1, 0 or -1. */
LKS_API lks_status lks_graph_sign(lks_graph *graph, lks_value x, lks_value *y);
/* x sigmoid(x), also called swish. */
LKS_API lks_status lks_graph_silu(lks_graph *graph, lks_value x, lks_value *y);
/* sin x, NaN beyond |x| = 2^15. */
LKS_API lks_status lks_graph_sin(lks_graph *graph, lks_value x, lks_value *y);
/* log(1 + e^x). */
LKS_API lks_status lks_graph_softplus(lks_graph *graph, lks_value x, lks_value *y);
/* x / (1 + |x|). */
LKS_API lks_status lks_graph_softsign(lks_graph *graph, lks_value x, lks_value *y);
/* the square root, NaN below 0. */
LKS_API lks_status lks_graph_sqrt(lks_graph *graph, lks_value x, lks_value *y);
/* x x. */
LKS_API lks_status lks_graph_square(lks_graph *graph, lks_value x, lks_value *y);
/* tanh x. */
LKS_API lks_status lks_graph_tanh(lks_graph *graph, lks_value x, lks_value *y);

/* The same with numbers, which are rounded to float and must be finite, unless said otherwise. */

/* x > 0 ? x : slope * x; the gradient at 0 is `slope`. */
LKS_API lks_status lks_graph_leaky_relu(lks_graph *graph, lks_value x, double slope, lks_value *y);
/* x > 0 ? x : alpha (e^x - 1), alpha 0 or more. */
LKS_API lks_status lks_graph_elu(lks_graph *graph, lks_value x, double alpha, lks_value *y);
/* x > 0 ? x : alpha (e^(x / alpha) - 1), alpha above 0. */
LKS_API lks_status lks_graph_celu(lks_graph *graph, lks_value x, double alpha, lks_value *y);
/* x > threshold ? x : 0; the gradient at the threshold is 0. */
LKS_API lks_status lks_graph_thresholded_relu(lks_graph *graph, lks_value x, double threshold,
                                              lks_value *y);
/* x limited to [low, high], either of which may be infinite; the gradient at a limit is 1. */
LKS_API lks_status lks_graph_clamp(lks_graph *graph, lks_value x, double low, double high,
                                   lks_value *y);
/* alpha x + beta limited to [0, 1]; the gradient at a limit is 0. */
LKS_API lks_status lks_graph_hard_sigmoid(lks_graph *graph, lks_value x, double alpha, double beta,
                                          lks_value *y);

#ifdef __cplusplus
}
#endif
#endif
