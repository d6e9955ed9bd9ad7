/*
 * map_conv.c - convolutions and transposed convolutions, and what they share with pools (window.h).
 */
#include <string.h>

#include "op/conv2d.h"
#include "window.h"

/* ---- windows ---- */

/* A list of one number an axis, into [1] alone for a sequence. */
static void numbers(const Onnx__NodeProto *n, const char *name, int axes, int first, int64_t *out)
{
    int64_t list[2 * ONNX_MAX_RANK];
    if (onnx_attr_ints(n, name, list) >= first + axes)
        for (int k = 0; k < axes; k++)
            out[2 - axes + k] = list[first + k];
}

bool window_read(struct net *net, const Onnx__NodeProto *n, const struct net_shape *x,
                 const struct net_shape *weights, struct window *w)
{
    *w = (struct window){
        .axes = x->rank - 2, .in = {1, 1}, .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
    if (w->axes > 2) {
        net_beyond(net, NET_3D);
        return false;
    }
    if (w->axes < 1) {
        net_no(net, "a window over no axis");
        return false;
    }
    w->n = x->dim[0];
    w->c = x->dim[1];
    for (int k = 0; k < w->axes; k++) {
        w->in[2 - w->axes + k] = x->dim[2 + k];
        if (weights != NULL)
            w->kernel[2 - w->axes + k] = weights->dim[2 + k];
    }
    numbers(n, "kernel_shape", w->axes, 0, w->kernel);
    numbers(n, "strides", w->axes, 0, w->stride);
    numbers(n, "dilations", w->axes, 0, w->dilation);
    numbers(n, "pads", w->axes, 0, w->before);
    numbers(n, "pads", w->axes, w->axes, w->after);
    return true;
}

char window_auto(const Onnx__NodeProto *n)
{
    char room[16];
    const char *text = onnx_attr_text(n, "auto_pad", "NOTSET", room, sizeof room);
    return strncmp(text, "SAME_", 5) == 0 ? text[5] : text[0];
}

void window_pads(const Onnx__NodeProto *n, struct window *w)
{
    char how = window_auto(n);
    for (int k = 0; k < 2 && (how == 'U' || how == 'L'); k++) {
        int64_t out = (w->in[k] + w->stride[k] - 1) / w->stride[k];
        int64_t all = (out - 1) * w->stride[k] + (w->kernel[k] - 1) * w->dilation[k] + 1 - w->in[k];
        all = all < 0 ? 0 : all;
        w->before[k] = how == 'U' ? all / 2 : all - all / 2;
        w->after[k] = all - w->before[k];
    }
}

/* [a,b,rest] to [a,rest,b], seen as `to`. */
static bool turn(struct net *net, lksi_value x, int64_t a, int64_t b, int64_t rest,
                 const struct net_shape *to, lksi_value *out)
{
    static const int order[3] = {0, 2, 1};
    struct net_shape three = net_dims(3, a, b, rest);
    return net_transpose(net, x, &three, order, &x) && net_view(net, x, to, out);
}

bool window_enter(struct net *net, lksi_value x, const struct window *w, lksi_value *out)
{
    struct net_shape to = net_dims(4, w->n, w->in[0], w->in[1], w->c);
    return turn(net, x, w->n, w->c, w->in[0] * w->in[1], &to, out);
}

bool window_leave(struct net *net, lksi_value y, lksi_value *out)
{
    const struct lksi_desc d = net->graph->value[y].desc;
    struct net_shape to = net_dims(3, d.dim[0], d.dim[3], d.dim[1] * d.dim[2]);
    return turn(net, y, d.dim[0], d.dim[1] * d.dim[2], d.dim[3], &to, out);
}

struct net_shape window_shape(const struct net *net, lksi_value y, const struct window *w)
{
    const struct lksi_desc *d = &net->graph->value[y].desc;
    return w->axes == 1 ? net_dims(3, d->dim[0], d->dim[3], d->dim[2])
                        : net_dims(4, d->dim[0], d->dim[3], d->dim[1], d->dim[2]);
}

/* ---- convolutions ---- */

static struct lksi_conv2d_attr conv_attr(const Onnx__NodeProto *n, const struct window *w)
{
    struct lksi_conv2d_attr a;
    memset(&a, 0, sizeof a);
    a.stride_h = (uint32_t)w->stride[0];
    a.stride_w = (uint32_t)w->stride[1];
    a.pad_top = (uint32_t)w->before[0];
    a.pad_bottom = (uint32_t)w->after[0];
    a.pad_left = (uint32_t)w->before[1];
    a.pad_right = (uint32_t)w->after[1];
    a.dilation_h = (uint32_t)w->dilation[0];
    a.dilation_w = (uint32_t)w->dilation[1];
    a.groups = (uint32_t)onnx_attr_int(n, "group", 1);
    return a;
}

/* x, weights and bias as the library wants them; the weights of both kinds turn alike. */
static bool enter(struct net *net, const Onnx__NodeProto *n, struct window *w, lksi_value *three,
                  int *count)
{
    struct net_shape x, weights, bias;
    if (!net_tensor(net, n, 0, &three[0], &x) || !net_tensor(net, n, 1, &three[1], &weights) ||
        !window_read(net, n, &x, &weights, w))
        return false;
    struct net_shape to = net_dims(4, weights.dim[0], w->kernel[0], w->kernel[1], weights.dim[1]);
    *count = net_input(net, n, 2) != NULL ? 3 : 2;
    return window_enter(net, three[0], w, &three[0]) &&
           turn(net, three[1], weights.dim[0], weights.dim[1], w->kernel[0] * w->kernel[1], &to,
                &three[1]) &&
           (*count == 2 || net_tensor(net, n, 2, &three[2], &bias));
}

static const char *leave(struct net *net, const Onnx__NodeProto *n, const struct window *w,
                         lksi_value y)
{
    struct net_shape s = window_shape(net, y, w);
    if (!window_leave(net, y, &y))
        return net->why;
    return net_result(net, n, 0, y, &s);
}

static const char *conv(struct net *net, const Onnx__NodeProto *n)
{
    struct window w;
    lksi_value three[3], y;
    int count;
    if (!enter(net, n, &w, three, &count))
        return net->why;
    window_pads(n, &w);
    struct lksi_conv2d_attr a = conv_attr(n, &w);
    if (!net_apply(net, "conv2d", &a, count, three, &y))
        return net->why;
    return leave(net, n, &w, y);
}

/* The output's size in an axis, and the pads where `output_shape` or `auto_pad` asks for a size. */
static int64_t transposed_size(const Onnx__NodeProto *n, struct window *w, int k)
{
    int64_t more[2] = {0, 0}, want[2] = {0, 0};
    char how = window_auto(n);
    numbers(n, "output_padding", w->axes, 0, more);
    numbers(n, "output_shape", w->axes, 0, want);
    int64_t full =
        w->stride[k] * (w->in[k] - 1) + more[k] + (w->kernel[k] - 1) * w->dilation[k] + 1;
    if (want[k] == 0 && (how == 'U' || how == 'L'))
        want[k] = w->in[k] * w->stride[k];
    if (want[k] == 0)
        return full - w->before[k] - w->after[k];
    int64_t all = full > want[k] ? full - want[k] : 0;
    w->before[k] = how == 'U' ? all / 2 : all - all / 2;
    w->after[k] = all - w->before[k];
    return want[k];
}

static const char *conv_transpose(struct net *net, const Onnx__NodeProto *n)
{
    struct lksi_conv2d_data_grad_attr a;
    struct window w;
    lksi_value three[3], y;
    int count;
    if (!enter(net, n, &w, three, &count))
        return net->why;
    memset(&a, 0, sizeof a);
    a.height = w.axes == 1 ? 1 : (uint32_t)transposed_size(n, &w, 0);
    a.width = (uint32_t)transposed_size(n, &w, 1);
    a.conv = conv_attr(n, &w);
    if (!net_apply(net, "conv2d_data_grad", &a, count, three, &y))
        return net->why;
    return leave(net, n, &w, y);
}

const struct net_map net_map_conv[] = {
    {"Conv", conv},
    {"ConvTranspose", conv_transpose},
    {NULL, NULL},
};
