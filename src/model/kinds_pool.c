/*
 * kinds_pool.c - pooling layers of a model file.
 */
#include "model/kind.h"

static lks_status build_maxpool(const struct lksi_layer_in *l, lks_value *y)
{
    int64_t kernel, stride, pad = 0;
    lks_status st;
    LKSI_TRY(lksi_need_int(l->map, "kernel", 1, LKSI_MAX_WINDOW, "kernel: 2", &kernel));
    stride = kernel;
    LKSI_TRY(lksi_map_int(l->map, "stride", 1, LKSI_MAX_WINDOW, "stride: 2", &stride));
    LKSI_TRY(lksi_map_int(l->map, "pad", 0, LKSI_MAX_WINDOW, "pad: 0", &pad));
    LKSI_TRY(lks_graph_maxpool(l->graph, l->x[0],
                               lks_pool_params(.kernel = (int32_t)kernel,
                                               .stride = (int32_t)stride, .pad = (int32_t)pad),
                               y));
    lksi_str_add(l->canon, " kernel=%d stride=%d pad=%d", (int)kernel, (int)stride, (int)pad);
fail:
    return st;
}

const struct lksi_kind lksi_kinds_pool[] = {
    {.word = "maxpool",
     .prefix = "maxpool",
     .example = "maxpool: {kernel: 2}",
     .min_in = 1,
     .max_in = 1,
     .keys = {"kernel", "stride", "pad"},
     .build = build_maxpool},
    {0},
};
