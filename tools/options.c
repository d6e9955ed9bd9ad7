/*
 * options.c - one table a subcommand says which options it takes; reading, checking and the help
 * text follow from it. getopt_long does the reading.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/lockstep.h>

#include "cli.h"

enum { MAX_OPTIONS = 32, HELP_COLUMN = 30, CODE_BASE = 256 };

static bool takes_value(const struct option_spec *o)
{
    return o->kind != OPTION_FLAG;
}

static void print_option(char letter, const char *name, const char *arg, const char *help)
{
    char left[64];
    int used;
    if (letter != 0)
        used = snprintf(left, sizeof left, "  -%c, --%s%s%s", letter, name, arg ? " " : "",
                        arg ? arg : "");
    else
        used = snprintf(left, sizeof left, "      --%s%s%s", name, arg ? " " : "", arg ? arg : "");
    printf("%-*s", HELP_COLUMN, left);
    if (used >= HELP_COLUMN)
        printf("\n%*s", HELP_COLUMN, "");
    for (const char *p = help; *p != '\0'; p++) {
        putchar(*p);
        if (*p == '\n')
            printf("%*s", HELP_COLUMN, "");
    }
    putchar('\n');
}

void print_help(const struct command *self)
{
    printf("Usage: lockstep %s %s\n\n%c%s.\n", self->name, self->args, toupper(self->summary[0]),
           self->summary + 1);
    if (self->detail != NULL)
        printf("\n%s\n", self->detail);
    printf("\nOptions:\n");
    for (size_t i = 0; i < self->n_options; i++)
        print_option(self->options[i].letter, self->options[i].name, self->options[i].arg,
                     self->options[i].help);
    print_option('h', "help", NULL, "this text");
}

static bool read_number(const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
    char *end;
    if (text[0] < '0' || text[0] > '9') /* strtoull would take blanks and a sign */
        return false;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || v < low || v > high)
        return false;
    *value = v;
    return true;
}

static bool read_share(const char *text, double *value)
{
    char *end;
    if (strspn(text, "0123456789.eE+-") != strlen(text))
        return false;
    double v = strtod(text, &end);
    if (end == text || *end != '\0' || !(v >= 0.0 && v <= 1.0))
        return false;
    *value = v;
    return true;
}

static bool read_color(const char *text)
{
    static const char *const modes[] = {"auto", "always", "never"};
    for (int i = 0; i < 3; i++)
        if (strcmp(text, modes[i]) == 0) {
            set_color(i);
            return true;
        }
    return false;
}

/* Stores one option; EXIT_OK, or the exit status after saying what is wrong. */
static int store(const struct option_spec *o, const char *text, void *values)
{
    void *to = (char *)values + o->offset;
    struct number *number = to;
    struct real *real = to;
    struct text_list *list = to;
    uint64_t high = o->kind == OPTION_THREADS ? LKS_MAX_THREADS
                    : o->kind == OPTION_U32   ? UINT32_MAX
                                              : UINT64_MAX;
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)to = true;
        return EXIT_OK;
    case OPTION_TEXT:
        if (text[0] == '\0')
            return fail_usage("--%s needs a %s, not an empty text", o->name, o->arg);
        *(const char **)to = text;
        return EXIT_OK;
    case OPTION_LIST:
        if (list->count == LKSI_COUNT(list->item))
            return fail_usage("--%s is given more than %zu times", o->name, list->count);
        list->item[list->count++] = text;
        return EXIT_OK;
    case OPTION_U32:
    case OPTION_U64:
    case OPTION_THREADS:
        number->given = true;
        if (read_number(text, o->low, high, &number->value))
            return EXIT_OK;
        return fail_usage("--%s: `%s` is no whole number from %llu to %llu", o->name, text,
                          (unsigned long long)o->low, (unsigned long long)high);
    case OPTION_REAL:
        real->given = true;
        if (read_share(text, &real->value))
            return EXIT_OK;
        return fail_usage("--%s: `%s` is no number from 0 to 1", o->name, text);
    case OPTION_COLOR:
        if (read_color(text))
            return EXIT_OK;
        return fail_usage("--color: `%s` is none of auto, always, never", text);
    }
    return EXIT_INPUT;
}

/* After getopt_long met something that it does not know. */
static int fail_unknown(const struct command *self, const char *word, int letter)
{
    const char *names[MAX_OPTIONS + 1], *near;
    char bare[64];
    if (letter != 0 && (word[0] != '-' || word[1] != '-'))
        return fail_usage("%s: unknown option `-%c`; `lockstep %s --help` lists the options",
                          self->name, letter, self->name);
    for (size_t i = 0; i < self->n_options; i++)
        names[i] = self->options[i].name;
    names[self->n_options] = "help";
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    near = lksi_nearest_word(bare, names, self->n_options + 1);
    if (near != NULL && strcmp(near, bare) == 0)
        return fail_usage("%s: --%s takes no value", self->name, bare);
    if (near != NULL)
        return fail_usage("%s: unknown option `--%s`; did you mean `--%s`?", self->name, bare,
                          near);
    return fail_usage("%s: unknown option `--%s`; `lockstep %s --help` lists the options",
                      self->name, bare, self->name);
}

bool parse_options(const struct command *self, int argc, char **argv, void *values, char ***rest,
                   int *n_rest, int *status)
{
    struct option longs[MAX_OPTIONS + 2] = {{0}};
    char letters[2 * MAX_OPTIONS + 4] = ":h";
    int code;
    for (size_t i = 0; i < self->n_options; i++) {
        const struct option_spec *o = &self->options[i];
        longs[i] = (struct option){o->name, takes_value(o) ? required_argument : no_argument, NULL,
                                   CODE_BASE + (int)i};
        if (o->letter != 0)
            snprintf(letters + strlen(letters), sizeof letters - strlen(letters), "%c%s", o->letter,
                     takes_value(o) ? ":" : "");
    }
    longs[self->n_options] = (struct option){"help", no_argument, NULL, 'h'};
    opterr = 0;
    optind = 1;
    while ((code = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        *status = EXIT_OK;
        if (code == 'h') {
            print_help(self);
            return false;
        }
        if (code == ':') {
            *status = fail_usage("%s: %s needs a value", self->name, argv[optind - 1]);
            return false;
        }
        if (code == '?') {
            *status = fail_unknown(self, argv[optind - 1], optopt < CODE_BASE ? optopt : 0);
            return false;
        }
        for (size_t i = 0; i < self->n_options; i++)
            if (code == CODE_BASE + (int)i || code == self->options[i].letter)
                *status = store(&self->options[i], optarg, values);
        if (*status != EXIT_OK)
            return false;
    }
    *rest = argv + optind;
    *n_rest = argc - optind;
    return true;
}

int open_device(struct lks_device **device, const struct device_choice *choice)
{
    const char *select = choice->names.count > 0 ? choice->names.item[0] : NULL;
    lks_status st;
    if (choice->names.count > 1)
        return fail_usage("--device is given %zu times; this version uses one device at a time, "
                          "so give it once",
                          choice->names.count);
    if (select != NULL && strcmp(select, "all") == 0)
        return fail_usage(
            "--device all: this version uses one device at a time; `lockstep devices` "
            "lists their names");
    st = lks_device_open(device, &(struct lks_device_params){
                                     .select = select,
                                     .threads = (int)choice->threads.value,
                                     .tuning = choice->tuning});
    return st == LKS_OK ? EXIT_OK : fail_library(st);
}

int take_resident(const char *text, struct lks_trainer_params *params)
{
    static const char *const words[] = {"auto", "yes", "no"}; /* as enum lks_resident */
    if (text == NULL)
        return EXIT_OK;
    for (size_t i = 0; i < LKSI_COUNT(words); i++)
        if (strcmp(text, words[i]) == 0) {
            params->resident = (lks_resident)i;
            return EXIT_OK;
        }
    return fail_usage("--resident is `%s`, expected auto, yes or no", text);
}
