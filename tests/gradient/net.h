/*
 * net.h - a whole small network whose gradients are computed by hand, value by value: once with the
 * contracts' item functions and once in double (check/real.h), so that neither plan nor device
 * takes part. Gradients by autodiff are compared with central differences in double.
 */
#ifndef LKS_TESTS_NET_H
#define LKS_TESTS_NET_H

#include <math.h>

#include <criterion/criterion.h>
#include <lockstep/lockstep.h>

#include "check/real.h"
#include "contract/philox.h"
#include "graph/graph.h"
#include "helpers.h"

#define BATCH   5
#define CLASSES 3
#define SAMPLES 16
#define STEP    0x1p-16
#define WANTED  48

struct net {
    struct lks_graph *model, *g;
    size_t n_wanted;
    lksi_value wanted[WANTED], grad[WANTED];
    lksi_value loss[WANTED]; /* that grad[i] belongs to */
    float **f;  /* one array a value, as the contracts compute it */
    double **d; /* the same in double */
};

static size_t size_of(const struct net *t, lksi_value v)
{
    return (size_t)lksi_desc_count(&t->g->value[v].desc);
}

static const char *value_name(const struct net *t, lksi_value v)
{
    const char *name = t->g->value[v].name;
    return name != NULL ? name : "a value";
}

/* Inputs and states: random, labels in range, the seed of the gradient one. */
static void fill_value(struct net *t, lksi_value v)
{
    bool labels = t->g->value[v].desc.dtype == LKSI_I32;
    bool seed = t->g->value[v].name != NULL && strcmp(t->g->value[v].name, "one") == 0;
    for (size_t e = 0; e < size_of(t, v); e++) {
        U32 word = lks_random_word(11u, (U32)v, 0u, e);
        int32_t label = (int32_t)(word % CLASSES);
        if (labels) {
            memcpy(&t->f[v][e], &label, sizeof label);
            t->d[v][e] = label;
        } else {
            t->f[v][e] = seed ? 1.0f : 1.4f * lks_uniform(word) - 0.7f;
            t->d[v][e] = (double)t->f[v][e];
        }
    }
}

/* Takes over `model` and copies it for a batch; further gradients are added by net_gradients. */
static void net_open(struct net *t, struct lks_graph *model, uint32_t batch, uint32_t leaf)
{
    memset(t, 0, sizeof *t);
    t->model = model;
    EXPECT_OK(lksi_graph_at_batch(&t->g, model, batch, leaf));
}

static void net_gradients(struct net *t, lksi_value loss, size_t n, const lksi_value *wanted)
{
    cr_assert(t->n_wanted + n <= WANTED);
    EXPECT_OK(lksi_graph_backward(t->g, loss, n, wanted, t->grad + t->n_wanted));
    for (size_t i = 0; i < n; i++) {
        t->wanted[t->n_wanted] = wanted[i];
        t->loss[t->n_wanted++] = loss;
    }
}

/* Of all parameters. */
static void net_all_gradients(struct net *t)
{
    lksi_value wanted[WANTED];
    cr_assert(t->g->n_param <= WANTED);
    for (size_t i = 0; i < t->g->n_param; i++)
        wanted[i] = t->g->param[i].value;
    net_gradients(t, t->g->loss, t->g->n_param, wanted);
}

static void run_items(struct net *t)
{
    for (size_t i = 0; i < t->g->n_node; i++) {
        const struct lksi_gnode *n = &t->g->node[i];
        const void *in[LKSI_MAX_IN] = {NULL};
        void *out[LKSI_MAX_OUT] = {NULL};
        for (int k = 0; k < n->call.n_in; k++)
            in[k] = t->f[n->in[k]];
        for (int k = 0; k < n->call.n_out; k++)
            out[k] = t->f[n->out[k]];
        for (U64 e = 0; !n->dead && e < lksi_op_items(&n->call); e++)
            n->call.op->item(in, out, n->call.dims.bytes, e);
    }
}

/* In double, the nodes up to `count`. */
static void run_real(struct net *t, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct lksi_gnode *n = &t->g->node[i];
        const double *in[LKSI_MAX_IN] = {NULL};
        double *out[LKSI_MAX_OUT] = {NULL};
        lksi_real_fn fn = lksi_real_find(n->call.op->name);
        cr_assert(fn != NULL, "`%s` has no double function", n->call.op->name);
        for (int k = 0; k < n->call.n_in; k++)
            in[k] = t->d[n->in[k]];
        for (int k = 0; k < n->call.n_out; k++)
            out[k] = t->d[n->out[k]];
        if (!n->dead)
            fn(&(struct lksi_real_io){&n->call, in, out, NULL});
    }
}

/* Draws the inputs and computes everything in both precisions. */
static void net_run(struct net *t)
{
    t->f = calloc(t->g->n_value, sizeof *t->f);
    t->d = calloc(t->g->n_value, sizeof *t->d);
    for (size_t v = 0; v < t->g->n_value; v++) {
        t->f[v] = calloc(size_of(t, (lksi_value)v), sizeof **t->f);
        t->d[v] = calloc(size_of(t, (lksi_value)v), sizeof **t->d);
        if (t->g->value[v].kind != LKSI_VALUE_NODE)
            fill_value(t, (lksi_value)v);
    }
    run_items(t);
    run_real(t, t->g->n_node);
}

static void net_close(struct net *t)
{
    for (size_t v = 0; t->f != NULL && v < t->g->n_value; v++) {
        free(t->f[v]);
        free(t->d[v]);
    }
    free(t->f);
    free(t->d);
    lks_graph_destroy(&t->g);
    lks_graph_destroy(&t->model);
}

static double loss_moved(struct net *t, lksi_value loss, lksi_value v, size_t e, double step)
{
    double kept = t->d[v][e];
    t->d[v][e] = kept + step;
    run_real(t, t->model->n_node);
    t->d[v][e] = kept;
    return t->d[loss][0];
}

/* How far the slopes to both sides are apart; *slope is their mean. */
static double bend_of(struct net *t, lksi_value loss, lksi_value v, size_t e, double base,
                      double step, double *slope)
{
    double up = (loss_moved(t, loss, v, e, step) - base) / step;
    double down = (loss_moved(t, loss, v, e, -step) - base) / -step;
    *slope = (up + down) / 2.0;
    return up - down;
}

/* Gradient `w` against differences; adds the elements compared. The graph is left moved. */
static void compare_gradient(struct net *t, size_t w, int *compared)
{
    lksi_value v = t->wanted[w], g = t->grad[w], loss = t->loss[w];
    double want[SAMPLES], scale = 1e-3, base = loss_moved(t, loss, v, 0, 0.0);
    size_t at[SAMPLES], kept = 0, n = size_of(t, v);
    for (size_t k = 0; k < SAMPLES && k < n; k++) {
        size_t e = n <= SAMPLES ? k : lks_random_word(3u, 0u, (U32)w, k) % n;
        double slope, bend = bend_of(t, loss, v, e, base, STEP, &slope), half;
        /* Half the step bends half as much, unless it misses a kink of relu or maxpool. */
        double less = 2.0 * bend_of(t, loss, v, e, base, STEP / 2, &half);
        if (fabs(bend) > 1e-3 || fabs(bend - less) > 1e-9)
            continue;
        at[kept] = e;
        want[kept++] = slope;
        scale = fmax(scale, fabs(want[kept - 1]));
    }
    cr_expect(kept > 0, "%s: kinks only", value_name(t, v));
    for (size_t k = 0; k < kept; k++) {
        ++*compared;
        cr_expect(fabs(t->d[g][at[k]] - want[k]) < 1e-6 * scale,
                  "%s[%zu]: gradient in double %.12g, by differences %.12g", value_name(t, v),
                  at[k], t->d[g][at[k]], want[k]);
        cr_expect(fabs((double)t->f[g][at[k]] - want[k]) < 2e-5 * scale,
                  "%s[%zu]: gradient %.9g, by differences %.12g", value_name(t, v), at[k],
                  (double)t->f[g][at[k]], want[k]);
    }
}

/* All of inputs and parameters; returns the number of elements compared. */
static int compare_gradients(struct net *t)
{
    int compared = 0;
    for (size_t w = 0; w < t->n_wanted; w++)
        if (t->g->value[t->wanted[w]].kind != LKSI_VALUE_NODE)
            compare_gradient(t, w, &compared);
    return compared;
}

#endif
