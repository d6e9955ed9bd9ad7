/*
 * kinds_reduce.c - layers of a model file that reduce axes, softmax and matrix products.
 */
#include "model/kind.h"

typedef lks_status (*reduce_fn)(lks_graph *g, lks_value x, int n, const int *axes, bool keep,
                                lks_value *y);

static lks_status build_axes(const struct lksi_layer_in *l, reduce_fn fn, const char *example,
                             lks_value *y)
{
    const struct lksi_node *list = l->map != NULL ? lksi_node_get(l->map, "axes") : NULL;
    int axes[8] = {0}, n = 0;
    bool keep = false;
    lks_status st = LKS_OK;
    if (list != NULL)
        LKSI_TRY(lksi_node_is(list, LKSI_NODE_SEQUENCE, example));
    if (list != NULL && (list->count < 1 || list->count > LKSI_COUNT(axes)))
        return lksi_node_expected(list, "1 to 8 axes", example);
    for (size_t i = 0; list != NULL && i < list->count; i++) {
        int64_t axis;
        LKSI_TRY(lksi_node_int(list->items[i], -8, 7, example, &axis));
        axes[n++] = (int)axis;
    }
    if (l->map != NULL)
        LKSI_TRY(lksi_map_bool(l->map, "keep", "keep: true", &keep));
    LKSI_TRY(fn(l->graph, l->x[0], n, axes, keep, y));
    lksi_str_add(l->canon, " axes=");
    for (int i = 0; i < n; i++)
        lksi_str_add(l->canon, "%d,", axes[i]);
    lksi_str_add(l->canon, " keep=%d", keep);
fail:
    return st;
}

static lks_status build_sum(const struct lksi_layer_in *l, lks_value *y)
{
    return build_axes(l, lks_graph_sum, "sum: {axes: [0, 1]}", y);
}

static lks_status build_mean(const struct lksi_layer_in *l, lks_value *y)
{
    return build_axes(l, lks_graph_mean, "mean: {axes: [0, 1]}", y);
}

static lks_status build_max(const struct lksi_layer_in *l, lks_value *y)
{
    return build_axes(l, lks_graph_max, "max: {axes: [0, 1]}", y);
}

static lks_status build_min(const struct lksi_layer_in *l, lks_value *y)
{
    return build_axes(l, lks_graph_min, "min: {axes: [0, 1]}", y);
}

static lks_status build_softmax(const struct lksi_layer_in *l, lks_value *y)
{
    bool causal = false;
    lks_status st = LKS_OK;
    if (l->map != NULL)
        LKSI_TRY(lksi_map_bool(l->map, "causal", "causal: true", &causal));
    LKSI_TRY(lks_graph_softmax(l->graph, l->x[0], causal, y));
    lksi_str_add(l->canon, " causal=%d", causal);
fail:
    return st;
}

static lks_status build_log_softmax(const struct lksi_layer_in *l, lks_value *y)
{
    return lks_graph_log_softmax(l->graph, l->x[0], y);
}

static lks_status build_matmul(const struct lksi_layer_in *l, lks_value *y)
{
    bool a = false, b = false;
    lks_status st = LKS_OK;
    LKSI_TRY(lksi_map_bool(l->map, "transpose_a", "transpose_a: true", &a));
    LKSI_TRY(lksi_map_bool(l->map, "transpose_b", "transpose_b: true", &b));
    LKSI_TRY(lks_graph_matmul(l->graph, l->x[0], l->x[1], a, b, y));
    lksi_str_add(l->canon, " transpose_a=%d transpose_b=%d", a, b);
fail:
    return st;
}

const struct lksi_kind lksi_kinds_reduce[] = {
    {.word = "sum",
     .prefix = "sum",
     .example = "sum: {axes: [0, 1]}",
     .bare = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"axes", "keep"},
     .build = build_sum},
    {.word = "mean",
     .prefix = "mean",
     .example = "mean: {axes: [0, 1]}",
     .bare = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"axes", "keep"},
     .build = build_mean},
    {.word = "max",
     .prefix = "max",
     .example = "max: {axes: [0, 1]}",
     .bare = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"axes", "keep"},
     .build = build_max},
    {.word = "min",
     .prefix = "min",
     .example = "min: {axes: [0, 1]}",
     .bare = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"axes", "keep"},
     .build = build_min},
    {.word = "softmax",
     .prefix = "softmax",
     .example = "softmax",
     .bare = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"causal"},
     .build = build_softmax},
    {.word = "log_softmax",
     .prefix = "log_softmax",
     .example = "log_softmax",
     .bare = true,
     .min_in = 1,
     .max_in = 1,
     .build = build_log_softmax},
    {.word = "matmul",
     .prefix = "matmul",
     .example = "matmul: {from: [a, b], transpose_b: true}",
     .min_in = 2,
     .max_in = 2,
     .keys = {"transpose_a", "transpose_b"},
     .build = build_matmul},
    {0},
};
