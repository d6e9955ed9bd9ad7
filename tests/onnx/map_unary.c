/*
 * map_unary.c - functions of one element.
 */
#include <float.h>
#include <string.h>

#include "net.h"

/* The numbers a and b of the function: an attribute of ONNX with its default, or the default. */
static const struct {
    const char *onnx, *op, *a, *b;
    float default_a, default_b;
} functions[] = {
    {"Abs", "abs", NULL, NULL, 0, 0},
    {"Ceil", "ceil", NULL, NULL, 0, 0},
    {"Celu", "celu", "alpha", NULL, 1, 0},
    {"Cos", "cos", NULL, NULL, 0, 0},
    {"Elu", "elu", NULL, "alpha", 1, 1},
    {"Erf", "erf", NULL, NULL, 0, 0},
    {"Exp", "exp", NULL, NULL, 0, 0},
    {"Floor", "floor", NULL, NULL, 0, 0},
    {"HardSigmoid", "hard_sigmoid", "alpha", "beta", 0.2f, 0.5f},
    {"HardSwish", "hard_swish", NULL, NULL, 1.0f / 6, 0.5f},
    {"LeakyRelu", "leaky_relu", "alpha", NULL, 0.01f, 0},
    {"Log", "log", NULL, NULL, 0, 0},
    {"Mish", "mish", NULL, NULL, 0, 0},
    {"Neg", "neg", NULL, NULL, 0, 0},
    {"Reciprocal", "reciprocal", NULL, NULL, 0, 0},
    {"Relu", "relu", NULL, NULL, 0, 0},
    {"Round", "round", NULL, NULL, 0, 0},
    {"Sigmoid", "sigmoid", NULL, NULL, 0, 0},
    {"Sign", "sign", NULL, NULL, 0, 0},
    {"Sin", "sin", NULL, NULL, 0, 0},
    {"Softplus", "softplus", NULL, NULL, 0, 0},
    {"Softsign", "softsign", NULL, NULL, 0, 0},
    {"Sqrt", "sqrt", NULL, NULL, 0, 0},
    {"Tanh", "tanh", NULL, NULL, 0, 0},
    {"ThresholdedRelu", "thresholded_relu", "alpha", NULL, 1, 0},
};

static const char *apply(struct net *net, const Onnx__NodeProto *n, const char *op, float a,
                         float b)
{
    lksi_value x, y;
    struct net_shape s;
    if (!net_tensor(net, n, 0, &x, &s) || !net_unary(net, op, a, b, x, &y))
        return net->why;
    return net_result(net, n, 0, y, &s);
}

static const char *function(struct net *net, const Onnx__NodeProto *n)
{
    size_t i = 0;
    while (strcmp(functions[i].onnx, n->op_type) != 0)
        i++;
    float a = functions[i].default_a, b = functions[i].default_b;
    a = functions[i].a != NULL ? onnx_attr_float(n, functions[i].a, a) : a;
    b = functions[i].b != NULL ? onnx_attr_float(n, functions[i].b, b) : b;
    return apply(net, n, functions[i].op, a, b);
}

/* Integers known on the host stay there. */
static const char *neg(struct net *net, const Onnx__NodeProto *n)
{
    const struct onnx_tensor *t = net_whole(net, n, 0);
    if (t == NULL)
        return function(net, n);
    struct net_shape s = net_shape_of(t);
    struct onnx_tensor *y = net_host(t->type, &s);
    for (int64_t e = 0; e < y->count; e++)
        y->i[e] = -t->i[e];
    return net_result_host(net, n, 0, y);
}

static const char *selu(struct net *net, const Onnx__NodeProto *n)
{
    float gamma = onnx_attr_float(n, "gamma", 1.05070102214813232421875f);
    return apply(net, n, "elu", gamma,
                 gamma * onnx_attr_float(n, "alpha", 1.67326319217681884765625f));
}

static const char *gelu(struct net *net, const Onnx__NodeProto *n)
{
    char room[16];
    bool tanh = strcmp(onnx_attr_text(n, "approximate", "none", room, sizeof room), "tanh") == 0;
    return apply(net, n, tanh ? "gelu_tanh" : "gelu", 0, 0);
}

/* The limits are inputs, in old models attributes. */
static const char *clip(struct net *net, const Onnx__NodeProto *n)
{
    float limit[2] = {onnx_attr_float(n, "min", -FLT_MAX), onnx_attr_float(n, "max", FLT_MAX)};
    for (size_t i = 0; i < 2; i++) {
        const struct onnx_tensor *t = net_known(net, n, i + 1);
        if (t == NULL && net_input(net, n, i + 1) != NULL)
            return net_beyond(net, NET_LATE);
        if (t != NULL && (t->f == NULL || t->count != 1))
            return net_beyond(net, NET_TYPE);
        if (t != NULL)
            limit[i] = t->f[0];
    }
    return apply(net, n, "clamp", limit[0], limit[1]);
}

/* relu(x) + slope * min(x, 0); up to version 6 there is one slope a channel. */
static const char *prelu(struct net *net, const Onnx__NodeProto *n)
{
    lksi_value x, slope, zero, up, down, y;
    struct net_shape s, ss, one = {.rank = 0};
    if (!net_tensor(net, n, 0, &x, &s) || !net_tensor(net, n, 1, &slope, &ss))
        return net->why;
    for (int k = 2; net->opset < 7 && net_size(&ss) > 1 && k < s.rank; k++)
        ss.dim[ss.rank++] = 1;
    if (!net_number(net, 0.0f, &zero) || !net_apply(net, "relu", NULL, 1, &x, &up) ||
        !net_binary(net, "minimum", x, &s, zero, &one, &down, NULL) ||
        !net_binary(net, "mul", down, &s, slope, &ss, &down, NULL) ||
        !net_binary(net, "add", up, &s, down, &s, &y, NULL))
        return net->why;
    return net_result(net, n, 0, y, &s);
}

const struct net_map net_map_unary[] = {
    {"Abs", function},
    {"Ceil", function},
    {"Celu", function},
    {"Cos", function},
    {"Elu", function},
    {"Erf", function},
    {"Exp", function},
    {"Floor", function},
    {"HardSigmoid", function},
    {"HardSwish", function},
    {"LeakyRelu", function},
    {"Log", function},
    {"Mish", function},
    {"Neg", neg},
    {"Reciprocal", function},
    {"Relu", function},
    {"Round", function},
    {"Sigmoid", function},
    {"Sign", function},
    {"Sin", function},
    {"Softplus", function},
    {"Softsign", function},
    {"Sqrt", function},
    {"Tanh", function},
    {"ThresholdedRelu", function},
    {"Clip", clip},
    {"Gelu", gelu},
    {"PRelu", prelu},
    {"Selu", selu},
    {NULL, NULL},
};
