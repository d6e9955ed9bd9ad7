/*
 * map_resize.c - Resize, Upsample and Pad.
 *
 * The library reads output o of an axis at (a*o + b)/d, whole numbers; scales and regions of
 * interest are floats, taken as the simplest fractions near them.
 */
#include <math.h>
#include <string.h>

#include "net.h"
#include "op/attr.h"

struct fraction {
    int64_t p, q;
};

/* The first convergent within 1e-6. */
static struct fraction simplest(double v)
{
    int64_t p0 = 0, q0 = 1, p1 = 1, q1 = 0;
    double rest = fabs(v);
    for (int i = 0; i < 20; i++) {
        int64_t whole = (int64_t)floor(rest), p = whole * p1 + p0, q = whole * q1 + q0;
        p0 = p1, q0 = q1, p1 = p, q1 = q;
        if (fabs((double)p / (double)q - fabs(v)) < 1e-6 * (1 + fabs(v)) || rest == floor(rest))
            break;
        rest = 1 / (rest - floor(rest));
    }
    return (struct fraction){v < 0 ? -p1 : p1, q1};
}

struct axis {
    int64_t in, out;
    struct fraction scale;
    double start, end; /* of the region, in parts of in - 1 */
};

/* Where output o is read: (a*o + b)/d. */
static void place(const struct axis *x, const char *how, struct lksi_resample_axis *r)
{
    int64_t p = x->scale.p, q = x->scale.q, a = 2 * q, b = q - p, d = 2 * p; /* half_pixel */
    if (strcmp(how, "asymmetric") == 0) {
        a = q, b = 0, d = p;
    } else if (strcmp(how, "tf_half_pixel_for_nn") == 0) {
        b = q;
    } else if (strcmp(how, "align_corners") == 0) { /* to a length that need not be whole */
        a = x->out == 1 ? 0 : (x->in - 1) * q, b = 0, d = x->out == 1 ? 1 : x->in * p - q;
    } else if (strcmp(how, "pytorch_half_pixel") == 0 && x->out == 1) {
        a = 0, b = 0, d = 1;
    } else if (strcmp(how, "tf_crop_and_resize") == 0) {
        struct fraction s = simplest(x->start), e = simplest(x->end);
        int64_t n = x->out > 1 ? x->out - 1 : 2; /* one output reads the middle */
        a = (e.p * s.q - s.p * e.q) * (x->in - 1);
        b = s.p * e.q * n * (x->in - 1) + (x->out > 1 ? 0 : a);
        d = s.q * e.q * n;
    }
    *r = (struct lksi_resample_axis){(int32_t)x->in, (int32_t)x->out, (int32_t)a, (int32_t)b,
                                     (int32_t)d};
}

/* Nearest rounds down: the other modes are shifts of b. */
static void shift(const char *mode, struct lksi_resample_axis *r)
{
    if (strcmp(mode, "ceil") == 0) {
        r->b += r->d - 1;
    } else if (strncmp(mode, "round_prefer_", 13) == 0) {
        r->a *= 2;
        r->b = 2 * r->b + r->d - (strcmp(mode, "round_prefer_floor") == 0 ? 1 : 0);
        r->d *= 2;
    }
}

static bool outside(const struct lksi_resample_axis *r, int64_t o)
{
    int64_t at = r->a * o + r->b;
    return at < 0 || at > (int64_t)(r->in - 1) * r->d;
}

/* What is read outside the image becomes `value`. */
static bool extrapolate(struct net *net, const struct lksi_resample_attr *a,
                        const struct net_shape *to, float value, lksi_value *y)
{
    struct net_shape s[3] = {net_dims(4, (int64_t)1, (int64_t)1, to->dim[2], to->dim[3]),
                             *to,
                             {.rank = 0}},
                     same;
    struct onnx_tensor *mask = net_host(ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, &s[0]);
    lksi_value three[3] = {LKSI_NONE, *y, LKSI_NONE};
    for (int64_t e = 0; e < mask->count; e++)
        mask->f[e] = outside(&a->h, e / to->dim[3]) || outside(&a->w, e % to->dim[3]) ? 0.0f : 1.0f;
    return net_feed(net, mask, &three[0]) && net_number(net, value, &three[2]) &&
           net_where(net, three, s, y, &same);
}

/* Sizes from `sizes`, else from `scales`. */
static bool sizes_of(struct net *net, const Onnx__NodeProto *n, const struct net_shape *s,
                     struct axis *axis)
{
    size_t scales_at = strcmp(n->op_type, "Upsample") == 0 ? 1 : 2;
    const struct onnx_tensor *scales = net_known(net, n, scales_at);
    const struct onnx_tensor *sizes = net_whole(net, n, 3), *roi = net_known(net, n, 1);
    for (int k = 0; k < s->rank; k++) {
        struct axis *x = &axis[k];
        *x = (struct axis){s->dim[k], s->dim[k], {1, 1}, 0, 1};
        if (sizes != NULL && sizes->count == s->rank) {
            x->out = sizes->i[k];
            x->scale = (struct fraction){x->out, x->in};
        } else if (scales != NULL && scales->f != NULL && scales->count == s->rank) {
            x->scale = simplest((double)scales->f[k]);
            x->out = x->in * x->scale.p / x->scale.q;
        } else {
            net_beyond(net, NET_LATE);
            return false;
        }
        if (roi != NULL && roi->f != NULL && roi->count == 2 * s->rank) {
            x->start = (double)roi->f[k];
            x->end = (double)roi->f[s->rank + k];
        }
    }
    return true;
}

static const char *resize(struct net *net, const Onnx__NodeProto *n)
{
    char room[3][32];
    const char *mode = onnx_attr_text(n, "mode", "nearest", room[0], 32);
    const char *how = onnx_attr_text(
        n, "coordinate_transformation_mode",
        strcmp(n->op_type, "Upsample") == 0 ? "asymmetric" : "half_pixel", room[1], 32);
    const char *nearest = onnx_attr_text(
        n, "nearest_mode", strcmp(n->op_type, "Upsample") == 0 ? "floor" : "round_prefer_floor",
        room[2], 32);
    struct lksi_resample_attr a;
    struct axis axis[ONNX_MAX_RANK];
    struct net_shape s, to;
    lksi_value x, y;
    if (strcmp(mode, "cubic") == 0)
        return net_beyond(net, NET_CUBIC);
    if (!net_tensor(net, n, 0, &x, &s) || !sizes_of(net, n, &s, axis))
        return net->why;
    if (s.rank != 4 || axis[0].out != s.dim[0] || axis[1].out != s.dim[1])
        return net_no(net, "%s of other axes than height and width", n->op_type);
    memset(&a, 0, sizeof a);
    a.linear = mode[0] == 'l';
    place(&axis[2], how, &a.h);
    place(&axis[3], how, &a.w);
    if (!a.linear) {
        shift(nearest, &a.h);
        shift(nearest, &a.w);
    }
    to = net_dims(4, s.dim[0], s.dim[1], axis[2].out, axis[3].out);
    struct net_shape images = net_dims(4, s.dim[0] * s.dim[1], s.dim[2], s.dim[3], (int64_t)1);
    if (!net_view(net, x, &images, &x) || !net_apply(net, "resample", &a, 1, &x, &y))
        return net->why;
    if (strcmp(how, "tf_crop_and_resize") == 0 &&
        !extrapolate(net, &a, &to, onnx_attr_float(n, "extrapolation_value", 0.0f), &y))
        return net->why;
    return net_result(net, n, 0, y, &to);
}

/* ---- pads ---- */

/* The outermost element again: nearest, where what lies outside is moved to the border. */
static bool edge(struct net *net, lksi_value x, struct net_shape *s, int k, int64_t before,
                 int64_t after, lksi_value *y)
{
    struct lksi_resample_attr a;
    struct net_shape four =
        net_dims(4, net_product(s, 0, k), s->dim[k], (int64_t)1, net_product(s, k + 1, s->rank));
    int32_t in = (int32_t)s->dim[k];
    memset(&a, 0, sizeof a);
    s->dim[k] += before + after;
    a.h = (struct lksi_resample_axis){in, (int32_t)s->dim[k], 1, (int32_t)-before, 1};
    a.w = (struct lksi_resample_axis){1, 1, 1, 0, 1};
    return net_view(net, x, &four, &x) && net_apply(net, "resample", &a, 1, &x, y);
}

/* Mirrored at the outermost element: two slices that go backwards, around the middle. */
static bool reflect(struct net *net, lksi_value x, struct net_shape *s, int k, int64_t before,
                    int64_t after, lksi_value *y)
{
    struct net_shape three =
        net_dims(3, net_product(s, 0, k), s->dim[k], net_product(s, k + 1, s->rank));
    struct net_shape part[3] = {three, three, three};
    struct net_cut cut[3] = {{0, 1, three.dim[0]}, {0, -1, 0}, {0, 1, three.dim[2]}};
    lksi_value v[3] = {LKSI_NONE, x, LKSI_NONE};
    int first = before > 0 ? 0 : 1, count = 1 + (before > 0) + (after > 0);
    part[0].dim[1] = cut[1].size = before;
    cut[1].begin = before;
    if (before > 0 && !net_move(net, x, &three, cut, 0.0f, &v[0]))
        return false;
    part[2].dim[1] = cut[1].size = after;
    cut[1].begin = three.dim[1] - 2;
    if (after > 0 && !net_move(net, x, &three, cut, 0.0f, &v[2]))
        return false;
    s->dim[k] += before + after;
    return net_concat(net, count, v + first, part + first, 1, y);
}

/* Integers are taken in as floats, which hold them: a pad only moves them. */
static bool pad_input(struct net *net, const Onnx__NodeProto *n, lksi_value *x, struct net_shape *s,
                      int *type)
{
    const struct onnx_tensor *t = net_whole(net, n, 0);
    *type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    if (t == NULL)
        return net_tensor(net, n, 0, x, s);
    *type = t->type;
    *s = net_shape_of(t);
    struct onnx_tensor *f = net_host(ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, s);
    for (int64_t e = 0; e < t->count; e++)
        f->f[e] = (float)t->i[e];
    return net_feed(net, f, x);
}

static const char *pad(struct net *net, const Onnx__NodeProto *n)
{
    char room[16];
    const char *mode = onnx_attr_text(n, "mode", "constant", room, sizeof room);
    const struct onnx_tensor *value = net_known(net, n, 2);
    int64_t pads[2 * ONNX_MAX_RANK];
    struct net_cut cut[ONNX_MAX_RANK];
    struct net_shape s;
    lksi_value x;
    int count, type;
    if (!pad_input(net, n, &x, &s, &type) || !net_list(net, n, 1, "pads", pads, &count))
        return net->why;
    if (count != 2 * s.rank)
        return net_no(net, "Pad: %d numbers for %d axes", count, s.rank);
    for (int k = 0; k < s.rank; k++) {
        int64_t before = pads[k], after = pads[s.rank + k];
        cut[k] = (struct net_cut){-before, 1, s.dim[k] + before + after};
        if (mode[0] == 'c' || (before == 0 && after == 0))
            continue;
        if (!(mode[0] == 'e' ? edge : reflect)(net, x, &s, k, before, after, &x))
            return net->why;
    }
    if (mode[0] == 'c') {
        float fill =
            value != NULL && value->f != NULL ? value->f[0] : onnx_attr_float(n, "value", 0.0f);
        if (!net_move(net, x, &s, cut, fill, &x))
            return net->why;
        for (int k = 0; k < s.rank; k++)
            s.dim[k] = cut[k].size;
    }
    return net_result_as(net, n, 0, x, &s, type);
}

const struct net_map net_map_resize[] = {
    {"Pad", pad},
    {"Resize", resize},
    {"Upsample", resize},
    {NULL, NULL},
};
