/*
 * layer_conv.c - convolution and transposed convolution.
 */
#include "graph/layer_shape.h"
#include "op/attr.h"
#include "op/conv2d.h"

/* Kernel, strides, dilations, padding of `p`, for a sequence along the width. */
static lks_status fill(const char *name, const struct lks_conv2d_params *p, bool sequence,
                       int64_t kernel[2], struct lksi_conv2d_attr *a)
{
    if (p == NULL || p->out < 1 || p->kernel < 1 || p->stride < 0 || p->dilation < 0 ||
        p->pad < 0 || p->groups < 0 || p->kernel_w < 0 || p->stride_w < 0 || p->dilation_w < 0 ||
        p->pads[0] < 0 || p->pads[1] < 0 || p->pads[2] < 0 || p->pads[3] < 0 ||
        p->kernel > 32767 || p->kernel_w > 32767)
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: `out` must be 1 or more, `kernel` 1 to 32767, `stride`, "
                         "`dilation`, `pad` and `groups` not negative",
                         name);
    const int32_t *e = p->pads;
    bool each = e[0] != 0 || e[1] != 0 || e[2] != 0 || e[3] != 0;
    uint32_t pad = (uint32_t)p->pad;
    uint32_t stride = p->stride > 0 ? (uint32_t)p->stride : 1;
    uint32_t dilation = p->dilation > 0 ? (uint32_t)p->dilation : 1;
    *a = (struct lksi_conv2d_attr){
        .stride_h = stride,
        .stride_w = p->stride_w > 0 ? (uint32_t)p->stride_w : stride,
        .pad_top = each ? (uint32_t)e[0] : pad,
        .pad_bottom = each ? (uint32_t)e[1] : pad,
        .pad_left = each ? (uint32_t)e[2] : pad,
        .pad_right = each ? (uint32_t)e[3] : pad,
        .dilation_h = dilation,
        .dilation_w = p->dilation_w > 0 ? (uint32_t)p->dilation_w : dilation,
        .groups = p->groups > 0 ? (uint32_t)p->groups : 1,
    };
    kernel[0] = p->kernel;
    kernel[1] = p->kernel_w > 0 ? p->kernel_w : p->kernel;
    if (sequence) {
        a->pad_left = a->pad_top;
        a->pad_right = a->pad_bottom;
        a->stride_w = stride;
        a->dilation_w = dilation;
        a->stride_h = a->dilation_h = 1;
        a->pad_top = a->pad_bottom = 0;
        kernel[1] = p->kernel;
        kernel[0] = 1;
    }
    return LKS_OK;
}

/* The operator that `p` asks for. */
static lks_status operator_of(const char *name, const struct lks_conv2d_params *p,
                              const int64_t kernel[2], const struct lksi_conv2d_attr *a,
                              const char **op)
{
    *op = "conv2d";
    if (p->algo == LKS_CONV_DIRECT)
        return LKS_OK;
    if (p->algo != LKS_CONV_WINOGRAD)
        return lksi_fail(LKS_E_ARGUMENT, "%s: unknown algo %d", name, (int)p->algo);
    if (kernel[0] != 3 || kernel[1] != 3 || a->stride_h != 1 || a->stride_w != 1 ||
        a->dilation_h != 1 || a->dilation_w != 1 || a->groups != 1)
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: `algo: winograd` serves kernels of 3 x 3 with stride 1, dilation 1 and "
                         "one group; this one is %d x %d with stride %u x %u, dilation %u x %u and "
                         "%u groups",
                         name, (int)kernel[0], (int)kernel[1], a->stride_h, a->stride_w,
                         a->dilation_h, a->dilation_w, a->groups);
    *op = "winograd";
    return LKS_OK;
}

/* The convolution of the image `x`. */
static lks_status conv(lks_graph *g, const char *name, const char *prefix, lks_value x,
                       const int64_t kernel[2], const struct lksi_conv2d_attr *a,
                       const struct lks_conv2d_params *p, lks_value *y)
{
    struct lksi_layer_head l;
    lksi_value in[3] = {x}, out;
    const struct lksi_desc *d = &g->value[x].desc;
    int64_t groups = a->groups, taps = kernel[0] * kernel[1];
    const char *op;
    lks_status st = operator_of(name, p, kernel, a, &op);
    if (st != LKS_OK)
        return st;
    if (d->dim[3] % groups != 0 || p->out % groups != 0)
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: %lld input and %d output channels do not divide "
                         "into %lld groups",
                         name, (long long)d->dim[3], (int)p->out, (long long)groups);
    int64_t cg = d->dim[3] / groups;
    struct lksi_desc w = lksi_desc_make(LKSI_F32, 4, (int64_t)p->out, kernel[0], kernel[1], cg);
    struct lksi_desc b = lksi_desc_make(LKSI_F32, 1, (int64_t)p->out);
    int64_t fan_in = taps * cg, fan_out = taps * (p->out / groups);
    lksi_layer_begin(&l, g, prefix, p->name, p->share);
    st = lksi_layer_param(&l, "weight", &w, fan_in, fan_out, LKSI_START_INIT, &in[1]);
    if (st == LKS_OK && !p->no_bias)
        st = lksi_layer_param(&l, "bias", &b, fan_in, fan_out, LKSI_START_BIAS, &in[2]);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, l.name, op, a, p->no_bias ? 2 : 3, in, &out);
    if (st == LKS_OK)
        *y = out;
    return st;
}

static lks_status conv2d(lks_graph *g, lks_value x, const struct lks_conv2d_params *p, lks_value *y)
{
    struct lksi_conv2d_attr a;
    char text[96];
    int64_t kernel[2];
    lks_status st = lksi_layer_check(g, "lks_graph_conv2d", x, y);
    if (st == LKS_OK)
        st = fill("conv2d", p, false, kernel, &a);
    if (st != LKS_OK)
        return st;
    if (g->value[x].desc.rank != 4)
        return lksi_fail(LKS_E_ARGUMENT,
                         "conv2d: its input is %s, an image is [height,width,channels]",
                         lksi_sample_text(g, x, text));
    return conv(g, "conv2d", "conv", x, kernel, &a, p, y);
}

lks_status lks_graph_conv2d(lks_graph *g, lks_value x, const struct lks_conv2d_params *p,
                            lks_value *y)
{
    LKSI_RETURN_WHOLE(g, conv2d(g, x, p, y));
}

static lks_status conv1d(lks_graph *g, lks_value x, const struct lks_conv2d_params *p, lks_value *y)
{
    struct lksi_conv2d_attr a;
    char text[96];
    int64_t kernel[2];
    lks_value v;
    lks_status st = lksi_layer_check(g, "lks_graph_conv1d", x, y);
    if (st == LKS_OK)
        st = fill("conv1d", p, true, kernel, &a);
    if (st != LKS_OK)
        return st;
    if (g->value[x].desc.rank != 3)
        return lksi_fail(LKS_E_ARGUMENT,
                         "conv1d: its input is %s, a sequence is [positions,channels]",
                         lksi_sample_text(g, x, text));
    st = lksi_layer_as_image(g, x, &v);
    if (st == LKS_OK)
        st = conv(g, "conv1d", "conv1d_", v, kernel, &a, p, &v);
    return st == LKS_OK ? lksi_layer_as_sequence(g, v, y) : st;
}

lks_status lks_graph_conv1d(lks_graph *g, lks_value x, const struct lks_conv2d_params *p,
                            lks_value *y)
{
    LKSI_RETURN_WHOLE(g, conv1d(g, x, p, y));
}

/* Rows (or columns) of the output of a transposed convolution; below 1 if padding leaves none. */
static int64_t transposed(int64_t size, uint32_t stride, uint32_t dilation, int64_t kernel,
                          uint32_t before, uint32_t after, int32_t more)
{
    return (size - 1) * stride + dilation * (kernel - 1) + 1 + more - before - after;
}

/* Sizes of the output, and the convolution whose data gradient it is. */
static lks_status fill_transposed(const int64_t *x, const struct lks_conv_transpose2d_params *p,
                                  int64_t kernel[2], struct lksi_conv2d_data_grad_attr *a)
{
    struct lks_conv2d_params window;
    if (p == NULL || p->output_pad < 0 || p->output_pad_w < 0)
        return lksi_fail(LKS_E_ARGUMENT, "conv_transpose2d: `output_pad` must not be negative");
    window = (struct lks_conv2d_params){.out = p->out,
                                        .kernel = p->kernel,
                                        .stride = p->stride,
                                        .dilation = p->dilation,
                                        .pad = p->pad,
                                        .groups = p->groups,
                                        .kernel_w = p->kernel_w,
                                        .stride_w = p->stride_w,
                                        .dilation_w = p->dilation_w,
                                        .pads = {p->pads[0], p->pads[1], p->pads[2], p->pads[3]}};
    lks_status st = fill("conv_transpose2d", &window, false, kernel, &a->conv);
    if (st != LKS_OK)
        return st;
    const struct lksi_conv2d_attr *c = &a->conv;
    int32_t more_w = p->output_pad_w > 0 ? p->output_pad_w : p->output_pad;
    if ((uint32_t)p->output_pad >= c->stride_h || (uint32_t)more_w >= c->stride_w)
        return lksi_fail(LKS_E_ARGUMENT,
                         "conv_transpose2d: output_pad %d x %d must be less than "
                         "the stride %u x %u",
                         (int)p->output_pad, (int)more_w, c->stride_h, c->stride_w);
    int64_t h = transposed(x[1], c->stride_h, c->dilation_h, kernel[0], c->pad_top, c->pad_bottom,
                           p->output_pad);
    int64_t w =
        transposed(x[2], c->stride_w, c->dilation_w, kernel[1], c->pad_left, c->pad_right, more_w);
    if (h < 1 || w < 1 || h > INT32_MAX || w > INT32_MAX)
        return lksi_fail(LKS_E_ARGUMENT,
                         "conv_transpose2d: its output would be %lld x %lld; both must be 1 to "
                         "2^31 - 1",
                         (long long)h, (long long)w);
    a->height = (uint32_t)h;
    a->width = (uint32_t)w;
    return LKS_OK;
}

static lks_status conv_transpose2d(lks_graph *g, lks_value x,
                                   const struct lks_conv_transpose2d_params *p, lks_value *y)
{
    struct lksi_conv2d_data_grad_attr a;
    char text[96];
    struct lksi_layer_head l;
    lksi_value in[3] = {x}, out;
    int64_t kernel[2] = {1, 1}, taps, groups;
    lks_status st = lksi_layer_check(g, "lks_graph_conv_transpose2d", x, y);
    if (st != LKS_OK)
        return st;
    const struct lksi_desc *d = &g->value[x].desc;
    if (d->rank != 4)
        return lksi_fail(LKS_E_ARGUMENT,
                         "conv_transpose2d: its input is %s, an image is [height,width,channels]",
                         lksi_sample_text(g, x, text));
    int64_t channels = d->dim[3];
    LKSI_TRY(fill_transposed(d->dim, p, kernel, &a));
    groups = a.conv.groups;
    taps = kernel[0] * kernel[1];
    if (channels % groups != 0 || p->out % groups != 0)
        return lksi_fail(LKS_E_ARGUMENT,
                         "conv_transpose2d: %lld input and %d output channels do not divide "
                         "into %lld groups",
                         (long long)channels, (int)p->out, (long long)groups);
    struct lksi_desc w =
        lksi_desc_make(LKSI_F32, 4, channels, kernel[0], kernel[1], p->out / groups);
    struct lksi_desc b = lksi_desc_make(LKSI_F32, 1, (int64_t)p->out);
    int64_t fan_in = taps * (channels / groups), fan_out = taps * (p->out / groups);
    lksi_layer_begin(&l, g, "conv_transpose", p->name, p->share);
    LKSI_TRY(lksi_layer_param(&l, "weight", &w, fan_in, fan_out, LKSI_START_INIT, &in[1]));
    if (!p->no_bias)
        LKSI_TRY(lksi_layer_param(&l, "bias", &b, fan_in, fan_out, LKSI_START_BIAS, &in[2]));
    LKSI_TRY(lksi_graph_add_node(g, l.name, "conv2d_data_grad", &a, p->no_bias ? 2 : 3, in, &out));
    *y = out;
fail:
    return st;
}

lks_status lks_graph_conv_transpose2d(lks_graph *g, lks_value x,
                                      const struct lks_conv_transpose2d_params *p, lks_value *y)
{
    LKSI_RETURN_WHOLE(g, conv_transpose2d(g, x, p, y));
}
