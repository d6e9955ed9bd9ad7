/*
 * layer_shape.c - the same elements in another shape.
 */
#include <string.h>

#include "graph/layer.h"
#include "op/attr.h"

lks_status lks_graph_flatten(lks_graph *g, lks_value x, lks_value *y)
{
    lks_status st = lksi_layer_check(g, "lks_graph_flatten", x, y);
    struct lksi_reshape_attr attr;
    lksi_value out;
    if (st != LKS_OK)
        return st;
    memset(&attr, 0, sizeof attr);
    const struct lksi_desc *d = &g->value[x].desc;
    attr.rank = 2;
    attr.dim[0] = -1;
    attr.dim[1] = lksi_desc_count(d) / d->dim[0];
    st = lksi_graph_add_node(g, "flatten", "reshape", &attr, 1, &x, &out);
    if (st == LKS_OK)
        *y = out;
    return st;
}
