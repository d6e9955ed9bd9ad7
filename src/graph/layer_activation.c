/*
 * layer_activation.c - functions of single elements.
 */
#include "graph/layer.h"

lks_status lks_graph_relu(lks_graph *g, lks_value x, lks_value *y)
{
    lksi_value out;
    lks_status st = lksi_layer_check(g, "lks_graph_relu", x, y);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, "relu", "relu", NULL, 1, &x, &out);
    if (st == LKS_OK)
        *y = out;
    return st;
}
