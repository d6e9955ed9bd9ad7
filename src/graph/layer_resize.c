/*
 * layer_resize.c - borders and other sizes: pad, resize, depth_to_space.
 */
#include <string.h>

#include "graph/layer_shape.h"

/* ---- pad ---- */

static lks_status pad_constant(lks_graph *g, lks_value x, const struct lksi_desc *d,
                               const struct lks_pad_params *p, lks_value *y)
{
    struct lksi_move_attr a = lksi_move_all(d->rank + 1);
    memcpy(&a.value, &p->value, sizeof a.value);
    for (int k = 0; k < d->rank; k++) {
        a.axis[k + 1].begin = (int32_t)-p->before[k];
        a.axis[k + 1].size = (int32_t)(p->before[k] + d->dim[k] + p->after[k]);
    }
    return lksi_layer_apply(g, "pad", "move", &a, 1, &x, y);
}

/* Axis k of x with repeated ends: all before it is batch, all behind it channels. */
static lks_status pad_edge(lks_graph *g, lks_value x, const struct lksi_desc *d, int k,
                           int32_t before, int32_t after, lks_value *y)
{
    int32_t size = (int32_t)d->dim[k];
    struct lksi_resample_attr a = {.h = {size, before + size + after, 1, -before, 1},
                                   .w = {1, 1, 1, 0, 1}};
    struct lksi_desc to = *d;
    int64_t inner = 1;
    lks_value v;
    lks_status st;
    for (int i = k + 1; i < d->rank; i++)
        inner *= d->dim[i];
    to.dim[k] = a.h.out;
    LKSI_TRY(lksi_layer_view(g, "pad", x, 3, (const int64_t[]){size, 1, inner}, &v));
    LKSI_TRY(lksi_layer_apply(g, "pad", "resample", &a, 1, &v, &v));
    LKSI_TRY(lksi_layer_view(g, "pad", v, d->rank, to.dim, y));
fail:
    return st;
}

/* Axis k of x between its mirrored ends. */
static lks_status pad_reflect(lks_graph *g, lks_value x, const struct lksi_desc *d, int k,
                              int32_t before, int32_t after, lks_value *y)
{
    struct lksi_concat_attr join = {k + 1};
    const int32_t from[2] = {before, (int32_t)d->dim[k] - 2}, size[2] = {before, after};
    lks_value part[3];
    int n = 0;
    for (int side = 0; side < 2; side++) {
        if (side == 1)
            part[n++] = x;
        if (size[side] == 0)
            continue;
        struct lksi_move_attr a = lksi_move_all(d->rank + 1);
        a.axis[k + 1].begin = from[side];
        a.axis[k + 1].step = -1;
        a.axis[k + 1].size = size[side];
        lks_status st = lksi_layer_apply(g, "pad", "move", &a, 1, &x, &part[n++]);
        if (st != LKS_OK)
            return st;
    }
    return lksi_layer_apply(g, "pad", "concat", &join, n, part, y);
}

static lks_status check_pad(const struct lksi_desc *d, const struct lks_pad_params *p)
{
    if (p == NULL || p->mode < LKS_PAD_CONSTANT || p->mode > LKS_PAD_REFLECT)
        return lksi_fail(LKS_E_ARGUMENT, p == NULL ? "pad: the params are NULL"
                                                   : "pad: there is no mode %d",
                         p == NULL ? 0 : (int)p->mode);
    for (int k = 0; k < LKS_MAX_AXES; k++) {
        int64_t most = k >= d->rank                   ? 0
                       : p->mode == LKS_PAD_REFLECT ? d->dim[k] - 1
                                                      : INT32_MAX / 4;
        if (p->before[k] < 0 || p->before[k] > most || p->after[k] < 0 || p->after[k] > most)
            return lksi_fail(LKS_E_ARGUMENT,
                             "pad: %lld before and %lld behind axis %d; 0 to %lld wanted",
                             (long long)p->before[k], (long long)p->after[k], k, (long long)most);
    }
    return LKS_OK;
}

static lks_status pad(lks_graph *g, lks_value x, const struct lks_pad_params *p, lks_value *y)
{
    lks_status st = lksi_layer_check(g, "pad", x, y);
    lks_value v = x;
    if (st != LKS_OK)
        return st;
    struct lksi_desc d = lksi_sample(g, x);
    st = check_pad(&d, p);
    if (st != LKS_OK)
        return st;
    if (p->mode == LKS_PAD_CONSTANT)
        return pad_constant(g, x, &d, p, y);
    for (int k = 0; k < d.rank && st == LKS_OK; k++) {
        if (p->before[k] == 0 && p->after[k] == 0)
            continue;
        st = (p->mode == LKS_PAD_EDGE ? pad_edge : pad_reflect)(
            g, v, &d, k, (int32_t)p->before[k], (int32_t)p->after[k], &v);
        d.dim[k] += p->before[k] + p->after[k];
    }
    if (st == LKS_OK)
        *y = v;
    return st;
}

lks_status lks_graph_pad(lks_graph *g, lks_value x, const struct lks_pad_params *p, lks_value *y)
{
    LKSI_RETURN_WHOLE(g, pad(g, x, p, y));
}

/* ---- resize ---- */

static int64_t common(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static lks_status fail_size(const char *what, int64_t in, int64_t out)
{
    return lksi_fail(LKS_E_ARGUMENT,
                     "resize: the %s goes from %lld to %lld; 1 and more wanted, and their product "
                     "below 2^29",
                     what, (long long)in, (long long)out);
}

/* Where output o is read as (a*o + b) / d, which nearest rounds down. */
static lks_status place_axis(const struct lks_resize_params *p, const char *what, int64_t in,
                             int64_t out, struct lksi_resample_axis *axis)
{
    lks_resize_place place = p->place;
    int64_t a = in, b = 0, d = out, f;
    if (out < 1 || out > INT32_MAX)
        return fail_size(what, in, out);
    if (place == LKS_PLACE_USUAL)
        place = p->mode == LKS_RESIZE_NEAREST ? LKS_PLACE_CORNER : LKS_PLACE_HALF_PIXEL;
    if (place == LKS_PLACE_HALF_PIXEL) {
        a = 2 * in;
        b = in - out;
        d = 2 * out;
    } else if (place == LKS_PLACE_ALIGN_CORNERS) {
        a = out > 1 ? in - 1 : 0;
        d = out > 1 ? out - 1 : 1;
    }
    if (p->mode == LKS_RESIZE_NEAREST && p->round == LKS_ROUND_UP) {
        b += d - 1;
    } else if (p->mode == LKS_RESIZE_NEAREST && p->round != LKS_ROUND_DOWN) {
        b = 2 * b + d - (p->round == LKS_ROUND_HALF_DOWN ? 1 : 0);
        a *= 2;
        d *= 2;
    }
    f = common(common(a, d), b < 0 ? -b : b);
    if (d / f > 1 << 24 || a / f > INT32_MAX / out || (a * out + b) / f > INT32_MAX)
        return fail_size(what, in, out);
    *axis = (struct lksi_resample_axis){(int32_t)in, (int32_t)out, (int32_t)(a / f),
                                        (int32_t)(b / f), (int32_t)(d / f)};
    return LKS_OK;
}

static lks_status check_resize(const struct lks_resize_params *p)
{
    if (p == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "resize: the params are NULL");
    if (p->mode < LKS_RESIZE_NEAREST || p->mode > LKS_RESIZE_BILINEAR ||
        p->place < LKS_PLACE_USUAL || p->place > LKS_PLACE_ALIGN_CORNERS ||
        p->round < LKS_ROUND_DOWN || p->round > LKS_ROUND_HALF_UP)
        return lksi_fail(LKS_E_ARGUMENT, "resize: there is no mode %d, place %d or round %d",
                         (int)p->mode, (int)p->place, (int)p->round);
    if (p->factor < 0 || p->height < 0 || p->width < 0 ||
        (p->factor == 0) == (p->height == 0 && p->width == 0))
        return lksi_fail(LKS_E_ARGUMENT,
                         "resize: factor %d, height %d, width %d; a factor or sizes wanted, 1 or "
                         "more", p->factor, p->height, p->width);
    return LKS_OK;
}

static lks_status resize(lks_graph *g, lks_value x, const struct lks_resize_params *p, lks_value *y)
{
    lks_status st = lksi_layer_check(g, "resize", x, y);
    struct lksi_resample_attr a;
    lks_value v = x;
    if (st == LKS_OK)
        st = check_resize(p);
    if (st != LKS_OK)
        return st;
    struct lksi_desc d = lksi_sample(g, x);
    char text[96];
    bool sequence = d.rank == 2;
    if (d.rank != 2 && d.rank != 3)
        return lksi_fail(LKS_E_ARGUMENT, "resize: x is %s; an image [H,W,C] or a sequence [L,C] "
                                         "wanted", lksi_desc_text(&d, text));
    if (sequence && p->height != 0)
        return lksi_fail(LKS_E_ARGUMENT, "resize: x is the sequence %s, which has a width alone",
                         lksi_desc_text(&d, text));
    memset(&a, 0, sizeof a);
    a.linear = p->mode == LKS_RESIZE_BILINEAR;
    int64_t factor = p->factor == 0 ? 1 : p->factor;
    int64_t h = sequence ? 1 : d.dim[0], w = d.dim[sequence ? 0 : 1];
    LKSI_TRY(place_axis(p, "height", h, sequence ? 1 : p->height > 0 ? p->height : h * factor,
                        &a.h));
    LKSI_TRY(place_axis(p, "width", w, p->width > 0 ? p->width : w * factor, &a.w));
    if (sequence)
        LKSI_TRY(lksi_layer_as_image(g, v, &v));
    LKSI_TRY(lksi_layer_apply(g, "resize", "resample", &a, 1, &v, &v));
    if (sequence)
        LKSI_TRY(lksi_layer_as_sequence(g, v, &v));
    *y = v;
fail:
    return st;
}

lks_status lks_graph_resize(lks_graph *g, lks_value x, const struct lks_resize_params *p,
                            lks_value *y)
{
    LKSI_RETURN_WHOLE(g, resize(g, x, p, y));
}

/* ---- depth and space ---- */

/* [.., block, W, block*C] from [.., W, block, block*C] or the other way: the middle axes change. */
static lks_status swap(lks_graph *g, const char *name, lks_value x, int64_t first, int64_t second,
                       int64_t last, const int64_t *to, lks_value *y)
{
    struct lksi_move_attr a = lksi_move_all(4);
    lks_value v;
    lks_status st;
    a.axis[1].from = 2;
    a.axis[2].from = 1;
    LKSI_TRY(lksi_layer_view(g, name, x, 3, (const int64_t[]){first, second, last}, &v));
    LKSI_TRY(lksi_layer_apply(g, name, "move", &a, 1, &v, &v));
    LKSI_TRY(lksi_layer_view(g, name, v, 3, to, y));
fail:
    return st;
}

lks_status lks_graph_depth_to_space(lks_graph *g, lks_value x, int32_t block, lks_value *y)
{
    lks_status st = lksi_layer_check(g, "depth_to_space", x, y);
    char text[96];
    if (st != LKS_OK)
        return st;
    struct lksi_desc d = lksi_sample(g, x);
    int64_t b = block;
    if (d.rank != 3 || b < 1 || b > INT16_MAX || d.dim[2] % (b * b) != 0)
        return lksi_fail(LKS_E_ARGUMENT, "depth_to_space: x is %s, block %d; an image with a "
                                         "multiple of block*block channels wanted",
                         lksi_desc_text(&d, text), block);
    const int64_t to[3] = {d.dim[0] * b, d.dim[1] * b, d.dim[2] / (b * b)};
    LKSI_RETURN_WHOLE(g, swap(g, "depth_to_space", x, d.dim[1], b, d.dim[2] / b, to, y));
}

lks_status lks_graph_space_to_depth(lks_graph *g, lks_value x, int32_t block, lks_value *y)
{
    lks_status st = lksi_layer_check(g, "space_to_depth", x, y);
    char text[96];
    if (st != LKS_OK)
        return st;
    struct lksi_desc d = lksi_sample(g, x);
    int64_t b = block;
    if (d.rank != 3 || b < 1 || b > INT16_MAX || d.dim[0] % b != 0 || d.dim[1] % b != 0)
        return lksi_fail(LKS_E_ARGUMENT, "space_to_depth: x is %s, block %d; an image with height "
                                         "and width that are multiples of block wanted",
                         lksi_desc_text(&d, text), block);
    const int64_t to[3] = {d.dim[0] / b, d.dim[1] / b, d.dim[2] * b * b};
    LKSI_RETURN_WHOLE(g, swap(g, "space_to_depth", x, b, d.dim[1] / b, d.dim[2] * b, to, y));
}
