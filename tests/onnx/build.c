/*
 * build.c - what the maps share: shapes, tensors, and operators that broadcast or reduce, with
 * dimensions folded until the library takes them; see net.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"
#include "op/attr.h"

#define FLOAT ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT

/* ---- shapes and tensors ---- */

struct net_shape net_dims(int rank, ...)
{
    struct net_shape s = {.rank = rank};
    va_list args;
    va_start(args, rank);
    for (int k = 0; k < rank; k++)
        s.dim[k] = va_arg(args, int64_t);
    va_end(args);
    return s;
}

struct net_shape net_shape_of(const struct onnx_tensor *t)
{
    struct net_shape s = {.rank = t->rank};
    memcpy(s.dim, t->dim, sizeof s.dim);
    return s;
}

int64_t net_size(const struct net_shape *s)
{
    return net_count(s->rank, s->dim);
}

int64_t net_product(const struct net_shape *s, int from, int to)
{
    return to > from ? net_count(to - from, s->dim + from) : 1;
}

bool net_axis(struct net *net, int64_t axis, int rank, int *out)
{
    axis = axis < 0 ? axis + rank : axis;
    if (axis < 0 || axis >= rank) {
        net_no(net, "axis %lld of %d", (long long)axis, rank);
        return false;
    }
    *out = (int)axis;
    return true;
}

bool net_tensor(struct net *net, const Onnx__NodeProto *n, size_t i, lksi_value *v,
                struct net_shape *s)
{
    const struct net_value *p;
    *v = net_in(net, n, i);
    if (*v == LKSI_NONE)
        return false;
    p = net_input(net, n, i);
    s->rank = p->rank;
    memcpy(s->dim, p->dim, sizeof s->dim);
    return true;
}

const struct onnx_tensor *net_known(const struct net *net, const Onnx__NodeProto *n, size_t i)
{
    const struct net_value *p = net_input(net, n, i);
    return p != NULL ? p->host : NULL;
}

const struct onnx_tensor *net_whole(const struct net *net, const Onnx__NodeProto *n, size_t i)
{
    const struct onnx_tensor *t = net_known(net, n, i);
    return t != NULL && t->i != NULL ? t : NULL;
}

bool net_list(struct net *net, const Onnx__NodeProto *n, size_t i, const char *name, int64_t *out,
              int *count)
{
    const struct onnx_tensor *t = net_whole(net, n, i);
    *count = -1;
    if (t == NULL && net_input(net, n, i) != NULL) {
        net_beyond(net, NET_LATE);
        return false;
    }
    if (t == NULL && name != NULL && onnx_attr(n, name) != NULL) {
        *count = onnx_attr_ints(n, name, out);
    } else if (t != NULL) {
        *count = t->count > 2 * ONNX_MAX_RANK ? 2 * ONNX_MAX_RANK : (int)t->count;
        memcpy(out, t->i, (size_t)*count * sizeof *out);
    }
    return true;
}

struct onnx_tensor *net_host(int type, const struct net_shape *s)
{
    struct onnx_tensor *t = calloc(1, sizeof *t);
    if (t == NULL)
        abort();
    t->type = type;
    t->rank = s->rank;
    memcpy(t->dim, s->dim, sizeof t->dim);
    t->count = net_size(s);
    if (type == FLOAT)
        t->f = calloc((size_t)t->count + 1, sizeof *t->f);
    else
        t->i = calloc((size_t)t->count + 1, sizeof *t->i);
    if (t->f == NULL && t->i == NULL)
        abort();
    return t;
}

bool net_number(struct net *net, float number, lksi_value *v)
{
    struct net_shape s = {.rank = 0};
    struct onnx_tensor *t = net_host(FLOAT, &s);
    t->f[0] = number;
    return net_feed(net, t, v);
}

bool net_fill(struct net *net, float number, int64_t count, lksi_value *v)
{
    struct lksi_fill_attr a;
    memset(&a, 0, sizeof a);
    a.value = number;
    a.desc.rank = 1;
    a.desc.dim[0] = count;
    return net_apply(net, "fill", &a, 0, NULL, v);
}

/* ---- broadcasting ---- */

static bool broadcast(struct net *net, const struct net_shape *a, const struct net_shape *b,
                      struct net_shape *s)
{
    *s = (struct net_shape){.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int k = 0; k < s->rank; k++) {
        int64_t p = k < s->rank - a->rank ? 1 : a->dim[k - (s->rank - a->rank)];
        int64_t q = k < s->rank - b->rank ? 1 : b->dim[k - (s->rank - b->rank)];
        if (p != q && p != 1 && q != 1) {
            net_no(net, "dimensions %lld and %lld do not broadcast", (long long)p, (long long)q);
            return false;
        }
        s->dim[k] = p == 1 ? q : p;
    }
    return true;
}

/* Views a and b of shapes that broadcast to s, with neighbours joined that both repeat alike. */
static void fold_pair(const struct net_shape *a, const struct net_shape *b,
                      const struct net_shape *s, struct net_shape *fa, struct net_shape *fb)
{
    int last = 0;
    fa->rank = fb->rank = 0;
    for (int k = 0; k < s->rank; k++) {
        int ka = k - (s->rank - a->rank), kb = k - (s->rank - b->rank);
        int64_t p = ka < 0 ? 1 : a->dim[ka], q = kb < 0 ? 1 : b->dim[kb];
        int kind = p == q ? 3 : p == 1 ? 1 : 2;
        if (s->dim[k] == 1)
            continue;
        if (kind == last) {
            fa->dim[fa->rank - 1] *= p;
            fb->dim[fb->rank - 1] *= q;
        } else {
            fa->dim[fa->rank++] = p;
            fb->dim[fb->rank++] = q;
        }
        last = kind;
    }
    if (fa->rank == 0)
        fa->dim[fa->rank++] = fb->dim[fb->rank++] = 1;
}

static bool fits(struct net *net, const struct net_shape *s)
{
    if (s->rank > LKSI_MAX_RANK)
        net_no(net, "more than %d dimensions when folded", LKSI_MAX_RANK);
    return s->rank <= LKSI_MAX_RANK;
}

bool net_expand(struct net *net, lksi_value x, const struct net_shape *s,
                const struct net_shape *to, lksi_value *out)
{
    struct net_shape from, full;
    struct lksi_reduce_attr a;
    lksi_value pair[2];
    fold_pair(s, to, to, &from, &full);
    memset(&a, 0, sizeof a);
    a.keep = 1;
    if (!fits(net, &full) || !net_view(net, x, &from, &pair[0]))
        return false;
    for (int k = 0; k < full.rank; k++)
        a.axes |= from.dim[k] != full.dim[k] ? 1u << k : 0;
    *out = pair[0];
    return a.axes == 0 ||
           (net_fill(net, 0.0f, net_size(&full), &pair[1]) &&
            net_view(net, pair[1], &full, &pair[1]) && net_apply(net, "expand", &a, 2, pair, out));
}

bool net_binary(struct net *net, const char *op, lksi_value a, const struct net_shape *sa,
                lksi_value b, const struct net_shape *sb, lksi_value *out, struct net_shape *s)
{
    struct net_shape fa, fb, to;
    lksi_value pair[2];
    if (!broadcast(net, sa, sb, &to))
        return false;
    fold_pair(sa, sb, &to, &fa, &fb);
    if (!fits(net, &fa) || !net_view(net, a, &fa, &pair[0]) || !net_view(net, b, &fb, &pair[1]))
        return false;
    if (s != NULL)
        *s = to;
    if (strcmp(op, "add") == 0 && memcmp(fa.dim, fb.dim, (size_t)fa.rank * sizeof fa.dim[0]) != 0)
        op = "add_wide";
    return net_apply(net, op, NULL, 2, pair, out);
}

bool net_where(struct net *net, const lksi_value *three, const struct net_shape *s, lksi_value *out,
               struct net_shape *to)
{
    static const char *const pick[2] = {"maximum_grad_a", "maximum_grad_b"};
    struct net_shape ab;
    lksi_value in[3], part[2];
    if (!broadcast(net, &s[1], &s[2], &ab) || !broadcast(net, &s[0], &ab, to) ||
        !net_expand(net, three[0], &s[0], to, &in[0]) || !net_view(net, in[0], to, &in[0]) ||
        !net_number(net, 0.5f, &in[1]))
        return false;
    for (int k = 0; k < 2; k++) /* the condition is 0 or 1 */
        if (!net_expand(net, three[1 + k], &s[1 + k], to, &in[2]) ||
            !net_view(net, in[2], to, &in[2]) || !net_apply(net, pick[k], NULL, 3, in, &part[k]))
            return false;
    return net_apply(net, "add", NULL, 2, part, out);
}

/* ---- functions and sums ---- */

bool net_unary(struct net *net, const char *op, float a, float b, lksi_value x, lksi_value *out)
{
    struct lksi_unary_attr attr = {a, b};
    return net_apply(net, op, &attr, 1, &x, out);
}

/* The greatest element over the axes `off` of s, one after the other: each is the height of a
 * window that fills its image. */
static bool greatest(struct net *net, lksi_value x, const struct net_shape *s, unsigned off,
                     lksi_value *out)
{
    struct net_shape now = *s;
    for (int k = 0; k < s->rank; k++) {
        struct lksi_maxpool_attr a = {
            .kernel_h = (int)s->dim[k], .kernel_w = 1, .stride_h = 1, .stride_w = 1};
        struct net_shape image = net_dims(4, net_product(&now, 0, k), now.dim[k], (int64_t)1,
                                          net_product(&now, k + 1, now.rank));
        if ((off >> k & 1u) == 0)
            continue;
        if (!net_view(net, x, &image, &x) || !net_apply(net, "maxpool", &a, 1, &x, &x))
            return false;
        now.dim[k] = 1;
    }
    *out = x;
    return true;
}

bool net_reduce(struct net *net, const char *op, lksi_value x, const struct net_shape *from,
                unsigned mask, bool keep, lksi_value *out, struct net_shape *s)
{
    struct net_shape folded = {.rank = 0}, to = {.rank = 0};
    struct lksi_reduce_attr a;
    char name[32];
    memset(&a, 0, sizeof a);
    a.keep = 1;
    for (int k = 0, last = -1; k < from->rank; k++) {
        int off = (int)(mask >> k & 1u);
        if (!off || keep)
            to.dim[to.rank++] = off ? 1 : from->dim[k];
        if (off != last)
            folded.dim[folded.rank++] = 1;
        folded.dim[folded.rank - 1] *= from->dim[k];
        a.axes |= off ? 1u << (folded.rank - 1) : 0;
        last = off;
    }
    *out = x;
    if (s != NULL)
        *s = to;
    if (strcmp(op, "max") == 0)
        return greatest(net, x, &folded, a.axes, out);
    if (strcmp(op, "min") == 0)
        return net_unary(net, "neg", 0, 0, x, &x) && greatest(net, x, &folded, a.axes, &x) &&
               net_unary(net, "neg", 0, 0, x, out);
    snprintf(name, sizeof name, "%s%s", op, (a.axes & 1u) != 0 ? "_samples" : "");
    return a.axes == 0 || (fits(net, &folded) && net_view(net, x, &folded, &x) &&
                           net_apply(net, name, &a, 1, &x, out));
}
