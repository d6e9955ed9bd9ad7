/*
 * model_layers.c - the layers of a model file. A layer is a word (`- relu`) or a word with keys
 * (`- conv2d: {out: 32, kernel: 5}`); one table entry a kind says which keys it takes and builds
 * it. Every kind also takes `name` and `from`.
 */
#include <stdlib.h>
#include <string.h>

#include "model/model.h"

enum {
    MAX_OUT = 1 << 24, /* channels or features */
    MAX_SIZE = 1 << 15 /* kernel, stride, pad, dilation */
};

struct kind {
    const char *word, *prefix; /* "conv2d", default names "conv1", "conv2", ... */
    const char *example;
    bool bare; /* may stand without keys */
    const char *keys[10];
    /* Reads the keys of `map` (NULL: none given), adds the operator behind `x`, appends its keys.
     */
    lks_status (*build)(lks_graph *g, const struct lksi_node *map, const char *name, lks_value x,
                        lks_value *y, struct lksi_str *canon);
};

static lks_status build_conv2d(lks_graph *g, const struct lksi_node *map, const char *name,
                               lks_value x, lks_value *y, struct lksi_str *canon)
{
    const struct lksi_node *node;
    int64_t out, kernel, stride = 1, pad = 0, dilation = 1, groups = 1;
    bool bias = true;
    lks_status st;
    LKSI_TRY(lksi_node_need(map, "out", "out: 32", &node));
    LKSI_TRY(lksi_node_int(node, 1, MAX_OUT, "out: 32", &out));
    LKSI_TRY(lksi_node_need(map, "kernel", "kernel: 5", &node));
    LKSI_TRY(lksi_node_int(node, 1, MAX_SIZE, "kernel: 5", &kernel));
    LKSI_TRY(lksi_map_int(map, "stride", 1, MAX_SIZE, "stride: 1", &stride));
    LKSI_TRY(lksi_map_int(map, "pad", 0, MAX_SIZE, "pad: 2", &pad));
    LKSI_TRY(lksi_map_int(map, "dilation", 1, MAX_SIZE, "dilation: 1", &dilation));
    LKSI_TRY(lksi_map_int(map, "groups", 1, MAX_OUT, "groups: 1", &groups));
    LKSI_TRY(lksi_map_bool(map, "bias", "bias: false", &bias));
    LKSI_TRY(
        lks_graph_conv2d(g, x,
                         lks_conv2d_params(.name = name, .out = (int32_t)out,
                                           .kernel = (int32_t)kernel, .stride = (int32_t)stride,
                                           .pad = (int32_t)pad, .dilation = (int32_t)dilation,
                                           .groups = (int32_t)groups, .no_bias = !bias),
                         y));
    lksi_str_add(canon, " name=%s out=%d kernel=%d stride=%d pad=%d dilation=%d groups=%d bias=%d",
                 name, (int)out, (int)kernel, (int)stride, (int)pad, (int)dilation, (int)groups,
                 bias);
fail:
    return st;
}

static lks_status build_dense(lks_graph *g, const struct lksi_node *map, const char *name,
                              lks_value x, lks_value *y, struct lksi_str *canon)
{
    const struct lksi_node *node;
    int64_t out;
    bool bias = true;
    lks_status st;
    LKSI_TRY(lksi_node_need(map, "out", "out: 10", &node));
    LKSI_TRY(lksi_node_int(node, 1, MAX_OUT, "out: 10", &out));
    LKSI_TRY(lksi_map_bool(map, "bias", "bias: false", &bias));
    LKSI_TRY(lks_graph_dense(
        g, x, lks_dense_params(.name = name, .out = (int32_t)out, .no_bias = !bias), y));
    lksi_str_add(canon, " name=%s out=%d bias=%d", name, (int)out, bias);
fail:
    return st;
}

static lks_status build_relu(lks_graph *g, const struct lksi_node *map, const char *name,
                             lks_value x, lks_value *y, struct lksi_str *canon)
{
    (void)map, (void)name, (void)canon;
    return lks_graph_relu(g, x, y);
}

static lks_status build_maxpool(lks_graph *g, const struct lksi_node *map, const char *name,
                                lks_value x, lks_value *y, struct lksi_str *canon)
{
    const struct lksi_node *node;
    int64_t kernel, stride, pad = 0;
    lks_status st;
    (void)name;
    LKSI_TRY(lksi_node_need(map, "kernel", "kernel: 2", &node));
    LKSI_TRY(lksi_node_int(node, 1, MAX_SIZE, "kernel: 2", &kernel));
    stride = kernel;
    LKSI_TRY(lksi_map_int(map, "stride", 1, MAX_SIZE, "stride: 2", &stride));
    LKSI_TRY(lksi_map_int(map, "pad", 0, MAX_SIZE, "pad: 0", &pad));
    LKSI_TRY(lks_graph_maxpool(
        g, x,
        lks_pool_params(.kernel = (int32_t)kernel, .stride = (int32_t)stride, .pad = (int32_t)pad),
        y));
    lksi_str_add(canon, " kernel=%d stride=%d pad=%d", (int)kernel, (int)stride, (int)pad);
fail:
    return st;
}

static lks_status build_batch_norm(lks_graph *g, const struct lksi_node *map, const char *name,
                                   lks_value x, lks_value *y, struct lksi_str *canon)
{
    double eps = 1e-5, momentum = 0.1;
    uint32_t bits[2];
    lks_status st = LKS_OK;
    if (map != NULL)
        LKSI_TRY(lksi_map_float(map, "eps", LKSI_POSITIVE, 1.0, "eps: 1e-5", &eps));
    if (map != NULL)
        LKSI_TRY(lksi_map_float(map, "momentum", LKSI_POSITIVE, 1.0, "momentum: 0.1", &momentum));
    LKSI_TRY(lks_graph_batch_norm(
        g, x, lks_batch_norm_params(.name = name, .eps = eps, .momentum = momentum), y));
    /* As bit patterns: exact and the same in every locale. */
    memcpy(&bits[0], &(float){(float)eps}, sizeof bits[0]);
    memcpy(&bits[1], &(float){(float)momentum}, sizeof bits[1]);
    lksi_str_add(canon, " name=%s eps=%08x momentum=%08x", name, (unsigned)bits[0],
                 (unsigned)bits[1]);
fail:
    return st;
}

static lks_status read_eps(const struct lksi_node *map, double *eps, struct lksi_str *canon)
{
    uint32_t bits;
    lks_status st = LKS_OK;
    *eps = 1e-5;
    if (map != NULL)
        st = lksi_map_float(map, "eps", LKSI_POSITIVE, 1.0, "eps: 1e-5", eps);
    memcpy(&bits, &(float){(float)*eps}, sizeof bits);
    lksi_str_add(canon, " eps=%08x", (unsigned)bits);
    return st;
}

static lks_status build_group_norm(lks_graph *g, const struct lksi_node *map, const char *name,
                                   lks_value x, lks_value *y, struct lksi_str *canon)
{
    const struct lksi_node *node;
    int64_t groups;
    double eps;
    lks_status st;
    LKSI_TRY(lksi_node_need(map, "groups", "groups: 8", &node));
    LKSI_TRY(lksi_node_int(node, 1, MAX_OUT, "groups: 8", &groups));
    lksi_str_add(canon, " name=%s groups=%d", name, (int)groups);
    LKSI_TRY(read_eps(map, &eps, canon));
    st = lks_graph_group_norm(
        g, x, lks_group_norm_params(.name = name, .groups = (int32_t)groups, .eps = eps), y);
fail:
    return st;
}

static lks_status build_layer_norm(lks_graph *g, const struct lksi_node *map, const char *name,
                                   lks_value x, lks_value *y, struct lksi_str *canon)
{
    double eps;
    lksi_str_add(canon, " name=%s", name);
    lks_status st = read_eps(map, &eps, canon);
    if (st != LKS_OK)
        return st;
    return lks_graph_layer_norm(g, x, lks_norm_params(.name = name, .eps = eps), y);
}

static lks_status build_instance_norm(lks_graph *g, const struct lksi_node *map, const char *name,
                                      lks_value x, lks_value *y, struct lksi_str *canon)
{
    double eps;
    lksi_str_add(canon, " name=%s", name);
    lks_status st = read_eps(map, &eps, canon);
    if (st != LKS_OK)
        return st;
    return lks_graph_instance_norm(g, x, lks_norm_params(.name = name, .eps = eps), y);
}

static lks_status build_flatten(lks_graph *g, const struct lksi_node *map, const char *name,
                                lks_value x, lks_value *y, struct lksi_str *canon)
{
    (void)map, (void)name, (void)canon;
    return lks_graph_flatten(g, x, y);
}

static const struct kind kinds[] = {
    {"conv2d",
     "conv",
     "conv2d: {out: 32, kernel: 5, pad: 2}",
     false,
     {"out", "kernel", "stride", "pad", "dilation", "groups", "bias", "name", "from"},
     build_conv2d},
    {"dense", "dense", "dense: {out: 10}", false, {"out", "bias", "name", "from"}, build_dense},
    {"relu", "relu", "relu", true, {"name", "from"}, build_relu},
    {"maxpool",
     "maxpool",
     "maxpool: {kernel: 2}",
     false,
     {"kernel", "stride", "pad", "name", "from"},
     build_maxpool},
    {"batch_norm",
     "batch_norm",
     "batch_norm: {momentum: 0.1}",
     true,
     {"eps", "momentum", "name", "from"},
     build_batch_norm},
    {"group_norm",
     "group_norm",
     "group_norm: {groups: 8}",
     false,
     {"groups", "eps", "name", "from"},
     build_group_norm},
    {"layer_norm", "layer_norm", "layer_norm", true, {"eps", "name", "from"}, build_layer_norm},
    {"instance_norm",
     "instance_norm",
     "instance_norm",
     true,
     {"eps", "name", "from"},
     build_instance_norm},
    {"flatten", "flatten", "flatten", true, {"name", "from"}, build_flatten},
};

/* The word of a layer and its keys; *map is NULL if it has none. */
static lks_status read_kind(const struct lksi_node *item, const struct kind **kind,
                            const struct lksi_node **map)
{
    const char *words[LKSI_COUNT(kinds)];
    size_t at = 0, n_keys = 0;
    lks_status st;
    for (size_t i = 0; i < LKSI_COUNT(kinds); i++)
        words[i] = kinds[i].word;
    if (item->kind == LKSI_NODE_SCALAR) {
        LKSI_TRY(lksi_node_choice(item, words, LKSI_COUNT(words), &at));
        *kind = &kinds[at];
        *map = NULL;
        if (!kinds[at].bare)
            return lksi_node_fail(item, "`%s` needs keys; write e.g. `%s`", kinds[at].word,
                                  kinds[at].example);
        return LKS_OK;
    }
    if (item->kind != LKSI_NODE_MAPPING || item->count != 1) {
        char found[96];
        if (item->kind == LKSI_NODE_MAPPING && item->count > 1)
            return lksi_node_fail(item,
                                  "a layer is one word with its keys in braces, but here "
                                  "stand %zu keys side by side (`%s`, `%s`); write e.g. `%s`",
                                  item->count, item->items[0]->key, item->items[1]->key,
                                  kinds[0].example);
        return lksi_node_fail(item, "expected a layer, found %s; write e.g. `%s`",
                              lksi_node_describe(item, found, sizeof found), kinds[0].example);
    }
    LKSI_TRY(lksi_node_check_keys(item, words, LKSI_COUNT(words)));
    while (strcmp(words[at], item->items[0]->key) != 0)
        at++;
    LKSI_TRY(lksi_node_is(item->items[0], LKSI_NODE_MAPPING, kinds[at].example));
    while (n_keys < LKSI_COUNT(kinds[0].keys) && kinds[at].keys[n_keys] != NULL)
        n_keys++;
    LKSI_TRY(lksi_node_check_keys(item->items[0], kinds[at].keys, n_keys));
    *kind = &kinds[at];
    *map = item->items[0];
fail:
    return st;
}

static bool is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t length = strlen(text);
    return length >= 1 && length <= 64 && strchr(letters, text[0]) != NULL &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
               length;
}

/* The given name, or "conv2" for the second convolution. */
static lks_status read_name(const struct lks_model *m, const struct lksi_node *item,
                            const struct kind *kind, const struct lksi_node *map, char **out)
{
    const struct lksi_node *node = map != NULL ? lksi_node_get(map, "name") : NULL;
    struct lksi_str name = {0};
    const char *given = NULL;
    size_t number = 1;
    lks_status st;
    if (node != NULL) {
        LKSI_TRY(lksi_node_string(node, "name: first", &given));
        if (!is_name(given) || strcmp(given, "input") == 0)
            return lksi_node_expected(node,
                                      "up to 64 letters, digits, `_` and `-`, a letter first "
                                      "(and not `input`, which is the image)",
                                      "name: first");
        lksi_str_add(&name, "%s", given);
    } else {
        for (size_t i = 0; i < m->n_layer; i++)
            number += strcmp(m->layer[i].type, kind->word) == 0;
        lksi_str_add(&name, "%s%zu", kind->prefix, number);
    }
    if (name.failed) {
        free(name.text);
        return LKS_E_MEMORY;
    }
    for (size_t i = 0; i < m->n_layer; i++)
        if (strcmp(m->layer[i].name, name.text) == 0) {
            st = lksi_node_fail(node != NULL ? node : item,
                                "the layer name `%s` is taken by the "
                                "layer of line %d; give this one another `name`",
                                name.text, m->layer[i].line);
            free(name.text);
            return st;
        }
    *out = name.text;
    st = LKS_OK;
fail:
    return st;
}

/* Which earlier layer it takes: the one before, or the one named by `from`. */
static lks_status read_from(const struct lks_model *m, const struct lksi_node *map, size_t *out)
{
    const struct lksi_node *node = map != NULL ? lksi_node_get(map, "from") : NULL;
    const char *name, **names = NULL, *near;
    lks_status st;
    *out = m->n_layer;
    if (node == NULL)
        return LKS_OK;
    if (node->kind == LKSI_NODE_SEQUENCE)
        return lksi_node_fail(node,
                              "takes one name: no layer of this version joins several; "
                              "write e.g. `from: %s`",
                              m->n_layer > 0 ? m->layer[m->n_layer - 1].name : "input");
    LKSI_TRY(lksi_node_string(node, "from: conv1", &name));
    if (strcmp(name, "input") == 0) {
        *out = 0;
        return LKS_OK;
    }
    for (size_t i = 0; i < m->n_layer; i++)
        if (strcmp(m->layer[i].name, name) == 0) {
            *out = i + 1;
            return LKS_OK;
        }
    names = lksi_alloc(m->n_layer + 1, sizeof *names);
    if (names == NULL)
        return LKS_E_MEMORY;
    for (size_t i = 0; i < m->n_layer; i++)
        names[i] = m->layer[i].name;
    names[m->n_layer] = "input";
    near = lksi_nearest_word(name, names, m->n_layer + 1);
    st = lksi_node_fail(node,
                        "no earlier layer is named `%s`%s%s%s; unnamed layers are conv1, "
                        "relu1, ... by kind and order",
                        name, near != NULL ? "; did you mean `" : "", near != NULL ? near : "",
                        near != NULL ? "`?" : "");
    free(names);
fail:
    return st;
}

static int64_t count_of(int rank, const int64_t *dims)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    return n;
}

/* Shape, parameters and operations, for the summary. */
static lks_status measure(const struct lks_model *m, struct lksi_layer *l, int64_t scalars_before,
                          bool bias)
{
    lks_status st = lks_graph_shape(m->graph, l->value, &l->rank, l->dims);
    if (st != LKS_OK)
        return st;
    l->parameters = lks_graph_scalar_count(m->graph) - scalars_before;
    /* Every weight meets every output position once; a bias is an addition, not counted. */
    int64_t channels = l->dims[l->rank - 1];
    int64_t weights = l->parameters - (bias ? channels : 0);
    l->multiply_adds = l->parameters > 0 ? weights * (count_of(l->rank, l->dims) / channels) : 0;
    return LKS_OK;
}

static lks_status add_layer(struct lks_model *m, const struct lksi_node *item,
                            struct lksi_str *canon)
{
    const struct kind *kind = NULL;
    const struct lksi_node *map = NULL, *where;
    struct lksi_layer l = {.line = item->line};
    int64_t scalars = lks_graph_scalar_count(m->graph);
    bool bias = true;
    lks_status st;
    LKSI_TRY(read_kind(item, &kind, &map));
    where = map != NULL ? map : item;
    l.type = kind->word;
    LKSI_TRY(read_from(m, map, &l.from));
    LKSI_TRY(read_name(m, item, kind, map, &l.name));
    lksi_str_add(canon, "%s from=%zu", kind->word, l.from);
    st = kind->build(m->graph, map, l.name, l.from == 0 ? m->input : m->layer[l.from - 1].value,
                     &l.value, canon);
    if (st == LKS_E_ARGUMENT) /* the graph's own complaint, about shapes */
        st = lksi_fail_prefix(LKS_E_INPUT, "%s:%d: layer `%s`: ", where->file, where->line, l.name);
    if (st != LKS_OK)
        goto fail;
    lksi_str_add(canon, "\n");
    if (map != NULL)
        LKSI_TRY(lksi_map_bool(map, "bias", "bias: false", &bias));
    LKSI_TRY(measure(m, &l, scalars, bias));
    if (!lksi_grow(&m->layer, &m->cap_layer, m->n_layer + 1, sizeof *m->layer)) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    m->layer[m->n_layer++] = l;
    return LKS_OK;
fail:
    free(l.name);
    return st;
}

lks_status lksi_model_layers(struct lks_model *m, const struct lksi_node *layers,
                             struct lksi_str *canon)
{
    lks_status st;
    LKSI_TRY(lksi_node_is(layers, LKSI_NODE_SEQUENCE, "- dense: {out: 10}"));
    if (layers->count == 0)
        return lksi_node_fail(layers, "no layer; write e.g. `- dense: {out: 10}`");
    for (size_t i = 0; i < layers->count; i++)
        LKSI_TRY(add_layer(m, layers->items[i], canon));
fail:
    return st;
}
