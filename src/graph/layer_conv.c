/*
 * layer_conv.c - convolution.
 */
#include "graph/layer.h"
#include "op/attr.h"
#include "op/conv2d.h"

lks_status lks_graph_conv2d(lks_graph *g, lks_value x, const struct lks_conv2d_params *p,
                            lks_value *y)
{
    lks_status st = lksi_layer_check(g, "lks_graph_conv2d", x, y);
    struct lksi_layer_head l;
    lksi_value in[3] = {x}, out;
    if (st != LKS_OK)
        return st;
    if (p == NULL || p->out < 1 || p->kernel < 1 || p->stride < 0 || p->dilation < 0 ||
        p->pad < 0 || p->groups < 0)
        return lksi_fail(LKS_E_ARGUMENT, "conv2d: `out` and `kernel` must be 1 or more, `stride`, "
                                         "`dilation`, `pad` and `groups` not negative");
    const struct lksi_desc *d = &g->value[x].desc;
    int64_t groups = p->groups > 0 ? p->groups : 1, r = p->kernel;
    if (d->rank != 4)
        return lksi_fail(LKS_E_ARGUMENT, "conv2d: its input has %d dimensions, an image has 3 "
                                         "(height, width, channels)", d->rank - 1);
    if (d->dim[3] % groups != 0 || p->out % groups != 0)
        return lksi_fail(LKS_E_ARGUMENT, "conv2d: %lld input and %d output channels do not divide "
                                         "into %lld groups", (long long)d->dim[3], (int)p->out,
                         (long long)groups);
    uint32_t stride = p->stride > 0 ? (uint32_t)p->stride : 1;
    uint32_t dilation = p->dilation > 0 ? (uint32_t)p->dilation : 1;
    uint32_t pad = (uint32_t)p->pad;
    struct lksi_conv2d_attr attr = {stride, stride, pad, pad, pad, pad, dilation, dilation,
                                    (uint32_t)groups, 0};
    int64_t cg = d->dim[3] / groups;
    struct lksi_desc w = lksi_desc_make(LKSI_F32, 4, (int64_t)p->out, r, r, cg);
    struct lksi_desc b = lksi_desc_make(LKSI_F32, 1, (int64_t)p->out);
    int64_t fan_in = r * r * cg, fan_out = r * r * (p->out / groups);
    lksi_layer_begin(&l, g, "conv", p->name, p->share);
    st = lksi_layer_param(&l, "weight", &w, fan_in, fan_out, LKSI_START_INIT, &in[1]);
    if (st == LKS_OK && !p->no_bias)
        st = lksi_layer_param(&l, "bias", &b, fan_in, fan_out, LKSI_START_BIAS, &in[2]);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, l.name, "conv2d", &attr, p->no_bias ? 2 : 3, in, &out);
    if (st == LKS_OK)
        *y = out;
    return st;
}
