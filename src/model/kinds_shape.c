/*
 * kinds_shape.c - layers of a model file that move elements.
 */
#include <string.h>

#include "model/kind.h"

static lks_status build_flatten(const struct lksi_layer_in *l, lks_value *y)
{
    return lks_graph_flatten(l->graph, l->x[0], y);
}

static lks_status build_stop_gradient(const struct lksi_layer_in *l, lks_value *y)
{
    return lks_graph_stop_gradient(l->graph, l->x[0], y);
}

static lks_status build_gradient(const struct lksi_layer_in *l, lks_value *y)
{
    return lks_graph_gradient(l->graph, l->x[0], l->x[1], y);
}

/* ---- lists of numbers, one an axis ---- */

/* The list under `key`, at most LKS_MAX_AXES numbers; *n is 0 if it is missing. */
static lks_status read_list(const struct lksi_node *map, const char *key, int64_t low,
                            const char *example, int64_t *out, int *n)
{
    const struct lksi_node *node = map != NULL ? lksi_node_get(map, key) : NULL;
    lks_status st = LKS_OK;
    *n = 0;
    if (node == NULL)
        return LKS_OK;
    LKSI_TRY(lksi_node_is(node, LKSI_NODE_SEQUENCE, example));
    if (node->count < 1 || node->count > LKS_MAX_AXES)
        return lksi_node_fail(node, "has %zu numbers, 1 to %d expected, one for each axis without "
                                    "the batch", node->count, LKS_MAX_AXES);
    for (size_t i = 0; i < node->count; i++)
        LKSI_TRY(lksi_node_int(node->items[i], low, INT32_MAX, example, &out[i]));
    *n = (int)node->count;
fail:
    return st;
}

static void canon_list(struct lksi_str *canon, const char *key, const int64_t *v, int n)
{
    lksi_str_add(canon, " %s=", key);
    for (int i = 0; i < n; i++)
        lksi_str_add(canon, "%s%lld", i > 0 ? "," : "", (long long)v[i]);
}

/* The key `axis` as an axis of x from 0; `rank` is that of x, or one more where one is made. */
static lks_status read_axis(const struct lksi_layer_in *l, int rank, int64_t *axis)
{
    lks_status st = l->map == NULL ? LKS_OK
                                   : lksi_map_int(l->map, "axis", -rank, rank - 1, "axis: -1", axis);
    *axis += *axis < 0 ? rank : 0;
    return st;
}

static lks_status rank_of(const struct lksi_layer_in *l, int *rank)
{
    int64_t dims[LKS_MAX_AXES];
    return lks_graph_shape(l->graph, l->x[0], rank, dims);
}

/* Numbers for every axis: `key: [1, 2]`, or with `axis` a single one, `{axis: 0, key: 1}`. */
static lks_status read_axes(const struct lksi_layer_in *l, const char *key, int64_t low,
                            const char *example, int64_t *out)
{
    const struct lksi_node *node = lksi_node_get(l->map, key);
    int64_t axis = 0;
    int n, rank;
    lks_status st;
    memset(out, 0, LKS_MAX_AXES * sizeof *out);
    LKSI_TRY(rank_of(l, &rank));
    if (lksi_node_get(l->map, "axis") != NULL) {
        LKSI_TRY(read_axis(l, rank, &axis));
        if (node != NULL)
            LKSI_TRY(lksi_node_int(node, low, INT32_MAX, example, &out[axis]));
    } else {
        LKSI_TRY(read_list(l->map, key, low, example, out, &n));
        if (n > rank)
            return lksi_node_fail(node, "has %d numbers; the layer's input has %d axes without the "
                                        "batch", n, rank);
    }
    canon_list(l->canon, key, out, rank);
fail:
    return st;
}

/* ---- layers ---- */

static lks_status build_constant(const struct lksi_layer_in *l, lks_value *y)
{
    const char *example = "constant: {shape: [32, 32, 16]}";
    const struct lksi_node *node;
    int64_t dims[LKS_MAX_AXES];
    double value = 0;
    int n;
    lks_status st;
    LKSI_TRY(lksi_node_need(l->map, "shape", example, &node));
    LKSI_TRY(read_list(l->map, "shape", 1, example, dims, &n));
    LKSI_TRY(lksi_map_float(l->map, "value", -3e38, 3e38, "value: 0.5", &value));
    LKSI_TRY(lks_graph_constant(l->graph, (float)value, n, dims, y));
    canon_list(l->canon, "shape", dims, n);
    lksi_canon_float(l->canon, "value", value);
fail:
    return st;
}

static lks_status build_reshape(const struct lksi_layer_in *l, lks_value *y)
{
    const char *example = "reshape: {shape: [7, 7, -1]}";
    const struct lksi_node *node;
    int64_t dims[LKS_MAX_AXES];
    int n;
    lks_status st;
    LKSI_TRY(lksi_node_need(l->map, "shape", example, &node));
    LKSI_TRY(read_list(l->map, "shape", -1, example, dims, &n));
    LKSI_TRY(lks_graph_reshape(l->graph, l->x[0], n, dims, y));
    canon_list(l->canon, "shape", dims, n);
fail:
    return st;
}

static lks_status build_transpose(const struct lksi_layer_in *l, lks_value *y)
{
    const char *example = "transpose: {order: [2, 0, 1]}";
    const struct lksi_node *node;
    int64_t axes[LKS_MAX_AXES];
    int order[LKS_MAX_AXES], n, rank;
    lks_status st;
    LKSI_TRY(lksi_node_need(l->map, "order", example, &node));
    LKSI_TRY(read_list(l->map, "order", 0, example, axes, &n));
    LKSI_TRY(rank_of(l, &rank));
    if (n != rank)
        return lksi_node_fail(node, "has %d numbers; the layer's input has %d axes without the "
                                    "batch", n, rank);
    for (int k = 0; k < n; k++)
        order[k] = (int)axes[k];
    LKSI_TRY(lks_graph_transpose(l->graph, l->x[0], order, y));
    canon_list(l->canon, "order", axes, n);
fail:
    return st;
}

static lks_status build_concat(const struct lksi_layer_in *l, lks_value *y)
{
    int64_t axis = -1;
    int rank;
    lks_status st;
    LKSI_TRY(rank_of(l, &rank));
    LKSI_TRY(read_axis(l, rank, &axis));
    LKSI_TRY(lks_graph_concat(l->graph, l->n_x, l->x, (int)axis, y));
    lksi_str_add(l->canon, " axis=%d", (int)axis);
fail:
    return st;
}

static lks_status build_stack(const struct lksi_layer_in *l, lks_value *y)
{
    int64_t axis = 0;
    int rank;
    lks_status st;
    LKSI_TRY(rank_of(l, &rank));
    LKSI_TRY(read_axis(l, rank + 1, &axis));
    LKSI_TRY(lks_graph_stack(l->graph, l->n_x, l->x, (int)axis, y));
    lksi_str_add(l->canon, " axis=%d", (int)axis);
fail:
    return st;
}

static lks_status build_slice(const struct lksi_layer_in *l, lks_value *y)
{
    const char *example = "slice: {axis: 0, begin: 2, end: 5}";
    struct lks_slice_params p;
    lks_status st;
    LKSI_TRY(read_axes(l, "begin", -INT32_MAX, example, p.begin));
    LKSI_TRY(read_axes(l, "end", -INT32_MAX, example, p.end));
    LKSI_TRY(read_axes(l, "step", -INT32_MAX, example, p.step));
    LKSI_TRY(lks_graph_slice(l->graph, l->x[0], &p, y));
fail:
    return st;
}

static lks_status build_select(const struct lksi_layer_in *l, lks_value *y)
{
    int64_t axis = 0, index;
    int rank;
    lks_status st;
    LKSI_TRY(rank_of(l, &rank));
    LKSI_TRY(read_axis(l, rank, &axis));
    LKSI_TRY(lksi_need_int(l->map, "index", -INT32_MAX, INT32_MAX, "select: {index: 0}", &index));
    LKSI_TRY(lks_graph_select(l->graph, l->x[0], (int)axis, index, y));
    lksi_str_add(l->canon, " axis=%d index=%d", (int)axis, (int)index);
fail:
    return st;
}

/* The word under `key`, or words[*at]. */
static lks_status read_word(const struct lksi_layer_in *l, const char *key,
                            const char *const *words, size_t count, size_t *at)
{
    const struct lksi_node *node = l->map != NULL ? lksi_node_get(l->map, key) : NULL;
    lks_status st = node != NULL ? lksi_node_choice(node, words, count, at) : LKS_OK;
    if (st == LKS_OK)
        lksi_str_add(l->canon, " %s=%s", key, words[*at]);
    return st;
}

static lks_status build_pad(const struct lksi_layer_in *l, lks_value *y)
{
    static const char *const modes[] = {"constant", "edge", "reflect"};
    const char *example = "pad: {before: [1, 1, 0], after: [1, 1, 0]}";
    struct lks_pad_params p;
    double value = 0;
    size_t mode = 0;
    lks_status st;
    LKSI_TRY(read_axes(l, "before", 0, example, p.before));
    LKSI_TRY(read_axes(l, "after", 0, example, p.after));
    LKSI_TRY(read_word(l, "mode", modes, LKSI_COUNT(modes), &mode));
    LKSI_TRY(lksi_map_float(l->map, "value", -3e38, 3e38, "value: 0.5", &value));
    p.mode = (lks_pad_mode)mode;
    p.value = (float)value;
    LKSI_TRY(lks_graph_pad(l->graph, l->x[0], &p, y));
    lksi_canon_float(l->canon, "value", value);
fail:
    return st;
}

/* `upsample` has a factor, `resize` sizes. */
static lks_status build_size(const struct lksi_layer_in *l, bool upsample, lks_value *y)
{
    static const char *const modes[] = {"nearest", "bilinear"};
    static const char *const places[] = {"usual", "corner", "half_pixel", "align_corners"};
    static const char *const rounds[] = {"down", "up", "half_down", "half_up"};
    int64_t factor = 0, height = 0, width = 0;
    size_t mode = 0, place = 0, round = 0;
    bool corners = false;
    lks_status st;
    if (upsample)
        LKSI_TRY(lksi_need_int(l->map, "factor", 1, LKSI_MAX_WINDOW, "factor: 2", &factor));
    LKSI_TRY(lksi_map_int(l->map, "height", 1, INT32_MAX, "height: 32", &height));
    LKSI_TRY(lksi_map_int(l->map, "width", 1, INT32_MAX, "width: 32", &width));
    if (!upsample && height == 0 && width == 0)
        return lksi_node_fail(l->map, "a size is missing; write e.g. `height: 32, width: 32`");
    lksi_str_add(l->canon, " factor=%d height=%d width=%d", (int)factor, (int)height, (int)width);
    LKSI_TRY(lksi_map_bool(l->map, "align_corners", "align_corners: true", &corners));
    place = corners ? LKS_PLACE_ALIGN_CORNERS : LKS_PLACE_USUAL;
    LKSI_TRY(read_word(l, "mode", modes, LKSI_COUNT(modes), &mode));
    LKSI_TRY(read_word(l, "place", places, LKSI_COUNT(places), &place));
    LKSI_TRY(read_word(l, "round", rounds, LKSI_COUNT(rounds), &round));
    LKSI_TRY(lks_graph_resize(l->graph, l->x[0],
                              lks_resize_params(.factor = (int32_t)factor,
                                                .height = (int32_t)height,
                                                .width = (int32_t)width,
                                                .mode = (lks_resize_mode)mode,
                                                .place = (lks_resize_place)place,
                                                .round = (lks_resize_round)round),
                              y));
fail:
    return st;
}

static lks_status build_upsample(const struct lksi_layer_in *l, lks_value *y)
{
    return build_size(l, true, y);
}

static lks_status build_resize(const struct lksi_layer_in *l, lks_value *y)
{
    return build_size(l, false, y);
}

static lks_status read_block(const struct lksi_layer_in *l, int64_t *block)
{
    lks_status st = lksi_need_int(l->map, "block", 1, INT16_MAX, "block: 2", block);
    if (st == LKS_OK)
        lksi_str_add(l->canon, " block=%d", (int)*block);
    return st;
}

static lks_status build_depth_to_space(const struct lksi_layer_in *l, lks_value *y)
{
    int64_t block;
    lks_status st = read_block(l, &block);
    return st == LKS_OK ? lks_graph_depth_to_space(l->graph, l->x[0], (int32_t)block, y) : st;
}

static lks_status build_space_to_depth(const struct lksi_layer_in *l, lks_value *y)
{
    int64_t block;
    lks_status st = read_block(l, &block);
    return st == LKS_OK ? lks_graph_space_to_depth(l->graph, l->x[0], (int32_t)block, y) : st;
}

/* A layer of one value. */
#define ONE(name, text, function, ...)                                                             \
    {                                                                                              \
        .word = name, .prefix = name, .example = text, .min_in = 1, .max_in = 1,                   \
        .keys = {__VA_ARGS__}, .build = function                                                   \
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
    {.word = "gradient",
     .prefix = "gradient",
     .example = "gradient: {of: score, by: image}",
     .min_in = 2,
     .max_in = 2,
     .inputs = {"of", "by"},
     .build = build_gradient},
    {.word = "constant",
     .prefix = "constant",
     .example = "constant: {shape: [32, 32, 16]}",
     .keys = {"shape", "value"},
     .build = build_constant},
    ONE("reshape", "reshape: {shape: [7, 7, -1]}", build_reshape, "shape"),
    ONE("transpose", "transpose: {order: [2, 0, 1]}", build_transpose, "order"),
    {.word = "concat",
     .prefix = "concat",
     .example = "concat: {from: [conv1, conv2], axis: -1}",
     .min_in = 2,
     .max_in = LKSI_MODEL_MAX_FROM,
     .keys = {"axis"},
     .build = build_concat},
    {.word = "stack",
     .prefix = "stack",
     .example = "stack: {from: [conv1, conv2], axis: 0}",
     .min_in = 2,
     .max_in = LKSI_MODEL_MAX_FROM,
     .keys = {"axis"},
     .build = build_stack},
    ONE("slice", "slice: {axis: 0, begin: 2, end: 5}", build_slice, "axis", "begin", "end", "step"),
    ONE("select", "select: {axis: 0, index: 3}", build_select, "axis", "index"),
    ONE("pad", "pad: {before: [1, 1, 0], after: [1, 1, 0]}", build_pad, "axis", "before", "after",
        "mode", "value"),
    ONE("upsample", "upsample: {factor: 2}", build_upsample, "factor", "mode", "align_corners"),
    ONE("resize", "resize: {height: 32, width: 32}", build_resize, "height", "width", "mode",
        "place", "round"),
    ONE("depth_to_space", "depth_to_space: {block: 2}", build_depth_to_space, "block"),
    ONE("space_to_depth", "space_to_depth: {block: 2}", build_space_to_depth, "block"),
    {0},
};
