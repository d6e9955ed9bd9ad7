/*
 * map_loss.c - losses over labels, and gathering by indices known before the run, which is a
 * product with ones and zeros, summed over the axis.
 */
#include <string.h>

#include "net.h"
#include "op/attr.h"

#define FLOAT ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT

/* x is [before, size, behind]; y[b,k,r] = x[b, index, r] with index of mask[b or 0, k, ., r or 0].
 */
static bool pick(struct net *net, lksi_value x, const struct net_shape *x3,
                 struct onnx_tensor *mask, lksi_value *y)
{
    struct net_shape four = net_dims(4, x3->dim[0], (int64_t)1, x3->dim[1], x3->dim[2]);
    struct net_shape ms = net_shape_of(mask), s;
    lksi_value m;
    return net_feed(net, mask, &m) && net_binary(net, "mul", x, &four, m, &ms, y, &s) &&
           net_reduce(net, "sum", *y, &s, 1u << 2, false, y, NULL);
}

static int64_t wrap(int64_t index, int64_t size)
{
    return index < 0 ? index + size : index;
}

static const char *gather(struct net *net, const Onnx__NodeProto *n)
{
    const struct onnx_tensor *index = net_whole(net, n, 1);
    lksi_value x, y;
    struct net_shape s, to = {.rank = 0};
    int axis;
    if (index == NULL)
        return net_beyond(net, NET_LATE);
    if (!net_tensor(net, n, 0, &x, &s) ||
        !net_axis(net, onnx_attr_int(n, "axis", 0), s.rank, &axis))
        return net->why;
    int64_t size = s.dim[axis];
    struct net_shape three =
        net_dims(3, net_product(&s, 0, axis), size, net_product(&s, axis + 1, s.rank));
    struct net_shape ms = net_dims(4, (int64_t)1, index->count, size, (int64_t)1);
    struct onnx_tensor *mask = net_host(FLOAT, &ms);
    for (int64_t k = 0; k < index->count; k++)
        mask->f[k * size + wrap(index->i[k], size)] = 1.0f;
    for (int k = 0; k < axis; k++)
        to.dim[to.rank++] = s.dim[k];
    for (int k = 0; k < index->rank; k++)
        to.dim[to.rank++] = index->dim[k];
    for (int k = axis + 1; k < s.rank; k++)
        to.dim[to.rank++] = s.dim[k];
    if (!pick(net, x, &three, mask, &y))
        return net->why;
    return net_result(net, n, 0, y, &to);
}

/* The indices have x's shape but along the axis. */
static const char *gather_elements(struct net *net, const Onnx__NodeProto *n)
{
    const struct onnx_tensor *index = net_whole(net, n, 1);
    lksi_value x, y;
    struct net_shape s, to;
    int axis;
    if (index == NULL)
        return net_beyond(net, NET_LATE);
    if (!net_tensor(net, n, 0, &x, &s) ||
        !net_axis(net, onnx_attr_int(n, "axis", 0), s.rank, &axis))
        return net->why;
    to = net_shape_of(index);
    int64_t before = net_product(&s, 0, axis), size = s.dim[axis];
    int64_t behind = net_product(&s, axis + 1, s.rank), taken = to.dim[axis];
    if (index->count != before * taken * behind)
        return net_no(net, "GatherElements of a part of x");
    struct net_shape three = net_dims(3, before, size, behind);
    struct net_shape ms = net_dims(4, before, taken, size, behind);
    struct onnx_tensor *mask = net_host(FLOAT, &ms);
    for (int64_t e = 0; e < index->count; e++) {
        int64_t row = e / behind; /* (before, taken) */
        mask->f[(row * size + wrap(index->i[e], size)) * behind + e % behind] = 1.0f;
    }
    if (!pick(net, x, &three, mask, &y))
        return net->why;
    return net_result(net, n, 0, y, &to);
}

/* ---- losses ---- */

struct loss {
    lksi_value x;           /* [N,C,D] */
    struct net_shape s, to; /* of the scores and of the labels */
    int64_t n, classes, places;
    const struct onnx_tensor *label, *weight; /* weight: NULL without */
    bool ignores;
    int64_t ignored;
    const char *reduction;
    char room[16];
};

static bool read_loss(struct net *net, const Onnx__NodeProto *n, struct loss *l)
{
    l->label = net_whole(net, n, 1);
    l->weight = net_known(net, n, 2);
    if (l->label == NULL || (l->weight == NULL && net_input(net, n, 2) != NULL)) {
        net_beyond(net, NET_LATE);
        return false;
    }
    l->ignores = onnx_attr(n, "ignore_index") != NULL;
    l->ignored = onnx_attr_int(n, "ignore_index", 0);
    l->reduction = onnx_attr_text(n, "reduction", "mean", l->room, sizeof l->room);
    if (!net_tensor(net, n, 0, &l->x, &l->s))
        return false;
    l->n = l->s.dim[0];
    l->classes = l->s.dim[1];
    l->places = net_product(&l->s, 2, l->s.rank);
    l->to = net_shape_of(l->label);
    return true;
}

/* The losses and weights of all positions to what `reduction` asks for. */
static const char *settle(struct net *net, const Onnx__NodeProto *n, const struct loss *l,
                          lksi_value loss, lksi_value weight)
{
    struct net_shape flat = net_dims(1, l->n * l->places), one = {.rank = 0};
    bool mean = strcmp(l->reduction, "mean") == 0;
    lksi_value pair[2];
    if (strcmp(l->reduction, "none") == 0)
        return net_result(net, n, 0, loss, &l->to);
    if (!net_view(net, loss, &flat, &loss) || !net_view(net, weight, &flat, &weight) ||
        !net_apply(net, mean ? "batch_mean" : "batch_sum", NULL, 1, &loss, &pair[0]))
        return net->why;
    if (mean && (!net_apply(net, "batch_mean", NULL, 1, &weight, &pair[1]) ||
                 !net_apply(net, "loss_ratio", NULL, 2, pair, &pair[0])))
        return net->why;
    return net_result(net, n, 0, pair[0], &one);
}

/* [N,C,D] to [N*D,C] */
static bool rows(struct net *net, const struct loss *l, lksi_value *x)
{
    static const int turn[3] = {0, 2, 1};
    struct net_shape three = net_dims(3, l->n, l->classes, l->places);
    struct net_shape two = net_dims(2, l->n * l->places, l->classes);
    return net_transpose(net, l->x, &three, turn, x) && net_view(net, *x, &two, x);
}

static const char *log_prob(struct net *net, const Onnx__NodeProto *n, const struct loss *l,
                            lksi_value x)
{
    static const int turn[3] = {0, 2, 1};
    struct lksi_softmax_attr a = {0};
    struct net_shape back = net_dims(3, l->n, l->places, l->classes);
    lksi_value y;
    if (!net_apply(net, "log_softmax", &a, 1, &x, &y) || !net_transpose(net, y, &back, turn, &y))
        return net->why;
    return net_result(net, n, 1, y, &l->s);
}

static const char *cross_entropy(struct net *net, const Onnx__NodeProto *n)
{
    struct lksi_cross_entropy_attr a;
    struct net_shape flat;
    struct loss l;
    lksi_value in[2], out[4];
    if (!read_loss(net, n, &l) || !rows(net, &l, &in[0]))
        return net->why;
    flat = net_dims(1, l.n * l.places);
    struct onnx_tensor *label = net_host(ONNX__TENSOR_PROTO__DATA_TYPE__INT32, &flat);
    memcpy(label->i, l.label->i, (size_t)label->count * sizeof *label->i);
    memset(&a, 0, sizeof a);
    a.ignores = l.ignores;
    a.ignored = (int)l.ignored;
    for (int64_t c = 0; l.weight != NULL && c < l.weight->count && c < (int)LKSI_COUNT(a.weight);
         c++)
        a.weight[a.n_weight++] = l.weight->f[c];
    if (!net_feed(net, label, &in[1]) || !net_apply_all(net, "softmax_cross_entropy", &a, 2, in, out))
        return net->why;
    if (n->n_output > 1 && log_prob(net, n, &l, in[0]) != NULL)
        return net->why;
    return settle(net, n, &l, out[0], out[3]);
}

/* -weight * x[label] of each position: scores are logarithms already. */
static const char *likelihood(struct net *net, const Onnx__NodeProto *n)
{
    struct net_shape three, ms, flat;
    struct loss l;
    lksi_value two[2], y;
    if (!read_loss(net, n, &l))
        return net->why;
    three = net_dims(3, l.n, l.classes, l.places);
    ms = net_dims(4, l.n, (int64_t)1, l.classes, l.places);
    flat = net_dims(1, l.n * l.places);
    struct onnx_tensor *mask = net_host(FLOAT, &ms), *weight = net_host(FLOAT, &flat);
    for (int64_t e = 0; e < l.label->count; e++) {
        int64_t c = l.label->i[e];
        bool counts = (!l.ignores || c != l.ignored) && c >= 0 && c < l.classes;
        if (counts)
            mask->f[(e / l.places * l.classes + c) * l.places + e % l.places] = 1.0f;
        weight->f[e] = !counts ? 0.0f : l.weight != NULL ? l.weight->f[c] : 1.0f;
    }
    if (!net_feed(net, weight, &two[1]) || !pick(net, l.x, &three, mask, &y) ||
        !net_view(net, y, &flat, &y) || !net_unary(net, "neg", 0, 0, y, &two[0]) ||
        !net_apply(net, "mul", NULL, 2, two, &y))
        return net->why;
    return settle(net, n, &l, y, two[1]);
}

const struct net_map net_map_loss[] = {
    {"Gather", gather},
    {"GatherElements", gather_elements},
    {"NegativeLogLikelihoodLoss", likelihood},
    {"SoftmaxCrossEntropyLoss", cross_entropy},
    {NULL, NULL},
};
