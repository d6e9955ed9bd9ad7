/*
 * map_host.c - what is known before the run: constants, shapes, ranges, other types of them.
 */
#include <math.h>
#include <string.h>

#include "net.h"

#define TYPE(name) ONNX__TENSOR_PROTO__DATA_TYPE__##name

static const char *constant(struct net *net, const Onnx__NodeProto *n)
{
    const Onnx__AttributeProto *a = n->n_attribute == 1 ? n->attribute[0] : NULL;
    struct net_shape s = {.rank = 0};
    struct onnx_tensor *t;
    if (a == NULL)
        return net_no(net, "Constant without a value");
    if (a->t != NULL) {
        t = net_host(TYPE(FLOAT), &s);
        onnx_tensor_free(t);
        if (!onnx_tensor_take(t, a->t))
            net_no(net, "Constant: its tensor cannot be read");
    } else if (strcmp(a->name, "value_float") == 0) {
        t = net_host(TYPE(FLOAT), &s);
        t->f[0] = a->f;
    } else if (strcmp(a->name, "value_int") == 0) {
        t = net_host(TYPE(INT64), &s);
        t->i[0] = a->i;
    } else if (strcmp(a->name, "value_ints") == 0) {
        s = net_dims(1, (int64_t)a->n_ints);
        t = net_host(TYPE(INT64), &s);
        memcpy(t->i, a->ints, a->n_ints * sizeof *t->i);
    } else if (strcmp(a->name, "value_floats") == 0) {
        s = net_dims(1, (int64_t)a->n_floats);
        t = net_host(TYPE(FLOAT), &s);
        memcpy(t->f, a->floats, a->n_floats * sizeof *t->f);
    } else {
        return net_beyond(net, NET_TYPE);
    }
    return net_result_host(net, n, 0, t);
}

static const char *shape(struct net *net, const Onnx__NodeProto *n)
{
    const struct net_value *p = net_input(net, n, 0);
    if (p == NULL)
        return net_no(net, "Shape: its input is missing");
    int64_t first = onnx_attr_int(n, "start", 0), end = onnx_attr_int(n, "end", p->rank);
    first = first < 0 ? first + p->rank : first;
    end = end < 0 ? end + p->rank : end;
    first = first < 0 ? 0 : first > p->rank ? p->rank : first;
    end = end < first ? first : end > p->rank ? p->rank : end;
    struct net_shape s = net_dims(1, end - first);
    struct onnx_tensor *t = net_host(TYPE(INT64), &s);
    memcpy(t->i, p->dim + first, (size_t)(end - first) * sizeof *t->i);
    return net_result_host(net, n, 0, t);
}

static const char *size(struct net *net, const Onnx__NodeProto *n)
{
    const struct net_value *p = net_input(net, n, 0);
    struct net_shape s = {.rank = 0};
    if (p == NULL)
        return net_no(net, "Size: its input is missing");
    int64_t count = net_count(p->rank, p->dim);
    struct onnx_tensor *t = net_host(TYPE(INT64), &s);
    t->i[0] = count;
    return net_result_host(net, n, 0, t);
}

static const char *constant_of_shape(struct net *net, const Onnx__NodeProto *n)
{
    const Onnx__AttributeProto *a = onnx_attr(n, "value");
    struct onnx_tensor value = {0};
    struct net_shape s = {.rank = 0};
    if (!net_list(net, n, 0, NULL, s.dim, &s.rank))
        return net->why;
    if (a != NULL && !onnx_tensor_take(&value, a->t))
        return net_no(net, "ConstantOfShape: its value cannot be read");
    if (a == NULL || value.f != NULL) {
        lksi_value y;
        float number = a != NULL ? value.f[0] : 0.0f;
        onnx_tensor_free(&value);
        return net_size(&s) == 0                         ? net_beyond(net, NET_EMPTY)
               : net_fill(net, number, net_size(&s), &y) ? net_result(net, n, 0, y, &s)
                                                         : net->why;
    }
    if (value.i == NULL)
        return net_beyond(net, NET_TYPE);
    struct onnx_tensor *t = net_host(value.type, &s);
    for (int64_t e = 0; e < t->count; e++)
        t->i[e] = value.i[0];
    onnx_tensor_free(&value);
    return net_result_host(net, n, 0, t);
}

static const char *range(struct net *net, const Onnx__NodeProto *n)
{
    const struct onnx_tensor *t[3];
    for (size_t i = 0; i < 3; i++) {
        t[i] = net_known(net, n, i);
        if (t[i] == NULL)
            return net_beyond(net, NET_LATE);
        if (t[i]->f == NULL && t[i]->i == NULL)
            return net_beyond(net, NET_TYPE);
    }
    bool whole = t[0]->f == NULL;
    double v[3];
    for (int i = 0; i < 3; i++)
        v[i] = whole ? (double)t[i]->i[0] : (double)t[i]->f[0];
    double count = ceil((v[1] - v[0]) / v[2]);
    struct net_shape s = net_dims(1, (int64_t)(count > 0 ? count : 0));
    struct onnx_tensor *y = net_host(t[0]->type, &s);
    for (int64_t e = 0; e < y->count; e++)
        if (whole)
            y->i[e] = t[0]->i[0] + e * t[2]->i[0];
        else
            y->f[e] = (float)(v[0] + (double)e * v[2]);
    return net_result_host(net, n, 0, y);
}

/* Floats stay floats, booleans become floats; the rest is for the host. */
static const char *cast(struct net *net, const Onnx__NodeProto *n)
{
    int to = (int)onnx_attr_int(n, "to", 0);
    const struct net_value *p = net_input(net, n, 0);
    const struct onnx_tensor *t = net_known(net, n, 0);
    bool whole = to == TYPE(INT64) || to == TYPE(INT32) || to == TYPE(BOOL);
    if (p == NULL)
        return net_no(net, "Cast: its input is missing");
    if (to == TYPE(FLOAT) && (p->type == TYPE(FLOAT) || p->type == TYPE(BOOL))) {
        lksi_value x, y;
        struct net_shape s;
        if (!net_tensor(net, n, 0, &x, &s) || !net_unary(net, "mul_const", 1.0f, 0, x, &y))
            return net->why;
        return net_result(net, n, 0, y, &s);
    }
    if (t == NULL || (to != TYPE(FLOAT) && !whole) || (t->f == NULL && t->i == NULL))
        return net_beyond(net, NET_TYPE);
    struct net_shape s = net_shape_of(t);
    struct onnx_tensor *y = net_host(to, &s);
    for (int64_t e = 0; e < y->count; e++)
        if (whole)
            y->i[e] = t->i != NULL ? t->i[e] : (int64_t)t->f[e];
        else
            y->f[e] = (float)t->i[e];
    return net_result_host(net, n, 0, y);
}

const struct net_map net_map_host[] = {
    {"Cast", cast},   {"Constant", constant}, {"ConstantOfShape", constant_of_shape},
    {"Range", range}, {"Shape", shape},       {"Size", size},
    {NULL, NULL},
};
