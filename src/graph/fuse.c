/*
 * fuse.c - neighbours that become one operator, and operators that nobody needs. No bit moves:
 * the operator that absorbs does the follower's rounding steps as they were.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

/* The only node that reads `v` and the input it reads it by; -1 if there is none or several. */
static int only_user(const struct lks_graph *g, lksi_value v, int *slot)
{
    int user = -1;
    for (size_t i = 0; i < g->n_node; i++) {
        if (g->node[i].dead)
            continue;
        for (int k = 0; k < g->node[i].call.n_in; k++) {
            if (g->node[i].in[k] != v)
                continue;
            if (user >= 0)
                return -1;
            user = (int)i;
            *slot = k;
        }
    }
    return user;
}

static lks_status try_absorb(struct lks_graph *g, size_t index, bool *changed)
{
    struct lksi_gnode *n = &g->node[index], *next;
    struct lksi_desc descs[LKSI_MAX_IN];
    lksi_value in[LKSI_MAX_IN];
    int n_in = n->call.n_in, slot = 0, user;
    const struct lksi_gvalue *v = &g->value[n->out[0]];
    *changed = false;
    if (n->dead || n->call.op->absorb == NULL || v->keep || v->home != LKSI_NONE)
        return LKS_OK;
    user = only_user(g, n->out[0], &slot);
    if (user < 0)
        return LKS_OK;
    next = &g->node[user];
    for (int k = 0; k < next->call.n_in; k++)
        if (k != slot && g->value[next->in[k]].node >= (int)index)
            return LKS_OK; /* not there yet when this node runs */
    memcpy(in, n->in, sizeof in);
    if (!n->call.op->absorb((void *)n->call.attr, in, &n_in, next->call.op, next->call.attr,
                            next->in, slot))
        return LKS_OK;
    for (int k = 0; k < n_in; k++)
        descs[k] = g->value[in[k]].desc;
    lks_status st =
        lksi_call_make(&n->call, n->call.op, n->call.attr, g->leaf, n_in, descs);
    if (st != LKS_OK)
        return st;
    memcpy(n->in, in, sizeof in);
    n->out[0] = next->out[0];
    g->value[n->out[0]].node = (int)index;
    next->dead = true;
    *changed = true;
    return LKS_OK;
}

static bool node_is_wanted(const struct lks_graph *g, const struct lksi_gnode *n, const bool *used)
{
    for (int j = 0; j < n->call.n_out; j++) {
        const struct lksi_gvalue *v = &g->value[n->out[j]];
        bool writes_state = v->home != LKSI_NONE && !n->call.op->view &&
                            g->value[v->home].kind == LKSI_VALUE_STATE;
        if (v->keep || writes_state || used[n->out[j]])
            return true;
    }
    return false;
}

lks_status lksi_graph_fuse(struct lks_graph *g)
{
    for (size_t i = 0; i < g->n_node; i++) {
        bool again = true;
        while (again) {
            lks_status st = try_absorb(g, i, &again);
            if (st != LKS_OK)
                return st;
        }
    }
    return LKS_OK;
}

lks_status lksi_graph_prune(struct lks_graph *g)
{
    bool *used = lksi_alloc(g->n_value, sizeof *used);
    if (used == NULL)
        return LKS_E_MEMORY;
    for (size_t i = g->n_node; i-- > 0;) {
        struct lksi_gnode *n = &g->node[i];
        if (n->dead)
            continue;
        n->dead = !node_is_wanted(g, n, used);
        for (int k = 0; !n->dead && k < n->call.n_in; k++)
            used[n->in[k]] = true;
    }
    free(used);
    return LKS_OK;
}
