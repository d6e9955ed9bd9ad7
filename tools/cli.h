/*
 * cli.h - what the subcommands of the program share: options, messages, exit status.
 *
 * Results go to standard output, everything else to standard error. A subcommand is one file with
 * one `struct command`; main.c lists them. The program never calls setlocale, so numbers are read
 * and written alike in every locale.
 */
#ifndef LKS_TOOLS_CLI_H
#define LKS_TOOLS_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/words.h"

/* ---- exit status ---- */

enum {
    EXIT_OK = 0,
    EXIT_NO = 1,      /* the answer is no: bits differ, accuracy too low, training diverged */
    EXIT_INPUT = 2,   /* wrong usage or input */
    EXIT_DEVICE = 3,  /* device trouble */
    EXIT_SIGNAL = 128 /* plus the number of the signal that stopped the run */
};

/* ---- messages (message.c) ---- */

/* "lockstep: TEXT" on standard error, in one line, red on a terminal. */
void say_error(const char *format, ...) LKSI_PRINTF(1, 2);
/* As say_error; returns EXIT_INPUT, so that `return fail_usage(...)` works. */
int fail_usage(const char *format, ...) LKSI_PRINTF(1, 2);
/* Says the library's latest error text; returns the exit status of `st`. */
int fail_library(lks_status st);
int exit_status_of(lks_status st);

/* Sends the library's warnings (with `verbose` its notes too) to standard error. */
void log_to_stderr(bool verbose);

/* 0 auto, 1 always, 2 never; as `--color` says. */
void set_color(int mode);
/* Escape sequences, or "" where there shall be no colour. `stream` is 1 or 2. */
const char *color_bold(int stream);
const char *color_dim(int stream);
const char *color_red(int stream);
const char *color_off(int stream);
/* Bytes with a unit, "1.5 GiB". */
const char *human_bytes(uint64_t bytes, char *text, size_t size);

/* ---- options (options.c) ---- */

enum option_kind {
    OPTION_FLAG, /* bool */
    OPTION_TEXT, /* const char * */
    OPTION_LIST, /* struct text_list, may be given again */
    OPTION_U32,  /* struct number, at least `low` */
    OPTION_U64,
    OPTION_THREADS, /* struct number, 1 to LKS_MAX_THREADS */
    OPTION_REAL, /* struct real, 0 to 1 */
    OPTION_COLOR /* none: acts at once */
};

struct text_list {
    const char *item[16];
    size_t count;
};

struct number {
    bool given;
    uint64_t value;
};

struct real {
    bool given;
    double value;
};

struct option_spec {
    const char *name; /* without the dashes */
    char letter;      /* or 0 */
    enum option_kind kind;
    size_t offset;   /* in the subcommand's struct of options */
    const char *arg; /* what the help calls the value, or NULL */
    const char *help;
    uint64_t low; /* smallest number */
};

struct command {
    const char *name;
    const char *args;    /* "MODEL.yaml [options]" */
    const char *summary; /* one line */
    const char *detail;  /* paragraphs of the help behind the summary, or NULL */
    const struct option_spec *options;
    size_t n_options;
    int (*run)(const struct command *self, int argc, char **argv);
};

/* Rows that every table of options ends with. --help is added by itself. */
#define OPTION_COMMON                                                                              \
    {                                                                                              \
        "color", 0, OPTION_COLOR, 0, "auto|always|never", "colours (auto: on a terminal)", 0       \
    }

/*
 * Reads argv[1..] into `values` (zeroed by the caller). *rest and *n_rest are what is no option,
 * in order (argv is permuted). False if the program shall end with *status: after an error, which
 * has been said, or after --help.
 */
bool parse_options(const struct command *self, int argc, char **argv, void *values, char ***rest,
                   int *n_rest, int *status);
void print_help(const struct command *self);

/* ---- devices ---- */

struct lks_device;

struct device_choice {
    struct text_list names; /* --device */
    struct number threads;  /* --threads */
    const char *tuning;     /* --tuning */
};
#define DEVICE_OPTIONS(type, member)                                                               \
    {"device",                                                                                     \
     'd',                                                                                          \
     OPTION_LIST,                                                                                  \
     offsetof(type, member.names),                                                                 \
     "DEVICE",                                                                                     \
     "cpu, gpu, ref, PLATFORM:N or part of a device's name\n(default: the first GPU, else the "    \
     "CPU device)",                                                                                \
     0},                                                                                           \
    {"threads",                                                                                    \
     0,                                                                                            \
     OPTION_THREADS,                                                                               \
     offsetof(type, member.threads),                                                               \
     "N",                                                                                          \
     "threads of the device `ref` (default: one a processor)",                                     \
     1},                                                                                           \
    {                                                                                              \
        "tuning", 0, OPTION_TEXT, offsetof(type, member.tuning), "FILE|none",                      \
            "what `lockstep tune` found (default: $LKS_TUNING, else the\n"                         \
            "user's file for the device); then the library's own tables,\n"                        \
            "which `built-in` uses alone", 0                                                       \
    }

struct lks_trainer_params;

/* Whether data sets lie on the device; a `const char *`. */
#define RESIDENT_OPTION(type, member)                                                              \
    {                                                                                              \
        "resident", 0, OPTION_TEXT, offsetof(type, member), "auto|yes|no",                         \
            "keep the data on the device, in place of the model\nfile's (same bits)", 0            \
    }
/* EXIT_OK, or the exit status after saying that it is none of these. NULL changes nothing. */
int take_resident(const char *text, struct lks_trainer_params *params);

/* Opens the device that the options name. EXIT_OK, or the exit status after saying the error. */
int open_device(struct lks_device **device, const struct device_choice *choice);

/* ---- operators (op_names.c) ---- */

/* EXIT_OK if `op` is an operator and `schedule` one of its schedules (of any, if `op` is NULL); else
 * says which there are. Either may be NULL. */
int check_op_words(const char *op, const char *schedule);
/* Prints every operator with its schedules, one a line. */
void list_ops(void);

/* ---- subcommands ---- */

extern const struct command command_bench, command_check, command_compare, command_devices,
    command_eval, command_hash, command_predict, command_sample, command_summary, command_train,
    command_tune;

#endif
