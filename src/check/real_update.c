/*
 * real_update.c - the optimisers, clipping, norms and averages in double precision.
 *
 * The bounds follow the roundings of the contract line by line: each err_* is what the line may be
 * off, given what its operands are off.
 */
#include <math.h>

#include "check/real.h"
#include "contract/update.h"
#include "op/attr.h"

static uint64_t count(const struct lksi_real_io *io)
{
    return (uint64_t)lksi_desc_count(&io->call->out[0]);
}

/* The numbers of element e, or NULL where it stays as it is; `first` is the index of hyper. */
static const double *row(const struct lksi_real_io *io, int first, uint64_t e)
{
    const double *h = io->in[first] +
                      (uint64_t)io->in[first + 2][e / LKS_UPDATE_BLOCK] * LKS_UPDATE_HYPER;
    return io->in[first + 1][0] == 0.0 && h[LKS_UPDATE_REST] < 1.0 ? h : NULL;
}

/* One rounding of v, which is off by e already. */
static double rounded(double v, double e)
{
    return e + lksi_real_gamma(1, fabs(v) + e);
}

/* A quotient a / b with b off by eb; far from its value where eb is not small beside b. */
static double divided(double a, double ea, double b, double eb)
{
    double low = fabs(b) - eb;
    if (low <= 0)
        return (double)INFINITY;
    return rounded(a / b, (ea + fabs(a / b) * eb) / low);
}

/* The root of v >= 0, which is off by e. */
static double rooted(double v, double e)
{
    double low = v > e ? v - e : 0.0, r = sqrt(v);
    double off = fmax(r - sqrt(low), sqrt(v + e) - r);
    return rounded(r, off);
}

static void keep(const struct lksi_real_io *io, int states, uint64_t e)
{
    lksi_real_put(io, 0, e, io->in[0][e], 0.0);
    for (int s = 0; s < states; s++)
        lksi_real_put(io, 1 + s, e, io->in[2 + s][e], 0.0);
}

static void sgd_any(const struct lksi_real_io *io, bool nesterov)
{
    for (uint64_t e = 0; e < count(io); e++) {
        const double *h = row(io, 3, e);
        double p = io->in[0][e], m = io->in[2][e], g, eg, em, d, ed;
        if (h == NULL) {
            keep(io, 1, e);
            continue;
        }
        g = io->in[1][e] + h[2] * p;
        eg = rounded(g, 0);
        m = h[1] * m + g;
        em = rounded(m, eg);
        d = nesterov ? g + h[1] * m : m;
        ed = nesterov ? rounded(d, eg + h[1] * em) : em;
        p -= h[0] * d;
        lksi_real_put(io, 0, e, p, rounded(p, h[0] * ed));
        lksi_real_put(io, 1, e, m, em);
    }
}

static void sgd(const struct lksi_real_io *io)
{
    sgd_any(io, false);
}

static void sgd_nesterov(const struct lksi_real_io *io)
{
    sgd_any(io, true);
}

/* Moving averages: m towards g by c; v = b v + c g g. `g` is off by eg. */
struct moments {
    double m, em, v, ev;
};

static void take_mean(struct moments *x, double c, double g, double eg)
{
    double d = g - x->m, ed = rounded(d, eg);
    x->em = rounded(x->m + c * d, c * ed);
    x->m += c * d;
}

static void take_square(struct moments *x, double b, double c, double g, double eg)
{
    double cg = c * g, ecg = rounded(cg, c * eg), bv = b * x->v;
    double off = fabs(cg) * eg + fabs(g) * ecg + ecg * eg;
    x->v = cg * g + bv;
    x->ev = rounded(x->v, off + rounded(bv, 0));
}

static void adam(const struct lksi_real_io *io)
{
    for (uint64_t e = 0; e < count(io); e++) {
        const double *h = row(io, 4, e);
        double p = io->in[0][e], g, eg, d, ed, q, eq, pk;
        struct moments x = {.m = io->in[2][e], .v = io->in[3][e]};
        if (h == NULL) {
            keep(io, 2, e);
            continue;
        }
        g = io->in[1][e] + h[6] * p;
        eg = rounded(g, 0);
        take_mean(&x, h[1], g, eg);
        take_square(&x, h[2], h[3], g, eg);
        d = sqrt(x.v) * h[4] + h[5];
        ed = rounded(d, h[4] * rooted(x.v, x.ev));
        q = x.m / d;
        eq = divided(x.m, x.em, d, ed);
        pk = p * h[7];
        p = pk - h[0] * q;
        lksi_real_put(io, 0, e, p, rounded(p, h[0] * eq + rounded(pk, 0)));
        lksi_real_put(io, 1, e, x.m, x.em);
        lksi_real_put(io, 2, e, x.v, x.ev);
    }
}

static void lamb_direction(const struct lksi_real_io *io)
{
    for (uint64_t e = 0; e < count(io); e++) {
        const double *h = row(io, 4, e);
        double p = io->in[0][e], g = io->in[1][e], d, ed, u, eu, mr;
        struct moments x = {.m = io->in[2][e], .v = io->in[3][e]};
        if (h == NULL) {
            keep(io, 2, e);
            lksi_real_put(io, 0, e, 0.0, 0.0);
            continue;
        }
        take_mean(&x, h[1], g, 0);
        take_square(&x, h[2], h[3], g, 0);
        d = sqrt(x.v) * h[4] + h[5];
        ed = rounded(d, h[4] * rooted(x.v, x.ev));
        mr = x.m * h[7];
        eu = divided(mr, rounded(mr, h[7] * x.em), d, ed);
        u = mr / d + h[6] * p;
        lksi_real_put(io, 0, e, u, rounded(u, eu));
        lksi_real_put(io, 1, e, x.m, x.em);
        lksi_real_put(io, 2, e, x.v, x.ev);
    }
}

static void lamb_apply(const struct lksi_real_io *io)
{
    for (uint64_t e = 0; e < count(io); e++) {
        const double *h = row(io, 4, e);
        uint64_t t = (uint64_t)io->in[7][e / LKS_UPDATE_BLOCK];
        double np = io->in[2][t], nu = io->in[3][t], p = io->in[0][e], u = io->in[1][e];
        double trust = np > 0 && nu > 0 ? np / nu : 1.0;
        if (h == NULL) {
            lksi_real_put(io, 0, e, p, 0.0);
            continue;
        }
        double rate = h[0] * trust, er = rounded(rate, h[0] * rounded(trust, 0));
        p -= rate * u;
        lksi_real_put(io, 0, e, p, rounded(p, fabs(u) * er));
    }
}

static void rmsprop_any(const struct lksi_real_io *io, bool centered)
{
    int states = centered ? 3 : 2;
    for (uint64_t e = 0; e < count(io); e++) {
        const double *h = row(io, 2 + states, e);
        double p = io->in[0][e], m = io->in[3][e], g, eg, r, er, d, ed, eq, em;
        struct moments x = {.v = io->in[2][e], .m = centered ? io->in[4][e] : 0.0};
        if (h == NULL) {
            keep(io, states, e);
            continue;
        }
        g = io->in[1][e] + h[2] * p;
        eg = rounded(g, 0);
        take_square(&x, h[3], h[4], g, eg);
        r = x.v;
        er = x.ev;
        if (centered) {
            take_mean(&x, h[4], g, eg);
            r = fmax(x.v - x.m * x.m, 0.0);
            er = rounded(r, x.ev + 2 * fabs(x.m) * x.em + x.em * x.em);
        }
        d = sqrt(r) + h[5];
        ed = rounded(d, rooted(r, er));
        eq = divided(g, eg, d, ed);
        m = h[1] * m + g / d;
        em = rounded(m, eq);
        p -= h[0] * m;
        lksi_real_put(io, 0, e, p, rounded(p, h[0] * em));
        lksi_real_put(io, 1, e, x.v, x.ev);
        lksi_real_put(io, 2, e, m, em);
        if (centered)
            lksi_real_put(io, 3, e, x.m, x.em);
    }
}

static void rmsprop(const struct lksi_real_io *io)
{
    rmsprop_any(io, false);
}

static void rmsprop_centered(const struct lksi_real_io *io)
{
    rmsprop_any(io, true);
}

static void adagrad(const struct lksi_real_io *io)
{
    for (uint64_t e = 0; e < count(io); e++) {
        const double *h = row(io, 3, e);
        double p = io->in[0][e], s = io->in[2][e], g, eg, es, d, ed;
        if (h == NULL) {
            keep(io, 1, e);
            continue;
        }
        g = io->in[1][e] + h[2] * p;
        eg = rounded(g, 0);
        s += g * g;
        es = rounded(s, 2 * fabs(g) * eg + eg * eg);
        d = sqrt(s) + h[5];
        ed = rounded(d, rooted(s, es));
        p -= h[0] * (g / d);
        lksi_real_put(io, 0, e, p, rounded(p, h[0] * divided(g, eg, d, ed)));
        lksi_real_put(io, 1, e, s, es);
    }
}

static void ema(const struct lksi_real_io *io)
{
    const struct lksi_ema_attr *a = io->call->attr;
    double w = (double)a->w;
    for (uint64_t e = 0; e < count(io); e++) {
        double old = io->in[0][e], d = io->in[1][e] - old, v = old + w * d;
        bool held = io->in[2][0] != 0.0;
        lksi_real_put(io, 0, e, held ? old : v, held ? 0.0 : rounded(v, w * rounded(d, 0)));
    }
}

static void grad_clip(const struct lksi_real_io *io)
{
    const struct lksi_grad_clip_attr *a = io->call->attr;
    double limit = (double)a->limit, value = (double)a->value;
    double below = io->in[1][0] + 1e-6, s = limit > 0 ? limit / below : 1.0;
    /* 1e-6 rounded, the sum rounded, the quotient rounded. */
    double es = limit > 0 ? lksi_real_gamma(3, s) : 0.0;
    bool clipped = s < 1.0;
    for (uint64_t e = 0; e < count(io); e++) {
        double g = io->in[0][e], v = clipped ? g * s : g;
        double err = limit > 0 ? rounded(v, fabs(g) * es) : 0.0;
        if (value > 0)
            v = fmin(fmax(v, -value), value);
        lksi_real_put(io, 0, e, v, err);
    }
}

static void segment_norm(const struct lksi_real_io *io)
{
    uint64_t n = (uint64_t)lksi_desc_count(&io->call->in[0]);
    for (uint64_t t = 0; t < count(io); t++) {
        uint64_t start = (uint64_t)io->in[1][2 * t], size = (uint64_t)io->in[1][2 * t + 1];
        double sum = 0, err;
        for (uint64_t i = start; i < n && i - start < size; i++)
            sum += io->in[0][i] * io->in[0][i];
        err = lksi_real_gamma(lksi_real_row_depth((double)size), sum) + (double)size * 0x1p-150;
        lksi_real_put(io, 0, t, sqrt(sum), rooted(sum, err));
    }
}

const struct lksi_real_entry lksi_real_update[] = {
    {"adagrad", adagrad},
    {"adam", adam},
    {"ema", ema},
    {"grad_clip", grad_clip},
    {"lamb_apply", lamb_apply},
    {"lamb_direction", lamb_direction},
    {"rmsprop", rmsprop},
    {"rmsprop_centered", rmsprop_centered},
    {"segment_norm", segment_norm},
    {"sgd", sgd},
    {"sgd_nesterov", sgd_nesterov},
    {NULL, NULL},
};
