/*
 * map_binary.c - operators of two or more tensors that broadcast, comparisons and Where.
 *
 * Integers known on the host (shapes, labels) are computed there; see host_binary.
 */
#include <string.h>

#include "net.h"

#define BOOL ONNX__TENSOR_PROTO__DATA_TYPE__BOOL

/* Two host tensors, or three of which the first chooses. */
static int64_t host_one(const char *op, int64_t a, int64_t b)
{
    switch (op[0]) {
    case 'A': /* Add */
        return a + b;
    case 'S': /* Sub */
        return a - b;
    case 'M': /* Mul */
        return a * b;
    case 'D': /* Div */
        return b != 0 ? a / b : 0;
    default: /* Equal */
        return a == b;
    }
}

static int64_t at(const struct onnx_tensor *t, const struct net_shape *to, int64_t e)
{
    int64_t index = 0, step = 1;
    for (int k = t->rank; k-- > 0;) {
        int64_t size = to->dim[k + to->rank - t->rank];
        index += t->dim[k] == 1 ? 0 : e % size * step;
        step *= t->dim[k];
        e /= size;
    }
    return t->i[index];
}

static const char *host_apply(struct net *net, const Onnx__NodeProto *n, int count,
                              const struct onnx_tensor *const *t)
{
    struct net_shape to = {.rank = 0};
    const char *op = n->op_type;
    for (int i = 0; i < count; i++)
        to.rank = t[i]->rank > to.rank ? t[i]->rank : to.rank;
    for (int k = 0; k < to.rank; k++) {
        to.dim[k] = 1;
        for (int i = 0; i < count; i++) {
            int from = k - (to.rank - t[i]->rank);
            if (from >= 0 && t[i]->dim[from] != 1)
                to.dim[k] = t[i]->dim[from];
        }
    }
    struct onnx_tensor *y = net_host(strcmp(op, "Equal") == 0 ? BOOL : t[count - 1]->type, &to);
    for (int64_t e = 0; e < y->count; e++)
        y->i[e] = count == 3 ? at(t[at(t[0], &to, e) != 0 ? 1 : 2], &to, e)
                             : host_one(op, at(t[0], &to, e), at(t[1], &to, e));
    return net_result_host(net, n, 0, y);
}

/* True if the node was computed on the host. */
static bool host_binary(struct net *net, const Onnx__NodeProto *n)
{
    const struct onnx_tensor *t[3];
    for (size_t i = 0; i < n->n_input; i++)
        if ((t[i] = net_whole(net, n, i)) == NULL)
            return false;
    host_apply(net, n, (int)n->n_input, t);
    return true;
}

static const struct {
    const char *onnx, *op;
} operators[] = {
    {"Add", "add"},     {"Sub", "sub"},         {"Mul", "mul"},   {"Div", "div"},
    {"Max", "maximum"}, {"Min", "minimum"},     {"Sum", "add"},   {"Mean", "add"},
    {"Equal", "equal"}, {"Greater", "greater"}, {"Less", "less"},
};

static const char *operator_of(const Onnx__NodeProto *n)
{
    size_t i = 0;
    while (strcmp(operators[i].onnx, n->op_type) != 0)
        i++;
    return operators[i].op;
}

/* Up to version 6 the second operand begins at an axis of the first. */
static bool at_axis(struct net *net, const Onnx__NodeProto *n, const struct net_shape *s,
                    struct net_shape *sx)
{
    int axis;
    if (net->opset >= 7 || onnx_attr(n, "axis") == NULL)
        return true;
    if (!net_axis(net, onnx_attr_int(n, "axis", 0), s->rank, &axis))
        return false;
    for (; axis + sx->rank < s->rank; sx->rank++)
        sx->dim[sx->rank] = 1;
    return true;
}

/* Any number of inputs, from the left. */
static bool fold(struct net *net, const Onnx__NodeProto *n, lksi_value *y, struct net_shape *s)
{
    lksi_value x;
    struct net_shape sx;
    if (!net_tensor(net, n, 0, y, s))
        return false;
    for (size_t i = 1; i < n->n_input; i++)
        if (!net_tensor(net, n, i, &x, &sx) || !at_axis(net, n, s, &sx) ||
            !net_binary(net, operator_of(n), *y, s, x, &sx, y, s))
            return false;
    return n->n_input > 1 || net_unary(net, "mul_const", 1.0f, 0.0f, *y, y);
}

static const char *several(struct net *net, const Onnx__NodeProto *n)
{
    lksi_value y;
    struct net_shape s;
    if (!fold(net, n, &y, &s))
        return net->why;
    return net_result(net, n, 0, y, &s);
}

static const char *arithmetic(struct net *net, const Onnx__NodeProto *n)
{
    return host_binary(net, n) ? NULL : several(net, n);
}

static const char *mean(struct net *net, const Onnx__NodeProto *n)
{
    lksi_value y;
    struct net_shape s;
    if (!fold(net, n, &y, &s) || !net_unary(net, "div_const", (float)n->n_input, 0.0f, y, &y))
        return net->why;
    return net_result(net, n, 0, y, &s);
}

static const char *compare(struct net *net, const Onnx__NodeProto *n)
{
    lksi_value y;
    struct net_shape s;
    if (strcmp(n->op_type, "Equal") == 0 && host_binary(net, n))
        return NULL;
    if (!fold(net, n, &y, &s))
        return net->why;
    return net_result_as(net, n, 0, y, &s, BOOL);
}

/* a >= b is max(a > b, a == b), so that a NaN gives 0. */
static const char *compare_or_equal(struct net *net, const Onnx__NodeProto *n)
{
    const char *op = n->op_type[0] == 'G' ? "greater" : "less";
    lksi_value a, b, strict, equal, y;
    struct net_shape sa, sb, s;
    if (!net_tensor(net, n, 0, &a, &sa) || !net_tensor(net, n, 1, &b, &sb) ||
        !net_binary(net, op, a, &sa, b, &sb, &strict, &s) ||
        !net_binary(net, "equal", a, &sa, b, &sb, &equal, NULL) ||
        !net_binary(net, "maximum", strict, &s, equal, &s, &y, NULL))
        return net->why;
    return net_result_as(net, n, 0, y, &s, BOOL);
}

/* An exponent that is known, as floats. */
static struct onnx_tensor *exponent(const struct onnx_tensor *t)
{
    struct net_shape s = net_shape_of(t);
    struct onnx_tensor *f = net_host(ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, &s);
    for (int64_t e = 0; e < t->count; e++)
        f->f[e] = t->f != NULL ? t->f[e] : (float)t->i[e];
    return f;
}

/* The exponent may be a tensor of integers that is known. */
static const char *power(struct net *net, const Onnx__NodeProto *n)
{
    const struct onnx_tensor *known = net_known(net, n, 1);
    lksi_value x, y, z;
    struct net_shape sx, sy, s;
    if (!net_tensor(net, n, 0, &x, &sx))
        return net->why;
    if (known != NULL && (known->f != NULL || known->i != NULL)) {
        sy = net_shape_of(known);
        if (!net_feed(net, exponent(known), &y))
            return net->why;
    } else if (!net_tensor(net, n, 1, &y, &sy)) {
        return net->why;
    }
    if (!net_binary(net, "pow", x, &sx, y, &sy, &z, &s))
        return net->why;
    return net_result(net, n, 0, z, &s);
}

static const char *where(struct net *net, const Onnx__NodeProto *n)
{
    lksi_value v[3], y;
    struct net_shape s[3], to;
    if (host_binary(net, n))
        return NULL;
    for (size_t i = 0; i < 3; i++)
        if (!net_tensor(net, n, i, &v[i], &s[i]))
            return net->why;
    if (!net_where(net, v, s, &y, &to))
        return net->why;
    return net_result(net, n, 0, y, &to);
}

const struct net_map net_map_binary[] = {
    {"Add", arithmetic},
    {"Div", arithmetic},
    {"Equal", compare},
    {"Greater", compare},
    {"GreaterOrEqual", compare_or_equal},
    {"Less", compare},
    {"LessOrEqual", compare_or_equal},
    {"Max", several},
    {"Mean", mean},
    {"Min", several},
    {"Mul", arithmetic},
    {"Pow", power},
    {"Sub", arithmetic},
    {"Sum", several},
    {"Where", where},
    {NULL, NULL},
};
