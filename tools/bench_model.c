/*
 * bench_model.c - times the training step of a model. The steps are real: the data, the order and
 * the updates of a training, queued as `train` queues them. With --profile a second run on a device
 * with event times takes each step apart; --trace (bench_trace.c) writes a timeline of a few.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "bench.h"
#include "progress.h"
#include "rt/api.h"
#include "train/train.h"

enum { WARM = 2 };

struct model_bench {
    struct bench *b;
    lks_model *model;
    lks_trainer *trainer;
    lks_device *device;
};

lks_status bench_trainer(const struct bench *b, const lks_model *model, bool profile,
                         lks_device **device, lks_trainer **trainer)
{
    const struct lksi_limits *l = lksi_dev_limits(b->dev);
    const struct bench_options *o = b->o;
    struct lks_trainer_params p;
    char select[64] = "ref";
    lks_status st;
    if (!lksi_dev_is_ref(b->dev))
        snprintf(select, sizeof select, "%d:%d", l->platform_index, l->device_index);
    st = lksi_device_open(device,
                          lks_device_params(.select = select,
                                            .threads = (int)o->device.threads.value,
                                            .tuning = o->device.tuning),
                          profile);
    if (st != LKS_OK)
        return st;
    lks_model_trainer_params(model, &p);
    p.device = *device;
    p.plain = o->plain;
    p.epochs = UINT32_MAX; /* it shall not end; and every batch shall be whole */
    p.drop_last = true;
    if (o->batch.given)
        p.batch = (uint32_t)o->batch.value;
    if (o->leaf.given)
        p.leaf = (uint32_t)o->leaf.value;
    if (o->seed.given)
        p.seed = o->seed.value;
    take_resident(o->resident, &p); /* checked when options were read */
    return lks_trainer_create(trainer, lks_model_graph(model), &p);
}

static lks_status open_trainer(struct model_bench *m, bool profile)
{
    return bench_trainer(m->b, m->model, profile, &m->device, &m->trainer);
}

static void close_trainer(struct model_bench *m)
{
    lks_trainer_destroy(&m->trainer);
    lks_device_close(&m->device);
}

static lks_status train_steps(struct model_bench *m, uint64_t steps)
{
    return lks_trainer_fit(m->trainer,
                           lks_fit_params(.train = lks_model_train_data(m->model),
                                          .max_steps = lks_trainer_steps(m->trainer) + steps));
}

/* The work of a step, by the plan that is made with the trainer: all steps are of that size. */
static void count_work(struct lks_trainer *t, struct bench_case *c)
{
    struct lksi_plan *plan = t->plan[0].plan;
    for (size_t s = 0; s < lksi_plan_stages(plan); s++) {
        c->flops += lksi_op_flops(&lksi_plan_stage(plan, s)->call);
        c->bytes += bench_bytes(&lksi_plan_stage(plan, s)->call);
    }
}

/* ---- whole steps ---- */

/* Steps queued at once, so that waiting for the last one does not show. */
static lks_status steps_at_once(struct model_bench *m, uint64_t *count)
{
    double from;
    lks_status st = train_steps(m, WARM);
    if (st != LKS_OK)
        return st;
    from = seconds_now();
    st = train_steps(m, WARM);
    double each = (seconds_now() - from) / WARM;
    *count = each < 0.5 ? (uint64_t)(0.5 / (each > 1e-5 ? each : 1e-5)) + 1 : 1;
    return st;
}

static lks_status time_steps(struct model_bench *m)
{
    struct bench_case c = {.timer = "clock", .share = -1};
    struct bench_times t = {0};
    uint64_t count;
    lks_status st = LKS_OK;
    LKSI_TRY(open_trainer(m, false));
    LKSI_TRY(steps_at_once(m, &count));
    count_work(m->trainer, &c);
    c.samples = m->trainer->params.batch;
    snprintf(c.name, sizeof c.name, "%s: training step, batch %u", lks_model_name(m->model),
             m->trainer->params.batch);
    for (double sum = 0; bench_go_on(m->b, &t) && (m->b->o->repeats.given || t.n < 5 || sum < 4);) {
        double from = seconds_now(), each;
        LKSI_TRY(train_steps(m, count));
        each = (seconds_now() - from) / (double)count;
        sum += each * (double)count;
        LKSI_TRY(bench_times_add(&t, each * 1e3));
    }
    LKSI_TRY(bench_print(m->b, &c, &t));
fail:
    close_trainer(m);
    bench_times_free(&t);
    return st;
}

/* ---- each operator ---- */

lks_status bench_step_begin(struct lks_trainer *t, const lks_dataset *data, struct bench_step *s)
{
    const struct lksi_resident *resident = lksi_resident_find(t, data->data);
    struct lksi_step_plan *step;
    struct lksi_position p;
    lks_status st = LKS_OK;
    s->from = seconds_now();
    LKSI_TRY(lksi_feed_next(t, &s->feed));
    s->fed = seconds_now();
    LKSI_TRY(lksi_gather_step(t, data, resident, t->step, s->feed, &p));
    s->gathered = seconds_now();
    LKSI_TRY(lksi_step_plan_get(t, p.samples, true, lksi_form_of(data->data, resident != NULL),
                                &step));
    LKSI_TRY(lksi_feed_bind(t, s->feed, step));
    s->bound = seconds_now();
    s->plan = step->plan;
fail:
    return st;
}

lks_status bench_step_end(struct lks_trainer *t, struct bench_step *s)
{
    lks_status st = lksi_dev_mark(t->dev, &s->feed->mark);
    if (st == LKS_OK)
        t->step++;
    return st;
}

/* One step, its stages timed: by events after all have run, else one by one. */
static lks_status profile_step(struct model_bench *m, struct bench_times *times)
{
    struct lks_trainer *t = m->trainer;
    struct bench_step step;
    const char *timer;
    double ms;
    lks_status st = LKS_OK;
    LKSI_TRY(bench_step_begin(t, lks_model_train_data(m->model), &step));
    size_t n = lksi_plan_stages(step.plan);
    for (size_t s = 0; s < n; s++) {
        struct lksi_stage *stage = lksi_plan_stage(step.plan, s);
        if (bench_has_events(stage)) {
            LKSI_TRY(lksi_stage_run(stage));
            continue;
        }
        LKSI_TRY(bench_stage(stage, &ms, &timer));
        LKSI_TRY(bench_times_add(&times[s], ms));
    }
    LKSI_TRY(lksi_dev_wait(t->dev, 0));
    for (size_t s = 0; s < n; s++) {
        struct lksi_stage *stage = lksi_plan_stage(step.plan, s);
        if (!bench_has_events(stage))
            continue;
        LKSI_TRY(bench_stage_events(stage, &ms));
        LKSI_TRY(bench_times_add(&times[s], ms));
    }
    LKSI_TRY(bench_step_end(t, &step));
fail:
    return st;
}

static lks_status print_profile(struct model_bench *m, struct bench_times *times, size_t n)
{
    struct lksi_plan *plan = m->trainer->plan[0].plan;
    double sum = 0;
    lks_status st = LKS_OK;
    for (size_t s = 0; s < n; s++)
        sum += bench_median(&times[s]);
    for (size_t s = 0; s < n; s++) {
        const struct lksi_stage *stage = lksi_plan_stage(plan, s);
        struct bench_case c = {
            .op = stage->call.op->name,
            .schedule = bench_schedule(stage),
            .flops = lksi_op_flops(&stage->call),
            .bytes = bench_bytes(&stage->call),
            .timer = bench_has_events(stage) ? "events" : "clock",
            .share = sum > 0 ? bench_median(&times[s]) / sum : 0,
        };
        snprintf(c.name, sizeof c.name, "%s", lksi_plan_stage_name(plan, s));
        LKSI_TRY(bench_print(m->b, &c, &times[s]));
    }
fail:
    return st;
}

static lks_status profile(struct model_bench *m)
{
    struct bench_times *times = NULL;
    size_t n = 0;
    double from;
    lks_status st = LKS_OK;
    LKSI_TRY(open_trainer(m, true));
    LKSI_TRY(train_steps(m, WARM));
    n = lksi_plan_stages(m->trainer->plan[0].plan);
    times = lksi_alloc(n, sizeof *times);
    if (times == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    from = seconds_now();
    while (bench_go_on(m->b, &times[0]) &&
           (m->b->o->repeats.given || times[0].n < 5 || seconds_now() - from < 4))
        LKSI_TRY(profile_step(m, times));
    LKSI_TRY(print_profile(m, times, n));
fail:
    for (size_t s = 0; times != NULL && s < n; s++)
        bench_times_free(&times[s]);
    free(times);
    close_trainer(m);
    return st;
}

int bench_model(struct bench *b, const char *file)
{
    struct model_bench m = {.b = b};
    lks_status st;
    if (b->o->schedule != NULL || b->o->in != NULL || b->o->out.given || b->o->kernel.given ||
        b->o->stride.given || b->o->pad.given)
        return fail_usage("--schedule, --in, --out, --kernel, --stride and --pad are for --op");
    st = b->o->trace != NULL ? lksi_file_check_writable(b->o->trace) : LKS_OK;
    if (st == LKS_OK)
        st = lks_model_open(&m.model, file);
    if (st == LKS_OK)
        st = time_steps(&m);
    if (st == LKS_OK && b->o->profile)
        st = profile(&m);
    if (st == LKS_OK && b->o->trace != NULL)
        st = bench_trace(b, m.model, b->o->trace);
    lks_model_destroy(&m.model);
    return st == LKS_OK ? EXIT_OK : fail_library(st);
}
