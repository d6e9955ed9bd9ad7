/*
 * kinds_embedding.c - layers of a model file for tokens: embedding, positions.
 */
#include "model/kind.h"

static lks_status build_embedding(const struct lksi_layer_in *l, lks_value *y)
{
    int64_t vocabulary, out;
    lks_status st;
    LKSI_TRY(lksi_need_int(l->map, "vocabulary", 1, LKSI_MAX_CHANNELS, "vocabulary: 74",
                           &vocabulary));
    LKSI_TRY(lksi_need_int(l->map, "out", 1, LKSI_MAX_CHANNELS, "out: 64", &out));
    LKSI_TRY(lks_graph_embedding(l->graph, l->x[0],
                                 lks_embedding_params(.name = l->name, .share = l->share,
                                                      .vocabulary = (int32_t)vocabulary,
                                                      .out = (int32_t)out),
                                 y));
    lksi_str_add(l->canon, " name=%s vocabulary=%d out=%d", l->name, (int)vocabulary, (int)out);
fail:
    return st;
}

static lks_status build_positions(const struct lksi_layer_in *l, lks_value *y)
{
    lksi_str_add(l->canon, " name=%s", l->name);
    return lks_graph_positions(l->graph, l->x[0],
                               lks_positions_params(.name = l->name, .share = l->share), y);
}

const struct lksi_kind lksi_kinds_embedding[] = {
    {.word = "embedding",
     .prefix = "embedding",
     .example = "embedding: {vocabulary: 74, out: 64}",
     .shares = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"vocabulary", "out"},
     .build = build_embedding},
    {.word = "positions",
     .prefix = "positions",
     .example = "positions",
     .bare = true,
     .shares = true,
     .min_in = 1,
     .max_in = 1,
     .build = build_positions},
    {0},
};
