/*
 * bench.h - what the files of `lockstep bench` share. bench.c reads options and prints,
 * bench_peak.c measures what the device reaches at best, bench_op.c times operators, bench_model.c
 * whole steps, bench_trace.c writes their timeline.
 */
#ifndef LKS_TOOLS_BENCH_H
#define LKS_TOOLS_BENCH_H

#include <lockstep/lockstep.h>

#include "cli.h"
#include "plan/bind.h"

struct bench_options {
    struct device_choice device;
    const char *op, *schedule, *in, *resident, *trace;
    struct number out, kernel, stride, pad, groups, leaf;
    struct number repeats, batch, seed;
    bool plain, profile, json;
};

/* Milliseconds of repeats. */
struct bench_times {
    double *ms;
    size_t n, cap;
};

struct bench_case {
    char name[192];
    const char *op, *schedule; /* NULL: not one operator */
    double flops, bytes;       /* of one repeat; bytes: every input and output once; 0: unknown */
    const char *timer;         /* "events" or "clock" */
    double samples;            /* of one repeat; 0: no training step */
    double share;              /* of the whole step; below 0: not part of one */
};

struct bench {
    const struct bench_options *o;
    struct lksi_dev *dev; /* with event times */
    char device[160];
    double peak_gflops, peak_gbs; /* 0: not measured */
    size_t printed;
};

void bench_times_free(struct bench_times *t);
lks_status bench_times_add(struct bench_times *t, double ms);
/* Sorts the times. NAN if there are none. */
double bench_median(struct bench_times *t);
/* Whether another repeat is due: as many as asked for, or 5 to 100 within about two seconds. */
bool bench_go_on(const struct bench *b, const struct bench_times *t);

/* Prints a case as a row or as a JSON object. */
lks_status bench_print(struct bench *b, const struct bench_case *c, struct bench_times *t);

/* Runs the stage and waits. *timer says what the time was taken by. */
lks_status bench_stage(struct lksi_stage *stage, double *ms, const char **timer);
/* Time of a stage that ran, by its events. */
lks_status bench_stage_events(struct lksi_stage *stage, double *ms);
bool bench_has_events(const struct lksi_stage *stage);
/* The name of its schedule; `ref` and `plain` on the device `ref`. */
const char *bench_schedule(const struct lksi_stage *stage);
/* A launch without work-items, which is not queued. */
bool bench_is_empty(const struct lksi_launch *l);
/* Bytes of all inputs and outputs of a call. */
double bench_bytes(const struct lksi_call *call);

/* bench_op.c: the call that the options describe, at most attr_size bytes of `attr` and `scratch`. */
lks_status bench_make_call(const struct bench *b, const struct lksi_op *op, void *attr,
                           void *scratch, struct lksi_call *call);
/* "conv2d [64,28,28,1] ... -> [...]" */
void bench_call_text(const struct lksi_call *call, char *text, size_t size);

/* Buffers of a call; stages of one call may share them, one at a time. */
struct bench_buffers {
    struct lksi_buf *in[LKSI_MAX_IN], *out[LKSI_MAX_OUT], *work[LKSI_MAX_WORK];
};
/* Makes what is missing, inputs with seeded numbers, and binds the stage to them. */
lks_status bench_bind(const struct bench *b, struct bench_buffers *x, struct lksi_stage *stage);
void bench_buffers_free(struct bench_buffers *x);

/* bench_model.c: a trainer of the model's step on the bench's device; with `profile` kernels have
 * times. The caller destroys both. */
lks_status bench_trainer(const struct bench *b, const lks_model *model, bool profile,
                         lks_device **device, lks_trainer **trainer);

/* A step of a trainer, queued by hand: the caller runs the plan's stages between begin and end. The
 * times are the host's, in seconds_now. */
struct bench_step {
    struct lksi_plan *plan;
    struct lksi_feed *feed;
    double from, fed, gathered, bound; /* a buffer was free; it holds the batch; the plan reads it */
};
lks_status bench_step_begin(struct lks_trainer *t, const lks_dataset *data, struct bench_step *s);
lks_status bench_step_end(struct lks_trainer *t, struct bench_step *s);

/* bench_trace.c: writes the timeline of a few steps of `model` into `file`. */
lks_status bench_trace(const struct bench *b, const lks_model *model, const char *file);

/* bench_peak.c: fills peak_gflops and peak_gbs. */
lks_status bench_peak(struct bench *b);

/* Each says its error and returns the exit status. */
int bench_ops(struct bench *b);
int bench_model(struct bench *b, const char *file);
/* EXIT_OK if --op and the options of its shape make sense; opens nothing. */
int bench_check_op(const struct bench_options *o);

#endif
