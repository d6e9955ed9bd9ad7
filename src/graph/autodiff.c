/*
 * autodiff.c - reverse-mode differentiation: gradients become ordinary operators of the graph.
 *
 * A pass walks back from one value and asks the operators that lead from the wanted values to it.
 * Gradient operators have gradients too, so a pass may run over what an earlier pass has added.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/blocks.h"
#include "op/attr.h"

/* What flows back into a value: one gradient from each use of it, the last use first. */
struct flow {
    lksi_value *part;
    size_t n, cap;
};

struct pass {
    struct lks_graph *g;
    struct flow *flow; /* by value */
    bool *need;        /* by value: a wanted value stands behind it */
    size_t n_value, n_node; /* before the pass */
    bool model;        /* the graph is a model, to be copied for other batches */
};

static void mark_needs(struct pass *p, size_t n_wanted, const lksi_value *wanted)
{
    struct lks_graph *g = p->g;
    for (size_t i = 0; i < n_wanted; i++)
        p->need[wanted[i]] = true;
    for (size_t i = 0; i < g->n_node; i++) {
        const struct lksi_gnode *n = &g->node[i];
        bool any = false;
        if (n->dead || n->call.op->stops_gradient)
            continue;
        for (int k = 0; k < n->call.n_in; k++)
            any = any || p->need[n->in[k]];
        for (int j = 0; any && j < n->call.n_out; j++)
            p->need[n->out[j]] |= n->call.out[j].dtype == LKSI_F32;
    }
}

/* The gradient of a value, LKSI_NONE where nothing flows. Its uses were met last to first. */
static lks_status gather(struct pass *p, lksi_value v, lksi_value *sum)
{
    struct flow *f = &p->flow[v];
    lks_status st;
    *sum = LKSI_NONE;
    if (f->n == 0)
        return LKS_OK;
    for (size_t i = 0; i < f->n / 2; i++) {
        lksi_value kept = f->part[i];
        f->part[i] = f->part[f->n - 1 - i];
        f->part[f->n - 1 - i] = kept;
    }
    st = lksi_graph_sum_uses(p->g, f->part, f->n, !p->model, sum);
    f->part[0] = *sum;
    f->n = 1;
    return st;
}

static lks_status flow_into(struct pass *p, lksi_value v, lksi_value part)
{
    struct flow *f = &p->flow[v];
    if (!lksi_grow(&f->part, &f->cap, f->n + 1, sizeof *f->part))
        return LKS_E_MEMORY;
    f->part[f->n++] = part;
    return LKS_OK;
}

static lks_status call_grad(struct pass *p, const struct lksi_gnode *n, const lksi_value *dout,
                            const bool *need, lksi_value *din)
{
    const struct lksi_backward g = {&p->g->builder, &n->call, n->in, n->out, dout, need, din};
    lks_status st;
    if (n->call.op->grad == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "%s: operator `%s` has no gradient", n->name,
                         n->call.op->name);
    p->g->scope = n->name;
    st = n->call.op->grad(&g);
    p->g->scope = NULL;
    return st == LKS_OK ? st : lksi_fail_prefix(st, "gradient of %s: ", n->name);
}

static lks_status differentiate(struct pass *p, size_t index)
{
    /* Copies, since adding operators moves the graph's arrays. */
    struct lksi_gnode n = p->g->node[index];
    lksi_value dout[LKSI_MAX_OUT], din[LKSI_MAX_IN];
    bool need[LKSI_MAX_IN] = {false};
    bool flows = false, wanted = false;
    lks_status st = LKS_OK;
    for (int k = 0; k < n.call.n_in; k++) {
        need[k] = p->need[n.in[k]] && n.call.in[k].dtype == LKSI_F32;
        din[k] = LKSI_NONE;
        wanted = wanted || need[k];
    }
    if (n.dead || n.call.op->stops_gradient || !wanted)
        return LKS_OK;
    for (int j = 0; j < n.call.n_out && st == LKS_OK; j++) {
        st = gather(p, n.out[j], &dout[j]);
        flows = flows || dout[j] != LKSI_NONE;
    }
    if (st != LKS_OK || !flows)
        return st;
    st = call_grad(p, &n, dout, need, din);
    for (int k = n.call.n_in; k-- > 0 && st == LKS_OK;)
        if (need[k] && din[k] != LKSI_NONE)
            st = flow_into(p, n.in[k], din[k]);
    return st;
}

void lksi_graph_reach(const struct lks_graph *g, size_t n, const lksi_value *values, bool gradients,
                      bool *reached)
{
    for (size_t v = 0; v < g->n_value; v++)
        reached[v] = false;
    for (size_t i = 0; i < n; i++)
        reached[values[i]] = true;
    for (size_t i = g->n_node; i-- > 0;) {
        const struct lksi_gnode *node = &g->node[i];
        bool used = false;
        for (int j = 0; j < node->call.n_out; j++)
            used = used || reached[node->out[j]];
        if (gradients && node->call.op->stops_gradient)
            used = false;
        for (int k = 0; used && k < node->call.n_in; k++)
            reached[node->in[k]] = true;
    }
}

static const char *name_of(const struct lks_graph *g, lksi_value v)
{
    const struct lksi_gvalue *value = &g->value[v];
    if (value->name != NULL)
        return value->name;
    return value->node >= 0 ? g->node[value->node].name : "a value";
}

/* What the pass has added and nobody needs, such as the whole sums that blocks replaced. */
static lks_status drop_unused(struct pass *p, size_t n_wanted, const lksi_value *grad)
{
    struct lks_graph *g = p->g;
    bool *used = lksi_alloc(g->n_value, sizeof *used);
    if (used == NULL)
        return LKS_E_MEMORY;
    for (size_t i = 0; i < n_wanted; i++)
        used[grad[i]] = true;
    for (size_t i = g->n_node; i-- > p->n_node;) {
        struct lksi_gnode *n = &g->node[i];
        n->dead = true;
        for (int j = 0; j < n->call.n_out; j++)
            n->dead = n->dead && !used[n->out[j]];
        for (int k = 0; !n->dead && k < n->call.n_in; k++)
            used[n->in[k]] = true;
    }
    free(used);
    return LKS_OK;
}

static lks_status collect(struct pass *p, lksi_value y, size_t n_wanted, const lksi_value *wanted,
                          lksi_value *grad)
{
    for (size_t i = 0; i < n_wanted; i++) {
        lks_status st = gather(p, wanted[i], &grad[i]);
        if (st != LKS_OK)
            return lksi_fail_prefix(st, "gradient of `%s`: ", name_of(p->g, wanted[i]));
        if (grad[i] == LKSI_NONE)
            return lksi_fail(LKS_E_ARGUMENT,
                             "`%s` does not reach %s`%s`, so it has no gradient; leave out its "
                             "layer, lead it there, or freeze it",
                             name_of(p->g, wanted[i]), p->model ? "" : "the loss ",
                             name_of(p->g, y));
    }
    return drop_unused(p, n_wanted, grad);
}

/* d(sum of seed * y) / d wanted[i] in grad[i]. */
static lks_status run(struct pass *p, lksi_value y, lksi_value seed, size_t n_wanted,
                      const lksi_value *wanted, lksi_value *grad)
{
    struct lks_graph *g = p->g;
    lks_status st = LKS_OK;
    p->flow = lksi_alloc(p->n_value, sizeof *p->flow);
    p->need = lksi_alloc(g->n_value, sizeof *p->need);
    if (p->flow == NULL || p->need == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    mark_needs(p, n_wanted, wanted);
    LKSI_TRY(flow_into(p, y, seed));
    for (size_t i = p->n_node; i-- > 0;)
        LKSI_TRY(differentiate(p, i));
    LKSI_TRY(collect(p, y, n_wanted, wanted, grad));
fail:
    for (size_t i = 0; p->flow != NULL && i < p->n_value; i++)
        free(p->flow[i].part);
    free(p->flow);
    free(p->need);
    return st;
}

/* The state that holds 1, where every pass begins. */
static lks_status find_one(struct lks_graph *g, lksi_value *one)
{
    const struct lksi_desc d = lksi_desc_make(LKSI_F32, 1, (int64_t)1);
    *one = lksi_graph_find(g, "one");
    return *one != LKSI_NONE ? LKS_OK
                             : lksi_graph_add_state(g, "one", &d, LKSI_NONE, 0, one);
}

/* Gradients that a caller may place get memory of their own: no view, no value from before the
 * pass, none that is another's too. */
static lks_status own(struct pass *p, size_t n_wanted, lksi_value *grad)
{
    struct lks_graph *g = p->g;
    bool *taken = lksi_alloc(g->n_value, sizeof *taken);
    lks_status st = taken != NULL ? LKS_OK : LKS_E_MEMORY;
    for (size_t i = 0; i < n_wanted && st == LKS_OK; i++) {
        const struct lksi_gvalue *v = &g->value[grad[i]];
        struct lksi_samples_attr all = {0, v->desc.dim[0]};
        if (v->kind == LKSI_VALUE_NODE && v->home == LKSI_NONE && v->node >= (int)p->n_node &&
            !taken[grad[i]])
            taken[grad[i]] = true;
        else
            st = lksi_graph_add_node(g, "copy", "samples", &all, 1, &grad[i], &grad[i]);
    }
    free(taken);
    return st;
}

lks_status lksi_graph_backward(struct lks_graph *g, lksi_value loss, size_t n_wanted,
                               const lksi_value *wanted, lksi_value *grad)
{
    struct pass p = {.g = g};
    lksi_value one;
    lks_status st;
    if (lksi_desc_count(&g->value[loss].desc) != 1)
        return lksi_fail(LKS_E_ARGUMENT, "a loss is one number; `%s` has %lld", name_of(g, loss),
                         (long long)lksi_desc_count(&g->value[loss].desc));
    st = find_one(g, &one);
    p.n_value = g->n_value;
    p.n_node = g->n_node;
    if (st == LKS_OK)
        st = run(&p, loss, one, n_wanted, wanted, grad);
    return st == LKS_OK ? own(&p, n_wanted, grad) : st;
}

lks_status lksi_graph_inner_gradient(struct lks_graph *g, lksi_value y, lksi_value x,
                                     lksi_value *dx)
{
    struct pass p = {.g = g, .model = true};
    lksi_value one, seed, made = LKSI_NONE;
    lks_status st = find_one(g, &one);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, "gradient_seed", "spread", NULL, 2, (lksi_value[]){one, y},
                                 &seed);
    if (st != LKS_OK)
        return st;
    p.n_value = g->n_value;
    p.n_node = g->n_node;
    st = run(&p, y, seed, 1, &x, &made);
    if (st == LKS_OK)
        *dx = made;
    return st;
}
