/*
 * schedule.c - learning rates, in double with + - * / alone, so that every host has the same bits
 * (numerics.md, rule 1).
 */
#include "base/fenv.h"
#include "train/train.h"

#define PI 3.14159265358979323846

/*
 * cos(pi x) for 0 <= x <= 1: brought into 0 .. pi/4, where the series has the terms that a double
 * can tell. Within 3e-16 of the exact value.
 */
static double cos_pi(double x)
{
    double y = x > 0.5 ? 1.0 - x : x, s = 1.0;
    bool sine = y > 0.25;
    double z = (sine ? 0.5 - y : y) * PI, w = z * z;
    for (int k = sine ? 21 : 20; k >= 2; k -= 2)
        s = 1.0 - w / (double)(k * (k - 1)) * s;
    s = sine ? z * s : s;
    return x > 0.5 ? -s : s;
}

/* x^n by squaring, lowest bit of n first. */
static double power(double x, uint64_t n)
{
    double y = 1.0;
    for (; n > 0; n /= 2) {
        if (n % 2 == 1)
            y = y * x;
        x = x * x;
    }
    return y;
}

/* From a to b along half a cosine, as t goes from 0 to 1. */
static double swing(double a, double b, double t)
{
    return b + (a - b) * (0.5 * (1.0 + cos_pi(t)));
}

static double one_cycle(const struct lks_lr_schedule *c, double lr, double s, double total)
{
    double rise = c->rise > 0 ? c->rise : 0.3, start = c->start > 0 ? c->start : 25.0;
    double first = lr / start, last = first / (c->end > 0 ? c->end : 10000.0);
    double top = rise * total - 1.0, down = total - 1.0 - top;
    if (s <= top && top > 0)
        return swing(first, lr, s / top);
    return swing(lr, last, s < total - 1.0 ? (s - top) / down : 1.0);
}

static double rate(const struct lks_optimizer *o, uint64_t step, uint64_t total, uint64_t epoch)
{
    const struct lks_lr_schedule *c = &o->schedule;
    double s, all;
    if (step < c->warmup)
        return o->lr * ((double)(step + 1) / (double)c->warmup);
    s = (double)(step - c->warmup);
    all = total > c->warmup ? (double)(total - c->warmup) : 1.0;
    if (s > all)
        s = all; /* an own loop that runs on */
    switch (c->kind) {
    case LKS_SCHEDULE_LINEAR:
        return c->min + (o->lr - c->min) * (1.0 - s / all);
    case LKS_SCHEDULE_STEP:
        return o->lr * power(c->factor > 0 ? c->factor : 0.1,
                             (step - c->warmup) / c->every /
                                 (c->every_epochs && epoch > 0 ? epoch : 1));
    case LKS_SCHEDULE_COSINE:
        return swing(o->lr, c->min, s / all);
    case LKS_SCHEDULE_ONE_CYCLE:
        return one_cycle(c, o->lr, s, all);
    default:
        return o->lr;
    }
}

double lks_learning_rate(const struct lks_optimizer *optimizer, uint64_t step, uint64_t total,
                         uint64_t epoch)
{
    struct lksi_fenv env;
    double lr;
    lksi_fenv_enter(&env);
    lr = rate(optimizer, step, total, epoch);
    lksi_fenv_leave(&env);
    return lr;
}
