/*
 * map_update.c - the operators of ai.onnx.preview.training: gradients, and optimisers as the
 * library's own with the numbers that ONNX's formulas ask for:
 *
 *   Adagrad   lr = R / (1 + T * decay_factor)
 *   Adam      lr = R * sqrt(1 - beta^T) / (1 - alpha^T) if T > 0, outside the root (r2 = 1)
 *   Momentum  the gradient counts beta times from the second update on: that is a momentum of V /
 * beta with lr * beta
 */
#include <math.h>
#include <string.h>

#include "contract/update.h"
#include "net.h"

#define FLOAT ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT
#define INT32 ONNX__TENSOR_PROTO__DATA_TYPE__INT32

struct rule {
    const char *op;
    int states;
    float hyper[LKS_UPDATE_HYPER];
    float post;  /* decay of the new parameters */
    float scale; /* states of the library = those of ONNX / scale */
};

static void adagrad(const Onnx__NodeProto *n, double rate, double step, struct rule *r)
{
    r->op = "adagrad";
    r->hyper[0] = (float)(rate / (1 + step * (double)onnx_attr_float(n, "decay_factor", 0.0f)));
    r->hyper[5] = onnx_attr_float(n, "epsilon", 1e-6f);
}

static void adam(const Onnx__NodeProto *n, double rate, double step, struct rule *r)
{
    double alpha = (double)onnx_attr_float(n, "alpha", 0.9f);
    double beta = (double)onnx_attr_float(n, "beta", 0.999f);
    r->op = "adam";
    r->states = 2;
    r->hyper[0] =
        (float)(step > 0 ? rate * sqrt(1 - pow(beta, step)) / (1 - pow(alpha, step)) : rate);
    r->hyper[1] = (float)(1 - alpha);
    r->hyper[2] = (float)beta;
    r->hyper[3] = (float)(1 - beta);
    r->hyper[4] = 1.0f;
    r->hyper[5] = onnx_attr_float(n, "epsilon", 1e-6f);
    r->hyper[7] = 1.0f;
    r->post = onnx_attr_float(n, "norm_coefficient_post", 0.0f);
}

static void momentum(const Onnx__NodeProto *n, double rate, double step, struct rule *r)
{
    char room[16];
    const char *mode = onnx_attr_text(n, "mode", "standard", room, sizeof room);
    double beta = step > 0 ? (double)onnx_attr_float(n, "beta", 1.0f) : 1.0;
    bool nesterov = strcmp(mode, "nesterov") == 0;
    r->op = nesterov ? "sgd_nesterov" : "sgd";
    r->hyper[0] = (float)(rate * beta);
    r->hyper[1] = onnx_attr_float(n, "alpha", 0.0f);
    r->scale = (float)beta;
}

/* The row of numbers, the flag and the row of each block, behind the states. */
static bool tables(struct net *net, const struct rule *r, int64_t count, lksi_value *in)
{
    struct net_shape s = net_dims(2, (int64_t)1, (int64_t)LKS_UPDATE_HYPER);
    struct onnx_tensor *hyper = net_host(FLOAT, &s), *flag, *group;
    memcpy(hyper->f, r->hyper, sizeof r->hyper);
    s = net_dims(1, (int64_t)1);
    flag = net_host(INT32, &s);
    s = net_dims(1, (count + LKS_UPDATE_BLOCK - 1) / LKS_UPDATE_BLOCK);
    group = net_host(INT32, &s);
    return net_feed(net, hyper, &in[0]) && net_feed(net, flag, &in[1]) &&
           net_feed(net, group, &in[2]);
}

/* Tensor k of `many`. */
static const char *one(struct net *net, const Onnx__NodeProto *n, const struct rule *r, size_t k,
                       size_t many)
{
    struct net_shape s, flat;
    lksi_value in[8], out[4];
    for (size_t j = 0; j < (size_t)(2 + r->states); j++) { /* copied: the update is in place */
        if (!net_tensor(net, n, 2 + j * many + k, &in[j], &s) ||
            !net_unary(net, "div_const", j < 2 ? 1.0f : r->scale, 0, in[j], &in[j]))
            return net->why;
        flat = net_dims(1, net_size(&s));
        if (!net_view(net, in[j], &flat, &in[j]))
            return net->why;
    }
    if (!tables(net, r, flat.dim[0], &in[2 + r->states]) ||
        !net_apply_all(net, r->op, NULL, 5 + r->states, in, out))
        return net->why;
    for (int j = 0; j < 1 + r->states; j++) {
        float times = j == 0 ? 1.0f - r->post : r->scale;
        if (!net_unary(net, "mul_const", times, 0, out[j], &out[j]))
            return net->why;
        net_result(net, n, (size_t)j * many + k, out[j], &s);
    }
    return NULL;
}

static const char *update(struct net *net, const Onnx__NodeProto *n)
{
    const struct onnx_tensor *rate = net_known(net, n, 0), *step = net_whole(net, n, 1);
    struct rule r = {.states = 1, .scale = 1.0f};
    if (rate == NULL || step == NULL)
        return net_beyond(net, NET_LATE);
    bool is_adam = strcmp(n->op_type, "Adam") == 0;
    (is_adam ? adam
     : strcmp(n->op_type, "Adagrad") == 0
         ? adagrad
         : momentum)(n, (double)rate->f[0], (double)step->i[0], &r);
    r.hyper[is_adam ? 6 : 2] = onnx_attr_float(n, "norm_coefficient", 0.0f);
    size_t many = (n->n_input - 2) / (size_t)(2 + r.states);
    for (size_t k = 0; k < many; k++)
        if (one(net, n, &r, k, many) != NULL)
            return net->why;
    return NULL;
}

/* The gradient of the sum of `y` for each of `xs`, which are its inputs too. */
static const char *gradient(struct net *net, const Onnx__NodeProto *n)
{
    const Onnx__AttributeProto *of = onnx_attr(n, "y");
    const struct net_value *y =
        of != NULL ? net_named(net, (const char *)of->s.data, of->s.len) : NULL;
    if (y == NULL || y->value == LKSI_NONE)
        return net_no(net, "Gradient of something that is not computed");
    const lksi_value sum = y->value;
    for (size_t i = 0; i < n->n_input; i++) {
        lksi_value x, dx;
        struct net_shape s;
        if (!net_tensor(net, n, i, &x, &s))
            return net->why;
        if (lksi_graph_inner_gradient(net->graph, sum, x, &dx) != LKS_OK)
            return net_no(net, "%s", lks_error_message());
        net_result(net, n, i, dx, &s);
    }
    return NULL;
}

const struct net_map net_map_update[] = {
    {"Adagrad", update},  {"Adam", update}, {"Gradient", gradient},
    {"Momentum", update}, {NULL, NULL},
};
