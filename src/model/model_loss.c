/*
 * model_loss.c - the losses of a model file: `loss: softmax_cross_entropy`, `loss: {mse: {...}}`, a
 * list of such terms, or `losses: {NAME: ...}`; and whether every layer reaches the loss it should.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/loss.h>

#include "base/words.h"
#include "graph/graph.h"
#include "model/kind.h"
#include "model/scope.h"

#define EXAMPLE        "loss: {mse: {of: dense2, target: input}}"
#define LOSSES_EXAMPLE "losses: {d_loss: [{mean: {of: score}}], g_loss: {mean: {of: judged}}}"

/* The first are those of lks_loss_kind. */
static const char *const words[] = {"mse", "l1", "huber", "smooth_l1", "bce_with_logits",
                                    "softmax_cross_entropy", "mean"};
enum { WORD_SOFTMAX = LKS_LOSS_BCE + 1, WORD_MEAN, WORDS, MAX_WEIGHTS = 96 };

/* A term being read. */
struct term {
    struct lks_model *m;
    const struct lksi_node *map; /* its keys */
    size_t word;
    size_t of; /* layer, from 1; 0: the input */
    lks_value value; /* of it */
    struct lksi_str *canon;
};

/* A layer, the last layer of a use of a block, or `input`. */
static lks_status find_value(const struct lks_model *m, const struct lksi_node *node, size_t *at,
                             lks_value *out)
{
    const struct lksi_scope file = {.prefix = ""};
    lks_status st = lksi_find_layer(m, &file, node, at);
    if (st == LKS_OK)
        *out = *at == 0 ? m->input : m->layer[*at - 1].value;
    return st;
}

static void shape_text(const lks_graph *g, lks_value v, char *text, size_t room)
{
    int rank = 0;
    int64_t dims[4] = {0};
    size_t used = 0;
    text[0] = '\0';
    lks_graph_shape(g, v, &rank, dims);
    for (int i = 0; i < rank && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%lld", i > 0 ? " x " : "",
                                 (long long)dims[i]);
}

static bool is_number(const struct lksi_node *node)
{
    return node->kind == LKSI_NODE_SCALAR && !node->quoted && node->text[0] != '\0' &&
           strspn(node->text, "+-.0123456789eE") == strlen(node->text);
}

static lks_status read_distance(const struct term *t, lks_value *out)
{
    static const char example[] = "target: input";
    const lks_loss_kind kind = (lks_loss_kind)t->word;
    const struct lksi_node *node;
    char have[96], want[96];
    double beta = 1, number;
    lks_value target = LKSI_NONE;
    size_t at = 0;
    lks_status st;
    LKSI_TRY(lksi_map_float(t->map, "beta", LKSI_POSITIVE, FLT_MAX, "beta: 1.0", &beta));
    LKSI_TRY(lksi_node_need(t->map, "target", example, &node));
    if (kind == LKS_LOSS_HUBER || kind == LKS_LOSS_SMOOTH_L1)
        lksi_canon_float(t->canon, "beta", beta);
    if (is_number(node)) {
        LKSI_TRY(lksi_node_float(node, -(double)FLT_MAX, (double)FLT_MAX, example, &number));
        lksi_canon_float(t->canon, "number", number);
        return lks_graph_loss_to_number(t->m->graph, kind, t->value, number, beta, out);
    }
    LKSI_TRY(find_value(t->m, node, &at, &target));
    shape_text(t->m->graph, target, have, sizeof have);
    shape_text(t->m->graph, t->value, want, sizeof want);
    if (strcmp(have, want) != 0)
        return lksi_node_fail(node, "`%s` is %s, but what is compared with it is %s; bring one of "
                                    "them into the other's shape, e.g. by the layer `reshape`",
                              node->text, have, want);
    lksi_str_add(t->canon, " target=%zu", at);
    return lks_graph_loss_to(t->m->graph, kind, t->value, target, beta, out);
fail:
    return st;
}

static lks_status read_weights(const struct lksi_node *node, float *weights, int32_t *n)
{
    static const char example[] = "weights: [1.0, 2.5]";
    lks_status st = lksi_node_is(node, LKSI_NODE_SEQUENCE, example);
    if (st == LKS_OK && (node->count == 0 || node->count > MAX_WEIGHTS))
        st = lksi_node_fail(node, "%zu weights; one a class is expected, for at most %d classes",
                            node->count, MAX_WEIGHTS);
    for (size_t i = 0; st == LKS_OK && i < node->count; i++) {
        double w = 0;
        st = lksi_node_float(node->items[i], 0, (double)FLT_MAX, example, &w);
        weights[i] = (float)w;
    }
    *n = (int32_t)node->count;
    return st;
}

static lks_status read_softmax(const struct term *t, lks_value *out)
{
    const struct lksi_node *map = t->map, *node = lksi_node_get(map, "weights");
    struct lks_softmax_loss_params p = {.ignores = lksi_node_get(map, "ignore") != NULL};
    float weights[MAX_WEIGHTS];
    int64_t ignored = 0;
    uint64_t bits;
    lks_status st;
    LKSI_TRY(lksi_map_float(map, "smoothing", 0, 0.999999, "smoothing: 0.1", &p.smoothing));
    LKSI_TRY(lksi_map_int(map, "ignore", 0, INT32_MAX, "ignore: 0", &ignored));
    p.ignored = (int32_t)ignored;
    if (node != NULL) {
        LKSI_TRY(read_weights(node, weights, &p.n_weights));
        p.weights = weights;
    }
    memcpy(&bits, &p.smoothing, sizeof bits);
    lksi_str_add(t->canon, " smoothing=%016llx ignore=%d,%d", (unsigned long long)bits, p.ignores,
                 (int)ignored);
    for (int32_t i = 0; i < p.n_weights; i++)
        lksi_canon_float(t->canon, "w", (double)weights[i]);
    st = lks_graph_softmax_loss(t->m->graph, t->value, &p, out);
    if (st == LKS_OK && t->m->graph->logits == t->value)
        t->m->logits_layer = t->of;
fail:
    return st;
}

static lks_status check_keys(const struct term *t)
{
    static const char *const distance[] = {"of", "weight", "target", "beta"};
    static const char *const softmax[] = {"of", "weight", "smoothing", "ignore", "weights"};
    bool beta = t->word == LKS_LOSS_HUBER || t->word == LKS_LOSS_SMOOTH_L1;
    lks_status st = lksi_node_is(t->map, LKSI_NODE_MAPPING,
                                 t->word == WORD_MEAN      ? "mean: {of: score}"
                                 : t->word == WORD_SOFTMAX ? "softmax_cross_entropy: {smoothing: 0.1}"
                                                           : "mse: {of: dense2, target: input}");
    if (st != LKS_OK)
        return st;
    return t->word == WORD_SOFTMAX ? lksi_node_check_keys(t->map, softmax, LKSI_COUNT(softmax))
           : t->word == WORD_MEAN  ? lksi_node_check_keys(t->map, distance, 2)
                                   : lksi_node_check_keys(t->map, distance, beta ? 4 : 3);
}

/* The graph's own complaint with the place in the file; the readers' has it already. */
static lks_status blame(lks_status st, const struct lksi_node *where)
{
    return st != LKS_E_ARGUMENT
               ? st
               : lksi_node_fail(where, "%s", lksi_behind_names(lks_error_message()));
}

static lks_status add_term(struct term *t, const char *name)
{
    const struct lksi_node *of;
    double weight = 1;
    lks_value loss = LKSI_NONE;
    lks_status st;
    LKSI_TRY(check_keys(t));
    of = lksi_node_get(t->map, "of");
    if (of != NULL)
        LKSI_TRY(find_value(t->m, of, &t->of, &t->value));
    LKSI_TRY(lksi_map_float(t->map, "weight", -(double)FLT_MAX, (double)FLT_MAX, "weight: 0.5",
                            &weight));
    lksi_str_add(t->canon, "loss %s %s of=%zu", name, words[t->word], t->of);
    lksi_canon_float(t->canon, "weight", weight);
    st = t->word == WORD_SOFTMAX ? read_softmax(t, &loss)
         : t->word == WORD_MEAN  ? lks_graph_loss_mean(t->m->graph, t->value, &loss)
                                 : read_distance(t, &loss);
    if (st == LKS_OK)
        st = lks_graph_add_loss(t->m->graph, name, loss, weight);
    lksi_str_add(t->canon, "\n");
fail:
    return blame(st, t->map);
}

/* `mse: {...}`, one word with its keys. */
static lks_status read_term(struct lks_model *m, const char *name, const struct lksi_node *item,
                            struct lksi_str *canon)
{
    struct term t = {.m = m, .of = m->n_layer, .value = m->layer[m->n_layer - 1].value,
                     .canon = canon};
    lks_status st;
    if (item->kind == LKSI_NODE_SCALAR) {
        LKSI_TRY(lksi_node_choice(item, words, WORDS, &t.word));
        return lksi_node_fail(item, "`%s` needs keys here; write e.g. `%s`", item->text,
                              t.word == WORD_SOFTMAX ? "softmax_cross_entropy: {smoothing: 0.1}"
                              : t.word == WORD_MEAN  ? "mean: {of: score}"
                                                     : "mse: {of: dense2, target: input}");
    }
    LKSI_TRY(lksi_node_is(item, LKSI_NODE_MAPPING, EXAMPLE));
    LKSI_TRY(lksi_node_check_keys(item, words, WORDS));
    if (item->count != 1)
        return lksi_node_fail(item, "a term of a loss is one word with its keys, but here stand "
                                    "%zu; write e.g. `" EXAMPLE "`, and several terms as a list",
                              item->count);
    t.map = item->items[0];
    while (strcmp(words[t.word], t.map->key) != 0)
        t.word++;
    return add_term(&t, name);
fail:
    return st;
}

static lks_status read_terms(struct lks_model *m, const char *name, const struct lksi_node *node,
                             struct lksi_str *canon)
{
    lks_status st = LKS_OK;
    if (node->kind != LKSI_NODE_SEQUENCE)
        return read_term(m, name, node, canon);
    if (node->count == 0)
        return lksi_node_fail(node, "a loss needs a term; write e.g. `" EXAMPLE "`");
    for (size_t i = 0; i < node->count && st == LKS_OK; i++)
        st = read_term(m, name, node->items[i], canon);
    return st;
}

/* A loss is a column of steps.csv and metrics.csv, and a key of the log, too. */
static lks_status check_name(const struct lksi_node *node)
{
    static const char *const taken[] = {"loss",  "step",  "samples",  "hits",
                                        "epoch", "steps", "accuracy", "event"};
    for (size_t i = 0; i < LKSI_COUNT(taken); i++)
        if (strcmp(node->key, taken[i]) == 0)
            return lksi_node_fail(node, "a loss among several cannot be called `%s`; write e.g. "
                                        "`" LOSSES_EXAMPLE "`", node->key);
    return LKS_OK;
}

/* `loss: softmax_cross_entropy`: classes are the outputs of the last layer, at each position if the
 * data have a label for each. */
static lks_status read_classification(struct lks_model *m, const struct lksi_node *node,
                                      struct lksi_str *canon)
{
    const struct lksi_layer *last = &m->layer[m->n_layer - 1];
    bool positions = lks_dataset_positions(m->train) > 1;
    lks_value loss = LKSI_NONE;
    size_t word;
    lks_status st = lksi_node_choice(node, words, WORDS, &word);
    if (st == LKS_OK && word != WORD_SOFTMAX)
        return read_term(m, "loss", node, canon);
    if (st == LKS_OK && lks_dataset_positions(m->train) == 1 &&
        (last->rank != 1 || last->dims[0] > INT32_MAX))
        st = lksi_node_fail(node,
                            "the last layer, `%s` of line %d, gives an image; end the layers "
                            "with e.g. `- dense: {out: %u}`",
                            last->name, last->line, lks_dataset_classes(m->train));
    if (st != LKS_OK)
        return st;
    m->logits_layer = m->n_layer;
    lksi_str_add(canon, "loss softmax_cross_entropy\n");
    if (!positions) {
        st = lks_graph_softmax_cross_entropy(m->graph, last->value);
    } else {
        st = lks_graph_softmax_loss(m->graph, last->value, NULL, &loss);
        if (st == LKS_OK)
            st = lks_graph_add_loss(m->graph, "loss", loss, 1.0);
    }
    return st == LKS_OK ? st : lksi_fail_prefix(st, "%s:%d: ", node->file, node->line);
}

static lks_status check_labels(const struct lks_model *m, const struct lksi_node *root,
                               const lks_dataset *data, const char *which)
{
    const struct lksi_node *set = lksi_node_get(lksi_node_get(root, "data"), which);
    size_t want = 1;
    int rank = 0;
    int64_t dims[4];
    if (data == NULL)
        return LKS_OK;
    if (lks_dataset_positions(data) == 0)
        return lksi_node_fail(set, "it has no labels, which the loss needs; add e.g. `labels: "
                                   "labels.gz`");
    lks_graph_shape(m->graph, m->graph->logits, &rank, dims);
    for (int i = 0; i < rank - 1; i++)
        want *= (size_t)dims[i];
    if (want != lks_dataset_positions(data))
        return lksi_node_fail(set, "it has %zu labels a sample, but the loss of layer `%s` needs "
                                   "%zu, one a position",
                              lks_dataset_positions(data), lksi_model_logits_name(m), want);
    return lksi_model_check_classes(m, root, data, which);
}

lks_status lksi_model_loss(struct lks_model *m, const struct lksi_node *root,
                           struct lksi_str *canon)
{
    const struct lksi_node *one = lksi_node_get(root, "loss"), *many = lksi_node_get(root, "losses");
    lks_status st = LKS_OK;
    if (one != NULL && many != NULL)
        return lksi_node_fail(many, "`loss` is there too; leave one of them out");
    if (many == NULL) {
        LKSI_TRY(lksi_node_need(root, "loss", "loss: softmax_cross_entropy", &one));
        st = one->kind == LKSI_NODE_SCALAR ? read_classification(m, one, canon)
                                           : read_terms(m, "loss", one, canon);
    } else {
        LKSI_TRY(lksi_node_is(many, LKSI_NODE_MAPPING, LOSSES_EXAMPLE));
        if (many->count == 0)
            return lksi_node_fail(many, "no loss; write e.g. `" LOSSES_EXAMPLE "`");
        for (size_t i = 0; i < many->count && st == LKS_OK; i++) {
            LKSI_TRY(check_name(many->items[i]));
            st = read_terms(m, many->items[i]->key, many->items[i], canon);
        }
    }
    if (st != LKS_OK)
        return st;
    if (m->graph->label == LKSI_NONE)
        return lks_dataset_positions(m->train) <= 1
                   ? LKS_OK
                   : lksi_node_fail(many != NULL ? many : one,
                                    "the data have %zu labels a sample, but no loss reads labels; "
                                    "add a `softmax_cross_entropy`",
                                    lks_dataset_positions(m->train));
    int rank = 0;
    int64_t dims[4];
    LKSI_TRY(lks_graph_shape(m->graph, m->graph->logits, &rank, dims));
    m->classes = (uint32_t)dims[rank - 1];
    LKSI_TRY(check_labels(m, root, m->train, "train"));
    LKSI_TRY(check_labels(m, root, m->test, "test"));
fail:
    return st;
}

const char *lksi_model_logits_name(const struct lks_model *m)
{
    return m->logits_layer > 0 ? m->layer[m->logits_layer - 1].name : "input";
}

/* ---- which layer reaches which loss ---- */

/* "layer `conv1`" at its line; `loss` is its name behind "the loss", or "". */
static lks_status unreached(const struct lks_model *m, const struct lksi_node *where,
                            const char *param, const char *loss)
{
    char named[64] = "";
    if (loss[0] != '\0')
        snprintf(named, sizeof named, " `%s`", loss);
    for (size_t i = 0; i < m->n_layer; i++) { /* parameters are called LAYER.weight */
        size_t length = strlen(m->layer[i].name);
        if (strncmp(param, m->layer[i].name, length) == 0 && param[length] == '.')
            return lksi_fail(LKS_E_INPUT,
                             "%s:%d: layer `%s` does not reach the loss%s; leave it out, or let a "
                             "later layer take it (`from`)",
                             where->file, m->layer[i].line, m->layer[i].name, named);
    }
    return lksi_fail(LKS_E_INPUT, "%s:%d: parameter `%s` does not reach the loss%s", where->file,
                     where->line, param, named);
}

lks_status lksi_model_check_reach(const struct lks_model *m, const struct lksi_node *root)
{
    const struct lks_graph *g = m->graph;
    const struct lksi_node *where = lksi_node_get(root, "layers");
    lksi_value losses[LKSI_MAX_LOSSES];
    bool *reached = lksi_alloc(g->n_value, sizeof *reached);
    lks_status st = LKS_OK;
    if (reached == NULL)
        return LKS_E_MEMORY;
    for (size_t i = 0; i < g->n_loss; i++)
        losses[i] = g->losses[i].value;
    lksi_graph_reach(g, g->n_loss, losses, false, reached);
    for (size_t i = 0; i < g->n_param && st == LKS_OK; i++)
        if (!reached[g->param[i].value])
            st = unreached(m, where, g->param[i].name, "");
    free(reached);
    return st;
}

lks_status lksi_model_check_trained(const struct lks_model *m, const struct lksi_node *root,
                                    size_t optimizer, const char *loss, const bool *own)
{
    const struct lks_graph *g = m->graph;
    const struct lksi_node *list = lksi_node_get(lksi_node_get(root, "train"), "optimizers");
    const struct lksi_node *where = lksi_node_get(root, "layers");
    const char *names[LKSI_MAX_LOSSES], *near;
    size_t at = 0;
    bool *reached;
    lks_status st = LKS_OK;
    for (size_t i = 0; i < g->n_loss; i++)
        names[i] = g->losses[i].name;
    while (loss != NULL && at < g->n_loss && strcmp(names[at], loss) != 0)
        at++;
    if (at == g->n_loss) {
        near = lksi_nearest_word(loss, names, g->n_loss);
        return lksi_node_fail(lksi_node_get(list->items[optimizer], "loss"),
                              "there is no loss `%s`; %s is `%s`", loss,
                              near != NULL ? "the nearest" : "the first",
                              near != NULL ? near : names[0]);
    }
    reached = lksi_alloc(g->n_value, sizeof *reached);
    if (reached == NULL)
        return LKS_E_MEMORY;
    lksi_graph_reach(g, 1, &g->losses[at].value, true, reached);
    for (size_t i = 0; i < g->n_param && st == LKS_OK; i++)
        if (own[i] && !reached[g->param[i].value])
            st = unreached(m, where, g->param[i].name, g->n_loss > 1 ? names[at] : "");
    free(reached);
    return st;
}
