/*
 * model_train.c - the section `train` of a model file: batches, optimisers, schedules, groups.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "model/model.h"
#include "model/optimizer.h"

#define MAX_OPTIMIZERS 8
#define MAX_GROUPS     16
#define MAX_KEYS       20
#define EXAMPLE        "optimizer: {sgd: {lr: 0.05, momentum: 0.9}}"
#define GROUP_EXAMPLE  "groups: [{params: [\"*.bias\"], weight_decay: 0}]"

/* What m->params points to. */
struct lksi_model_update {
    struct lks_optimizer optimizer[MAX_OPTIMIZERS];
    struct lks_param_group group[MAX_GROUPS];
    char **text; /* all names and patterns */
    size_t n_text, cap_text;
    const char **list[MAX_OPTIMIZERS + MAX_GROUPS + 1]; /* the arrays of patterns */
    size_t n_list;
};

void lksi_model_update_free(struct lksi_model_update *u)
{
    if (u == NULL)
        return;
    for (size_t i = 0; i < u->n_text; i++)
        free(u->text[i]);
    for (size_t i = 0; i < u->n_list; i++)
        free(u->list[i]);
    free(u->text);
    free(u);
}

/* A copy of a scalar that lives as long as the model. */
static lks_status keep_text(struct lksi_model_update *u, const struct lksi_node *node,
                            const char *example, const char **out)
{
    const char *text;
    lks_status st = lksi_node_string(node, example, &text);
    if (st != LKS_OK)
        return st;
    if (!lksi_grow(&u->text, &u->cap_text, u->n_text + 1, sizeof *u->text) ||
        (u->text[u->n_text] = lksi_strdup(text)) == NULL)
        return LKS_E_MEMORY;
    *out = u->text[u->n_text++];
    return LKS_OK;
}

static lks_status read_patterns(struct lksi_model_update *u, const struct lksi_node *node,
                                const char *example, const char *const **out, size_t *n)
{
    const char **list;
    lks_status st = lksi_node_is(node, LKSI_NODE_SEQUENCE, example);
    if (st == LKS_OK && node->count == 0)
        st = lksi_node_expected(node, "at least one pattern", example);
    if (st != LKS_OK)
        return st;
    list = lksi_alloc(node->count, sizeof *list);
    if (list == NULL)
        return LKS_E_MEMORY;
    u->list[u->n_list++] = list;
    for (size_t i = 0; i < node->count && st == LKS_OK; i++)
        st = keep_text(u, node->items[i], example, &list[i]);
    *out = list;
    *n = node->count;
    return st;
}

/* ---- schedules ---- */

static lks_status read_one_cycle(const struct lksi_node *node, struct lks_lr_schedule *s)
{
    static const char *const keys[] = {"rise", "start", "end"};
    lks_status st;
    LKSI_TRY(lksi_node_check_keys(node, keys, LKSI_COUNT(keys)));
    LKSI_TRY(lksi_map_float(node, "rise", LKSI_POSITIVE, 0.999999, "rise: 0.3", &s->rise));
    LKSI_TRY(lksi_map_float(node, "start", 1, 1e9, "start: 25", &s->start));
    LKSI_TRY(lksi_map_float(node, "end", 1, 1e9, "end: 10000", &s->end));
fail:
    return st;
}

static lks_status read_step(const struct lksi_node *node, struct lks_lr_schedule *s)
{
    static const char *const keys[] = {"steps", "epochs", "factor"};
    const struct lksi_node *steps = lksi_node_get(node, "steps");
    const struct lksi_node *epochs = lksi_node_get(node, "epochs");
    int64_t every = 0;
    lks_status st;
    LKSI_TRY(lksi_node_check_keys(node, keys, LKSI_COUNT(keys)));
    if ((steps == NULL) == (epochs == NULL)) {
        st = lksi_node_fail(node, "expected either `steps` or `epochs` between two changes; write "
                                  "e.g. `step: {epochs: 30, factor: 0.1}`");
        goto fail;
    }
    LKSI_TRY(lksi_node_int(steps != NULL ? steps : epochs, 1, INT32_MAX, "epochs: 30", &every));
    s->every = (uint64_t)every;
    s->every_epochs = epochs != NULL;
    LKSI_TRY(lksi_map_float(node, "factor", LKSI_POSITIVE, 1, "factor: 0.1", &s->factor));
fail:
    return st;
}

/* The settings of a schedule, `cosine: {min: 0.001}`; nothing behind the colon is fine too. */
static lks_status read_settings(const struct lksi_node *node, struct lks_lr_schedule *s)
{
    static const char *const keys[] = {"min"};
    size_t n = s->kind == LKS_SCHEDULE_LINEAR || s->kind == LKS_SCHEDULE_COSINE ? 1 : 0;
    lks_status st;
    if (lksi_node_is_null(node) && s->kind != LKS_SCHEDULE_STEP)
        return LKS_OK;
    LKSI_TRY(lksi_node_is(node, LKSI_NODE_MAPPING,
                          s->kind == LKS_SCHEDULE_STEP ? "step: {epochs: 30, factor: 0.1}"
                                                       : "cosine: {min: 0.0001}"));
    if (s->kind == LKS_SCHEDULE_STEP)
        return read_step(node, s);
    if (s->kind == LKS_SCHEDULE_ONE_CYCLE)
        return read_one_cycle(node, s);
    LKSI_TRY(lksi_node_check_keys(node, keys, n));
    LKSI_TRY(lksi_map_float(node, "min", 0, 1e6, "min: 0.0001", &s->min));
fail:
    return st;
}

static lks_status read_schedule(const struct lksi_node *node, struct lks_lr_schedule *s)
{
    static const char *const words[] = {"constant", "linear", "step",
                                        "cosine",   "one_cycle", "warmup"};
    size_t word, found = 0;
    int64_t warmup = 0;
    lks_status st;
    if (node->kind == LKSI_NODE_SCALAR) {
        st = lksi_node_choice(node, words, LKS_SCHEDULE_ONE_CYCLE + 1, &word);
        if (st == LKS_OK && word == LKS_SCHEDULE_STEP)
            st = lksi_node_fail(node, "`step` needs settings; write e.g. "
                                      "`schedule: {step: {epochs: 30, factor: 0.1}}`");
        if (st == LKS_OK)
            s->kind = (lks_schedule)word;
        return st;
    }
    LKSI_TRY(lksi_node_is(node, LKSI_NODE_MAPPING, "schedule: {cosine: {min: 0.0001}, warmup: 100}"));
    LKSI_TRY(lksi_node_check_keys(node, words, LKSI_COUNT(words)));
    LKSI_TRY(lksi_map_int(node, "warmup", 0, INT32_MAX, "warmup: 100", &warmup));
    s->warmup = (uint64_t)warmup;
    for (word = 0; word <= LKS_SCHEDULE_ONE_CYCLE; word++) {
        const struct lksi_node *settings = lksi_node_get(node, words[word]);
        if (settings == NULL)
            continue;
        if (found++ > 0)
            return lksi_node_fail(node, "expected one schedule, found `%s` and `%s`",
                                  lks_schedule_name(s->kind), words[word]);
        s->kind = (lks_schedule)word;
        LKSI_TRY(read_settings(settings, s));
    }
fail:
    return st;
}

/* ---- optimisers ---- */

static lks_status read_number(const struct lksi_node *map, const struct lksi_optimizer_field *f,
                              struct lks_optimizer *o)
{
    const struct lksi_node *node = lksi_node_get(map, f->name);
    char example[64];
    if (node == NULL)
        return LKS_OK;
    snprintf(example, sizeof example, "%s: %g", f->name,
             f->range == LKSI_ABOVE_0 ? (f->offset == offsetof(struct lks_optimizer, lr) ? 0.05 : 1e-8)
                                      : f->range == LKSI_BELOW_1 ? 0.9 : 0.0005);
    double *out = lksi_optimizer_number(o, f);
    lks_status st = lksi_node_float(node, f->range == LKSI_ABOVE_0 ? LKSI_POSITIVE : 0,
                                    f->range == LKSI_BELOW_1 ? DBL_MAX : 1e6, example, out);
    if (st == LKS_OK && f->range == LKSI_BELOW_1 && *out >= 1.0)
        st = lksi_node_expected(node, "a number from 0 to below 1", example);
    return st;
}

/* `adam: {lr: 0.001}`: the mapping behind the name. */
static lks_status read_numbers(const struct lksi_node *map, struct lks_optimizer *o)
{
    const char *keys[MAX_KEYS];
    const struct lksi_node *node;
    size_t n = 0;
    lks_status st;
    for (const struct lksi_optimizer_field *f = lksi_optimizer_fields; f->name != NULL; f++)
        if (lksi_optimizer_reads(o, f))
            keys[n++] = f->name;
    keys[n++] = "schedule";
    if (o->kind == LKS_OPTIMIZER_SGD)
        keys[n++] = "nesterov";
    if (o->kind == LKS_OPTIMIZER_RMSPROP)
        keys[n++] = "centered";
    LKSI_TRY(lksi_node_check_keys(map, keys, n));
    if (o->kind == LKS_OPTIMIZER_SGD)
        LKSI_TRY(lksi_node_need(map, "lr", "lr: 0.05", &node));
    for (const struct lksi_optimizer_field *f = lksi_optimizer_fields; f->name != NULL; f++)
        if (lksi_optimizer_reads(o, f))
            LKSI_TRY(read_number(map, f, o));
    LKSI_TRY(lksi_map_bool(map, "nesterov", "nesterov: true", &o->nesterov));
    LKSI_TRY(lksi_map_bool(map, "centered", "centered: true", &o->centered));
    node = lksi_node_get(map, "schedule");
    if (node != NULL)
        LKSI_TRY(read_schedule(node, &o->schedule));
    st = lksi_optimizer_check(o);
    if (st != LKS_OK)
        st = lksi_node_fail(map, "%s", lks_error_message());
fail:
    return st;
}

/* `node` is a name, or holds one optimiser and, in a list, which loss and parameters are its own. */
static lks_status read_optimizer(struct lksi_model_update *u, const struct lksi_node *node,
                                 bool in_list, struct lks_optimizer *o)
{
    const char *words[LKSI_OPTIMIZERS + 3];
    const struct lksi_node *settings = NULL, *extra;
    int64_t every = 1;
    size_t word, kind = 0;
    lks_status st;
    for (word = 0; word < LKSI_OPTIMIZERS; word++)
        words[word] = lks_optimizer_name((lks_optimizer_kind)word);
    if (node->kind == LKSI_NODE_SCALAR && !in_list) {
        LKSI_TRY(lksi_node_choice(node, words, LKSI_OPTIMIZERS, &word));
        if (word == LKS_OPTIMIZER_SGD)
            return lksi_node_fail(node, "sgd needs a learning rate; write e.g. `" EXAMPLE "`");
        *o = lks_optimizer_default((lks_optimizer_kind)word);
        return LKS_OK;
    }
    words[word++] = "loss";
    words[word++] = "params";
    words[word++] = "every";
    LKSI_TRY(lksi_node_is(node, LKSI_NODE_MAPPING, EXAMPLE));
    LKSI_TRY(lksi_node_check_keys(node, words, in_list ? word : LKSI_OPTIMIZERS));
    for (word = 0; word < LKSI_OPTIMIZERS; word++) {
        const struct lksi_node *found = lksi_node_get(node, words[word]);
        if (found != NULL && settings != NULL)
            return lksi_node_fail(node, "expected one optimiser, found `%s` and `%s`",
                                  settings->key, found->key);
        if (found != NULL) {
            settings = found;
            kind = word;
        }
    }
    if (settings == NULL)
        return lksi_node_fail(node, "an optimiser is missing; write e.g. `" EXAMPLE "`");
    *o = lks_optimizer_default((lks_optimizer_kind)kind);
    if (!lksi_node_is_null(settings) || kind == LKS_OPTIMIZER_SGD) {
        LKSI_TRY(lksi_node_is(settings, LKSI_NODE_MAPPING, EXAMPLE));
        LKSI_TRY(read_numbers(settings, o));
    }
    if (!in_list)
        return LKS_OK;
    LKSI_TRY(lksi_map_int(node, "every", 1, INT32_MAX, "every: 5", &every));
    o->every = (uint32_t)every;
    extra = lksi_node_get(node, "loss");
    if (extra != NULL)
        LKSI_TRY(keep_text(u, extra, "loss: generator_loss", &o->loss));
    extra = lksi_node_get(node, "params");
    if (extra != NULL)
        LKSI_TRY(read_patterns(u, extra, "params: [\"generator*\"]", &o->params, &o->n_params));
fail:
    return st;
}

/* The older field `sgd` says all of it. */
static bool is_plain_sgd(const struct lks_optimizer *o)
{
    struct lks_lr_schedule s = {.kind = o->schedule.kind};
    return o->kind == LKS_OPTIMIZER_SGD && o->clip_norm == 0 && o->clip_value == 0 &&
           o->schedule.warmup == 0 && o->schedule.min == 0 && o->schedule.rise == 0 &&
           o->schedule.start == 0 && o->schedule.end == 0 && s.kind != LKS_SCHEDULE_STEP;
}

static lks_status read_optimizers(struct lks_model *m, const struct lksi_node *train)
{
    const struct lksi_node *one = lksi_node_get(train, "optimizer");
    const struct lksi_node *list = lksi_node_get(train, "optimizers");
    struct lksi_model_update *u = m->update;
    struct lks_optimizer *o = u->optimizer;
    lks_status st = LKS_OK;
    if (one != NULL && list != NULL)
        return lksi_node_fail(list, "`optimizer` is there too; leave one of them out");
    if (list == NULL) {
        LKSI_TRY(lksi_node_need(train, "optimizer", EXAMPLE, &one));
        LKSI_TRY(read_optimizer(u, one, false, o));
        if (is_plain_sgd(o)) {
            m->params.sgd = (struct lks_sgd){o->lr, o->momentum, o->weight_decay,
                                             o->schedule.kind, o->nesterov};
            return LKS_OK;
        }
        m->params.n_optimizers = 1;
    } else {
        LKSI_TRY(lksi_node_is(list, LKSI_NODE_SEQUENCE, "optimizers: [{adam: {lr: 0.001}}]"));
        if (list->count < 1 || list->count > MAX_OPTIMIZERS)
            return lksi_node_fail(list, "%zu optimisers, expected 1 to %d", list->count,
                                  MAX_OPTIMIZERS);
        for (size_t k = 0; k < list->count; k++)
            LKSI_TRY(read_optimizer(u, list->items[k], true, &o[k]));
        m->params.n_optimizers = list->count;
    }
    m->params.optimizers = o;
fail:
    return st;
}

/* ---- groups ---- */

static lks_status read_group(struct lksi_model_update *u, const struct lksi_node *node,
                             struct lks_param_group *g)
{
    static const char *const keys[] = {"params", "lr_scale", "weight_decay"};
    const struct lksi_node *params;
    lks_status st;
    LKSI_TRY(lksi_node_is(node, LKSI_NODE_MAPPING, GROUP_EXAMPLE));
    LKSI_TRY(lksi_node_check_keys(node, keys, LKSI_COUNT(keys)));
    LKSI_TRY(lksi_node_need(node, "params", GROUP_EXAMPLE, &params));
    LKSI_TRY(read_patterns(u, params, GROUP_EXAMPLE, &g->params, &g->n_params));
    LKSI_TRY(lksi_map_float(node, "lr_scale", LKSI_POSITIVE, 1e6, "lr_scale: 0.1", &g->lr_scale));
    g->has_weight_decay = lksi_node_get(node, "weight_decay") != NULL;
    LKSI_TRY(lksi_map_float(node, "weight_decay", 0, 1e6, "weight_decay: 0", &g->weight_decay));
fail:
    return st;
}

static lks_status read_groups(struct lks_model *m, const struct lksi_node *train)
{
    const struct lksi_node *node = lksi_node_get(train, "groups");
    lks_status st = LKS_OK;
    if (node != NULL) {
        LKSI_TRY(lksi_node_is(node, LKSI_NODE_SEQUENCE, GROUP_EXAMPLE));
        if (node->count < 1 || node->count > MAX_GROUPS)
            return lksi_node_fail(node, "%zu groups, expected 1 to %d", node->count, MAX_GROUPS);
        for (size_t k = 0; k < node->count; k++)
            LKSI_TRY(read_group(m->update, node->items[k], &m->update->group[k]));
        m->params.groups = m->update->group;
        m->params.n_groups = node->count;
    }
    node = lksi_node_get(train, "frozen");
    if (node != NULL)
        LKSI_TRY(read_patterns(m->update, node, "frozen: [\"conv1*\"]", &m->params.frozen,
                               &m->params.n_frozen));
fail:
    return st;
}

static lks_status read_average(struct lks_model *m, const struct lksi_node *train)
{
    static const char *const words[] = {"weights", "ema"};
    const struct lksi_node *node = lksi_node_get(train, "ema");
    size_t word = 0;
    lks_status st = LKS_OK;
    if (node != NULL) {
        LKSI_TRY(lksi_node_float(node, LKSI_POSITIVE, 1, "ema: 0.999", &m->params.ema));
        if (m->params.ema >= 1)
            return lksi_node_expected(node, "a number above 0 and below 1", "ema: 0.999");
    }
    node = lksi_node_get(train, "evaluate");
    if (node != NULL)
        LKSI_TRY(lksi_node_choice(node, words, LKSI_COUNT(words), &word));
    if (word == 1 && m->params.ema == 0)
        return lksi_node_fail(node, "there is no average to evaluate; add e.g. `ema: 0.999`");
    m->params.evaluate_ema = word == 1;
fail:
    return st;
}

static lks_status read_resident(struct lks_model *m, const struct lksi_node *train)
{
    static const char *const words[] = {"auto", "yes", "no"}; /* as enum lks_resident */
    const struct lksi_node *node = lksi_node_get(train, "resident");
    size_t word = (size_t)LKS_RESIDENT_AUTO;
    lks_status st = node != NULL ? lksi_node_choice(node, words, LKSI_COUNT(words), &word) : LKS_OK;
    if (st == LKS_OK)
        m->params.resident = (lks_resident)word;
    return st;
}

lks_status lksi_model_train(struct lks_model *m, const struct lksi_node *root)
{
    static const char *const keys[] = {"batch",      "epochs",   "seed", "leaf",
                                       "drop_last",  "optimizer", "optimizers",
                                       "groups",     "frozen",   "ema",  "evaluate",
                                       "resident"};
    const struct lksi_node *train;
    int64_t batch = 64, epochs = 1, leaf = 8;
    lks_status st;
    m->update = lksi_alloc(1, sizeof *m->update);
    if (m->update == NULL)
        return LKS_E_MEMORY;
    LKSI_TRY(lksi_node_need(root, "train", "train: {optimizer: {sgd: {lr: 0.05}}}", &train));
    LKSI_TRY(lksi_node_is(train, LKSI_NODE_MAPPING, "train: {optimizer: {sgd: {lr: 0.05}}}"));
    LKSI_TRY(lksi_node_check_keys(train, keys, LKSI_COUNT(keys)));
    LKSI_TRY(lksi_map_int(train, "batch", 1, 1 << 24, "batch: 64", &batch));
    LKSI_TRY(lksi_map_int(train, "epochs", 1, INT32_MAX, "epochs: 3", &epochs));
    LKSI_TRY(lksi_map_u64(train, "seed", "seed: 1", &m->params.seed));
    LKSI_TRY(lksi_map_int(train, "leaf", 1, 1 << 16, "leaf: 8", &leaf));
    if ((leaf & (leaf - 1)) != 0)
        return lksi_node_expected(lksi_node_get(train, "leaf"), "a power of two", "leaf: 8");
    LKSI_TRY(lksi_map_bool(train, "drop_last", "drop_last: true", &m->params.drop_last));
    LKSI_TRY(read_resident(m, train));
    LKSI_TRY(read_optimizers(m, train));
    LKSI_TRY(read_groups(m, train));
    LKSI_TRY(read_average(m, train));
    m->params.batch = (uint32_t)batch;
    m->params.epochs = (uint32_t)epochs;
    m->params.leaf = (uint32_t)leaf;
fail:
    return st;
}

/* ---- after the network is known ---- */

static lks_status check_patterns(const struct lks_model *m, const struct lksi_node *list)
{
    const struct lks_graph *g = m->graph;
    if (list == NULL)
        return LKS_OK;
    for (size_t k = 0; k < list->count; k++) {
        const struct lksi_node *p = list->items[k];
        bool found = false;
        for (size_t i = 0; i < g->n_param && !found; i++)
            found = lksi_pattern_fits(p->text, g->param[i].name);
        if (!found)
            return lksi_node_fail(p, "no parameter fits `%s`; they are named like `%s`", p->text,
                                  g->n_param > 0 ? g->param[0].name : "conv1.weight");
    }
    return LKS_OK;
}

static bool fits(const char *const *pattern, size_t n, const char *name)
{
    for (size_t k = 0; k < n; k++)
        if (lksi_pattern_fits(pattern[k], name))
            return true;
    return false;
}

/* Every parameter that is not frozen belongs to one optimiser, and every optimiser has some. */
static lks_status find_owners(const struct lks_model *m, const struct lksi_node *list, size_t *owners)
{
    const struct lks_trainer_params *p = &m->params;
    const struct lks_graph *g = m->graph;
    size_t n = p->n_optimizers > 0 ? p->n_optimizers : 1;
    bool has[MAX_OPTIMIZERS] = {false};
    for (size_t i = 0; i < g->n_param; i++) {
        const char *name = g->param[i].name;
        size_t owner = n;
        if (fits(p->frozen, p->n_frozen, name))
            continue;
        for (size_t k = 0; k < n; k++) {
            const struct lks_optimizer *o = &m->update->optimizer[k];
            if (o->n_params > 0 && !fits(o->params, o->n_params, name))
                continue;
            if (owner < n)
                return lksi_node_fail(list,
                                      "parameter `%s` belongs to optimisers %zu and %zu; their "
                                      "`params` must not overlap",
                                      name, owner + 1, k + 1);
            owners[i] = owner = k;
            has[k] = true;
        }
        if (owner == n)
            return lksi_node_fail(list,
                                  "parameter `%s` belongs to no optimiser; name it in `params` of "
                                  "one, or in `frozen`",
                                  name);
    }
    for (size_t k = 0; k < n; k++)
        if (!has[k])
            return lksi_node_fail(list, "optimiser %zu has no parameters to train", k + 1);
    return LKS_OK;
}

/* Every optimiser's loss exists, and its parameters reach it. */
static lks_status check_owners(const struct lks_model *m, const struct lksi_node *root,
                               const struct lksi_node *list)
{
    const struct lks_graph *g = m->graph;
    size_t n = m->params.n_optimizers > 0 ? m->params.n_optimizers : 1;
    size_t *owners = lksi_alloc(g->n_param + 1, sizeof *owners);
    bool *own = lksi_alloc(g->n_param + 1, sizeof *own);
    lks_status st = owners != NULL && own != NULL ? LKS_OK : LKS_E_MEMORY;
    for (size_t i = 0; st == LKS_OK && i < g->n_param; i++)
        owners[i] = n; /* frozen */
    if (st == LKS_OK)
        st = find_owners(m, list, owners);
    for (size_t k = 0; st == LKS_OK && k < n; k++) {
        for (size_t i = 0; i < g->n_param; i++)
            own[i] = owners[i] == k;
        st = lksi_model_check_trained(m, root, k, m->update->optimizer[k].loss, own);
    }
    free(owners);
    free(own);
    return st;
}

lks_status lksi_model_check_train(const struct lks_model *m, const struct lksi_node *root)
{
    static const char *const lists[] = {"groups", "optimizers"};
    const struct lksi_node *train = lksi_node_get(root, "train");
    lks_status st = check_patterns(m, lksi_node_get(train, "frozen"));
    for (size_t l = 0; l < LKSI_COUNT(lists); l++) {
        const struct lksi_node *list = lksi_node_get(train, lists[l]);
        for (size_t k = 0; list != NULL && k < list->count && st == LKS_OK; k++)
            st = check_patterns(m, lksi_node_get(list->items[k], "params"));
    }
    if (st == LKS_OK) {
        const struct lksi_node *list = lksi_node_get(train, "optimizers");
        st = check_owners(m, root, list != NULL ? list : lksi_node_get(train, "optimizer"));
    }
    return st;
}
