/*
 * real_window.c - convolution, dense layers, bias gradient and pooling in double precision. They
 * scatter where the contracts gather: forward loops over every (output, tap), and gradients
 * add along the same loops, so that no index formula is shared with cl/contract.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/real.h"
#include "op/attr.h"
#include "op/conv2d.h"

/* ---- sums that are scattered: values, magnitudes ---- */

/* Clears output 0 and, where it is asked for, its bound, which gathers magnitudes first. */
static void clear(const struct lksi_real_io *io)
{
    size_t n = (size_t)lksi_desc_count(&io->call->out[0]);
    memset(io->out[0], 0, n * sizeof(double));
    if (io->err != NULL)
        memset(io->err[0], 0, n * sizeof(double));
}

static void scatter(const struct lksi_real_io *io, uint64_t e, double v)
{
    io->out[0][e] += v;
    if (io->err != NULL)
        io->err[0][e] += fabs(v);
}

/* Turns gathered magnitudes into bounds for `depth` roundings each. */
static void bounds(const struct lksi_real_io *io, double depth)
{
    int64_t n = lksi_desc_count(&io->call->out[0]);
    for (int64_t e = 0; e < n && io->err != NULL; e++)
        io->err[0][e] = lksi_real_gamma(depth, io->err[0][e]);
}

/* x <= 0 becomes 0, which widens no bound; a mask decides exactly. */
static void apply_relu(const struct lksi_real_io *io, const double *mask)
{
    int64_t n = lksi_desc_count(&io->call->out[0]);
    for (int64_t e = 0; e < n; e++) {
        if (mask != NULL ? mask[e] <= 0.0 : io->out[0][e] <= 0.0)
            io->out[0][e] = 0.0;
        if (mask != NULL && mask[e] <= 0.0 && io->err != NULL)
            io->err[0][e] = 0.0;
    }
}

/* ---- convolution ---- */

struct conv {
    const int64_t *x, *w, *y; /* dimensions: NHWC, KRSC, NHWC */
    const struct lksi_conv2d_attr *a;
};

typedef void (*tap_fn)(const struct lksi_real_io *io, uint64_t x, uint64_t w, uint64_t y);

/* Calls `fn` for each product x*w that goes into a y, by their flat indices. */
static void conv_position(const struct lksi_real_io *io, const struct conv *c, const int64_t at[4],
                          tap_fn fn)
{
    int64_t cg = c->w[3], first = at[3] / (c->w[0] / c->a->groups) * cg;
    int64_t y = ((at[0] * c->y[1] + at[1]) * c->y[2] + at[2]) * c->y[3] + at[3];
    for (int64_t r = 0; r < c->w[1]; r++) {
        for (int64_t s = 0; s < c->w[2]; s++) {
            int64_t h = at[1] * c->a->stride_h - c->a->pad_top + r * c->a->dilation_h;
            int64_t w = at[2] * c->a->stride_w - c->a->pad_left + s * c->a->dilation_w;
            if (h < 0 || h >= c->x[1] || w < 0 || w >= c->x[2])
                continue;
            for (int64_t i = 0; i < cg; i++)
                fn(io, (uint64_t)(((at[0] * c->x[1] + h) * c->x[2] + w) * c->x[3] + first + i),
                   (uint64_t)(((at[3] * c->w[1] + r) * c->w[2] + s) * cg + i), (uint64_t)y);
        }
    }
}

static void conv_taps(const struct lksi_real_io *io, const struct conv *c, tap_fn fn)
{
    int64_t at[4];
    clear(io);
    for (at[0] = 0; at[0] < c->y[0]; at[0]++)
        for (at[1] = 0; at[1] < c->y[1]; at[1]++)
            for (at[2] = 0; at[2] < c->y[2]; at[2]++)
                for (at[3] = 0; at[3] < c->y[3]; at[3]++)
                    conv_position(io, c, at, fn);
}

static void tap_forward(const struct lksi_real_io *io, uint64_t x, uint64_t w, uint64_t y)
{
    scatter(io, y, io->in[0][x] * io->in[1][w]);
}

static void tap_data(const struct lksi_real_io *io, uint64_t x, uint64_t w, uint64_t y)
{
    scatter(io, x, io->in[0][y] * io->in[1][w]);
}

static void tap_weight(const struct lksi_real_io *io, uint64_t x, uint64_t w, uint64_t y)
{
    scatter(io, w, io->in[0][x] * io->in[1][y]);
}

static void add_bias(const struct lksi_real_io *io, int64_t k)
{
    int64_t n = lksi_desc_count(&io->call->out[0]);
    for (int64_t e = 0; e < n; e++)
        scatter(io, (uint64_t)e, io->in[2][e % k]);
}

static void conv2d(const struct lksi_real_io *io)
{
    const struct lksi_call *call = io->call;
    const struct conv c = {call->in[0].dim, call->in[1].dim, call->out[0].dim, call->attr};
    conv_taps(io, &c, tap_forward);
    if (call->n_in > 2)
        add_bias(io, c.y[3]);
    bounds(io, lksi_real_piece_depth((double)(c.w[1] * c.w[2]), (double)c.w[3]) + 1.0);
    if (c.a->relu)
        apply_relu(io, NULL);
}

static void conv2d_data_grad(const struct lksi_real_io *io)
{
    const struct lksi_call *call = io->call;
    const struct lksi_conv2d_data_grad_attr *a = call->attr;
    const struct conv c = {call->out[0].dim, call->in[1].dim, call->in[0].dim, &a->conv};
    conv_taps(io, &c, tap_data);
    if (call->n_in > 2 && call->in[2].rank == 1)
        add_bias(io, c.x[3]);
    bounds(io, lksi_real_piece_depth((double)(c.w[1] * c.w[2]),
                                     (double)(c.w[0] / a->conv.groups)) + 1.0);
    if (call->n_in > 2 && call->in[2].rank == 4)
        apply_relu(io, io->in[2]);
}

static void conv2d_weight_grad(const struct lksi_real_io *io)
{
    const struct lksi_call *call = io->call;
    const struct lksi_conv2d_weight_grad_attr *a = call->attr;
    const struct conv c = {call->in[0].dim, call->out[0].dim, call->in[1].dim, &a->conv};
    conv_taps(io, &c, tap_weight);
    bounds(io, lksi_real_stretch_depth((uint32_t)c.y[0], (uint32_t)c.y[1], (uint32_t)c.y[2],
                                       call->leaf));
}

/* ---- dense ---- */

typedef void (*product_fn)(const struct lksi_real_io *io, uint64_t x, uint64_t w, uint64_t y);

static void dense_products(const struct lksi_real_io *io, int64_t n, int64_t i, int64_t o,
                           product_fn fn)
{
    clear(io);
    for (int64_t a = 0; a < n; a++)
        for (int64_t b = 0; b < o; b++)
            for (int64_t c = 0; c < i; c++)
                fn(io, (uint64_t)(a * i + c), (uint64_t)(b * i + c), (uint64_t)(a * o + b));
}

/* The last dimension. */
static int64_t wide(const struct lksi_desc *d)
{
    return d->dim[d->rank - 1];
}

static void dense(const struct lksi_real_io *io)
{
    const struct lksi_call *call = io->call;
    const struct lksi_dense_attr *a = call->attr;
    int64_t i = wide(&call->in[0]), o = wide(&call->out[0]);
    dense_products(io, lksi_desc_count(&call->in[0]) / i, i, o, tap_forward);
    if (call->n_in > 2)
        add_bias(io, o);
    bounds(io, lksi_real_piece_depth(1.0, (double)i) + 1.0);
    if (a->relu)
        apply_relu(io, NULL);
}

static void dense_data_grad(const struct lksi_real_io *io)
{
    const struct lksi_call *call = io->call;
    int64_t i = wide(&call->out[0]), o = wide(&call->in[0]);
    dense_products(io, lksi_desc_count(&call->in[0]) / o, i, o, tap_data);
    bounds(io, lksi_real_piece_depth(1.0, (double)o));
    if (call->n_in > 2)
        apply_relu(io, io->in[2]);
}

static void dense_weight_grad(const struct lksi_real_io *io)
{
    const struct lksi_call *call = io->call;
    int64_t i = wide(&call->in[0]), o = wide(&call->in[1]), n = call->in[0].dim[0];
    int64_t positions = lksi_desc_count(&call->in[0]) / i;
    dense_products(io, positions, i, o, tap_weight);
    bounds(io, lksi_real_stretch_depth((uint32_t)n, (uint32_t)(positions / n), 1, call->leaf));
}

static void bias_grad(const struct lksi_real_io *io)
{
    const struct lksi_desc *dy = &io->call->in[0];
    int64_t n = lksi_desc_count(dy), k = dy->dim[dy->rank - 1];
    clear(io);
    for (int64_t e = 0; e < n; e++)
        scatter(io, (uint64_t)(e % k), io->in[0][e]);
    bounds(io, lksi_real_span_depth((uint32_t)dy->dim[0], dy->rank > 2 ? (uint32_t)dy->dim[1] : 1,
                                    dy->rank > 3 ? (uint32_t)dy->dim[2] : 1, io->call->leaf));
}

/* ---- pooling ---- */

/* Flat index in x of the winner of the window behind element e of y. */
static uint64_t winner(const double *x, const int64_t *xd, const int64_t *yd,
                       const struct lksi_maxpool_attr *a, uint64_t e)
{
    int64_t c = (int64_t)e % yd[3], q = (int64_t)e / yd[3];
    int64_t ow = q % yd[2], oh = q / yd[2] % yd[1], n = q / yd[2] / yd[1];
    int64_t best = -1;
    for (int64_t r = 0; r < a->kernel_h; r++) {
        for (int64_t s = 0; s < a->kernel_w; s++) {
            int64_t h = oh * a->stride_h - a->pad_top + r * (a->dilation_h ? a->dilation_h : 1);
            int64_t w = ow * a->stride_w - a->pad_left + s * (a->dilation_w ? a->dilation_w : 1);
            int64_t at = ((n * xd[1] + h) * xd[2] + w) * xd[3] + c;
            if (h < 0 || h >= xd[1] || w < 0 || w >= xd[2])
                continue;
            if (best < 0 || x[at] > x[best])
                best = at;
        }
    }
    return (uint64_t)best;
}

static void maxpool(const struct lksi_real_io *io)
{
    const struct lksi_desc *x = &io->call->in[0], *y = &io->call->out[0];
    for (uint64_t e = 0; e < (uint64_t)lksi_desc_count(y); e++)
        lksi_real_put(io, 0, e, io->in[0][winner(io->in[0], x->dim, y->dim, io->call->attr, e)],
                      0.0);
}

static void maxpool_grad(const struct lksi_real_io *io)
{
    const struct lksi_maxpool_attr *a = io->call->attr;
    const struct lksi_desc *x = &io->call->in[0], *y = &io->call->in[1];
    clear(io);
    for (uint64_t e = 0; e < (uint64_t)lksi_desc_count(y); e++)
        scatter(io, winner(io->in[0], x->dim, y->dim, a, e), io->in[1][e]);
    bounds(io, (double)a->kernel_h * a->kernel_w);
    if (a->relu_mask)
        apply_relu(io, io->in[0]);
}

static void maxpool_pick(const struct lksi_real_io *io)
{
    const struct lksi_maxpool_attr *a = io->call->attr;
    const struct lksi_desc *x = &io->call->in[0], *y = &io->call->out[0];
    for (uint64_t e = 0; e < (uint64_t)lksi_desc_count(y); e++) {
        uint64_t at = winner(io->in[0], x->dim, y->dim, a, e);
        lksi_real_put(io, 0, e, a->relu_mask && io->in[0][at] <= 0.0 ? 0.0 : io->in[1][at], 0.0);
    }
}

/* Adds along each tap of the windows 1 / divisor of what stands at its other end: from x to y, or
 * `back`. */
static void mean_taps(const struct lksi_real_io *io, const int64_t *xd, const int64_t *yd,
                      const struct lksi_avgpool_attr *a, bool back)
{
    const struct lksi_maxpool_attr *p = &a->window;
    int64_t dh = p->dilation_h ? p->dilation_h : 1, dw = p->dilation_w ? p->dilation_w : 1;
    int64_t n = yd[0] * yd[1] * yd[2];
    for (int64_t o = 0; o < n; o++) {
        int64_t h0 = o / yd[2] % yd[1] * p->stride_h - p->pad_top;
        int64_t w0 = o % yd[2] * p->stride_w - p->pad_left;
        for (int pass = 0, count = 0; pass < 2; pass++) {
            for (int64_t t = 0; t < (int64_t)p->kernel_h * p->kernel_w; t++) {
                int64_t h = h0 + t / p->kernel_w * dh, w = w0 + t % p->kernel_w * dw;
                bool in = h >= 0 && h < xd[1] && w >= 0 && w < xd[2];
                count += pass == 0 && (in || (a->count_pad && h < xd[1] + p->pad_bottom &&
                                              w < xd[2] + p->pad_right));
                for (int64_t c = 0; pass == 1 && in && c < xd[3]; c++) {
                    int64_t x = ((o / yd[2] / yd[1] * xd[1] + h) * xd[2] + w) * xd[3] + c;
                    int64_t y = o * xd[3] + c, from = back ? y : x, to = back ? x : y;
                    scatter(io, (uint64_t)to, io->in[0][from] / count);
                }
            }
        }
    }
}

static void avgpool(const struct lksi_real_io *io)
{
    const struct lksi_avgpool_attr *a = io->call->attr;
    double k = (double)a->window.kernel_h * a->window.kernel_w, depth = 7.0;
    clear(io);
    mean_taps(io, io->call->in[0].dim, io->call->out[0].dim, a, false);
    for (double pieces = k / 4096.0; pieces > 1.0; pieces /= 2.0)
        depth += 1.0;
    bounds(io, (k < 4096.0 ? k : 4096.0) / 32.0 + depth);
}

static void avgpool_grad(const struct lksi_real_io *io)
{
    const struct lksi_avgpool_attr *a = io->call->attr;
    clear(io);
    mean_taps(io, io->call->out[0].dim, io->call->in[0].dim, a, true);
    bounds(io, (double)a->window.kernel_h * a->window.kernel_w + 1.0);
}

const struct lksi_real_entry lksi_real_windows[] = {
    {"avgpool", avgpool},
    {"avgpool_grad", avgpool_grad},
    {"bias_grad", bias_grad},
    {"conv2d", conv2d},
    {"conv2d_data_grad", conv2d_data_grad},
    {"conv2d_weight_grad", conv2d_weight_grad},
    {"dense", dense},
    {"dense_data_grad", dense_data_grad},
    {"dense_weight_grad", dense_weight_grad},
    {"maxpool", maxpool},
    {"maxpool_grad", maxpool_grad},
    {"maxpool_pick", maxpool_pick},
    {NULL, NULL},
};
