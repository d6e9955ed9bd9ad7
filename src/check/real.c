/*
 * real.c - the table of double-precision operators, and those without windows; see real.h.
 */
#include <math.h>
#include <string.h>

#include "check/real.h"
#include "contract/leaf.h"
#include "contract/piece.h"
#include "op/attr.h"

double lksi_real_gamma(double n, double mag)
{
    double nu = n * LKSI_REAL_U;
    return nu / (1.0 - nu) * mag + n * 0x1p-150;
}

double lksi_real_piece_depth(double taps, double channels)
{
    double joined = lks_piece_taps((U32)channels);
    if (channels > LKS_PIECE)
        return LKS_PIECE + taps * ceil(channels / LKS_PIECE);
    return channels * (taps < joined ? taps : joined) + ceil(taps / joined) - 1.0;
}

/* Positions of the longest leaf; *tree: roundings of the tree over leaves, and the last ones. */
static double longest_leaf(uint32_t n, uint32_t rows, uint32_t cols, uint32_t leaf, double *tree)
{
    struct lks_leaf f = lks_leaf_make(n, rows, cols, leaf);
    *tree = ceil(log2((double)f.leaves)) + 2.0;
    return (double)f.join * f.step * cols;
}

double lksi_real_leaf_depth(uint32_t n, uint32_t rows, uint32_t cols, uint32_t leaf)
{
    double tree, chain = longest_leaf(n, rows, cols, leaf, &tree);
    return chain + tree;
}

double lksi_real_stretch_depth(uint32_t n, uint32_t rows, uint32_t cols, uint32_t leaf)
{
    double tree, chain = longest_leaf(n, rows, cols, leaf, &tree);
    double pieces = ceil(chain / LKS_STRETCH);
    return (pieces > 1.0 ? LKS_STRETCH + pieces : chain) + tree;
}

double lksi_real_span_depth(uint32_t n, uint32_t rows, uint32_t cols, uint32_t leaf)
{
    double tree, chain = longest_leaf(n, rows, cols, leaf, &tree);
    return (chain < LKS_SPAN ? chain : LKS_SPAN) + ceil(log2(ceil(chain / LKS_SPAN))) + tree;
}

double lksi_real_row_depth(double n)
{
    double piece = n < 4096.0 ? n : 4096.0;
    return ceil(piece / 32.0) + 5.0 + ceil(log2(ceil(n / 4096.0))) + 1.0;
}

static uint64_t count(const struct lksi_real_io *io)
{
    return (uint64_t)lksi_desc_count(&io->call->out[0]);
}

/* ---- elements ---- */

static void add(const struct lksi_real_io *io)
{
    for (uint64_t e = 0; e < count(io); e++) {
        double v = io->in[0][e] + io->in[1][e];
        lksi_real_put(io, 0, e, v, lksi_real_gamma(1, fabs(v)));
    }
}

static void copy(const struct lksi_real_io *io)
{
    for (uint64_t e = 0; e < count(io); e++)
        lksi_real_put(io, 0, e, io->in[0][e], 0.0);
}

static void fill(const struct lksi_real_io *io)
{
    const struct lksi_fill_attr *a = io->call->attr;
    for (uint64_t e = 0; e < count(io); e++)
        lksi_real_put(io, 0, e, (double)a->value, 0.0);
}

static void relu(const struct lksi_real_io *io)
{
    for (uint64_t e = 0; e < count(io); e++)
        lksi_real_put(io, 0, e, io->in[0][e] > 0.0 ? io->in[0][e] : 0.0, 0.0);
}

static void relu_grad(const struct lksi_real_io *io)
{
    for (uint64_t e = 0; e < count(io); e++)
        lksi_real_put(io, 0, e, io->in[0][e] > 0.0 ? io->in[1][e] : 0.0, 0.0);
}

/* ---- training ---- */

static void guard(const struct lksi_real_io *io)
{
    uint64_t n = (uint64_t)lksi_desc_count(&io->call->in[0]);
    double flag = io->in[3][0];
    bool bad = !isfinite(io->in[1][0]);
    for (uint64_t e = 0; e < n; e++)
        bad |= !isfinite(io->in[0][e]);
    lksi_real_put(io, 0, 0, flag == 0.0 && bad ? io->in[2][0] + 1.0 : flag, 0.0);
}

static void record(const struct lksi_real_io *io)
{
    uint64_t n = count(io), width = (uint64_t)io->call->n_in - 2;
    uint64_t slot = (uint64_t)io->in[1][1] % (n / width);
    for (uint64_t e = 0; e < n; e++)
        lksi_real_put(io, 0, e, e / width == slot ? io->in[2 + e % width][0] : io->in[0][e], 0.0);
}

/* ---- the batch ---- */

static void batch_total(const struct lksi_real_io *io, bool mean)
{
    int64_t n = io->call->in[0].dim[0];
    double sum = 0.0, mag = 0.0, scale = mean ? 1.0 / (double)n : 1.0;
    double depth = lksi_real_leaf_depth((uint32_t)n, 1, 1, io->call->leaf);
    for (int64_t i = 0; i < n; i++) {
        sum += io->in[0][i];
        mag += fabs(io->in[0][i]);
    }
    lksi_real_put(io, 0, 0, sum * scale, lksi_real_gamma(depth + (mean ? 2 : 0), mag * scale));
}

static void batch_sum(const struct lksi_real_io *io)
{
    batch_total(io, false);
}

static void batch_mean(const struct lksi_real_io *io)
{
    batch_total(io, true);
}

static void batch_mean_grad(const struct lksi_real_io *io)
{
    for (uint64_t e = 0; e < count(io); e++) {
        double v = io->in[0][0] / (double)count(io);
        lksi_real_put(io, 0, e, v, lksi_real_gamma(2, fabs(v)));
    }
}

static void pixels(const struct lksi_real_io *io)
{
    uint64_t c = (uint64_t)io->call->in[1].dim[0] / 256;
    for (uint64_t e = 0; e < count(io); e++) {
        uint32_t word = (uint32_t)(int32_t)io->in[0][e / 4];
        uint32_t b = word >> (8 * (e % 4)) & 255;
        lksi_real_put(io, 0, e, io->in[1][b * c + e % c], 0.0);
    }
}

/* Samples of one batch out of many. */
static uint64_t taken(const struct lksi_real_io *io, uint64_t e, uint64_t *within)
{
    uint64_t size = count(io) / (uint64_t)io->call->out[0].dim[0];
    *within = e % size;
    return (uint64_t)io->in[1][e / size] * size + e % size;
}

static void take(const struct lksi_real_io *io)
{
    uint64_t within;
    for (uint64_t e = 0; e < count(io); e++)
        lksi_real_put(io, 0, e, io->in[0][taken(io, e, &within)], 0.0);
}

static void take_pixels(const struct lksi_real_io *io)
{
    uint64_t c = (uint64_t)io->call->in[2].dim[0] / 256, within;
    for (uint64_t e = 0; e < count(io); e++) {
        uint64_t at = taken(io, e, &within);
        uint32_t word = (uint32_t)(int32_t)io->in[0][at / 4];
        uint32_t b = word >> (8 * (at % 4)) & 255;
        lksi_real_put(io, 0, e, io->in[2][b * c + within % c], 0.0);
    }
}

const struct lksi_real_entry lksi_real_basic[] = {
    {"add", add},
    {"batch_mean", batch_mean},
    {"batch_mean_grad", batch_mean_grad},
    {"batch_sum", batch_sum},
    {"fill", fill},
    {"guard", guard},
    {"pixels", pixels},
    {"record", record},
    {"relu", relu},
    {"relu_grad", relu_grad},
    {"reshape", copy},
    {"take", take},
    {"take_pixels", take_pixels},
    {NULL, NULL},
};

/* One table a file real_FAMILY.c. */
static const struct lksi_real_entry *const tables[] = {
    lksi_real_basic,
    lksi_real_binary,
    lksi_real_graph,
    lksi_real_losses,
    lksi_real_norms,
    lksi_real_reduce,
    lksi_real_winograd,
    lksi_real_shapes,
    lksi_real_unary,
    lksi_real_update,
    lksi_real_windows,
};

lksi_real_fn lksi_real_find(const char *op)
{
    for (size_t t = 0; t < LKSI_COUNT(tables); t++)
        for (const struct lksi_real_entry *e = tables[t]; e->op != NULL; e++)
            if (strcmp(e->op, op) == 0)
                return e->fn;
    return NULL;
}
