/*
 * graph.c - values and nodes; copies for a batch size. Layers are in layer_FAMILY.c, gradients in
 * autodiff.c, names in names.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

static lks_status builder_apply(struct lksi_builder *b, const char *op, const void *attr, int n_in,
                                const lksi_value *in, lksi_value *out)
{
    struct lks_graph *g = (struct lks_graph *)b;
    char name[256];
    snprintf(name, sizeof name, "%s.%s", g->scope != NULL ? g->scope : "graph", op);
    return lksi_graph_add_node(g, name, op, attr, n_in, in, out);
}

static const struct lksi_desc *builder_desc(struct lksi_builder *b, lksi_value v)
{
    return &((struct lks_graph *)b)->value[v].desc;
}

lks_status lks_graph_create(lks_graph **graph, const struct lks_graph_params *params)
{
    struct lks_graph *g;
    if (graph == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_graph_create: `graph` is NULL");
    if (params != NULL && params->init != LKS_INIT_GLOROT_UNIFORM &&
        params->init != LKS_INIT_HE_NORMAL && params->init != LKS_INIT_ZERO)
        return lksi_fail(LKS_E_ARGUMENT, "lks_graph_create: there is no init %d",
                         (int)params->init);
    g = lksi_alloc(1, sizeof *g);
    if (g == NULL)
        return LKS_E_MEMORY;
    g->builder.apply = builder_apply;
    g->builder.desc = builder_desc;
    g->batch = 1;
    g->leaf = 8;
    g->init = params != NULL ? params->init : LKS_INIT_GLOROT_UNIFORM;
    g->logits = g->label = g->loss = g->prob = g->hit = g->step = LKSI_NONE;
    *graph = g;
    return LKS_OK;
}

void lks_graph_destroy(lks_graph **graph)
{
    struct lks_graph *g;
    if (graph == NULL || *graph == NULL)
        return;
    g = *graph;
    lksi_graph_free_behind(g, &(struct lks_graph){0});
    free(g->name);
    free(g->value);
    free(g->node);
    free(g->param);
    free(g->buffer);
    free(g->norm);
    free(g);
    *graph = NULL;
}

static lks_status add_value(struct lks_graph *g, enum lksi_value_kind kind, const char *name,
                            const struct lksi_desc *desc, lksi_value *out)
{
    struct lksi_gvalue *v;
    char *copy = NULL;
    if (name != NULL && lksi_graph_find(g, name) != LKSI_NONE)
        return lksi_fail(LKS_E_ARGUMENT, "the name `%s` is used twice in the graph", name);
    if (!lksi_grow(&g->value, &g->cap_value, g->n_value + 1, sizeof *g->value))
        return LKS_E_MEMORY;
    if (name != NULL && !lksi_graph_room_for_name(g))
        return LKS_E_MEMORY;
    if (name != NULL && (copy = lksi_strdup(name)) == NULL)
        return LKS_E_MEMORY;
    v = &g->value[g->n_value];
    memset(v, 0, sizeof *v);
    v->kind = kind;
    v->name = copy;
    v->desc = *desc;
    v->node = -1;
    v->home = LKSI_NONE;
    *out = (lksi_value)g->n_value++;
    if (name != NULL)
        lksi_graph_enter_name(g, *out);
    return LKS_OK;
}

lks_status lksi_graph_add_input(struct lks_graph *g, const char *name,
                                const struct lksi_desc *desc, bool batched, lksi_value *out)
{
    lksi_value v = LKSI_NONE;
    lks_status st = add_value(g, LKSI_VALUE_INPUT, name, desc, &v);
    if (st != LKS_OK)
        return st;
    g->value[v].batched = batched;
    *out = v;
    return LKS_OK;
}

lks_status lksi_graph_step_value(struct lks_graph *g, lksi_value *out)
{
    struct lksi_desc d = lksi_desc_make(LKSI_I32, 1, (int64_t)LKSI_STEP_WORDS);
    if (g->step == LKSI_NONE) {
        lks_status st = lksi_graph_add_input(g, "step", &d, false, &g->step);
        if (st != LKS_OK)
            return st;
    }
    *out = g->step;
    return LKS_OK;
}

lks_status lksi_graph_add_state(struct lks_graph *g, const char *name,
                                const struct lksi_desc *desc, lksi_value home, int64_t offset,
                                lksi_value *out)
{
    lksi_value v = LKSI_NONE;
    lks_status st = add_value(g, LKSI_VALUE_STATE, name, desc, &v);
    if (st != LKS_OK)
        return st;
    g->value[v].home = home;
    g->value[v].home_offset = offset;
    *out = v;
    return LKS_OK;
}

/* An output that overwrites an input lives where the input lives. */
static void place_output(struct lks_graph *g, const struct lksi_gnode *n, int j)
{
    int alias = n->call.op->view && j == 0 ? 1 : n->call.op->alias[j];
    struct lksi_gvalue *v = &g->value[n->out[j]];
    if (alias > 0) {
        lksi_value source = n->in[alias - 1];
        v->home = g->value[source].home != LKSI_NONE ? g->value[source].home : source;
        v->home_offset = g->value[source].home_offset;
    }
}

static lks_status add_node(struct lks_graph *g, const char *name, const char *op_name,
                           const void *attr, int n_in, const lksi_value *in, lksi_value *out)
{
    lks_status st = LKS_OK;
    const struct lksi_op *op = lksi_op_find(op_name);
    struct lksi_gnode *n;
    struct lksi_desc descs[LKSI_MAX_IN];
    void *copy = NULL;
    char *name_copy = NULL;
    if (op == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "there is no operator `%s`", op_name);
    if (n_in > LKSI_MAX_IN)
        return lksi_fail(LKS_E_ARGUMENT, "operator `%s`: %d inputs are too many", op_name, n_in);
    for (int i = 0; i < n_in; i++) {
        if (in[i] < 0 || (size_t)in[i] >= g->n_value)
            return lksi_fail(LKS_E_ARGUMENT, "operator `%s`: input %d is no value of this graph",
                             op_name, i);
        descs[i] = g->value[in[i]].desc;
    }
    if (!lksi_grow(&g->node, &g->cap_node, g->n_node + 1, sizeof *g->node))
        return LKS_E_MEMORY;
    copy = lksi_alloc(1, op->attr_size);
    name_copy = lksi_strdup(name != NULL ? name : op_name);
    if (copy == NULL || name_copy == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    if (op->attr_size > 0 && attr != NULL)
        memcpy(copy, attr, op->attr_size);
    n = &g->node[g->n_node];
    memset(n, 0, sizeof *n);
    st = lksi_call_make(&n->call, op, copy, g->leaf, n_in, descs);
    if (st != LKS_OK) {
        if (strcmp(name_copy, op_name) != 0) /* the operator names itself */
            lksi_fail_prefix(st, "%s: ", name_copy);
        goto fail;
    }
    n->name = name_copy;
    for (int i = 0; i < n_in; i++)
        n->in[i] = in[i];
    for (int j = 0; j < n->call.n_out; j++) {
        LKSI_TRY(add_value(g, LKSI_VALUE_NODE, NULL, &n->call.out[j], &n->out[j]));
        g->value[n->out[j]].node = (int)g->n_node;
        place_output(g, n, j);
    }
    for (int j = 0; j < n->call.n_out; j++)
        out[j] = n->out[j];
    g->n_node++;
    return LKS_OK;
fail:
    free(copy);
    free(name_copy);
    return st;
}

lks_status lksi_graph_add_node(struct lks_graph *g, const char *name, const char *op,
                               const void *attr, int n_in, const lksi_value *in, lksi_value *out)
{
    LKSI_RETURN_WHOLE(g, add_node(g, name, op, attr, n_in, in, out));
}

lks_status lksi_graph_make_input(struct lks_graph *g, lksi_value x, const char *op,
                                 const void *attr, int n_in, const lksi_value *in)
{
    lksi_value made[LKSI_MAX_OUT];
    lks_status st = lksi_graph_add_node(g, op, op, attr, n_in, in, made);
    if (st != LKS_OK)
        return st;
    size_t last = g->n_node - 1;
    struct lksi_gnode node = g->node[last];
    memmove(&g->node[1], &g->node[0], last * sizeof g->node[0]);
    g->node[0] = node;
    g->node[0].out[0] = x;
    for (size_t v = 0; v < g->n_value; v++)
        if (g->value[v].node >= 0)
            g->value[v].node++;
    g->value[made[0]].node = -1; /* takes no memory, since nobody makes or reads it */
    g->value[x].kind = LKSI_VALUE_NODE;
    g->value[x].node = 0;
    for (size_t i = 0; i < g->n_norm; i++)
        g->norm[i].node++;
    return LKS_OK;
}

/* The batch normalisation of the model whose mean this is, or NULL. */
static const struct lksi_norm *norm_of_mean(const struct lks_graph *model, lksi_value mean)
{
    for (size_t i = 0; i < model->n_norm; i++)
        if (model->node[model->norm[i].node].out[1] == mean)
            return &model->norm[i];
    return NULL;
}

/* `op` of `in` in place of node n, which has more outputs: those only training makes. */
static lks_status in_place_of(struct lks_graph *g, const struct lksi_gnode *n, const char *op,
                              int n_in, const lksi_value *in)
{
    lksi_value made[LKSI_MAX_OUT];
    lks_status st = lksi_graph_add_node(g, n->name, op, n->call.attr, n_in, in, made);
    for (int j = 1; j < n->call.n_out && st == LKS_OK; j++)
        st = add_value(g, LKSI_VALUE_NODE, NULL, &n->call.out[j], &made[j]);
    return st;
}

/* Node `index` of the model in a copy for an evaluation. Values that only training makes keep their
 * numbers and stay without memory. */
static lks_status evaluation_node(struct lks_graph *g, const struct lks_graph *model, size_t index)
{
    const struct lksi_gnode *n = &model->node[index];
    const struct lksi_norm *norm = NULL, *inner = NULL;
    lksi_value made[LKSI_MAX_OUT];
    for (size_t i = 0; i < model->n_norm && norm == NULL; i++)
        if (model->norm[i].node == index)
            norm = &model->norm[i];
    if (norm == NULL && n->call.op->evaluation != NULL)
        return lksi_graph_add_node(g, n->name, n->call.op->evaluation, NULL, 1, n->in, made);
    if (norm != NULL)
        return in_place_of(g, n, "batch_norm_infer", 5,
                           (lksi_value[]){n->in[0], n->in[1], n->in[2], norm->running_mean,
                                          norm->running_var});
    if (strcmp(n->call.op->name, "batch_norm_grad") == 0) /* of a gradient inside the network */
        inner = norm_of_mean(model, n->in[2]);
    if (inner != NULL)
        return in_place_of(g, n, "batch_norm_infer_grad", 3,
                           (lksi_value[]){n->in[1], n->in[4], inner->running_var});
    return lksi_graph_add_node(g, n->name, n->call.op->name, n->call.attr, n->call.n_in, n->in,
                               made);
}

static bool copy_array(void **to, size_t *n_to, size_t *cap, const void *from, size_t n, size_t size)
{
    if (n == 0)
        return true;
    *to = lksi_alloc(n, size);
    if (*to == NULL)
        return false;
    memcpy(*to, from, n * size);
    *n_to = *cap = n;
    return true;
}

static lks_status copy_at(struct lks_graph **copy, const struct lks_graph *model, uint32_t batch,
                          uint32_t leaf, bool evaluation)
{
    lks_status st = LKS_OK;
    struct lks_graph *g = NULL;
    LKSI_TRY(lks_graph_create(&g, NULL));
    g->batch = batch;
    g->leaf = leaf;
    g->init = model->init;
    g->logits = model->logits;
    g->label = model->label;
    g->loss = model->loss;
    g->prob = model->prob;
    g->hit = model->hit;
    g->step = model->step;
    for (size_t i = 0; i < model->n_loss; i++) {
        g->losses[i] = model->losses[i];
        g->losses[i].name = lksi_strdup(model->losses[i].name);
        g->n_loss = i + 1;
        if (g->losses[i].name == NULL) {
            st = LKS_E_MEMORY;
            goto fail;
        }
    }
    /* Values keep their numbers: a node's outputs were made when it was added. */
    size_t next_node = 0;
    while (g->n_value < model->n_value) {
        const struct lksi_gvalue *v = &model->value[g->n_value];
        lksi_value made[LKSI_MAX_OUT];
        if (v->kind == LKSI_VALUE_NODE) {
            const struct lksi_gnode *n = &model->node[next_node];
            if (evaluation)
                LKSI_TRY(evaluation_node(g, model, next_node));
            else
                LKSI_TRY(lksi_graph_add_node(g, n->name, n->call.op->name, n->call.attr,
                                             n->call.n_in, n->in, made));
            g->node[next_node++].dead = n->dead;
            continue;
        }
        struct lksi_desc desc = v->desc;
        if (v->batched)
            desc.dim[0] = batch;
        LKSI_TRY(add_value(g, v->kind, v->name, &desc, made));
        g->value[made[0]].batched = v->batched;
        g->value[made[0]].home = v->home;
        g->value[made[0]].home_offset = v->home_offset;
    }
    for (size_t i = 0; i < model->n_param; i++) {
        if (!lksi_grow(&g->param, &g->cap_param, i + 1, sizeof *g->param)) {
            st = LKS_E_MEMORY;
            goto fail;
        }
        g->param[i] = model->param[i];
        g->param[i].name = lksi_strdup(model->param[i].name);
        g->n_param = i + 1;
        if (g->param[i].name == NULL) {
            st = LKS_E_MEMORY;
            goto fail;
        }
    }
    if (!copy_array((void **)&g->buffer, &g->n_buffer, &g->cap_buffer, model->buffer,
                    model->n_buffer, sizeof *g->buffer) ||
        !copy_array((void **)&g->norm, &g->n_norm, &g->cap_norm, model->norm, model->n_norm,
                    sizeof *g->norm)) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    *copy = g;
    return LKS_OK;
fail:
    lks_graph_destroy(&g);
    return st;
}

lks_status lksi_graph_at_batch(struct lks_graph **copy, const struct lks_graph *model,
                               uint32_t batch, uint32_t leaf)
{
    return copy_at(copy, model, batch, leaf, false);
}

lks_status lksi_graph_for_evaluation(struct lks_graph **copy, const struct lks_graph *model,
                                     uint32_t batch, uint32_t leaf)
{
    return copy_at(copy, model, batch, leaf, true);
}

lks_status lks_graph_shape(const lks_graph *g, lks_value value, int *rank, int64_t *dims)
{
    if (g == NULL || rank == NULL || dims == NULL || value < 0 || (size_t)value >= g->n_value)
        return lksi_fail(LKS_E_ARGUMENT, "lks_graph_shape: no value %d in this graph", (int)value);
    const struct lksi_desc *d = &g->value[value].desc;
    *rank = d->rank - 1;
    for (int i = 1; i < d->rank; i++)
        dims[i - 1] = d->dim[i];
    return LKS_OK;
}

size_t lks_graph_parameter_count(const lks_graph *g)
{
    return g != NULL ? g->n_param : 0;
}

int64_t lks_graph_scalar_count(const lks_graph *g)
{
    int64_t n = 0;
    for (size_t i = 0; g != NULL && i < g->n_param; i++)
        n += lksi_desc_count(&g->value[g->param[i].value].desc);
    return n;
}
