/*
 * hyper.c - the numbers that the optimisers read in a step, one row of 16 an optimiser and group:
 * double arithmetic, each rounded once. cl/contract/ says which number stands where.
 */
#include <math.h>
#include <string.h>

#include "contract/update.h"
#include "train/train.h"

/* beta^t is one multiplication an update (rule 1), here made up to update number `t`. */
static void raise_powers(struct lksi_optimizer *k, uint64_t t)
{
    if (k->powers > t) {
        k->powers = 0;
        k->power1 = k->power2 = 1.0;
    }
    for (; k->powers < t; k->powers++) {
        k->power1 = k->power1 * k->o.beta1;
        k->power2 = k->power2 * k->o.beta2;
    }
}

/* Adam, AdamW and LAMB. */
static void fill_moments(const struct lksi_optimizer *k, double lr, double decay, float *h)
{
    const struct lks_optimizer *o = &k->o;
    double left1 = 1.0 - k->power1, left2 = 1.0 - k->power2;
    h[0] = (float)(o->kind == LKS_OPTIMIZER_LAMB ? lr : lr / left1);
    h[1] = (float)(1.0 - o->beta1);
    h[2] = (float)o->beta2;
    h[3] = (float)(1.0 - o->beta2);
    h[4] = (float)(1.0 / sqrt(left2));
    h[5] = (float)o->eps;
    h[6] = (float)(o->kind == LKS_OPTIMIZER_ADAMW ? 0.0 : decay);
    h[7] = (float)(o->kind == LKS_OPTIMIZER_LAMB    ? 1.0 / left1
                   : o->kind == LKS_OPTIMIZER_ADAMW ? 1.0 - lr * decay
                                                    : 1.0);
}

/* The row of an optimiser whose update number `t`, from 1, this is. */
static void fill_row(const struct lksi_optimizer *k, uint64_t t, double lr, double decay, float *h)
{
    const struct lks_optimizer *o = &k->o;
    switch (o->kind) {
    case LKS_OPTIMIZER_ADAM:
    case LKS_OPTIMIZER_ADAMW:
    case LKS_OPTIMIZER_LAMB:
        fill_moments(k, lr, decay, h);
        return;
    case LKS_OPTIMIZER_ADAGRAD:
        lr = lr / (1.0 + (double)(t - 1) * o->lr_decay);
        break;
    default:
        break;
    }
    h[0] = (float)lr;
    h[1] = (float)o->momentum;
    h[2] = (float)decay;
    h[3] = (float)o->alpha;
    h[4] = (float)(1.0 - o->alpha);
    h[5] = (float)o->eps;
}

void lksi_hyper_fill(struct lks_trainer *t, uint64_t step, uint64_t total,
                     uint64_t steps_per_epoch, const double *lr, float *hyper)
{
    size_t width = t->n_row / t->n_optimizer;
    memset(hyper, 0, t->n_row * LKS_UPDATE_HYPER * sizeof *hyper);
    for (size_t r = 0; r < t->n_row; r++) {
        struct lksi_optimizer *k = &t->optimizer[r / width];
        uint64_t update = (step + 1) / k->o.every;
        float *h = hyper + r * LKS_UPDATE_HYPER;
        double rate = lr != NULL ? *lr
                                 : lks_learning_rate(&k->o, step, total, steps_per_epoch);
        if ((step + 1) % k->o.every != 0) {
            h[LKS_UPDATE_REST] = 1.0f;
            continue;
        }
        raise_powers(k, update);
        fill_row(k, update, rate * t->row[r].lr_scale, t->row[r].weight_decay, h);
    }
}

static bool same_optimizer(const struct lks_optimizer *a, const struct lks_optimizer *b)
{
    const struct lks_lr_schedule *x = &a->schedule, *y = &b->schedule;
    const char *p = a->loss != NULL ? a->loss : "", *q = b->loss != NULL ? b->loss : "";
    if (a->kind != b->kind || a->nesterov != b->nesterov || a->centered != b->centered ||
        a->every != b->every || strcmp(p, q) != 0)
        return false;
    for (const struct lksi_optimizer_field *f = lksi_optimizer_fields; f->name != NULL; f++)
        if (*lksi_optimizer_number((struct lks_optimizer *)(uintptr_t)a, f) !=
            *lksi_optimizer_number((struct lks_optimizer *)(uintptr_t)b, f))
            return false;
    return x->kind == y->kind && x->warmup == y->warmup && x->min == y->min &&
           x->every == y->every && x->every_epochs == y->every_epochs && x->factor == y->factor &&
           x->rise == y->rise && x->start == y->start && x->end == y->end;
}

bool lksi_same_update(const struct lks_trainer *a, const struct lks_trainer *b)
{
    if (a->n_optimizer != b->n_optimizer || a->params.ema != b->params.ema ||
        strcmp(a->groups_sha256, b->groups_sha256) != 0)
        return false;
    for (size_t k = 0; k < a->n_optimizer; k++)
        if (!same_optimizer(&a->optimizer[k].o, &b->optimizer[k].o))
            return false;
    return true;
}
