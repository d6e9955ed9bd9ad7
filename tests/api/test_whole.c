/*
 * test_whole.c - a call on a graph that fails leaves it as it was. For each kind of layer a call
 * that fails behind its first additions, then the right one: the graph is that of the right call
 * alone.
 */
#include <lockstep/lockstep.h>

#include "graph/graph.h"
#include "helpers.h"

struct start {
    lks_value image, sequence, vector, tokens, other; /* `other` depends on none of them */
};

typedef lks_status call_fn(lks_graph *g, const struct start *s, lks_value *y);

/* What every case begins with. The layer `taken` owns taken.bias, so that another one of this name
 * fails behind its weight. */
static lks_graph *begin(struct start *s)
{
    lks_graph *g;
    lks_value y;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "image", 3, (const int64_t[]){8, 8, 6}, &s->image));
    EXPECT_OK(lks_graph_input_tokens(g, "tokens", 1, (const int64_t[]){6}, &s->tokens));
    EXPECT_OK(lks_graph_reshape(g, s->image, 2, (const int64_t[]){64, 6}, &s->sequence));
    EXPECT_OK(lks_graph_dense(g, s->image, lks_dense_params(.out = 6), &s->vector));
    EXPECT_OK(lks_graph_constant(g, 1.0f, 1, (const int64_t[]){6}, &s->other));
    EXPECT_OK(lks_graph_bias(g, s->vector, &(struct lks_channel_params){.name = "taken"}, &y));
    return g;
}

static bool same_name(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static void expect_same_nodes(const char *what, const lks_graph *a, const lks_graph *b)
{
    cr_assert(a->n_node == b->n_node, "%s: %zu nodes, %zu", what, a->n_node, b->n_node);
    for (size_t i = 0; i < a->n_node; i++) {
        const struct lksi_gnode *m = &a->node[i], *n = &b->node[i];
        cr_assert(m->call.op == n->call.op && m->call.n_in == n->call.n_in &&
                      m->call.n_out == n->call.n_out && m->dead == n->dead &&
                      same_name(m->name, n->name) &&
                      memcmp(m->call.attr, n->call.attr, m->call.op->attr_size) == 0,
                  "%s: node %zu is %s, %s", what, i, m->name, n->name);
        for (int k = 0; k < m->call.n_in; k++)
            cr_assert(m->in[k] == n->in[k], "%s: node %zu, input %d", what, i, k);
        for (int k = 0; k < m->call.n_out; k++)
            cr_assert(m->out[k] == n->out[k], "%s: node %zu, output %d", what, i, k);
    }
}

static void expect_same_losses(const char *what, const lks_graph *a, const lks_graph *b)
{
    cr_assert(a->n_loss == b->n_loss && a->loss == b->loss && a->logits == b->logits &&
                  a->label == b->label && a->prob == b->prob && a->hit == b->hit,
              "%s: losses", what);
    for (size_t i = 0; i < a->n_loss; i++) {
        const struct lksi_loss *m = &a->losses[i], *n = &b->losses[i];
        cr_assert(same_name(m->name, n->name) && m->value == n->value && m->n_term == n->n_term,
                  "%s: loss %zu", what, i);
        for (int k = 0; k < m->n_term; k++)
            cr_assert(m->term[k] == n->term[k] && m->weight[k] == n->weight[k], "%s: loss %zu",
                      what, i);
    }
}

static void expect_same(const char *what, const lks_graph *a, const lks_graph *b)
{
    cr_assert(a->n_value == b->n_value, "%s: %zu values, %zu", what, a->n_value, b->n_value);
    for (size_t v = 0; v < a->n_value; v++) {
        const struct lksi_gvalue *m = &a->value[v], *n = &b->value[v];
        cr_assert(m->kind == n->kind && m->node == n->node && m->home == n->home &&
                      same_name(m->name, n->name) && lksi_desc_equal(&m->desc, &n->desc),
                  "%s: value %zu", what, v);
        if (m->name != NULL)
            cr_assert(lksi_graph_find(a, m->name) == (lksi_value)v, "%s: `%s` is not found", what,
                      m->name);
    }
    expect_same_nodes(what, a, b);
    cr_assert(a->n_name == b->n_name && a->step == b->step, "%s: names", what);
    cr_assert(a->n_param == b->n_param && a->n_buffer == b->n_buffer && a->n_norm == b->n_norm,
              "%s: %zu and %zu parameters, %zu and %zu buffers, %zu and %zu norms", what,
              a->n_param, b->n_param, a->n_buffer, b->n_buffer, a->n_norm, b->n_norm);
    for (size_t i = 0; i < a->n_param; i++)
        cr_assert(a->param[i].value == b->param[i].value &&
                      same_name(a->param[i].name, b->param[i].name),
                  "%s: parameter %s, %s", what, a->param[i].name, b->param[i].name);
    expect_same_losses(what, a, b);
}

#define CASE(name, bad, good)                                                                      \
    static lks_status wrong_##name(lks_graph *g, const struct start *s, lks_value *y)              \
    {                                                                                              \
        (void)s, (void)y;                                                                          \
        return bad;                                                                                \
    }                                                                                              \
    static lks_status right_##name(lks_graph *g, const struct start *s, lks_value *y)              \
    {                                                                                              \
        (void)s, (void)y;                                                                          \
        return good;                                                                               \
    }
#define NAMED(type, ...) (&(struct lks_##type##_params){.name = "taken", __VA_ARGS__})
static const int64_t huge[4] = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}, none[1] = {0};

CASE(conv2d, lks_graph_conv2d(g, s->image, lks_conv2d_params(.out = 2, .kernel = 9), y),
     lks_graph_conv2d(g, s->image, lks_conv2d_params(.out = 2, .kernel = 3), y))
CASE(conv1d, lks_graph_conv1d(g, s->sequence, lks_conv2d_params(.out = 2, .kernel = 65), y),
     lks_graph_conv1d(g, s->sequence, lks_conv2d_params(.out = 2, .kernel = 3), y))
CASE(conv_transpose2d,
     lks_graph_conv_transpose2d(g, s->image, NAMED(conv_transpose2d, .out = 2, .kernel = 3), y),
     lks_graph_conv_transpose2d(g, s->image, lks_conv_transpose2d_params(.out = 2, .kernel = 3), y))
CASE(dense, lks_graph_dense(g, s->image, NAMED(dense, .out = 2), y),
     lks_graph_dense(g, s->image, lks_dense_params(.out = 2), y))
CASE(dense_shared, lks_graph_dense(g, s->image, lks_dense_params(.out = 2, .share = "no"), y),
     lks_graph_dense(g, s->image, lks_dense_params(.out = 2), y))
CASE(batch_norm, lks_graph_batch_norm(g, s->image, NAMED(batch_norm, .eps = 1e-3), y),
     lks_graph_batch_norm(g, s->image, NULL, y))
CASE(batch_norm_of_tokens, lks_graph_batch_norm(g, s->tokens, NULL, y),
     lks_graph_batch_norm(g, s->image, NULL, y))
CASE(group_norm, lks_graph_group_norm(g, s->image, lks_group_norm_params(.groups = 4), y),
     lks_graph_group_norm(g, s->image, lks_group_norm_params(.groups = 3), y))
CASE(layer_norm, lks_graph_layer_norm(g, s->image, NAMED(norm, .eps = 1e-3), y),
     lks_graph_layer_norm(g, s->image, NULL, y))
CASE(instance_norm, lks_graph_instance_norm(g, s->tokens, NULL, y),
     lks_graph_instance_norm(g, s->image, NULL, y))
CASE(embedding, lks_graph_embedding(g, s->tokens, lks_embedding_params(.vocabulary = INT32_MAX,
                                                                       .out = INT32_MAX), y),
     lks_graph_embedding(g, s->tokens, lks_embedding_params(.vocabulary = 9, .out = 4), y))
CASE(positions, lks_graph_positions(g, s->image, lks_positions_params(.share = "no"), y),
     lks_graph_positions(g, s->image, NULL, y))
CASE(add, lks_graph_add(g, s->image, s->tokens, y), lks_graph_add(g, s->image, s->vector, y))
CASE(mul, lks_graph_mul(g, s->sequence, s->tokens, y), lks_graph_mul(g, s->image, s->vector, y))
CASE(scale, lks_graph_scale(g, s->tokens, NULL, y), lks_graph_scale(g, s->image, NULL, y))
CASE(bias, lks_graph_bias(g, s->tokens, NULL, y), lks_graph_bias(g, s->image, NULL, y))
CASE(prelu, lks_graph_prelu(g, s->tokens, NULL, y), lks_graph_prelu(g, s->image, NULL, y))
CASE(dropout, lks_graph_dropout(g, s->image, &(struct lks_dropout_params){.p = 2.0}, y),
     lks_graph_dropout(g, s->image, NULL, y))
CASE(random, lks_graph_random(g, "noise", true, 1, none, y),
     lks_graph_random(g, "noise", true, 1, (const int64_t[]){5}, y))
CASE(maxpool, lks_graph_maxpool(g, s->sequence, lks_pool_params(.kernel = 65), y),
     lks_graph_maxpool(g, s->sequence, lks_pool_params(.kernel = 2), y))
CASE(constant, lks_graph_constant(g, 0.5f, 4, huge, y),
     lks_graph_constant(g, 0.5f, 1, (const int64_t[]){3}, y))
CASE(gradient, lks_graph_gradient(g, s->tokens, s->image, y),
     lks_graph_gradient(g, s->vector, s->image, y))
CASE(gradient_of_another, lks_graph_gradient(g, s->vector, s->other, y),
     lks_graph_gradient(g, s->vector, s->image, y))
CASE(cross_entropy, lks_graph_softmax_cross_entropy(g, s->tokens),
     lks_graph_softmax_cross_entropy(g, s->vector))
CASE(softmax_loss,
     lks_graph_softmax_loss(g, s->vector, &(struct lks_softmax_loss_params){.smoothing = 3.0f}, y),
     lks_graph_softmax_loss(g, s->vector, NULL, y))
CASE(loss_to, lks_graph_loss_to(g, LKS_LOSS_MSE, s->vector, s->image, 0, y),
     lks_graph_loss_to(g, LKS_LOSS_MSE, s->vector, s->other, 0, y))
CASE(loss_mean, lks_graph_loss_mean(g, s->tokens, y), lks_graph_loss_mean(g, s->image, y))

#define ENTRY(name) {#name, wrong_##name, right_##name}
static const struct {
    const char *name;
    call_fn *wrong, *right;
} cases[] = {
    ENTRY(conv2d), ENTRY(conv1d), ENTRY(conv_transpose2d), ENTRY(dense), ENTRY(dense_shared),
    ENTRY(batch_norm), ENTRY(batch_norm_of_tokens), ENTRY(group_norm), ENTRY(layer_norm),
    ENTRY(instance_norm), ENTRY(embedding), ENTRY(positions), ENTRY(add), ENTRY(mul), ENTRY(scale),
    ENTRY(bias), ENTRY(prelu), ENTRY(dropout), ENTRY(random), ENTRY(maxpool), ENTRY(constant),
    ENTRY(gradient), ENTRY(gradient_of_another), ENTRY(cross_entropy), ENTRY(softmax_loss),
    ENTRY(loss_to), ENTRY(loss_mean),
};

Test(whole, a_failed_call_leaves_the_graph_as_it_was)
{
    for (size_t i = 0; i < LKSI_COUNT(cases); i++) {
        struct start s, t;
        lks_graph *g = begin(&s), *fresh = begin(&t);
        lks_value y = -7, z = -7;
        for (int again = 0; again < 3; again++) {
            cr_assert(cases[i].wrong(g, &s, &y) == LKS_E_ARGUMENT, "%s: it did not fail",
                      cases[i].name);
            cr_assert(y == -7, "%s: the result is touched", cases[i].name);
            expect_same(cases[i].name, g, fresh);
        }
        EXPECT_OK(cases[i].right(g, &s, &y));
        EXPECT_OK(cases[i].right(fresh, &t, &z));
        cr_assert(y == z, "%s: value %d, %d", cases[i].name, (int)y, (int)z);
        expect_same(cases[i].name, g, fresh);
        lks_graph_destroy(&g);
        lks_graph_destroy(&fresh);
    }
}

/* All wrong calls one after the other, between the right ones, over more names than the table of
 * names holds at first. */
Test(whole, many_failures_in_one_graph)
{
    struct start s, t;
    lks_graph *g = begin(&s), *fresh = begin(&t);
    lks_value y, z;
    for (int k = 0; k < 40; k++) {
        for (size_t i = 0; i < LKSI_COUNT(cases); i++)
            cr_assert(cases[i].wrong(g, &s, &y) != LKS_OK);
        EXPECT_OK(lks_graph_dense(g, s.vector, lks_dense_params(.out = 3 + k), &y));
        EXPECT_OK(lks_graph_dense(fresh, t.vector, lks_dense_params(.out = 3 + k), &z));
    }
    expect_same("many", g, fresh);
    lks_graph_destroy(&g);
    lks_graph_destroy(&fresh);
}
