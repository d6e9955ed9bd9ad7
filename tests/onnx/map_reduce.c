/*
 * map_reduce.c - sums and their kin over axes, softmax over any axis, matrix products.
 */
#include <stdlib.h>
#include <string.h>

#include "net.h"
#include "op/attr.h"

/* f(sum over axes of g(x)) */
static const struct {
    const char *onnx, *before, *reduce, *behind;
} reductions[] = {
    {"ReduceL1", "abs", "sum", NULL},           {"ReduceL2", "square", "sum", "sqrt"},
    {"ReduceLogSum", NULL, "sum", "log"},       {"ReduceLogSumExp", "exp", "sum", "log"},
    {"ReduceMax", NULL, "max", NULL},           {"ReduceMean", NULL, "mean", NULL},
    {"ReduceMin", NULL, "min", NULL},           {"ReduceSum", NULL, "sum", NULL},
    {"ReduceSumSquare", "square", "sum", NULL},
};

static bool axes_of(struct net *net, const Onnx__NodeProto *n, int rank, unsigned *mask)
{
    int64_t axes[2 * ONNX_MAX_RANK];
    int count, axis;
    if (!net_list(net, n, 1, "axes", axes, &count))
        return false;
    *mask = 0;
    if (count <= 0 && (count < 0 || onnx_attr_int(n, "noop_with_empty_axes", 0) == 0))
        *mask = (1u << rank) - 1u;
    if (count < 0 && onnx_attr_int(n, "noop_with_empty_axes", 0) != 0)
        *mask = 0;
    for (int i = 0; i < count; i++) {
        if (!net_axis(net, axes[i], rank, &axis))
            return false;
        *mask |= 1u << axis;
    }
    return true;
}

static const char *reduce(struct net *net, const Onnx__NodeProto *n)
{
    size_t i = 0;
    bool keep = onnx_attr_int(n, "keepdims", 1) != 0;
    lksi_value x;
    struct net_shape s, to;
    unsigned mask;
    while (strcmp(reductions[i].onnx, n->op_type) != 0)
        i++;
    if (!net_tensor(net, n, 0, &x, &s) || !axes_of(net, n, s.rank, &mask))
        return net->why;
    if (reductions[i].before != NULL && !net_unary(net, reductions[i].before, 0, 0, x, &x))
        return net->why;
    if (mask == 0 && !net_unary(net, "mul_const", 1.0f, 0, x, &x))
        return net->why;
    if (!net_reduce(net, reductions[i].reduce, x, &s, mask, keep, &x, &to))
        return net->why;
    if (reductions[i].behind != NULL && !net_unary(net, reductions[i].behind, 0, 0, x, &x))
        return net->why;
    return net_result(net, n, 0, x, &to);
}

/* The axis comes last, and goes back. Up to version 12 it is all axes from `axis` on. */
static const char *softmax(struct net *net, const Onnx__NodeProto *n)
{
    static const int turn[3] = {0, 2, 1};
    struct lksi_softmax_attr a = {0};
    lksi_value x;
    struct net_shape s;
    int axis;
    if (!net_tensor(net, n, 0, &x, &s) ||
        !net_axis(net, onnx_attr_int(n, "axis", net->opset < 13 ? 1 : -1), s.rank, &axis))
        return net->why;
    int end = net->opset < 13 ? s.rank : axis + 1;
    int64_t before = net_product(&s, 0, axis), behind = net_product(&s, end, s.rank);
    int64_t row = net_product(&s, axis, end);
    struct net_shape three = net_dims(3, before, row, behind);
    struct net_shape back = net_dims(3, before, behind, row);
    if (!net_transpose(net, x, &three, turn, &x) || !net_view(net, x, &back, &x) ||
        !net_apply(net, n->op_type[0] == 'L' ? "log_softmax" : "softmax", &a, 1, &x, &x) ||
        !net_transpose(net, x, &back, turn, &x))
        return net->why;
    return net_result(net, n, 0, x, &s);
}

/* Vectors are matrices of one row or column; batches are repeated where they broadcast. */
static const char *matmul(struct net *net, const Onnx__NodeProto *n)
{
    struct lksi_matmul_attr a = {0, 0};
    lksi_value pair[2], y;
    struct net_shape s[2], batch = {.rank = 0}, to;
    for (size_t i = 0; i < 2; i++) {
        if (!net_tensor(net, n, i, &pair[i], &s[i]))
            return net->why;
        if (s[i].rank == 1) {
            s[i].dim[1] = i == 0 ? s[i].dim[0] : 1;
            s[i].dim[0] = i == 0 ? 1 : s[i].dim[0];
            s[i].rank = -2; /* leaves the result again */
        }
        int rank = abs(s[i].rank) - 2;
        batch.rank = rank > batch.rank ? rank : batch.rank;
    }
    for (int k = 0; k < batch.rank; k++) {
        batch.dim[k] = 1;
        for (int i = 0; i < 2; i++) {
            int from = k - (batch.rank - (abs(s[i].rank) - 2));
            batch.dim[k] = from >= 0 && s[i].dim[from] != 1 ? s[i].dim[from] : batch.dim[k];
        }
    }
    int64_t count = net_size(&batch), side[2][2];
    to = batch;
    for (int i = 0; i < 2; i++) {
        struct net_shape from = s[i], full = batch;
        from.rank = abs(from.rank);
        memcpy(side[i], &from.dim[from.rank - 2], sizeof side[i]);
        memcpy(&full.dim[full.rank], side[i], sizeof side[i]);
        full.rank += 2;
        struct net_shape three = net_dims(3, count, side[i][0], side[i][1]);
        if (!net_expand(net, pair[i], &from, &full, &pair[i]) ||
            !net_view(net, pair[i], &three, &pair[i]))
            return net->why;
    }
    if (s[0].rank > 0)
        to.dim[to.rank++] = side[0][0];
    if (s[1].rank > 0)
        to.dim[to.rank++] = side[1][1];
    if (!net_apply(net, "matmul", &a, 2, pair, &y))
        return net->why;
    return net_result(net, n, 0, y, &to);
}

/* alpha * A' B' + beta * C */
static const char *gemm(struct net *net, const Onnx__NodeProto *n)
{
    struct lksi_matmul_attr a = {onnx_attr_int(n, "transA", 0) != 0,
                                 onnx_attr_int(n, "transB", 0) != 0};
    lksi_value pair[2], c, y;
    struct net_shape s[2], sc, to;
    for (size_t i = 0; i < 2; i++)
        if (!net_tensor(net, n, i, &pair[i], &s[i]))
            return net->why;
    to = net_dims(2, s[0].dim[a.transpose_a], s[1].dim[!a.transpose_b]);
    if (!net_apply(net, "matmul", &a, 2, pair, &y) ||
        !net_unary(net, "mul_const", onnx_attr_float(n, "alpha", 1.0f), 0, y, &y))
        return net->why;
    if (net_input(net, n, 2) != NULL &&
        (!net_tensor(net, n, 2, &c, &sc) ||
         !net_unary(net, "mul_const", onnx_attr_float(n, "beta", 1.0f), 0, c, &c) ||
         !net_binary(net, "add", y, &to, c, &sc, &y, NULL)))
        return net->why;
    return net_result(net, n, 0, y, &to);
}

const struct net_map net_map_reduce[] = {
    {"Gemm", gemm},
    {"LogSoftmax", softmax},
    {"MatMul", matmul},
    {"ReduceL1", reduce},
    {"ReduceL2", reduce},
    {"ReduceLogSum", reduce},
    {"ReduceLogSumExp", reduce},
    {"ReduceMax", reduce},
    {"ReduceMean", reduce},
    {"ReduceMin", reduce},
    {"ReduceSum", reduce},
    {"ReduceSumSquare", reduce},
    {"Softmax", softmax},
    {NULL, NULL},
};
