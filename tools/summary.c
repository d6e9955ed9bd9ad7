/*
 * summary.c - `lockstep summary`: layers, shapes, parameters, operations, and the memory of a
 * training step by plan; with --plan the plan itself (plan_table.c).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <lockstep/lockstep.h>

#include "cli.h"
#include "model/kind.h"
#include "plan_table.h"

struct options {
    struct device_choice device;
    struct number batch;
    const char *resident;
    bool layers, plan, verbose, json;
};

static const struct option_spec specs[] = {
    {"device", 'd', OPTION_LIST, offsetof(struct options, device.names), "DEVICE",
     "plan for this device (default: ref; with --plan the first\nGPU, else the CPU device)", 0},
    {"tuning", 0, OPTION_TEXT, offsetof(struct options, device.tuning), "FILE|none",
     "what `lockstep tune` found (default: $LKS_TUNING, else the\nuser's file for the device); then "
     "the library's own tables,\nwhich `built-in` uses alone", 0},
    {"batch", 'b', OPTION_U32, offsetof(struct options, batch), "N",
     "samples a step, in place of the model file's", 1},
    RESIDENT_OPTION(struct options, resident),
    {"plan", 0, OPTION_FLAG, offsetof(struct options, plan), NULL,
     "print the plan of a training step: operators, schedules,\nlaunches, workspace, what is fused, "
     "memory",
     0},
    {"verbose", 'v', OPTION_FLAG, offsetof(struct options, verbose), NULL,
     "with --plan: shapes and launches of each operator, and why\nearlier schedules decline", 0},
    {"json", 0, OPTION_FLAG, offsetof(struct options, json), NULL,
     "with --plan: one JSON object", 0},
    {"layers", 0, OPTION_FLAG, offsetof(struct options, layers), NULL,
     "without a model: list the layers of model files and\ntheir keys", 0},
    OPTION_COMMON,
};

static int list_layers(void)
{
    const struct lksi_kind *k;
    for (size_t i = 0; (k = lksi_kind_at(i)) != NULL; i++) {
        printf("%-19s", k->word);
        for (size_t n = 0; n < LKSI_COUNT(k->keys) && k->keys[n] != NULL; n++)
            printf(" %s", k->keys[n]);
        for (size_t n = 0; n < LKSI_COUNT(k->inputs) && k->inputs[n] != NULL; n++)
            printf(" %s", k->inputs[n]);
        printf("%s%s name\n", k->shares ? " share" : "",
               k->max_in > 0 && k->inputs[0] == NULL ? " from" : "");
    }
    return EXIT_OK;
}

static void shape_text(int rank, const int64_t *dims, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < rank && used < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%" PRId64, i == 0 ? "" : " x ", dims[i]);
}

static lks_status print_layers(const lks_model *m)
{
    int64_t parameters = 0, multiply_adds = 0;
    char shape[96], previous[256] = "input";
    int width = 16;
    const lks_dataset *data = lks_model_train_data(m);
    int64_t dims[4];
    int rank;
    lks_dataset_dims(data, &rank, dims);
    for (size_t i = 0; i < lks_model_layer_count(m); i++) {
        struct lks_layer_info l;
        if (lks_model_layer(m, i, &l) == LKS_OK && (int)strlen(l.name) > width)
            width = (int)strlen(l.name);
    }
    printf("%s%-*s %-16s %-20s %14s %18s%s\n", color_bold(1), width, "layer", "type", "output",
           "parameters", "multiply-adds", color_off(1));
    shape_text(rank, dims, shape, sizeof shape);
    printf("%-*s %-16s %-20s\n", width, "input", lks_dataset_vocabulary(data) != NULL ? "tokens" : "",
           shape);
    for (size_t i = 0; i < lks_model_layer_count(m); i++) {
        struct lks_layer_info l;
        lks_status st = lks_model_layer(m, i, &l);
        if (st != LKS_OK)
            return st;
        shape_text(l.rank, l.dims, shape, sizeof shape);
        printf("%-*s %-16s %-20s %14" PRId64 " %18" PRId64, width, l.name, l.type, shape,
               l.parameters, l.multiply_adds);
        if (l.from[0] != '\0' && strcmp(l.from, previous) != 0)
            printf("  from %s", l.from);
        printf("\n");
        snprintf(previous, sizeof previous, "%s", l.name);
        parameters += l.parameters;
        multiply_adds += l.multiply_adds;
    }
    printf("%-*s %-16s %-20s %14" PRId64 " %18" PRId64 "  (forward, a sample)\n\n", width, "total",
           "", "", parameters, multiply_adds);
    return LKS_OK;
}

static lks_status print_memory(lks_trainer *t, const lks_device *device, uint32_t batch)
{
    char parameters[32], inputs[32], values[32], data[32], total[32];
    struct lks_memory memory;
    lks_status st = lks_trainer_memory(t, &memory);
    if (st != LKS_OK)
        return st;
    printf("memory of a training step at batch %u on %s:\n"
           "  parameters and optimiser  %12s\n  inputs                    %12s\n"
           "  values and gradients      %12s\n",
           batch, lks_device_get_info(device)->name,
           human_bytes(memory.parameters, parameters, sizeof parameters),
           human_bytes(memory.inputs, inputs, sizeof inputs),
           human_bytes(memory.values, values, sizeof values));
    if (memory.data > 0)
        printf("  the training data         %12s\n", human_bytes(memory.data, data, sizeof data));
    printf("  total                     %12s\n", human_bytes(memory.total, total, sizeof total));
    return LKS_OK;
}

static lks_status print_step(const lks_model *m, lks_device *device, const struct options *o)
{
    struct lks_trainer_params p;
    lks_trainer *t = NULL;
    lks_status st;
    lks_model_trainer_params(m, &p);
    p.device = device;
    if (o->batch.given)
        p.batch = (uint32_t)o->batch.value;
    take_resident(o->resident, &p); /* checked before */
    st = lks_trainer_create(&t, lks_model_graph(m), &p);
    if (st == LKS_OK)
        st = o->plan ? print_plan(t, o->verbose, o->json)
                     : print_memory(t, device, p.batch);
    lks_trainer_destroy(&t);
    return st;
}

static lks_status print_model(const lks_model *model)
{
    printf("%s%s%s, sha256 %s\n%zu samples to train on, %zu to test on\n\n", color_bold(1),
           lks_model_name(model), color_off(1), lks_model_sha256(model),
           lks_dataset_count(lks_model_train_data(model)),
           lks_model_test_data(model) != NULL ? lks_dataset_count(lks_model_test_data(model))
                                              : (size_t)0);
    if (lks_dataset_vocabulary(lks_model_train_data(model)) != NULL)
        printf("a vocabulary of %u different bytes\n\n",
               lks_dataset_classes(lks_model_train_data(model)));
    return print_layers(model);
}

static int summary(const char *file, struct options *o)
{
    lks_model *model = NULL;
    lks_device *device = NULL;
    lks_status st = lks_model_open(&model, file);
    int status = st == LKS_OK ? EXIT_OK : fail_library(st);
    if (status == EXIT_OK && !o->plan) {
        st = print_model(model);
        status = st == LKS_OK ? EXIT_OK : fail_library(st);
    }
    if (status == EXIT_OK)
        status = open_device(&device, &o->device);
    if (status == EXIT_OK) {
        st = print_step(model, device, o);
        status = st == LKS_OK ? EXIT_OK : fail_library(st);
    }
    lks_device_close(&device);
    lks_model_destroy(&model);
    return status;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options o = {0};
    char **rest;
    int n_rest, status;
    if (!parse_options(self, argc, argv, &o, &rest, &n_rest, &status))
        return status;
    if (o.layers && n_rest == 0)
        return list_layers();
    if (o.layers)
        return fail_usage("summary --layers takes no model file");
    if (n_rest != 1)
        return fail_usage("summary takes one model file, %d given", n_rest);
    status = take_resident(o.resident, &(struct lks_trainer_params){0});
    if (status != EXIT_OK)
        return status;
    if (!o.plan && (o.verbose || o.json))
        return fail_usage("--%s is for --plan", o.json ? "json" : "verbose");
    if (o.device.names.count == 0 && !o.plan) /* it needs no kernels; the table says so */
        o.device.names = (struct text_list){{"ref"}, 1};
    return summary(rest[0], &o);
}

const struct command command_summary = {
    "summary",
    "MODEL.yaml | --layers [options]",
    "print layers, shapes, parameters, memory and plan of a model",
    NULL,
    specs,
    LKSI_COUNT(specs),
    run,
};
