/*
 * kinds_activation.c - layers of a model file that treat each element alone.
 */
#include <math.h>

#include "model/kind.h"

/* The number `key`, or `value` where it does not stand; it goes into the canonical text. */
static lks_status number(const struct lksi_layer_in *l, const char *key, double low, double high,
                         const char *example, double *value)
{
    lks_status st = LKS_OK;
    if (l->map != NULL)
        st = lksi_map_float(l->map, key, low, high, example, value);
    if (st == LKS_OK)
        lksi_canon_float(l->canon, key, *value);
    return st;
}

static lks_status build_leaky_relu(const struct lksi_layer_in *l, lks_value *y)
{
    double slope = 0.01;
    lks_status st = number(l, "slope", -FLT_MAX, FLT_MAX, "slope: 0.2", &slope);
    return st == LKS_OK ? lks_graph_leaky_relu(l->graph, l->x[0], slope, y) : st;
}

static lks_status build_elu(const struct lksi_layer_in *l, lks_value *y)
{
    double alpha = 1.0;
    lks_status st = number(l, "alpha", 0.0, FLT_MAX, "alpha: 1.0", &alpha);
    return st == LKS_OK ? lks_graph_elu(l->graph, l->x[0], alpha, y) : st;
}

static lks_status build_celu(const struct lksi_layer_in *l, lks_value *y)
{
    double alpha = 1.0;
    lks_status st = number(l, "alpha", LKSI_POSITIVE, FLT_MAX, "alpha: 1.0", &alpha);
    return st == LKS_OK ? lks_graph_celu(l->graph, l->x[0], alpha, y) : st;
}

static lks_status build_thresholded_relu(const struct lksi_layer_in *l, lks_value *y)
{
    double threshold = 1.0;
    lks_status st = number(l, "threshold", -FLT_MAX, FLT_MAX, "threshold: 1.0", &threshold);
    return st == LKS_OK ? lks_graph_thresholded_relu(l->graph, l->x[0], threshold, y) : st;
}

static lks_status build_clamp(const struct lksi_layer_in *l, lks_value *y)
{
    double low = -INFINITY, high = INFINITY;
    lks_status st = number(l, "low", -FLT_MAX, FLT_MAX, "low: 0.0", &low);
    if (st == LKS_OK)
        st = number(l, "high", -FLT_MAX, FLT_MAX, "high: 6.0", &high);
    return st == LKS_OK ? lks_graph_clamp(l->graph, l->x[0], low, high, y) : st;
}

static lks_status build_hard_sigmoid(const struct lksi_layer_in *l, lks_value *y)
{
    double alpha = 1.0 / 6.0, beta = 0.5;
    lks_status st = number(l, "alpha", -FLT_MAX, FLT_MAX, "alpha: 0.2", &alpha);
    if (st == LKS_OK)
        st = number(l, "beta", -FLT_MAX, FLT_MAX, "beta: 0.5", &beta);
    return st == LKS_OK ? lks_graph_hard_sigmoid(l->graph, l->x[0], alpha, beta, y) : st;
}

/* Words without keys. */
#define WORDS(W)                                                                                   \
    W(relu)                                                                                        \
    W(abs)                                                                                         \
    W(ceil)                                                                                        \
    W(cos)                                                                                         \
    W(erf)                                                                                         \
    W(exp)                                                                                         \
    W(floor)                                                                                       \
    W(gelu)                                                                                        \
    W(gelu_tanh)                                                                                   \
    W(hard_swish)                                                                                  \
    W(log)                                                                                         \
    W(mish)                                                                                        \
    W(neg)                                                                                         \
    W(reciprocal)                                                                                  \
    W(relu6)                                                                                       \
    W(round)                                                                                       \
    W(selu)                                                                                        \
    W(sigmoid)                                                                                     \
    W(sign)                                                                                        \
    W(silu)                                                                                        \
    W(sin)                                                                                         \
    W(softplus)                                                                                    \
    W(softsign)                                                                                    \
    W(sqrt)                                                                                        \
    W(square)                                                                                      \
    W(tanh)

#define BUILD(name)                                                                                \
    static lks_status build_##name(const struct lksi_layer_in *l, lks_value *y)                    \
    {                                                                                              \
        return lks_graph_##name(l->graph, l->x[0], y);                                             \
    }
WORDS(BUILD)

#define ENTRY(name)                                                                                \
    {.word = #name,                                                                                \
     .prefix = #name,                                                                              \
     .example = #name,                                                                             \
     .bare = true,                                                                                 \
     .min_in = 1,                                                                                  \
     .max_in = 1,                                                                                  \
     .build = build_##name},

const struct lksi_kind lksi_kinds_activation[] = {
    WORDS(ENTRY){.word = "leaky_relu",
                 .prefix = "leaky_relu",
                 .example = "leaky_relu: {slope: 0.2}",
                 .bare = true,
                 .min_in = 1,
                 .max_in = 1,
                 .keys = {"slope"},
                 .build = build_leaky_relu},
    {.word = "elu",
     .prefix = "elu",
     .example = "elu: {alpha: 1.0}",
     .bare = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"alpha"},
     .build = build_elu},
    {.word = "celu",
     .prefix = "celu",
     .example = "celu: {alpha: 1.0}",
     .bare = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"alpha"},
     .build = build_celu},
    {.word = "thresholded_relu",
     .prefix = "thresholded_relu",
     .example = "thresholded_relu: {threshold: 1.0}",
     .bare = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"threshold"},
     .build = build_thresholded_relu},
    {.word = "clamp",
     .prefix = "clamp",
     .example = "clamp: {low: 0.0, high: 6.0}",
     .min_in = 1,
     .max_in = 1,
     .keys = {"low", "high"},
     .build = build_clamp},
    {.word = "hard_sigmoid",
     .prefix = "hard_sigmoid",
     .example = "hard_sigmoid: {alpha: 0.2, beta: 0.5}",
     .bare = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"alpha", "beta"},
     .build = build_hard_sigmoid},
    {0},
};
