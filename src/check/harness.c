/*
 * harness.c - the walk over operators, cases, schedules and regimes; see check.h.
 *
 * Cases of an operator are taken in batches, and all schedules of a batch are built as one program:
 * that is what costs least on devices which serialise builds. If the whole does not build, each
 * schedule is built alone, so that the right one is blamed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/classes.h"
#include "check/smallest.h"
#include "check/trial.h"

#define BATCH         16
#define MAX_SCHEDULES 16
#define HEAVY_FLOPS   2e7

/* One schedule of one case, ready to run; its stage stands at the same index of walk.stage. */
struct trial {
    struct lksi_program *program; /* if built alone */
    size_t row;
    int slot; /* of its case in the batch */
    bool broken;
};

struct walk {
    struct lksi_dev *dev, *ref;
    const struct lksi_check_options *options;
    const struct lksi_op *op;
    struct lksi_check_row row[MAX_SCHEDULES];
    bool wanted[MAX_SCHEDULES], served_elsewhere[MAX_SCHEDULES];
    size_t rows;
    struct lksi_oracle oracle[BATCH];
    int oracles;
    struct trial *trial;
    struct lksi_stage *stage; /* contiguous, as lksi_stages_build wants them */
    size_t trials, trial_capacity, stage_capacity;
    struct lksi_smallest smallest; /* of this operator, if asked for */
};

/* ---- rows ---- */

static const char *row_name(const struct walk *w, size_t i)
{
    const struct lksi_schedule *s;
    if (lksi_dev_is_ref(w->dev)) {
        if (w->op->ref == NULL)
            i++;
        return i == 0 ? "ref" : i == 1 ? "plain" : NULL;
    }
    s = lksi_op_schedule(w->op, i);
    return s != NULL ? s->name : NULL;
}

static bool open_rows(struct walk *w)
{
    const char *only = w->options->schedule, *name;
    bool any = false;
    w->rows = 0;
    memset(w->row, 0, sizeof w->row);
    memset(w->served_elsewhere, 0, sizeof w->served_elsewhere);
    while (w->rows < MAX_SCHEDULES && (name = row_name(w, w->rows)) != NULL) {
        w->wanted[w->rows] = only == NULL || strcmp(only, name) == 0;
        any |= w->wanted[w->rows];
        w->row[w->rows].op = w->op;
        w->row[w->rows].schedule = name;
        w->rows++;
    }
    return any;
}

static void begin_failure(const struct walk *w, const struct lksi_oracle *o, size_t row,
                          enum lksi_regime regime, struct lksi_check_failure *f)
{
    memset(f, 0, sizeof *f);
    f->op = w->op;
    f->schedule = w->row[row].schedule;
    snprintf(f->device, sizeof f->device, "%s", lksi_dev_limits(w->dev)->name);
    f->case_index = o != NULL ? o->index : 0;
    f->regime = regime;
    f->seed = w->options->seed;
    f->long_run = w->options->long_run;
    if (o != NULL)
        lksi_oracle_shapes(o, f->shapes, sizeof f->shapes);
}

static void keep_failure(struct walk *w, size_t row, const struct lksi_check_failure *f)
{
    if (w->row[row].failure.fault == LKSI_FAULT_NONE)
        w->row[row].failure = *f;
}

static void fail_row(struct walk *w, const struct lksi_oracle *o, size_t row,
                     enum lksi_check_fault fault, const char *text)
{
    struct lksi_check_failure f;
    begin_failure(w, o, row, LKSI_REGIME_UNIFORM, &f);
    f.fault = fault;
    snprintf(f.text, sizeof f.text, "%s", text);
    keep_failure(w, row, &f);
}

/* ---- a batch of cases ---- */

/* The reason why the row's schedule does not serve a case, or NULL. */
static const char *declined(struct walk *w, size_t row, const struct lksi_call *call)
{
    const struct lksi_schedule *s;
    if (lksi_dev_is_ref(w->dev))
        return NULL;
    s = lksi_op_schedule(w->op, row);
    w->served_elsewhere[row] |= lksi_classes_accept(s, call);
    return s->declines(call, lksi_dev_limits(w->dev));
}

/* This is one of the smallest cases of the schedule, or all are wanted. */
static bool small_enough(const struct walk *w, size_t row, int case_index)
{
    return w->options->smallest == 0 || lksi_dev_is_ref(w->dev) ||
           lksi_smallest_has(&w->smallest, row, case_index);
}

static lks_status add_trials(struct walk *w, int slot)
{
    const struct lksi_oracle *o = &w->oracle[slot];
    for (size_t r = 0; r < w->rows; r++) {
        const char *reason;
        struct trial *t;
        if (!w->wanted[r])
            continue;
        reason = declined(w, r, &o->call);
        if (reason != NULL) {
            w->row[r].declined++;
            if (w->row[r].reason == NULL)
                w->row[r].reason = reason;
            continue;
        }
        if (!small_enough(w, r, o->index))
            continue;
        if (!lksi_grow(&w->trial, &w->trial_capacity, w->trials + 1, sizeof *w->trial) ||
            !lksi_grow(&w->stage, &w->stage_capacity, w->trials + 1, sizeof *w->stage))
            return LKS_E_MEMORY;
        t = &w->trial[w->trials];
        memset(t, 0, sizeof *t);
        t->row = r;
        t->slot = slot;
        w->row[r].cases++;
        if (lksi_stage_choose(&w->stage[w->trials], w->dev, &o->call, w->row[r].schedule, NULL,
                              NULL) != LKS_OK)
            fail_row(w, o, r, LKSI_FAULT_STATUS, lks_error_message());
        else
            w->trials++;
    }
    return LKS_OK;
}

static bool too_big(const struct walk *w, const struct lksi_oracle *o)
{
    return w->options->max_flops > 0.0 && w->options->smallest == 0 &&
           lksi_op_flops(&o->call) > w->options->max_flops;
}

/* Next cases of the operator; *more false when they are used up. */
static lks_status gather(struct walk *w, int *index, bool *more)
{
    lks_status st = LKS_OK;
    const int only = w->options->only_case;
    *more = true;
    while (w->oracles < BATCH && *more) {
        int at = only > 0 ? only - 1 : *index;
        LKSI_TRY(lksi_oracle_open(&w->oracle[w->oracles], w->op, at, w->options->long_run, more));
        if (!*more)
            break;
        ++*index;
        *more = only == 0;
        if (too_big(w, &w->oracle[w->oracles]))
            lksi_oracle_close(&w->oracle[w->oracles]);
        else
            LKSI_TRY(add_trials(w, w->oracles++));
    }
fail:
    return st;
}

static void release(struct walk *w, struct lksi_program **program)
{
    for (size_t t = 0; t < w->trials; t++) {
        lksi_stage_close(&w->stage[t]);
        lksi_program_destroy(&w->trial[t].program);
    }
    lksi_program_destroy(program);
    for (int i = 0; i < w->oracles; i++)
        lksi_oracle_close(&w->oracle[i]);
    w->trials = 0;
    w->oracles = 0;
}

/* Builds the batch as one program, or, where that fails, each trial alone. */
static lks_status build(struct walk *w, struct lksi_program **program)
{
    const struct lksi_build_progress quiet = {NULL, NULL};
    lks_status st;
    if (w->trials == 0)
        return LKS_OK;
    st = lksi_stages_build(program, w->dev, w->stage, w->trials, quiet);
    if (st == LKS_OK || st == LKS_E_MEMORY)
        return st;
    for (size_t i = 0; i < w->trials; i++) {
        struct trial *t = &w->trial[i];
        st = lksi_stages_build(&t->program, w->dev, &w->stage[i], 1, quiet);
        if (st == LKS_E_MEMORY)
            return st;
        t->broken = st != LKS_OK;
        if (t->broken)
            fail_row(w, &w->oracle[t->slot], t->row, LKSI_FAULT_STATUS, lks_error_message());
    }
    return LKS_OK;
}

/* All schedules of one case, on the inputs of one regime. */
static lks_status run_regime(struct walk *w, struct lksi_arena *arena, int slot,
                             enum lksi_regime regime)
{
    struct lksi_oracle *o = &w->oracle[slot];
    struct lksi_check_failure contract;
    lks_status st;
    begin_failure(w, o, 0, regime, &contract);
    st = lksi_oracle_compute(o, w->ref, regime, w->options->seed, &contract);
    for (size_t i = 0; i < w->trials && st == LKS_OK; i++) {
        struct trial *t = &w->trial[i];
        struct lksi_check_failure f = contract;
        if (t->slot != slot)
            continue;
        f.schedule = w->row[t->row].schedule;
        if (f.fault == LKSI_FAULT_NONE && !t->broken)
            st = lksi_trial_run(arena, &w->stage[i], o, &f);
        w->row[t->row].runs++;
        if (f.fault == LKSI_FAULT_NONE && !t->broken)
            w->row[t->row].passed++;
        else if (f.fault != LKSI_FAULT_NONE)
            keep_failure(w, t->row, &f);
    }
    return st;
}

static bool slot_has_trial(const struct walk *w, int slot)
{
    for (size_t i = 0; i < w->trials; i++)
        if (w->trial[i].slot == slot)
            return true;
    return false;
}

/* Heavy cases are there for their sizes: two regimes, which show order and the sign of zero. */
static bool regime_wanted(const struct walk *w, int slot, enum lksi_regime regime)
{
    if (w->options->regime != NULL)
        return strcmp(w->options->regime, lksi_regime_name(regime)) == 0;
    return lksi_op_flops(&w->oracle[slot].call) <= HEAVY_FLOPS || regime == LKSI_REGIME_WIDE ||
           regime == LKSI_REGIME_UNDERFLOW;
}

static lks_status run_case(struct walk *w, int slot)
{
    lks_status st = LKS_OK;
    struct lksi_arena arena;
    if (!slot_has_trial(w, slot))
        return LKS_OK;
    LKSI_TRY(lksi_arena_open(&arena, w->dev, &w->oracle[slot]));
    for (int r = 0; r < LKSI_REGIMES && st == LKS_OK; r++)
        if (regime_wanted(w, slot, (enum lksi_regime)r))
            st = run_regime(w, &arena, slot, (enum lksi_regime)r);
    lksi_arena_close(&arena);
fail:
    return st;
}

/* ---- an operator ---- */

static void judge(struct walk *w, size_t r)
{
    struct lksi_check_row *row = &w->row[r];
    bool filtered = w->options->only_case > 0 || w->options->max_flops > 0.0;
    if (row->runs == 0 && row->failure.fault == LKSI_FAULT_NONE && !filtered) {
        if (row->declined == 0)
            fail_row(w, NULL, r, LKSI_FAULT_UNREACHED, "the operator has no test_case");
        else if (!w->served_elsewhere[r])
            fail_row(w, NULL, r, LKSI_FAULT_UNREACHED, row->reason);
    }
    if (row->failure.fault != LKSI_FAULT_NONE)
        row->verdict = LKSI_CHECK_FAILED;
    else
        row->verdict = row->runs > 0 ? LKSI_CHECK_PASSED : LKSI_CHECK_NOT_HERE;
}

static lks_status run_op(struct walk *w)
{
    lks_status st = LKS_OK;
    struct lksi_program *program = NULL;
    bool more = true;
    if (w->options->smallest > 0 && !lksi_dev_is_ref(w->dev))
        LKSI_TRY(lksi_smallest_find(&w->smallest, w->dev, w->op, w->options->long_run,
                                    w->options->smallest, w->options->max_flops));
    for (int index = 0; more;) {
        LKSI_TRY(gather(w, &index, &more));
        LKSI_TRY(build(w, &program));
        for (int slot = 0; slot < w->oracles; slot++)
            LKSI_TRY(run_case(w, slot));
        release(w, &program);
    }
fail:
    release(w, &program);
    if (st != LKS_OK)
        return lksi_fail_prefix(st, "check of `%s`: ", w->op->name);
    for (size_t r = 0; r < w->rows; r++)
        judge(w, r);
    return LKS_OK;
}

static const struct lksi_op *op_at(const struct lksi_check_options *options, size_t index)
{
    if (options->ops != NULL)
        return options->ops[index];
    return lksi_op_at(index);
}

static lks_status check_filters(const struct lksi_check_options *options)
{
    enum lksi_regime regime;
    if (options->regime != NULL && !lksi_regime_find(options->regime, &regime))
        return lksi_fail(LKS_E_ARGUMENT, "no regime `%s`", options->regime);
    return LKS_OK;
}

lks_status lksi_check_run(struct lksi_dev *dev, const struct lksi_check_options *options,
                          lksi_check_fn fn, void *user, size_t *failed)
{
    const struct lksi_check_options none = {0};
    const struct lksi_dev_params as_ref = {.select = "ref", .cache_dir = ""};
    struct walk *w = lksi_alloc(1, sizeof *w);
    lks_status st = LKS_OK;
    size_t bad = 0, seen = 0;
    if (w == NULL)
        return LKS_E_MEMORY;
    w->dev = dev;
    w->options = options != NULL ? options : &none;
    LKSI_TRY(check_filters(w->options));
    LKSI_TRY(lksi_dev_open(&w->ref, &as_ref));
    for (size_t i = 0; (w->op = op_at(w->options, i)) != NULL; i++) {
        if (w->options->op != NULL && strcmp(w->options->op, w->op->name) != 0)
            continue;
        if (!open_rows(w))
            continue;
        LKSI_TRY(run_op(w));
        for (size_t r = 0; r < w->rows; r++) {
            if (!w->wanted[r])
                continue;
            seen++;
            bad += w->row[r].verdict == LKSI_CHECK_FAILED;
            fn(user, &w->row[r]);
        }
    }
    if (seen == 0 && (w->options->op != NULL || w->options->schedule != NULL))
        LKSI_TRY(lksi_fail(LKS_E_ARGUMENT, "no operator `%s` with a schedule `%s`",
                           w->options->op != NULL ? w->options->op : "*",
                           w->options->schedule != NULL ? w->options->schedule : "*"));
    if (failed != NULL)
        *failed = bad;
fail:
    lksi_dev_close(&w->ref);
    lksi_smallest_close(&w->smallest);
    free(w->trial);
    free(w->stage);
    free(w);
    return st;
}
