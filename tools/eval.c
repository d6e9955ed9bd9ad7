/*
 * eval.c - `lockstep eval`: losses and accuracy of weights over a data set.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "form.h"
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

/* In columns on a terminal, in full elsewhere. */
static void print(const struct form *form, size_t samples, const double *losses, double accuracy)
{
    bool terminal = isatty(STDOUT_FILENO);
    int width = terminal ? 8 : 0, digits = terminal ? 4 : 9;
    const char *format = terminal ? "%-*s  %.*f\n" : "%-*s %.*g\n";
    for (size_t k = 0; terminal && k < form->n_loss; k++)
        if ((int)strlen(form->loss[k]) > width)
            width = (int)strlen(form->loss[k]);
    printf("%-*s%s%zu\n", width, "samples", terminal ? "  " : " ", samples);
    for (size_t k = 0; k < form->n_loss; k++)
        printf(format, width, form->loss[k], digits, losses[k]);
    if (form->positions > 0)
        printf(format, width, "accuracy", digits, accuracy);
}

static int eval(struct session *s, const char *model_file, const struct options *o)
{
    const lks_dataset *data;
    double losses[FORM_LOSSES], accuracy;
    struct session_options so = o->session;
    struct form form;
    int status;
    if (o->expect.given)
        so.needs_classes = "leave out --expect-accuracy";
    status = session_open(s, "eval", model_file, &so);
    if (status == EXIT_OK)
        status = session_data(s, &so, &data);
    if (status != EXIT_OK)
        return status;
    lks_status st = lks_trainer_evaluate_losses(s->trainer, data, losses, &accuracy);
    if (st != LKS_OK)
        return fail_library(st);
    form_of(s->model, &form);
    print(&form, lks_dataset_count(data), losses, accuracy);
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
