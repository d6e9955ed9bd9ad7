/*
 * items.h - a graph computed on the host by the items of its contracts, without a device.
 */
#ifndef LKS_TESTS_API_ITEMS_H
#define LKS_TESTS_API_ITEMS_H

#include <stdlib.h>

#include "graph/graph.h"

/* What `want` is for batch 1; fill(e, user) gives element e of each input. Parameters that start at
 * one number hold it, others zeros. Caller frees. */
static inline float *run_items(const lks_graph *g, lks_value want, float (*fill)(int64_t, void *),
                               void *user, int64_t *n)
{
    float **v = calloc(g->n_value, sizeof *v), *out;
    for (size_t i = 0; i < g->n_value; i++) {
        int64_t count = lksi_desc_count(&g->value[i].desc);
        v[i] = calloc((size_t)count, sizeof **v);
        for (int64_t e = 0; g->value[i].kind == LKSI_VALUE_INPUT && e < count; e++)
            v[i][e] = fill(e, user);
    }
    for (size_t p = 0; p < g->n_param; p++) {
        int64_t count = lksi_desc_count(&g->value[g->param[p].value].desc);
        for (int64_t e = 0; g->param[p].constant && e < count; e++)
            v[g->param[p].value][e] = g->param[p].start;
    }
    for (size_t i = 0; i < g->n_node; i++) {
        const struct lksi_gnode *node = &g->node[i];
        const void *in[LKSI_MAX_IN] = {NULL};
        void *to[LKSI_MAX_OUT] = {NULL};
        for (int k = 0; k < LKSI_MAX_IN; k++)
            in[k] = v[node->in[k < node->call.n_in ? k : 0]];
        for (int k = 0; k < node->call.n_out; k++)
            to[k] = v[node->out[k]];
        for (U64 e = 0; e < lksi_op_items(&node->call); e++)
            node->call.op->item(in, to, node->call.dims.bytes, e);
    }
    *n = lksi_desc_count(&g->value[want].desc);
    out = v[want];
    v[want] = NULL;
    for (size_t i = 0; i < g->n_value; i++)
        free(v[i]);
    free(v);
    return out;
}

#endif
