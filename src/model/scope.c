/*
 * scope.c - names of layers, see scope.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "model/scope.h"

static bool is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t length = strlen(text);
    return length >= 1 && length <= 64 && strchr(letters, text[0]) != NULL &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
               length;
}

static lks_status check_name(const struct lksi_node *node, const char **given)
{
    lks_status st = lksi_node_string(node, "name: first", given);
    if (st == LKS_OK &&
        (!is_name(*given) || strcmp(*given, "input") == 0 || strcmp(*given, "in") == 0))
        st = lksi_node_expected(node,
                                "up to 64 letters, digits, `_` and `-`, a letter first "
                                "(and not `input` or `in`, which are taken)",
                                "name: first");
    return st;
}

size_t lksi_model_layer_called(const struct lks_model *m, const char *name)
{
    for (size_t i = 0; i < m->n_layer; i++)
        if (strcmp(m->layer[i].name, name) == 0)
            return i + 1;
    for (size_t i = 0; i < m->n_block; i++)
        if (strcmp(m->block[i].name, name) == 0)
            return m->block[i].last + 1;
    return 0;
}

lks_status lksi_check_carried(const struct lksi_node *node)
{
    if (is_name(node->key) && strcmp(node->key, "input") != 0 && strcmp(node->key, "in") != 0)
        return LKS_OK;
    return lksi_node_fail(node, "expected a name of up to 64 letters, digits, `_` and `-`, a letter "
                                "first (and not `input` or `in`, which are taken)");
}

lks_status lksi_read_layer_name(const struct lks_model *m, const struct lksi_scope *s,
                                const struct lksi_node *item, const struct lksi_node *map,
                                const char *prefix, size_t count, char **out)
{
    const struct lksi_node *node = map != NULL ? lksi_node_get(map, "name") : NULL;
    struct lksi_str name = {0};
    const char *given = NULL;
    size_t taken;
    lks_status st = LKS_OK;
    if (node != NULL)
        LKSI_TRY(check_name(node, &given));
    for (size_t k = 0; k < s->n_carried && given != NULL; k++)
        if (strcmp(s->carried[k].name, given) == 0)
            return lksi_node_fail(node, "`%s` is what the use before gives (`carry`); give this "
                                        "layer another name", given);
    if (given != NULL)
        lksi_str_add(&name, "%s%s", s->prefix, given);
    else
        lksi_str_add(&name, "%s%s%zu", s->prefix, prefix, count + 1);
    if (name.failed) {
        free(name.text);
        return LKS_E_MEMORY;
    }
    taken = lksi_model_layer_called(m, name.text);
    if (taken > 0) {
        st = lksi_node_fail(node != NULL ? node : item,
                            "the layer name `%s` is taken by the "
                            "layer of line %d; give this one another `name`",
                            name.text, m->layer[taken - 1].line);
        free(name.text);
        return st;
    }
    *out = name.text;
fail:
    return st;
}

lks_status lksi_look_up(const struct lks_model *m, const struct lksi_scope *s, const char *name,
                        size_t *out)
{
    *out = 0;
    for (; s != NULL && *out == 0; s = s->outer) {
        struct lksi_str full = {0};
        for (size_t k = 0; k < s->n_carried; k++)
            if (strcmp(s->carried[k].name, name) == 0) {
                *out = s->carried[k].at;
                return LKS_OK;
            }
        lksi_str_add(&full, "%s%s", s->prefix, name);
        if (full.failed)
            return LKS_E_MEMORY;
        *out = lksi_model_layer_called(m, full.text);
        free(full.text);
    }
    return LKS_OK;
}

lks_status lksi_find_layer(const struct lks_model *m, const struct lksi_scope *s,
                           const struct lksi_node *node, size_t *out)
{
    const char *name, **names, *near;
    lks_status st = lksi_node_string(node, "from: conv1", &name);
    if (st != LKS_OK)
        return st;
    if (strcmp(name, "input") == 0 || (s->outer != NULL && strcmp(name, "in") == 0)) {
        *out = name[2] == '\0' ? s->in : 0;
        return LKS_OK;
    }
    st = lksi_look_up(m, s, name, out);
    if (st != LKS_OK || *out > 0)
        return st;
    names = lksi_alloc(m->n_layer + 1, sizeof *names);
    if (names == NULL)
        return LKS_E_MEMORY;
    for (size_t i = 0; i < m->n_layer; i++)
        names[i] = m->layer[i].name;
    names[m->n_layer] = "input";
    near = lksi_nearest_word(name, names, m->n_layer + 1);
    st = lksi_node_fail(node,
                        "no earlier layer is named `%s`; %s%s%s", name,
                        near != NULL ? "did you mean `" : "", near != NULL ? near : "",
                        near != NULL ? "`?"
                                     : "unnamed layers are conv1, relu1, ... by kind and order");
    free(names);
    return st;
}

/* "t_*_out" with n in place of the star. */
static lks_status find_numbered(const struct lks_model *m, const struct lksi_scope *s,
                                const char *pattern, int n, size_t *out)
{
    int before = (int)strcspn(pattern, "*");
    struct lksi_str name = {0};
    lks_status st = LKS_E_MEMORY;
    lksi_str_add(&name, "%.*s%d%s", before, pattern, n, pattern + before + 1);
    if (!name.failed)
        st = lksi_look_up(m, s, name.text, out);
    free(name.text);
    return st;
}

lks_status lksi_find_layers(const struct lks_model *m, const struct lksi_scope *s,
                            const struct lksi_node *node, size_t room, size_t *out, size_t *n)
{
    size_t at = 1, before = *n;
    const char *star = node->text != NULL ? strchr(node->text, '*') : NULL;
    lks_status st = LKS_OK;
    if (star != NULL && strchr(star + 1, '*') != NULL)
        return lksi_node_fail(node, "`%s` has more than one `*`", node->text);
    for (int k = 1; at > 0 && st == LKS_OK; k++) {
        st = star != NULL ? find_numbered(m, s, node->text, k, &at)
                          : lksi_find_layer(m, s, node, &at);
        if (st != LKS_OK || (star != NULL && at == 0))
            break;
        if (*n == room)
            return lksi_node_fail(node, "names more than %zu layers", room);
        out[(*n)++] = at;
        if (star == NULL)
            break;
    }
    if (st == LKS_OK && *n == before)
        st = lksi_node_fail(node, "no earlier layer is named `%s` with 1 in place of the `*`",
                            node->text);
    return st;
}
