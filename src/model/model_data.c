/*
 * model_data.c - the section `data` of a model file: opens the data sets it names.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "model/model.h"

#define IDX_EXAMPLE "train: {format: idx, images: images.gz, labels: labels.gz}"
#define TEXT_EXAMPLE "train: {format: text, file: book.txt, context: 64}"
#define MOVING_EXAMPLE                                                                             \
    "train: {format: moving_digits, images: images.gz, size: [40, 40], frames: 10, count: 2000}"

static lks_status check_exists(const struct lksi_node *node, const char *path)
{
    if (access(path, F_OK) == 0 || errno != ENOENT)
        return LKS_OK; /* opening it says more */
    if (node->text[0] == '/')
        (void)lksi_node_fail(node, "`%s`: No such file or directory; check the spelling", path);
    else
        (void)lksi_node_fail(node, "`%s`: No such file or directory; paths start at the folder of "
                                   "the model file, so this one is `%s`",
                             node->text, path);
    return LKS_E_IO;
}

/* A path of the file, seen from the file's own folder; NULL for a missing `key` without example. */
static lks_status read_path(const struct lksi_node *map, const char *key, const char *example,
                            char **out)
{
    const struct lksi_node *node = lksi_node_get(map, key);
    const char *text;
    char *dir = NULL;
    lks_status st;
    if (node == NULL && example == NULL)
        return LKS_OK;
    LKSI_TRY(lksi_node_need(map, key, example, &node));
    LKSI_TRY(lksi_node_string(node, example != NULL ? example : IDX_EXAMPLE, &text));
    dir = lksi_path_dirname(node->file);
    if (dir != NULL)
        *out = strcmp(dir, ".") == 0 && strchr(node->file, '/') == NULL ? lksi_strdup(text)
                                                                        : lksi_path_join(dir, text);
    st = dir == NULL || *out == NULL ? LKS_E_MEMORY : check_exists(node, *out);
fail:
    free(dir);
    return st;
}

/* Puts the place in the file before what a data set complains of. */
static lks_status opened(lks_status st, const struct lksi_node *map)
{
    if (st == LKS_E_ARGUMENT)
        st = LKS_E_INPUT;
    return st == LKS_OK ? st : lksi_fail_prefix(st, "%s:%d: key `%s`: ", map->file, map->line,
                                                map->key);
}

static lks_status read_limit(const struct lksi_node *map, size_t *limit)
{
    int64_t n = 0;
    lks_status st = lksi_map_int(map, "limit", 1, UINT32_MAX, "limit: 1000", &n);
    *limit = (size_t)n;
    return st;
}

static lks_status open_idx(const struct lks_model *m, const struct lksi_node *map,
                           lks_dataset **out)
{
    static const char *const keys[] = {"format", "images", "labels", "limit"};
    struct lks_images_params p = {.normalize = m->normalize};
    char *images = NULL, *labels = NULL;
    lks_status st;
    LKSI_TRY(lksi_node_check_keys(map, keys, LKSI_COUNT(keys)));
    LKSI_TRY(read_path(map, "images", IDX_EXAMPLE, &images));
    LKSI_TRY(read_path(map, "labels", NULL, &labels));
    LKSI_TRY(read_limit(map, &p.limit));
    p.images = images;
    p.labels = labels;
    LKSI_TRY(opened(lks_dataset_open_images(out, &p), map));
fail:
    free(images);
    free(labels);
    return st;
}

/* A test takes the vocabulary of the training text. */
static lks_status open_text(const struct lks_model *m, const struct lksi_node *map,
                            lks_dataset **out)
{
    static const char *const keys[] = {"format", "file", "context", "stride",
                                       "from",   "to",   "limit"};
    struct lks_text_params p = {.to = 1, .vocabulary = m->train};
    const struct lksi_node *node;
    int64_t context, stride = 0;
    char *file = NULL;
    lks_status st;
    LKSI_TRY(lksi_node_check_keys(map, keys, LKSI_COUNT(keys)));
    if (m->has_normalize)
        return lksi_node_fail(map, "`normalize` is for pixels; a text gives whole numbers, so leave "
                                   "it out");
    if (m->train != NULL && lks_dataset_vocabulary(m->train) == NULL)
        return lksi_node_fail(map, "`train` is no text; write the same `format` for both");
    LKSI_TRY(read_path(map, "file", TEXT_EXAMPLE, &file));
    LKSI_TRY(lksi_node_need(map, "context", "context: 64", &node));
    LKSI_TRY(lksi_node_int(node, 1, INT32_MAX - 1, "context: 64", &context));
    LKSI_TRY(lksi_map_int(map, "stride", 1, INT32_MAX, "stride: 64", &stride));
    LKSI_TRY(lksi_map_float(map, "from", 0, 1, "from: 0.0", &p.from));
    LKSI_TRY(lksi_map_float(map, "to", LKSI_POSITIVE, 1, "to: 0.9", &p.to));
    LKSI_TRY(read_limit(map, &p.limit));
    if (p.from >= p.to) {
        st = lksi_node_fail(lksi_node_get(map, "from"), "it is %g, not below `to`, %g", p.from,
                            p.to);
        goto fail;
    }
    p.file = file;
    p.context = (uint32_t)context;
    p.stride = (uint32_t)stride;
    LKSI_TRY(opened(lks_dataset_open_text(out, &p), map));
fail:
    free(file);
    return st;
}

static lks_status read_number(const struct lksi_node *map, const char *key, int64_t high,
                              const char *example, uint32_t *out)
{
    int64_t n = *out;
    lks_status st = lksi_map_int(map, key, 1, high, example, &n);
    *out = (uint32_t)n;
    return st;
}

/* `size: [40, 60]`, height and width, or one number for both. */
static lks_status read_size(const struct lksi_node *map, uint32_t *height, uint32_t *width)
{
    static const char example[] = "size: [40, 40]";
    const struct lksi_node *node;
    int64_t n[2];
    lks_status st;
    LKSI_TRY(lksi_node_need(map, "size", example, &node));
    if (node->kind == LKSI_NODE_SEQUENCE && node->count != 2)
        return lksi_node_expected(node, "height and width", example);
    for (int i = 0; i < 2; i++)
        LKSI_TRY(lksi_node_int(node->kind == LKSI_NODE_SEQUENCE ? node->items[i] : node, 1, 32768,
                               example, &n[i]));
    *height = (uint32_t)n[0];
    *width = (uint32_t)n[1];
fail:
    return st;
}

static lks_status open_moving(const struct lks_model *m, const struct lksi_node *map,
                              lks_dataset **out)
{
    static const char *const keys[] = {"format", "images", "frames", "size", "digits",
                                       "speed",  "seed",   "count",  "limit"};
    struct lks_moving_digits_params p = {.normalize = m->normalize,
                                         .frames = 10,
                                         .digits = 2,
                                         .speed = 3};
    const struct lksi_node *node;
    char *images = NULL;
    int64_t count;
    size_t limit;
    lks_status st;
    LKSI_TRY(lksi_node_check_keys(map, keys, LKSI_COUNT(keys)));
    LKSI_TRY(read_path(map, "images", MOVING_EXAMPLE, &images));
    LKSI_TRY(read_size(map, &p.height, &p.width));
    LKSI_TRY(lksi_node_need(map, "count", "count: 2000", &node));
    LKSI_TRY(lksi_node_int(node, 1, UINT32_MAX, "count: 2000", &count));
    LKSI_TRY(read_number(map, "frames", 32768, "frames: 10", &p.frames));
    LKSI_TRY(read_number(map, "digits", 1024, "digits: 2", &p.digits));
    LKSI_TRY(read_number(map, "speed", 32768, "speed: 3", &p.speed));
    LKSI_TRY(lksi_map_u64(map, "seed", "seed: 1", &p.seed));
    LKSI_TRY(read_limit(map, &limit));
    p.images = images;
    p.count = limit > 0 && limit < (size_t)count ? limit : (size_t)count;
    LKSI_TRY(opened(lks_dataset_open_moving_digits(out, &p), map));
fail:
    free(images);
    return st;
}

static lks_status open_data(const struct lks_model *m, const struct lksi_node *map,
                            lks_dataset **out)
{
    static const char *const formats[] = {"idx", "text", "moving_digits"};
    static lks_status (*const open[])(const struct lks_model *, const struct lksi_node *,
                                      lks_dataset **) = {open_idx, open_text, open_moving};
    const struct lksi_node *node;
    size_t format;
    lks_status st;
    LKSI_TRY(lksi_node_is(map, LKSI_NODE_MAPPING, IDX_EXAMPLE));
    LKSI_TRY(lksi_node_need(map, "format", IDX_EXAMPLE, &node));
    LKSI_TRY(lksi_node_choice(node, formats, LKSI_COUNT(formats), &format));
    st = open[format](m, map, out);
fail:
    return st;
}

/* "40 x 40 x 1" */
static void shape_text(const lks_dataset *d, struct lksi_str *s)
{
    int64_t dims[4];
    int rank;
    lks_dataset_dims(d, &rank, dims);
    for (int i = 0; i < rank; i++)
        lksi_str_add(s, "%s%lld", i > 0 ? " x " : "", (long long)dims[i]);
}

static lks_status check_alike(const struct lks_model *m, const struct lksi_node *test)
{
    struct lksi_str a = {0}, b = {0};
    lks_status st = LKS_OK;
    shape_text(m->train, &a);
    shape_text(m->test, &b);
    if (a.failed || b.failed)
        st = LKS_E_MEMORY;
    else if (strcmp(a.text, b.text) != 0)
        st = lksi_node_fail(test, "its samples are %s, those of `train` %s; they must be alike",
                            b.text, a.text);
    else if ((lks_dataset_vocabulary(m->train) != NULL) !=
             (lks_dataset_vocabulary(m->test) != NULL))
        st = lksi_node_fail(test, "`train` is a text; write the same `format` for both");
    free(a.text);
    free(b.text);
    return st;
}

lks_status lksi_model_data(struct lks_model *m, const struct lksi_node *root)
{
    static const char *const keys[] = {"train", "test", "normalize"};
    static const char *const parts[] = {"mean", "std"};
    const struct lksi_node *data, *node;
    lks_status st;
    LKSI_TRY(lksi_node_need(root, "data", "data: {" IDX_EXAMPLE "}", &data));
    LKSI_TRY(lksi_node_is(data, LKSI_NODE_MAPPING, "data: {" IDX_EXAMPLE "}"));
    LKSI_TRY(lksi_node_check_keys(data, keys, LKSI_COUNT(keys)));
    m->normalize.std = 1.0;
    node = lksi_node_get(data, "normalize");
    m->has_normalize = node != NULL;
    if (node != NULL) {
        LKSI_TRY(lksi_node_is(node, LKSI_NODE_MAPPING, "normalize: {mean: 0.5, std: 0.25}"));
        LKSI_TRY(lksi_node_check_keys(node, parts, LKSI_COUNT(parts)));
        LKSI_TRY(lksi_map_float(node, "mean", -DBL_MAX, DBL_MAX, "mean: 0.5", &m->normalize.mean));
        LKSI_TRY(
            lksi_map_float(node, "std", LKSI_POSITIVE, DBL_MAX, "std: 0.25", &m->normalize.std));
    }
    LKSI_TRY(lksi_node_need(data, "train", IDX_EXAMPLE, &node));
    LKSI_TRY(open_data(m, node, &m->train));
    node = lksi_node_get(data, "test");
    if (node == NULL)
        return LKS_OK;
    LKSI_TRY(open_data(m, node, &m->test));
    LKSI_TRY(check_alike(m, node));
fail:
    return st;
}

lks_status lksi_model_input(struct lks_model *m)
{
    int64_t dims[4];
    int rank;
    lks_dataset_dims(m->train, &rank, dims);
    return lks_dataset_vocabulary(m->train) != NULL
               ? lks_graph_input_tokens(m->graph, "tokens", rank, dims, &m->input)
               : lks_graph_input(m->graph, "image", rank, dims, &m->input);
}

/* The bits of the numbers: a text of digits may lose some. */
void lksi_model_canon_head(const struct lks_model *m, struct lksi_str *canon)
{
    const uint8_t *vocabulary = lks_dataset_vocabulary(m->train);
    int64_t dims[4];
    uint64_t bits[2];
    int rank;
    lks_dataset_dims(m->train, &rank, dims);
    memcpy(&bits[0], &m->normalize.mean, sizeof bits[0]);
    memcpy(&bits[1], &m->normalize.std, sizeof bits[1]);
    lksi_str_add(canon, "lockstep-model-1\ninput");
    for (int i = 0; i < rank; i++)
        lksi_str_add(canon, " %lld", (long long)dims[i]);
    if (vocabulary == NULL) {
        lksi_str_add(canon, "\nnormalize %016llx %016llx\n", (unsigned long long)bits[0],
                     (unsigned long long)bits[1]);
        return;
    }
    lksi_str_add(canon, "\nvocabulary ");
    for (uint32_t i = 0; i < lks_dataset_classes(m->train); i++)
        lksi_str_add(canon, "%02x", vocabulary[i]);
    lksi_str_add(canon, "\n");
}

lks_status lksi_model_check_classes(const struct lks_model *m, const struct lksi_node *root,
                                    const lks_dataset *data, const char *which)
{
    const struct lksi_node *set = lksi_node_get(lksi_node_get(root, "data"), which);
    uint32_t classes = lks_dataset_classes(data);
    const char *name = lksi_model_logits_name(m);
    int line = m->logits_layer > 0 ? m->layer[m->logits_layer - 1].line : set->line;
    const size_t head = 8; /* of an IDX file of labels, in bytes */
    const char *labels;
    size_t at = 0;
    if (classes <= m->classes)
        return LKS_OK;
    if (lks_dataset_vocabulary(data) != NULL)
        return lksi_node_fail(set, "layer `%s` of line %d has %u outputs, but the text has %u "
                                   "different bytes; write `out: %u`",
                              name, line, m->classes, classes, classes);
    labels = lksi_node_get(set, "labels")->text;
    while ((uint32_t)lks_dataset_label(data, at) < m->classes)
        at++;
    return lksi_fail(LKS_E_INPUT,
                     "%s:%d: layer `%s` has %u outputs, but the labels in `%s` (line %d) go up to "
                     "%u, first %d of sample %zu at byte %zu (unpacked); write `out: %u`, or check "
                     "the labels",
                     set->file, line, name, m->classes, labels, set->line, classes - 1,
                     lks_dataset_label(data, at), at, head + at, classes);
}
