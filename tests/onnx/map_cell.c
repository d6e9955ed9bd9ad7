/*
 * map_cell.c - recurrent layers, unrolled over time from dense layers and functions of one element:
 *
 *   RNN   h' = tanh(W x + R h)
 *   GRU   z, r = sigmoid(W x + R h);  n = tanh(W x + R (r h)) or tanh(W x + r (R h));
 *         h' = (1 - z) n + z h
 *   LSTM  i, f = sigmoid(W x + R h + P c);  c' = f c + i tanh(W x + R h);
 *         o = sigmoid(W x + R h + P c');  h' = o tanh(c')
 *
 * with biases behind each product. One direction and full sequences.
 */
#include <stdlib.h>
#include <string.h>

#include "net.h"
#include "op/attr.h"

struct cell {
    struct net *net;
    int gates;
    int64_t steps, batch, in, hidden;
    bool bias, peepholes, before_reset;
    lksi_value w[4], r[4], wb[4], rb[4], p[3];
    struct net_shape state; /* [batch, hidden] */
};

/* Rows [first, first + count) of a matrix. */
static bool rows(struct net *net, lksi_value x, int64_t all, int64_t width, int64_t first,
                 int64_t count, lksi_value *out)
{
    struct net_shape s = net_dims(2, all, width), to = net_dims(2, count, width);
    struct net_cut cut[2] = {{first, 1, count}, {0, 1, width}};
    return net_view(net, x, &s, &x) && net_move(net, x, &s, cut, 0.0f, out) &&
           net_view(net, *out, &to, out);
}

static bool vector(struct net *net, lksi_value x, int64_t all, int64_t first, int64_t count,
                   lksi_value *out)
{
    struct net_shape s = net_dims(1, count);
    return rows(net, x, all, 1, first, count, out) && net_view(net, *out, &s, out);
}

static bool read_weights(struct cell *c, const Onnx__NodeProto *n)
{
    const bool lstm = n->op_type[0] == 'L';
    struct net *net = c->net;
    int64_t h = c->hidden, all = c->gates * h;
    struct net_shape s;
    lksi_value w, r, b = LKSI_NONE, p = LKSI_NONE;
    c->bias = net_input(net, n, 3) != NULL;
    c->peepholes = lstm && net_input(net, n, 7) != NULL;
    if (!net_tensor(net, n, 1, &w, &s) || !net_tensor(net, n, 2, &r, &s) ||
        (c->bias && !net_tensor(net, n, 3, &b, &s)) ||
        (c->peepholes && !net_tensor(net, n, 7, &p, &s)))
        return false;
    for (int g = 0; g < c->gates; g++)
        if (!rows(net, w, all, c->in, g * h, h, &c->w[g]) ||
            !rows(net, r, all, h, g * h, h, &c->r[g]) ||
            (c->bias && (!vector(net, b, 2 * all, g * h, h, &c->wb[g]) ||
                         !vector(net, b, 2 * all, all + g * h, h, &c->rb[g]))))
            return false;
    for (int k = 0; k < 3 && c->peepholes; k++)
        if (!vector(net, p, 3 * h, k * h, h, &c->p[k]))
            return false;
    return true;
}

/* ---- pieces of a step; states are [batch, hidden] ---- */

static bool two(const struct cell *c, const char *op, lksi_value a, lksi_value b, lksi_value *out)
{
    return net_binary(c->net, op, a, &c->state, b, &c->state, out, NULL) &&
           net_view(c->net, *out, &c->state, out);
}

static bool dense(const struct cell *c, lksi_value x, lksi_value w, lksi_value b, lksi_value *out)
{
    struct lksi_dense_attr a = {0};
    lksi_value three[3] = {x, w, b};
    return net_apply(c->net, "dense", &a, c->bias ? 3 : 2, three, out);
}

/* W x + R h of gate g */
static bool products(const struct cell *c, int g, lksi_value x, lksi_value h, lksi_value *out)
{
    lksi_value a, b;
    return dense(c, x, c->w[g], c->wb[g], &a) && dense(c, h, c->r[g], c->rb[g], &b) &&
           two(c, "add", a, b, out);
}

/* ... + P s of peephole k */
static bool peep(const struct cell *c, int k, lksi_value state, lksi_value *sum)
{
    struct net_shape one = net_dims(1, c->hidden);
    lksi_value part;
    return !c->peepholes ||
           (net_binary(c->net, "mul", state, &c->state, c->p[k], &one, &part, NULL) &&
            two(c, "add", *sum, part, sum));
}

static bool apply(const struct cell *c, const char *op, lksi_value *v)
{
    return net_unary(c->net, op, 0, 0, *v, v);
}

static bool step_rnn(const struct cell *c, lksi_value x, lksi_value *h)
{
    return products(c, 0, x, *h, h) && apply(c, "tanh", h);
}

/* Gates z, r, n. h' = n + z (h - n). */
static bool step_gru(const struct cell *c, lksi_value x, lksi_value *h)
{
    lksi_value z, r, a, b, n;
    if (!products(c, 0, x, *h, &z) || !apply(c, "sigmoid", &z) || !products(c, 1, x, *h, &r) ||
        !apply(c, "sigmoid", &r) || !dense(c, x, c->w[2], c->wb[2], &a))
        return false;
    if (c->before_reset) {
        if (!dense(c, *h, c->r[2], c->rb[2], &b) || !two(c, "mul", r, b, &b))
            return false;
    } else if (!two(c, "mul", r, *h, &b) || !dense(c, b, c->r[2], c->rb[2], &b)) {
        return false;
    }
    return two(c, "add", a, b, &n) && apply(c, "tanh", &n) && two(c, "sub", *h, n, &a) &&
           two(c, "mul", z, a, &a) && two(c, "add", n, a, h);
}

/* Gates i, o, f, c; peepholes i, o, f. */
static bool step_lstm(const struct cell *c, lksi_value x, lksi_value *h, lksi_value *memory)
{
    lksi_value i, o, f, n;
    if (!products(c, 0, x, *h, &i) || !peep(c, 0, *memory, &i) || !apply(c, "sigmoid", &i) ||
        !products(c, 2, x, *h, &f) || !peep(c, 2, *memory, &f) || !apply(c, "sigmoid", &f) ||
        !products(c, 3, x, *h, &n) || !apply(c, "tanh", &n) || !products(c, 1, x, *h, &o) ||
        !two(c, "mul", f, *memory, &f) || !two(c, "mul", i, n, &i) ||
        !two(c, "add", f, i, memory) || !peep(c, 1, *memory, &o) || !apply(c, "sigmoid", &o))
        return false;
    n = *memory;
    return apply(c, "tanh", &n) && two(c, "mul", o, n, h);
}

/* ---- the node ---- */

/* The state of input i, or zeros. */
static bool start(const struct cell *c, const Onnx__NodeProto *n, size_t i, lksi_value *v)
{
    struct net_shape s;
    if (net_input(c->net, n, i) != NULL)
        return net_tensor(c->net, n, i, v, &s) && net_view(c->net, *v, &c->state, v);
    return net_fill(c->net, 0.0f, net_size(&c->state), v) && net_view(c->net, *v, &c->state, v);
}

/* What this map has no code for; NULL: nothing. */
static const char *missing(const struct cell *c, const Onnx__NodeProto *n)
{
    static const char *const other[] = {"activations", "clip", "input_forget"};
    const struct onnx_tensor *length = net_whole(c->net, n, 4);
    char room[16];
    for (size_t i = 0; i < LKSI_COUNT(other); i++)
        if (onnx_attr(n, other[i]) != NULL)
            return other[i];
    if (strcmp(onnx_attr_text(n, "direction", "forward", room, sizeof room), "forward") != 0)
        return "direction";
    for (int64_t e = 0; length != NULL && e < length->count; e++)
        if (length->i[e] != c->steps)
            return "shorter sequences";
    return length == NULL && net_input(c->net, n, 4) != NULL ? "lengths made on the way" : NULL;
}

static bool unroll(struct cell *c, const Onnx__NodeProto *n, lksi_value x, lksi_value *each,
                   lksi_value *h, lksi_value *memory)
{
    struct net_shape now = net_dims(2, c->batch, c->in);
    if (!start(c, n, 5, h) || (c->gates == 4 && !start(c, n, 6, memory)))
        return false;
    for (int64_t t = 0; t < c->steps; t++) {
        lksi_value part;
        if (!rows(c->net, x, c->steps, c->batch * c->in, t, 1, &part) ||
            !net_view(c->net, part, &now, &part) ||
            !(c->gates == 1   ? step_rnn(c, part, h)
              : c->gates == 3 ? step_gru(c, part, h)
                              : step_lstm(c, part, h, memory)))
            return false;
        each[t] = *h;
    }
    return true;
}

/* Y, joined along time, Y_h and Y_c. With layout 1 the batch comes first. */
static const char *results(struct cell *c, const Onnx__NodeProto *n, bool first,
                           const lksi_value *each, lksi_value h, lksi_value memory)
{
    int64_t one = 1;
    struct net_shape *s = calloc((size_t)c->steps, sizeof *s);
    struct net_shape last =
        first ? net_dims(3, c->batch, one, c->hidden) : net_dims(3, one, c->batch, c->hidden);
    struct net_shape all = first ? net_dims(4, c->batch, c->steps, one, c->hidden)
                                 : net_dims(4, c->steps, one, c->batch, c->hidden);
    lksi_value y;
    for (int64_t t = 0; s != NULL && t < c->steps; t++)
        s[t] = last;
    bool good = s != NULL && net_concat(c->net, (int)c->steps, each, s, first ? 1 : 0, &y);
    free(s);
    if (!good)
        return c->net->why;
    net_result(c->net, n, 0, y, &all);
    net_result(c->net, n, 1, h, &last);
    return c->gates == 4 ? net_result(c->net, n, 2, memory, &last) : NULL;
}

static const char *recurrent(struct net *net, const Onnx__NodeProto *n)
{
    static const int swap[3] = {1, 0, 2};
    bool first = onnx_attr_int(n, "layout", 0) != 0;
    struct cell c = {.net = net, .gates = n->op_type[0] == 'R' ? 1 : n->op_type[0] == 'G' ? 3 : 4};
    lksi_value x, h, memory = LKSI_NONE;
    struct net_shape s;
    const char *no;
    if (!net_tensor(net, n, 0, &x, &s) || (first && !net_transpose(net, x, &s, swap, &x)))
        return net->why;
    c.steps = s.dim[first ? 1 : 0];
    c.batch = s.dim[first ? 0 : 1];
    c.in = s.dim[2];
    c.hidden = onnx_attr_int(n, "hidden_size", 1);
    c.before_reset = onnx_attr_int(n, "linear_before_reset", 0) != 0;
    c.state = net_dims(2, c.batch, c.hidden);
    no = missing(&c, n);
    if (no != NULL)
        return net_no(net, "%s: %s", n->op_type, no);
    lksi_value *each = calloc((size_t)c.steps, sizeof *each);
    bool good = each != NULL && read_weights(&c, n) && unroll(&c, n, x, each, &h, &memory);
    no = good ? results(&c, n, first, each, h, memory) : net->why;
    free(each);
    return no;
}

const struct net_map net_map_cell[] = {
    {"GRU", recurrent},
    {"LSTM", recurrent},
    {"RNN", recurrent},
    {NULL, NULL},
};
