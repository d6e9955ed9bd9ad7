/*
 * train.c - `lockstep train`: from a model file to a folder with weights and all that explains
 * them. The order of writing makes a kill at any moment harmless: histories before the checkpoint
 * that needs them, each file whole or not at all.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/lockstep.h>

#include "base/file.h"
#include "cli.h"
#include "curves.h"
#include "event_log.h"
#include "history.h"
#include "progress.h"
#include "resume_command.h"
#include "run_dir.h"
#include "run_json.h"
#include "train/weights.h"

struct options {
    struct device_choice device;
    struct number epochs, steps, batch, seed, checkpoint_every;
    struct real expect;
    const char *weights, *out, *log, *resident;
    bool resume, overwrite, quiet, plain;
};

#define AT(member) offsetof(struct options, member)
static const struct option_spec specs[] = {
    DEVICE_OPTIONS(struct options, device),
    {"epochs", 'e', OPTION_U32, AT(epochs), "N",
     "passes over the data, in place of the model file's", 1},
    {"steps", 0, OPTION_U64, AT(steps), "N",
     "end after N steps in all, with weights and a test; the\nschedule of the learning rate stays, "
     "and --resume goes on", 1},
    {"batch", 'b', OPTION_U32, AT(batch), "N", "samples a step, in place of the model file's", 1},
    {"seed", 0, OPTION_U64, AT(seed), "N", "in place of the model file's", 0},
    {"weights", 'w', OPTION_TEXT, AT(weights), "FILE",
     "start from these weights, or from those in a checkpoint", 0},
    {"expect-accuracy", 0, OPTION_REAL, AT(expect), "A",
     "exit with status 1 if the test accuracy ends below A\n(0 to 1)", 0},
    {"checkpoint-every", 0, OPTION_U64, AT(checkpoint_every), "N",
     "write a checkpoint every N steps too, not only after\neach epoch", 1},
    {"out", 'o', OPTION_TEXT, AT(out), "DIR", "output folder (default: runs/NAME)", 0},
    {"resume", 'r', OPTION_FLAG, AT(resume), NULL,
     "go on from the checkpoint in the output folder, to the\nsame bits", 0},
    {"overwrite", 0, OPTION_FLAG, AT(overwrite), NULL,
     "replace the run, finished or not, that the output\nfolder holds", 0},
    RESIDENT_OPTION(struct options, resident),
    {"plain", 0, OPTION_FLAG, AT(plain), NULL, "slow contract kernels only; same bits", 0},
    {"log-json", 0, OPTION_TEXT, AT(log), "FILE", "append one JSON object a step, epoch and result",
     0},
    {"quiet", 'q', OPTION_FLAG, AT(quiet), NULL, "no progress, only results and errors", 0},
    OPTION_COMMON,
};

struct training {
    struct options o;
    const char *model_file;
    char *resume_command;
    lks_model *model;
    lks_device *device;
    lks_trainer *trainer;
    struct lks_trainer_params params;
    struct run_dir dir;
    bool dir_open, began; /* `began`: the folder holds something worth keeping */
    struct history history;
    struct progress progress;
    struct event_log *log;
    struct run_facts facts;
    char weights_sha[LKSI_SHA256_HEX];
    double started, best;
};

static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
    stop_signal = number;
}

/* The first signal asks for a stop after the step; the second one kills. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND | SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- callbacks of the training ---- */

static bool cancelled(void *user)
{
    (void)user;
    return stop_signal != 0;
}

static void on_build(void *user, size_t done, size_t total)
{
    struct training *t = user;
    progress_build(&t->progress, done, total);
}

static lks_status on_step(void *user, const struct lks_step_info *info)
{
    struct training *t = user;
    lks_status st = history_add_step(&t->history, info);
    if (st == LKS_OK)
        st = event_log_step(t->log, info);
    if (st == LKS_OK)
        progress_step(&t->progress, info);
    return st;
}

static lks_status write_state(struct training *t)
{
    lks_status st;
    LKSI_TRY(history_write_steps(&t->history, t->dir.file[RUN_STEPS]));
    LKSI_TRY(history_write_metrics(&t->history, t->dir.file[RUN_METRICS]));
    LKSI_TRY(lks_trainer_save_checkpoint(t->trainer, lks_model_train_data(t->model),
                                         t->dir.file[RUN_CHECKPOINT]));
fail:
    return st;
}

static lks_status on_epoch(void *user, const struct lks_epoch_info *info)
{
    struct training *t = user;
    lks_status st;
    LKSI_TRY(history_add_epoch(&t->history, info));
    LKSI_TRY(event_log_epoch(t->log, info));
    if (history_score(&t->history, info) > t->best) {
        t->best = history_score(&t->history, info);
        LKSI_TRY(t->params.evaluate_ema
                     ? lks_trainer_save_ema(t->trainer, t->dir.file[RUN_BEST])
                     : lks_trainer_save_weights(t->trainer, t->dir.file[RUN_BEST]));
    }
    LKSI_TRY(curves_write(&t->history, lks_model_name(t->model), t->dir.file[RUN_CURVES]));
    LKSI_TRY(write_state(t));
    progress_epoch(&t->progress, info);
fail:
    return st;
}

static lks_status on_checkpoint(void *user, lks_trainer *trainer)
{
    (void)trainer;
    return write_state(user);
}

/* ---- before the training ---- */

static lks_status write_facts(struct training *t)
{
    t->facts.steps = lks_trainer_steps(t->trainer);
    t->facts.seconds = seconds_now() - t->started;
    return run_json_write(&t->facts, t->dir.file[RUN_JSON]);
}

static int set_params(struct training *t)
{
    struct lks_trainer_params *p = &t->params;
    lks_model_trainer_params(t->model, p);
    p->plain = t->o.plain;
    p->on_build = on_build;
    p->user = t;
    if (t->o.epochs.given)
        p->epochs = (uint32_t)t->o.epochs.value;
    if (t->o.batch.given)
        p->batch = (uint32_t)t->o.batch.value;
    if (t->o.seed.given)
        p->seed = t->o.seed.value;
    return take_resident(t->o.resident, p);
}

/* What the folder must take: two checkpoints (the old one stays until the new one is whole), four
 * times the weights, and the histories. A checkpoint has up to three states and an average. */
static uint64_t bytes_needed(const struct training *t, uint64_t steps)
{
    uint64_t weights = 4 * (uint64_t)lks_graph_scalar_count(lks_model_graph(t->model));
    return 14 * weights + 96 * (steps < 1000000 ? steps : 1000000) + (1 << 18);
}

static uint64_t steps_per_epoch(const struct training *t)
{
    uint64_t count = lks_dataset_count(lks_model_train_data(t->model)), batch = t->params.batch;
    return t->params.drop_last ? count / batch : (count + batch - 1) / batch;
}

static uint64_t total_steps(const struct training *t)
{
    uint64_t total = steps_per_epoch(t) * t->params.epochs;
    return t->o.steps.given && t->o.steps.value < total ? t->o.steps.value : total;
}

/* What start_fresh would refuse. */
static lks_status check_fresh(const struct training *t)
{
    bool finished = false;
    if (!t->o.overwrite &&
        (run_dir_has(&t->dir, RUN_CHECKPOINT) || run_dir_has(&t->dir, RUN_WEIGHTS))) {
        if (!run_dir_has(&t->dir, RUN_JSON) ||
            run_json_check(t->dir.file[RUN_JSON], NULL, &finished) != LKS_OK)
            finished = false;
        return lksi_fail(LKS_E_INPUT,
                         "`%s` holds a run that is %s (--resume), replace it by a new one "
                         "(--overwrite), or choose another folder (--out)",
                         t->dir.path, finished ? "finished; go on with it if it ended by --steps"
                                               : "not finished; go on with it");
    }
    if (t->o.weights != NULL)
        return lksi_weights_check(lks_model_graph(t->model), &t->params, t->o.weights);
    return LKS_OK;
}

static lks_status start_fresh(struct training *t)
{
    lks_status st;
    if (t->o.weights != NULL) {
        LKSI_TRY(lks_trainer_load_weights(t->trainer, t->o.weights));
        LKSI_TRY(lks_trainer_weights_sha256(t->trainer, t->weights_sha));
        t->facts.start_weights = t->weights_sha;
    }
    if (t->o.log != NULL)
        LKSI_TRY(event_log_open(&t->log, &t->history.form, t->o.log));
    LKSI_TRY(run_dir_clear(&t->dir));
fail:
    return st;
}

/* What start_again would refuse. */
static lks_status check_again(const struct training *t)
{
    bool finished;
    uint64_t step = 0;
    lks_status st;
    if (!run_dir_has(&t->dir, RUN_CHECKPOINT))
        return lksi_fail(LKS_E_INPUT,
                         "`%s` holds no checkpoint to resume from; leave out --resume "
                         "to start a run",
                         t->dir.path);
    LKSI_TRY(run_json_check(t->dir.file[RUN_JSON], t->model, &finished));
    LKSI_TRY(lksi_checkpoint_check(lks_model_graph(t->model), &t->params,
                                   lks_model_train_data(t->model), t->dir.file[RUN_CHECKPOINT],
                                   &step));
    if (t->o.steps.given && t->o.steps.value < step)
        return lksi_fail(LKS_E_INPUT, "`%s` is at step %" PRIu64 " already, past --steps %" PRIu64
                                      "; leave it out or give more",
                         t->dir.file[RUN_CHECKPOINT], step, t->o.steps.value);
fail:
    return st;
}

static lks_status start_again(struct training *t)
{
    lks_status st;
    LKSI_TRY(lks_trainer_load_checkpoint(t->trainer, lks_model_train_data(t->model),
                                         t->dir.file[RUN_CHECKPOINT]));
    LKSI_TRY(history_read(&t->history, t->dir.file[RUN_STEPS], t->dir.file[RUN_METRICS],
                          lks_trainer_steps(t->trainer)));
    t->best = history_best(&t->history);
    if (t->o.log != NULL)
        LKSI_TRY(event_log_open(&t->log, &t->history.form, t->o.log));
fail:
    return st;
}

static int check_usage(const struct training *t)
{
    if (t->o.resume && t->o.weights != NULL)
        return fail_usage("--resume takes the weights from the checkpoint; leave out --weights");
    if (t->o.resume && t->o.overwrite)
        return fail_usage("--resume and --overwrite contradict each other; leave one out");
    return EXIT_OK;
}

static void say_start(const struct training *t)
{
    const struct lks_device_info *d = lks_device_get_info(t->device);
    size_t count = lks_dataset_count(lks_model_train_data(t->model));
    if (t->o.quiet)
        return;
    printf("%s%s%s on %s", color_bold(1), lks_model_name(t->model), color_off(1), d->name);
    if (d->driver[0] != '\0')
        printf(" (%s)", d->driver);
    printf(": %zu sample%s, batch %u, %u epoch%s of %" PRIu64 " step%s, seed %" PRIu64 "\n",
           count, count == 1 ? "" : "s", t->params.batch, t->params.epochs,
           t->params.epochs == 1 ? "" : "s", steps_per_epoch(t), steps_per_epoch(t) == 1 ? "" : "s",
           t->params.seed);
    if (t->o.resume)
        printf("going on after step %" PRIu64 "\n", lks_trainer_steps(t->trainer));
    fflush(stdout);
}

static lks_status open_folder(struct training *t)
{
    char *named = NULL;
    lks_status st;
    if (t->o.out == NULL && (named = lksi_path_join("runs", lks_model_name(t->model))) == NULL)
        return LKS_E_MEMORY;
    st = run_dir_open(&t->dir, named != NULL ? named : t->o.out, bytes_needed(t, total_steps(t)));
    t->dir_open = st == LKS_OK;
    free(named);
    return st;
}

/* The first half of what can be refused: everything that needs no device and takes no time. */
static int check_input(struct training *t)
{
    int status = check_usage(t);
    lks_status st;
    if (status != EXIT_OK)
        return status;
    LKSI_TRY(lks_model_open(&t->model, t->model_file));
    if (t->o.expect.given && lks_model_test_data(t->model) == NULL)
        return fail_usage("--expect-accuracy needs test data; add `test:` under `data:` in %s",
                          t->model_file);
    form_of(t->model, &t->history.form);
    if (t->o.expect.given && t->history.form.positions == 0)
        return fail_usage("--expect-accuracy needs a loss with labels, but %s has none",
                          t->model_file);
    if ((status = set_params(t)) != EXIT_OK)
        return status;
    if (steps_per_epoch(t) == 0)
        return fail_usage("drop_last leaves no batch: %zu samples, batch %u; use a smaller batch",
                          lks_dataset_count(lks_model_train_data(t->model)), t->params.batch);
    LKSI_TRY(open_folder(t));
    LKSI_TRY(t->o.resume ? check_again(t) : check_fresh(t));
    if (t->o.log != NULL)
        LKSI_TRY(event_log_check(t->o.log));
    return EXIT_OK;
fail:
    status = fail_library(st);
    return st == LKS_E_MISMATCH ? EXIT_INPUT : status; /* --resume with something else */
}

/* The other half: device and kernels. Nothing is refused after it. */
static int prepare(struct training *t)
{
    int status = check_input(t);
    lks_status st;
    if (status == EXIT_OK)
        status = open_device(&t->device, &t->o.device);
    if (status != EXIT_OK)
        return status;
    t->params.device = t->device;
    progress_init(&t->progress, &t->history.form, t->o.quiet, total_steps(t), steps_per_epoch(t), t->params.epochs);
    LKSI_TRY(lks_trainer_create(&t->trainer, lks_model_graph(t->model), &t->params));
    progress_clear(&t->progress);
    t->facts = (struct run_facts){.model_file = t->model_file,
                                  .model = t->model,
                                  .form = &t->history.form,
                                  .params = &t->params,
                                  .device = lks_device_get_info(t->device)};
    utc_now(t->facts.started);
    t->best = (double)-INFINITY;
    LKSI_TRY(t->o.resume ? start_again(t) : start_fresh(t));
    LKSI_TRY(write_facts(t));
    t->began = true;
    return EXIT_OK;
fail:
    progress_clear(&t->progress);
    return fail_library(st);
}

/* ---- after it ---- */

static int stopped(struct training *t)
{
    lks_status st = write_state(t);
    if (st == LKS_OK)
        st = write_facts(t);
    if (st != LKS_OK)
        return fail_library(st);
    say_error("stopped after step %" PRIu64 "; written is `%s`, which --weights takes too, but no "
              "final weights yet; go on with: %s",
              lks_trainer_steps(t->trainer), t->dir.file[RUN_CHECKPOINT], t->resume_command);
    return EXIT_SIGNAL + (int)stop_signal;
}

/* Test losses and accuracy of the final weights: known from the last epoch, unless --steps ended inside one.
 */
static lks_status final_test(struct training *t)
{
    const lks_dataset *test = lks_model_test_data(t->model);
    const struct history *h = &t->history;
    t->facts.test_accuracy = (double)NAN;
    for (size_t k = 0; k < FORM_LOSSES; k++)
        t->facts.test_losses[k] = (double)NAN;
    if (test == NULL)
        return LKS_OK;
    t->facts.tested = true;
    if (h->n_epoch > 0 && h->epoch[h->n_epoch - 1].steps == lks_trainer_steps(t->trainer)) {
        memcpy(t->facts.test_losses, h->epoch[h->n_epoch - 1].test_losses,
               sizeof t->facts.test_losses);
        t->facts.test_accuracy = h->epoch[h->n_epoch - 1].test_accuracy;
        return LKS_OK;
    }
    return lks_trainer_evaluate_losses(t->trainer, test, t->facts.test_losses,
                                       &t->facts.test_accuracy);
}

static void say_result(const struct training *t)
{
    const struct form *f = &t->history.form;
    if (!t->facts.tested)
        return;
    if (f->positions > 0)
        printf("test accuracy  %s%.4f%s\n", color_bold(1), t->facts.test_accuracy, color_off(1));
    for (size_t k = 0; k < f->n_loss && f->positions == 0; k++)
        printf("test %s  %s%.4f%s\n", f->loss[k], color_bold(1), t->facts.test_losses[k],
               color_off(1));
}

static int finish(struct training *t)
{
    const char *weights = t->dir.file[RUN_WEIGHTS];
    char sha[LKSI_SHA256_HEX];
    lks_status st;
    LKSI_TRY(final_test(t));
    LKSI_TRY(curves_write(&t->history, lks_model_name(t->model), t->dir.file[RUN_CURVES]));
    LKSI_TRY(write_state(t));
    LKSI_TRY(lks_trainer_save_weights(t->trainer, weights));
    if (t->params.ema > 0)
        LKSI_TRY(lks_trainer_save_ema(t->trainer, t->dir.file[RUN_EMA]));
    LKSI_TRY(lksi_file_sha256(weights, sha));
    t->facts.finished = true;
    t->facts.weights_sha256 = sha;
    LKSI_TRY(write_facts(t));
    t->facts.weights_sha256 = NULL; /* `sha` ends here */
    LKSI_TRY(event_log_end(t->log, lks_trainer_steps(t->trainer), sha, t->facts.test_losses,
                           t->facts.test_accuracy));
    progress_clear(&t->progress);
    say_result(t);
    printf("%s  %s\n", sha, weights);
    if (t->o.expect.given && t->facts.test_accuracy < t->o.expect.value) {
        say_error("test accuracy %.4f is below the expected %.4f", t->facts.test_accuracy,
                  t->o.expect.value);
        return EXIT_NO;
    }
    return EXIT_OK;
fail:
    progress_clear(&t->progress);
    return fail_library(st);
}

static int train(struct training *t)
{
    lks_status st;
    int status = prepare(t);
    if (status != EXIT_OK)
        return status;
    say_start(t);
    catch_signals();
    st = lks_trainer_fit(t->trainer, lks_fit_params(.train = lks_model_train_data(t->model),
                                                    .test = lks_model_test_data(t->model),
                                                    .max_steps = t->o.steps.value,
                                                    .checkpoint_every = t->o.checkpoint_every.value,
                                                    .on_step = on_step, .on_epoch = on_epoch,
                                                    .on_checkpoint = on_checkpoint,
                                                    .cancelled = cancelled, .user = t));
    progress_clear(&t->progress);
    if (st == LKS_E_CANCELLED && stop_signal != 0)
        return stopped(t);
    if (st != LKS_OK)
        return fail_library(st);
    return finish(t);
}

static void release(struct training *t)
{
    event_log_close(&t->log);
    lks_trainer_destroy(&t->trainer);
    lks_device_close(&t->device);
    lks_model_destroy(&t->model);
    history_free(&t->history);
    if (t->dir_open)
        run_dir_close(&t->dir, t->began);
    free(t->resume_command);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct training t = {.started = seconds_now()};
    char **rest;
    int n_rest, status;
    t.resume_command = make_resume_command(argc, argv);
    if (t.resume_command == NULL)
        return fail_library(LKS_E_MEMORY);
    if (parse_options(self, argc, argv, &t.o, &rest, &n_rest, &status)) {
        t.model_file = n_rest > 0 ? rest[0] : NULL;
        if (n_rest != 1)
            status = fail_usage("train takes one model file, %d given; `lockstep train --help` "
                                "shows how",
                                n_rest);
        else
            status = train(&t);
    }
    release(&t);
    return status;
}

const struct command command_train = {
    "train",
    "MODEL.yaml [options]",
    "train a model and write its weights",
    "Writes into the output folder: weights.safetensors (its sha256 is the digest of the run, the\n"
    "same on every device), best.safetensors, checkpoint.safetensors, metrics.csv, steps.csv,\n"
    "curves.svg and run.json. A folder that holds a run is refused: go on with it (--resume), replace\n"
    "it (--overwrite) or choose another (--out). Ctrl-C ends the step, writes a checkpoint, whose\n"
    "weights eval, predict and sample can use, and says how to go on; a second Ctrl-C quits at once.",
    specs,
    LKSI_COUNT(specs),
    run,
};
