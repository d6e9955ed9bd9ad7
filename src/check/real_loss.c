/*
 * real_loss.c - losses, means and random numbers in double precision; see real.h.
 */
#include <math.h>

#include "check/real.h"
#include "contract/element_loss.h"
#include "contract/philox.h"
#include "op/attr.h"

static uint64_t count(const struct lksi_real_io *io)
{
    return (uint64_t)lksi_desc_count(&io->call->out[0]);
}

/* ---- elements ---- */

static double target(const struct lksi_real_io *io, int input, uint64_t e)
{
    const struct lksi_element_loss_attr *a = io->call->attr;
    return a->constant ? (double)a->target : io->in[input][e];
}

static void element_loss(const struct lksi_real_io *io)
{
    const struct lksi_element_loss_attr *at = io->call->attr;
    double beta = (double)at->beta;
    for (uint64_t e = 0; e < count(io); e++) {
        double x = io->in[0][e], t = target(io, 1, e), d = x - t, a = fabs(d), v, mag;
        switch ((U32)at->kind) {
        case LKS_LOSS_MSE:
            v = mag = d * d;
            break;
        case LKS_LOSS_L1:
            v = mag = a;
            break;
        case LKS_LOSS_HUBER:
            v = a < beta ? d * d / 2.0 : beta * (a - beta / 2.0);
            mag = v + beta * beta;
            break;
        case LKS_LOSS_SMOOTH_L1:
            v = a < beta ? d * d / 2.0 / beta : a - beta / 2.0;
            mag = v + beta;
            break;
        default:
            v = fmax(x, 0.0) - x * t + log1p(exp(-fabs(x)));
            mag = fabs(x) + fabs(x * t) + log1p(exp(-fabs(x)));
        }
        lksi_real_put(io, 0, e, v, lksi_real_gamma(6, mag));
    }
}

static void element_loss_grad(const struct lksi_real_io *io)
{
    const struct lksi_element_loss_attr *at = io->call->attr;
    double beta = (double)at->beta;
    for (uint64_t e = 0; e < count(io); e++) {
        double x = io->in[0][e], t = target(io, 2, e), d = x - t, a = fabs(d), slope, mag;
        double sign = d > 0.0 ? 1.0 : d < 0.0 ? -1.0 : 0.0;
        switch ((U32)at->kind) {
        case LKS_LOSS_MSE:
            slope = 2.0 * d;
            break;
        case LKS_LOSS_L1:
            slope = sign;
            break;
        case LKS_LOSS_HUBER:
            slope = a < beta ? d : beta * sign;
            break;
        case LKS_LOSS_SMOOTH_L1:
            slope = a < beta ? d / beta : sign;
            break;
        default:
            slope = 1.0 / (1.0 + exp(-x)) - t;
        }
        mag = fabs(slope);
        if ((U32)at->kind == LKS_LOSS_BCE)
            mag = 1.0 + fabs(t) + (at->of_target ? fabs(x) : 0.0);
        if (at->of_target)
            slope = (U32)at->kind == LKS_LOSS_BCE ? -x : -slope;
        lksi_real_put(io, 0, e, slope * io->in[1][e],
                      lksi_real_gamma(5, mag * fabs(io->in[1][e])));
    }
}

/* ---- means and sums ---- */

static double scale_of(const struct lksi_real_io *io, double f)
{
    return ((const struct lksi_sample_mean_attr *)io->call->attr)->sum ? 1.0 : 1.0 / f;
}

static void sample_mean(const struct lksi_real_io *io)
{
    uint64_t f = (uint64_t)lksi_desc_count(&io->call->in[0]) / count(io);
    double scale = scale_of(io, (double)f);
    for (uint64_t n = 0; n < count(io); n++) {
        double sum = 0.0, mag = 0.0;
        for (uint64_t i = 0; i < f; i++) {
            sum += io->in[0][n * f + i];
            mag += fabs(io->in[0][n * f + i]);
        }
        lksi_real_put(io, 0, n, sum * scale,
                      lksi_real_gamma(lksi_real_row_depth((double)f) + 2.0, mag * scale));
    }
}

static void sample_mean_grad(const struct lksi_real_io *io)
{
    uint64_t f = count(io) / (uint64_t)io->call->in[0].dim[0];
    double scale = scale_of(io, (double)f);
    for (uint64_t e = 0; e < count(io); e++) {
        double v = io->in[0][e / f] * scale;
        lksi_real_put(io, 0, e, v, lksi_real_gamma(2, fabs(v)));
    }
}

static void loss_sum(const struct lksi_real_io *io)
{
    const struct lksi_loss_sum_attr *a = io->call->attr;
    double sum = 0.0, mag = 0.0;
    for (int k = 0; k < io->call->n_in; k++) {
        sum += (double)a->weight[k] * io->in[k][0];
        mag += fabs((double)a->weight[k] * io->in[k][0]);
    }
    lksi_real_put(io, 0, 0, sum, lksi_real_gamma(7, mag));
}

static void loss_ratio(const struct lksi_real_io *io)
{
    double v = io->in[0][0] / io->in[1][0];
    lksi_real_put(io, 0, 0, v, lksi_real_gamma(1, fabs(v)));
}

static void loss_ratio_grad(const struct lksi_real_io *io)
{
    double v = -io->in[0][0] * io->in[1][0] / io->in[2][0];
    lksi_real_put(io, 0, 0, v,
                  lksi_real_gamma(2, fabs(v)) + lksi_real_gamma(1, 0.0) / io->in[2][0]);
}

/* ---- softmax_cross_entropy ---- */

static double weight_of(const struct lksi_cross_entropy_attr *a, uint64_t f)
{
    return a->n_weight > 0 ? (double)a->weight[f] : 1.0;
}

/* In the argument of an exponent an error of 2 units for the function and 1 for its rounding;
 * sum_err is the mean of that over the probabilities, the relative error of the sum. */
static void softmax_position(const struct lksi_real_io *io, uint64_t r, uint64_t f)
{
    const struct lksi_cross_entropy_attr *a = io->call->attr;
    const double *x = io->in[0] + r * f;
    uint64_t label = (uint64_t)io->in[1][r], arg = 0;
    double sum = 0.0, sum_err = lksi_real_row_depth((double)f), lse, loss, bound;
    long double smooth = 0.0L; /* differences of it are taken */
    double spread = 0.0, w = weight_of(a, label);
    bool ignored = a->ignores && io->in[1][r] == (double)a->ignored;
    for (uint64_t i = 1; i < f; i++)
        arg = x[i] > x[arg] ? i : arg;
    for (uint64_t i = 0; i < f; i++)
        sum += exp(x[i] - x[arg]);
    for (uint64_t i = 0; i < f; i++)
        sum_err += exp(x[i] - x[arg]) / sum * (x[arg] - x[i] + 3.0);
    for (uint64_t i = 0; i < f; i++) {
        double p = exp(x[i] - x[arg]) / sum;
        bound = lksi_real_gamma(x[arg] - x[i] + 3.0 + sum_err + 1.0, p) + 0x1p-148;
        lksi_real_put(io, 1, r * f + i, p, bound);
    }
    lse = log(sum);
    for (uint64_t i = 0; i < f; i++) {
        smooth += (long double)weight_of(a, i) * (lse - (x[i] - x[arg]));
        spread += weight_of(a, i) * (fabs(lse) + fabs(x[i] - x[arg]));
    }
    loss = (1.0 - a->smoothing) * w * (lse - (x[label] - x[arg])) +
           a->smoothing / (double)f * (double)smooth;
    if (a->smoothing == 0.0 && a->n_weight == 0) {
        bound = lksi_real_gamma(sum_err, 1.0) + lksi_real_gamma(2.0, lse) +
                lksi_real_gamma(1.0, fabs(x[label] - x[arg])) + lksi_real_gamma(1.0, fabs(loss));
    } else {
        /* An error of the logarithm in each term; the roundings of the terms and their sums. */
        double part = a->smoothing / (double)f, depth = lksi_real_row_depth((double)f);
        bound = (w + part * depth) * 4.0 * lksi_real_gamma(sum_err + 4.0, 1.0);
        bound += lksi_real_gamma(8.0, w * (fabs(lse) + fabs(x[label] - x[arg])));
        bound += part * (lksi_real_gamma(depth + 8.0, spread) +
                         lksi_real_gamma(sum_err + 4.0, 1.0) * (double)f * 2.0);
    }
    lksi_real_put(io, 0, r, ignored ? 0.0 : loss, ignored ? 0.0 : bound);
    lksi_real_put(io, 2, r, !ignored && label == arg ? 1.0 : 0.0, 0.0);
    lksi_real_put(io, 3, r, ignored ? 0.0 : w, 0.0);
}

static void softmax_cross_entropy(const struct lksi_real_io *io)
{
    const struct lksi_desc *x = &io->call->in[0];
    uint64_t f = (uint64_t)x->dim[x->rank - 1], rows = (uint64_t)lksi_desc_count(x) / f;
    for (uint64_t r = 0; r < rows; r++)
        softmax_position(io, r, f);
}

static void softmax_cross_entropy_grad(const struct lksi_real_io *io)
{
    const struct lksi_cross_entropy_attr *a = io->call->attr;
    const struct lksi_desc *x = &io->call->in[0];
    uint64_t f = (uint64_t)x->dim[x->rank - 1];
    double total = 0.0;
    for (uint64_t i = 0; i < f; i++)
        total += weight_of(a, i);
    for (uint64_t e = 0; e < count(io); e++) {
        uint64_t label = (uint64_t)io->in[1][e / f], i = e % f;
        double p = io->in[0][e], w = weight_of(a, label), dy = io->in[2][e / f];
        double part = a->smoothing / (double)f;
        double main = (1.0 - a->smoothing) * w * (p - (label == i ? 1.0 : 0.0));
        double v = main + part * (total * p - weight_of(a, i));
        double mag = fabs(main) + part * (fabs(total * p) + weight_of(a, i));
        if (a->ignores && io->in[1][e / f] == (double)a->ignored)
            v = mag = 0.0;
        lksi_real_put(io, 0, e, v * dy, lksi_real_gamma(8, mag * fabs(dy)));
    }
}

/* ---- random ---- */

static double word_uniform(U32 w)
{
    return (double)(w >> 8) * 0x1p-24;
}

static void random_numbers(const struct lksi_real_io *io)
{
    static const double pi = 3.14159265358979323846;
    const struct lksi_random_attr *a = io->call->attr;
    const double *s = io->in[1];
    uint64_t f = count(io) / (uint64_t)io->call->out[0].dim[0];
    uint64_t seed = (uint64_t)s[2] | (uint64_t)s[3] << 32;
    for (uint64_t i = 0; i < count(io); i++) {
        uint64_t e = (uint64_t)s[4] * f + i;
        U32 a_word = lks_random_word(seed, a->stream, (U32)s[0], e & ~1ull);
        U32 b_word = lks_random_word(seed, a->stream, (U32)s[0], e | 1ull);
        double radius = sqrt(-2.0 * log(word_uniform(a_word) + 0x1p-24));
        double angle = 2.0 * pi * word_uniform(b_word);
        double v = radius * (e % 2 == 0 ? cos(angle) : sin(angle));
        if (a->normal)
            lksi_real_put(io, 0, i, v, lksi_real_gamma(8, fabs(v)) + 1e-14);
        else
            lksi_real_put(io, 0, i, word_uniform(e % 2 == 0 ? a_word : b_word), 0.0);
    }
}

const struct lksi_real_entry lksi_real_losses[] = {
    {"element_loss", element_loss},
    {"element_loss_grad", element_loss_grad},
    {"loss_ratio", loss_ratio},
    {"loss_ratio_grad", loss_ratio_grad},
    {"loss_sum", loss_sum},
    {"loss_sum_grad", loss_sum},
    {"random", random_numbers},
    {"sample_mean", sample_mean},
    {"sample_mean_grad", sample_mean_grad},
    {"softmax_cross_entropy", softmax_cross_entropy},
    {"softmax_cross_entropy_grad", softmax_cross_entropy_grad},
    {NULL, NULL},
};
