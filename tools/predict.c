/*
 * predict.c - `lockstep predict`: the class of PNG pictures, or of samples of the model's data.
 * On a terminal the three likeliest classes of each; elsewhere a line of fields between tabs. A sample
 * with several labels has a line for each.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "image.h"
#include "session.h"

struct options {
    struct session_options session;
    struct text_list index;
    bool all;
};

static const struct option_spec specs[] = {
    SESSION_OPTIONS(struct options, session),
    {"index", 'i', OPTION_LIST, offsetof(struct options, index), "N",
     "sample N of the data, from 0, in place of pictures (may\nbe given again)", 0},
    {"probabilities", 0, OPTION_FLAG, offsetof(struct options, all), NULL,
     "the probability of every class", 0},
    OPTION_COMMON,
};

static void print_all(const float *p, uint32_t classes)
{
    for (uint32_t k = 0; k < classes; k++)
        printf("%s%.9g", k == 0 ? "" : " ", (double)p[k]);
}

/* The likeliest class below (value, class) of the last one; the smaller class first among equals.
 */
static uint32_t next_best(const float *p, uint32_t classes, bool any, uint32_t last)
{
    uint32_t best = classes;
    for (uint32_t k = 0; k < classes; k++) {
        if (any && (p[k] > p[last] || (p[k] == p[last] && k <= last)))
            continue;
        if (best == classes || p[k] > p[best])
            best = k;
    }
    return best;
}

static void print_prediction(const char *name, const float *p, uint32_t classes, bool all)
{
    uint32_t best = next_best(p, classes, false, 0);
    if (best == classes)
        best = 0;
    if (!isatty(STDOUT_FILENO)) {
        printf("%s\t%u\t%.9g", name, best, (double)p[best]);
        if (all) {
            printf("\t");
            print_all(p, classes);
        }
        printf("\n");
        return;
    }
    printf("%s: %sclass %u%s (%.2f %%)", name, color_bold(1), best, color_off(1),
           100.0 * (double)p[best]);
    for (uint32_t i = 1, k = best; i < 3 && i < classes; i++) {
        k = next_best(p, classes, true, k);
        if (k == classes)
            break;
        printf("%s, then %u (%.2f %%)%s", color_dim(1), k, 100.0 * (double)p[k], color_off(1));
    }
    printf("\n");
    if (all) {
        print_all(p, classes);
        printf("\n");
    }
}

/* One line, or one for each position that the model has labels of: "3[0]", "3[1]", ... */
static int predict_one(struct session *s, const lks_dataset *data, size_t index, const char *name,
                       bool all)
{
    uint32_t classes = lks_model_classes(s->model);
    size_t positions = lks_dataset_positions(lks_model_train_data(s->model));
    float *p = lksi_alloc(positions > 0 ? positions : 1, classes * sizeof *p);
    lks_status st = p != NULL ? lks_trainer_predict(s->trainer, data, index, 1, p) : LKS_E_MEMORY;
    for (size_t i = 0; i < positions && st == LKS_OK && positions > 1; i++) {
        char text[64];
        snprintf(text, sizeof text, "%.32s[%zu]", name, i);
        print_prediction(text, p + i * classes, classes, all);
    }
    if (st == LKS_OK && positions <= 1)
        print_prediction(name, p, classes, all);
    free(p);
    return st == LKS_OK ? EXIT_OK : fail_library(st);
}

static int predict_indices(struct session *s, const struct options *o)
{
    const lks_dataset *data;
    int status = session_data(s, &o->session, &data);
    for (size_t i = 0; status == EXIT_OK && i < o->index.count; i++) {
        char *end;
        const char *text = o->index.item[i];
        errno = 0;
        unsigned long long n = strtoull(text, &end, 10);
        if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
            n >= lks_dataset_count(data))
            return fail_usage("--index: `%s` is no sample; the data has samples 0 to %zu", text,
                              lks_dataset_count(data) - 1);
        status = predict_one(s, data, (size_t)n, text, o->all);
    }
    return status;
}

static int predict_picture(struct session *s, const char *path, bool all)
{
    const int32_t label = 0; /* any: only the probabilities are read */
    lks_dataset *data = NULL;
    uint32_t hwc[3];
    int64_t dims[4];
    int rank;
    lks_status st;
    int status;
    lks_dataset_dims(lks_model_train_data(s->model), &rank, dims);
    if (rank != 3)
        return fail_usage("this model takes no pictures; choose samples of its data with --index");
    lks_dataset_shape(lks_model_train_data(s->model), hwc);
    uint8_t *pixels = lksi_alloc((size_t)hwc[0] * hwc[1], hwc[2]);
    st = pixels != NULL ? image_read_png(path, hwc[0], hwc[1], hwc[2], pixels) : LKS_E_MEMORY;
    if (st == LKS_OK)
        st = lks_dataset_create(
            &data,
            lks_dataset_params(.count = 1, .h = hwc[0], .w = hwc[1], .c = hwc[2],
                               .classes = lks_model_classes(s->model), .pixels = pixels,
                               .labels = &label, .normalize = lks_model_normalize(s->model)));
    status = st == LKS_OK ? predict_one(s, data, 0, path, all) : fail_library(st);
    lks_dataset_destroy(&data);
    free(pixels);
    return status;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options o = {0};
    struct session s = {0};
    char **rest;
    int n_rest, status;
    if (!parse_options(self, argc, argv, &o, &rest, &n_rest, &status))
        return status;
    if (n_rest < 1)
        return fail_usage("predict takes a model file and pictures; `lockstep predict --help` "
                          "shows how");
    if ((n_rest > 1) == (o.index.count > 0))
        return fail_usage("predict takes either pictures (PNG) or --index N");
    if (!o.session.batch.given) /* one sample at a time */
        o.session.batch = (struct number){true, 1};
    o.session.needs_classes = "`lockstep sample` shows what its layers give";
    status = session_open(&s, "predict", rest[0], &o.session);
    if (status == EXIT_OK && o.index.count > 0)
        status = predict_indices(&s, &o);
    for (int i = 1; status == EXIT_OK && i < n_rest; i++)
        status = predict_picture(&s, rest[i], o.all);
    session_close(&s);
    return status;
}

const struct command command_predict = {
    "predict",
    "MODEL.yaml --weights FILE {IMAGE.png... | --index N} [options]",
    "print the class of pictures or of samples of the data",
    "In a pipe each line holds name, class and probability between tabs; with --probabilities, a\n"
    "fourth field with those of all classes.",
    specs,
    LKSI_COUNT(specs),
    run,
};
