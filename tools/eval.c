/*
 * eval.c - `lockstep eval`: loss and accuracy of weights over a data set.
 */
#include <stdio.h>
#include <unistd.h>

#include "session.h"

struct options {
    struct session_options session;
    struct real expect;
};

static const struct option_spec specs[] = {
    SESSION_OPTIONS(struct options, session),
    {"expect-accuracy", 0, OPTION_REAL, offsetof(struct options, expect), "A",
     "exit with status 1 if the accuracy is below A (0 to 1)", 0},
    OPTION_COMMON,
};

static int eval(struct session *s, const char *model_file, const struct options *o)
{
    const lks_dataset *data;
    double loss, accuracy;
    int status = session_open(s, "eval", model_file, &o->session);
    if (status == EXIT_OK)
        status = session_data(s, &o->session, &data);
    if (status != EXIT_OK)
        return status;
    lks_status st = lks_trainer_evaluate(s->trainer, data, &loss, &accuracy);
    if (st != LKS_OK)
        return fail_library(st);
    const char *format = isatty(STDOUT_FILENO) ? "samples   %zu\nloss      %.4f\naccuracy  %.4f\n"
                                               : "samples %zu\nloss %.9g\naccuracy %.9g\n";
    printf(format, lks_dataset_count(data), loss, accuracy);
    if (o->expect.given && accuracy < o->expect.value) {
        say_error("accuracy %.4f is below the expected %.4f", accuracy, o->expect.value);
        return EXIT_NO;
    }
    return EXIT_OK;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options o = {0};
    struct session s = {0};
    char **rest;
    int n_rest, status;
    if (!parse_options(self, argc, argv, &o, &rest, &n_rest, &status))
        return status;
    if (n_rest != 1)
        return fail_usage("eval takes one model file, %d given; `lockstep eval --help` shows how",
                          n_rest);
    status = eval(&s, rest[0], &o);
    session_close(&s);
    return status;
}

const struct command command_eval = {
    "eval",
    "MODEL.yaml --weights FILE [options]",
    "print loss and accuracy of weights on the test data",
    NULL,
    specs,
    LKSI_COUNT(specs),
    run,
};
