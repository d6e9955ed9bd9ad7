/*
 * optimizer.c - defaults, names and checks of optimisers; see optimizer.h.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "model/optimizer.h"

enum {
    S = 1 << LKS_OPTIMIZER_SGD,
    A = 1 << LKS_OPTIMIZER_ADAM,
    W = 1 << LKS_OPTIMIZER_ADAMW,
    R = 1 << LKS_OPTIMIZER_RMSPROP,
    G = 1 << LKS_OPTIMIZER_ADAGRAD,
    L = 1 << LKS_OPTIMIZER_LAMB,
    ALL = S | A | W | R | G | L
};

#define AT(member) offsetof(struct lks_optimizer, member)
const struct lksi_optimizer_field lksi_optimizer_fields[] = {
    {"lr", AT(lr), ALL, LKSI_ABOVE_0},
    {"momentum", AT(momentum), S | R, LKSI_BELOW_1},
    {"weight_decay", AT(weight_decay), ALL, LKSI_FROM_0},
    {"beta1", AT(beta1), A | W | L, LKSI_BELOW_1},
    {"beta2", AT(beta2), A | W | L, LKSI_BELOW_1},
    {"alpha", AT(alpha), R, LKSI_BELOW_1},
    {"eps", AT(eps), A | W | R | G | L, LKSI_ABOVE_0},
    {"lr_decay", AT(lr_decay), G, LKSI_FROM_0},
    {"initial_accumulator", AT(initial_accumulator), G, LKSI_FROM_0},
    {"clip_norm", AT(clip_norm), ALL, LKSI_FROM_0},
    {"clip_value", AT(clip_value), ALL, LKSI_FROM_0},
    {NULL, 0, 0, LKSI_FROM_0},
};

static const char *const names[LKSI_OPTIMIZERS] = {"sgd",     "adam",    "adamw",
                                                   "rmsprop", "adagrad", "lamb"};
static const char *const schedules[] = {"constant", "linear", "step", "cosine", "one_cycle"};

const char *lks_optimizer_name(lks_optimizer_kind kind)
{
    return (unsigned)kind < LKSI_OPTIMIZERS ? names[kind] : "?";
}

const char *lks_schedule_name(lks_schedule schedule)
{
    return (unsigned)schedule < LKSI_COUNT(schedules) ? schedules[schedule] : "?";
}

struct lks_optimizer lks_optimizer_default(lks_optimizer_kind kind)
{
    struct lks_optimizer o = {.kind = kind, .lr = 0.01};
    switch (kind) {
    case LKS_OPTIMIZER_SGD:
        return o;
    case LKS_OPTIMIZER_ADAM:
    case LKS_OPTIMIZER_ADAMW:
    case LKS_OPTIMIZER_LAMB:
        o.lr = 0.001;
        o.beta1 = 0.9;
        o.beta2 = 0.999;
        o.eps = kind == LKS_OPTIMIZER_LAMB ? 1e-6 : 1e-8;
        o.weight_decay = kind == LKS_OPTIMIZER_ADAM ? 0.0 : 0.01;
        return o;
    case LKS_OPTIMIZER_RMSPROP:
        o.alpha = 0.99;
        o.eps = 1e-8;
        return o;
    case LKS_OPTIMIZER_ADAGRAD:
        o.eps = 1e-10;
        return o;
    }
    return (struct lks_optimizer){.kind = kind};
}

struct lks_optimizer lks_optimizer_of_sgd(const struct lks_sgd *sgd)
{
    return (struct lks_optimizer){
        .kind = LKS_OPTIMIZER_SGD,
        .lr = sgd->lr,
        .momentum = sgd->momentum,
        .weight_decay = sgd->weight_decay,
        .nesterov = sgd->nesterov,
        .schedule = {.kind = sgd->schedule},
    };
}

/* ---- checks ---- */

static lks_status check_field(const struct lks_optimizer *o, const struct lksi_optimizer_field *f)
{
    static const char *const words[] = {
        [LKSI_ABOVE_0] = "above 0", [LKSI_FROM_0] = "0 or more", [LKSI_BELOW_1] = "0 up to below 1"};
    double v = *lksi_optimizer_number((struct lks_optimizer *)(uintptr_t)o, f);
    bool right = v >= 0 && v <= (double)FLT_MAX;
    if (!lksi_optimizer_reads(o, f))
        return v == 0 ? LKS_OK
                      : lksi_fail(LKS_E_ARGUMENT, "%s does not read %s, which is %g; leave it 0",
                                  names[o->kind], f->name, v);
    if (f->range == LKSI_BELOW_1)
        right = right && v < 1;
    if (f->range == LKSI_ABOVE_0)
        right = right && (float)v > 0;
    if (!right)
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: %s is %g, expected %s, and a number that a 32-bit float can hold",
                         names[o->kind], f->name, v, words[f->range]);
    return LKS_OK;
}

static lks_status check_schedule(const struct lks_optimizer *o)
{
    const struct lks_lr_schedule *s = &o->schedule;
    const char *name = names[o->kind];
    if ((unsigned)s->kind >= LKSI_COUNT(schedules))
        return lksi_fail(LKS_E_ARGUMENT, "%s: there is no schedule %d", name, (int)s->kind);
    if (!(s->min >= 0 && s->min <= o->lr))
        return lksi_fail(LKS_E_ARGUMENT, "%s: the schedule's min is %g, expected 0 to lr, %g", name,
                         s->min, o->lr);
    if (s->kind == LKS_SCHEDULE_STEP && s->every == 0)
        return lksi_fail(LKS_E_ARGUMENT, "%s: the schedule `step` needs `every`", name);
    if (!(s->factor >= 0 && s->factor <= 1))
        return lksi_fail(LKS_E_ARGUMENT, "%s: the schedule's factor is %g, expected above 0 up to 1",
                         name, s->factor);
    if (!(s->rise >= 0 && s->rise < 1) || !(s->start == 0 || (s->start >= 1 && s->start <= 1e9)) ||
        !(s->end == 0 || (s->end >= 1 && s->end <= 1e9)))
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: one cycle has rise %g (expected above 0 and below 1), start %g and "
                         "end %g (1 to 1e9)",
                         name, s->rise, s->start, s->end);
    return LKS_OK;
}

lks_status lksi_optimizer_check(const struct lks_optimizer *o)
{
    lks_status st = LKS_OK;
    if ((unsigned)o->kind >= LKSI_OPTIMIZERS)
        return lksi_fail(LKS_E_ARGUMENT, "there is no optimiser %d", (int)o->kind);
    for (const struct lksi_optimizer_field *f = lksi_optimizer_fields;
         f->name != NULL && st == LKS_OK; f++)
        st = check_field(o, f);
    if (st != LKS_OK)
        return st;
    if (o->nesterov && (o->kind != LKS_OPTIMIZER_SGD || o->momentum == 0))
        return lksi_fail(LKS_E_ARGUMENT, "%s: nesterov belongs to sgd with a momentum above 0",
                         names[o->kind]);
    if (o->centered && o->kind != LKS_OPTIMIZER_RMSPROP)
        return lksi_fail(LKS_E_ARGUMENT, "%s: centered belongs to rmsprop", names[o->kind]);
    return check_schedule(o);
}

bool lksi_schedule_needs_total(const struct lks_lr_schedule *s)
{
    return s->kind == LKS_SCHEDULE_LINEAR || s->kind == LKS_SCHEDULE_COSINE ||
           s->kind == LKS_SCHEDULE_ONE_CYCLE;
}

bool lksi_schedule_needs_epoch(const struct lks_lr_schedule *s)
{
    return s->kind == LKS_SCHEDULE_STEP && s->every_epochs;
}

bool lksi_pattern_fits(const char *pattern, const char *name)
{
    const char *star = NULL, *mark = name; /* behind the last `*`, and what it reaches to */
    while (*name != '\0') {
        if (*pattern == '*') {
            star = ++pattern;
            mark = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (star != NULL) {
            pattern = star;
            name = ++mark;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}
