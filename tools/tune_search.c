/*
 * tune_search.c - looks for the fastest schedule and choices of each operator of a step, or of one
 * that the options describe. Every candidate must first give the contract's bits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "progress.h"
#include "rt/api.h"
#include "train/train.h"
#include "tune.h"

enum { FINALISTS = 4, ROUNDS = 25, DUEL = 25, MAX_TRIED = 128 };

/* A call, how often a step makes it, and what its first choice takes. */
struct job {
    struct lksi_call call;
    void *attr;
    char text[192], layer[64];
    size_t count;
    double ms;
};

struct jobs {
    struct job *job;
    size_t n, cap;
};

static void jobs_free(struct jobs *j)
{
    for (size_t i = 0; i < j->n; i++)
        free(j->job[i].attr);
    free(j->job);
}

static bool known(char *const *list, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], text) == 0)
            return true;
    return false;
}

static void tell(const struct tune *t, const char *word, const char *text)
{
    char line[512];
    int n = snprintf(line, sizeof line, "%s %s\n", word, text);
    if (n > 0 && write(t->report, line, (size_t)n) != n)
        _exit(EXIT_DEVICE); /* nobody watches any more */
}

/* ---- what there is to do ---- */

/* More than one way to serve it. */
static bool has_choice(const struct tune *t, const struct lksi_call *call)
{
    const struct lksi_limits *l = lksi_dev_limits(t->b.dev);
    const struct lksi_schedule *s;
    char text[LKSI_CHOICE_TEXT];
    size_t n = 0;
    for (size_t i = 0; (s = lksi_op_schedule(call->op, i)) != NULL; i++) {
        if (s->declines(call, l) != NULL)
            continue;
        n++;
        for (int k = 0; s->tunables != NULL && s->tunables[k].name != NULL; k++)
            n += s->tunables[k].choice(call, l, 1, text);
    }
    return n > 1;
}

/* Adds the call unless it is there. The attributes are copied. */
static lks_status add_job(struct jobs *j, const struct lksi_call *call, const char *layer)
{
    struct job *new;
    for (size_t i = 0; i < j->n; i++) {
        const struct lksi_call *c = &j->job[i].call;
        bool same = c->op == call->op && c->leaf == call->leaf && c->n_in == call->n_in &&
                    (call->op->attr_size == 0 ||
                     memcmp(c->attr, call->attr, call->op->attr_size) == 0);
        for (int k = 0; k < call->n_in && same; k++)
            same = lksi_desc_equal(&c->in[k], &call->in[k]);
        if (same) {
            j->job[i].count++;
            return LKS_OK;
        }
    }
    if (!lksi_grow(&j->job, &j->cap, j->n + 1, sizeof *j->job))
        return LKS_E_MEMORY;
    new = &j->job[j->n];
    memset(new, 0, sizeof *new);
    new->attr = lksi_alloc(1, call->op->attr_size + 1);
    if (new->attr == NULL)
        return LKS_E_MEMORY;
    if (call->op->attr_size > 0)
        memcpy(new->attr, call->attr, call->op->attr_size);
    new->call = *call;
    new->call.attr = new->attr;
    new->count = 1;
    bench_call_text(call, new->text, sizeof new->text);
    snprintf(new->layer, sizeof new->layer, "%s", layer);
    j->n++;
    return LKS_OK;
}

static lks_status jobs_of_model(struct tune *t, const char *file, struct jobs *j)
{
    lks_model *model = NULL;
    lks_trainer *trainer = NULL;
    lks_device *device = NULL;
    struct lksi_step_plan *step = NULL;
    lks_status st = lks_model_open(&model, file);
    if (st == LKS_OK)
        st = bench_trainer(&t->b, model, false, &device, &trainer);
    if (st == LKS_OK)
        step = &trainer->plan[0];
    for (size_t s = 0; st == LKS_OK && s < lksi_plan_stages(step->plan); s++) {
        const struct lksi_call *call = &lksi_plan_stage(step->plan, s)->call;
        if (has_choice(t, call))
            st = add_job(j, call, lksi_plan_stage_name(step->plan, s));
    }
    lks_trainer_destroy(&trainer);
    lks_device_close(&device);
    lks_model_destroy(&model);
    return st;
}

static lks_status job_of_op(struct tune *t, struct jobs *j)
{
    const struct lksi_op *op = lksi_op_find(t->o->bench.op);
    void *attr = lksi_alloc(1, op->attr_size + 1), *scratch = lksi_alloc(1, op->attr_size + 1);
    struct lksi_call call;
    lks_status st = attr != NULL && scratch != NULL ? LKS_OK : LKS_E_MEMORY;
    if (st == LKS_OK)
        st = bench_make_call(&t->b, op, attr, scratch, &call);
    if (st == LKS_OK)
        st = add_job(j, &call, op->name);
    free(attr);
    free(scratch);
    return st;
}

/* ---- candidates ---- */

struct search {
    struct tune *t;
    struct job *job;
    struct bench_buffers buffers;
    struct tune_candidate *kept[FINALISTS + 1]; /* by quick time */
    size_t n_kept, tried;
    double until;
};

static void candidate_free(struct tune_candidate **c)
{
    if (*c == NULL)
        return;
    if ((*c)->stage != NULL)
        lksi_stage_close((*c)->stage);
    lksi_program_destroy(&(*c)->program);
    free((*c)->stage);
    free(*c);
    *c = NULL;
}

/* Inputs of plain numbers are parts of one pool, filled once: making them for every call would take
 * longer than the search. */
static lks_status share_inputs(struct search *s)
{
    const struct lksi_call *call = &s->job->call;
    uint64_t align = lksi_dev_limits(s->t->b.dev)->base_align, offset = 0;
    lks_status st = LKS_OK;
    for (int j = 0; j < call->n_out; j++)
        if (call->op->alias[j] != 0)
            return LKS_OK; /* it would write there */
    if (call->op->test_input != NULL || align == 0)
        return LKS_OK;
    for (int i = 0; i < call->n_in && st == LKS_OK; i++) {
        uint64_t bytes = 4u * (uint64_t)lksi_desc_count(&call->in[i]);
        if (call->in[i].dtype == LKSI_F32 && offset + bytes <= lksi_buf_bytes(s->t->pool)) {
            st = lksi_buf_part(&s->buffers.in[i], s->t->pool, offset, bytes);
            offset += (bytes + align - 1) / align * align;
        }
    }
    return st;
}

static lks_status bind(void *user, struct tune_candidate *c)
{
    struct search *s = user;
    tell(s->t, "alive", "");
    return bench_bind(&s->t->b, &s->buffers, c->stage);
}

static void name_candidate(const struct search *s, struct tune_candidate *c)
{
    const struct lksi_tunable *t = c->pick.schedule->tunables;
    size_t used = (size_t)snprintf(c->text, sizeof c->text, "%s", c->pick.schedule->name);
    for (int i = 0; t != NULL && i < LKSI_MAX_TUNABLE && t[i].name != NULL; i++) {
        char text[LKSI_CHOICE_TEXT];
        if (c->pick.tuned[i] > 0 && used < sizeof c->text &&
            t[i].choice(&s->job->call, lksi_dev_limits(s->t->b.dev), c->pick.tuned[i], text))
            used += (size_t)snprintf(c->text + used, sizeof c->text - used, ", %s %s", t[i].name,
                                     text);
    }
}

/* Builds, checks against the contract, binds and times it a few times. A failure is the candidate's
 * own; *why says it. */
static lks_status prepare(struct search *s, struct tune_candidate *c, const char **why)
{
    const struct lksi_build_progress quiet = {NULL, NULL};
    struct lksi_dev *dev = s->t->b.dev;
    bool right = false;
    lks_status st = LKS_OK;
    *why = "does not build or run";
    c->stage = lksi_alloc(1, sizeof *c->stage);
    if (c->stage == NULL)
        return LKS_E_MEMORY;
    if (!lksi_stage_pick(c->stage, dev, &s->job->call, &c->pick))
        return lksi_fail(LKS_E_ARGUMENT, "it declines");
    LKSI_TRY(lksi_stages_build(&c->program, dev, c->stage, 1, quiet));
    LKSI_TRY(lksi_admit(c->stage, c->program, &right));
    if (!right) {
        *why = "gives other bits than the contract";
        return lksi_fail(LKS_E_MISMATCH, "refused");
    }
    LKSI_TRY(bind(s, c));
    LKSI_TRY(tune_quick(c, dev));
fail:
    return st;
}

/* Keeps it if it is among the best. */
static void keep(struct search *s, struct tune_candidate *c)
{
    size_t at = s->n_kept;
    while (at > 0 && s->kept[at - 1]->quick > c->quick)
        at--;
    memmove(&s->kept[at + 1], &s->kept[at], (s->n_kept - at) * sizeof s->kept[0]);
    s->kept[at] = c;
    if (++s->n_kept > FINALISTS)
        candidate_free(&s->kept[--s->n_kept]);
}

/* *quick: its time, or 0 if it failed or was left out. Fails only where nothing can go on. */
static lks_status try_pick(struct search *s, const struct lksi_pick *pick, double *quick)
{
    struct tune_candidate *c = lksi_alloc(1, sizeof *c);
    char line[384];
    const char *why;
    lks_status st;
    *quick = 0;
    if (c == NULL)
        return LKS_E_MEMORY;
    c->pick = *pick;
    name_candidate(s, c);
    snprintf(line, sizeof line, "%s: %s", s->job->text, c->text);
    if (known(s->t->past->bad, s->t->past->n_bad, line) || s->tried++ >= MAX_TRIED) {
        candidate_free(&c);
        return LKS_OK;
    }
    tell(s->t, "try", line);
    st = prepare(s, c, &why);
    if (st == LKS_OK) {
        *quick = c->quick;
        keep(s, c);
        return LKS_OK;
    }
    printf("  skipped %s: %s%s%s\n", line, why, st == LKS_E_MISMATCH ? "" : ": ",
           st == LKS_E_MISMATCH ? "" : lks_error_message());
    candidate_free(&c);
    return st == LKS_E_MEMORY || st == LKS_E_DEVICE || st == LKS_E_MISMATCH ||
                   st == LKS_E_ARGUMENT || st == LKS_E_NUMERICS
               ? LKS_OK
               : st;
}

/* Builds the kernels of all choices of a tunable at once where the driver builds in parallel; each
 * candidate then finds its own. A failure shows again when its turn comes. */
static lks_status build_ahead(struct search *s, struct lksi_pick pick, int k)
{
    const struct lksi_build_progress quiet = {NULL, NULL};
    const struct lksi_limits *l = lksi_dev_limits(s->t->b.dev);
    struct tune *t = s->t;
    struct lksi_stage *stage = NULL;
    char text[LKSI_CHOICE_TEXT], line[384];
    size_t n = 0, cap = 0;
    lks_status st = LKS_OK;
    snprintf(line, sizeof line, "%s: %s, all choices of %s", s->job->text, pick.schedule->name,
             pick.schedule->tunables[k].name);
    if (l->type != LKSI_DEV_GPU || known(t->past->bad, t->past->n_bad, line))
        return LKS_OK;
    tell(t, "try", line);
    for (int i = 1; pick.schedule->tunables[k].choice(&s->job->call, l, i, text); i++) {
        if (!lksi_grow(&stage, &cap, n + 1, sizeof *stage)) {
            free(stage);
            return LKS_E_MEMORY;
        }
        pick.tuned[k] = i;
        n += lksi_stage_pick(&stage[n], t->b.dev, &s->job->call, &pick);
    }
    if (!lksi_grow(&t->ahead, &t->cap_ahead, t->n_ahead + 1, sizeof *t->ahead))
        st = LKS_E_MEMORY;
    else if (lksi_stages_build(&t->ahead[t->n_ahead], t->b.dev, stage, n, quiet) == LKS_OK) {
        t->n_ahead++;
        for (size_t i = 0; i < n; i++)
            lksi_stage_close(&stage[i]);
    }
    free(stage);
    return st;
}

/* One tunable after the other, each with the best choices of those before. */
static lks_status try_choices(struct search *s, struct lksi_pick pick, double quick)
{
    const struct lksi_limits *l = lksi_dev_limits(s->t->b.dev);
    const struct lksi_tunable *t = pick.schedule->tunables;
    lks_status st = LKS_OK;
    for (int k = 0; st == LKS_OK && t != NULL && t[k].name != NULL; k++) {
        int best = 0;
        char text[LKSI_CHOICE_TEXT];
        st = build_ahead(s, pick, k);
        for (int i = 1; st == LKS_OK && seconds_now() < s->until &&
                        t[k].choice(&s->job->call, l, i, text);
             i++) {
            double ms;
            pick.tuned[k] = i;
            st = try_pick(s, &pick, &ms);
            if (ms > 0 && ms < quick) {
                quick = ms;
                best = i;
            }
        }
        pick.tuned[k] = best;
    }
    return st;
}

/* `plain` is worth a try only where the first choice is slow or small. */
static lks_status try_all(struct search *s, const struct tune_candidate *first)
{
    const struct lksi_limits *l = lksi_dev_limits(s->t->b.dev);
    const struct lksi_call *call = &s->job->call;
    const struct lksi_schedule *x;
    lks_status st = LKS_OK;
    for (size_t i = 0; st == LKS_OK && (x = lksi_op_schedule(call->op, i)) != NULL; i++) {
        struct lksi_pick pick = {.schedule = x};
        double quick = first->quick;
        bool is_first = x == first->pick.schedule, plain = strcmp(x->name, "plain") == 0;
        if (x->declines(call, l) != NULL || (plain && first->quick > 0.2 && !is_first) ||
            seconds_now() >= s->until)
            continue;
        if (!is_first)
            st = try_pick(s, &pick, &quick);
        if (st == LKS_OK && quick > 0 && quick < 2 * first->quick)
            st = try_choices(s, pick, quick);
    }
    return st;
}

/* ---- the result of a call ---- */

struct result {
    const struct search *s;
    const struct tune_candidate *first, *best; /* the same where the first choice stays */
};

static lks_status edit(void *user, struct lksi_tuning_file *f)
{
    const struct result *r = user;
    const struct lksi_limits *l = lksi_dev_limits(r->s->t->b.dev);
    const struct lksi_call *call = &r->s->job->call;
    struct lksi_tuning_table *table;
    struct lksi_tuning_entry e = {0};
    struct lksi_pick other; /* that would be used unless an entry names the first choice */
    lks_status st = LKS_OK;
    LKSI_TRY(lksi_tuning_table_of(f, l, &table));
    LKSI_TRY(lksi_tuning_entry_make(&e, call));
    if (r->best == r->first && !lksi_tuning_find(r->s->t->built_in, call, &other)) {
        lksi_tuning_drop(table, &e);
        lksi_tuning_entry_free(&e);
        return LKS_OK;
    }
    const struct lksi_tunable *t = r->best->pick.schedule->tunables;
    e.schedule = lksi_strdup(r->best->pick.schedule->name);
    e.before = lksi_strdup(r->first->pick.schedule->name);
    e.version = r->best->pick.schedule->version;
    e.ms = r->best->ms;
    e.before_ms = r->first->ms;
    st = e.schedule != NULL && e.before != NULL ? LKS_OK : LKS_E_MEMORY;
    for (int i = 0; t != NULL && t[i].name != NULL && st == LKS_OK; i++) {
        char text[LKSI_CHOICE_TEXT];
        if (r->best->pick.tuned[i] == 0 || !t[i].choice(call, l, r->best->pick.tuned[i], text))
            continue;
        e.choice[e.n_choice].name = lksi_strdup(t[i].name);
        e.choice[e.n_choice].value = lksi_strdup(text);
        if (e.choice[e.n_choice].name == NULL || e.choice[e.n_choice].value == NULL)
            st = LKS_E_MEMORY;
        e.n_choice++;
    }
    if (st == LKS_OK)
        return lksi_tuning_put(table, &e);
fail:
    lksi_tuning_entry_free(&e);
    return st;
}

static void print_result(const struct result *r)
{
    const struct job *j = r->s->job;
    if (r->best == r->first)
        printf("%10.4f %10s %7s  %s, %s: %s stays, %zu tried\n", r->first->ms, "", "", j->layer,
               j->text, r->first->text, r->s->tried);
    else
        printf("%10.4f %10.4f %6.1f%%  %s, %s: %s in place of %s, %zu tried\n", r->first->ms,
               r->best->ms, 100 * (1 - r->best->ratio), j->layer, j->text, r->best->text,
               r->first->text, r->s->tried);
    fflush(stdout);
}

/* The best of those kept, if it is clearly better than the first choice twice: among all, and alone
 * against it, since the best of many has been lucky, too. */
static lks_status decide(struct search *s, struct tune_candidate *first, struct result *r)
{
    bool clear[FINALISTS + 1] = {false}, again = false;
    struct tune_candidate *best = NULL;
    lks_status st = LKS_OK;
    if (s->n_kept == 0) {
        first->ms = first->quick;
        return LKS_OK;
    }
    LKSI_TRY(tune_rounds(first, s->kept, s->n_kept, ROUNDS, s->until, bind, s, clear));
    for (size_t i = 0; i < s->n_kept; i++)
        if (clear[i] && (best == NULL || s->kept[i]->ratio < best->ratio))
            best = s->kept[i];
    if (best != NULL)
        LKSI_TRY(tune_rounds(first, &best, 1, DUEL, s->until, bind, s, &again));
    r->best = again ? best : first;
fail:
    return st;
}

/* The first choice, as a training without tuning makes it. */
static lks_status make_first(struct search *s, struct tune_candidate **first)
{
    struct tune_candidate *c;
    const struct lksi_schedule *x;
    const struct lksi_limits *l = lksi_dev_limits(s->t->b.dev);
    const char *why;
    lks_status st = share_inputs(s);
    for (size_t i = 0; st == LKS_OK && (x = lksi_op_schedule(s->job->call.op, i)) != NULL; i++) {
        if (x->declines(&s->job->call, l) != NULL)
            continue;
        c = lksi_alloc(1, sizeof *c);
        if (c == NULL)
            return LKS_E_MEMORY;
        c->pick.schedule = x;
        name_candidate(s, c);
        st = prepare(s, c, &why);
        if (st == LKS_OK) {
            *first = c;
            return LKS_OK;
        }
        candidate_free(&c);
        st = st == LKS_E_MISMATCH ? LKS_OK : st;
    }
    if (st != LKS_OK)
        return st;
    return lksi_fail(LKS_E_NUMERICS, "%s: no schedule gives the contract's bits", s->job->text);
}

static lks_status search(struct tune *t, struct job *job, double until)
{
    struct search s = {.t = t, .job = job, .until = until};
    struct result r = {.s = &s};
    struct tune_candidate *first = NULL;
    lks_status st = LKS_OK;
    LKSI_TRY(make_first(&s, &first));
    LKSI_TRY(try_all(&s, first));
    r.first = r.best = first;
    LKSI_TRY(decide(&s, first, &r));
    LKSI_TRY(lksi_tuning_edit(t->path, edit, &r));
    print_result(&r);
    if (r.best != r.first)
        tell(t, "better", job->text);
    tell(t, "done", job->text);
fail:
    for (size_t i = 0; i < s.n_kept; i++)
        candidate_free(&s.kept[i]);
    candidate_free(&first);
    bench_buffers_free(&s.buffers);
    return st;
}

/* ---- all calls ---- */

static int by_time(const void *a, const void *b)
{
    double x = ((const struct job *)a)->ms * (double)((const struct job *)a)->count;
    double y = ((const struct job *)b)->ms * (double)((const struct job *)b)->count;
    return (x < y) - (x > y);
}

/* What the first choices take, so that time is spent where a step spends it. */
static lks_status time_jobs(struct tune *t, struct jobs *j)
{
    for (size_t i = 0; i < j->n; i++) {
        struct search s = {.t = t, .job = &j->job[i]};
        struct tune_candidate *first = NULL;
        lks_status st;
        if (known(t->past->bad, t->past->n_bad, j->job[i].text))
            continue;
        tell(t, "try", j->job[i].text);
        st = make_first(&s, &first);
        if (st == LKS_OK)
            j->job[i].ms = first->quick;
        candidate_free(&first);
        bench_buffers_free(&s.buffers);
        if (st != LKS_OK)
            return st;
    }
    qsort(j->job, j->n, sizeof *j->job, by_time);
    return LKS_OK;
}

static lks_status begin_file(void *user, struct lksi_tuning_file *f)
{
    const struct tune *t = user;
    struct lksi_tuning_table *table;
    return lksi_tuning_table_of(f, lksi_dev_limits(t->b.dev), &table);
}

static lks_status search_all(struct tune *t, struct jobs *j)
{
    double left = 0;
    lks_status st = lksi_tuning_edit(t->path, begin_file, t);
    if (st != LKS_OK)
        return st;
    tell(t, "begin", "");
    if (t->end == 0)
        t->end = seconds_now() + (double)(t->o->budget.given ? t->o->budget.value : TUNE_BUDGET);
    for (size_t i = 0; i < j->n; i++)
        if (!known(t->past->done, t->past->n_done, j->job[i].text))
            left += j->job[i].ms * (double)j->job[i].count;
    printf("%s%10s %10s %7s%s\n", color_bold(1), "before, ms", "after, ms", "saved", color_off(1));
    for (size_t i = 0; i < j->n; i++) {
        struct job *job = &j->job[i];
        double now = seconds_now(), own = job->ms * (double)job->count;
        if (known(t->past->done, t->past->n_done, job->text) ||
            known(t->past->bad, t->past->n_bad, job->text))
            continue;
        if (now >= t->end) {
            printf("the time is over; %zu of %zu calls were not looked at\n", j->n - i, j->n);
            return LKS_OK;
        }
        st = search(t, job, now + (t->end - now) * own / left);
        if (st != LKS_OK)
            return st;
        left -= own;
    }
    return LKS_OK;
}

/* As large as the largest call needs, up to a quarter of what the device gives at once. */
static lks_status make_pool(struct tune *t, const struct jobs *j)
{
    enum { PIECE = 1 << 20 };
    const struct lksi_limits *l = lksi_dev_limits(t->b.dev);
    uint64_t most = 4, seed = 1;
    float *piece = lksi_alloc(PIECE, sizeof *piece);
    lks_status st = piece != NULL ? LKS_OK : LKS_E_MEMORY;
    for (size_t i = 0; i < j->n; i++) {
        uint64_t bytes = 0;
        for (int k = 0; k < j->job[i].call.n_in; k++)
            bytes += 4u * (uint64_t)lksi_desc_count(&j->job[i].call.in[k]) + l->base_align;
        most = bytes > most && bytes <= l->max_alloc && bytes <= l->memory / 4 ? bytes : most;
    }
    for (size_t i = 0; st == LKS_OK && i < PIECE; i++) { /* in [-1, 1) */
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        piece[i] = (float)(int32_t)(seed >> 32) * 0x1p-31f;
    }
    if (st == LKS_OK)
        st = lksi_buf_create(&t->pool, t->b.dev, most);
    for (uint64_t at = 0; st == LKS_OK && at < most; at += PIECE * sizeof *piece) {
        uint64_t bytes = most - at < PIECE * sizeof *piece ? most - at : PIECE * sizeof *piece;
        st = lksi_buf_write(t->pool, at, piece, bytes, true);
    }
    free(piece);
    return st;
}

int tune_work(struct tune *t, const char *model_file)
{
    struct jobs jobs = {0};
    lks_status st = LKS_OK;
    LKSI_TRY(model_file != NULL ? jobs_of_model(t, model_file, &jobs) : job_of_op(t, &jobs));
    LKSI_TRY(make_pool(t, &jobs));
    LKSI_TRY(time_jobs(t, &jobs));
    LKSI_TRY(search_all(t, &jobs));
fail:
    for (size_t i = 0; i < t->n_ahead; i++)
        lksi_program_destroy(&t->ahead[i]);
    free(t->ahead);
    lksi_buf_destroy(&t->pool);
    jobs_free(&jobs);
    return st == LKS_OK ? EXIT_OK : fail_library(st);
}
