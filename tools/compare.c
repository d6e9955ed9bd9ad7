/*
 * compare.c - `lockstep compare`: the same training on two devices, operator by operator, every
 * tensor of every step compared; see <lockstep/compare.h>.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <lockstep/lockstep.h>

#include "cli.h"
#include "progress.h"
#include "train/weights.h"

enum { DEFAULT_STEPS = 3, LINE_SECONDS = 10 };

struct options {
    struct text_list devices;
    struct number threads, steps, batch, seed;
    const char *weights;
    bool plain, no_admission, quiet;
};

static const struct option_spec specs[] = {
    {"device", 'd', OPTION_LIST, offsetof(struct options, devices), "DEVICE",
     "twice: the two devices; cpu, gpu, ref, PLATFORM:N or\npart of a device's name", 0},
    {"threads", 0, OPTION_THREADS, offsetof(struct options, threads), "N",
     "threads of the device `ref` (default: one a processor)", 1},
    {"steps", 0, OPTION_U64, offsetof(struct options, steps), "N", "steps to compare (default: 3)",
     1},
    {"batch", 'b', OPTION_U32, offsetof(struct options, batch), "N",
     "samples a step, in place of the model file's", 1},
    {"seed", 0, OPTION_U64, offsetof(struct options, seed), "N", "in place of the model file's", 0},
    {"weights", 'w', OPTION_TEXT, offsetof(struct options, weights), "FILE",
     "weights to start from", 0},
    {"plain", 0, OPTION_FLAG, offsetof(struct options, plain), NULL,
     "slow contract kernels only, on both", 0},
    {"no-admission", 0, OPTION_FLAG, offsetof(struct options, no_admission), NULL,
     "use schedules that fail their first check too", 0},
    {"quiet", 'q', OPTION_FLAG, offsetof(struct options, quiet), NULL,
     "no progress, only the answer and errors", 0},
    OPTION_COMMON,
};

struct pair {
    lks_model *model;
    lks_device *device[2];
    lks_trainer *trainer[2];
    struct progress progress;
    uint64_t steps, tensors, bytes; /* compared */
};

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void on_build(void *user, size_t done, size_t total)
{
    struct pair *p = user;
    progress_build(&p->progress, done, total);
}

static bool on_step(void *user, uint64_t step, uint64_t tensors, uint64_t bytes)
{
    struct pair *p = user;
    double now = seconds_now();
    (void)step;
    p->steps++;
    p->tensors = tensors;
    p->bytes = bytes;
    if (p->progress.quiet || (!p->progress.terminal && now - p->progress.line_at < LINE_SECONDS))
        return true;
    progress_clear(&p->progress);
    fprintf(stderr, "step %" PRIu64 " of %" PRIu64 ", %" PRIu64 " tensors agree%s", p->steps,
            p->progress.total, tensors, p->progress.terminal ? "" : "\n");
    fflush(stderr);
    p->progress.drawn = p->progress.terminal;
    p->progress.line_at = now;
    return true;
}

/* ---- opening ---- */

static int open_side(struct pair *p, int side, const struct options *o,
                     const struct lks_trainer_params *base)
{
    const struct device_choice choice = {.names = {{o->devices.item[side]}, 1},
                                         .threads = o->threads};
    struct lks_trainer_params params = *base;
    int status = open_device(&p->device[side], &choice);
    if (status != EXIT_OK)
        return status;
    params.device = p->device[side];
    lks_status st = lks_trainer_create(&p->trainer[side], lks_model_graph(p->model), &params);
    if (st == LKS_OK && o->weights != NULL)
        st = lks_trainer_load_weights(p->trainer[side], o->weights);
    progress_clear(&p->progress);
    return st == LKS_OK ? EXIT_OK : fail_library(st);
}

/* Steps of the whole training: beyond them there is nothing to compare. */
static uint64_t steps_in(const lks_model *model, const struct lks_trainer_params *p)
{
    uint64_t count = lks_dataset_count(lks_model_train_data(model));
    uint64_t batch = p->batch > 0 ? p->batch : 64;
    uint64_t each = p->drop_last ? count / batch : (count + batch - 1) / batch;
    return each * (p->epochs > 0 ? p->epochs : 1);
}

static int open_pair(struct pair *p, const char *model_file, const struct options *o)
{
    struct lks_trainer_params base;
    struct form form;
    int status = EXIT_OK;
    lks_status st = lks_model_open(&p->model, model_file);
    if (st != LKS_OK)
        return fail_library(st);
    lks_model_trainer_params(p->model, &base);
    base.plain = o->plain;
    base.no_admission = o->no_admission;
    base.on_build = on_build;
    base.user = p;
    if (o->batch.given)
        base.batch = (uint32_t)o->batch.value;
    if (o->seed.given)
        base.seed = o->seed.value;
    uint64_t most = steps_in(p->model, &base);
    uint64_t steps = o->steps.given ? o->steps.value : most < DEFAULT_STEPS ? most : DEFAULT_STEPS;
    if (steps > most)
        return fail_usage("--steps %" PRIu64 ": the whole training has %" PRIu64 " step%s", steps,
                          most, plural(most));
    if (o->weights != NULL)
        st = lksi_weights_check(lks_model_graph(p->model), &base, o->weights);
    if (st != LKS_OK)
        return fail_library(st);
    form_of(p->model, &form);
    progress_init(&p->progress, &form, o->quiet, steps, 1, 1);
    for (int side = 0; side < 2 && status == EXIT_OK; side++)
        status = open_side(p, side, o, &base);
    return status;
}

static void close_pair(struct pair *p)
{
    for (int side = 0; side < 2; side++) {
        lks_trainer_destroy(&p->trainer[side]);
        lks_device_close(&p->device[side]);
    }
    lks_model_destroy(&p->model);
}

/* ---- the answer ---- */

static void print_devices(const struct pair *p)
{
    for (int side = 0; side < 2; side++) {
        const struct lks_device_info *info = lks_device_get_info(p->device[side]);
        if (info->type == LKS_DEVICE_REF)
            printf("device %c    ref, plain C of lockstep %s\n", "AB"[side], info -> driver);
        else
            printf("device %c    %s, %s, driver %s\n", "AB"[side], info -> select, info -> name,
                   info -> driver);
    }
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void print_difference(const struct lks_difference *d)
{
    printf("%sfirst difference in step %" PRIu64 "%s (steps count from 0)\n", color_red(1), d->step,
           color_off(1));
    printf("operation   %s\noperator    %s\n", d->operation, d->op);
    printf("schedules   A %s, B %s\n", d->schedule_a, d->schedule_b);
    printf("tensor      output %d, %s\n", d->output, d->shape);
    printf("element     %" PRIu64 ", %s\n", d->index, d->place);
    printf("A           0x%08x  %.9g\n", d->bits_a, (double)float_of(d->bits_a));
    printf("B           0x%08x  %.9g\n", d->bits_b, (double)float_of(d->bits_b));
    if (d->ulp == UINT64_MAX)
        printf("apart       one is a NaN\n");
    else
        printf("apart       %" PRIu64 " ulp\n", d->ulp);
    printf("differing   %" PRIu64 " of %" PRIu64 " elements of this tensor\n", d->differing,
           d->elements);
}

static int compare(struct pair *p)
{
    struct lks_difference first;
    char hex[65], size[32];
    bool same;
    lks_status st =
        lks_compare(p->trainer[0], p->trainer[1],
                    lks_compare_params(.train = lks_model_train_data(p->model),
                                       .steps = p->progress.total, .on_step = on_step, .user = p),
                    &same, &first);
    progress_clear(&p->progress);
    if (st != LKS_OK)
        return fail_library(st);
    print_devices(p);
    if (!same) {
        print_difference(&first);
        printf("before it   %" PRIu64 " whole step%s, %" PRIu64 " tensor%s agreed\n", p->steps,
               plural(p->steps), first.agreed, plural(first.agreed));
        return EXIT_NO;
    }
    st = lks_trainer_weights_sha256(p->trainer[0], hex);
    if (st != LKS_OK)
        return fail_library(st);
    printf("%ssame bits%s   %" PRIu64 " step%s, %" PRIu64 " tensors, %" PRIu64 " bytes (%s)\n"
           "weights     sha256 %s\n",
           color_bold(1), color_off(1), p->steps, plural(p->steps), p->tensors, p->bytes,
           human_bytes(p->bytes, size, sizeof size), hex);
    return EXIT_OK;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options o = {0};
    struct pair p = {0};
    char **rest;
    int n_rest, status;
    if (!parse_options(self, argc, argv, &o, &rest, &n_rest, &status))
        return status;
    if (n_rest != 1)
        return fail_usage("compare takes one model file, %d given; `lockstep compare --help` shows "
                          "how",
                          n_rest);
    if (o.devices.count != 2)
        return fail_usage("compare takes two devices, %zu given: --device A --device B, e.g. "
                          "--device ref --device cpu",
                          o.devices.count);
    status = open_pair(&p, rest[0], &o);
    if (status == EXIT_OK)
        status = compare(&p);
    close_pair(&p);
    return status;
}

const struct command command_compare = {
    "compare",
    "MODEL.yaml --device A --device B [options]",
    "train on two devices at once and compare every tensor",
    "Both devices train in lockstep: after each operator its outputs are read back from both and\n"
    "compared bit for bit. Ends at the first difference and names it.\n\n"
    "Exit status: 0 if every tensor of every step agreed, 1 if one differed.",
    specs,
    LKSI_COUNT(specs),
    run,
};
