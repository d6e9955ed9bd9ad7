/*
 * block_uses.c - `- block: {use: NAME, times: N, name: X}` among the layers of a model file. One
 * use is called X; several are X_1, X_2, ..., and X means the last. Uses may share their parameters
 * (`shared`) and hand values on (`carry`, `start`): a cell unrolled over time.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "model/blocks.h"
#include "model/scope.h"

#define CARRY_EXAMPLE "carry: {h: hidden}, start: {h: [32, 32, 16]}"

/* All uses of one `- block`. */
struct uses {
    struct lks_model *m;
    const struct lksi_scope *outer;
    const struct lksi_node *use;
    struct lksi_str *canon;
    const struct lksi_node *carry; /* NULL: nothing */
    struct lksi_carried carried[LKSI_MAX_CARRIED];
    bool shared;       /* uses behind the first take its parameters */
    char *name, *share; /* `share`: the uses whose parameters these take, or NULL */
    int64_t times;
};

/* From now on `name` means the last layer. */
static lks_status name_last(struct lks_model *m, const char *name)
{
    if (!lksi_grow(&m->block, &m->cap_block, m->n_block + 1, sizeof *m->block) ||
        (m->block[m->n_block].name = lksi_strdup(name)) == NULL)
        return LKS_E_MEMORY;
    m->block[m->n_block++].last = m->n_layer - 1;
    return LKS_OK;
}

static lks_status prefix_of(const char *name, struct lksi_str *prefix)
{
    lksi_str_add(prefix, "%s_", name);
    return prefix->failed ? LKS_E_MEMORY : LKS_OK;
}

/* ---- values that are handed on ---- */

/* `start: {h: [32, 32, 16]}`: the layer `constant: {shape: [32, 32, 16], name: h}` of the uses. */
static lks_status add_zeros(struct uses *u, const struct lksi_node *start, size_t *at)
{
    struct lksi_node shape = *start, text = *start, map = *start, item = *start;
    struct lksi_node *parts[2] = {&shape, &text}, *one[1] = {&map};
    int lines[2] = {start->line, start->line};
    struct lksi_str prefix = {0};
    size_t uses = 0;
    struct lksi_scope s = {.outer = u->outer, .depth = u->outer->depth + 1, .uses = &uses};
    shape.key = "shape";
    text = (struct lksi_node){.kind = LKSI_NODE_SCALAR, .file = start->file, .line = start->line,
                              .column = start->column, .key = "name", .text = start->key};
    map.kind = item.kind = LKSI_NODE_MAPPING;
    map.key = "constant";
    map.items = parts;
    map.count = 2;
    item.items = one;
    item.count = 1;
    map.key_lines = item.key_lines = lines;
    lks_status st = prefix_of(u->name, &prefix);
    s.prefix = prefix.text;
    s.first = u->m->n_layer;
    if (st == LKS_OK)
        st = lksi_add_layer(u->m, &s, &item, u->canon);
    free(prefix.text);
    *at = u->m->n_layer;
    return st;
}

static lks_status begin_carried(struct uses *u)
{
    const struct lksi_node *start = lksi_node_get(u->use, "start");
    lks_status st = LKS_OK;
    u->carry = lksi_node_get(u->use, "carry");
    if (u->carry == NULL)
        return start == NULL ? LKS_OK
                             : lksi_node_fail(start, "`carry` is missing; write e.g. `%s`",
                                              CARRY_EXAMPLE);
    LKSI_TRY(lksi_node_is(u->carry, LKSI_NODE_MAPPING, CARRY_EXAMPLE));
    if (u->carry->count < 1 || u->carry->count > LKSI_MAX_CARRIED)
        return lksi_node_fail(u->carry, "carries %zu values, 1 to %d expected", u->carry->count,
                              LKSI_MAX_CARRIED);
    LKSI_TRY(lksi_node_need(u->use, "start", CARRY_EXAMPLE, &start));
    LKSI_TRY(lksi_node_is(start, LKSI_NODE_MAPPING, CARRY_EXAMPLE));
    for (size_t k = 0; k < start->count; k++)
        if (lksi_node_get(u->carry, start->items[k]->key) == NULL)
            return lksi_node_fail(start->items[k], "`carry` has no `%s`", start->items[k]->key);
    for (size_t k = 0; k < u->carry->count; k++) {
        struct lksi_carried *c = &u->carried[k];
        const struct lksi_node *node;
        c->name = u->carry->items[k]->key;
        LKSI_TRY(lksi_check_carried(u->carry->items[k]));
        LKSI_TRY(lksi_node_need(start, c->name, CARRY_EXAMPLE, &node));
        if (node->kind == LKSI_NODE_SEQUENCE)
            LKSI_TRY(add_zeros(u, node, &c->at));
        else
            LKSI_TRY(lksi_find_layer(u->m, u->outer, node, &c->at));
    }
fail:
    return st;
}

/* Both values have one shape. */
static bool same_shape(const struct lks_model *m, size_t a, size_t b)
{
    lks_value x = a == 0 ? m->input : m->layer[a - 1].value;
    lks_value y = b == 0 ? m->input : m->layer[b - 1].value;
    const struct lksi_desc *d = &m->graph->value[x].desc, *e = &m->graph->value[y].desc;
    bool same = d->rank == e->rank && d->dtype == e->dtype;
    for (int i = 1; i < d->rank && same; i++)
        same = d->dim[i] == e->dim[i];
    return same;
}

/* Behind a use: what its layers are called for the next one. All are looked up before any moves. */
static lks_status hand_on(struct uses *u, const struct lksi_scope *s)
{
    size_t next[LKSI_MAX_CARRIED];
    size_t n = u->carry != NULL ? u->carry->count : 0;
    lks_status st;
    for (size_t k = 0; k < n; k++) {
        LKSI_TRY(lksi_find_layer(u->m, s, u->carry->items[k], &next[k]));
        if (!same_shape(u->m, next[k], u->carried[k].at))
            return lksi_node_fail(u->carry->items[k], "`%s` has another shape than `%s` began with",
                                  u->carry->items[k]->text, u->carried[k].name);
    }
    for (size_t k = 0; k < n; k++)
        u->carried[k].at = next[k];
    return LKS_OK;
fail:
    return st;
}

/* ---- parameters of another use ---- */

/* The use of a block whose parameters this one takes, by its full name; NULL: none. The caller frees
 * *out. Inside a use that shares it is the counterpart. */
static lks_status read_share(const struct lks_model *m, const struct lksi_scope *s,
                             const struct lksi_node *use, const char *name, char **out)
{
    const struct lksi_node *node = lksi_node_get(use, "share");
    struct lksi_str full = {0};
    const char *given;
    size_t at = 0;
    lks_status st = LKS_OK;
    *out = NULL;
    if (node != NULL) {
        LKSI_TRY(lksi_node_string(node, "share: block1", &given));
        lksi_str_add(&full, "%s%s", s->prefix, given);
        while (at < m->n_block && !full.failed && strcmp(m->block[at].name, full.text) != 0)
            at++;
        if (at == m->n_block && !full.failed) {
            st = lksi_node_fail(node, "no earlier use of a block is named `%s`", given);
            free(full.text);
            return st;
        }
    } else if (s->share != NULL) {
        lksi_str_add(&full, "%s%s", s->share, name + strlen(s->prefix));
    }
    *out = full.text;
    st = full.failed ? LKS_E_MEMORY : LKS_OK;
fail:
    return st;
}

/* NAME_3, or NAME where there is one; NULL without a name or memory. */
static char *numbered(const char *name, int64_t i, int64_t times)
{
    struct lksi_str text = {0};
    if (name == NULL)
        return NULL;
    lksi_str_add(&text, "%s", name);
    if (times > 1)
        lksi_str_add(&text, "_%d", (int)i);
    return text.text;
}

/* ---- the layers ---- */

/* The layers of use `index` (from 0), which takes layer `in`, under the name `name`. */
static lks_status add_layers(struct uses *u, int index, size_t in, const char *name,
                             const char *share)
{
    struct lks_model *m = u->m;
    struct lksi_block_body body = {0};
    struct lksi_str prefix = {0}, other = {0};
    size_t uses = 0;
    struct lksi_scope s = {
        .outer = u->outer,
        .first = m->n_layer,
        .in = in,
        .depth = u->outer->depth + 1,
        .uses = &uses,
        .carried = u->carried,
        .n_carried = u->carry != NULL ? u->carry->count : 0,
    };
    lks_status st;
    LKSI_TRY(prefix_of(name, &prefix));
    if (share != NULL)
        LKSI_TRY(prefix_of(share, &other));
    s.prefix = prefix.text;
    s.share = other.text;
    LKSI_TRY(lksi_block_body_make(m->blocks, u->use, index, &body));
    st = lksi_add_layers(m, &s, body.layers, u->canon);
    if (st == LKS_E_INPUT)
        lksi_fail_prefix(st, "%s:%d: block `%s`: ", u->use->file, u->use->line, name);
    if (st != LKS_OK)
        goto fail;
    LKSI_TRY(hand_on(u, &s));
    st = name_last(m, name);
fail:
    free(prefix.text);
    free(other.text);
    lksi_block_body_free(&body);
    return st;
}

static lks_status add_use(struct uses *u, int index, size_t in)
{
    bool first = u->shared && index > 0 && u->share == NULL;
    char *name = numbered(u->name, index + 1, u->times);
    char *share = numbered(first ? u->name : u->share, first || u->shared ? 1 : index + 1, u->times);
    lks_status st = LKS_E_MEMORY;
    if (name != NULL && (share != NULL) == (first || u->share != NULL))
        st = add_layers(u, index, in, name, share);
    free(name);
    free(share);
    return st;
}

lks_status lksi_add_block(struct lks_model *m, const struct lksi_scope *s,
                          const struct lksi_node *item, struct lksi_str *canon)
{
    struct uses u = {.m = m, .outer = s, .use = item->items[0], .canon = canon, .times = 1};
    const struct lksi_node *node;
    size_t in = m->n_layer == s->first ? s->in : m->n_layer;
    lks_status st = LKS_OK;
    if (s->depth >= LKSI_BLOCK_MAX_DEPTH)
        return lksi_node_fail(u.use, "blocks inside blocks, more than %d deep",
                              LKSI_BLOCK_MAX_DEPTH);
    LKSI_TRY(lksi_node_is(u.use, LKSI_NODE_MAPPING, "block: {use: basic}"));
    LKSI_TRY(lksi_map_int(u.use, "times", 1, LKSI_BLOCK_MAX_TIMES, "times: 2", &u.times));
    LKSI_TRY(lksi_map_bool(u.use, "shared", "shared: true", &u.shared));
    node = lksi_node_get(u.use, "from");
    if (node != NULL)
        LKSI_TRY(lksi_find_layer(m, s, node, &in));
    LKSI_TRY(lksi_read_layer_name(m, s, item, u.use, "block", (*s->uses)++, &u.name));
    LKSI_TRY(read_share(m, s, u.use, u.name, &u.share));
    LKSI_TRY(begin_carried(&u));
    for (int i = 0; i < (int)u.times; i++) {
        LKSI_TRY(add_use(&u, i, in));
        in = m->n_layer;
    }
    if (u.times > 1)
        st = name_last(m, u.name);
fail:
    free(u.name);
    free(u.share);
    return st;
}
