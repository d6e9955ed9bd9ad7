/*
 * names.c - the graph's hash table of named values: open addressing, no value ever leaves it alone.
 */
#include <stdlib.h>
#include <string.h>

#include "base/stream.h"
#include "graph/graph.h"

/* Where `name` stands in the table of names, or the empty place where it would. */
static size_t place_of(const struct lks_graph *g, const char *name)
{
    size_t at = lksi_fnv1a32(name, strlen(name)) & (g->cap_name - 1);
    while (g->name[at] != LKSI_NONE && strcmp(g->value[g->name[at]].name, name) != 0)
        at = (at + 1) & (g->cap_name - 1);
    return at;
}

lksi_value lksi_graph_find(const struct lks_graph *g, const char *name)
{
    return g->cap_name > 0 ? g->name[place_of(g, name)] : LKSI_NONE;
}

void lksi_graph_enter_name(struct lks_graph *g, lksi_value v)
{
    g->name[place_of(g, g->value[v].name)] = v;
    g->n_name++;
}

void lksi_graph_enter_names(struct lks_graph *g)
{
    for (size_t i = 0; i < g->cap_name; i++)
        g->name[i] = LKSI_NONE;
    g->n_name = 0;
    for (size_t v = 0; v < g->n_value; v++)
        if (g->value[v].name != NULL)
            lksi_graph_enter_name(g, (lksi_value)v);
}

bool lksi_graph_room_for_name(struct lks_graph *g)
{
    size_t capacity = g->cap_name > 0 ? 2 * g->cap_name : 64;
    lksi_value *name;
    if (2 * (g->n_name + 1) <= g->cap_name)
        return true;
    name = lksi_alloc(capacity, sizeof *name);
    if (name == NULL)
        return false;
    free(g->name);
    g->name = name;
    g->cap_name = capacity;
    lksi_graph_enter_names(g);
    return true;
}
