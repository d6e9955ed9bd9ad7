/*
 * trainer.c - creation of a trainer and access to its parameters.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fenv.h"
#include "base/hash.h"
#include "data/shuffle.h"
#include "op/attr.h"
#include "rt/api.h"
#include "train/train.h"

static lks_status check_params(const lks_graph *graph, const struct lks_trainer_params *p)
{
    uint32_t leaf = p->leaf;
    if (graph->loss == LKSI_NONE)
        return lksi_fail(LKS_E_ARGUMENT,
                         "the graph has no loss; add one, e.g. lks_graph_softmax_cross_entropy");
    if (graph->n_param == 0)
        return lksi_fail(LKS_E_ARGUMENT, "the graph has no parameters to train");
    if ((leaf & (leaf - 1)) != 0)
        return lksi_fail(LKS_E_ARGUMENT, "leaf is %u, expected a power of two", leaf);
    return LKS_OK;
}

/* One batched float input besides the labels: what a data set can feed. */
static lks_status check_inputs(struct lks_trainer *t)
{
    const struct lks_graph *g = t->model;
    size_t found = 0;
    for (size_t v = 0; v < g->n_value; v++) {
        if (g->value[v].kind != LKSI_VALUE_INPUT || (lksi_value)v == g->label ||
            (lksi_value)v == g->step)
            continue;
        t->sample = (size_t)lksi_desc_count(&g->value[v].desc);
        found++;
    }
    if (found != 1)
        return lksi_fail(LKS_E_ARGUMENT, "the graph has %zu inputs, a trainer feeds one", found);
    t->tokens = g->value[lksi_data_input(g)].desc.dtype == LKSI_I32;
    t->width = lksi_ring_width(g);
    t->output = LKSI_NONE;
    if (g->label != LKSI_NONE) {
        const struct lksi_desc *logits = &g->value[g->logits].desc;
        t->classes = logits->dim[logits->rank - 1];
        t->positions = (size_t)lksi_desc_count(&g->value[g->label].desc);
    }
    return LKS_OK;
}

/* What the bits depend on, as text: operators, attributes, shapes, initial values. */
static lks_status hash_graph(struct lks_trainer *t)
{
    const struct lks_graph *g = t->model;
    struct lksi_str s = {0};
    lks_status st;
    char shape[96];
    for (size_t i = 0; i < g->n_node; i++) {
        const struct lksi_gnode *n = &g->node[i];
        lksi_str_add(&s, "%s %s", n->name, n->call.op->name);
        for (size_t b = 0; b < n->call.op->attr_size; b++)
            lksi_str_add(&s, "%s%02x", b == 0 ? " " : "",
                         ((const unsigned char *)n->call.attr)[b]);
        for (int k = 0; k < n->call.n_in; k++)
            lksi_str_add(&s, " %d%s", (int)n->in[k], lksi_desc_text(&n->call.in[k], shape));
        lksi_str_add(&s, "\n");
    }
    for (size_t i = 0; i < g->n_param; i++)
        lksi_str_add(&s, "%s %d\n", g->param[i].name, (int)g->param[i].init);
    st = s.failed ? LKS_E_MEMORY : lksi_sha256_bytes(s.text, s.length, t->graph_sha256);
    free(s.text);
    return st;
}

/* Refuses layers whose random numbers would be the same. An operator of a gradient that draws a
 * layer's numbers again has another name, and is not asked. */
static lks_status take_streams(struct lks_trainer *t)
{
    uint32_t id;
    lks_status st = lksi_streams_add(&t->streams, LKSI_SHUFFLE_USE, LKSI_SHUFFLE_NAME, &id);
    for (size_t i = 0; i < t->model->n_node && st == LKS_OK; i++) {
        const struct lksi_gnode *n = &t->model->node[i];
        const char *use = NULL;
        uint32_t stream = 0;
        if (strcmp(n->call.op->name, "random") == 0) {
            stream = ((const struct lksi_random_attr *)n->call.attr)->stream;
            use = "noise";
        } else if (strcmp(n->call.op->name, "dropout") == 0) {
            stream = ((const struct lksi_dropout_attr *)n->call.attr)->stream;
            use = "dropout";
        }
        if (use != NULL && stream == lksi_stream_id(use, n->name))
            st = lksi_streams_add(&t->streams, use, n->name, &id);
    }
    return st;
}

static lks_status take_keep(struct lks_trainer *t)
{
    const struct lks_graph *g = t->model;
    size_t n = t->params.n_keep;
    if (n > 0 && t->params.keep == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "n_keep is %zu and keep is NULL", n);
    for (size_t i = 0; i < n; i++) {
        lks_value v = t->params.keep[i];
        if (v < 0 || (size_t)v >= g->n_value || g->value[v].desc.dtype != LKSI_F32)
            return lksi_fail(LKS_E_ARGUMENT, "keep[%zu]: %d is no float value of this graph", i,
                             (int)v);
    }
    if (n > 0 && (t->keep = lksi_alloc(n, sizeof *t->keep)) == NULL)
        return LKS_E_MEMORY;
    if (n > 0)
        memcpy(t->keep, t->params.keep, n * sizeof *t->keep);
    t->n_keep = n;
    t->params.keep = t->keep;
    return LKS_OK;
}

static lks_status set_seed_gradient(struct lks_trainer *t)
{
    static const float one = 1.0f;
    struct lksi_buf *buf;
    lks_status st = lksi_store_state(t->store, "one", sizeof one, &buf);
    return st != LKS_OK ? st : lksi_buf_write(buf, 0, &one, sizeof one, true);
}

lks_status lksi_trainer_describe(struct lks_trainer **trainer, const lks_graph *graph,
                                 const struct lks_trainer_params *params)
{
    lks_status st = check_params(graph, params);
    struct lks_trainer *t;
    if (st != LKS_OK)
        return st;
    t = lksi_alloc(1, sizeof *t);
    if (t == NULL)
        return LKS_E_MEMORY;
    t->params = *params;
    t->params.data = NULL; /* the caller's, and looked at by `create` only */
    t->params.batch = params->batch > 0 ? params->batch : 64;
    t->params.leaf = params->leaf > 0 ? params->leaf : 8;
    t->params.epochs = params->epochs > 0 ? params->epochs : 1;
    LKSI_TRY(lksi_graph_at_batch(&t->model, graph, 1, t->params.leaf));
    LKSI_TRY(check_inputs(t));
    LKSI_TRY(take_keep(t));
    LKSI_TRY(take_streams(t));
    LKSI_TRY(hash_graph(t));
    LKSI_TRY(lksi_groups_make(t));
    *trainer = t;
    return LKS_OK;
fail:
    lks_trainer_destroy(&t);
    return st;
}

/* The plan for whole batches of the data, if these are known, and the feeds. Whether the data may lie
 * on the device is known for sure only beside the plan's memory. */
static lks_status make_first_plan(struct lks_trainer *t, const struct lksi_dataset *data)
{
    struct lksi_step_plan *plan;
    bool resident = false;
    lks_status st = LKS_OK;
    if (data != NULL)
        LKSI_TRY(lksi_resident_decide(t, data, "training", &resident));
    LKSI_TRY(lksi_step_plan_get(t, t->params.batch, true,
                                data != NULL ? lksi_form_of(data, resident) : (struct lksi_form){0},
                                &plan));
    LKSI_TRY(lksi_feeds_create(t));
    if (!resident)
        return LKS_OK;
    LKSI_TRY(lksi_resident_decide(t, data, "training", &resident));
    if (resident) {
        t->to_reside = lksi_resident_bytes(data);
        return LKS_OK;
    }
    lksi_plan_destroy(&t->plan[0].plan);
    t->n_plan = 0;
    return lksi_step_plan_get(t, t->params.batch, true, lksi_form_of(data, false), &plan);
fail:
    return st;
}

static lks_status create(lks_trainer **trainer, const lks_graph *graph,
                         const struct lks_trainer_params *params)
{
    struct lks_trainer *t = NULL;
    lks_status st;
    if (graph == NULL || params->device == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_create: the graph or the device is NULL");
    LKSI_TRY(lksi_trainer_describe(&t, graph, params));
    if (params->data != NULL)
        LKSI_TRY(lksi_check_data(t, params->data, "training"));
    t->dev = lksi_device_dev(params->device);
    LKSI_TRY(lksi_store_create(&t->store, t->dev));
    LKSI_TRY(make_first_plan(t, params->data != NULL ? params->data->data : NULL));
    LKSI_TRY(set_seed_gradient(t));
    LKSI_TRY(lksi_update_init(t));
    LKSI_TRY(lksi_params_init(t));
    *trainer = t;
    return LKS_OK;
fail:
    lks_trainer_destroy(&t);
    return st;
}

lks_status lks_trainer_create(lks_trainer **trainer, const lks_graph *graph,
                              const struct lks_trainer_params *params)
{
    struct lksi_fenv env;
    lks_status st;
    if (trainer == NULL || params == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_create: an argument is NULL");
    lksi_fenv_enter(&env);
    st = create(trainer, graph, params);
    lksi_fenv_leave(&env);
    return st;
}

void lks_trainer_destroy(lks_trainer **trainer)
{
    struct lksi_fenv env;
    struct lks_trainer *t;
    if (trainer == NULL || *trainer == NULL)
        return;
    t = *trainer;
    lksi_fenv_enter(&env);
    if (t->dev != NULL)
        lksi_dev_wait(t->dev, 0);
    for (size_t i = 0; i < t->n_plan; i++)
        lksi_plan_destroy(&t->plan[i].plan);
    free(t->plan);
    lksi_feeds_destroy(t);
    lksi_residents_free(t);
    lksi_store_destroy(&t->store);
    lks_graph_destroy(&t->model);
    lksi_streams_free(&t->streams);
    lksi_groups_free(t);
    free(t->keep);
    free(t);
    *trainer = NULL;
    lksi_fenv_leave(&env);
}

lks_status lks_trainer_memory(const lks_trainer *t, struct lks_memory *memory)
{
    if (t == NULL || memory == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_memory: an argument is NULL");
    const struct lksi_memory *m = lksi_plan_memory(t->plan[0].plan);
    memory->parameters = m->state;
    memory->inputs = LKSI_FEEDS * lksi_buf_bytes(t->feed[0].buf);
    memory->values = m->values;
    memory->workspace = m->work;
    memory->data = lksi_residents_bytes(t) > 0 ? lksi_residents_bytes(t) : t->to_reside;
    memory->total = memory->parameters + memory->inputs + memory->values + memory->data;
    return LKS_OK;
}

uint64_t lks_trainer_steps(const lks_trainer *t)
{
    return t != NULL ? t->step : 0;
}

/* ---- parameters ---- */

static size_t param_count(const struct lks_trainer *t, size_t index)
{
    return (size_t)lksi_desc_count(&t->model->value[t->model->param[index].value].desc);
}

lks_status lks_trainer_parameter(const lks_trainer *t, size_t index, const char **name,
                                 size_t *count)
{
    if (t == NULL || name == NULL || count == NULL || index >= t->model->n_param)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_parameter: no parameter %zu", index);
    *name = t->model->param[index].name;
    *count = param_count(t, index);
    return LKS_OK;
}

static lks_status param_place(const struct lks_trainer *t, const char *name, size_t count,
                              bool trained, uint64_t *offset)
{
    for (size_t i = 0; i < t->model->n_param; i++) {
        if (strcmp(t->model->param[i].name, name) != 0)
            continue;
        if (param_count(t, i) != count)
            return lksi_fail(LKS_E_ARGUMENT, "parameter `%s` has %zu elements, not %zu", name,
                             param_count(t, i), count);
        if (trained && t->place[i].optimizer < 0)
            return lksi_fail(LKS_E_ARGUMENT, "parameter `%s` is frozen, so it has none", name);
        *offset = (uint64_t)t->place[i].offset * sizeof(float);
        return LKS_OK;
    }
    return lksi_fail(LKS_E_ARGUMENT, "there is no parameter `%s`", name);
}

/* The running statistic `name`, or NULL. */
static const struct lksi_gvalue *find_buffer(const struct lks_trainer *t, const char *name)
{
    for (size_t i = 0; i < t->model->n_buffer; i++) {
        const struct lksi_gvalue *v = &t->model->value[t->model->buffer[i].value];
        if (strcmp(v->name, name) == 0)
            return v;
    }
    return NULL;
}

static bool is_trained(const struct lks_trainer *t, const char *name)
{
    for (size_t i = 0; i < t->model->n_param; i++)
        if (strcmp(t->model->param[i].name, name) == 0)
            return t->place[i].optimizer >= 0;
    return false;
}

static lks_status access_param(struct lks_trainer *t, const char *arena, const char *name,
                               float *get, const float *set, size_t count)
{
    bool params = strcmp(arena, "params") == 0;
    const struct lksi_gvalue *own = params ? find_buffer(t, name) : NULL;
    int64_t elements = params ? t->arena : t->trained;
    struct lksi_buf *buf;
    uint64_t offset = 0;
    lks_status st;
    if (own != NULL && (size_t)lksi_desc_count(&own->desc) != count)
        return lksi_fail(LKS_E_ARGUMENT, "`%s` has %lld elements, not %zu", name,
                         (long long)lksi_desc_count(&own->desc), count);
    st = own != NULL ? lksi_store_state(t->store, name, count * sizeof(float), &buf)
                     : param_place(t, name, count, !params, &offset);
    if (st == LKS_OK && own == NULL)
        st = lksi_store_state(t->store, arena, (uint64_t)elements * sizeof(float), &buf);
    if (st != LKS_OK)
        return st;
    return set != NULL ? lksi_buf_write(buf, offset, set, count * sizeof(float), true)
                       : lksi_buf_read(buf, offset, get, count * sizeof(float));
}

lks_status lksi_param_read(struct lks_trainer *t, const char *arena, const char *name, float *data,
                           size_t count)
{
    return access_param(t, arena, name, data, NULL, count);
}

lks_status lksi_param_write(struct lks_trainer *t, const char *arena, const char *name,
                            const float *data, size_t count)
{
    lks_status st = access_param(t, arena, name, NULL, data, count);
    /* The average begins again at what is written. */
    if (st == LKS_OK && t->params.ema > 0 && strcmp(arena, "params") == 0 && is_trained(t, name))
        st = access_param(t, "ema", name, NULL, data, count);
    return st;
}

lks_status lks_trainer_get(lks_trainer *t, const char *name, float *data, size_t count)
{
    struct lksi_fenv env;
    lks_status st;
    if (t == NULL || name == NULL || data == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_get: an argument is NULL");
    lksi_fenv_enter(&env);
    st = lksi_param_read(t, "params", name, data, count);
    lksi_fenv_leave(&env);
    return st;
}

lks_status lks_trainer_set(lks_trainer *t, const char *name, const float *data, size_t count)
{
    struct lksi_fenv env;
    lks_status st;
    if (t == NULL || name == NULL || data == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_set: an argument is NULL");
    lksi_fenv_enter(&env);
    st = lksi_param_write(t, "params", name, data, count);
    lksi_fenv_leave(&env);
    return st;
}
