/*
 * kinds_pool.c - pooling layers of a model file.
 */
#include "model/kind.h"

static lks_status build_pool(const struct lksi_layer_in *l, bool mean, lks_value *y)
{
    struct lksi_window w;
    bool ceil = false, count_pad = false;
    lks_status st;
    LKSI_TRY(lksi_window_read(l, true, &w));
    LKSI_TRY(lksi_map_bool(l->map, "ceil", "ceil: true", &ceil));
    if (mean)
        LKSI_TRY(lksi_map_bool(l->map, "count_pad", "count_pad: true", &count_pad));
    LKSI_TRY((mean ? lks_graph_avgpool : lks_graph_maxpool)(
        l->graph, l->x[0],
        lks_pool_params(LKSI_WINDOW_FIELDS(w), .ceil = ceil, .count_pad = count_pad), y));
    lksi_window_canon(l->canon, &w);
    if (w.dilation[0] != 1 || w.dilation[1] != 1)
        lksi_canon_pair(l->canon, "dilation", w.dilation);
    lksi_str_add(l->canon, "%s%s", ceil ? " ceil=1" : "", count_pad ? " count_pad=1" : "");
fail:
    return st;
}

static lks_status build_maxpool(const struct lksi_layer_in *l, lks_value *y)
{
    return build_pool(l, false, y);
}

static lks_status build_avgpool(const struct lksi_layer_in *l, lks_value *y)
{
    return build_pool(l, true, y);
}

static lks_status build_global_maxpool(const struct lksi_layer_in *l, lks_value *y)
{
    return lks_graph_global_maxpool(l->graph, l->x[0], y);
}

static lks_status build_global_avgpool(const struct lksi_layer_in *l, lks_value *y)
{
    return lks_graph_global_avgpool(l->graph, l->x[0], y);
}

const struct lksi_kind lksi_kinds_pool[] = {
    {.word = "maxpool",
     .prefix = "maxpool",
     .example = "maxpool: {kernel: 2}",
     .min_in = 1,
     .max_in = 1,
     .keys = {LKSI_WINDOW_KEYS, "ceil"},
     .build = build_maxpool},
    {.word = "avgpool",
     .prefix = "avgpool",
     .example = "avgpool: {kernel: 2}",
     .min_in = 1,
     .max_in = 1,
     .keys = {LKSI_WINDOW_KEYS, "ceil", "count_pad"},
     .build = build_avgpool},
    {.word = "global_maxpool",
     .prefix = "global_maxpool",
     .example = "global_maxpool",
     .bare = true,
     .min_in = 1,
     .max_in = 1,
     .build = build_global_maxpool},
    {.word = "global_avgpool",
     .prefix = "global_avgpool",
     .example = "global_avgpool",
     .bare = true,
     .min_in = 1,
     .max_in = 1,
     .build = build_global_avgpool},
    {0},
};
