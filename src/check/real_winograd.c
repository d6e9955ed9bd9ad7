/*
 * real_winograd.c - convolution by Winograd's algorithm in double precision. The numbers are those
 * of the direct operators (real_window.c), since it is the same formula; the bounds are its own:
 * the magnitudes of all operands go through the transforms with every sign made positive.
 */
#include <math.h>

#include "check/real.h"
#include "op/winograd.h"

#define TRANSFORMS 13.0 /* roundings of the two inputs' and the output's transforms, bias, + 0.0f */
#define HALVED     0x1p-148 /* lost by the subnormal products with 0.5 of one u */

/* |B'||d||B|, |G||g||G'|, |A'||m||A| and what the weight gradient has in their place. */
static const double patch[16] = {1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1};
static const double kernel[12] = {1, 0, 0, .5, .5, .5, .5, .5, .5, 0, 0, 1};
static const double outputs[8] = {1, 1, 1, 0, 0, 1, 1, 1};
static const double spread[8] = {1, 0, 1, 1, 1, 1, 0, 1};
static const double weights[12] = {1, .5, .5, 0, 0, .5, .5, 0, 0, .5, .5, 1};

/* to[rows][rows] = t d t', with t[rows][cols]. */
static void transform(const double *t, int rows, int cols, const double *d, double *to)
{
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < rows; j++) {
            double sum = 0;
            for (int a = 0; a < cols; a++)
                for (int b = 0; b < cols; b++)
                    sum += t[i * cols + a] * t[j * cols + b] * d[a * cols + b];
            to[i * rows + j] = sum;
        }
    }
}

/* Magnitudes of the square of image n of x at (row, col); what is outside counts as 0. */
static void load(const double *x, const int64_t *dim, int64_t n, int64_t row, int64_t col,
                 int side, int64_t c, double *d)
{
    for (int i = 0; i < side; i++) {
        for (int j = 0; j < side; j++) {
            int64_t y = row + i, z = col + j;
            bool in = y >= 0 && y < dim[1] && z >= 0 && z < dim[2];
            d[i * side + j] = in ? fabs(x[((n * dim[1] + y) * dim[2] + z) * dim[3] + c]) : 0.0;
        }
    }
}

/* Where the kernel of channels (c, k) begins, and what a tap of it is off that. */
struct kernels {
    int64_t c_step, k_step, tap;
    bool turned;
};

/* Bounds of the tile at (2*th, 2*tw) of the result, channel k. */
static void bound_tile(const struct lksi_real_io *io, const struct kernels *w, const int64_t off[2],
                       int64_t n, int64_t th, int64_t tw, int64_t k)
{
    const int64_t *x = io->call->in[0].dim, *y = io->call->out[0].dim;
    double m[16] = {0}, lost[16] = {0}, e[4], f[4];
    for (int64_t c = 0; c < x[3]; c++) {
        double d[16], v[16], g[9], u[16];
        load(io->in[0], x, n, 2 * th + off[0], 2 * tw + off[1], 4, c, d);
        transform(patch, 4, 4, d, v);
        for (int i = 0; i < 9; i++)
            g[i] = fabs(
                io->in[1][c * w->c_step + k * w->k_step + (w->turned ? 8 - i : i) * w->tap]);
        transform(kernel, 4, 3, g, u);
        for (int i = 0; i < 16; i++) {
            m[i] += v[i] * u[i];
            lost[i] += v[i] * HALVED;
        }
    }
    transform(outputs, 2, 4, m, e);
    transform(outputs, 2, 4, lost, f);
    for (int i = 0; i < 4; i++) {
        int64_t row = 2 * th + i / 2, col = 2 * tw + i % 2;
        if (row >= y[1] || col >= y[2])
            continue;
        int64_t at = ((n * y[1] + row) * y[2] + col) * y[3] + k;
        double bias = io->call->n_in > 2 && io->call->in[2].rank == 1 ? fabs(io->in[2][k]) : 0.0;
        /* 16 chains of x[3] products may underflow */
        double depth = lksi_real_piece_depth(1.0, (double)x[3]) + TRANSFORMS;
        io->err[0][at] = lksi_real_gamma(depth, e[i] + bias) + f[i] +
                         16.0 * (double)x[3] * 0x1p-150;
    }
}

static void bound(const struct lksi_real_io *io, const struct kernels *w, const int64_t off[2])
{
    const int64_t *y = io->call->out[0].dim;
    if (io->err == NULL)
        return;
    for (int64_t n = 0; n < y[0]; n++)
        for (int64_t th = 0; 2 * th < y[1]; th++)
            for (int64_t tw = 0; 2 * tw < y[2]; tw++)
                for (int64_t k = 0; k < y[3]; k++)
                    bound_tile(io, w, off, n, th, tw, k);
}

static void winograd(const struct lksi_real_io *io)
{
    const struct lksi_conv2d_attr *a = io->call->attr;
    int64_t c = io->call->in[1].dim[3];
    lksi_real_find("conv2d")(io);
    bound(io, &(struct kernels){1, 9 * c, c, false},
          (const int64_t[]){-(int64_t)a->pad_top, -(int64_t)a->pad_left});
}

static void winograd_data_grad(const struct lksi_real_io *io)
{
    const struct lksi_conv2d_data_grad_attr *a = io->call->attr;
    int64_t c = io->call->in[1].dim[3];
    lksi_real_find("conv2d_data_grad")(io);
    bound(io, &(struct kernels){9 * c, 1, c, true},
          (const int64_t[]){(int64_t)a->conv.pad_top - 2, (int64_t)a->conv.pad_left - 2});
}

static void bound_weights(const struct lksi_real_io *io, double depth, int64_t k, int64_t c)
{
    const struct lksi_conv2d_weight_grad_attr *a = io->call->attr;
    const int64_t *x = io->call->in[0].dim, *dy = io->call->in[1].dim;
    double q[16] = {0}, out[9], tiles = 0;
    for (int64_t n = 0; n < dy[0]; n++) {
        for (int64_t th = 0; 2 * th < dy[1]; th++) {
            for (int64_t tw = 0; 2 * tw < dy[2]; tw++, tiles++) {
                double d[16], v[16], e[4], f[16];
                load(io->in[0], x, n, 2 * th - (int64_t)a->conv.pad_top,
                     2 * tw - (int64_t)a->conv.pad_left, 4, c, d);
                transform(patch, 4, 4, d, v);
                load(io->in[1], dy, n, 2 * th, 2 * tw, 2, k, e);
                transform(spread, 4, 2, e, f);
                for (int i = 0; i < 16; i++)
                    q[i] += v[i] * f[i];
            }
        }
    }
    transform(weights, 3, 4, q, out);
    for (int i = 0; i < 9; i++)
        io->err[0][(k * 9 + i) * x[3] + c] =
            lksi_real_gamma(depth + 12.0, out[i]) + 16.0 * (tiles + 4.0) * 0x1p-150;
}

static void winograd_weight_grad(const struct lksi_real_io *io)
{
    const int64_t *x = io->call->in[0].dim, *dy = io->call->in[1].dim;
    double depth =
        lksi_real_stretch_depth((uint32_t)dy[0], lks_winograd_tiles((U32)dy[1]),
                             lks_winograd_tiles((U32)dy[2]), io->call->leaf);
    lksi_real_find("conv2d_weight_grad")(io);
    for (int64_t k = 0; k < dy[3] && io->err != NULL; k++)
        for (int64_t c = 0; c < x[3]; c++)
            bound_weights(io, depth, k, c);
}

const struct lksi_real_entry lksi_real_winograd[] = {
    {"winograd", winograd},
    {"winograd_data_grad", winograd_data_grad},
    {"winograd_weight_grad", winograd_weight_grad},
    {NULL, NULL},
};
