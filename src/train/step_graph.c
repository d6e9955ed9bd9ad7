/*
 * step_graph.c - the graph of one step: the model at a batch size, and behind it
 *   evaluation: `record`;
 *   training:   `record`, gradients into one arena, guard and update (update_graph.c), running
 *               statistics.
 * So forward ends with `record`, backward ends before `guard`, and the update is the rest.
 */
#include <stdlib.h>
#include <string.h>

#include "contract/update.h"
#include "op/attr.h"
#include "train/train.h"

static lks_status add_state(struct lks_graph *g, const char *name, enum lksi_dtype dtype,
                            int64_t n, lksi_value *out)
{
    struct lksi_desc d = lksi_desc_make(dtype, 1, n);
    return lksi_graph_add_state(g, name, &d, LKSI_NONE, 0, out);
}

/* Right answers: one a position, summed over sample and batch. */
static lks_status add_hits(struct lks_graph *g, lksi_value *out)
{
    const struct lksi_sample_mean_attr sum = {.sum = 1};
    lksi_value hit = g->hit;
    lks_status st = LKS_OK;
    if (g->value[hit].desc.rank > 1)
        st = lksi_graph_add_node(g, "hits", "sample_mean", &sum, 1, &hit, &hit);
    return st == LKS_OK ? lksi_graph_add_node(g, "hits", "batch_sum", NULL, 1, &hit, out) : st;
}

size_t lksi_ring_width(const struct lks_graph *g)
{
    return g->n_loss + (g->hit != LKSI_NONE ? 1 : 0);
}

static lks_status add_record(struct lks_graph *g, lksi_value step)
{
    lksi_value in[2 + LKSI_MAX_LOSSES + 1] = {LKSI_NONE, step}, out;
    size_t width = lksi_ring_width(g);
    lks_status st = LKS_OK;
    for (size_t i = 0; i < g->n_loss; i++)
        in[2 + i] = g->losses[i].value;
    if (g->hit != LKSI_NONE)
        st = add_hits(g, &in[2 + g->n_loss]);
    if (st == LKS_OK)
        st = add_state(g, "ring", LKSI_F32, (int64_t)width * LKSI_RING, &in[0]);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, "record", "record", NULL, 2 + (int)width, in, &out);
    return st;
}

lks_status lksi_find_loss(const struct lks_graph *g, const char *name, lksi_value *out)
{
    size_t i = 0;
    while (name != NULL && i < g->n_loss && strcmp(g->losses[i].name, name) != 0)
        i++;
    if (i == g->n_loss)
        return lksi_fail(LKS_E_ARGUMENT, "an optimiser lowers the loss `%s`, which the graph lacks",
                         name);
    *out = g->losses[i].value;
    return LKS_OK;
}

/* Gradients of the optimiser's loss for its parameters, each at its place in the arena `grads`. */
static lks_status add_gradients(struct lks_graph *g, const struct lks_trainer *t,
                                const struct lksi_optimizer *k, lksi_value grads)
{
    lksi_value *wanted = lksi_alloc(k->n, sizeof *wanted);
    lksi_value *grad = lksi_alloc(k->n, sizeof *grad);
    lks_status st = wanted != NULL && grad != NULL ? LKS_OK : LKS_E_MEMORY;
    lksi_value loss = LKSI_NONE;
    if (st == LKS_OK)
        st = lksi_find_loss(g, k->o.loss, &loss);
    for (size_t i = 0; st == LKS_OK && i < k->n; i++)
        wanted[i] = g->param[t->order[k->first + i]].value;
    if (st == LKS_OK)
        st = lksi_graph_backward(g, loss, k->n, wanted, grad);
    for (size_t i = 0; st == LKS_OK && i < k->n; i++) {
        g->value[grad[i]].home = grads;
        g->value[grad[i]].home_offset = t->place[t->order[k->first + i]].offset;
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

lksi_value lksi_data_input(const struct lks_graph *g)
{
    for (size_t v = 0; v < g->n_value; v++)
        if (g->value[v].kind == LKSI_VALUE_INPUT && (lksi_value)v != g->label &&
            (lksi_value)v != g->step)
            return (lksi_value)v;
    return LKSI_NONE;
}

/* The samples come as bytes, or by their numbers out of a data set on the device, or both: the input
 * becomes an operator's output. The shape of a data set says what there is at least: one plan
 * serves data sets of all lengths. */
static lks_status add_samples(struct lks_graph *g, uint32_t batch, struct lksi_form form,
                              struct lksi_step_plan *ids)
{
    const struct lksi_desc which = lksi_desc_make(LKSI_I32, 1, (int64_t)batch);
    const struct lksi_desc x = g->value[ids->x].desc;
    struct lksi_desc bytes = lksi_desc_make(LKSI_I32, 1, (lksi_desc_count(&x) + 3) / 4);
    struct lksi_desc table = lksi_desc_make(LKSI_F32, 1, (int64_t)256 * form.channels);
    const char *op = !form.resident ? "pixels" : form.channels > 0 ? "take_pixels" : "take";
    struct lksi_pixels_attr attr;
    lksi_value in[3], input = ids->x;
    int n_in = 1;
    lks_status st = LKS_OK;
    memset(&attr, 0, sizeof attr);
    attr.rank = x.rank;
    attr.channels = form.channels;
    memcpy(attr.dim, x.dim, sizeof attr.dim);
    LKSI_TRY(lksi_graph_add_input(g, "data.samples", form.channels > 0 ? &bytes : &x, false,
                                  &in[0]));
    ids->x = in[0];
    if (form.resident) {
        LKSI_TRY(lksi_graph_add_input(g, "data.which", &which, false, &ids->which));
        in[n_in++] = ids->which;
    }
    if (form.channels > 0) {
        LKSI_TRY(lksi_graph_add_input(g, "data.table", &table, false, &in[n_in]));
        ids->table = in[n_in++];
    }
    LKSI_TRY(lksi_graph_make_input(g, input, op, form.channels > 0 ? &attr : NULL, n_in, in));
fail:
    return st;
}

lks_status lksi_step_graph(struct lks_graph **graph, const struct lks_trainer *t, uint32_t batch,
                           bool training, struct lksi_form form, struct lksi_step_plan *ids)
{
    struct lks_graph *g = NULL;
    const struct lksi_desc hyper =
        lksi_desc_make(LKSI_F32, 2, (int64_t)t->n_row, (int64_t)LKS_UPDATE_HYPER);
    lksi_value params, average = LKSI_NONE, grads, flag;
    bool averaged = !training && t->params.evaluate_ema;
    lks_status st = LKS_OK;
    LKSI_TRY(training ? lksi_graph_at_batch(&g, t->model, batch, t->params.leaf)
                      : lksi_graph_for_evaluation(&g, t->model, batch, t->params.leaf));
    ids->batch = batch;
    ids->training = training;
    ids->form = form;
    ids->x = lksi_data_input(g);
    ids->label = g->label;
    if (form.resident || form.channels > 0)
        LKSI_TRY(add_samples(g, batch, form, ids));
    ids->prob = g->prob;
    LKSI_TRY(add_state(g, "params", LKSI_F32, t->arena, &params));
    if (averaged)
        LKSI_TRY(add_state(g, "ema", LKSI_F32, t->trained, &average));
    for (size_t i = 0; i < g->n_param; i++) {
        struct lksi_gvalue *v = &g->value[g->param[i].value];
        v->home = averaged && t->place[i].optimizer >= 0 ? average : params;
        v->home_offset = t->place[i].offset;
    }
    LKSI_TRY(lksi_graph_add_input(g, "hyper", &hyper, false, &ids->hyper));
    LKSI_TRY(lksi_graph_step_value(g, &ids->step));
    ids->output = training ? LKSI_NONE : t->output;
    if (!training && g->prob != LKSI_NONE)
        g->value[g->prob].keep = true;
    if (ids->output != LKSI_NONE)
        g->value[ids->output].keep = true;
    for (size_t i = 0; training && i < t->n_keep; i++)
        g->value[t->keep[i]].keep = true;
    LKSI_TRY(lksi_graph_fuse(g)); /* before gradients: they use what the fused operators keep */
    LKSI_TRY(add_record(g, ids->step));
    if (training) {
        LKSI_TRY(add_state(g, "grads", LKSI_F32, t->trained, &grads));
        for (size_t k = 0; k < t->n_optimizer; k++)
            LKSI_TRY(add_gradients(g, t, &t->optimizer[k], grads));
        LKSI_TRY(lksi_add_update(g, t, params, grads, ids->hyper, ids->step, &flag));
        LKSI_TRY(add_running(g, flag));
    }
    LKSI_TRY(lksi_graph_fuse(g));
    LKSI_TRY(lksi_graph_prune(g));
    *graph = g;
    return LKS_OK;
fail:
    lks_graph_destroy(&g);
    return st;
}
