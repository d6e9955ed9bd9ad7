/*
 * update_graph.c - what follows the gradients in a step's graph: guard (rule 12), then for each
 * optimiser the clipping of its gradients and its update, then the average. All of them do nothing
 * while the flag is raised; gradients are all taken before the first update.
 *
 * Arenas: "params", "grads", "state0" to "state2" (the optimisers' own), "ema". An optimiser works on
 * its range of each. Tables of optimiser k, written once: "rows.k", the row of hyper of each block;
 * "tensors.k", the parameter of each block; "parts.k", start and length of each parameter; "whole.k",
 * of all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract/update.h"
#include "op/attr.h"
#include "train/train.h"

#define MAX_STATES 3

int lksi_optimizer_states(const struct lksi_optimizer *k)
{
    switch (k->o.kind) {
    case LKS_OPTIMIZER_SGD:
    case LKS_OPTIMIZER_ADAGRAD:
        return 1;
    case LKS_OPTIMIZER_RMSPROP:
        return k->o.centered ? 3 : 2;
    default:
        return 2;
    }
}

const char *lksi_state_name(const struct lksi_optimizer *k, int s)
{
    static const char *const moments[] = {"first_moment", "second_moment"};
    static const char *const rmsprop[] = {"mean_square", "momentum", "mean_gradient"};
    switch (k->o.kind) {
    case LKS_OPTIMIZER_SGD:
        return "momentum";
    case LKS_OPTIMIZER_ADAGRAD:
        return "sum_square";
    case LKS_OPTIMIZER_RMSPROP:
        return rmsprop[s];
    default:
        return moments[s];
    }
}

static const char *operator_name(const struct lks_optimizer *o)
{
    switch (o->kind) {
    case LKS_OPTIMIZER_SGD:
        return o->nesterov ? "sgd_nesterov" : "sgd";
    case LKS_OPTIMIZER_RMSPROP:
        return o->centered ? "rmsprop_centered" : "rmsprop";
    case LKS_OPTIMIZER_ADAGRAD:
        return "adagrad";
    case LKS_OPTIMIZER_LAMB:
        return "lamb_direction";
    default:
        return "adam";
    }
}

/* ---- the graph ---- */

struct update {
    struct lks_graph *g;
    const struct lks_trainer *t;
    const struct lksi_optimizer *k;
    size_t index;                /* of k */
    lksi_value params, grads;    /* k's range */
    lksi_value hyper, flag, rows;
};

/* State "NAME.k" of this optimiser. */
static lks_status own_state(const struct update *u, const char *name, enum lksi_dtype dtype,
                            int rank, int64_t a, int64_t b, lksi_value home, int64_t offset,
                            lksi_value *out)
{
    struct lksi_desc d = {.dtype = dtype, .rank = rank, .dim = {a, b}};
    char text[48];
    snprintf(text, sizeof text, "%s.%zu", name, u->index);
    return lksi_graph_add_state(u->g, text, &d, home, offset, out);
}

/* The optimiser's range of an arena. */
static lks_status range(const struct update *u, const char *name, lksi_value arena,
                        lksi_value *out)
{
    char text[48];
    snprintf(text, sizeof text, "%s.%zu", name, u->index);
    *out = lksi_graph_find(u->g, text);
    if (*out != LKSI_NONE)
        return LKS_OK;
    if (u->k->start == 0 && u->k->count == lksi_desc_count(&u->g->value[arena].desc)) {
        *out = arena;
        return LKS_OK;
    }
    return own_state(u, name, LKSI_F32, 1, u->k->count, 0, arena, u->k->start, out);
}

/* The state "NAME" of `trained` elements, which optimisers share. */
static lks_status arena(const struct update *u, const char *name, lksi_value *out)
{
    struct lksi_desc d = lksi_desc_make(LKSI_F32, 1, u->t->trained);
    *out = lksi_graph_find(u->g, name);
    return *out != LKSI_NONE ? LKS_OK : lksi_graph_add_state(u->g, name, &d, LKSI_NONE, 0, out);
}

static lks_status add_clip(const struct update *u)
{
    struct lksi_grad_clip_attr attr = {(float)u->k->o.clip_norm, (float)u->k->o.clip_value};
    lksi_value in[2] = {u->grads, LKSI_NONE}, norm, out;
    lks_status st = LKS_OK;
    if (attr.limit == 0 && attr.value == 0)
        return LKS_OK;
    if (attr.limit > 0) {
        LKSI_TRY(own_state(u, "whole", LKSI_I32, 2, 1, 2, LKSI_NONE, 0, &in[1]));
        LKSI_TRY(lksi_graph_add_node(u->g, "gradient_norm", "segment_norm", NULL, 2, in, &norm));
    } else {
        LKSI_TRY(own_state(u, "no_norm", LKSI_F32, 1, 1, 0, LKSI_NONE, 0, &norm));
    }
    in[1] = norm;
    LKSI_TRY(lksi_graph_add_node(u->g, "clip", "grad_clip", &attr, 2, in, &out));
fail:
    return st;
}

/* LAMB: norms of parameters and directions, and the step. */
static lks_status add_lamb(const struct update *u, lksi_value direction)
{
    int64_t parts = (int64_t)u->k->n, blocks = u->k->count / LKS_UPDATE_BLOCK;
    lksi_value in[8] = {u->params, direction, LKSI_NONE, LKSI_NONE, u->hyper, u->flag, u->rows};
    lksi_value pair[2], out;
    lks_status st = LKS_OK;
    LKSI_TRY(own_state(u, "parts", LKSI_I32, 2, parts, 2, LKSI_NONE, 0, &pair[1]));
    for (int side = 0; side < 2; side++) {
        pair[0] = in[side];
        LKSI_TRY(lksi_graph_add_node(u->g, side == 0 ? "parameter_norms" : "direction_norms",
                                     "segment_norm", NULL, 2, pair, &in[2 + side]));
    }
    LKSI_TRY(own_state(u, "tensors", LKSI_I32, 1, blocks, 0, LKSI_NONE, 0, &in[7]));
    LKSI_TRY(lksi_graph_add_node(u->g, "apply", "lamb_apply", NULL, 8, in, &out));
fail:
    return st;
}

static lks_status add_optimizer(struct update *u)
{
    int states = lksi_optimizer_states(u->k), n = 2;
    lksi_value in[LKSI_MAX_IN] = {u->params, u->grads}, out[LKSI_MAX_OUT], whole;
    lks_status st = LKS_OK;
    LKSI_TRY(own_state(u, "rows", LKSI_I32, 1, u->k->count / LKS_UPDATE_BLOCK, 0, LKSI_NONE, 0,
                       &u->rows));
    LKSI_TRY(add_clip(u));
    for (int s = 0; s < states; s++) {
        char name[16];
        snprintf(name, sizeof name, "state%d", s);
        LKSI_TRY(arena(u, name, &whole));
        LKSI_TRY(range(u, name, whole, &in[n++]));
    }
    in[n++] = u->hyper;
    in[n++] = u->flag;
    in[n++] = u->rows;
    LKSI_TRY(lksi_graph_add_node(u->g, "update", operator_name(&u->k->o), NULL, n, in, out));
    if (u->k->o.kind == LKS_OPTIMIZER_LAMB)
        LKSI_TRY(add_lamb(u, out[0]));
fail:
    return st;
}

static lks_status add_average(const struct update *u, lksi_value params)
{
    struct lksi_ema_attr attr = {(float)(1.0 - u->t->params.ema)};
    struct lksi_desc d = lksi_desc_make(LKSI_F32, 1, u->t->trained);
    lksi_value in[3] = {LKSI_NONE, params, u->flag}, out;
    lks_status st = LKS_OK;
    if (u->t->params.ema == 0)
        return LKS_OK;
    if (u->t->trained < u->t->arena)
        LKSI_TRY(lksi_graph_add_state(u->g, "params.trained", &d, params, 0, &in[1]));
    LKSI_TRY(arena(u, "ema", &in[0]));
    LKSI_TRY(lksi_graph_add_node(u->g, "average", "ema", &attr, 3, in, &out));
fail:
    return st;
}

/* The guard looks at the gradients of each optimiser and at the loss that it lowers. */
static lks_status add_guards(struct update *u, lksi_value grads, lksi_value step)
{
    lks_status st = LKS_OK;
    for (u->index = 0; u->index < u->t->n_optimizer; u->index++) {
        lksi_value in[4] = {LKSI_NONE, LKSI_NONE, step, u->flag};
        u->k = &u->t->optimizer[u->index];
        LKSI_TRY(range(u, "grads", grads, &in[0]));
        LKSI_TRY(lksi_find_loss(u->g, u->k->o.loss, &in[1]));
        LKSI_TRY(lksi_graph_add_node(u->g, "guard", "guard", NULL, 4, in, &u->flag));
    }
fail:
    return st;
}

lks_status lksi_add_update(struct lks_graph *g, const struct lks_trainer *t, lksi_value params,
                           lksi_value grads, lksi_value hyper, lksi_value step, lksi_value *flag)
{
    struct update u = {.g = g, .t = t, .hyper = hyper};
    struct lksi_desc one = lksi_desc_make(LKSI_I32, 1, (int64_t)1);
    lks_status st = LKS_OK;
    LKSI_TRY(lksi_graph_add_state(g, "flag", &one, LKSI_NONE, 0, &u.flag));
    LKSI_TRY(add_guards(&u, grads, step));
    for (u.index = 0; u.index < t->n_optimizer; u.index++) {
        u.k = &t->optimizer[u.index];
        LKSI_TRY(range(&u, "params", params, &u.params));
        LKSI_TRY(range(&u, "grads", grads, &u.grads));
        LKSI_TRY(add_optimizer(&u));
    }
    LKSI_TRY(add_average(&u, params));
    *flag = u.flag;
fail:
    return st;
}

/* ---- the tables ---- */

static lks_status write_table(struct lks_trainer *t, const char *name, size_t index,
                              const void *data, uint64_t bytes)
{
    char text[48];
    struct lksi_buf *buf;
    lks_status st;
    snprintf(text, sizeof text, "%s.%zu", name, index);
    st = lksi_store_state(t->store, text, bytes, &buf);
    return st != LKS_OK ? st : lksi_buf_write(buf, 0, data, bytes, true);
}

static lks_status write_tables(struct lks_trainer *t, size_t index)
{
    const struct lksi_optimizer *k = &t->optimizer[index];
    size_t blocks = (size_t)(k->count / LKS_UPDATE_BLOCK);
    int32_t whole[2] = {0, (int32_t)k->count};
    int32_t *rows = lksi_alloc(blocks, sizeof *rows), *tensors = lksi_alloc(blocks, sizeof *tensors);
    int32_t *parts = lksi_alloc(k->n, 2 * sizeof *parts);
    lks_status st = rows != NULL && tensors != NULL && parts != NULL ? LKS_OK : LKS_E_MEMORY;
    for (size_t p = 0, b = 0; p < k->n && st == LKS_OK; p++) {
        size_t i = t->order[k->first + p];
        int64_t n = lksi_desc_count(&t->model->value[t->model->param[i].value].desc);
        parts[2 * p] = (int32_t)(t->place[i].offset - k->start);
        parts[2 * p + 1] = (int32_t)n;
        for (; b < blocks && (int64_t)(b * LKS_UPDATE_BLOCK) < parts[2 * p] + n; b++) {
            rows[b] = (int32_t)t->place[i].row;
            tensors[b] = (int32_t)p;
        }
    }
    if (st == LKS_OK)
        st = write_table(t, "rows", index, rows, blocks * sizeof *rows);
    if (st == LKS_OK && k->o.clip_norm > 0)
        st = write_table(t, "whole", index, whole, sizeof whole);
    if (st == LKS_OK && k->o.kind == LKS_OPTIMIZER_LAMB)
        st = write_table(t, "tensors", index, tensors, blocks * sizeof *tensors);
    if (st == LKS_OK && k->o.kind == LKS_OPTIMIZER_LAMB)
        st = write_table(t, "parts", index, parts, k->n * 2 * sizeof *parts);
    free(rows);
    free(tensors);
    free(parts);
    return st;
}

/* Adagrad's sums begin at a number of the caller's. */
static lks_status fill_sums(struct lks_trainer *t, const struct lksi_optimizer *k)
{
    size_t n = (size_t)k->count;
    float *sum = lksi_alloc(n, sizeof *sum);
    struct lksi_buf *buf;
    lks_status st;
    if (sum == NULL)
        return LKS_E_MEMORY;
    for (size_t i = 0; i < n; i++)
        sum[i] = (float)k->o.initial_accumulator;
    st = lksi_store_state(t->store, "state0", (uint64_t)t->trained * sizeof(float), &buf);
    if (st == LKS_OK)
        st = lksi_buf_write(buf, (uint64_t)k->start * sizeof(float), sum, n * sizeof(float), true);
    free(sum);
    return st;
}

lks_status lksi_update_init(struct lks_trainer *t)
{
    lks_status st = LKS_OK;
    for (size_t k = 0; k < t->n_optimizer && st == LKS_OK; k++) {
        st = write_tables(t, k);
        if (st == LKS_OK && t->optimizer[k].o.initial_accumulator > 0)
            st = fill_sums(t, &t->optimizer[k]);
    }
    return st;
}
