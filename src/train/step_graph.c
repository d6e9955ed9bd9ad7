/*
 * step_graph.c - the graph of one step: the model at a batch size, and behind it
 *   evaluation: `record`;
 *   training:   `record`, gradients into one arena, `guard` (rule 12), `sgd` over the whole arena,
 *               running statistics.
 * So forward ends with `record`, backward ends before `guard`, and the update is the rest.
 */
#include <stdlib.h>
#include <string.h>

#include "op/attr.h"
#include "train/train.h"

static lks_status add_state(struct lks_graph *g, const char *name, enum lksi_dtype dtype,
                            int64_t n, lksi_value *out)
{
    struct lksi_desc d = lksi_desc_make(dtype, 1, n);
    return lksi_graph_add_state(g, name, &d, LKSI_NONE, 0, out);
}

static lks_status add_input(struct lks_graph *g, const char *name, enum lksi_dtype dtype,
                            int64_t n, lksi_value *out)
{
    struct lksi_desc d = lksi_desc_make(dtype, 1, n);
    return lksi_graph_add_input(g, name, &d, false, out);
}

static lks_status add_record(struct lks_graph *g, lksi_value step)
{
    lksi_value in[4] = {g->loss, LKSI_NONE, step, LKSI_NONE}, out;
    lks_status st = lksi_graph_add_node(g, "hits", "batch_sum", NULL, 1, &g->hit, &in[1]);
    if (st == LKS_OK)
        st = add_state(g, "ring", LKSI_F32, 2 * LKSI_RING, &in[3]);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, "record", "record", NULL, 4, in, &out);
    return st;
}

/* Gradients of all parameters, each at its place in the arena `grads`. */
static lks_status add_gradients(struct lks_graph *g, const struct lks_trainer *t, lksi_value grads)
{
    lksi_value *wanted = lksi_alloc(g->n_param, sizeof *wanted);
    lksi_value *grad = lksi_alloc(g->n_param, sizeof *grad);
    lks_status st = wanted != NULL && grad != NULL ? LKS_OK : LKS_E_MEMORY;
    for (size_t i = 0; st == LKS_OK && i < g->n_param; i++)
        wanted[i] = g->param[i].value;
    if (st == LKS_OK)
        st = lksi_graph_backward(g, g->loss, g->n_param, wanted, grad);
    for (size_t i = 0; st == LKS_OK && i < g->n_param; i++) {
        g->value[grad[i]].home = grads;
        g->value[grad[i]].home_offset = t->offset[i];
    }
    free(wanted);
    free(grad);
    return st;
}

/* The running statistics take in the batch's, unless the guard raised its flag. */
static lks_status add_running(struct lks_graph *g, lksi_value flag)
{
    lks_status st = LKS_OK;
    for (size_t i = 0; i < g->n_norm && st == LKS_OK; i++) {
        struct lksi_norm n = g->norm[i];
        const struct lksi_call *call = &g->node[n.node].call;
        struct lksi_batch_norm_attr attr;
        lksi_value in[5] = {n.mean, n.variance, n.running_mean, n.running_var, flag}, out[2];
        memcpy(&attr, call->attr, sizeof attr);
        attr.count = lksi_desc_count(&call->in[0]) / lksi_desc_count(&call->out[1]);
        st = lksi_graph_add_node(g, g->node[n.node].name, "batch_norm_running", &attr, 5, in, out);
    }
    return st;
}

static lks_status add_update(struct lks_graph *g, lksi_value params, lksi_value grads,
                             lksi_value hyper, lksi_value step, int64_t arena)
{
    lksi_value momentum, flag, out[2];
    lks_status st = add_state(g, "momentum", LKSI_F32, arena, &momentum);
    if (st == LKS_OK)
        st = add_state(g, "flag", LKSI_I32, 1, &flag);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, "guard", "guard", NULL, 4,
                                 (lksi_value[]){grads, g->loss, step, flag}, &flag);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, "update", "sgd", NULL, 5,
                                 (lksi_value[]){params, grads, momentum, hyper, flag}, out);
    if (st == LKS_OK)
        st = add_running(g, flag);
    return st;
}

lksi_value lksi_data_input(const struct lks_graph *g)
{
    for (size_t v = 0; v < g->n_value; v++)
        if (g->value[v].kind == LKSI_VALUE_INPUT && (lksi_value)v != g->label &&
            (lksi_value)v != g->step)
            return (lksi_value)v;
    return LKSI_NONE;
}

lks_status lksi_step_graph(struct lks_graph **graph, const struct lks_trainer *t, uint32_t batch,
                           bool training, struct lksi_step_plan *ids)
{
    struct lks_graph *g = NULL;
    lksi_value params, grads;
    lks_status st = LKS_OK;
    LKSI_TRY(training ? lksi_graph_at_batch(&g, t->model, batch, t->params.leaf)
                      : lksi_graph_for_evaluation(&g, t->model, batch, t->params.leaf));
    ids->batch = batch;
    ids->training = training;
    ids->x = lksi_data_input(g);
    ids->label = g->label;
    ids->prob = g->prob;
    LKSI_TRY(add_state(g, "params", LKSI_F32, t->arena, &params));
    for (size_t i = 0; i < g->n_param; i++) {
        g->value[g->param[i].value].home = params;
        g->value[g->param[i].value].home_offset = t->offset[i];
    }
    LKSI_TRY(add_input(g, "hyper", LKSI_F32, 8, &ids->hyper));
    LKSI_TRY(lksi_graph_step_value(g, &ids->step));
    if (!training)
        g->value[g->prob].keep = true;
    for (size_t i = 0; training && i < t->n_keep; i++)
        g->value[t->keep[i]].keep = true;
    LKSI_TRY(lksi_graph_fuse(g)); /* before gradients: they use what the fused operators keep */
    LKSI_TRY(add_record(g, ids->step));
    if (training) {
        LKSI_TRY(add_state(g, "grads", LKSI_F32, t->arena, &grads));
        LKSI_TRY(add_gradients(g, t, grads));
        LKSI_TRY(add_update(g, params, grads, ids->hyper, ids->step, t->arena));
    }
    LKSI_TRY(lksi_graph_fuse(g));
    LKSI_TRY(lksi_graph_prune(g));
    *graph = g;
    return LKS_OK;
fail:
    lks_graph_destroy(&g);
    return st;
}
