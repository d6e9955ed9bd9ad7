/*
 * kinds_conv.c - convolution and dense layers of a model file.
 */
#include "model/kind.h"

static lks_status build_conv2d(const struct lksi_layer_in *l, lks_value *y)
{
    int64_t out, kernel, stride = 1, pad = 0, dilation = 1, groups = 1;
    bool bias = true;
    lks_status st;
    LKSI_TRY(lksi_need_int(l->map, "out", 1, LKSI_MAX_CHANNELS, "out: 32", &out));
    LKSI_TRY(lksi_need_int(l->map, "kernel", 1, LKSI_MAX_WINDOW, "kernel: 5", &kernel));
    LKSI_TRY(lksi_map_int(l->map, "stride", 1, LKSI_MAX_WINDOW, "stride: 1", &stride));
    LKSI_TRY(lksi_map_int(l->map, "pad", 0, LKSI_MAX_WINDOW, "pad: 2", &pad));
    LKSI_TRY(lksi_map_int(l->map, "dilation", 1, LKSI_MAX_WINDOW, "dilation: 1", &dilation));
    LKSI_TRY(lksi_map_int(l->map, "groups", 1, LKSI_MAX_CHANNELS, "groups: 1", &groups));
    LKSI_TRY(lksi_map_bool(l->map, "bias", "bias: false", &bias));
    LKSI_TRY(lks_graph_conv2d(
        l->graph, l->x[0],
        lks_conv2d_params(.name = l->name, .share = l->share, .out = (int32_t)out,
                          .kernel = (int32_t)kernel, .stride = (int32_t)stride,
                          .pad = (int32_t)pad, .dilation = (int32_t)dilation,
                          .groups = (int32_t)groups, .no_bias = !bias),
        y));
    lksi_str_add(l->canon,
                 " name=%s out=%d kernel=%d stride=%d pad=%d dilation=%d groups=%d bias=%d",
                 l->name, (int)out, (int)kernel, (int)stride, (int)pad, (int)dilation, (int)groups,
                 bias);
fail:
    return st;
}

static lks_status build_dense(const struct lksi_layer_in *l, lks_value *y)
{
    int64_t out;
    bool bias = true;
    lks_status st;
    LKSI_TRY(lksi_need_int(l->map, "out", 1, LKSI_MAX_CHANNELS, "out: 10", &out));
    LKSI_TRY(lksi_map_bool(l->map, "bias", "bias: false", &bias));
    LKSI_TRY(lks_graph_dense(l->graph, l->x[0],
                             lks_dense_params(.name = l->name, .share = l->share,
                                              .out = (int32_t)out, .no_bias = !bias),
                             y));
    lksi_str_add(l->canon, " name=%s out=%d bias=%d", l->name, (int)out, bias);
fail:
    return st;
}

const struct lksi_kind lksi_kinds_conv[] = {
    {.word = "conv2d",
     .prefix = "conv",
     .example = "conv2d: {out: 32, kernel: 5, pad: 2}",
     .shares = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"out", "kernel", "stride", "pad", "dilation", "groups", "bias"},
     .build = build_conv2d},
    {.word = "dense",
     .prefix = "dense",
     .example = "dense: {out: 10}",
     .shares = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"out", "bias"},
     .build = build_dense},
    {0},
};
