/*
 * kinds_conv.c - convolution and dense layers of a model file.
 */
#include "model/kind.h"

/* `algo: winograd`. */
static lks_status read_algo(const struct lksi_layer_in *l, enum lks_conv_algo *algo)
{
    static const char *const words[] = {"direct", "winograd"};
    const struct lksi_node *node = lksi_node_get(l->map, "algo");
    size_t at = 0;
    lks_status st = node != NULL ? lksi_node_choice(node, words, LKSI_COUNT(words), &at) : LKS_OK;
    *algo = at == 1 ? LKS_CONV_WINOGRAD : LKS_CONV_DIRECT;
    return st;
}

static lks_status build_conv(const struct lksi_layer_in *l, bool sequence, lks_value *y)
{
    int64_t out, groups = 1;
    struct lksi_window w;
    bool bias = true;
    enum lks_conv_algo algo = LKS_CONV_DIRECT;
    lks_status st;
    LKSI_TRY(lksi_need_int(l->map, "out", 1, LKSI_MAX_CHANNELS, "out: 32", &out));
    LKSI_TRY(lksi_window_read(l, false, &w));
    LKSI_TRY(lksi_map_int(l->map, "groups", 1, LKSI_MAX_CHANNELS, "groups: 1", &groups));
    LKSI_TRY(lksi_map_bool(l->map, "bias", "bias: false", &bias));
    if (!sequence)
        LKSI_TRY(read_algo(l, &algo));
    LKSI_TRY((sequence ? lks_graph_conv1d : lks_graph_conv2d)(
        l->graph, l->x[0],
        lks_conv2d_params(.name = l->name, .share = l->share, .out = (int32_t)out,
                          LKSI_WINDOW_FIELDS(w), .groups = (int32_t)groups, .no_bias = !bias,
                          .algo = algo),
        y));
    lksi_str_add(l->canon, " name=%s out=%d", l->name, (int)out);
    lksi_window_canon(l->canon, &w);
    lksi_canon_pair(l->canon, "dilation", w.dilation);
    lksi_str_add(l->canon, " groups=%d bias=%d%s", (int)groups, bias,
                 algo == LKS_CONV_WINOGRAD ? " algo=winograd" : "");
fail:
    return st;
}

static lks_status build_conv2d(const struct lksi_layer_in *l, lks_value *y)
{
    return build_conv(l, false, y);
}

static lks_status build_conv1d(const struct lksi_layer_in *l, lks_value *y)
{
    return build_conv(l, true, y);
}

static lks_status build_conv_transpose2d(const struct lksi_layer_in *l, lks_value *y)
{
    int64_t out, groups = 1, more[2] = {0, 0};
    struct lksi_window w;
    bool bias = true;
    lks_status st;
    LKSI_TRY(lksi_need_int(l->map, "out", 1, LKSI_MAX_CHANNELS, "out: 32", &out));
    LKSI_TRY(lksi_window_read(l, false, &w));
    LKSI_TRY(lksi_window_pair(l, "output_pad", "output_pad: 1", 0, more));
    LKSI_TRY(lksi_map_int(l->map, "groups", 1, LKSI_MAX_CHANNELS, "groups: 1", &groups));
    LKSI_TRY(lksi_map_bool(l->map, "bias", "bias: false", &bias));
    LKSI_TRY(lks_graph_conv_transpose2d(
        l->graph, l->x[0],
        lks_conv_transpose2d_params(.name = l->name, .share = l->share, .out = (int32_t)out,
                                    LKSI_WINDOW_FIELDS(w), .output_pad = (int32_t)more[0],
                                    .output_pad_w = (int32_t)more[1], .groups = (int32_t)groups,
                                    .no_bias = !bias),
        y));
    lksi_str_add(l->canon, " name=%s out=%d", l->name, (int)out);
    lksi_window_canon(l->canon, &w);
    lksi_canon_pair(l->canon, "dilation", w.dilation);
    lksi_canon_pair(l->canon, "output_pad", more);
    lksi_str_add(l->canon, " groups=%d bias=%d", (int)groups, bias);
fail:
    return st;
}

static lks_status build_features(const struct lksi_layer_in *l, bool last_axis, lks_value *y)
{
    int64_t out;
    bool bias = true;
    lks_status st;
    LKSI_TRY(lksi_need_int(l->map, "out", 1, LKSI_MAX_CHANNELS, "out: 10", &out));
    LKSI_TRY(lksi_map_bool(l->map, "bias", "bias: false", &bias));
    LKSI_TRY(lks_graph_dense(
        l->graph, l->x[0],
        lks_dense_params(.name = l->name, .share = l->share, .out = (int32_t)out, .no_bias = !bias,
                         .last_axis = last_axis),
        y));
    lksi_str_add(l->canon, " name=%s out=%d bias=%d", l->name, (int)out, bias);
fail:
    return st;
}

static lks_status build_dense(const struct lksi_layer_in *l, lks_value *y)
{
    return build_features(l, false, y);
}

static lks_status build_linear(const struct lksi_layer_in *l, lks_value *y)
{
    return build_features(l, true, y);
}

const struct lksi_kind lksi_kinds_conv[] = {
    {.word = "conv2d",
     .prefix = "conv",
     .example = "conv2d: {out: 32, kernel: 5, pad: 2}",
     .shares = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"out", LKSI_WINDOW_KEYS, "groups", "bias", "algo"},
     .build = build_conv2d},
    {.word = "conv1d",
     .prefix = "conv1d_",
     .example = "conv1d: {out: 32, kernel: 5, pad: 2}",
     .shares = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"out", LKSI_WINDOW_KEYS, "groups", "bias"},
     .build = build_conv1d},
    {.word = "conv_transpose2d",
     .prefix = "conv_transpose",
     .example = "conv_transpose2d: {out: 32, kernel: 4, stride: 2, pad: 1}",
     .shares = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"out", LKSI_WINDOW_KEYS, "output_pad", "groups", "bias"},
     .build = build_conv_transpose2d},
    {.word = "dense",
     .prefix = "dense",
     .example = "dense: {out: 10}",
     .shares = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"out", "bias"},
     .build = build_dense},
    {.word = "linear",
     .prefix = "linear",
     .example = "linear: {out: 10}",
     .shares = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"out", "bias"},
     .build = build_linear},
    {0},
};
