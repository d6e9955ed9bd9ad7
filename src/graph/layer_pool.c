/*
 * layer_pool.c - windows over images and sequences.
 */
#include <string.h>

#include "graph/layer_shape.h"
#include "op/attr.h"

static lks_status fill(const char *name, const struct lks_pool_params *p, bool sequence,
                       struct lksi_maxpool_attr *a)
{
    const int32_t *e = p != NULL ? p->pads : NULL;
    if (p == NULL || p->kernel < 1 || p->kernel_w < 0 || p->stride < 0 || p->stride_w < 0 ||
        p->dilation < 0 || p->dilation_w < 0 || p->pad < 0 || e[0] < 0 || e[1] < 0 || e[2] < 0 ||
        e[3] < 0)
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: `kernel` must be 1 or more, `stride`, `dilation` and `pad` not "
                         "negative",
                         name);
    bool each = e[0] != 0 || e[1] != 0 || e[2] != 0 || e[3] != 0;
    memset(a, 0, sizeof *a);
    a->kernel_h = p->kernel;
    a->kernel_w = p->kernel_w > 0 ? p->kernel_w : p->kernel;
    a->stride_h = p->stride > 0 ? p->stride : a->kernel_h;
    a->stride_w = p->stride_w > 0 ? p->stride_w : p->stride > 0 ? p->stride : a->kernel_w;
    a->dilation_h = p->dilation > 0 ? p->dilation : 1;
    a->dilation_w = p->dilation_w > 0 ? p->dilation_w : a->dilation_h;
    a->pad_top = each ? e[0] : p->pad;
    a->pad_bottom = each ? e[1] : p->pad;
    a->pad_left = each ? e[2] : p->pad;
    a->pad_right = each ? e[3] : p->pad;
    a->ceil = p->ceil;
    if (sequence) {
        a->kernel_w = a->kernel_h;
        a->stride_w = a->stride_h;
        a->dilation_w = a->dilation_h;
        a->pad_left = a->pad_top;
        a->pad_right = a->pad_bottom;
        a->kernel_h = a->stride_h = a->dilation_h = 1;
        a->pad_top = a->pad_bottom = 0;
    }
    return LKS_OK;
}

/* Adds the operator `name` with windows `a`, or, if that is NULL, with one over all positions. */
static lks_status pool(lks_graph *g, const char *name, lks_value x, const struct lks_pool_params *p,
                       bool global, lks_value *y)
{
    struct lksi_avgpool_attr a;
    char text[96];
    bool sequence;
    lks_value v = x;
    lks_status st = lksi_layer_check(g, name, x, y);
    if (st != LKS_OK)
        return st;
    if (g->value[x].desc.rank != 3 && g->value[x].desc.rank != 4)
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: its input is %s; an image is [height,width,channels], a sequence "
                         "[positions,channels]",
                         name, lksi_sample_text(g, x, text));
    sequence = g->value[x].desc.rank == 3;
    memset(&a, 0, sizeof a);
    if (sequence)
        LKSI_TRY(lksi_layer_as_image(g, x, &v));
    if (global) {
        const int64_t *d = g->value[v].desc.dim;
        if (d[1] > 32767 || d[2] > 32767)
            return lksi_fail(LKS_E_ARGUMENT, "%s: more than 32767 rows or columns", name);
        a.window.kernel_h = (int)d[1];
        a.window.kernel_w = (int)d[2];
        a.window.stride_h = a.window.stride_w = 1;
    } else {
        LKSI_TRY(fill(name, p, sequence, &a.window));
        a.count_pad = p->count_pad;
    }
    if (strcmp(name, "maxpool") == 0)
        LKSI_TRY(lksi_layer_apply(g, name, name, &a.window, 1, &v, &v));
    else
        LKSI_TRY(lksi_layer_apply(g, name, name, &a, 1, &v, &v));
    if (sequence)
        LKSI_TRY(lksi_layer_as_sequence(g, v, &v));
    *y = v;
fail:
    return st;
}

lks_status lks_graph_maxpool(lks_graph *g, lks_value x, const struct lks_pool_params *p,
                             lks_value *y)
{
    LKSI_RETURN_WHOLE(g, pool(g, "maxpool", x, p, false, y));
}

lks_status lks_graph_avgpool(lks_graph *g, lks_value x, const struct lks_pool_params *p,
                             lks_value *y)
{
    LKSI_RETURN_WHOLE(g, pool(g, "avgpool", x, p, false, y));
}

lks_status lks_graph_global_maxpool(lks_graph *g, lks_value x, lks_value *y)
{
    LKSI_RETURN_WHOLE(g, pool(g, "maxpool", x, NULL, true, y));
}

lks_status lks_graph_global_avgpool(lks_graph *g, lks_value x, lks_value *y)
{
    LKSI_RETURN_WHOLE(g, pool(g, "avgpool", x, NULL, true, y));
}
