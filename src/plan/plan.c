/*
 * plan.c - makes a plan of a graph: stages in order, their memory, their kernels; and runs it.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

struct lksi_plan {
    struct lks_graph *graph;
    struct lksi_store *store;
    struct lksi_dev *dev;
    struct lksi_program *program;
    struct lksi_stage *stage;
    size_t n_stage;
    size_t *stage_node; /* node of each stage */
    struct lksi_slot *slot; /* values first, then workspaces */
    size_t n_slot, *work_slot; /* work_slot[stage * LKSI_MAX_WORK + i] */
    uint64_t *chunk_bytes;
    size_t n_chunk;
    struct lksi_buf **value_buf; /* by value: parts and whole buffers */
    bool *value_owned;
    struct lksi_buf **work_buf; /* by stage and workspace, owned parts */
    struct lksi_memory memory;
};

static uint64_t value_bytes(const struct lks_graph *g, lksi_value v)
{
    return 4u * (uint64_t)lksi_desc_count(&g->value[v].desc);
}

static lksi_value root_of(const struct lks_graph *g, lksi_value v)
{
    while (g->value[v].home != LKSI_NONE)
        v = g->value[v].home;
    return v;
}

/* ---- stages ---- */

struct struck_query {
    const struct lksi_store *store;
    const struct lksi_op *op;
};

static bool is_struck(void *user, const struct lksi_schedule *s)
{
    const struct struck_query *q = user;
    return lksi_store_struck(q->store, q->op, s);
}

/* What tuning says, unless it is not asked or does not serve. */
static bool pick_stage(struct lksi_plan *p, struct lksi_stage *stage, const struct lksi_call *call)
{
    struct lksi_pick pick;
    return lksi_tuning_find(lksi_store_tuning(p->store), call, &pick) &&
           !lksi_store_struck(p->store, call->op, pick.schedule) &&
           lksi_stage_pick(stage, p->dev, call, &pick);
}

static lks_status choose_stages(struct lksi_plan *p, const char *wanted)
{
    const struct lks_graph *g = p->graph;
    p->n_stage = 0;
    for (size_t i = 0; i < g->n_node; i++) {
        struct struck_query query = {p->store, g->node[i].call.op};
        if (g->node[i].dead || g->node[i].call.op->view)
            continue;
        if (wanted == NULL && pick_stage(p, &p->stage[p->n_stage], &g->node[i].call)) {
            p->stage_node[p->n_stage++] = i;
            continue;
        }
        lks_status st = lksi_stage_choose(&p->stage[p->n_stage], p->dev, &g->node[i].call, wanted,
                                          is_struck, &query);
        if (st != LKS_OK)
            return lksi_fail_prefix(st, "%s: ", g->node[i].name);
        p->stage_node[p->n_stage++] = i;
    }
    return LKS_OK;
}

/* ---- memory ---- */

static void live(struct lksi_plan *p, lksi_value v, int node)
{
    struct lksi_slot *s = &p->slot[root_of(p->graph, v)];
    if (s->first > node)
        s->first = node;
    if (s->last < node)
        s->last = node;
}

static void lifetimes(struct lksi_plan *p)
{
    const struct lks_graph *g = p->graph;
    for (size_t v = 0; v < g->n_value; v++)
        p->slot[v] = (struct lksi_slot){.first = (int)g->n_node, .last = -1};
    for (size_t i = 0; i < g->n_node; i++) {
        const struct lksi_gnode *n = &g->node[i];
        for (int k = 0; !n->dead && k < n->call.n_in; k++)
            live(p, n->in[k], (int)i);
        for (int j = 0; !n->dead && j < n->call.n_out; j++) {
            live(p, n->out[j], (int)i);
            if (g->value[n->out[j]].keep)
                live(p, n->out[j], (int)g->n_node);
        }
    }
}

static lks_status lay_out(struct lksi_plan *p)
{
    const struct lks_graph *g = p->graph;
    const struct lksi_limits *limits = lksi_dev_limits(p->dev);
    struct lksi_slot *packed = NULL;
    size_t *from = NULL, n = 0;
    uint64_t align = limits->base_align > 64 ? limits->base_align : 64;
    lks_status st = LKS_OK;
    p->n_slot = g->n_value;
    lifetimes(p);
    memset(&p->memory, 0, sizeof p->memory);
    for (size_t v = 0; v < g->n_value; v++) {
        const struct lksi_gvalue *value = &g->value[v];
        if (value->home != LKSI_NONE)
            continue;
        if (value->kind == LKSI_VALUE_STATE)
            p->memory.state += value_bytes(g, (lksi_value)v);
        else if (value->kind == LKSI_VALUE_INPUT)
            p->memory.input += value_bytes(g, (lksi_value)v);
        else if (p->slot[v].last >= 0)
            p->slot[v].bytes = value_bytes(g, (lksi_value)v);
    }
    for (size_t s = 0; s < p->n_stage; s++)
        for (int w = 0; w < p->stage[s].recipe.n_work; w++) {
            int node = (int)p->stage_node[s];
            p->work_slot[s * LKSI_MAX_WORK + (size_t)w] = p->n_slot;
            p->slot[p->n_slot++] =
                (struct lksi_slot){.bytes = p->stage[s].recipe.work_bytes[w], .first = node,
                                   .last = node};
            if (p->stage[s].recipe.work_bytes[w] > p->memory.work)
                p->memory.work = p->stage[s].recipe.work_bytes[w];
        }
    packed = lksi_alloc(p->n_slot, sizeof *packed);
    from = lksi_alloc(p->n_slot, sizeof *from);
    if (packed == NULL || from == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    for (size_t i = 0; i < p->n_slot; i++)
        if (p->slot[i].bytes > 0) {
            packed[n] = p->slot[i];
            from[n++] = i;
        }
    LKSI_TRY(lksi_layout(packed, n, align, limits->max_alloc, p->chunk_bytes, &p->n_chunk));
    for (size_t i = 0; i < n; i++)
        p->slot[from[i]] = packed[i];
    for (size_t c = 0; c < p->n_chunk; c++)
        p->memory.values += p->chunk_bytes[c];
    p->memory.chunks = p->n_chunk;
    p->memory.total = p->memory.state + p->memory.input + p->memory.values;
    if (p->memory.total > limits->memory)
        st = lksi_fail(LKS_E_MEMORY,
                       "a step of batch %u needs %.1f MiB (parameters and optimiser %.1f, inputs "
                       "%.1f, values %.1f) and %s has %.1f MiB; use a smaller batch",
                       g->batch, (double)p->memory.total / 1048576,
                       (double)p->memory.state / 1048576, (double)p->memory.input / 1048576,
                       (double)p->memory.values / 1048576, limits->name,
                       (double)limits->memory / 1048576);
fail:
    free(packed);
    free(from);
    return st;
}

static lks_status part_of(struct lksi_buf **buf, bool *owned, struct lksi_buf *whole,
                          uint64_t offset, uint64_t bytes)
{
    if (offset == 0 && lksi_buf_bytes(whole) == bytes) {
        *buf = whole;
        return LKS_OK;
    }
    *owned = true;
    return lksi_buf_part(buf, whole, offset, bytes);
}

static lks_status slot_buf(struct lksi_plan *p, size_t slot, uint64_t bytes, struct lksi_buf **buf,
                           bool *owned)
{
    const struct lksi_slot *s = &p->slot[slot];
    struct lksi_buf *chunk;
    lks_status st = lksi_store_chunk(p->store, s->chunk, p->chunk_bytes[s->chunk], &chunk);
    return st != LKS_OK ? st : part_of(buf, owned, chunk, s->offset, bytes);
}

static lks_status allocate_value(struct lksi_plan *p, lksi_value v)
{
    const struct lks_graph *g = p->graph;
    const struct lksi_gvalue *value = &g->value[v];
    lksi_value root = root_of(g, v);
    uint64_t bytes = value_bytes(g, v);
    struct lksi_buf *whole;
    lks_status st;
    if (g->value[root].kind == LKSI_VALUE_INPUT)
        return LKS_OK;
    if (g->value[root].kind == LKSI_VALUE_STATE) {
        st = lksi_store_state(p->store, g->value[root].name, value_bytes(g, root), &whole);
        if (st != LKS_OK)
            return st;
        return part_of(&p->value_buf[v], &p->value_owned[v], whole,
                       4u * (uint64_t)value->home_offset, bytes);
    }
    if (p->slot[root].bytes == 0)
        return LKS_OK; /* nobody uses it */
    return slot_buf(p, (size_t)root, bytes, &p->value_buf[v], &p->value_owned[v]);
}

static lks_status allocate(struct lksi_plan *p)
{
    for (size_t v = 0; v < p->graph->n_value; v++) {
        lks_status st = allocate_value(p, (lksi_value)v);
        if (st != LKS_OK)
            return st;
    }
    for (size_t s = 0; s < p->n_stage; s++)
        for (int w = 0; w < p->stage[s].recipe.n_work; w++) {
            size_t i = s * LKSI_MAX_WORK + (size_t)w;
            bool owned = false;
            lks_status st = slot_buf(p, p->work_slot[i], p->stage[s].recipe.work_bytes[w],
                                     &p->stage[s].work[w], &owned);
            if (st != LKS_OK)
                return st;
            p->work_buf[i] = owned ? p->stage[s].work[w] : NULL;
        }
    return LKS_OK;
}

/* An input through a view is the input itself. */
static struct lksi_buf *buf_of(const struct lksi_plan *p, lksi_value v)
{
    if (p->value_buf[v] == NULL && p->graph->value[root_of(p->graph, v)].kind == LKSI_VALUE_INPUT)
        v = root_of(p->graph, v);
    return p->value_buf[v];
}

static lks_status bind_stage(struct lksi_plan *p, size_t s)
{
    const struct lksi_gnode *n = &p->graph->node[p->stage_node[s]];
    bool complete = true;
    for (int k = 0; k < n->call.n_in; k++) {
        p->stage[s].in[k] = buf_of(p, n->in[k]);
        complete = complete && p->stage[s].in[k] != NULL;
    }
    for (int j = 0; j < n->call.n_out; j++)
        p->stage[s].out[j] = buf_of(p, n->out[j]);
    return complete ? lksi_stage_bind(&p->stage[s]) : LKS_OK;
}

/* ---- creation ---- */

static lks_status admit_all(struct lksi_plan *p, bool *all_right)
{
    *all_right = true;
    for (size_t s = 0; s < p->n_stage; s++) {
        const struct lksi_stage *stage = &p->stage[s];
        bool right;
        if (lksi_store_struck(p->store, stage->call.op, stage->schedule))
            continue;
        lks_status st = lksi_admit(stage, p->program, &right);
        if (st == LKS_OK && !right) {
            *all_right = false;
            if (stage->pick.schedule != NULL)
                lksi_tuning_refuse(lksi_store_tuning(p->store), &stage->pick);
            else
                st = lksi_store_strike(p->store, stage->call.op, stage->schedule);
        }
        if (st != LKS_OK)
            return st;
    }
    return LKS_OK;
}

static void close_stages(struct lksi_plan *p)
{
    for (size_t s = 0; s < p->n_stage; s++)
        lksi_stage_close(&p->stage[s]);
    lksi_program_destroy(&p->program);
}

static bool is_tuned(const struct lksi_plan *p)
{
    for (size_t s = 0; s < p->n_stage; s++)
        if (p->stage[s].pick.schedule != NULL)
            return true;
    return false;
}

/* Builds the kernels. If they do not build, and tables of tuning chose some of them, these are not
 * asked again. */
static lks_status build_kernels(struct lksi_plan *p, const struct lksi_plan_params *params,
                                bool *settled)
{
    lks_status st = lksi_stages_build(&p->program, p->dev, p->stage, p->n_stage, params->progress);
    *settled = st == LKS_OK;
    if (st != LKS_E_DEVICE || !is_tuned(p))
        return st;
    lksi_log(LKS_LOG_WARNING, "kernels do not build with what tuning chose, and are built without: %s",
             lks_error_message());
    lksi_tuning_stop(lksi_store_tuning(p->store));
    return LKS_OK;
}

static lks_status build(struct lksi_plan *p, const struct lksi_plan_params *params)
{
    bool settled = false;
    lks_status st = LKS_OK;
    while (st == LKS_OK && !settled) {
        close_stages(p);
        LKSI_TRY(choose_stages(p, params->plain ? "plain" : NULL));
        LKSI_TRY(lay_out(p)); /* what does not fit is not built */
        LKSI_TRY(build_kernels(p, params, &settled));
        if (settled && !params->no_admission && !lksi_dev_is_ref(p->dev))
            LKSI_TRY(admit_all(p, &settled));
    }
fail:
    return st;
}

static bool allocate_arrays(struct lksi_plan *p)
{
    size_t n = p->graph->n_node, v = p->graph->n_value;
    p->stage = lksi_alloc(n, sizeof *p->stage);
    p->stage_node = lksi_alloc(n, sizeof *p->stage_node);
    p->slot = lksi_alloc(v + n * LKSI_MAX_WORK, sizeof *p->slot);
    p->chunk_bytes = lksi_alloc(v + n * LKSI_MAX_WORK, sizeof *p->chunk_bytes);
    p->work_slot = lksi_alloc(n * LKSI_MAX_WORK, sizeof *p->work_slot);
    p->work_buf = lksi_alloc(n * LKSI_MAX_WORK, sizeof *p->work_buf);
    p->value_buf = lksi_alloc(v, sizeof *p->value_buf);
    p->value_owned = lksi_alloc(v, sizeof *p->value_owned);
    return p->stage != NULL && p->stage_node != NULL && p->slot != NULL &&
           p->chunk_bytes != NULL && p->work_slot != NULL && p->work_buf != NULL &&
           p->value_buf != NULL && p->value_owned != NULL;
}

/* An empty plan that owns *graph. */
static lks_status begin(struct lksi_plan **plan, struct lks_graph **graph,
                        struct lksi_store *store)
{
    struct lksi_plan *p = lksi_alloc(1, sizeof *p);
    if (p == NULL) {
        lks_graph_destroy(graph);
        return LKS_E_MEMORY;
    }
    p->graph = *graph;
    *graph = NULL;
    p->store = store;
    p->dev = lksi_store_dev(store);
    if (!allocate_arrays(p)) {
        lksi_plan_destroy(&p);
        return LKS_E_MEMORY;
    }
    *plan = p;
    return LKS_OK;
}

lks_status lksi_plan_create(struct lksi_plan **plan, struct lks_graph **graph,
                            const struct lksi_plan_params *params)
{
    struct lksi_plan *p = NULL;
    lks_status st = begin(&p, graph, params->store);
    if (st != LKS_OK)
        return st;
    LKSI_TRY(build(p, params));
    LKSI_TRY(allocate(p));
    for (size_t s = 0; s < p->n_stage; s++)
        LKSI_TRY(bind_stage(p, s));
    for (size_t s = 0; s < p->n_stage; s++)
        lksi_log(LKS_LOG_DEBUG, "stage %zu: %s, %s (%s), %d launches", s,
                 lksi_plan_stage_name(p, s), p->stage[s].call.op->name,
                 p->stage[s].schedule != NULL ? p->stage[s].schedule->name : "ref",
                 p->stage[s].recipe.n_launch);
    *plan = p;
    return LKS_OK;
fail:
    lksi_plan_destroy(&p);
    return st;
}

lks_status lksi_plan_measure(struct lksi_memory *memory, struct lks_graph **graph,
                             struct lksi_store *store)
{
    struct lksi_plan *p = NULL;
    lks_status st = begin(&p, graph, store);
    if (st != LKS_OK)
        return st;
    st = choose_stages(p, NULL);
    if (st == LKS_OK)
        st = lay_out(p);
    if (st == LKS_OK)
        *memory = p->memory;
    lksi_plan_destroy(&p);
    return st;
}

void lksi_plan_destroy(struct lksi_plan **plan)
{
    struct lksi_plan *p = *plan;
    if (p == NULL)
        return;
    if (p->stage != NULL)
        close_stages(p);
    for (size_t v = 0; p->value_buf != NULL && p->value_owned != NULL && v < p->graph->n_value; v++)
        if (p->value_owned[v])
            lksi_buf_destroy(&p->value_buf[v]);
    for (size_t i = 0; p->work_buf != NULL && i < p->graph->n_node * LKSI_MAX_WORK; i++)
        lksi_buf_destroy(&p->work_buf[i]);
    free(p->stage);
    free(p->stage_node);
    free(p->slot);
    free(p->chunk_bytes);
    free(p->work_slot);
    free(p->work_buf);
    free(p->value_buf);
    free(p->value_owned);
    lks_graph_destroy(&p->graph);
    free(p);
    *plan = NULL;
}

/* ---- use ---- */

const struct lks_graph *lksi_plan_graph(const struct lksi_plan *p)
{
    return p->graph;
}

const struct lksi_memory *lksi_plan_memory(const struct lksi_plan *p)
{
    return &p->memory;
}

lks_status lksi_plan_set_input(struct lksi_plan *p, lksi_value value, struct lksi_buf *buf)
{
    if (lksi_buf_bytes(buf) < value_bytes(p->graph, value))
        return lksi_fail(LKS_E_ARGUMENT, "input `%s`: the buffer is too small",
                         p->graph->value[value].name);
    if (p->value_buf[value] == buf)
        return LKS_OK;
    p->value_buf[value] = buf;
    for (size_t s = 0; s < p->n_stage; s++) {
        const struct lksi_gnode *n = &p->graph->node[p->stage_node[s]];
        for (int k = 0; k < n->call.n_in; k++)
            if (root_of(p->graph, n->in[k]) == value) {
                lks_status st = bind_stage(p, s);
                if (st != LKS_OK)
                    return st;
                break;
            }
    }
    return LKS_OK;
}

lks_status lksi_plan_run_stage(struct lksi_plan *p, size_t index)
{
    lks_status st = lksi_stage_run(&p->stage[index]);
    return st == LKS_OK ? st : lksi_fail_prefix(st, "%s: ", lksi_plan_stage_name(p, index));
}

lks_status lksi_plan_run(struct lksi_plan *p)
{
    for (size_t s = 0; s < p->n_stage; s++) {
        lks_status st = lksi_plan_run_stage(p, s);
        if (st != LKS_OK)
            return st;
    }
    return LKS_OK;
}

lks_status lksi_plan_settle(struct lksi_plan *p)
{
    return p->program != NULL ? lksi_program_settle(p->program) : LKS_OK;
}

size_t lksi_plan_stages(const struct lksi_plan *p)
{
    return p->n_stage;
}

struct lksi_stage *lksi_plan_stage(struct lksi_plan *p, size_t index)
{
    return &p->stage[index];
}

const char *lksi_plan_stage_name(const struct lksi_plan *p, size_t index)
{
    return p->graph->node[p->stage_node[index]].name;
}

const char *lksi_plan_stage_fused(const struct lksi_plan *p, size_t index)
{
    return p->graph->node[p->stage_node[index]].fused;
}

struct lksi_buf *lksi_plan_buf(struct lksi_plan *p, lksi_value value)
{
    return buf_of(p, value);
}

lks_status lksi_plan_read(struct lksi_plan *p, lksi_value value, void *data)
{
    struct lksi_buf *buf = buf_of(p, value);
    if (buf == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "value %d has no memory in this plan", (int)value);
    return lksi_buf_read(buf, 0, data, value_bytes(p->graph, value));
}
