/*
 * autodiff.c - reverse-mode differentiation: gradients become ordinary operators of the graph.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

/* What flows back into a value: one gradient from each use of it. */
struct flow {
    lksi_value *part;
    size_t n, cap;
};

struct pass {
    struct lks_graph *g;
    struct flow *flow; /* by value */
    bool *need;        /* by value: a parameter stands behind it */
    size_t n_value;    /* values before the pass */
};

static void mark_needs(struct pass *p)
{
    struct lks_graph *g = p->g;
    for (size_t i = 0; i < g->n_param; i++)
        p->need[g->param[i].value] = true;
    for (size_t i = 0; i < g->n_node; i++) {
        const struct lksi_gnode *n = &g->node[i];
        bool any = false;
        for (int k = 0; k < n->call.n_in; k++)
            any = any || p->need[n->in[k]];
        for (int j = 0; any && j < n->call.n_out; j++)
            p->need[n->out[j]] = n->call.out[j].dtype == LKSI_F32;
    }
}

/*
 * The gradient of a value. Its uses were met last to first, so the parts are added from the last
 * one backwards: the order of the consumers (numerics.md, rule 9).
 */
static lks_status gather(struct pass *p, lksi_value v, lksi_value *sum)
{
    struct flow *f = &p->flow[v];
    lksi_value total = LKSI_NONE;
    for (size_t i = f->n; i-- > 0;) {
        lksi_value pair[2] = {total, f->part[i]};
        if (total == LKSI_NONE) {
            total = f->part[i];
            continue;
        }
        lks_status st = lksi_graph_add_node(p->g, "add_gradients", "add", NULL, 2, pair, &total);
        if (st != LKS_OK)
            return st;
    }
    *sum = total;
    return LKS_OK;
}

static lks_status flow_into(struct pass *p, lksi_value v, lksi_value part)
{
    struct flow *f = &p->flow[v];
    if (!lksi_grow(&f->part, &f->cap, f->n + 1, sizeof *f->part))
        return LKS_E_MEMORY;
    f->part[f->n++] = part;
    return LKS_OK;
}

static lks_status differentiate(struct pass *p, size_t index)
{
    /* Copies, since adding operators moves the graph's arrays. */
    struct lksi_gnode n = p->g->node[index];
    lksi_value dout[LKSI_MAX_OUT], din[LKSI_MAX_IN];
    bool need[LKSI_MAX_IN] = {false};
    bool flows = false, wanted = false;
    for (int j = 0; j < n.call.n_out; j++) {
        lks_status st = gather(p, n.out[j], &dout[j]);
        if (st != LKS_OK)
            return st;
        flows = flows || dout[j] != LKSI_NONE;
    }
    for (int k = 0; k < n.call.n_in; k++) {
        need[k] = p->need[n.in[k]];
        din[k] = LKSI_NONE;
        wanted = wanted || need[k];
    }
    if (!flows || !wanted)
        return LKS_OK;
    if (n.call.op->grad == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "%s: operator `%s` has no gradient", n.name,
                         n.call.op->name);
    p->g->scope = n.name;
    lks_status st = n.call.op->grad(&p->g->builder, &n.call, n.in, n.out, dout, need, din);
    p->g->scope = NULL;
    if (st != LKS_OK)
        return lksi_fail_prefix(st, "gradient of %s: ", n.name);
    for (int k = n.call.n_in; k-- > 0 && st == LKS_OK;)
        if (need[k] && din[k] != LKSI_NONE)
            st = flow_into(p, n.in[k], din[k]);
    return st;
}

lks_status lksi_graph_unreached(const struct lks_graph *g, lksi_value value, size_t *param)
{
    bool *reached = lksi_alloc(g->n_value, sizeof *reached);
    size_t p = 0;
    if (reached == NULL)
        return LKS_E_MEMORY;
    reached[value] = true;
    for (size_t i = g->n_node; i-- > 0;) {
        const struct lksi_gnode *n = &g->node[i];
        bool used = false;
        for (int j = 0; j < n->call.n_out; j++)
            used = used || reached[n->out[j]];
        for (int k = 0; used && k < n->call.n_in; k++)
            reached[n->in[k]] = true;
    }
    while (p < g->n_param && reached[g->param[p].value])
        p++;
    free(reached);
    *param = p;
    return LKS_OK;
}

lks_status lksi_graph_backward(struct lks_graph *g, lksi_value loss, lksi_value *grad)
{
    lks_status st = LKS_OK;
    struct pass p = {.g = g, .n_value = g->n_value};
    struct lksi_desc one = lksi_desc_make(LKSI_F32, 1, (int64_t)1);
    lksi_value seed;
    size_t nodes = g->n_node;
    p.flow = lksi_alloc(p.n_value, sizeof *p.flow);
    p.need = lksi_alloc(p.n_value, sizeof *p.need);
    if (p.flow == NULL || p.need == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    LKSI_TRY(lksi_graph_add_state(g, "one", &one, LKSI_NONE, 0, &seed));
    mark_needs(&p);
    LKSI_TRY(flow_into(&p, loss, seed));
    for (size_t i = nodes; i-- > 0;)
        LKSI_TRY(differentiate(&p, i));
    for (size_t i = 0; i < g->n_param; i++) {
        const struct flow *f = &p.flow[g->param[i].value];
        /* Rule 8 adds several uses of a parameter per block, before the tree over the batch. */
        if (f->n != 1) {
            st = lksi_fail(LKS_E_ARGUMENT,
                           f->n == 0
                               ? "parameter `%s` does not reach the loss; leave out its layer, "
                                 "or lead it to the last one"
                               : "parameter `%s` is used more than once; shared weights "
                                 "are not supported by this version",
                           g->param[i].name);
            goto fail;
        }
        grad[i] = f->part[0];
    }
fail:
    for (size_t i = 0; p.flow != NULL && i < p.n_value; i++)
        free(p.flow[i].part);
    free(p.flow);
    free(p.need);
    return st;
}
