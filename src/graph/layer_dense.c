/*
 * layer_dense.c - fully connected layers.
 */
#include <string.h>

#include "graph/layer.h"
#include "op/attr.h"

static lks_status dense(lks_graph *g, lks_value x, const struct lks_dense_params *p, lks_value *y)
{
    lks_status st = lksi_layer_check(g, "lks_graph_dense", x, y);
    struct lksi_dense_attr attr;
    struct lksi_layer_head l;
    lksi_value in[3] = {x}, out;
    if (st != LKS_OK)
        return st;
    if (p == NULL || p->out < 1)
        return lksi_fail(LKS_E_ARGUMENT, "dense: `out` must be 1 or more");
    if (g->value[x].desc.rank > 2 && !p->last_axis)
        st = lks_graph_flatten(g, x, &in[0]);
    if (st != LKS_OK)
        return st;
    memset(&attr, 0, sizeof attr);
    int64_t features = g->value[in[0]].desc.dim[g->value[in[0]].desc.rank - 1];
    struct lksi_desc w = lksi_desc_make(LKSI_F32, 2, (int64_t)p->out, features);
    struct lksi_desc b = lksi_desc_make(LKSI_F32, 1, (int64_t)p->out);
    lksi_layer_begin(&l, g, "dense", p->name, p->share);
    st = lksi_layer_param(&l, "weight", &w, features, p->out, LKSI_START_INIT, &in[1]);
    if (st == LKS_OK && !p->no_bias)
        st = lksi_layer_param(&l, "bias", &b, features, p->out, LKSI_START_BIAS, &in[2]);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, l.name, "dense", &attr, p->no_bias ? 2 : 3, in, &out);
    if (st == LKS_OK)
        *y = out;
    return st;
}

lks_status lks_graph_dense(lks_graph *g, lks_value x, const struct lks_dense_params *p,
                           lks_value *y)
{
    LKSI_RETURN_WHOLE(g, dense(g, x, p, y));
}
