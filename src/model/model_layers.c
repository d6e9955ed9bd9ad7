/*
 * model_layers.c - the layers of a model file. A layer is a word (`- relu`) or a word with keys
 * (`- conv2d: {out: 32, kernel: 5}`). Every kind takes `name` and `from`, those with parameters
 * `share` too; the rest is in the tables of kind.h. `- block: {use: NAME}` adds the layers of a
 * block (blocks.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "graph/graph.h"
#include "model/blocks.h"
#include "model/kind.h"
#include "model/scope.h"

/* All words, `block` the last; the caller frees the array. */
static lks_status all_words(const char ***words, size_t *count)
{
    size_t n = 0;
    while (lksi_kind_at(n) != NULL)
        n++;
    *words = lksi_alloc(n + 1, sizeof **words);
    if (*words == NULL)
        return LKS_E_MEMORY;
    for (size_t i = 0; i < n; i++)
        (*words)[i] = lksi_kind_at(i)->word;
    (*words)[n] = "block";
    *count = n + 1;
    return LKS_OK;
}

/* `word` is none of them. There are too many for a message. */
static lks_status fail_word(const struct lksi_node *item, int line, const char *word,
                            const char *const *words, size_t n)
{
    const char *near = lksi_nearest_word(word, words, n);
    if (near != NULL)
        return lksi_fail(LKS_E_INPUT, "%s:%d: there is no layer `%s`; did you mean `%s`? "
                                      "docs/models.md lists all %zu",
                         item->file, line, word, near, n);
    return lksi_fail(LKS_E_INPUT, "%s:%d: there is no layer `%s`; docs/models.md lists all %zu, "
                                  "such as `conv2d`, `dense`, `maxpool`, `relu` and `batch_norm`",
                     item->file, line, word, n);
}

static size_t find_word(const char *word, const char *const *words, size_t n)
{
    size_t at = 0;
    while (at < n && strcmp(words[at], word) != 0)
        at++;
    return at;
}

static size_t input_keys(const struct lksi_kind *kind, const char **keys)
{
    size_t n = 0;
    while (n < LKSI_COUNT(kind->inputs) && kind->inputs[n] != NULL) {
        keys[n] = kind->inputs[n];
        n++;
    }
    return n;
}

static lks_status check_keys(const struct lksi_node *map, const struct lksi_kind *kind)
{
    const char *keys[LKSI_COUNT(kind->keys) + LKSI_COUNT(kind->inputs) + 3];
    size_t n = 0;
    while (n < LKSI_COUNT(kind->keys) && kind->keys[n] != NULL) {
        keys[n] = kind->keys[n];
        n++;
    }
    keys[n++] = "name";
    if (kind->inputs[0] != NULL)
        n += input_keys(kind, keys + n);
    else if (kind->max_in > 0)
        keys[n++] = "from";
    if (kind->shares)
        keys[n++] = "share";
    return lksi_node_check_keys(map, keys, n);
}

/* The word of a layer and its keys; *map is NULL if it has none. */
static lks_status read_kind(const struct lksi_node *item, const struct lksi_kind **kind,
                            const struct lksi_node **map)
{
    static const char example[] = "conv2d: {out: 32, kernel: 5}";
    const char **words = NULL;
    size_t at = 0, n = 0;
    char found[96];
    lks_status st;
    LKSI_TRY(all_words(&words, &n));
    if (item->kind == LKSI_NODE_SCALAR && !lksi_node_is_null(item)) {
        at = find_word(item->text, words, n);
        if (at == n) {
            st = fail_word(item, item->line, item->text, words, n);
            goto fail;
        }
        *kind = lksi_kind_at(at);
        *map = NULL;
        if (*kind == NULL)
            st = lksi_node_fail(item, "`block` needs keys; write e.g. `block: {use: basic}`");
        else if (!(*kind)->bare)
            st = lksi_node_fail(item, "`%s` needs keys; write e.g. `%s`", (*kind)->word,
                                (*kind)->example);
    } else if (item->kind != LKSI_NODE_MAPPING || item->count == 0) {
        st = lksi_node_fail(item, "expected a layer, found %s; write e.g. `%s`",
                            lksi_node_describe(item, found, sizeof found), example);
    } else if (item->count > 1) {
        st = lksi_node_fail(item,
                            "a layer is one word with its keys in braces, but here "
                            "stand %zu keys side by side (`%s`, `%s`); write e.g. `%s`",
                            item->count, item->items[0]->key, item->items[1]->key, example);
    } else {
        at = find_word(item->items[0]->key, words, n);
        if (at == n) {
            st = fail_word(item, item->key_lines[0], item->items[0]->key, words, n);
            goto fail;
        }
        *kind = lksi_kind_at(at);
        *map = item->items[0];
        LKSI_TRY(lksi_node_is(*map, LKSI_NODE_MAPPING, (*kind)->example));
        LKSI_TRY(check_keys(*map, *kind));
    }
fail:
    free(words);
    return st;
}

static size_t count_kind(const struct lks_model *m, const struct lksi_scope *s, const char *word)
{
    size_t n = 0;
    for (size_t i = s->first; i < m->n_layer; i++)
        n += m->layer[i].depth == s->depth && strcmp(m->layer[i].type, word) == 0;
    return n;
}

/* What a layer takes that names each value by a key of its own. */
static lks_status read_inputs(const struct lks_model *m, const struct lksi_scope *s,
                              const struct lksi_kind *kind, const struct lksi_node *map,
                              size_t *from, int *n_from)
{
    const char *keys[LKSI_COUNT(kind->inputs)];
    size_t n = input_keys(kind, keys);
    const struct lksi_node *node;
    lks_status st = LKS_OK;
    for (size_t i = 0; i < n; i++) {
        LKSI_TRY(lksi_node_need(map, keys[i], kind->example, &node));
        LKSI_TRY(lksi_find_layer(m, s, node, &from[i]));
    }
    *n_from = (int)n;
fail:
    return st;
}

/* What the layer takes: the one before, or those named by `from`. */
static lks_status read_from(const struct lks_model *m, const struct lksi_scope *s,
                            const struct lksi_node *where, const struct lksi_kind *kind,
                            const struct lksi_node *map, size_t *from, int *n_from)
{
    const struct lksi_node *node = map != NULL ? lksi_node_get(map, "from") : NULL;
    size_t n = 0;
    lks_status st;
    *n_from = 0;
    if (kind->max_in == 0)
        return LKS_OK;
    if (kind->inputs[0] != NULL)
        return read_inputs(m, s, kind, map, from, n_from);
    if (node == NULL) {
        from[n++] = m->n_layer == s->first ? s->in : m->n_layer;
    } else if (node->kind == LKSI_NODE_SEQUENCE) {
        if (node->count == 0)
            return lksi_node_fail(node, "names no layer, 1 to %d expected", LKSI_MODEL_MAX_FROM);
        for (size_t i = 0; i < node->count; i++)
            LKSI_TRY(lksi_find_layers(m, s, node->items[i], LKSI_MODEL_MAX_FROM, from, &n));
    } else {
        LKSI_TRY(lksi_find_layers(m, s, node, LKSI_MODEL_MAX_FROM, from, &n));
    }
    if (n > (size_t)kind->max_in)
        return lksi_node_fail(node, "`%s` takes one value; write e.g. `from: %s`", kind->word,
                              m->n_layer > 0 ? m->layer[m->n_layer - 1].name : "input");
    if (n < (size_t)kind->min_in)
        return lksi_node_fail(node != NULL ? node : where,
                              "`%s` takes %d values or more; write e.g. `%s`", kind->word,
                              kind->min_in, kind->example);
    *n_from = (int)n;
    return LKS_OK;
fail:
    return st;
}

static const char *owner_of(const struct lksi_layer *l)
{
    return l->owner != NULL ? l->owner : l->name;
}

/* In a use of a block that shares: the same layer of the other use. */
static lks_status read_counterpart(const struct lks_model *m, const struct lksi_scope *s,
                                   const struct lksi_kind *kind, const struct lksi_node *item,
                                   const char *name, const char **share)
{
    struct lksi_str other = {0};
    size_t at;
    lks_status st = LKS_OK;
    if (s->share == NULL || *share != NULL || !kind->shares)
        return LKS_OK;
    lksi_str_add(&other, "%s%s", s->share, name + strlen(s->prefix));
    if (other.failed)
        return LKS_E_MEMORY;
    at = lksi_model_layer_called(m, other.text);
    if (at == 0 || strcmp(m->layer[at - 1].type, kind->word) != 0)
        st = lksi_node_fail(item, "no `%s` layer is named `%s`, whose parameters `%s` should take",
                            kind->word, other.text, name);
    else
        *share = owner_of(&m->layer[at - 1]);
    free(other.text);
    return st;
}

/* The layer whose parameters it takes, which must be of the same kind. */
static lks_status read_share(const struct lks_model *m, const struct lksi_scope *s,
                             const struct lksi_kind *kind, const struct lksi_node *map,
                             const char **share)
{
    const struct lksi_node *node = map != NULL ? lksi_node_get(map, "share") : NULL;
    size_t at;
    lks_status st;
    *share = NULL;
    if (node == NULL)
        return LKS_OK;
    st = lksi_find_layer(m, s, node, &at);
    if (st != LKS_OK)
        return st;
    if (at == 0 || strcmp(m->layer[at - 1].type, kind->word) != 0)
        return lksi_node_fail(node, "`%s` is no `%s` layer, whose parameters could be shared",
                              node->text, kind->word);
    /* The first owner's name, if that layer shares itself. */
    *share = owner_of(&m->layer[at - 1]);
    return LKS_OK;
}

/* "; it takes `conv1` [8,8,4] and `pool2` [4,4,4]", where several values must fit each other. */
static void add_values(const struct lks_model *m, const size_t *from, int n, struct lksi_str *s)
{
    char shape[96];
    for (int i = 0; i < n && n > 1 && n <= 8; i++) {
        const struct lksi_layer *l = from[i] > 0 ? &m->layer[from[i] - 1] : NULL;
        struct lksi_desc d = m->graph->value[l != NULL ? l->value : m->input].desc;
        d.rank--;
        memmove(d.dim, d.dim + 1, (size_t)d.rank * sizeof d.dim[0]);
        lksi_str_add(s, "%s`%s` %s", i == 0 ? "; it takes " : i + 1 < n ? ", " : " and ",
                     l != NULL ? l->name : "input", lksi_desc_text(&d, shape));
    }
}

/* The graph's own complaint, about shapes, with the layer's place in the file and its word. The
 * text may begin with the name and with operators that the user never wrote. */
static lks_status blame_layer(const struct lks_model *m, const struct lksi_node *where,
                              const struct lksi_layer *l, const size_t *from, int n)
{
    struct lksi_str s = {0};
    lksi_str_add(&s, "%s:%d: layer `%s`: %s: %s", where->file, where->line, l->name, l->type,
                 lksi_behind_names(lks_error_message()));
    add_values(m, from, n, &s);
    lks_status st = s.failed ? LKS_E_MEMORY : lksi_fail(LKS_E_INPUT, "%s", s.text);
    free(s.text);
    return st;
}

/* Shape, parameters and operations, for the summary. */
static lks_status measure(const struct lks_model *m, struct lksi_layer *l, int64_t scalars_before,
                          size_t nodes_before)
{
    const struct lks_graph *g = m->graph;
    double flops = 0;
    lks_status st = lks_graph_shape(g, l->value, &l->rank, l->dims);
    if (st != LKS_OK)
        return st;
    l->parameters = lks_graph_scalar_count(g) - scalars_before;
    for (size_t i = nodes_before; i < g->n_node; i++)
        if (g->node[i].call.op->product)
            flops += lksi_op_flops(&g->node[i].call);
    l->multiply_adds = (int64_t)(flops / 2.0);
    return LKS_OK;
}

static void canon_from(struct lksi_str *canon, const char *word, const size_t *from, int n_from)
{
    lksi_str_add(canon, "%s from=", word);
    for (int i = 0; i < n_from; i++)
        lksi_str_add(canon, "%s%zu", i > 0 ? "," : "", from[i]);
}

/* "input", or "conv1, relu3". */
static lks_status from_text(const struct lks_model *m, const size_t *from, int n_from, char **out)
{
    struct lksi_str text = {0};
    lksi_str_add(&text, "%s", "");
    for (int i = 0; i < n_from; i++)
        lksi_str_add(&text, "%s%s", i > 0 ? ", " : "",
                     from[i] == 0 ? "input" : m->layer[from[i] - 1].name);
    *out = text.text;
    return text.failed ? LKS_E_MEMORY : LKS_OK;
}

lks_status lksi_add_layer(struct lks_model *m, const struct lksi_scope *s,
                            const struct lksi_node *item, struct lksi_str *canon)
{
    const struct lksi_kind *kind = NULL;
    const struct lksi_node *map = NULL, *where;
    struct lksi_layer l = {.line = item->line, .depth = s->depth};
    lks_value x[LKSI_MODEL_MAX_FROM];
    size_t from[LKSI_MODEL_MAX_FROM];
    struct lksi_layer_in in = {.graph = m->graph, .item = item, .x = x, .canon = canon};
    int64_t scalars = lks_graph_scalar_count(m->graph);
    size_t nodes = m->graph->n_node;
    lks_status st;
    LKSI_TRY(read_kind(item, &kind, &map));
    where = map != NULL ? map : item;
    l.type = kind->word;
    LKSI_TRY(read_from(m, s, where, kind, map, from, &in.n_x));
    LKSI_TRY(read_share(m, s, kind, map, &in.share));
    LKSI_TRY(lksi_read_layer_name(m, s, item, map, kind->prefix, count_kind(m, s, kind->word), &l.name));
    LKSI_TRY(read_counterpart(m, s, kind, item, l.name, &in.share));
    LKSI_TRY(from_text(m, from, in.n_x, &l.from));
    if (in.share != NULL && (l.owner = lksi_strdup(in.share)) == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    for (int i = 0; i < in.n_x; i++)
        x[i] = from[i] == 0 ? m->input : m->layer[from[i] - 1].value;
    in.map = map;
    in.name = l.name;
    canon_from(canon, kind->word, from, in.n_x);
    if (in.share != NULL)
        lksi_str_add(canon, " share=%s", in.share);
    st = kind->build(&in, &l.value);
    if (st == LKS_E_ARGUMENT)
        st = blame_layer(m, where, &l, from, in.n_x);
    if (st != LKS_OK)
        goto fail;
    lksi_str_add(canon, "\n");
    LKSI_TRY(measure(m, &l, scalars, nodes));
    if (s->share != NULL && l.parameters > 0) {
        st = lksi_node_fail(item, "`%s` has parameters that cannot be shared, so the block cannot "
                                  "take `share`",
                            kind->word);
        goto fail;
    }
    if (m->n_layer >= LKSI_MODEL_MAX_LAYERS) {
        st = lksi_node_fail(item, "more than %d layers", LKSI_MODEL_MAX_LAYERS);
        goto fail;
    }
    if (!lksi_grow(&m->layer, &m->cap_layer, m->n_layer + 1, sizeof *m->layer)) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    m->layer[m->n_layer++] = l;
    return LKS_OK;
fail:
    free(l.name);
    free(l.from);
    free(l.owner);
    return st;
}

lks_status lksi_add_layers(struct lks_model *m, const struct lksi_scope *s,
                           const struct lksi_node *layers, struct lksi_str *canon)
{
    lks_status st = LKS_OK;
    for (size_t i = 0; i < layers->count && st == LKS_OK; i++) {
        const struct lksi_node *item = layers->items[i];
        bool block = item->kind == LKSI_NODE_MAPPING && item->count == 1 &&
                     strcmp(item->items[0]->key, "block") == 0;
        st = block ? lksi_add_block(m, s, item, canon) : lksi_add_layer(m, s, item, canon);
    }
    return st;
}

lks_status lksi_model_layers(struct lks_model *m, const struct lksi_node *layers,
                             struct lksi_str *canon)
{
    size_t uses = 0;
    const struct lksi_scope file = {.prefix = "", .uses = &uses};
    lks_status st;
    LKSI_TRY(lksi_node_is(layers, LKSI_NODE_SEQUENCE, "- dense: {out: 10}"));
    if (layers->count == 0)
        return lksi_node_fail(layers, "no layer; write e.g. `- dense: {out: 10}`");
    return lksi_add_layers(m, &file, layers, canon);
fail:
    return st;
}
