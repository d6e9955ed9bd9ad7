/*
 * kinds_shape.c - layers of a model file that move elements.
 */
#include "model/kind.h"

static lks_status build_flatten(const struct lksi_layer_in *l, lks_value *y)
{
    return lks_graph_flatten(l->graph, l->x[0], y);
}

static lks_status build_stop_gradient(const struct lksi_layer_in *l, lks_value *y)
{
    return lks_graph_stop_gradient(l->graph, l->x[0], y);
}

const struct lksi_kind lksi_kinds_shape[] = {
    {.word = "flatten",
     .prefix = "flatten",
     .example = "flatten",
     .bare = true,
     .min_in = 1,
     .max_in = 1,
     .build = build_flatten},
    {.word = "stop_gradient",
     .prefix = "stop_gradient",
     .example = "stop_gradient",
     .bare = true,
     .min_in = 1,
     .max_in = 1,
     .build = build_stop_gradient},
    {0},
};
