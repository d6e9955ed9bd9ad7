/*
 * fuse.c - neighbours that become one operator, and operators that nobody needs. No bit moves:
 * the operator that absorbs does the follower's rounding steps as they were.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

/* Who reads each value: how often, and the sum of (node, input) numbers. Of a value that is read
 * once, the sum is the reader. */
struct readers {
    size_t *count, *sum;
};

static void count_reads(const struct lks_graph *g, const struct readers *r, size_t node, bool add)
{
    const struct lksi_gnode *n = &g->node[node];
    for (int k = 0; k < n->call.n_in; k++) {
        size_t id = node * LKSI_MAX_IN + (size_t)k;
        r->count[n->in[k]] += add ? 1 : (size_t)-1;
        r->sum[n->in[k]] += add ? id : 0 - id;
    }
}

static lks_status find_readers(const struct lks_graph *g, struct readers *r)
{
    r->count = lksi_alloc(g->n_value, sizeof *r->count);
    r->sum = lksi_alloc(g->n_value, sizeof *r->sum);
    if (r->count == NULL || r->sum == NULL)
        return LKS_E_MEMORY;
    for (size_t i = 0; i < g->n_node; i++)
        if (!g->node[i].dead)
            count_reads(g, r, i, true);
    return LKS_OK;
}

/* Notes that `n` does the work of `next`, and of what that absorbed. */
static lks_status note_fused(struct lksi_gnode *n, const struct lksi_gnode *next)
{
    struct lksi_str s = {0};
    if (n->fused != NULL)
        lksi_str_add(&s, "%s, ", n->fused);
    lksi_str_add(&s, "%s", next->call.op->name);
    if (next->name != NULL)
        lksi_str_add(&s, " (%s)", next->name);
    if (next->fused != NULL)
        lksi_str_add(&s, ", %s", next->fused);
    if (s.failed) {
        free(s.text);
        return LKS_E_MEMORY;
    }
    free(n->fused);
    n->fused = s.text;
    return LKS_OK;
}

static lks_status try_absorb(struct lks_graph *g, const struct readers *r, size_t index,
                             bool *changed)
{
    struct lksi_gnode *n = &g->node[index], *next;
    struct lksi_desc descs[LKSI_MAX_IN];
    struct lksi_call after;
    lksi_value in[LKSI_MAX_IN];
    void *attr;
    int n_in = n->call.n_in, slot;
    size_t user;
    const struct lksi_gvalue *v = &g->value[n->out[0]];
    *changed = false;
    if (n->dead || n->call.op->absorb == NULL || v->keep || v->home != LKSI_NONE ||
        r->count[n->out[0]] != 1)
        return LKS_OK;
    user = r->sum[n->out[0]] / LKSI_MAX_IN;
    slot = (int)(r->sum[n->out[0]] % LKSI_MAX_IN);
    next = &g->node[user];
    for (int k = 0; k < next->call.n_in; k++)
        if (k != slot && g->value[next->in[k]].node >= (int)index)
            return LKS_OK; /* not there yet when this node runs */
    memcpy(in, n->in, sizeof in);
    attr = lksi_alloc(1, n->call.op->attr_size);
    if (attr == NULL)
        return LKS_E_MEMORY;
    memcpy(attr, n->call.attr, n->call.op->attr_size);
    if (!n->call.op->absorb(attr, in, &n_in, next->call.op, next->call.attr, next->in, slot)) {
        free(attr);
        return LKS_OK;
    }
    for (int k = 0; k < n_in; k++)
        descs[k] = g->value[in[k]].desc;
    if (lksi_call_make(&after, n->call.op, attr, g->leaf, n_in, descs) != LKS_OK ||
        !lksi_desc_equal(&after.out[0], &next->call.out[0])) {
        free(attr); /* shapes that the operator cannot take in: each stays alone */
        return LKS_OK;
    }
    if (note_fused(n, next) != LKS_OK) {
        free(attr);
        return LKS_E_MEMORY;
    }
    count_reads(g, r, index, false);
    count_reads(g, r, user, false);
    free((void *)n->call.attr);
    n->call = after;
    memcpy(n->in, in, sizeof in);
    n->out[0] = next->out[0];
    g->value[n->out[0]].node = (int)index;
    next->dead = true;
    count_reads(g, r, index, true);
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
    struct readers r = {0};
    lks_status st = find_readers(g, &r);
    for (size_t i = 0; i < g->n_node && st == LKS_OK; i++) {
        bool again = true;
        while (again && st == LKS_OK)
            st = try_absorb(g, &r, i, &again);
    }
    free(r.count);
    free(r.sum);
    return st;
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
