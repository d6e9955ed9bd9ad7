/*
 * layer_pool.c - windows over images.
 */
#include <string.h>

#include "graph/layer.h"
#include "op/attr.h"

lks_status lks_graph_maxpool(lks_graph *g, lks_value x, const struct lks_pool_params *p,
                             lks_value *y)
{
    struct lksi_maxpool_attr attr;
    lksi_value out;
    lks_status st = lksi_layer_check(g, "lks_graph_maxpool", x, y);
    if (st != LKS_OK)
        return st;
    if (p == NULL || p->kernel < 1 || p->stride < 0 || p->pad < 0)
        return lksi_fail(LKS_E_ARGUMENT,
                         "maxpool: `kernel` must be 1 or more, `stride` and `pad` not negative");
    memset(&attr, 0, sizeof attr);
    attr.kernel_h = attr.kernel_w = p->kernel;
    attr.stride_h = attr.stride_w = p->stride > 0 ? p->stride : p->kernel;
    attr.pad_top = attr.pad_bottom = attr.pad_left = attr.pad_right = p->pad;
    st = lksi_graph_add_node(g, "maxpool", "maxpool", &attr, 1, &x, &out);
    if (st == LKS_OK)
        *y = out;
    return st;
}
