/*
 * gradient.c - the public functions that deal with gradients inside a network.
 */
#include "graph/layer.h"

lks_status lks_graph_stop_gradient(lks_graph *g, lks_value x, lks_value *y)
{
    return lksi_layer_apply(g, "stop_gradient", "stop_gradient", NULL, 1, &x, y);
}

static lks_status gradient(lks_graph *g, lks_value y, lks_value x, lks_value *dx)
{
    lks_status st = lksi_layer_check(g, "lks_graph_gradient", y, dx);
    if (st == LKS_OK)
        st = lksi_layer_check(g, "lks_graph_gradient", x, dx);
    if (st != LKS_OK)
        return st;
    if (g->value[x].desc.dtype != LKSI_F32 || g->value[y].desc.dtype != LKSI_F32)
        return lksi_fail(LKS_E_ARGUMENT, "lks_graph_gradient: integers have no gradient");
    st = lksi_graph_inner_gradient(g, y, x, dx);
    return st == LKS_OK ? st : lksi_fail_prefix(st, "lks_graph_gradient: ");
}

lks_status lks_graph_gradient(lks_graph *g, lks_value y, lks_value x, lks_value *dx)
{
    LKSI_RETURN_WHOLE(g, gradient(g, y, x, dx));
}
