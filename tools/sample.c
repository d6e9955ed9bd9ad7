/*
 * sample.c - `lockstep sample`: what a layer gives, as a sheet of pictures: images that a generator
 * makes of random numbers, or pictures of the data as an autoencoder passes them on.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "session.h"
#include "sheet.h"

struct options {
    struct session_options session;
    const char *of, *beside, *out;
    struct number count, columns, seed;
};

static const struct option_spec specs[] = {
    SESSION_OPTIONS(struct options, session),
    {"of", 0, OPTION_TEXT, offsetof(struct options, of), "LAYER",
     "the layer to show (default: the last)", 0},
    {"beside", 0, OPTION_TEXT, offsetof(struct options, beside), "LAYER",
     "show what this layer gives, e.g. `input`, at the left of\neach picture", 0},
    {"count", 0, OPTION_U32, offsetof(struct options, count), "N",
     "samples to show (64, or all if there are fewer)", 1},
    {"columns", 0, OPTION_U32, offsetof(struct options, columns), "N", "samples a row (8)", 1},
    {"seed", 0, OPTION_U64, offsetof(struct options, seed), "N",
     "seed of the random numbers, in place of the model file's", 0},
    {"out", 'o', OPTION_TEXT, offsetof(struct options, out), "FILE",
     "picture to write (default: sheet.png)", 0},
    OPTION_COMMON,
};

/* A layer and the pictures that it gives: rank 3, rank 2 (grey), or a vector as long as a sample of
 * the data. */
struct view {
    const char *name;
    lks_value value;
    uint32_t hwc[3];
};

static size_t pixels_of(const struct view *v)
{
    return (size_t)v->hwc[0] * v->hwc[1] * v->hwc[2];
}

static int find_view(const lks_model *m, struct view *v)
{
    int rank;
    int64_t dims[4];
    uint32_t hwc[3];
    lks_status st = lks_model_value(m, v->name, &v->value);
    if (st == LKS_OK)
        st = lks_graph_shape(lks_model_graph(m), v->value, &rank, dims);
    if (st != LKS_OK)
        return fail_library(st);
    lks_dataset_shape(lks_model_train_data(m), hwc);
    if (rank == 1 && dims[0] == (int64_t)hwc[0] * hwc[1] * hwc[2])
        memcpy(v->hwc, hwc, sizeof hwc);
    else if (rank == 2 || (rank == 3 && (dims[2] == 1 || dims[2] == 3)))
        for (int i = 0; i < 3; i++)
            v->hwc[i] = i < rank ? (uint32_t)dims[i] : 1;
    else
        return fail_usage("layer `%s` gives no pictures: they have 1 or 3 channels, or as many "
                          "numbers as a sample of the data; choose another with --of",
                          v->name);
    return EXIT_OK;
}

/* Pictures of `v` at every `step`-th place of `out`. */
static lks_status fill(struct session *s, const lks_dataset *data, const struct view *v,
                       size_t count, size_t step, float *out)
{
    size_t each = pixels_of(v);
    float *rows = lksi_alloc(count * each, sizeof *rows);
    lks_status st = rows != NULL ? lks_trainer_output(s->trainer, data, v->value, 0, count, rows)
                                 : LKS_E_MEMORY;
    for (size_t i = 0; st == LKS_OK && i < count; i++)
        memcpy(out + i * step * each, rows + i * each, each * sizeof *rows);
    free(rows);
    return st;
}

static const char *out_path(const struct options *o)
{
    return o->out != NULL ? o->out : "sheet.png";
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static int show(struct session *s, const struct options *o, const struct view view[2], int n)
{
    size_t count;
    size_t columns = o->columns.given ? o->columns.value : 8;
    const char *path = out_path(o);
    const struct view *last = &view[n - 1];
    const lks_dataset *data;
    int status = session_data(s, &o->session, &data);
    float *pictures = NULL;
    lks_status st = LKS_OK;
    if (status != EXIT_OK)
        return status;
    count = o->count.given ? o->count.value : least(64, lks_dataset_count(data));
    if (count > lks_dataset_count(data))
        return fail_usage("--count is %zu, but the data has %zu samples; take fewer, or --data "
                          "train",
                          count, lks_dataset_count(data));
    pictures = lksi_alloc(count * (size_t)n * pixels_of(last), sizeof *pictures);
    if (pictures == NULL)
        st = LKS_E_MEMORY;
    for (int i = 0; i < n && st == LKS_OK; i++)
        st = fill(s, data, &view[i], count, (size_t)n, pictures + (size_t)i * pixels_of(last));
    if (st == LKS_OK)
        st = sheet_write(path, &(struct sheet){.picture = pictures,
                                               .count = count * (size_t)n,
                                               .columns = columns * (size_t)n,
                                               .h = last->hwc[0],
                                               .w = last->hwc[1],
                                               .c = last->hwc[2],
                                               .normalize = lks_model_normalize(s->model)});
    free(pictures);
    if (st != LKS_OK)
        return fail_library(st);
    printf("%zu samples of `%s`  %s\n", count, last->name, path);
    return EXIT_OK;
}

static int sample(struct session *s, const char *model_file, const struct options *o)
{
    struct session_options session = o->session;
    struct view view[2] = {{.name = o->beside}, {.name = o->of}};
    struct lks_layer_info last;
    int first = o->beside != NULL ? 0 : 1, status;
    lks_status writable = lksi_file_check_writable(out_path(o));
    if (writable != LKS_OK)
        return fail_library(writable);
    session.seed = o->seed;
    status = session_open(s, "sample", model_file, &session);
    if (status != EXIT_OK)
        return status;
    if (o->of == NULL) {
        lks_status st = lks_model_layer(s->model, lks_model_layer_count(s->model) - 1, &last);
        if (st != LKS_OK)
            return fail_library(st);
        view[1].name = last.name;
    }
    for (int i = first; i < 2 && status == EXIT_OK; i++)
        status = find_view(s->model, &view[i]);
    if (status != EXIT_OK)
        return status;
    if (first == 0 && memcmp(view[0].hwc, view[1].hwc, sizeof view[0].hwc) != 0)
        return fail_usage("--beside: `%s` gives pictures of %" PRIu32 " x %" PRIu32 " x %" PRIu32
                          ", `%s` of %" PRIu32 " x %" PRIu32 " x %" PRIu32 "; they must be alike",
                          view[0].name, view[0].hwc[0], view[0].hwc[1], view[0].hwc[2],
                          view[1].name, view[1].hwc[0], view[1].hwc[1], view[1].hwc[2]);
    return show(s, o, view + first, 2 - first);
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
        return fail_usage("sample takes one model file, %d given; `lockstep sample --help` shows "
                          "how",
                          n_rest);
    status = sample(&s, rest[0], &o);
    session_close(&s);
    return status;
}

const struct command command_sample = {
    "sample",
    "MODEL.yaml --weights FILE [options]",
    "write a sheet of pictures that a layer gives",
    "The layer gives pictures of 1 or 3 channels, or as many numbers as a sample of the data has.\n"
    "The same weights and seed give the same pictures on every device.",
    specs,
    LKSI_COUNT(specs),
    run,
};
