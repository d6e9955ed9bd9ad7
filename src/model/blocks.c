/*
 * blocks.c - finding a block and filling in its arguments, see blocks.h.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "model/blocks.h"

#define EXAMPLE "block: {use: basic, out: 64}"

/* What the arguments of one use are. */
struct arguments {
    const char *block;                /* its name */
    const struct lksi_node *defaults; /* a mapping, or NULL */
    const struct lksi_node *use;
    const struct lksi_node *index; /* $i */
};

/* The keys of a mapping (NULL: none) and, if it is not NULL, one word more; the caller frees. */
static const char **key_words(const struct lksi_node *map, const char *more, size_t *n)
{
    size_t keys = map != NULL ? map->count : 0;
    const char **words = lksi_alloc(keys + 1, sizeof *words);
    for (size_t i = 0; words != NULL && i < keys; i++)
        words[i] = map->items[i]->key;
    if (words != NULL && more != NULL)
        words[keys++] = more;
    *n = keys;
    return words;
}

/* Says that `name` is none of the words, which one may have been meant and which there are. */
static lks_status fail_unknown(const struct lksi_node *where, const char *what, const char *name,
                               const char *sign, const char *there_are, const char *const *words,
                               size_t n)
{
    const char *near = lksi_nearest_word(name, words, n);
    struct lksi_str list = {0};
    lks_status st;
    lksi_list_words(&list, words, n);
    if (list.failed)
        st = LKS_E_MEMORY;
    else if (near != NULL)
        st = lksi_node_fail(where, "%s `%s`; did you mean `%s%s`? %c%s %s", what, name, sign, near,
                            toupper((unsigned char)there_are[0]), there_are + 1, list.text);
    else
        st = lksi_node_fail(where, "%s `%s`; %s %s", what, name, there_are, list.text);
    free(list.text);
    return st;
}

static lks_status fail_argument(const struct arguments *a, const struct lksi_node *where,
                                const char *name)
{
    char what[128];
    size_t n;
    const char **words = key_words(a->defaults, "i", &n);
    lks_status st = LKS_E_MEMORY;
    snprintf(what, sizeof what, "the block `%.64s` has no argument", a->block);
    if (words != NULL)
        st = fail_unknown(where, what, name, "$", "in its `args` stand", words, n - 1);
    if (words != NULL && n == 1)
        st = lksi_node_fail(where, "%s `%s`; list it in its `args`", what, name);
    free(words);
    return st;
}

static lks_status find_argument(const struct arguments *a, const struct lksi_node *where,
                                const struct lksi_node **out)
{
    const char *name = where->text + 1;
    if (strcmp(name, "i") == 0) {
        *out = a->index;
        return LKS_OK;
    }
    const struct lksi_node *node = a->defaults != NULL ? lksi_node_get(a->defaults, name) : NULL;
    if (node == NULL)
        return fail_argument(a, where, name);
    if (lksi_node_get(a->use, name) != NULL)
        node = lksi_node_get(a->use, name);
    if (lksi_node_is_null(node))
        return lksi_node_fail(a->use, "the block `%s` needs the argument `%s`; write e.g. "
                                      "`block: {use: %s, %s: 64}`",
                              a->block, name, a->block, name);
    *out = node;
    return LKS_OK;
}

static lks_status copy_node(struct lksi_block_body *body, const struct arguments *a,
                            const struct lksi_node *node, struct lksi_node **out)
{
    const struct lksi_node *source = node;
    struct lksi_node *copy;
    lks_status st;
    if (node->kind == LKSI_NODE_SCALAR && !node->quoted && node->text[0] == '$') {
        st = find_argument(a, node, &source);
        if (st != LKS_OK)
            return st;
    }
    if (!lksi_grow(&body->made, &body->cap_made, body->n_made + 1, sizeof *body->made) ||
        (copy = lksi_alloc(1, sizeof *copy)) == NULL)
        return LKS_E_MEMORY;
    body->made[body->n_made++] = copy;
    *copy = *source;
    copy->key = node->key;
    copy->items = NULL;
    if (source->count > 0) {
        copy->items = lksi_alloc(source->count, sizeof *copy->items);
        if (copy->items == NULL)
            return LKS_E_MEMORY;
    }
    for (size_t i = 0; i < source->count; i++) {
        st = copy_node(body, a, source->items[i], &copy->items[i]);
        if (st != LKS_OK)
            return st;
    }
    *out = copy;
    return LKS_OK;
}

static lks_status find_block(const struct lksi_node *blocks, const struct lksi_node *use,
                             const struct lksi_node **out)
{
    static const char *const keys[] = {"args", "layers"};
    const struct lksi_node *node;
    const char **names, *name;
    size_t n;
    lks_status st;
    LKSI_TRY(lksi_node_need(use, "use", EXAMPLE, &node));
    LKSI_TRY(lksi_node_string(node, EXAMPLE, &name));
    if (blocks == NULL)
        return lksi_node_fail(node, "the file defines no `blocks`");
    *out = lksi_node_get(blocks, name);
    if (*out != NULL) {
        LKSI_TRY(lksi_node_is(*out, LKSI_NODE_MAPPING, "basic: {layers: [relu]}"));
        return lksi_node_check_keys(*out, keys, LKSI_COUNT(keys));
    }
    names = key_words(blocks, NULL, &n);
    if (names == NULL)
        return LKS_E_MEMORY;
    st = fail_unknown(node, "no block is named", name, "", "the file has", names, n);
    free(names);
fail:
    return st;
}

/* A use takes its own keys and the block's arguments. */
static lks_status check_use(const struct lksi_node *use, const struct lksi_node *defaults)
{
    static const char *const own[] = {"use",   "times",  "name",  "from", "share",
                                      "start", "shared", "carry", "i"};
    size_t n = LKSI_COUNT(own) - 1, args = defaults != NULL ? defaults->count : 0;
    const char **keys = lksi_alloc(n + args, sizeof *keys);
    lks_status st = LKS_OK;
    if (keys == NULL)
        return LKS_E_MEMORY;
    memcpy(keys, own, n * sizeof *keys);
    for (size_t i = 0; i < args && st == LKS_OK; i++) {
        keys[n + i] = defaults->items[i]->key;
        for (size_t k = 0; k < LKSI_COUNT(own); k++)
            if (strcmp(keys[n + i], own[k]) == 0)
                st = lksi_node_fail(defaults->items[i], "an argument cannot be called `%s`",
                                    own[k]);
    }
    if (st == LKS_OK)
        st = lksi_node_check_keys(use, keys, n + args);
    free(keys);
    return st;
}

lks_status lksi_block_body_make(const struct lksi_node *blocks, const struct lksi_node *use,
                                int index, struct lksi_block_body *body)
{
    const struct lksi_node *block = NULL, *layers;
    struct lksi_node number = {.kind = LKSI_NODE_SCALAR, .file = use->file, .line = use->line,
                               .column = use->column, .key = "i"};
    struct arguments a = {"", NULL, use, &number};
    struct lksi_node *copy;
    lks_status st;
    memset(body, 0, sizeof *body);
    snprintf(body->index, sizeof body->index, "%d", index);
    number.text = body->index;
    LKSI_TRY(lksi_node_is(use, LKSI_NODE_MAPPING, EXAMPLE));
    LKSI_TRY(find_block(blocks, use, &block));
    a.block = block->key;
    a.defaults = lksi_node_get(block, "args");
    if (a.defaults != NULL)
        LKSI_TRY(lksi_node_is(a.defaults, LKSI_NODE_MAPPING, "args: {out: , stride: 1}"));
    LKSI_TRY(check_use(use, a.defaults));
    LKSI_TRY(lksi_node_need(block, "layers", "layers: [relu]", &layers));
    LKSI_TRY(lksi_node_is(layers, LKSI_NODE_SEQUENCE, "layers: [relu]"));
    if (layers->count == 0)
        return lksi_node_fail(layers, "no layer; write e.g. `- relu`");
    LKSI_TRY(copy_node(body, &a, layers, &copy));
    body->layers = copy;
fail:
    return st;
}

void lksi_block_body_free(struct lksi_block_body *body)
{
    for (size_t i = 0; i < body->n_made; i++) {
        free(body->made[i]->items);
        free(body->made[i]);
    }
    free(body->made);
    memset(body, 0, sizeof *body);
}
