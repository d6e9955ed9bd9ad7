/*
 * real_norm.c - normalisation in double precision: statistics in two passes, without any tree. The
 * bounds follow each rounding of the contracts; what one step is off by goes into the next.
 */
#include <math.h>

#include "check/real.h"
#include "contract/leaf.h"
#include "op/attr.h"

#define U    LKSI_REAL_U
#define TINY 0x1p-149

/* A number and how far an fp32 computation of it may be off. */
struct num {
    double v, e;
};

static struct num exactly(double v)
{
    return (struct num){v, 0.0};
}

/* The sum or product of two numbers, rounded once. */
static struct num plus(struct num a, struct num b)
{
    double v = a.v + b.v, e = a.e + b.e;
    return (struct num){v, e + U * (fabs(v) + e) + TINY};
}

static struct num times(struct num a, struct num b)
{
    double v = a.v * b.v, e = fabs(a.v) * b.e + fabs(b.v) * a.e + a.e * b.e;
    return (struct num){v, e + U * (fabs(v) + e) + TINY};
}

static struct num minus(struct num a)
{
    return (struct num){-a.v, a.e};
}

/* 1/sqrt(variance + eps); a variance of which nothing is known gives a factor of the same kind. */
static struct num factor(struct num variance, double eps)
{
    struct num s = plus(variance, exactly(eps));
    double v = 1.0 / sqrt(s.v), r = s.e / s.v;
    if (!(r < 0.9))
        return (struct num){v, INFINITY};
    return (struct num){v, v * (1.0 / sqrt(1.0 - r) - 1.0) + 4.0 * U * v + TINY};
}

static void put(const struct lksi_real_io *io, int j, uint64_t e, struct num n)
{
    lksi_real_put(io, j, e, n.v, n.e);
}

/* xhat * gamma + beta. */
static struct num affine(double x, struct num mean, struct num s, double gamma, double beta)
{
    struct num xhat = times(plus(exactly(x), minus(mean)), s);
    return plus(times(xhat, exactly(gamma)), exactly(beta));
}

/* What an `add` and a relu behind make of a number: `rest` NULL: no add. */
static struct num behind(struct num y, const double *rest, uint64_t e, bool relu)
{
    if (rest != NULL)
        y = plus(y, exactly(rest[e]));
    if (relu && y.v < 0.0)
        y.v = 0.0; /* the error stays: the sign may be off by as much */
    return y;
}

/* ---- over the batch ---- */

struct image {
    uint64_t positions, c;
    double depth, levels; /* roundings of a leaf's sum, levels of the tree */
};

static struct image image_of(const struct lksi_call *call)
{
    const struct lksi_desc *x = &call->in[0];
    struct image m = {.c = (uint64_t)x->dim[x->rank - 1]};
    uint32_t h = x->rank > 2 ? (uint32_t)x->dim[1] : 1, w = x->rank > 3 ? (uint32_t)x->dim[2] : 1;
    struct lks_leaf f = lks_leaf_make((uint32_t)x->dim[0], h, w, call->leaf);
    m.positions = (uint64_t)lksi_desc_count(x) / m.c;
    m.depth = lksi_real_span_depth((uint32_t)x->dim[0], h, w, call->leaf);
    m.levels = ceil(log2((double)f.leaves)) + 1.0;
    return m;
}

/* Mean and variance of x[0], x[c], ...; see the error bound in contract/batch_norm.h. */
static void statistics(const double *x, const struct image *m, struct num *mean,
                       struct num *variance)
{
    double n = (double)m->positions, sum = 0.0, mag = 0.0, top = 0.0, m2 = 0.0, off;
    double roundings = m->depth + 3.0 * m->levels + 2.0;
    for (uint64_t p = 0; p < m->positions; p++) {
        sum += x[p * m->c];
        mag += fabs(x[p * m->c]);
        top = fmax(top, fabs(x[p * m->c]));
    }
    *mean = (struct num){sum / n, lksi_real_gamma(roundings, mag / n)};
    for (uint64_t p = 0; p < m->positions; p++)
        m2 += (x[p * m->c] - mean->v) * (x[p * m->c] - mean->v);
    top = lksi_real_gamma(roundings, top);
    off = n * top * top * (1.0 + m->levels);
    off += lksi_real_gamma(m->depth + 6.0 * m->levels + 4.0, m2 + off) +
           2.0 * top * sqrt(m2 * n * m->levels);
    *variance = times((struct num){m2, off}, exactly(1.0 / n));
}

static void batch_norm(const struct lksi_real_io *io)
{
    const struct lksi_batch_norm_attr *a = io->call->attr;
    struct image m = image_of(io->call);
    for (uint64_t c = 0; c < m.c; c++) {
        struct num mean, variance, s;
        statistics(io->in[0] + c, &m, &mean, &variance);
        s = factor(variance, (double)a->eps);
        put(io, 1, c, mean);
        put(io, 2, c, variance);
        put(io, 3, c, s);
        for (uint64_t p = 0; p < m.positions; p++)
            put(io, 0, p * m.c + c,
                behind(affine(io->in[0][p * m.c + c], mean, s, io->in[1][c], io->in[2][c]),
                       io->call->n_in > 3 ? io->in[3] : NULL, p * m.c + c, a->relu != 0));
    }
}

static void batch_norm_infer(const struct lksi_real_io *io)
{
    const struct lksi_batch_norm_attr *a = io->call->attr;
    struct image m = image_of(io->call);
    for (uint64_t e = 0; e < m.positions * m.c; e++) {
        uint64_t c = e % m.c;
        struct num s = factor(exactly(io->in[4][c]), (double)a->eps);
        put(io, 0, e,
            behind(affine(io->in[0][e], exactly(io->in[3][c]), s, io->in[1][c], io->in[2][c]),
                   io->call->n_in > 5 ? io->in[5] : NULL, e, a->relu != 0));
    }
}

static void batch_norm_infer_grad(const struct lksi_real_io *io)
{
    const struct lksi_batch_norm_attr *a = io->call->attr;
    struct image m = image_of(io->call);
    for (uint64_t e = 0; e < m.positions * m.c; e++) {
        struct num s = factor(exactly(io->in[2][e % m.c]), (double)a->eps);
        put(io, 0, e, times(times(exactly(io->in[1][e % m.c]), s), exactly(io->in[0][e])));
    }
}

static void batch_norm_grad(const struct lksi_real_io *io)
{
    struct image m = image_of(io->call);
    for (uint64_t c = 0; c < m.c; c++) {
        struct num mean = exactly(io->in[2][c]), s = exactly(io->in[3][c]);
        struct num dg = {0}, db = {0}, a, b, k = times(exactly(io->in[4][c]), s);
        double mag_g = 0.0, mag_b = 0.0;
        for (uint64_t e = c; e < m.positions * m.c; e += m.c) {
            double dy = io->in[1][e];
            struct num xhat = times(plus(exactly(io->in[0][e]), minus(mean)), s);
            dg.v += dy * xhat.v;
            dg.e += fabs(dy) * xhat.e;
            mag_g += fabs(dy) * (fabs(xhat.v) + xhat.e);
            db.v += dy;
            mag_b += fabs(dy);
        }
        dg.e += lksi_real_gamma(m.depth, mag_g);
        db.e = lksi_real_gamma(m.depth, mag_b);
        put(io, 1, c, dg);
        put(io, 2, c, db);
        a = times(db, times(exactly(1.0 / (double)m.positions), exactly(1.0)));
        b = times(dg, times(exactly(1.0 / (double)m.positions), exactly(1.0)));
        for (uint64_t e = c; e < m.positions * m.c; e += m.c) {
            struct num xhat = times(plus(exactly(io->in[0][e]), minus(mean)), s);
            struct num t = plus(exactly(io->in[1][e]), minus(a));
            put(io, 0, e, times(k, plus(t, minus(times(xhat, b)))));
        }
    }
}

static void batch_norm_running(const struct lksi_real_io *io)
{
    const struct lksi_batch_norm_attr *at = io->call->attr;
    double n = (double)at->count, unbias = at->count > 1 ? n / (n - 1.0) : 1.0;
    bool held = io->in[4][0] != 0.0;
    for (uint64_t c = 0; c < (uint64_t)io->call->in[0].dim[0]; c++) {
        for (int j = 0; j < 2; j++) {
            struct num u = {j == 0 ? 1.0 : unbias, j == 0 ? 0.0 : U * unbias};
            struct num old = exactly(io->in[2 + j][c]), now = times(exactly(io->in[j][c]), u);
            struct num step = times(exactly((double)at->momentum), plus(now, minus(old)));
            put(io, j, c, held ? old : plus(old, step));
        }
    }
}

/* ---- rows ---- */

/* One row: `runs` runs of cg neighbours, c apart. */
struct row {
    uint64_t at, runs, cg, c, channel;
    double depth, size;
};

/* Calls `fn` for every row; its number is that of its statistics. */
static void each_row(const struct lksi_real_io *io,
                     void (*fn)(const struct lksi_real_io *io, uint64_t number,
                                const struct row *row))
{
    const struct lksi_group_norm_attr *a = io->call->attr;
    const struct lksi_desc *x = &io->call->in[0];
    uint64_t c = (uint64_t)x->dim[x->rank - 1], n = (uint64_t)x->dim[0];
    uint64_t all = (uint64_t)lksi_desc_count(x) / c, groups = (uint64_t)a->groups;
    uint64_t runs = a->layer != 0 ? 1 : all / n;
    for (uint64_t i = 0; i < all / runs; i++)
        for (uint64_t g = 0; g < groups; g++) {
            struct row row = {i * runs * c + g * (c / groups), runs, c / groups, c,
                              g * (c / groups)};
            row.size = (double)(row.runs * row.cg);
            row.depth = lksi_real_row_depth(row.size);
            fn(io, i * groups + g, &row);
        }
}

static uint64_t place(const struct row *row, uint64_t e)
{
    return row->at + e / row->cg * row->c + e % row->cg;
}

static void normalise(const struct lksi_real_io *io, uint64_t number, const struct row *row)
{
    const struct lksi_group_norm_attr *a = io->call->attr;
    double sum = 0.0, mag = 0.0, m2 = 0.0, off, n = row->size;
    struct num mean, s;
    for (uint64_t e = 0; e < (uint64_t)n; e++) {
        sum += io->in[0][place(row, e)];
        mag += fabs(io->in[0][place(row, e)]);
    }
    mean = (struct num){sum / n, lksi_real_gamma(row->depth + 2.0, mag / n)};
    for (uint64_t e = 0; e < (uint64_t)n; e++)
        m2 += (io->in[0][place(row, e)] - mean.v) * (io->in[0][place(row, e)] - mean.v);
    off = n * mean.e * mean.e;
    off += lksi_real_gamma(row->depth + 4.0, m2 + off) + n * TINY;
    s = factor(times((struct num){m2, off}, exactly(1.0 / n)), (double)a->eps);
    put(io, 1, number, mean);
    put(io, 2, number, s);
    for (uint64_t e = 0; e < (uint64_t)n; e++) {
        uint64_t c = row->channel + e % row->cg, p = place(row, e);
        put(io, 0, p, affine(io->in[0][p], mean, s, io->in[1][c], io->in[2][c]));
    }
}

static struct num hat(const struct lksi_real_io *io, uint64_t p, uint64_t number)
{
    return times(plus(exactly(io->in[0][p]), exactly(-io->in[2][number])),
                 exactly(io->in[3][number]));
}

static void row_gradient(const struct lksi_real_io *io, uint64_t number, const struct row *row)
{
    struct num a = {0}, b = {0}, share = times(exactly(1.0 / row->size), exactly(1.0));
    double mag_a = 0.0, mag_b = 0.0;
    for (uint64_t e = 0; e < (uint64_t)row->size; e++) {
        uint64_t p = place(row, e);
        struct num g = times(exactly(io->in[1][p]), exactly(io->in[4][row->channel + e % row->cg]));
        struct num xhat = hat(io, p, number);
        a.v += g.v;
        a.e += g.e;
        mag_a += fabs(g.v) + g.e;
        b.v += g.v * xhat.v;
        b.e += fabs(g.v) * xhat.e + fabs(xhat.v) * g.e + g.e * xhat.e;
        mag_b += (fabs(g.v) + g.e) * (fabs(xhat.v) + xhat.e);
    }
    a.e += lksi_real_gamma(row->depth, mag_a);
    b.e += lksi_real_gamma(row->depth, mag_b);
    a = times(a, share);
    b = times(b, share);
    for (uint64_t e = 0; e < (uint64_t)row->size; e++) {
        uint64_t p = place(row, e);
        struct num g = times(exactly(io->in[1][p]), exactly(io->in[4][row->channel + e % row->cg]));
        struct num t = plus(plus(g, minus(a)), minus(times(hat(io, p, number), b)));
        put(io, 0, p, times(exactly(io->in[3][number]), t));
    }
}

/* The mean of products over a row, from sums of `depth` roundings. */
struct product {
    struct num sum;
    double mag;
};

static void take(struct product *s, struct num a, struct num b)
{
    s->sum.v += a.v * b.v;
    s->sum.e += fabs(a.v) * b.e + fabs(b.v) * a.e + a.e * b.e;
    s->mag += (fabs(a.v) + a.e) * (fabs(b.v) + b.e);
}

static struct num mean_of(const struct product *s, const struct row *row)
{
    struct num sum = {s->sum.v, s->sum.e + lksi_real_gamma(row->depth, s->mag)};
    return times(sum, times(exactly(1.0 / row->size), exactly(1.0)));
}

/* invstd * (v - mean - xhat * share): the normalisation's own derivative. */
static struct num project(struct num v, struct num mean, struct num xhat, struct num share,
                          struct num s)
{
    return times(s, plus(plus(v, minus(mean)), minus(times(xhat, share))));
}

static void row_second(const struct lksi_real_io *io, uint64_t number, const struct row *row)
{
    struct product sum[5] = {{{0}, 0}};
    struct num one = exactly(1.0), s = exactly(io->in[3][number]), a, b, p, q, rest;
    for (uint64_t e = 0; e < (uint64_t)row->size; e++) {
        uint64_t at = place(row, e);
        struct num g =
            times(exactly(io->in[1][at]), exactly(io->in[4][row->channel + e % row->cg]));
        struct num xhat = hat(io, at, number), u = exactly(io->in[5][at]);
        take(&sum[0], g, one);
        take(&sum[1], g, xhat);
        take(&sum[2], u, one);
        take(&sum[3], u, xhat);
        take(&sum[4], u, g);
    }
    a = mean_of(&sum[0], row);
    b = mean_of(&sum[1], row);
    p = mean_of(&sum[2], row);
    q = mean_of(&sum[3], row);
    rest = plus(mean_of(&sum[4], row), minus(plus(times(p, a), times(q, b))));
    for (uint64_t e = 0; e < (uint64_t)row->size; e++) {
        uint64_t at = place(row, e), c = row->channel + e % row->cg;
        struct num g = times(exactly(io->in[1][at]), exactly(io->in[4][c]));
        struct num xhat = hat(io, at, number);
        struct num ju = project(exactly(io->in[5][at]), p, xhat, q, s);
        struct num jg = project(g, a, xhat, b, s);
        struct num x = plus(times(times(s, xhat), rest), plus(times(b, ju), times(q, jg)));
        put(io, 0, at, minus(times(s, x)));
        put(io, 1, at, times(ju, exactly(io->in[4][c])));
        put(io, 2, at, times(ju, exactly(io->in[1][at])));
    }
}

static void group_norm_second(const struct lksi_real_io *io)
{
    each_row(io, row_second);
}

static void group_norm(const struct lksi_real_io *io)
{
    each_row(io, normalise);
}

static void group_norm_grad(const struct lksi_real_io *io)
{
    each_row(io, row_gradient);
}

static void group_norm_param_grad(const struct lksi_real_io *io)
{
    const struct lksi_group_norm_attr *a = io->call->attr;
    struct image m = image_of(io->call);
    uint64_t per_sample = m.positions / (uint64_t)io->call->in[0].dim[0];
    uint64_t cg = m.c / (uint64_t)a->groups;
    for (uint64_t c = 0; c < m.c; c++) {
        struct num dg = {0}, db = {0};
        double mag_g = 0.0, mag_b = 0.0;
        for (uint64_t p = 0; p < m.positions; p++) {
            double dy = io->in[1][p * m.c + c];
            uint64_t row = a->layer != 0 ? p : p / per_sample * (uint64_t)a->groups + c / cg;
            struct num xhat = hat(io, p * m.c + c, row);
            dg.v += dy * xhat.v;
            dg.e += fabs(dy) * xhat.e;
            mag_g += fabs(dy) * (fabs(xhat.v) + xhat.e);
            db.v += dy;
            mag_b += fabs(dy);
        }
        dg.e += lksi_real_gamma(m.depth, mag_g);
        db.e = lksi_real_gamma(m.depth, mag_b);
        put(io, 0, c, dg);
        put(io, 1, c, db);
    }
}

const struct lksi_real_entry lksi_real_norms[] = {
    {"batch_norm", batch_norm},
    {"batch_norm_grad", batch_norm_grad},
    {"batch_norm_infer", batch_norm_infer},
    {"batch_norm_infer_grad", batch_norm_infer_grad},
    {"batch_norm_running", batch_norm_running},
    {"group_norm", group_norm},
    {"group_norm_grad", group_norm_grad},
    {"group_norm_second", group_norm_second},
    {"group_norm_param_grad", group_norm_param_grad},
    {NULL, NULL},
};
