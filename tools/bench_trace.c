/*
 * bench_trace.c - `lockstep bench MODEL --trace FILE`: the timeline of a few training steps in the
 * Chrome trace event format. One row is the host (waiting for a buffer, gathering the batch,
 * binding it, queuing each operator, waiting for the step), one the device, a launch an event.
 *
 * Launches have the times of OpenCL's events. A kernel keeps the event of its last launch alone, so
 * each step is waited for. The device's clock is set by the first launch of a step: the host notes
 * when it queues it, and the event tells the same in the device's time. What has no such times
 * (the device `ref`, libraries, launches in turns) runs by itself and is timed by the host's clock.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/file.h"
#include "bench.h"
#include "progress.h"
#include "rt/rt.h"
#include "train/train.h"

enum { WARM = 2, STEPS = 3, HOST = 1, DEVICE = 2 };

struct trace {
    json_t *events;
    double zero;   /* of the host's clock */
    double offset; /* what must be added to the device's clock, in s; of a step */
    bool offset_known;
    bool failed; /* no memory */
};

static void append(struct trace *t, json_t *event)
{
    if (event == NULL || json_array_append_new(t->events, event) != 0)
        t->failed = true;
}

/* `args` may be NULL, and is taken over. */
static void add(struct trace *t, int row, const char *name, const char *category, double from,
                double to, json_t *args)
{
    append(t, json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:o}", "name", name, "cat", category,
                        "ph", "X", "pid", 1, "tid", row, "ts", (from - t->zero) * 1e6, "dur",
                        (to - from) * 1e6, "args", args != NULL ? args : json_object()));
}

static void add_name(struct trace *t, int row, const char *of, const char *name)
{
    append(t, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", of, "ph", "M", "pid", 1, "tid", row,
                        "args", "name", name));
}

static json_t *sizes(const size_t *size, int dims)
{
    json_t *j = json_array();
    for (int i = 0; i < dims; i++)
        json_array_append_new(j, json_integer((json_int_t)size[i]));
    return j;
}

/* What is said of a stage, and of its launch `l` if that is not NULL. */
static json_t *about(const struct lksi_stage *stage, const struct lksi_launch *l)
{
    json_t *j = json_pack("{s:s, s:s, s:f, s:f}", "operator", stage->call.op->name, "schedule",
                          bench_schedule(stage), "operations", lksi_op_flops(&stage->call), "bytes",
                          bench_bytes(&stage->call));
    if (j == NULL || l == NULL)
        return j;
    json_object_set_new(j, "kernel", json_string(l->kernel));
    json_object_set_new(j, "global", sizes(l->global, l->dims));
    json_object_set_new(j, "local", sizes(l->local, l->dims));
    return j;
}

/* The launches of a stage that ran, by their events; the host queued it at `queued`. */
static lks_status add_launches(struct trace *t, struct lksi_stage *stage, const char *name,
                               double queued)
{
    for (int i = 0; i < stage->recipe.n_launch; i++) {
        const struct lksi_launch *l = &stage->recipe.launch[i];
        struct lksi_span s;
        char text[256];
        lks_status st;
        if (bench_is_empty(l))
            continue;
        st = lksi_kernel_span(stage->kernel[i], &s);
        if (st != LKS_OK)
            return st;
        if (!t->offset_known)
            t->offset = queued - (double)s.queued * 1e-9;
        t->offset_known = true;
        snprintf(text, sizeof text, stage->recipe.n_launch > 1 ? "%s: %s" : "%s", name, l->kernel);
        add(t, DEVICE, text, "launch", t->offset + (double)s.start * 1e-9,
            t->offset + (double)s.end * 1e-9, about(stage, l));
    }
    return LKS_OK;
}

/* Queues a stage, or runs it where it has no events. *queued: when it began. */
static lks_status run_stage(struct trace *t, struct lksi_stage *stage, const char *name,
                            double *queued)
{
    bool events = bench_has_events(stage);
    double to;
    lks_status st = LKS_OK;
    if (!events)
        LKSI_TRY(lksi_dev_wait(stage->dev, 0));
    *queued = seconds_now();
    LKSI_TRY(lksi_stage_run(stage));
    if (!events)
        LKSI_TRY(lksi_dev_wait(stage->dev, 0));
    to = seconds_now();
    add(t, HOST, name, events ? "queue" : "run and wait", *queued, to, NULL);
    if (!events)
        add(t, DEVICE, name, "by the host's clock", *queued, to, about(stage, NULL));
fail:
    return st;
}

static lks_status trace_step(struct trace *t, struct lks_trainer *trainer, const lks_dataset *data)
{
    struct bench_step step;
    double *queued = NULL, from;
    lks_status st = LKS_OK;
    t->offset_known = false;
    LKSI_TRY(bench_step_begin(trainer, data, &step));
    add(t, HOST, "wait for a free buffer", "host", step.from, step.fed, NULL);
    add(t, HOST, "gather and upload the batch", "host", step.fed, step.gathered, NULL);
    add(t, HOST, "bind the batch", "host", step.gathered, step.bound, NULL);
    size_t n = lksi_plan_stages(step.plan);
    queued = lksi_alloc(n, sizeof *queued);
    if (queued == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    for (size_t s = 0; s < n; s++)
        LKSI_TRY(run_stage(t, lksi_plan_stage(step.plan, s), lksi_plan_stage_name(step.plan, s),
                           &queued[s]));
    from = seconds_now();
    LKSI_TRY(lksi_dev_wait(trainer->dev, 0));
    add(t, HOST, "wait for the step", "host", from, seconds_now(), NULL);
    for (size_t s = 0; s < n; s++) {
        struct lksi_stage *stage = lksi_plan_stage(step.plan, s);
        if (bench_has_events(stage))
            LKSI_TRY(add_launches(t, stage, lksi_plan_stage_name(step.plan, s), queued[s]));
    }
    LKSI_TRY(bench_step_end(trainer, &step));
fail:
    free(queued);
    return st;
}

static lks_status write_file(const struct trace *t, const char *file)
{
    json_t *all = json_pack("{s:O, s:s}", "traceEvents", t->events, "displayTimeUnit", "ms");
    char *text = NULL;
    lks_status st = LKS_E_MEMORY;
    if (all != NULL && !t->failed)
        text = json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(12));
    if (text != NULL)
        st = lksi_file_write_atomic(file, text, strlen(text));
    free(text);
    json_decref(all);
    return st;
}

lks_status bench_trace(const struct bench *b, const lks_model *model, const char *file)
{
    struct trace t = {.events = json_array()};
    const lks_dataset *data = lks_model_train_data(model);
    lks_device *device = NULL;
    lks_trainer *trainer = NULL;
    lks_status st = LKS_OK;
    if (t.events == NULL)
        return LKS_E_MEMORY;
    LKSI_TRY(bench_trainer(b, model, true, &device, &trainer));
    LKSI_TRY(lks_trainer_fit(trainer, lks_fit_params(.train = data, .max_steps = WARM)));
    LKSI_TRY(lksi_dev_wait(trainer->dev, 0));
    add_name(&t, HOST, "process_name", lks_model_name(model));
    add_name(&t, HOST, "thread_name", "host");
    add_name(&t, DEVICE, "thread_name", b->device);
    t.zero = seconds_now();
    for (int s = 0; s < STEPS; s++)
        LKSI_TRY(trace_step(&t, trainer, data));
    LKSI_TRY(write_file(&t, file));
fail:
    lks_trainer_destroy(&trainer);
    lks_device_close(&device);
    json_decref(t.events);
    return st;
}
