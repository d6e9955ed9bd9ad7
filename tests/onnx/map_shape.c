/*
 * map_shape.c - operators that move elements. On integers known on the host (shapes, labels) those
 * that occur in formulas of shapes are computed there.
 */
#include <string.h>

#include "net.h"

/* The values of input 0 in another shape, on the host or in the graph. */
static const char *renamed(struct net *net, const Onnx__NodeProto *n, const struct net_shape *s)
{
    const struct onnx_tensor *t = net_whole(net, n, 0);
    struct net_shape from;
    lksi_value x;
    if (t != NULL) {
        struct onnx_tensor *y = net_host(t->type, s);
        memcpy(y->i, t->i, (size_t)y->count * sizeof *y->i);
        return net_result_host(net, n, 0, y);
    }
    if (!net_tensor(net, n, 0, &x, &from))
        return net->why;
    if (net_size(&from) != net_size(s))
        return net_no(net, "%s: %lld elements to %lld", n->op_type, (long long)net_size(&from),
                      (long long)net_size(s));
    /* A copy, so that a result is never an input of the graph. */
    if (!net_unary(net, "mul_const", 1.0f, 0, x, &x))
        return net->why;
    return net_result_as(net, n, 0, x, s, net_input(net, n, 0)->type);
}

static bool input_shape(struct net *net, const Onnx__NodeProto *n, struct net_shape *s)
{
    const struct net_value *p = net_input(net, n, 0);
    if (p == NULL) {
        net_no(net, "%s: its input is missing", n->op_type);
        return false;
    }
    s->rank = p->rank;
    memcpy(s->dim, p->dim, sizeof s->dim);
    return true;
}

static const char *identity(struct net *net, const Onnx__NodeProto *n)
{
    struct net_shape s;
    return input_shape(net, n, &s) ? renamed(net, n, &s) : net->why;
}

static const char *flatten(struct net *net, const Onnx__NodeProto *n)
{
    int64_t axis = onnx_attr_int(n, "axis", 1);
    struct net_shape s;
    if (!input_shape(net, n, &s))
        return net->why;
    axis = axis < 0 ? axis + s.rank : axis;
    struct net_shape to =
        net_dims(2, net_product(&s, 0, (int)axis), net_product(&s, (int)axis, s.rank));
    return renamed(net, n, &to);
}

static const char *reshape(struct net *net, const Onnx__NodeProto *n)
{
    int64_t dim[2 * ONNX_MAX_RANK], known = 1;
    int count, open = -1;
    struct net_shape s, to = {.rank = 0};
    if (!input_shape(net, n, &s) || !net_list(net, n, 1, "shape", dim, &count))
        return net->why;
    if (net_size(&s) == 0)
        return net_beyond(net, NET_EMPTY);
    for (int k = 0; k < count && k < ONNX_MAX_RANK; k++) {
        to.dim[to.rank] = dim[k] == 0 && onnx_attr_int(n, "allowzero", 0) == 0 ? s.dim[k] : dim[k];
        if (dim[k] == -1)
            open = k;
        else
            known *= to.dim[to.rank];
        to.rank++;
    }
    if (open >= 0)
        to.dim[open] = net_size(&s) / known;
    return renamed(net, n, &to);
}

/* Squeeze and Unsqueeze. */
static const char *ones(struct net *net, const Onnx__NodeProto *n)
{
    int64_t axes[2 * ONNX_MAX_RANK];
    bool squeeze = n->op_type[0] == 'S';
    int count, axis;
    unsigned mask = 0;
    struct net_shape s, to = {.rank = 0};
    if (!input_shape(net, n, &s) || !net_list(net, n, 1, "axes", axes, &count))
        return net->why;
    int rank = squeeze ? s.rank : s.rank + count;
    for (int i = 0; i < count; i++) {
        if (!net_axis(net, axes[i], rank, &axis))
            return net->why;
        mask |= 1u << axis;
    }
    for (int k = 0; squeeze && count < 0 && k < rank; k++)
        mask |= s.dim[k] == 1 ? 1u << k : 0;
    for (int k = 0, from = 0; k < rank; k++) {
        bool one = (mask >> k & 1u) != 0;
        if (!squeeze)
            to.dim[to.rank++] = one ? 1 : s.dim[from++];
        else if (!one)
            to.dim[to.rank++] = s.dim[k];
    }
    return renamed(net, n, &to);
}

static const char *transpose(struct net *net, const Onnx__NodeProto *n)
{
    int64_t perm[2 * ONNX_MAX_RANK];
    int order[ONNX_MAX_RANK];
    lksi_value x;
    struct net_shape s, to;
    int count = onnx_attr_ints(n, "perm", perm);
    if (!net_tensor(net, n, 0, &x, &s))
        return net->why;
    to.rank = s.rank;
    for (int k = 0; k < s.rank; k++) {
        order[k] = count > 0 ? (int)perm[k] : s.rank - 1 - k;
        to.dim[k] = s.dim[order[k]];
    }
    if (!net_transpose(net, x, &s, order, &x))
        return net->why;
    return net_result(net, n, 0, x, &to);
}

/* One part of the host tensor, or of the value. */
static const char *cut(struct net *net, const Onnx__NodeProto *n, size_t out,
                       const struct net_shape *s, const struct net_cut *c)
{
    const struct onnx_tensor *t = net_whole(net, n, 0);
    struct net_shape to = {.rank = s->rank}, from;
    lksi_value x, y;
    for (int k = 0; k < s->rank; k++)
        to.dim[k] = c[k].size;
    if (t == NULL) {
        if (!net_tensor(net, n, 0, &x, &from) || !net_move(net, x, s, c, 0.0f, &y))
            return net->why;
        return net_result_as(net, n, out, y, &to, net_input(net, n, 0)->type);
    }
    struct onnx_tensor *part = net_host(t->type, &to);
    for (int64_t e = 0; e < part->count; e++) {
        int64_t rest = e, index = 0, step = 1;
        for (int k = s->rank; k-- > 0; step *= s->dim[k]) {
            index += (c[k].begin + rest % to.dim[k] * c[k].step) * step;
            rest /= to.dim[k];
        }
        part->i[e] = t->i[index];
    }
    return net_result_host(net, n, out, part);
}

static void whole(const struct net_shape *s, struct net_cut *c)
{
    for (int k = 0; k < s->rank; k++)
        c[k] = (struct net_cut){0, 1, s->dim[k]};
}

static int64_t between(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

static const char *slice(struct net *net, const Onnx__NodeProto *n)
{
    static const char *const name[4] = {"starts", "ends", "axes", NULL};
    int64_t list[4][2 * ONNX_MAX_RANK];
    int count[4], axis;
    struct net_cut c[ONNX_MAX_RANK];
    struct net_shape s;
    if (!input_shape(net, n, &s))
        return net->why;
    for (size_t i = 0; i < 4; i++)
        if (!net_list(net, n, i + 1, name[i], list[i], &count[i]))
            return net->why;
    whole(&s, c);
    for (int i = 0; i < count[0]; i++) {
        int64_t step = count[3] > 0 ? list[3][i] : 1, begin = list[0][i], end = list[1][i];
        if (!net_axis(net, count[2] > 0 ? list[2][i] : i, s.rank, &axis))
            return net->why;
        int64_t size = s.dim[axis];
        begin = between(begin < 0 ? begin + size : begin, 0, step > 0 ? size : size - 1);
        end = between(end < 0 ? end + size : end, step > 0 ? 0 : -1, size);
        int64_t take = (end - begin + step - (step > 0 ? 1 : -1)) / step;
        c[axis] = (struct net_cut){begin, step, take < 0 ? 0 : take};
    }
    return cut(net, n, 0, &s, c);
}

static const char *split(struct net *net, const Onnx__NodeProto *n)
{
    int64_t size[2 * ONNX_MAX_RANK], begin = 0;
    int count, axis;
    struct net_cut c[ONNX_MAX_RANK];
    struct net_shape s;
    const char *no = NULL;
    if (!input_shape(net, n, &s) || !net_list(net, n, 1, "split", size, &count) ||
        !net_axis(net, onnx_attr_int(n, "axis", 0), s.rank, &axis))
        return net->why;
    int64_t parts = (int64_t)n->n_output, each = (s.dim[axis] + parts - 1) / parts;
    for (size_t i = 0; i < n->n_output && no == NULL; i++) {
        int64_t rest = s.dim[axis] - begin;
        whole(&s, c);
        c[axis] = (struct net_cut){begin, 1, count > 0 ? size[i] : each < rest ? each : rest};
        begin += c[axis].size;
        no = cut(net, n, i, &s, c);
    }
    return no;
}

static const char *concat_host(struct net *net, const Onnx__NodeProto *n)
{
    struct net_shape to = net_dims(1, (int64_t)0);
    for (size_t i = 0; i < n->n_input; i++)
        to.dim[0] += net_whole(net, n, i)->count;
    struct onnx_tensor *y = net_host(net_whole(net, n, 0)->type, &to);
    int64_t at = 0;
    for (size_t i = 0; i < n->n_input; i++) {
        const struct onnx_tensor *t = net_whole(net, n, i);
        memcpy(y->i + at, t->i, (size_t)t->count * sizeof *t->i);
        at += t->count;
    }
    return net_result_host(net, n, 0, y);
}

static const char *concat(struct net *net, const Onnx__NodeProto *n)
{
    lksi_value x[32], y;
    struct net_shape s[32], to;
    int axis, count = n->n_input < 32 ? (int)n->n_input : 32;
    bool host = true;
    for (size_t i = 0; i < n->n_input; i++)
        host = host && net_whole(net, n, i) != NULL && net_whole(net, n, i)->rank == 1;
    if (host)
        return concat_host(net, n);
    for (int i = 0; i < count; i++)
        if (!net_tensor(net, n, (size_t)i, &x[i], &s[i]))
            return net->why;
    if (!net_axis(net, onnx_attr_int(n, "axis", 0), s[0].rank, &axis))
        return net->why;
    to = s[0];
    for (int i = 1; i < count; i++)
        to.dim[axis] += s[i].dim[axis];
    if (!net_concat(net, count, x, s, axis, &y))
        return net->why;
    return net_result(net, n, 0, y, &to);
}

static const char *expand(struct net *net, const Onnx__NodeProto *n)
{
    lksi_value x, y;
    struct net_shape s, given = {.rank = 0}, to;
    if (!net_tensor(net, n, 0, &x, &s) || !net_list(net, n, 1, NULL, given.dim, &given.rank))
        return net->why;
    to = given.rank > s.rank ? given : s;
    for (int k = 1; k <= to.rank; k++) {
        int64_t a = k <= s.rank ? s.dim[s.rank - k] : 1;
        int64_t b = k <= given.rank ? given.dim[given.rank - k] : 1;
        to.dim[to.rank - k] = a > b ? a : b;
    }
    if (!net_expand(net, x, &s, &to, &y))
        return net->why;
    return net_result(net, n, 0, y, &to);
}

static const char *tile(struct net *net, const Onnx__NodeProto *n)
{
    int64_t times[2 * ONNX_MAX_RANK];
    int count;
    lksi_value x;
    struct net_shape s;
    if (!net_tensor(net, n, 0, &x, &s) || !net_list(net, n, 1, NULL, times, &count))
        return net->why;
    for (int k = 0; k < count && k < s.rank; k++) { /* repeated as a new axis in front of axis k */
        struct net_shape from =
            net_dims(3, net_product(&s, 0, k), (int64_t)1, net_product(&s, k, s.rank));
        struct net_shape to = from;
        to.dim[1] = times[k];
        if (times[k] < 1)
            return net_beyond(net, NET_EMPTY);
        if (!net_expand(net, x, &from, &to, &x))
            return net->why;
        s.dim[k] *= times[k];
    }
    return net_result(net, n, 0, x, &s);
}

/* Both are a transposition of [N, a, b, c, d, e]. */
static const char *blocks(struct net *net, const Onnx__NodeProto *n)
{
    static const int orders[3][6] = {
        {0, 3, 4, 1, 5, 2}, /* DCR: N, b, b, C, H, W */
        {0, 1, 4, 2, 5, 3}, /* CRD: N, C, b, b, H, W */
        {0, 3, 5, 1, 2, 4}, /* SpaceToDepth: N, C, H, b, W, b */
    };
    int64_t b = onnx_attr_int(n, "blocksize", 1);
    char room[16];
    lksi_value x;
    struct net_shape s, six, to;
    if (!net_tensor(net, n, 0, &x, &s))
        return net->why;
    bool crd = strcmp(onnx_attr_text(n, "mode", "DCR", room, sizeof room), "CRD") == 0;
    int64_t c = s.dim[1], h = s.dim[2], w = s.dim[3];
    if (n->op_type[0] == 'S') {
        six = net_dims(6, s.dim[0], c, h / b, b, w / b, b);
        to = net_dims(4, s.dim[0], c * b * b, h / b, w / b);
    } else {
        c /= b * b;
        six = crd ? net_dims(6, s.dim[0], c, b, b, h, w) : net_dims(6, s.dim[0], b, b, c, h, w);
        to = net_dims(4, s.dim[0], c, h * b, w * b);
    }
    if (!net_transpose(net, x, &six, orders[n->op_type[0] == 'S' ? 2 : crd], &x))
        return net->why;
    return net_result(net, n, 0, x, &to);
}

const struct net_map net_map_shape[] = {
    {"Concat", concat},     {"DepthToSpace", blocks},
    {"Expand", expand},     {"Flatten", flatten},
    {"Identity", identity}, {"Reshape", reshape},
    {"Slice", slice},       {"SpaceToDepth", blocks},
    {"Split", split},       {"Squeeze", ones},
    {"Tile", tile},         {"Transpose", transpose},
    {"Unsqueeze", ones},    {NULL, NULL},
};
