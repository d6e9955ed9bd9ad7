/*
 * bench.c - `lockstep bench`: options, statistics, rows. See bench.h.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "bench.h"
#include "progress.h"

static const struct option_spec specs[] = {
    DEVICE_OPTIONS(struct bench_options, device),
    {"op", 0, OPTION_TEXT, offsetof(struct bench_options, op), "NAME",
     "this operator; without --in at its largest size of\n`lockstep check --long`", 0},
    {"schedule", 0, OPTION_TEXT, offsetof(struct bench_options, schedule), "NAME",
     "this schedule, or `all` that serve (default: the one\nthat a training would use)", 0},
    {"in", 0, OPTION_TEXT, offsetof(struct bench_options, in), "N,H,W,C",
     "shape of the input; N,F for a dense layer", 0},
    {"out", 'k', OPTION_U32, offsetof(struct bench_options, out), "K",
     "output channels (convolution, dense)", 1},
    {"kernel", 0, OPTION_U32, offsetof(struct bench_options, kernel), "R",
     "height and width of the window", 1},
    {"stride", 0, OPTION_U32, offsetof(struct bench_options, stride), "S", "(default: 1)", 1},
    {"pad", 0, OPTION_U32, offsetof(struct bench_options, pad), "P", "at each border (default: 0)",
     0},
    {"groups", 0, OPTION_U32, offsetof(struct bench_options, groups), "G",
     "of a convolution (default: 1)", 1},
    {"leaf", 0, OPTION_U32, offsetof(struct bench_options, leaf), "N",
     "samples a block of the ordered sums (default: 8)", 1},
    {"batch", 'b', OPTION_U32, offsetof(struct bench_options, batch), "N",
     "samples a step, in place of the model file's", 1},
    RESIDENT_OPTION(struct bench_options, resident),
    {"plain", 0, OPTION_FLAG, offsetof(struct bench_options, plain), NULL,
     "slow contract kernels only", 0},
    {"profile", 0, OPTION_FLAG, offsetof(struct bench_options, profile), NULL,
     "each operator of the model's step too: its share of the\nstep, operations, bytes, and which "
     "peak bounds it",
     0},
    {"trace", 0, OPTION_TEXT, offsetof(struct bench_options, trace), "FILE",
     "write a timeline of 3 steps of the model there, in the\nChrome trace format (Perfetto shows it)",
     0},
    {"repeats", 'n', OPTION_U32, offsetof(struct bench_options, repeats), "N",
     "(default: 5 to 100, about two seconds a case)", 1},
    {"seed", 0, OPTION_U64, offsetof(struct bench_options, seed), "N", "of the data (default: 1)",
     0},
    {"json", 0, OPTION_FLAG, offsetof(struct bench_options, json), NULL,
     "one JSON object a case, one a line", 0},
    OPTION_COMMON,
};

/* ---- statistics ---- */

void bench_times_free(struct bench_times *t)
{
    free(t->ms);
    *t = (struct bench_times){0};
}

lks_status bench_times_add(struct bench_times *t, double ms)
{
    if (!lksi_grow(&t->ms, &t->cap, t->n + 1, sizeof *t->ms))
        return LKS_E_MEMORY;
    t->ms[t->n++] = ms;
    return LKS_OK;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

double bench_median(struct bench_times *t)
{
    if (t->n == 0)
        return (double)NAN;
    qsort(t->ms, t->n, sizeof *t->ms, by_size);
    return 0.5 * (t->ms[(t->n - 1) / 2] + t->ms[t->n / 2]);
}

bool bench_go_on(const struct bench *b, const struct bench_times *t)
{
    enum { LEAST = 5, MOST = 100 };
    double sum = 0;
    if (b->o->repeats.given)
        return t->n < b->o->repeats.value;
    for (size_t i = 0; i < t->n; i++)
        sum += t->ms[i];
    return t->n < LEAST || (t->n < MOST && sum < 2000);
}

/* ---- stages ---- */

bool bench_has_events(const struct lksi_stage *stage)
{
    if (stage->recipe.turns > 1) /* a kernel keeps the event of its last launch alone */
        return false;
    for (int l = 0; l < stage->recipe.n_launch; l++)
        if (stage->recipe.launch[l].host != NULL)
            return false;
    return !lksi_dev_is_ref(stage->dev);
}

const char *bench_schedule(const struct lksi_stage *stage)
{
    return stage->schedule != NULL ? stage->schedule->name : stage->items_only ? "plain" : "ref";
}

bool bench_is_empty(const struct lksi_launch *l)
{
    for (int i = 0; i < l->dims; i++)
        if (l->global[i] == 0)
            return true;
    return false;
}

lks_status bench_stage_events(struct lksi_stage *stage, double *ms)
{
    uint64_t sum = 0, ns;
    for (int l = 0; l < stage->recipe.n_launch; l++) {
        if (bench_is_empty(&stage->recipe.launch[l]))
            continue;
        lks_status st = lksi_kernel_time(stage->kernel[l], &ns);
        if (st != LKS_OK)
            return st;
        sum += ns;
    }
    *ms = (double)sum * 1e-6;
    return LKS_OK;
}

lks_status bench_stage(struct lksi_stage *stage, double *ms, const char **timer)
{
    bool events = bench_has_events(stage);
    double from;
    lks_status st = LKS_OK;
    LKSI_TRY(lksi_dev_wait(stage->dev, 0));
    from = seconds_now();
    LKSI_TRY(lksi_stage_run(stage));
    LKSI_TRY(lksi_dev_wait(stage->dev, 0));
    *ms = (seconds_now() - from) * 1e3;
    *timer = events ? "events" : "clock";
    if (events)
        st = bench_stage_events(stage, ms);
fail:
    return st;
}

double bench_bytes(const struct lksi_call *call)
{
    double n = 0;
    for (int i = 0; i < call->n_in; i++)
        n += (double)lksi_desc_count(&call->in[i]);
    for (int j = 0; j < call->n_out; j++)
        n += (double)lksi_desc_count(&call->out[j]);
    return 4.0 * n;
}

/* ---- rows ---- */

/* What the roofline lets limit a case: that of whose peak it reaches more. NULL: unknown. */
static const char *bound_of(const struct bench *b, double gflops, double gbs)
{
    if (b->peak_gflops <= 0 || b->peak_gbs <= 0 || (gflops <= 0 && gbs <= 0))
        return NULL;
    return gflops / b->peak_gflops > gbs / b->peak_gbs ? "fma" : "copy";
}

static void print_head(const struct bench *b)
{
    printf("%s%s%s", color_bold(1), b->device, color_off(1));
    if (b->peak_gflops > 0)
        printf(": measured peaks %.1f GFLOP/s of fma, %.1f GB/s of copying", b->peak_gflops,
               b->peak_gbs);
    printf("\n%s%10s %10s %10s %4s", color_bold(1), "median ms", "min", "max", "n");
    if (b->o->profile)
        printf(" %6s %11s %10s", "step", "MFLOP", "MB");
    printf(" %9s %8s %6s %6s", "GFLOP/s", "GB/s", "fma", "copy");
    if (b->o->profile)
        printf(" %5s", "bound");
    printf("  case%s\n", color_off(1));
}

static void print_share(double value, double peak)
{
    if (value > 0 && peak > 0)
        printf(" %5.1f%%", 100.0 * value / peak);
    else
        printf(" %6s", "-");
}

static lks_status print_json(const struct bench *b, const struct bench_case *c,
                             const struct bench_times *t, double median, double gflops, double gbs)
{
    lks_status st = LKS_OK;
    const char *bound = bound_of(b, gflops, gbs);
    json_t *j = json_pack("{s:s, s:s, s:f, s:f, s:f, s:I, s:s, s:I, s:I, s:f, s:f}", "case",
                          c->name, "device", b->device, "median_ms", median, "min_ms", t->ms[0],
                          "max_ms", t->ms[t->n - 1], "repeats", (json_int_t)t->n, "timer", c->timer,
                          "operations", (json_int_t)c->flops, "bytes", (json_int_t)c->bytes,
                          "gflops", gflops, "gbs", gbs);
    if (j == NULL)
        return LKS_E_MEMORY;
    if (c->op != NULL) {
        json_object_set_new(j, "op", json_string(c->op));
        json_object_set_new(j, "schedule", json_string(c->schedule));
    }
    if (c->samples > 0)
        json_object_set_new(j, "samples_per_s", json_real(c->samples / median * 1e3));
    if (c->share >= 0)
        json_object_set_new(j, "share_of_step", json_real(c->share));
    if (bound != NULL)
        json_object_set_new(j, "bound", json_string(bound));
    if (b->peak_gflops > 0) {
        json_object_set_new(j, "peak_gflops", json_real(b->peak_gflops));
        json_object_set_new(j, "peak_gbs", json_real(b->peak_gbs));
        json_object_set_new(j, "fma_share", json_real(gflops / b->peak_gflops));
        json_object_set_new(j, "copy_share", json_real(gbs / b->peak_gbs));
    }
    if (json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6)) != 0)
        st = LKS_E_MEMORY;
    printf("\n");
    json_decref(j);
    return st;
}

lks_status bench_print(struct bench *b, const struct bench_case *c, struct bench_times *t)
{
    double median = bench_median(t); /* sorts, too */
    double gflops = median > 0 ? c->flops / median * 1e-6 : 0;
    double gbs = median > 0 ? c->bytes / median * 1e-6 : 0;
    const char *bound = bound_of(b, gflops, gbs);
    if (b->o->json)
        return print_json(b, c, t, median, gflops, gbs);
    if (b->printed++ == 0)
        print_head(b);
    printf("%10.4f %10.4f %10.4f %4zu", median, t->ms[0], t->ms[t->n - 1], t->n);
    if (b->o->profile) {
        print_share(c->share, 1);
        printf(" %11.3f %10.3f", c->flops * 1e-6, c->bytes * 1e-6);
    }
    printf(" %9.2f %8.2f", gflops, gbs);
    print_share(gflops, b->peak_gflops);
    print_share(gbs, b->peak_gbs);
    if (b->o->profile)
        printf(" %5s", bound != NULL ? bound : "-");
    printf("  %s", c->name);
    if (c->op != NULL)
        printf(" %s(%s)%s", color_dim(1), c->schedule, color_off(1));
    if (c->samples > 0)
        printf(", %.0f samples/s", c->samples / median * 1e3);
    printf("\n");
    fflush(stdout);
    return LKS_OK;
}

/* ---- the command ---- */

static int open_bench(struct bench *b)
{
    const struct device_choice *choice = &b->o->device;
    struct lks_device *device = NULL;
    int status = open_device(&device, choice); /* its messages are the right ones */
    if (status != EXIT_OK)
        return status;
    const struct lks_device_info *info = lks_device_get_info(device);
    const struct lksi_dev_params params = {
        .select = info->select, .threads = (int)choice->threads.value, .profile = true,
        .tuning = choice->tuning};
    snprintf(b->device, sizeof b->device, "%s", info->name);
    lks_status st = lksi_dev_open(&b->dev, &params);
    lks_device_close(&device);
    if (st == LKS_OK)
        st = bench_peak(b);
    return st == LKS_OK ? EXIT_OK : fail_library(st);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct bench_options o = {0};
    struct bench b = {.o = &o};
    char **rest;
    int n_rest, status;
    if (!parse_options(self, argc, argv, &o, &rest, &n_rest, &status))
        return status;
    if (n_rest > 1)
        return fail_usage("bench takes one model file, %d given", n_rest);
    if (n_rest == 1 && o.op != NULL)
        return fail_usage("bench takes a model file or --op, not both");
    if (n_rest == 0 && (o.profile || o.batch.given))
        return fail_usage("--%s is for a model file, and none is given",
                          o.profile ? "profile" : "batch");
    if (n_rest == 0 && o.trace != NULL)
        return fail_usage("--trace is for a model file, and none is given");
    if (n_rest == 0 && o.resident != NULL)
        return fail_usage("--resident is for a model file, and none is given");
    status = take_resident(o.resident, &(struct lks_trainer_params){0});
    if (status == EXIT_OK && n_rest == 0)
        status = bench_check_op(&o);
    if (status == EXIT_OK)
        status = open_bench(&b);
    if (status == EXIT_OK)
        status = n_rest == 0 ? bench_ops(&b) : bench_model(&b, rest[0]);
    lksi_dev_close(&b.dev);
    return status;
}

const struct command command_bench = {
    "bench",
    "[MODEL.yaml | --op NAME] [options]",
    "time operators or whole training steps",
    "Without a model file and --op it times every operator at its largest size of `lockstep check\n"
    "--long`. Each case runs warm; median, smallest and largest time are told, GFLOP/s and GB/s\n"
    "(every input and output counted once), and their shares of what the same device reached with\n"
    "fma alone and with copying alone, far larger than its caches: what fits these passes 100 %.\n"
    "Times come from the device's events where it has them, else from the clock. Other programs "
    "on\n"
    "the machine disturb them: compare the smallest times. A schedule that does not give the\n"
    "contract's bits is not timed; the exit status is then 1.",
    specs,
    LKSI_COUNT(specs),
    run,
};
