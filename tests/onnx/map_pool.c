/*
 * map_pool.c - pools. The indices of MaxPool are what maxpool_pick takes from a tensor of indices.
 */
#include <string.h>

#include "op/attr.h"
#include "window.h"

static struct lksi_maxpool_attr attr_of(const struct window *w)
{
    struct lksi_maxpool_attr a;
    memset(&a, 0, sizeof a);
    a.kernel_h = (int)w->kernel[0];
    a.kernel_w = (int)w->kernel[1];
    a.stride_h = (int)w->stride[0];
    a.stride_w = (int)w->stride[1];
    a.pad_top = (int)w->before[0];
    a.pad_bottom = (int)w->after[0];
    a.pad_left = (int)w->before[1];
    a.pad_right = (int)w->after[1];
    a.dilation_h = (int)w->dilation[0];
    a.dilation_w = (int)w->dilation[1];
    return a;
}

static bool enter(struct net *net, const Onnx__NodeProto *n, struct window *w, lksi_value *x)
{
    struct net_shape s;
    return net_tensor(net, n, 0, x, &s) && window_read(net, n, &s, NULL, w) &&
           window_enter(net, *x, w, x);
}

static const char *leave(struct net *net, const Onnx__NodeProto *n, const struct window *w,
                         size_t i, lksi_value y, int type)
{
    struct net_shape s = window_shape(net, y, w);
    if (!window_leave(net, y, &y))
        return net->why;
    return net_result_as(net, n, i, y, &s, type);
}

/* The index of each element in [N,C,H,W], or with height and width exchanged. */
static bool indices(struct net *net, const struct window *w, bool columns, lksi_value *out)
{
    struct net_shape s = net_dims(4, w->n, w->in[0], w->in[1], w->c);
    struct onnx_tensor *t = net_host(ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, &s);
    int64_t e = 0;
    for (int64_t n = 0; n < w->n; n++)
        for (int64_t i = 0; i < w->in[0]; i++)
            for (int64_t j = 0; j < w->in[1]; j++)
                for (int64_t c = 0; c < w->c; c++) {
                    int64_t place = columns ? j * w->in[0] + i : i * w->in[1] + j;
                    t->f[e++] = (float)((n * w->c + c) * w->in[0] * w->in[1] + place);
                }
    return net_feed(net, t, out);
}

static const char *max_pool(struct net *net, const Onnx__NodeProto *n)
{
    struct window w;
    lksi_value two[2], y, z;
    if (!enter(net, n, &w, &two[0]))
        return net->why;
    window_pads(n, &w);
    struct lksi_maxpool_attr a = attr_of(&w);
    a.ceil = onnx_attr_int(n, "ceil_mode", 0) != 0;
    if (!net_apply(net, "maxpool", &a, 1, two, &y))
        return net->why;
    if (n->n_output > 1 && (!indices(net, &w, onnx_attr_int(n, "storage_order", 0) != 0, &two[1]) ||
                            !net_apply(net, "maxpool_pick", &a, 2, two, &z) ||
                            leave(net, n, &w, 1, z, ONNX__TENSOR_PROTO__DATA_TYPE__INT64) != NULL))
        return net->why;
    return leave(net, n, &w, 0, y, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
}

static const char *average_pool(struct net *net, const Onnx__NodeProto *n)
{
    struct lksi_avgpool_attr a;
    struct window w;
    lksi_value x, y;
    if (!enter(net, n, &w, &x))
        return net->why;
    window_pads(n, &w);
    memset(&a, 0, sizeof a);
    a.window = attr_of(&w);
    a.window.ceil = onnx_attr_int(n, "ceil_mode", 0) != 0;
    a.count_pad = onnx_attr_int(n, "count_include_pad", 0) != 0;
    if (!net_apply(net, "avgpool", &a, 1, &x, &y))
        return net->why;
    return leave(net, n, &w, 0, y, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
}

static const char *global_pool(struct net *net, const Onnx__NodeProto *n)
{
    struct lksi_avgpool_attr a;
    struct window w;
    lksi_value x, y;
    bool max = strcmp(n->op_type, "GlobalMaxPool") == 0;
    if (!enter(net, n, &w, &x))
        return net->why;
    memcpy(w.kernel, w.in, sizeof w.kernel);
    memset(&a, 0, sizeof a);
    a.window = attr_of(&w);
    if (!(max ? net_apply(net, "maxpool", &a.window, 1, &x, &y)
              : net_apply(net, "avgpool", &a, 1, &x, &y)))
        return net->why;
    return leave(net, n, &w, 0, y, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
}

const struct net_map net_map_pool[] = {
    {"AveragePool", average_pool},
    {"GlobalAveragePool", global_pool},
    {"GlobalMaxPool", global_pool},
    {"MaxPool", max_pool},
    {NULL, NULL},
};
