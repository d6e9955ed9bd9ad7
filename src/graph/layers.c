/*
 * layers.c - the public functions that add layers: operators together with their parameters.
 */
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "op/attr.h"
#include "op/conv2d.h"

enum layer_kind {
    LAYER_CONV2D,
    LAYER_DENSE,
    LAYER_BATCH_NORM,
    LAYER_GROUP_NORM,
    LAYER_LAYER_NORM,
    LAYER_INSTANCE_NORM
};

static lks_status check_value(const lks_graph *g, const char *what, lks_value x, const void *out)
{
    if (g == NULL || out == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "%s: the graph or the result pointer is NULL", what);
    if (x < 0 || (size_t)x >= g->n_value)
        return lksi_fail(LKS_E_ARGUMENT, "%s: %d is no value of this graph", what, (int)x);
    return LKS_OK;
}

lks_status lks_graph_input(lks_graph *g, const char *name, int rank, const int64_t *dims,
                           lks_value *out)
{
    struct lksi_desc d = {.dtype = LKSI_F32, .rank = rank + 1};
    int64_t left = INT32_MAX; /* elements, so that a whole batch is counted in 64 bits */
    if (g == NULL || name == NULL || dims == NULL || out == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_graph_input: an argument is NULL");
    if (rank < 1 || rank > 3)
        return lksi_fail(LKS_E_ARGUMENT, "input `%s`: rank %d, expected 1 to 3", name, rank);
    d.dim[0] = g->batch;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 1)
            return lksi_fail(LKS_E_ARGUMENT, "input `%s`: dimension %d is %lld, expected 1 or more",
                             name, i, (long long)dims[i]);
        if (dims[i] > left)
            return lksi_fail(LKS_E_ARGUMENT, "input `%s`: more than 2^31 - 1 elements", name);
        left /= dims[i];
        d.dim[i + 1] = dims[i];
    }
    return lksi_graph_add_input(g, name, &d, true, out);
}

static void layer_name(lks_graph *g, enum layer_kind kind, const char *given, char *name,
                       size_t size)
{
    static const char *const defaults[] = {"conv",       "dense",      "batch_norm",
                                           "group_norm", "layer_norm", "instance_norm"};
    g->layer_count[kind]++;
    if (given != NULL)
        snprintf(name, size, "%s", given);
    else
        snprintf(name, size, "%s%d", defaults[kind], g->layer_count[kind]);
}

static lks_status add_param(lks_graph *g, const char *layer, const char *suffix,
                            const struct lksi_desc *desc, int64_t fan_in, int64_t fan_out,
                            bool is_bias, lksi_value *out)
{
    char name[256];
    lksi_value v;
    lks_status st;
    if (snprintf(name, sizeof name, "%s.%s", layer, suffix) >= (int)sizeof name)
        return lksi_fail(LKS_E_ARGUMENT, "layer name `%.40s...` is longer than 200 bytes", layer);
    if (!lksi_grow(&g->param, &g->cap_param, g->n_param + 1, sizeof *g->param))
        return LKS_E_MEMORY;
    st = lksi_graph_add_state(g, name, desc, LKSI_NONE, 0, &v);
    if (st != LKS_OK)
        return st;
    struct lksi_param *p = &g->param[g->n_param];
    memset(p, 0, sizeof *p);
    p->name = lksi_strdup(name);
    if (p->name == NULL)
        return LKS_E_MEMORY;
    p->value = v;
    p->init = g->init;
    p->fan_in = fan_in;
    p->fan_out = fan_out;
    p->is_bias = is_bias;
    g->n_param++;
    *out = v;
    return LKS_OK;
}

lks_status lks_graph_conv2d(lks_graph *g, lks_value x, const struct lks_conv2d_params *p,
                            lks_value *y)
{
    lks_status st = check_value(g, "lks_graph_conv2d", x, y);
    char name[256];
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
    layer_name(g, LAYER_CONV2D, p->name, name, sizeof name);
    st = add_param(g, name, "weight", &w, fan_in, fan_out, false, &in[1]);
    if (st == LKS_OK && !p->no_bias)
        st = add_param(g, name, "bias", &b, fan_in, fan_out, true, &in[2]);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, name, "conv2d", &attr, p->no_bias ? 2 : 3, in, &out);
    if (st == LKS_OK)
        *y = out;
    return st;
}

lks_status lks_graph_flatten(lks_graph *g, lks_value x, lks_value *y)
{
    lks_status st = check_value(g, "lks_graph_flatten", x, y);
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

lks_status lks_graph_dense(lks_graph *g, lks_value x, const struct lks_dense_params *p,
                           lks_value *y)
{
    lks_status st = check_value(g, "lks_graph_dense", x, y);
    struct lksi_dense_attr attr;
    char name[256];
    lksi_value in[3] = {x}, out;
    if (st != LKS_OK)
        return st;
    if (p == NULL || p->out < 1)
        return lksi_fail(LKS_E_ARGUMENT, "dense: `out` must be 1 or more");
    if (g->value[x].desc.rank > 2)
        st = lks_graph_flatten(g, x, &in[0]);
    if (st != LKS_OK)
        return st;
    memset(&attr, 0, sizeof attr);
    int64_t features = g->value[in[0]].desc.dim[1];
    struct lksi_desc w = lksi_desc_make(LKSI_F32, 2, (int64_t)p->out, features);
    struct lksi_desc b = lksi_desc_make(LKSI_F32, 1, (int64_t)p->out);
    layer_name(g, LAYER_DENSE, p->name, name, sizeof name);
    st = add_param(g, name, "weight", &w, features, p->out, false, &in[1]);
    if (st == LKS_OK && !p->no_bias)
        st = add_param(g, name, "bias", &b, features, p->out, true, &in[2]);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, name, "dense", &attr, p->no_bias ? 2 : 3, in, &out);
    if (st == LKS_OK)
        *y = out;
    return st;
}

/* gamma and beta, of one element a channel. */
static lks_status add_affine(lks_graph *g, const char *layer, int64_t channels, lksi_value *gamma,
                             lksi_value *beta)
{
    struct lksi_desc d = lksi_desc_make(LKSI_F32, 1, channels);
    lks_status st = add_param(g, layer, "weight", &d, channels, channels, false, gamma);
    if (st == LKS_OK) {
        g->param[g->n_param - 1].is_scale = true;
        st = add_param(g, layer, "bias", &d, channels, channels, true, beta);
    }
    return st;
}

/* A running statistic of a layer. */
static lks_status add_buffer(lks_graph *g, const char *layer, const char *suffix, int64_t channels,
                             float start, lksi_value *out)
{
    struct lksi_desc d = lksi_desc_make(LKSI_F32, 1, channels);
    char name[256];
    lks_status st;
    if (snprintf(name, sizeof name, "%s.%s", layer, suffix) >= (int)sizeof name)
        return lksi_fail(LKS_E_ARGUMENT, "layer name `%.40s...` is longer than 200 bytes", layer);
    if (!lksi_grow(&g->buffer, &g->cap_buffer, g->n_buffer + 1, sizeof *g->buffer))
        return LKS_E_MEMORY;
    st = lksi_graph_add_state(g, name, &d, LKSI_NONE, 0, out);
    if (st == LKS_OK)
        g->buffer[g->n_buffer++] = (struct lksi_buffer){*out, start};
    return st;
}

lks_status lks_graph_batch_norm(lks_graph *g, lks_value x, const struct lks_batch_norm_params *p,
                                lks_value *y)
{
    static const struct lks_batch_norm_params none;
    struct lksi_batch_norm_attr attr;
    struct lksi_norm norm = {0};
    char name[256];
    lksi_value in[3] = {x}, out[4];
    lks_status st = check_value(g, "lks_graph_batch_norm", x, y);
    if (st != LKS_OK)
        return st;
    p = p != NULL ? p : &none;
    if (!(p->eps >= 0) || p->eps > 1e30 || !(p->momentum >= 0 && p->momentum <= 1))
        return lksi_fail(LKS_E_ARGUMENT, "batch_norm: eps is %g (expected 0 or more), momentum %g "
                                         "(expected 0 to 1)", p->eps, p->momentum);
    const struct lksi_desc *d = &g->value[x].desc;
    int64_t channels = d->dim[d->rank - 1];
    memset(&attr, 0, sizeof attr);
    attr.eps = p->eps > 0 ? (float)p->eps : 1e-5f;
    attr.momentum = p->momentum > 0 ? (float)p->momentum : 0.1f;
    if (!lksi_grow(&g->norm, &g->cap_norm, g->n_norm + 1, sizeof *g->norm))
        return LKS_E_MEMORY;
    layer_name(g, LAYER_BATCH_NORM, p->name, name, sizeof name);
    st = add_affine(g, name, channels, &in[1], &in[2]);
    if (st == LKS_OK)
        st = add_buffer(g, name, "running_mean", channels, 0.0f, &norm.running_mean);
    if (st == LKS_OK)
        st = add_buffer(g, name, "running_var", channels, 1.0f, &norm.running_var);
    norm.node = g->n_node;
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, name, "batch_norm", &attr, 3, in, out);
    if (st != LKS_OK)
        return st;
    norm.mean = out[1];
    norm.variance = out[2];
    g->norm[g->n_norm++] = norm;
    *y = out[0];
    return LKS_OK;
}

/* Group, layer and instance normalisation. */
static lks_status add_row_norm(lks_graph *g, enum layer_kind kind, lks_value x, const char *given,
                               struct lksi_group_norm_attr attr, double eps, lks_value *y)
{
    char name[256];
    lksi_value in[3] = {x}, out[3];
    const struct lksi_desc *d = &g->value[x].desc;
    lks_status st;
    if (!(eps >= 0) || eps > 1e30)
        return lksi_fail(LKS_E_ARGUMENT, "normalisation: eps is %g, expected 0 or more", eps);
    attr.eps = eps > 0 ? (float)eps : 1e-5f;
    layer_name(g, kind, given, name, sizeof name);
    st = add_affine(g, name, d->dim[d->rank - 1], &in[1], &in[2]);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, name, "group_norm", &attr, 3, in, out);
    if (st == LKS_OK)
        *y = out[0];
    return st;
}

lks_status lks_graph_group_norm(lks_graph *g, lks_value x, const struct lks_group_norm_params *p,
                                lks_value *y)
{
    struct lksi_group_norm_attr attr;
    lks_status st = check_value(g, "lks_graph_group_norm", x, y);
    if (st != LKS_OK)
        return st;
    if (p == NULL || p->groups < 1)
        return lksi_fail(LKS_E_ARGUMENT, "group_norm: `groups` must be 1 or more");
    memset(&attr, 0, sizeof attr);
    attr.groups = p->groups;
    return add_row_norm(g, LAYER_GROUP_NORM, x, p->name, attr, p->eps, y);
}

lks_status lks_graph_layer_norm(lks_graph *g, lks_value x, const struct lks_norm_params *p,
                                lks_value *y)
{
    struct lksi_group_norm_attr attr;
    lks_status st = check_value(g, "lks_graph_layer_norm", x, y);
    if (st != LKS_OK)
        return st;
    memset(&attr, 0, sizeof attr);
    attr.groups = attr.layer = 1;
    return add_row_norm(g, LAYER_LAYER_NORM, x, p != NULL ? p->name : NULL, attr,
                        p != NULL ? p->eps : 0.0, y);
}

lks_status lks_graph_instance_norm(lks_graph *g, lks_value x, const struct lks_norm_params *p,
                                   lks_value *y)
{
    struct lksi_group_norm_attr attr;
    lks_status st = check_value(g, "lks_graph_instance_norm", x, y);
    if (st != LKS_OK)
        return st;
    memset(&attr, 0, sizeof attr);
    attr.groups = g->value[x].desc.dim[g->value[x].desc.rank - 1];
    return add_row_norm(g, LAYER_INSTANCE_NORM, x, p != NULL ? p->name : NULL, attr,
                        p != NULL ? p->eps : 0.0, y);
}

lks_status lks_graph_relu(lks_graph *g, lks_value x, lks_value *y)
{
    lksi_value out;
    lks_status st = check_value(g, "lks_graph_relu", x, y);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, "relu", "relu", NULL, 1, &x, &out);
    if (st == LKS_OK)
        *y = out;
    return st;
}

lks_status lks_graph_maxpool(lks_graph *g, lks_value x, const struct lks_pool_params *p,
                             lks_value *y)
{
    struct lksi_maxpool_attr attr;
    lksi_value out;
    lks_status st = check_value(g, "lks_graph_maxpool", x, y);
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

lks_status lks_graph_softmax_cross_entropy(lks_graph *g, lks_value logits)
{
    struct lksi_desc label = lksi_desc_make(LKSI_I32, 1, (int64_t)1);
    lksi_value in[2] = {logits}, out[3], mean;
    lks_status st = check_value(g, "lks_graph_softmax_cross_entropy", logits, &logits);
    if (st != LKS_OK)
        return st;
    if (g->loss != LKSI_NONE)
        return lksi_fail(LKS_E_ARGUMENT, "softmax_cross_entropy: the graph has a loss already");
    if (g->value[logits].desc.rank != 2)
        return lksi_fail(LKS_E_ARGUMENT, "softmax_cross_entropy: its input has %d dimensions, "
                                         "expected 1 (classes); put a dense layer before it",
                         g->value[logits].desc.rank - 1);
    label.dim[0] = g->batch;
    st = lksi_graph_add_input(g, "label", &label, true, &in[1]);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, "loss", "softmax_cross_entropy", NULL, 2, in, out);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, "loss_mean", "batch_mean", NULL, 1, &out[0], &mean);
    if (st != LKS_OK)
        return st;
    g->logits = logits;
    g->label = in[1];
    g->loss = mean;
    g->prob = out[1];
    g->hit = out[2];
    return LKS_OK;
}
