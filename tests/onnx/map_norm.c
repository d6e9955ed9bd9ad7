/*
 * map_norm.c - normalisations, and Dropout where it draws nothing.
 */
#include <string.h>

#include "net.h"
#include "op/attr.h"

#define BOOL ONNX__TENSOR_PROTO__DATA_TYPE__BOOL

/* [N,C,...] to [N,P,1,C] and back. */
static bool enter(struct net *net, lksi_value x, const struct net_shape *s, lksi_value *out)
{
    static const int turn[3] = {0, 2, 1};
    int64_t places = net_product(s, 2, s->rank);
    struct net_shape three = net_dims(3, s->dim[0], s->dim[1], places);
    struct net_shape image = net_dims(4, s->dim[0], places, (int64_t)1, s->dim[1]);
    return net_transpose(net, x, &three, turn, &x) && net_view(net, x, &image, out);
}

static bool leave(struct net *net, lksi_value y, const struct net_shape *s, lksi_value *out)
{
    static const int turn[3] = {0, 2, 1};
    struct net_shape three = net_dims(3, s->dim[0], net_product(s, 2, s->rank), s->dim[1]);
    return net_transpose(net, y, &three, turn, out);
}

/* old * momentum + now * (1 - momentum). ONNX takes in the biased variance, the library's own
 * running statistics the unbiased one, so that batch_norm_running is not what is asked for. */
static bool running(struct net *net, lksi_value old, lksi_value now, float momentum,
                    lksi_value *out)
{
    lksi_value pair[2];
    return net_unary(net, "mul_const", momentum, 0, old, &pair[0]) &&
           net_unary(net, "mul_const", 1.0f - momentum, 0, now, &pair[1]) &&
           net_apply(net, "add", NULL, 2, pair, out);
}

static const char *batch_norm(struct net *net, const Onnx__NodeProto *n)
{
    bool training = onnx_attr_int(n, "training_mode", 0) != 0;
    float momentum = onnx_attr_float(n, "momentum", 0.9f);
    struct lksi_batch_norm_attr a;
    lksi_value in[5], out[4], y;
    struct net_shape s, one;
    memset(&a, 0, sizeof a);
    a.eps = onnx_attr_float(n, "epsilon", 1e-5f);
    if (!net_tensor(net, n, 0, &in[0], &s) || !enter(net, in[0], &s, &in[0]))
        return net->why;
    for (size_t i = 1; i < 5; i++)
        if (!net_tensor(net, n, i, &in[i], &one))
            return net->why;
    if (!net_apply_all(net, training ? "batch_norm" : "batch_norm_infer", &a, training ? 3 : 5, in,
                       out) ||
        !leave(net, out[0], &s, &y))
        return net->why;
    for (size_t i = 1; training && i < 3; i++) {
        lksi_value v;
        if (!running(net, in[2 + i], out[i], momentum, &v))
            return net->why;
        net_result(net, n, i, v, &one);
    }
    return net_result(net, n, 0, y, &s);
}

/* Instance norm: a channel a group; group norm. */
static const char *group_norm(struct net *net, const Onnx__NodeProto *n)
{
    struct lksi_group_norm_attr a;
    lksi_value in[3], out[3], y;
    struct net_shape s, one;
    memset(&a, 0, sizeof a);
    a.eps = onnx_attr_float(n, "epsilon", 1e-5f);
    if (!net_tensor(net, n, 0, &in[0], &s) || !enter(net, in[0], &s, &in[0]) ||
        !net_tensor(net, n, 1, &in[1], &one) || !net_tensor(net, n, 2, &in[2], &one))
        return net->why;
    a.groups = onnx_attr_int(n, "num_groups", s.dim[1]);
    if (!net_apply_all(net, "group_norm", &a, 3, in, out) || !leave(net, out[0], &s, &y))
        return net->why;
    return net_result(net, n, 0, y, &s);
}

static const char *layer_norm(struct net *net, const Onnx__NodeProto *n)
{
    struct lksi_group_norm_attr a;
    lksi_value in[3], out[3];
    struct net_shape s, one, row;
    int axis;
    memset(&a, 0, sizeof a);
    a.eps = onnx_attr_float(n, "epsilon", 1e-5f);
    a.groups = a.layer = 1;
    if (!net_tensor(net, n, 0, &in[0], &s) || !net_tensor(net, n, 1, &in[1], &one) ||
        !net_axis(net, onnx_attr_int(n, "axis", -1), s.rank, &axis))
        return net->why;
    row = net_dims(1, net_product(&s, axis, s.rank));
    struct net_shape rows = net_dims(2, net_product(&s, 0, axis), row.dim[0]);
    if (net_input(net, n, 2) != NULL) {
        if (!net_tensor(net, n, 2, &in[2], &one))
            return net->why;
    } else if (!net_feed(net, net_host(ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, &row), &in[2])) {
        return net->why;
    }
    if (!net_view(net, in[0], &rows, &in[0]) || !net_view(net, in[1], &row, &in[1]) ||
        !net_view(net, in[2], &row, &in[2]) || !net_apply_all(net, "group_norm", &a, 3, in, out))
        return net->why;
    net_result(net, n, 0, out[0], &s);
    for (int k = axis; k < s.rank; k++)
        s.dim[k] = 1;
    net_result(net, n, 1, out[1], &s);
    return net_result(net, n, 2, out[2], &s);
}

/* In an evaluation, or with a ratio of 0, all elements are kept. */
static const char *dropout(struct net *net, const Onnx__NodeProto *n)
{
    const struct onnx_tensor *ratio = net_known(net, n, 1), *training = net_whole(net, n, 2);
    lksi_value x, y, mask;
    struct net_shape s;
    if (training != NULL && training->i[0] != 0 &&
        (ratio == NULL || ratio->f == NULL || ratio->f[0] != 0.0f))
        return net_beyond(net, NET_RANDOM);
    if (!net_tensor(net, n, 0, &x, &s) || !net_unary(net, "mul_const", 1.0f, 0, x, &y))
        return net->why;
    if (n->n_output > 1) {
        if (!net_fill(net, 1.0f, net_size(&s), &mask))
            return net->why;
        net_result_as(net, n, 1, mask, &s, BOOL);
    }
    return net_result(net, n, 0, y, &s);
}

const struct net_map net_map_norm[] = {
    {"BatchNormalization", batch_norm}, {"Dropout", dropout},
    {"GroupNormalization", group_norm}, {"InstanceNormalization", group_norm},
    {"LayerNormalization", layer_norm}, {NULL, NULL},
};
