/*
 * real_shape.c - operators that move elements, in double precision; see real.h.
 */
#include <math.h>
#include <string.h>

#include "check/real.h"
#include "op/attr.h"

/* From x to y, element by element of x, where the contract goes from y to x. */
static void move(const struct lksi_real_io *io)
{
    const struct lksi_move_attr *a = io->call->attr;
    const struct lksi_desc *x = &io->call->in[0], *y = &io->call->out[0];
    float value;
    memcpy(&value, &a->value, sizeof value);
    for (int64_t e = 0; e < lksi_desc_count(y); e++)
        lksi_real_put(io, 0, (uint64_t)e,
                      y->dtype == LKSI_F32 ? (double)value : (double)(int32_t)a->value, 0.0);
    for (int64_t e = 0; e < lksi_desc_count(x); e++) {
        int64_t at[LKSI_MAX_RANK] = {0}, rest = e, to = 0;
        bool lands = true;
        for (int k = x->rank; k-- > 0; rest /= x->dim[k])
            at[k] = rest % x->dim[k];
        for (int k = 0; k < y->rank; k++) {
            const struct lksi_move_axis *m = &a->axis[k];
            int64_t step = m->step == 0 ? 1 : m->step, spread = m->dilate == 0 ? 1 : m->dilate;
            int64_t t = at[m->from] * spread - m->begin;
            lands = lands && t % step == 0 && t / step >= 0 && t / step < y->dim[k];
            to = to * y->dim[k] + t / step;
        }
        if (lands)
            lksi_real_put(io, 0, (uint64_t)to, io->in[0][e], 0.0);
    }
}

static void concat(const struct lksi_real_io *io)
{
    const struct lksi_concat_attr *a = io->call->attr;
    const struct lksi_desc *y = &io->call->out[0];
    int64_t inner = 1, before = 0;
    for (int k = a->axis + 1; k < y->rank; k++)
        inner *= y->dim[k];
    for (int i = 0; i < io->call->n_in; i++) {
        int64_t size = io->call->in[i].dim[a->axis];
        for (int64_t e = 0; e < lksi_desc_count(&io->call->in[i]); e++) {
            int64_t c = e % inner, s = e / inner % size, o = e / inner / size;
            int64_t to = (o * y->dim[a->axis] + before + s) * inner + c;
            lksi_real_put(io, 0, (uint64_t)to, io->in[i][e], 0.0);
        }
        before += size;
    }
}

/* Position (a*o + b) / d of an axis as a real number, and what lies below it. */
static double weight_of(const struct lksi_resample_axis *x, int linear, int64_t o, int64_t i)
{
    double at = ((double)x->a * (double)o + (double)x->b) / x->d;
    at = fmin(fmax(linear ? at : floor(at), 0.0), (double)(x->in - 1));
    return fmax(0.0, 1.0 - fabs(at - (double)i));
}

/* Both directions: the sum over all pairs of an input and an output element. */
static void resample_pairs(const struct lksi_real_io *io, bool back)
{
    const struct lksi_resample_attr *a = io->call->attr;
    const struct lksi_desc *from = &io->call->in[0], *to = &io->call->out[0];
    int64_t c = to->dim[3];
    for (int64_t e = 0; e < lksi_desc_count(to); e++) {
        int64_t w = e / c % to->dim[2], h = e / c / to->dim[2] % to->dim[1];
        int64_t n = e / c / to->dim[2] / to->dim[1];
        double sum = 0.0, mag = 0.0, terms = 0.0;
        for (int64_t i = 0; i < from->dim[1]; i++) {
            double wh = weight_of(&a->h, a->linear, back ? i : h, back ? h : i);
            for (int64_t j = 0; wh > 0.0 && j < from->dim[2]; j++) {
                double ww = weight_of(&a->w, a->linear, back ? j : w, back ? w : j);
                double x = io->in[0][((n * from->dim[1] + i) * from->dim[2] + j) * c + e % c];
                sum += wh * ww * x;
                mag += fabs(wh * ww * x);
                terms += ww > 0.0;
            }
        }
        /* The doubles here may see a weight of 1e-17 where the contract's whole numbers see 0. */
        lksi_real_put(io, 0, (uint64_t)e, sum,
                      !back && a->linear == 0 ? 0.0 : lksi_real_gamma(terms + 5.0, mag));
    }
}

static void resample(const struct lksi_real_io *io)
{
    resample_pairs(io, false);
}

static void resample_grad(const struct lksi_real_io *io)
{
    resample_pairs(io, true);
}

const struct lksi_real_entry lksi_real_shapes[] = {
    {"concat", concat},
    {"move", move},
    {"resample", resample},
    {"resample_grad", resample_grad},
    {NULL, NULL},
};
