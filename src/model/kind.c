/*
 * kind.c - the list of tables and what the builders of all families share; see kind.h.
 */
#include <string.h>

#include "model/kind.h"

static const struct lksi_kind *const tables[] = {
    lksi_kinds_conv, lksi_kinds_activation, lksi_kinds_arithmetic, lksi_kinds_pool,
    lksi_kinds_norm, lksi_kinds_shape,      lksi_kinds_reduce,
    lksi_kinds_random,
    lksi_kinds_embedding,
};

const struct lksi_kind *lksi_kind_at(size_t index)
{
    for (size_t t = 0; t < LKSI_COUNT(tables); t++)
        for (const struct lksi_kind *k = tables[t]; k->word != NULL; k++)
            if (index-- == 0)
                return k;
    return NULL;
}

const char *lksi_behind_names(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    size_t length;
    while ((length = strspn(text, letters)) > 0 && strncmp(text + length, ": ", 2) == 0)
        text += length + 2;
    return text;
}

void lksi_canon_float(struct lksi_str *canon, const char *key, double value)
{
    float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    lksi_str_add(canon, " %s=%08x", key, (unsigned)bits);
}

lks_status lksi_need_int(const struct lksi_node *map, const char *key, int64_t min, int64_t max,
                         const char *example, int64_t *out)
{
    const struct lksi_node *node;
    lks_status st = lksi_node_need(map, key, example, &node);
    return st == LKS_OK ? lksi_node_int(node, min, max, example, out) : st;
}
