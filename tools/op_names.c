/*
 * op_names.c - the words that --op and --schedule take: checking them, and listing them all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "op/op.h"

#define LISTED "`lockstep check --list` lists all"

/* Layers of model files that are made of an operator with another name. */
static const struct {
    const char *layer, *op;
} layers[] = {
    {"flatten", "reshape"}, {"instance_norm", "group_norm"}, {"layer_norm", "group_norm"},
    {"slice", "move"},      {"pad", "move"},                 {"transpose", "move"},
    {"select", "move"},     {"stack", "concat"},             {"upsample", "resample"},
    {"resize", "resample"}, {"depth_to_space", "move"},      {"space_to_depth", "move"}};

/* Schedule `index` of an operator; the C loop of the device `ref` counts. NULL past the last. */
static const char *schedule_at(const struct lksi_op *op, size_t index)
{
    const struct lksi_schedule *s;
    if (op->ref != NULL && index == 0)
        return "ref";
    s = lksi_op_schedule(op, op->ref != NULL ? index - 1 : index);
    return s != NULL ? s->name : NULL;
}

static bool has_schedule(const struct lksi_op *op, const char *schedule)
{
    const char *name;
    for (size_t i = 0; (name = schedule_at(op, i)) != NULL; i++)
        if (strcmp(name, schedule) == 0)
            return true;
    return false;
}

static int fail_op(const char *name)
{
    const char *names[512], *near;
    const struct lksi_op *op;
    size_t n = 0;
    for (size_t i = 0; i < LKSI_COUNT(layers); i++)
        if (strcmp(layers[i].layer, name) == 0)
            return fail_usage("--op: `%s` is a layer; its operator is `%s`; " LISTED, name,
                              layers[i].op);
    while (n < LKSI_COUNT(names) && (op = lksi_op_at(n)) != NULL)
        names[n++] = op->name;
    near = lksi_nearest_word(name, names, n);
    if (near != NULL)
        return fail_usage("--op: there is no operator `%s`; did you mean `%s`? " LISTED, name,
                          near);
    return fail_usage("--op: there is no operator `%s`; " LISTED, name);
}

static int fail_schedule(const struct lksi_op *op, const char *schedule)
{
    struct lksi_str s = {0};
    const char *name;
    int status;
    for (size_t i = 0; (name = schedule_at(op, i)) != NULL; i++)
        lksi_str_add(&s, "%s`%s`", i > 0 ? ", " : "", name);
    status = s.failed ? fail_library(LKS_E_MEMORY)
                      : fail_usage("--schedule: operator `%s` has no schedule `%s`; it has %s",
                                   op->name, schedule, s.text);
    free(s.text);
    return status;
}

int check_op_words(const char *name, const char *schedule)
{
    const struct lksi_op *op = name != NULL ? lksi_op_find(name) : NULL;
    if (name != NULL && op == NULL)
        return fail_op(name);
    if (schedule == NULL || (op != NULL && has_schedule(op, schedule)))
        return EXIT_OK;
    if (op != NULL)
        return fail_schedule(op, schedule);
    for (size_t i = 0; (op = lksi_op_at(i)) != NULL; i++)
        if (has_schedule(op, schedule))
            return EXIT_OK;
    return fail_usage("--schedule: no operator has a schedule `%s`; " LISTED, schedule);
}

void list_ops(void)
{
    const struct lksi_op *op;
    const char *name;
    for (size_t i = 0; (op = lksi_op_at(i)) != NULL; i++) {
        printf("%-27s", op->name);
        for (size_t k = 0; (name = schedule_at(op, k)) != NULL; k++)
            printf(" %s", name);
        printf("\n");
    }
}
