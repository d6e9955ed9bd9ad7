/*
 * real_reduce.c - sums over axes, softmax and matrix products in double precision; see real.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/real.h"
#include "op/attr.h"

/* The element of the smaller tensor that element e of x belongs to. */
static uint64_t place(const struct lksi_desc *x, unsigned axes, uint64_t e)
{
    uint64_t at = 0, step = 1;
    for (int k = x->rank; k-- > 0; e /= (uint64_t)x->dim[k]) {
        if ((axes >> k & 1u) != 0)
            continue;
        at += e % (uint64_t)x->dim[k] * step;
        step *= (uint64_t)x->dim[k];
    }
    return at;
}

static void total(const struct lksi_real_io *io)
{
    const struct lksi_reduce_attr *a = io->call->attr;
    const struct lksi_desc *x = &io->call->in[0];
    uint64_t all = (uint64_t)lksi_desc_count(x), n = (uint64_t)lksi_desc_count(&io->call->out[0]);
    double size = (double)(all / n), scale = 1.0, depth = lksi_real_row_depth(size) + 1.0;
    if ((a->axes & 1u) != 0)
        depth = lksi_real_span_depth((uint32_t)x->dim[0],
                                     (uint32_t)(all / n / (uint64_t)x->dim[0]), 1, io->call->leaf);
    if (strncmp(io->call->op->name, "mean", 4) == 0) {
        scale = 1.0 / size;
        depth += 2.0;
    }
    for (uint64_t e = 0; e < n; e++)
        lksi_real_put(io, 0, e, 0.0, 0.0);
    for (uint64_t e = 0; e < all; e++) {
        uint64_t to = place(x, a->axes, e);
        io->out[0][to] += io->in[0][e] * scale;
        if (io->err != NULL) /* the sum of magnitudes first */
            io->err[0][to] += fabs(io->in[0][e]) * scale;
    }
    for (uint64_t e = 0; e < n && io->err != NULL; e++)
        io->err[0][e] = lksi_real_gamma(depth, io->err[0][e]);
}

static void expand(const struct lksi_real_io *io)
{
    const struct lksi_reduce_attr *a = io->call->attr;
    const struct lksi_desc *x = &io->call->out[0];
    bool mean = strcmp(io->call->op->name, "expand_mean") == 0;
    double each = (double)lksi_desc_count(&io->call->in[0]) / (double)lksi_desc_count(x);
    for (uint64_t e = 0; e < (uint64_t)lksi_desc_count(x); e++) {
        double v = io->in[0][place(x, a->axes, e)] * (mean ? each : 1.0);
        lksi_real_put(io, 0, e, v, mean ? lksi_real_gamma(2, fabs(v)) : 0.0);
    }
}

/* The greatest or least and its place. */
static void winner(const struct lksi_real_io *io)
{
    const struct lksi_reduce_attr *a = io->call->attr;
    const struct lksi_desc *x = &io->call->in[0];
    double sign = strcmp(io->call->op->name, "reduce_min") == 0 ? -1.0 : 1.0;
    uint64_t n = (uint64_t)lksi_desc_count(&io->call->out[0]);
    uint64_t *seen = calloc((size_t)n, sizeof *seen);
    for (uint64_t e = 0; seen != NULL && e < (uint64_t)lksi_desc_count(x); e++) {
        uint64_t to = place(x, a->axes, e), p = seen[to]++;
        if (p > 0 && !(sign * io->in[0][e] > sign * io->out[0][to]))
            continue;
        lksi_real_put(io, 0, to, io->in[0][e], 0.0);
        lksi_real_put(io, 1, to, (double)p, 0.0);
    }
    free(seen);
}

/* Both walk over the larger tensor and count the places of each row. */
static void put_or_pick(const struct lksi_real_io *io)
{
    const struct lksi_reduce_attr *a = io->call->attr;
    bool put = strcmp(io->call->op->name, "reduce_put") == 0;
    const struct lksi_desc *x = &io->call->in[put ? 2 : 0];
    uint64_t *seen = calloc((size_t)lksi_desc_count(&io->call->in[1]), sizeof *seen);
    for (uint64_t e = 0; seen != NULL && e < (uint64_t)lksi_desc_count(x); e++) {
        uint64_t to = place(x, a->axes, e);
        bool here = seen[to]++ == (uint64_t)io->in[1][to];
        if (put)
            lksi_real_put(io, 0, e, here ? io->in[0][to] : 0.0, 0.0);
        else if (here)
            lksi_real_put(io, 0, to, io->in[0][e], 0.0);
    }
    free(seen);
}

static void matmul(const struct lksi_real_io *io)
{
    const struct lksi_matmul_attr *t = io->call->attr;
    const struct lksi_desc *a = &io->call->in[0], *y = &io->call->out[0];
    uint64_t m = (uint64_t)y->dim[y->rank - 2], n = (uint64_t)y->dim[y->rank - 1];
    uint64_t k = (uint64_t)a->dim[a->rank - 1 - t->transpose_a];
    for (uint64_t e = 0; e < (uint64_t)lksi_desc_count(y); e++) {
        uint64_t s = e / (m * n), row = e / n % m, column = e % n;
        double sum = 0.0, mag = 0.0;
        for (uint64_t i = 0; i < k; i++) {
            double p = io->in[0][s * m * k + (t->transpose_a ? i * m + row : row * k + i)] *
                       io->in[1][s * k * n + (t->transpose_b ? column * k + i : i * n + column)];
            sum += p;
            mag += fabs(p);
        }
        lksi_real_put(io, 0, e, sum, lksi_real_gamma(lksi_real_piece_depth(1.0, (double)k) + 1.0, mag));
    }
}

/* ---- softmax ---- */

static uint64_t length(const struct lksi_call *call, uint64_t row, uint64_t f)
{
    const struct lksi_softmax_attr *a = call->attr;
    const struct lksi_desc *x = &call->in[0];
    uint64_t i = x->rank > 1 ? row % (uint64_t)x->dim[x->rank - 2] : 0;
    return a->causal && i + 1 < f ? i + 1 : f;
}

/* The bounds are those of softmax_row in real.c. */
static void forward(const struct lksi_real_io *io)
{
    const struct lksi_desc *d = &io->call->in[0];
    uint64_t f = (uint64_t)d->dim[d->rank - 1], rows = (uint64_t)lksi_desc_count(d) / f;
    bool logs = strcmp(io->call->op->name, "log_softmax") == 0;
    for (uint64_t r = 0; r < rows; r++) {
        const double *x = io->in[0] + r * f;
        uint64_t n = length(io->call, r, f);
        double top = x[0], sum = 0.0, off = lksi_real_row_depth((double)n);
        for (uint64_t i = 1; i < n; i++)
            top = fmax(top, x[i]);
        for (uint64_t i = 0; i < n; i++)
            sum += exp(x[i] - top);
        for (uint64_t i = 0; i < n; i++)
            off += exp(x[i] - top) / sum * (top - x[i] + 3.0);
        for (uint64_t i = 0; i < f; i++) {
            double p = exp(x[i] - top) / sum, y = x[i] - top - log(sum);
            if (i >= n)
                lksi_real_put(io, 0, r * f + i, 0.0, 0.0);
            else if (logs)
                lksi_real_put(io, 0, r * f + i, y,
                              lksi_real_gamma(off, 1.0) + lksi_real_gamma(2.0, log(sum)) +
                                  lksi_real_gamma(1.0, top - x[i]) + lksi_real_gamma(1.0, fabs(y)));
            else
                lksi_real_put(io, 0, r * f + i, p,
                              lksi_real_gamma(top - x[i] + 3.0 + off + 1.0, p) + 0x1p-148);
        }
    }
}

static void backward(const struct lksi_real_io *io)
{
    const struct lksi_desc *d = &io->call->in[0];
    uint64_t f = (uint64_t)d->dim[d->rank - 1], rows = (uint64_t)lksi_desc_count(d) / f;
    bool logs = strcmp(io->call->op->name, "log_softmax_grad") == 0;
    for (uint64_t r = 0; r < rows; r++) {
        const double *y = io->in[0] + r * f, *dy = io->in[1] + r * f;
        uint64_t n = length(io->call, r, f);
        double s = 0.0, mag = 0.0, off;
        for (uint64_t i = 0; i < n; i++) {
            s += logs ? dy[i] : dy[i] * y[i];
            mag += fabs(logs ? dy[i] : dy[i] * y[i]);
        }
        off = lksi_real_gamma(lksi_real_row_depth((double)n) + 1.0, mag);
        for (uint64_t i = 0; i < f; i++) {
            double k = logs ? -exp(y[i]) : y[i], v = logs ? dy[i] + k * s : y[i] * (dy[i] - s);
            double size = logs ? fabs(dy[i]) + fabs(k * s) : fabs(k) * (fabs(dy[i]) + fabs(s));
            if (i < n)
                lksi_real_put(io, 0, r * f + i, v, lksi_real_gamma(4.0, size) + fabs(k) * off);
            else
                lksi_real_put(io, 0, r * f + i, 0.0, 0.0);
        }
    }
}

static void embedding(const struct lksi_real_io *io)
{
    uint64_t d = (uint64_t)io->call->in[0].dim[1], n = (uint64_t)lksi_desc_count(&io->call->in[1]);
    for (uint64_t e = 0; e < n * d; e++)
        lksi_real_put(io, 0, e, io->in[0][(uint64_t)io->in[1][e / d] * d + e % d], 0.0);
}

static void embedding_grad(const struct lksi_real_io *io)
{
    const struct lksi_desc *t = &io->call->in[1], *y = &io->call->out[0];
    uint64_t d = (uint64_t)y->dim[1], n = (uint64_t)lksi_desc_count(t);
    uint64_t all = (uint64_t)lksi_desc_count(y);
    double depth = lksi_real_leaf_depth((uint32_t)t->dim[0], (uint32_t)(n / (uint64_t)t->dim[0]),
                                        1, io->call->leaf);
    for (uint64_t e = 0; e < all; e++)
        lksi_real_put(io, 0, e, 0.0, 0.0);
    for (uint64_t e = 0; e < n * d; e++) {
        uint64_t to = (uint64_t)io->in[1][e / d] * d + e % d;
        io->out[0][to] += io->in[0][e];
        if (io->err != NULL) /* the sum of magnitudes first */
            io->err[0][to] += fabs(io->in[0][e]);
    }
    for (uint64_t e = 0; e < all && io->err != NULL; e++)
        io->err[0][e] = lksi_real_gamma(depth, io->err[0][e]);
}

const struct lksi_real_entry lksi_real_reduce[] = {
    {"embedding", embedding},
    {"embedding_grad", embedding_grad},
    {"expand", expand},
    {"expand_mean", expand},
    {"log_softmax", forward},
    {"log_softmax_grad", backward},
    {"matmul", matmul},
    {"mean", total},
    {"mean_samples", total},
    {"reduce_max", winner},
    {"reduce_min", winner},
    {"reduce_pick", put_or_pick},
    {"reduce_put", put_or_pick},
    {"softmax", forward},
    {"softmax_grad", backward},
    {"sum", total},
    {"sum_samples", total},
    {NULL, NULL},
};
