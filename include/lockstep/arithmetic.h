/*
 * arithmetic.h - operators on several values.
 */
#ifndef LOCKSTEP_ARITHMETIC_H
#define LOCKSTEP_ARITHMETIC_H

#include <stdint.h>

#include <lockstep/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Each adds y = f(a, b), element by element. Samples broadcast as in NumPy: dimensions are aligned
 * at the last one (channels), and one that is 1 or missing repeats, so that [C] goes with [H,W,C].
 * The gradient of a repeated operand is summed over the axes along which it was repeated. The
 * quotient is correctly rounded; where operands of maximum and minimum are equal, a is the result
 * and takes the gradient; comparisons give 1 or 0 and have gradient 0. pow is a to the power b, with
 * the special values of C: NaN where a < 0 and b is no integer, 1 where b is 0. Its gradient for a is
 * b a^(b-1), and 0 where b is 0; for b it is a^b log a, which is NaN where a < 0, 0 where a is 0 and
 * b > 0, and infinite where both are 0. LKS_E_ARGUMENT if shapes do not fit.
 */
LKS_API lks_status lks_graph_add(lks_graph *graph, lks_value a, lks_value b, lks_value *y);
LKS_API lks_status lks_graph_sub(lks_graph *graph, lks_value a, lks_value b, lks_value *y);
LKS_API lks_status lks_graph_mul(lks_graph *graph, lks_value a, lks_value b, lks_value *y);
LKS_API lks_status lks_graph_div(lks_graph *graph, lks_value a, lks_value b, lks_value *y);
LKS_API lks_status lks_graph_maximum(lks_graph *graph, lks_value a, lks_value b, lks_value *y);
LKS_API lks_status lks_graph_minimum(lks_graph *graph, lks_value a, lks_value b, lks_value *y);
LKS_API lks_status lks_graph_equal(lks_graph *graph, lks_value a, lks_value b, lks_value *y);
LKS_API lks_status lks_graph_greater(lks_graph *graph, lks_value a, lks_value b, lks_value *y);
LKS_API lks_status lks_graph_less(lks_graph *graph, lks_value a, lks_value b, lks_value *y);
LKS_API lks_status lks_graph_pow(lks_graph *graph, lks_value a, lks_value b, lks_value *y);

/* y = x + number, x * number, x / number, x to the power number, element by element, any shape; the
 * number is rounded to float. LKS_E_ARGUMENT if it is not finite, or a divisor is 0. */
LKS_API lks_status lks_graph_add_number(lks_graph *graph, lks_value x, double number, lks_value *y);
LKS_API lks_status lks_graph_mul_number(lks_graph *graph, lks_value x, double number, lks_value *y);
LKS_API lks_status lks_graph_div_number(lks_graph *graph, lks_value x, double number, lks_value *y);
LKS_API lks_status lks_graph_pow_number(lks_graph *graph, lks_value x, double number, lks_value *y);

/* Layers with one learned number a channel (last dimension). `params` may be NULL. */
struct lks_channel_params {
    const char *name;  /* NULL: scale1, bias1, prelu1, ... */
    const char *share; /* NULL, or an earlier layer whose parameter this one takes */
};
#ifndef __cplusplus
#define lks_channel_params(...) (&(struct lks_channel_params){__VA_ARGS__})
#endif
/* All NULL. Thread-safe. */
LKS_API struct lks_channel_params lks_channel_params_default(void);
/* y = x * NAME.weight, which starts at 1. */
LKS_API lks_status lks_graph_scale(lks_graph *graph, lks_value x,
                                   const struct lks_channel_params *params, lks_value *y);
/* y = x + NAME.bias, which starts at 0. */
LKS_API lks_status lks_graph_bias(lks_graph *graph, lks_value x,
                                  const struct lks_channel_params *params, lks_value *y);
/* y = x > 0 ? x : NAME.weight * x; the weight starts at 0.25. */
LKS_API lks_status lks_graph_prelu(lks_graph *graph, lks_value x,
                                   const struct lks_channel_params *params, lks_value *y);

/* Dropout: in training y = kept ? x / (1 - p) : 0, kept with probability 1 - p, drawn anew for each
 * element and step from the seed and the layer's name; in an evaluation y = x. */
struct lks_dropout_params {
    const char *name; /* NULL: dropout1, ... */
    double p;         /* 0 to below 1 */
};
#ifndef __cplusplus
#define lks_dropout_params(...) (&(struct lks_dropout_params){__VA_ARGS__})
#endif
/* p 0.5. Thread-safe. */
LKS_API struct lks_dropout_params lks_dropout_params_default(void);
/* `params` may be NULL. */
LKS_API lks_status lks_graph_dropout(lks_graph *graph, lks_value x,
                                     const struct lks_dropout_params *params, lks_value *y);

#ifdef __cplusplus
}
#endif
#endif
