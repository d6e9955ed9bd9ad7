/*
 * map_basic.c - ONNX operators that are one operator here, and those that only rename or reshape.
 */
#include <string.h>

#include "net.h"

/* An operator of one input and no attribute, same shape. */
static const char *same(struct net *net, const Onnx__NodeProto *n, const char *op)
{
    lksi_value x = net_in(net, n, 0), y;
    const struct net_value *p;
    if (!net_apply(net, op, NULL, 1, &x, &y))
        return net->why;
    p = net_input(net, n, 0);
    int64_t dim[ONNX_MAX_RANK];
    memcpy(dim, p->dim, sizeof dim);
    return net_result(net, n, 0, y, p->rank, dim);
}

static const char *relu(struct net *net, const Onnx__NodeProto *n)
{
    return same(net, n, "relu");
}

static const char *identity(struct net *net, const Onnx__NodeProto *n)
{
    lksi_value x = net_in(net, n, 0);
    const struct net_value *p = net_input(net, n, 0);
    int64_t dim[ONNX_MAX_RANK];
    if (x == LKSI_NONE)
        return net->why;
    memcpy(dim, p->dim, sizeof dim);
    lksi_value y;
    if (!net_reshape(net, x, p->rank, dim, &y))
        return net->why;
    return net_result(net, n, 0, y, p->rank, dim);
}

static const char *flatten(struct net *net, const Onnx__NodeProto *n)
{
    lksi_value x = net_in(net, n, 0), y;
    int64_t axis = onnx_attr_int(n, "axis", 1), dim[2] = {1, 1};
    const struct net_value *p = net_input(net, n, 0);
    if (x == LKSI_NONE)
        return net->why;
    axis = axis < 0 ? axis + p->rank : axis;
    for (int k = 0; k < p->rank; k++)
        dim[k >= axis] *= p->dim[k];
    if (!net_reshape(net, x, 2, dim, &y))
        return net->why;
    return net_result(net, n, 0, y, 2, dim);
}

const struct net_map net_map_basic[] = {
    {"Flatten", flatten},
    {"Identity", identity},
    {"Relu", relu},
    {NULL, NULL},
};
