/*
 * kinds_norm.c - normalisation layers of a model file.
 */
#include "model/kind.h"

static lks_status build_batch_norm(const struct lksi_layer_in *l, lks_value *y)
{
    double eps = 1e-5, momentum = 0.1;
    lks_status st = LKS_OK;
    if (l->map != NULL)
        LKSI_TRY(lksi_map_float(l->map, "eps", LKSI_POSITIVE, 1.0, "eps: 1e-5", &eps));
    if (l->map != NULL)
        LKSI_TRY(
            lksi_map_float(l->map, "momentum", LKSI_POSITIVE, 1.0, "momentum: 0.1", &momentum));
    LKSI_TRY(lks_graph_batch_norm(
        l->graph, l->x[0], lks_batch_norm_params(.name = l->name, .eps = eps, .momentum = momentum),
        y));
    lksi_str_add(l->canon, " name=%s", l->name);
    lksi_canon_float(l->canon, "eps", eps);
    lksi_canon_float(l->canon, "momentum", momentum);
fail:
    return st;
}

static lks_status read_eps(const struct lksi_layer_in *l, double *eps)
{
    lks_status st = LKS_OK;
    *eps = 1e-5;
    if (l->map != NULL)
        st = lksi_map_float(l->map, "eps", LKSI_POSITIVE, 1.0, "eps: 1e-5", eps);
    lksi_canon_float(l->canon, "eps", *eps);
    return st;
}

static lks_status build_group_norm(const struct lksi_layer_in *l, lks_value *y)
{
    int64_t groups;
    double eps;
    lks_status st;
    LKSI_TRY(lksi_need_int(l->map, "groups", 1, LKSI_MAX_CHANNELS, "groups: 8", &groups));
    lksi_str_add(l->canon, " name=%s groups=%d", l->name, (int)groups);
    LKSI_TRY(read_eps(l, &eps));
    st = lks_graph_group_norm(l->graph, l->x[0],
                              lks_group_norm_params(.name = l->name, .share = l->share,
                                                    .groups = (int32_t)groups, .eps = eps),
                              y);
fail:
    return st;
}

static lks_status build_layer_norm(const struct lksi_layer_in *l, lks_value *y)
{
    double eps;
    lksi_str_add(l->canon, " name=%s", l->name);
    lks_status st = read_eps(l, &eps);
    if (st != LKS_OK)
        return st;
    return lks_graph_layer_norm(
        l->graph, l->x[0], lks_norm_params(.name = l->name, .share = l->share, .eps = eps), y);
}

static lks_status build_instance_norm(const struct lksi_layer_in *l, lks_value *y)
{
    double eps;
    lksi_str_add(l->canon, " name=%s", l->name);
    lks_status st = read_eps(l, &eps);
    if (st != LKS_OK)
        return st;
    return lks_graph_instance_norm(
        l->graph, l->x[0], lks_norm_params(.name = l->name, .share = l->share, .eps = eps), y);
}

const struct lksi_kind lksi_kinds_norm[] = {
    {.word = "batch_norm",
     .prefix = "batch_norm",
     .example = "batch_norm: {momentum: 0.1}",
     .bare = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"eps", "momentum"},
     .build = build_batch_norm},
    {.word = "group_norm",
     .prefix = "group_norm",
     .example = "group_norm: {groups: 8}",
     .shares = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"groups", "eps"},
     .build = build_group_norm},
    {.word = "layer_norm",
     .prefix = "layer_norm",
     .example = "layer_norm",
     .bare = true,
     .shares = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"eps"},
     .build = build_layer_norm},
    {.word = "instance_norm",
     .prefix = "instance_norm",
     .example = "instance_norm",
     .bare = true,
     .shares = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"eps"},
     .build = build_instance_norm},
    {0},
};
