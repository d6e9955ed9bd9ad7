/*
 * kinds_activation.c - layers of a model file that treat each element alone.
 */
#include "model/kind.h"

static lks_status build_relu(const struct lksi_layer_in *l, lks_value *y)
{
    return lks_graph_relu(l->graph, l->x[0], y);
}

const struct lksi_kind lksi_kinds_activation[] = {
    {.word = "relu",
     .prefix = "relu",
     .example = "relu",
     .bare = true,
     .min_in = 1,
     .max_in = 1,
     .build = build_relu},
    {0},
};
