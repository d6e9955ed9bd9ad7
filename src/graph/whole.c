/*
 * whole.c - a call on a graph happens as a whole or not at all: what a failed one added is taken
 * back, so that a corrected call finds the graph as it was.
 */
#include <stdlib.h>

#include "graph/graph.h"

void lksi_graph_free_behind(struct lks_graph *g, const struct lks_graph *before)
{
    for (size_t i = before->n_value; i < g->n_value; i++)
        free(g->value[i].name);
    for (size_t i = before->n_node; i < g->n_node; i++) {
        free((void *)g->node[i].call.attr);
        free(g->node[i].name);
        free(g->node[i].fused);
    }
    for (size_t i = before->n_param; i < g->n_param; i++)
        free(g->param[i].name);
    for (size_t i = before->n_loss; i < g->n_loss; i++)
        free(g->losses[i].name);
}

struct lks_graph lksi_graph_mark(const struct lks_graph *g)
{
    return g != NULL ? *g : (struct lks_graph){0};
}

lks_status lksi_graph_settle(struct lks_graph *g, const struct lks_graph *before, lks_status st)
{
    struct lks_graph after;
    if (st == LKS_OK || g == NULL)
        return st;
    after = *g;
    lksi_graph_free_behind(g, before);
    *g = *before;
    /* The arrays may have grown. */
    g->value = after.value;
    g->cap_value = after.cap_value;
    g->node = after.node;
    g->cap_node = after.cap_node;
    g->param = after.param;
    g->cap_param = after.cap_param;
    g->buffer = after.buffer;
    g->cap_buffer = after.cap_buffer;
    g->norm = after.norm;
    g->cap_norm = after.cap_norm;
    g->name = after.name;
    g->cap_name = after.cap_name;
    lksi_graph_enter_names(g);
    return st;
}
