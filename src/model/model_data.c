/*
 * model_data.c - the section `data` of a model file: opens the data sets it names.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "model/model.h"

#define IDX_EXAMPLE "train: {format: idx, images: images.gz, labels: labels.gz}"

/* A path of the file, seen from the file's own folder. */
static lks_status read_path(const struct lksi_node *map, const char *key, char **out)
{
    const struct lksi_node *node;
    const char *text;
    char *dir = NULL;
    lks_status st;
    LKSI_TRY(lksi_node_need(map, key, IDX_EXAMPLE, &node));
    LKSI_TRY(lksi_node_string(node, IDX_EXAMPLE, &text));
    dir = lksi_path_dirname(node->file);
    if (dir != NULL)
        *out = strcmp(dir, ".") == 0 && strchr(node->file, '/') == NULL ? lksi_strdup(text)
                                                                        : lksi_path_join(dir, text);
    st = dir == NULL || *out == NULL ? LKS_E_MEMORY : LKS_OK;
fail:
    free(dir);
    return st;
}

static lks_status open_data(const struct lksi_node *map, const struct lks_normalize *normalize,
                            lks_dataset **out)
{
    static const char *const keys[] = {"format", "images", "labels"}, *const formats[] = {"idx"};
    const struct lksi_node *node;
    char *images = NULL, *labels = NULL;
    size_t format;
    lks_status st;
    LKSI_TRY(lksi_node_is(map, LKSI_NODE_MAPPING, IDX_EXAMPLE));
    LKSI_TRY(lksi_node_check_keys(map, keys, LKSI_COUNT(keys)));
    LKSI_TRY(lksi_node_need(map, "format", IDX_EXAMPLE, &node));
    LKSI_TRY(lksi_node_choice(node, formats, LKSI_COUNT(formats), &format));
    LKSI_TRY(read_path(map, "images", &images));
    LKSI_TRY(read_path(map, "labels", &labels));
    st = lks_dataset_open_idx(out, images, labels, normalize);
    if (st == LKS_E_IO)
        lksi_fail(st, "%s; `images` and `labels` are looked for in the folder of the model file",
                  lks_error_message());
    if (st != LKS_OK)
        lksi_fail_prefix(st, "%s:%d: key `%s`: ", map->file, map->line, map->key);
fail:
    free(images);
    free(labels);
    return st;
}

lks_status lksi_model_data(struct lks_model *m, const struct lksi_node *root)
{
    static const char *const keys[] = {"train", "test", "normalize"};
    static const char *const parts[] = {"mean", "std"};
    const struct lksi_node *data, *node;
    uint32_t a[3], b[3];
    lks_status st;
    LKSI_TRY(lksi_node_need(root, "data", "data: {" IDX_EXAMPLE "}", &data));
    LKSI_TRY(lksi_node_is(data, LKSI_NODE_MAPPING, "data: {" IDX_EXAMPLE "}"));
    LKSI_TRY(lksi_node_check_keys(data, keys, LKSI_COUNT(keys)));
    m->normalize.std = 1.0;
    node = lksi_node_get(data, "normalize");
    if (node != NULL) {
        LKSI_TRY(lksi_node_is(node, LKSI_NODE_MAPPING, "normalize: {mean: 0.5, std: 0.25}"));
        LKSI_TRY(lksi_node_check_keys(node, parts, LKSI_COUNT(parts)));
        LKSI_TRY(lksi_map_float(node, "mean", -DBL_MAX, DBL_MAX, "mean: 0.5", &m->normalize.mean));
        LKSI_TRY(
            lksi_map_float(node, "std", LKSI_POSITIVE, DBL_MAX, "std: 0.25", &m->normalize.std));
    }
    LKSI_TRY(lksi_node_need(data, "train", IDX_EXAMPLE, &node));
    LKSI_TRY(open_data(node, &m->normalize, &m->train));
    node = lksi_node_get(data, "test");
    if (node == NULL)
        return LKS_OK;
    LKSI_TRY(open_data(node, &m->normalize, &m->test));
    lks_dataset_shape(m->train, a);
    lks_dataset_shape(m->test, b);
    if (memcmp(a, b, sizeof a) != 0)
        st = lksi_node_fail(node,
                            "its images are %u x %u x %u, those of `train` %u x %u x %u "
                            "(height, width, channels); they must be alike",
                            b[0], b[1], b[2], a[0], a[1], a[2]);
fail:
    return st;
}

/* The bits of the numbers: a text of digits may lose some. */
void lksi_model_canon_head(const struct lks_model *m, struct lksi_str *canon)
{
    uint32_t hwc[3];
    uint64_t bits[2];
    lks_dataset_shape(m->train, hwc);
    memcpy(&bits[0], &m->normalize.mean, sizeof bits[0]);
    memcpy(&bits[1], &m->normalize.std, sizeof bits[1]);
    lksi_str_add(canon, "lockstep-model-1\ninput %u %u %u\nnormalize %016llx %016llx\n", hwc[0],
                 hwc[1], hwc[2], (unsigned long long)bits[0], (unsigned long long)bits[1]);
}

lks_status lksi_model_check_classes(const struct lks_model *m, const struct lksi_node *root,
                                    const lks_dataset *data, const char *which)
{
    const struct lksi_node *set = lksi_node_get(lksi_node_get(root, "data"), which);
    uint32_t classes = lks_dataset_classes(data);
    const size_t head = 8; /* of an IDX file of labels, in bytes */
    const char *labels;
    size_t at = 0;
    if (classes <= m->classes)
        return LKS_OK;
    labels = lksi_node_get(set, "labels")->text;
    while ((uint32_t)lks_dataset_label(data, at) < m->classes)
        at++;
    return lksi_fail(LKS_E_INPUT,
                     "%s:%d: layer `%s` has %u outputs, but the labels in `%s` (line %d) go up to "
                     "%u, first %d of sample %zu at byte %zu (unpacked); write `out: %u`, or check "
                     "the labels",
                     set->file, m->layer[m->n_layer - 1].line, m->layer[m->n_layer - 1].name,
                     m->classes, labels, set->line, classes - 1, lks_dataset_label(data, at), at,
                     head + at, classes);
}
