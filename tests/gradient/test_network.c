/*
 * test_network.c - a whole small network: its gradients by autodiff against central differences in
 * double, and the same network after fusion, which may move no bit.
 *
 * The graph is run here by hand, value by value, once with the contracts' item functions and once
 * in double (check/real.h), so that neither plan nor device takes part.
 */
#include <math.h>

#include <criterion/criterion.h>

#include "check/real.h"
#include "contract/philox.h"
#include <lockstep/lockstep.h>

#include "graph/graph.h"
#include "helpers.h"

#define BATCH   5
#define LEAF    2
#define CLASSES 3
#define SAMPLES 16
#define STEP    0x1p-16

struct net {
    struct lks_graph *model, *g;
    lksi_value grad[16];
    float **f;  /* one array a value, as the contracts compute it */
    double **d; /* the same in double */
};

static void build_model(struct lks_graph **model)
{
    lks_value x;
    EXPECT_OK(lks_graph_create(model, NULL));
    EXPECT_OK(lks_graph_input(*model, "image", 3, (int64_t[]){9, 8, 2}, &x));
    EXPECT_OK(lks_graph_conv2d(*model, x, lks_conv2d_params(.out = 4, .kernel = 3, .pad = 1), &x));
    EXPECT_OK(lks_graph_relu(*model, x, &x));
    EXPECT_OK(lks_graph_maxpool(*model, x, lks_pool_params(.kernel = 2), &x));
    EXPECT_OK(lks_graph_conv2d(
        *model, x, lks_conv2d_params(.out = 6, .kernel = 3, .pad = 2, .groups = 2, .stride = 2),
        &x));
    EXPECT_OK(lks_graph_relu(*model, x, &x));
    EXPECT_OK(lks_graph_conv2d(*model, x, lks_conv2d_params(.out = 5, .kernel = 2), &x));
    EXPECT_OK(lks_graph_maxpool(*model, x, lks_pool_params(.kernel = 2, .stride = 1), &x));
    EXPECT_OK(lks_graph_flatten(*model, x, &x));
    EXPECT_OK(lks_graph_dense(*model, x, lks_dense_params(.out = 7), &x));
    EXPECT_OK(lks_graph_relu(*model, x, &x));
    EXPECT_OK(lks_graph_dense(*model, x, lks_dense_params(.out = CLASSES), &x));
    EXPECT_OK(lks_graph_softmax_cross_entropy(*model, x));
}

static size_t size_of(const struct net *t, lksi_value v)
{
    return (size_t)lksi_desc_count(&t->g->value[v].desc);
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

static void open_net(struct net *t)
{
    build_model(&t->model);
    EXPECT_OK(lksi_graph_at_batch(&t->g, t->model, BATCH, LEAF));
    cr_assert(t->g->n_param <= LKSI_COUNT(t->grad));
    EXPECT_OK(lksi_graph_backward(t->g, t->g->loss, t->grad));
    t->f = calloc(t->g->n_value, sizeof *t->f);
    t->d = calloc(t->g->n_value, sizeof *t->d);
    for (size_t v = 0; v < t->g->n_value; v++) {
        t->f[v] = calloc(size_of(t, (lksi_value)v), sizeof **t->f);
        t->d[v] = calloc(size_of(t, (lksi_value)v), sizeof **t->d);
        if (t->g->value[v].kind != LKSI_VALUE_NODE)
            fill_value(t, (lksi_value)v);
    }
}

static void close_net(struct net *t)
{
    for (size_t v = 0; v < t->g->n_value; v++) {
        free(t->f[v]);
        free(t->d[v]);
    }
    free(t->f);
    free(t->d);
    lks_graph_destroy(&t->g);
    lks_graph_destroy(&t->model);
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

static double loss_moved(struct net *t, lksi_value v, size_t e, double step)
{
    double kept = t->d[v][e];
    t->d[v][e] = kept + step;
    run_real(t, t->model->n_node);
    t->d[v][e] = kept;
    return t->d[t->g->loss][0];
}

static void compare_parameter(struct net *t, size_t p, int *compared)
{
    lksi_value v = t->g->param[p].value, g = t->grad[p];
    double want[SAMPLES], scale = 1e-6, base = loss_moved(t, v, 0, 0.0);
    size_t at[SAMPLES], kept = 0, n = size_of(t, v);
    for (size_t k = 0; k < SAMPLES && k < n; k++) {
        size_t e = n <= SAMPLES ? k : lks_random_word(3u, 0u, (U32)p, k) % n;
        double up = (loss_moved(t, v, e, STEP) - base) / STEP;
        double down = (loss_moved(t, v, e, -STEP) - base) / -STEP;
        if (fabs(up - down) > 1e-4) /* a kink of relu or maxpool */
            continue;
        at[kept] = e;
        want[kept++] = (up + down) / 2.0;
        scale = fmax(scale, fabs(want[kept - 1]));
    }
    cr_expect(kept > 0, "%s: kinks only", t->g->param[p].name);
    for (size_t k = 0; k < kept; k++) {
        ++*compared;
        cr_expect(fabs(t->d[g][at[k]] - want[k]) < 1e-6 * scale,
                  "%s[%zu]: gradient in double %.12g, by differences %.12g", t->g->param[p].name,
                  at[k], t->d[g][at[k]], want[k]);
        cr_expect(fabs((double)t->f[g][at[k]] - want[k]) < 1e-5 * scale,
                  "%s[%zu]: gradient %.9g, by differences %.12g", t->g->param[p].name, at[k],
                  (double)t->f[g][at[k]], want[k]);
    }
}

Test(network, gradients)
{
    struct net t;
    int compared = 0;
    open_net(&t);
    run_items(&t);
    run_real(&t, t.g->n_node);
    cr_expect(fabs((double)t.f[t.g->loss][0] - t.d[t.g->loss][0]) < 1e-5);
    for (size_t p = 0; p < t.g->n_param; p++)
        compare_parameter(&t, p, &compared);
    cr_expect(t.g->n_param == 10 && compared > 80, "%zu parameters, %d compared", t.g->n_param,
              compared);
    close_net(&t);
}

Test(network, fusion_moves_no_bit)
{
    struct net t;
    float *before[16], loss;
    size_t dead = 0;
    open_net(&t);
    run_items(&t);
    loss = t.f[t.g->loss][0];
    t.g->value[t.g->loss].keep = true;
    for (size_t p = 0; p < t.g->n_param; p++) {
        size_t bytes = size_of(&t, t.grad[p]) * sizeof(float);
        before[p] = malloc(bytes);
        memcpy(before[p], t.f[t.grad[p]], bytes);
        memset(t.f[t.grad[p]], 0xff, bytes);
        t.g->value[t.grad[p]].keep = true;
    }
    t.f[t.g->loss][0] = -1.0f;
    EXPECT_OK(lksi_graph_fuse(t.g));
    EXPECT_OK(lksi_graph_prune(t.g));
    run_items(&t);
    for (size_t i = 0; i < t.g->n_node; i++)
        dead += t.g->node[i].dead;
    cr_expect(dead >= 5, "only %zu operators were absorbed", dead);
    cr_expect(lks_bits(t.f[t.g->loss][0]) == lks_bits(loss));
    for (size_t p = 0; p < t.g->n_param; p++) {
        cr_expect(memcmp(before[p], t.f[t.grad[p]], size_of(&t, t.grad[p]) * 4) == 0,
                  "the gradient of %s moved", t.g->param[p].name);
        free(before[p]);
    }
    close_net(&t);
}
