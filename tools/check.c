/*
 * check.c - `lockstep check`: every schedule against its contract on a device, as a table. The
 * work is done by src/check; here are the options, the table and the exit status.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <lockstep/lockstep.h>

#include "check/check.h"
#include "cli.h"
#include "rt/api.h"

struct options {
    struct device_choice device;
    const char *op, *schedule, *regime;
    struct number only_case, seed;
    bool long_run, json, list;
};

static const struct option_spec specs[] = {
    DEVICE_OPTIONS(struct options, device),
    {"op", 0, OPTION_TEXT, offsetof(struct options, op), "NAME", "this operator only", 0},
    {"schedule", 0, OPTION_TEXT, offsetof(struct options, schedule), "NAME", "this schedule only",
     0},
    {"case", 0, OPTION_U32, offsetof(struct options, only_case), "I",
     "this case of each operator only, counted from 0", 0},
    {"regime", 0, OPTION_TEXT, offsetof(struct options, regime), "NAME",
     "these inputs only: uniform, wide, subnormal, zeros,\nties, underflow", 0},
    {"seed", 0, OPTION_U64, offsetof(struct options, seed), "N", "of the inputs (default: 1)", 0},
    {"long", 0, OPTION_FLAG, offsetof(struct options, long_run), NULL, "the large sizes too", 0},
    {"list", 0, OPTION_FLAG, offsetof(struct options, list), NULL,
     "only list the operators and their schedules", 0},
    {"json", 0, OPTION_FLAG, offsetof(struct options, json), NULL,
     "one JSON object a schedule, one a line", 0},
    OPTION_COMMON,
};

struct tally {
    const struct options *o;
    const struct lks_device_info *info;
    struct lksi_str failures; /* told behind the table */
    size_t rows, passed, failed, not_here;
    bool wrong;  /* a schedule ran and was wrong: the answer is no */
    bool broken; /* memory for the report ran out */
    int runs;
};

/* ---- a row for people ---- */

static void print_head(const struct lks_device_info *info)
{
    printf("%s%s%s, %s %s\n", color_bold(1), info->name, color_off(1),
           info->type == LKS_DEVICE_REF ? "lockstep" : "driver", info->driver);
    printf("%s%-28s %-10s %6s %6s  result%s\n", color_bold(1), "operator", "schedule", "cases",
           "runs", color_off(1));
}

static void print_row(const struct lksi_check_row *row)
{
    const char *name = row->op->name;
    if (row->verdict == LKSI_CHECK_NOT_HERE) {
        printf("%-28s %-10s %6s %6s  %sdeclines: %s%s\n", name, row->schedule, "-", "-",
               color_dim(1), row->reason, color_off(1));
        return;
    }
    printf("%-28s %-10s %6d %6d  ", name, row->schedule, row->cases, row->runs);
    if (row->verdict == LKSI_CHECK_PASSED)
        printf("same bits");
    else if (row->runs > 0)
        printf("%sFAILED%s in %d of %d", color_red(1), color_off(1), row->runs - row->passed,
               row->runs);
    else
        printf("%sFAILED%s", color_red(1), color_off(1));
    if (row->declined > 0)
        printf("%s, declines %d: %s%s", color_dim(1), row->declined, row->reason, color_off(1));
    printf("\n");
}

/* ---- a row for programs ---- */

static json_t *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *failure_json(const struct lksi_check_failure *f)
{
    static const char *const faults[] = {"none",  "bits",   "unwritten", "runs",     "guard",
                                         "input", "status", "contract",  "unreached"};
    json_t *j =
        json_pack("{s:s, s:i, s:s, s:I, s:o, s:o}", "fault", faults[f->fault], "case",
                  f->case_index, "regime", lksi_regime_name(f->regime), "seed", (json_int_t)f->seed,
                  "shapes", text_or_null(f->shapes), "text", text_or_null(f->text));
    if (j != NULL && f->located) {
        char got[16], want[16];
        snprintf(got, sizeof got, "0x%08x", f->diff.got);
        snprintf(want, sizeof want, "0x%08x", f->diff.want);
        json_object_set_new(j, "output", json_integer(f->diff.output));
        json_object_set_new(j, "index", json_integer((json_int_t)f->diff.index));
        json_object_set_new(j, "got", json_string(got));
        json_object_set_new(j, "want", json_string(want));
        json_object_set_new(j, "ulp",
                            f->diff.ulp == UINT64_MAX ? json_null()
                                                      : json_integer((json_int_t)f->diff.ulp));
    }
    return j;
}

static void print_json(struct tally *t, const struct lksi_check_row *row)
{
    static const char *const verdicts[] = {"passed", "failed", "not_here"};
    json_t *j =
        json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:o}", "device", t->info->name, "op",
                  row->op->name, "schedule", row->schedule, "verdict", verdicts[row->verdict],
                  "cases", row->cases, "declined", row->declined, "runs", row->runs, "passed",
                  row->passed, "reason", text_or_null(row->reason));
    if (j != NULL && row->verdict == LKSI_CHECK_FAILED)
        json_object_set_new(j, "failure", failure_json(&row->failure));
    if (j == NULL || json_dumpf(j, stdout, JSON_COMPACT) != 0)
        t->broken = true;
    printf("\n");
    json_decref(j);
}

static void on_row(void *user, const struct lksi_check_row *row)
{
    struct tally *t = user;
    bool failed = row->verdict == LKSI_CHECK_FAILED;
    if (row->verdict == LKSI_CHECK_NOT_HERE && row->reason == NULL)
        return; /* --case asks for a case that this operator does not have */
    if (t->rows++ == 0 && !t->o->json)
        print_head(t->info);
    t->passed += row->verdict == LKSI_CHECK_PASSED;
    t->failed += failed;
    t->not_here += row->verdict == LKSI_CHECK_NOT_HERE;
    t->runs += row->runs;
    if (failed) {
        t->wrong |= row->failure.fault != LKSI_FAULT_STATUS;
        lksi_check_failure_text(&row->failure, &t->failures);
        lksi_str_add(&t->failures, "\n");
    }
    if (t->o->json)
        print_json(t, row);
    else
        print_row(row);
    fflush(stdout);
}

/* ---- the run ---- */

static int report(struct tally *t, const struct options *o)
{
    if (t->broken || t->failures.failed)
        return fail_library(lksi_fail(LKS_E_MEMORY, "no memory for the report"));
    if (o->only_case.given && t->rows == 0)
        return fail_usage("--case %" PRIu64 ": no operator asked for has so many cases; without "
                          "--long there are fewer",
                          o->only_case.value);
    if (!o->json) {
        if (t->failed > 0)
            printf("\n%s", t->failures.text);
        printf("%s%zu schedules give the contract's bits, %zu failed, %zu decline here "
               "(%d runs)\n",
               t->failed > 0 ? "" : "\n", t->passed, t->failed, t->not_here, t->runs);
    }
    return t->wrong ? EXIT_NO : t->failed > 0 ? EXIT_DEVICE : EXIT_OK;
}

static int check(lks_device *device, const struct options *o)
{
    const struct lksi_check_options options = {
        .op = o->op,
        .schedule = o->schedule,
        .regime = o->regime,
        .only_case = o->only_case.given ? 1 + (int)o->only_case.value : 0,
        .seed = o->seed.given ? o->seed.value : 1,
        .long_run = o->long_run,
    };
    struct tally t = {.o = o, .info = lks_device_get_info(device)};
    int status;
    lks_status st = lksi_check_run(lksi_device_dev(device), &options, on_row, &t, NULL);
    status = st == LKS_OK ? report(&t, o) : fail_library(st);
    free(t.failures.text);
    return status;
}

/* What the harness would refuse anyway, before a device is opened and a table begun. */
static int check_words(const struct options *o)
{
    enum lksi_regime regime;
    if (o->regime != NULL && !lksi_regime_find(o->regime, &regime))
        return fail_usage("--regime: `%s` is none of uniform, wide, subnormal, zeros, ties, "
                          "underflow",
                          o->regime);
    if (o->only_case.value >= INT32_MAX)
        return fail_usage("--case %" PRIu64 ": no operator has so many cases", o->only_case.value);
    return check_op_words(o->op, o->schedule);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options o = {0};
    lks_device *device = NULL;
    char **rest;
    int n_rest, status;
    if (!parse_options(self, argc, argv, &o, &rest, &n_rest, &status))
        return status;
    if (n_rest != 0)
        return fail_usage("check takes no `%s`", rest[0]);
    if (o.list) {
        list_ops();
        return EXIT_OK;
    }
    status = check_words(&o);
    if (status == EXIT_OK)
        status = open_device(&device, &o.device);
    if (status == EXIT_OK)
        status = check(device, &o);
    lks_device_close(&device);
    return status;
}

const struct command command_check = {
    "check",
    "[options]",
    "compare every schedule with its contract on a device",
    "Each operator runs on seeded inputs in several regimes and sizes, and every element of its\n"
    "outputs is compared with the contract, bit by bit. A failure ends with the line that repeats\n"
    "it. A schedule made for other devices declines, with its reason.\n\n"
    "Exit status: 0 if every schedule gives the contract's bits, 1 if one does not, 3 if one\n"
    "cannot run.",
    specs,
    LKSI_COUNT(specs),
    run,
};
