/*
 * loss.h - what a training makes small.
 *
 * A loss function adds operators and gives a value of one number, the mean over the batch;
 * lks_graph_add_loss makes it a term of one of the graph's losses:
 *
 *     lks_graph_loss_to(g, LKS_LOSS_MSE, decoded, image, 0, &v);
 *     lks_graph_add_loss(g, "loss", v, 1.0);
 *
 * The first loss is the one that is shown, and that a trainer lowers unless its optimisers name
 * others (struct lks_optimizer). All functions report LKS_E_ARGUMENT and LKS_E_MEMORY.
 */
#ifndef LOCKSTEP_LOSS_H
#define LOCKSTEP_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lockstep/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The usual loss of classification, as the graph's loss "loss": the mean over the batch of
 * -log softmax(logits)[label]; logits are [classes]. Adds an input "label" (int32). Refused if the
 * graph has a loss already.
 */
LKS_API lks_status lks_graph_softmax_cross_entropy(lks_graph *graph, lks_value logits);

struct lks_softmax_loss_params {
    double smoothing;     /* of the labels, 0 to below 1: so much is spread over all classes */
    const float *weights; /* of each class, or NULL; not copied. For at most 96 classes */
    int32_t n_weights;
    bool ignores;         /* positions with the label `ignored` do not count */
    int32_t ignored;
};
#ifndef __cplusplus
#define lks_softmax_loss_params(...) (&(struct lks_softmax_loss_params){__VA_ARGS__})
#endif
/* All zero. Thread-safe. */
LKS_API struct lks_softmax_loss_params lks_softmax_loss_params_default(void);
/*
 * The same with more to choose: logits are [classes], or [positions][classes], or
 * [height][width][classes], with a label a position: the input "label", which several of these share.
 * The mean over all positions of
 *
 *     (1 - smoothing) w[label] nll[label] + smoothing / classes * sum_c w[c] nll[c]
 *
 * divided by the mean of w[label], with nll = -log softmax(logits); an ignored position has the
 * weight 0 and is never a hit. *loss is a term for lks_graph_add_loss. `params` may be NULL.
 */
LKS_API lks_status lks_graph_softmax_loss(lks_graph *graph, lks_value logits,
                                          const struct lks_softmax_loss_params *params,
                                          lks_value *loss);

/* How far an element x is from its target t; d = x - t. */
typedef enum lks_loss_kind {
    LKS_LOSS_MSE,       /* d^2 */
    LKS_LOSS_L1,        /* |d| */
    LKS_LOSS_HUBER,     /* |d| < beta ? d^2 / 2 : beta (|d| - beta / 2) */
    LKS_LOSS_SMOOTH_L1, /* |d| < beta ? d^2 / (2 beta) : |d| - beta / 2 */
    LKS_LOSS_BCE        /* binary cross entropy, x a logit: log(1 + exp(x)) - x t */
} lks_loss_kind;

/* *loss is the mean over all elements of x and the batch, against a value of the same shape. `beta`
 * (of huber and smooth L1) 0 means 1. Gradients flow into both. */
LKS_API lks_status lks_graph_loss_to(lks_graph *graph, lks_loss_kind kind, lks_value x,
                                     lks_value target, double beta, lks_value *loss);
/* The same against one number for every element. */
LKS_API lks_status lks_graph_loss_to_number(lks_graph *graph, lks_loss_kind kind, lks_value x,
                                            double target, double beta, lks_value *loss);
/* *loss is the mean of x itself over elements and batch. */
LKS_API lks_status lks_graph_loss_mean(lks_graph *graph, lks_value x, lks_value *loss);

/*
 * Adds weight * value to the loss `name`, which is begun if there is none; up to 5 losses of up to 6
 * terms. `value` comes from a loss function. Names are letters, digits and `_`.
 */
LKS_API lks_status lks_graph_add_loss(lks_graph *graph, const char *name, lks_value value,
                                      double weight);

/* Losses of the graph; 0 for NULL. */
LKS_API size_t lks_graph_loss_count(const lks_graph *graph);
/* The name of loss `index`, valid until the graph is destroyed; NULL past the last. */
LKS_API const char *lks_graph_loss_name(const lks_graph *graph, size_t index);

/*
 * *out is [dim...] of new random numbers in each step, uniform in [0, 1) or normal. They depend on
 * the trainer's seed, `name` and the step alone; in an evaluation on the sample's place in the data,
 * not on the step. The graph must have an input, which gives the size of the batch.
 */
LKS_API lks_status lks_graph_random(lks_graph *graph, const char *name, bool normal, int rank,
                                    const int64_t *dims, lks_value *out);

#ifdef __cplusplus
}
#endif
#endif
