/*
 * test_shared.c - parameters that are used several times, several losses on one graph, frozen
 * parameters and stopped gradients; and rule 8 of numerics.md for shared parameters, computed here
 * by itself.
 */
#include "net.h"
#include "op/attr.h"

static const struct lksi_cross_entropy_attr plain;

static lksi_value sum(struct lks_graph *g, lksi_value a, lksi_value b)
{
    lksi_value y;
    EXPECT_OK(lksi_graph_add_node(g, "add", "add", NULL, 2, (lksi_value[]){a, b}, &y));
    return y;
}

/* h = relu(W h + U x + b), three times from h = relu(U x); then a dense layer. */
static struct lks_graph *recurrent(lksi_value *dense_out)
{
    struct lks_graph *g;
    lks_value x, h, a, b;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "x", 1, (int64_t[]){7}, &x));
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.name = "in", .out = 6, .no_bias = true), &h));
    EXPECT_OK(lks_graph_relu(g, h, &h));
    for (int t = 0; t < 3; t++) {
        EXPECT_OK(lks_graph_dense(
            g, h, lks_dense_params(.name = t == 0 ? "cell" : NULL, .out = 6,
                                   .share = t == 0 ? NULL : "cell"), &a));
        dense_out[t] = a;
        EXPECT_OK(lks_graph_dense(
            g, x, lks_dense_params(.out = 6, .share = "in", .no_bias = true), &b));
        EXPECT_OK(lks_graph_relu(g, sum(g, a, b), &h));
    }
    EXPECT_OK(lks_graph_dense(g, h, lks_dense_params(.out = CLASSES), &h));
    EXPECT_OK(lks_graph_softmax_cross_entropy(g, h));
    return g;
}

/* One convolution with its normalisation twice, on images of two sizes. */
static struct lks_graph *convolutional(lksi_value *conv_out)
{
    struct lks_graph *g;
    lks_value x;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "image", 3, (int64_t[]){8, 7, 3}, &x));
    for (int t = 0; t < 2; t++) {
        const char *of = t == 0 ? NULL : "conv", *norm = t == 0 ? NULL : "norm";
        EXPECT_OK(lks_graph_conv2d(g, x, lks_conv2d_params(.name = t == 0 ? "conv" : NULL,
                                                           .share = of, .out = 3, .kernel = 3,
                                                           .pad = 1), &x));
        conv_out[t] = x;
        EXPECT_OK(lks_graph_layer_norm(
            g, x, lks_norm_params(.name = t == 0 ? "norm" : NULL, .share = norm), &x));
        EXPECT_OK(lks_graph_relu(g, x, &x));
        if (t == 0)
            EXPECT_OK(lks_graph_maxpool(g, x, lks_pool_params(.kernel = 2), &x));
    }
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = CLASSES), &x));
    EXPECT_OK(lks_graph_softmax_cross_entropy(g, x));
    return g;
}

Test(shared, differences)
{
    const uint32_t batch[] = {5, 4, 1, 11}, leaf[] = {2, 4, 8, 2};
    for (size_t k = 0; k < LKSI_COUNT(batch); k++) {
        struct net t;
        lksi_value between[3];
        int compared;
        net_open(&t, recurrent(between), batch[k], leaf[k]);
        net_all_gradients(&t);
        net_run(&t);
        compared = compare_gradients(&t);
        cr_expect(t.n_wanted == 5 && compared > 40, "%d compared", compared);
        net_close(&t);
        net_open(&t, convolutional(between), batch[k], leaf[k]);
        net_all_gradients(&t);
        net_run(&t);
        compared = compare_gradients(&t);
        cr_expect(t.n_wanted == 6 && compared > 40, "%d compared", compared);
        net_close(&t);
    }
}

/* ---- rule 8, by itself ---- */

#define TREE 32

static float tree(float *v, size_t m)
{
    for (size_t s = 1; s < m; s *= 2)
        for (size_t i = 0; i + s < m; i += 2 * s)
            v[i] += v[i + s];
    return v[0];
}

/* Inputs and output gradients of each use of a parameter, and how it uses a sample. */
struct used {
    size_t uses, n, leaf;
    const float *x[3], *dy[3];
    float (*block)(const struct used *u, size_t use, size_t n0, size_t n1, size_t e);
};

/* Blocks of `leaf` samples; in a block the uses in graph order; then the tree. */
static float expected(const struct used *u, size_t e)
{
    float block[TREE];
    size_t blocks = (u->n + u->leaf - 1) / u->leaf;
    for (size_t b = 0; b < blocks; b++) {
        size_t n0 = b * u->leaf, n1 = n0 + u->leaf < u->n ? n0 + u->leaf : u->n;
        for (size_t k = 0; k < u->uses; k++) {
            float part = u->block(u, k, n0, n1, e) + 0.0f;
            block[b] = k == 0 ? part : block[b] + part;
        }
    }
    return tree(block, blocks);
}

static float block_dense_weight(const struct used *u, size_t use, size_t n0, size_t n1, size_t e)
{
    size_t o = e / 6, i = e % 6;
    float acc = 0.0f;
    for (size_t n = n0; n < n1; n++)
        acc = fmaf(u->x[use][n * 6 + i], u->dy[use][n * 6 + o], acc);
    return acc;
}

static float block_dense_bias(const struct used *u, size_t use, size_t n0, size_t n1, size_t e)
{
    float acc = 0.0f;
    for (size_t n = n0; n < n1; n++)
        acc = acc + u->dy[use][n * 6 + e];
    return acc;
}

/* Images of 8x7 and 4x3 with 3 channels; a block has at most 4 * 56 positions, one chain. */
static float block_conv_weight(const struct used *u, size_t use, size_t n0, size_t n1, size_t e)
{
    int h = use == 0 ? 8 : 4, w = use == 0 ? 7 : 3;
    int c = (int)(e % 3), s = (int)(e / 3 % 3), r = (int)(e / 9 % 3), k = (int)(e / 27);
    float acc = 0.0f;
    for (size_t n = n0; n < n1; n++)
        for (int oh = 0; oh < h; oh++)
            for (int ow = 0; ow < w; ow++) {
                int ih = oh + r - 1, iw = ow + s - 1;
                size_t image = n * (size_t)(h * w);
                if (ih < 0 || ih >= h || iw < 0 || iw >= w)
                    continue;
                acc = fmaf(u->x[use][(image + (size_t)(ih * w + iw)) * 3 + (size_t)c],
                           u->dy[use][(image + (size_t)(oh * w + ow)) * 3 + (size_t)k], acc);
            }
    return acc;
}

static void check_formula(const struct net *t, const char *name, struct used *u)
{
    for (size_t w = 0; w < t->n_wanted; w++) {
        if (strcmp(value_name(t, t->wanted[w]), name) != 0)
            continue;
        for (size_t e = 0; e < size_of(t, t->wanted[w]); e++)
            cr_assert(lks_bits(t->f[t->grad[w]][e]) == lks_bits(expected(u, e)),
                      "%s[%zu], batch %zu, leaf %zu: %.9g, by rule 8 %.9g", name, e, u->n, u->leaf,
                      (double)t->f[t->grad[w]][e], (double)expected(u, e));
        return;
    }
    cr_assert(false, "no gradient of %s", name);
}

/* The gradients of the values between[0..n), beside those of all parameters; each is what flows
 * into the output of one use. */
static void find_uses(struct net *t, size_t n, const lksi_value *between, struct used *u)
{
    size_t first;
    lksi_value wanted[WANTED];
    size_t count = 0;
    for (; count < t->g->n_param; count++)
        wanted[count] = t->g->param[count].value;
    first = count;
    for (size_t k = 0; k < n; k++)
        wanted[count++] = between[k];
    net_gradients(t, t->g->loss, count, wanted);
    net_run(t);
    u->uses = n;
    for (size_t k = 0; k < n; k++) {
        const struct lksi_gnode *node = &t->g->node[t->g->value[between[k]].node];
        u->x[k] = t->f[node->in[0]];
        u->dy[k] = t->f[t->grad[first + k]];
    }
}

Test(shared, the_formula_of_rule_8)
{
    const uint32_t batch[] = {5, 7, 13, 3, 16}, leaf[] = {2, 4, 1, 4, 2};
    for (size_t k = 0; k < LKSI_COUNT(batch); k++) {
        struct net t;
        lksi_value between[3];
        struct used u = {.n = batch[k], .leaf = leaf[k]};
        net_open(&t, recurrent(between), batch[k], leaf[k]);
        find_uses(&t, 3, between, &u);
        u.block = block_dense_weight;
        check_formula(&t, "cell.weight", &u);
        u.block = block_dense_bias;
        check_formula(&t, "cell.bias", &u);
        net_close(&t);
        net_open(&t, convolutional(between), batch[k], leaf[k]);
        find_uses(&t, 2, between, &u);
        u.block = block_conv_weight;
        check_formula(&t, "conv.weight", &u);
        net_close(&t);
    }
}

/* The whole sums that the blocks replace must not stay. */
Test(shared, nothing_is_computed_twice)
{
    struct net t;
    lksi_value between[3];
    int whole = 0, blocks = 0;
    net_open(&t, recurrent(between), 5, 2);
    net_all_gradients(&t);
    for (size_t i = 0; i < t.g->n_node; i++) {
        const struct lksi_gnode *n = &t.g->node[i];
        if (n->dead || strcmp(n->call.op->name, "dense_weight_grad") != 0)
            continue;
        whole += n->call.in[0].dim[0] == 5;
        blocks += n->call.in[0].dim[0] <= 2;
    }
    cr_expect(whole == 1 && blocks == 3 * (3 + 4), "%d whole, %d blocks", whole, blocks);
    net_close(&t);
    net_open(&t, recurrent(between), 4, 4); /* one block: no copies of samples */
    net_all_gradients(&t);
    for (size_t i = 0; i < t.g->n_node; i++)
        cr_expect(t.g->node[i].dead || strcmp(t.g->node[i].call.op->name, "samples") != 0);
    net_close(&t);
}

Test(shared, a_batch_normalisation_is_refused)
{
    struct lks_graph *g, *copy;
    lks_value x;
    lksi_value wanted[8], grad[8], in[3], out[4];
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "x", 1, (int64_t[]){CLASSES}, &x));
    EXPECT_OK(lks_graph_batch_norm(g, x, lks_batch_norm_params(.name = "first"), &x));
    in[0] = x;
    in[1] = g->param[0].value;
    in[2] = g->param[1].value;
    EXPECT_OK(lksi_graph_add_node(g, "second", "batch_norm", g->node[0].call.attr, 3, in, out));
    x = out[0];
    EXPECT_OK(lks_graph_softmax_cross_entropy(g, x));
    EXPECT_OK(lksi_graph_at_batch(&copy, g, 4, 2));
    for (size_t i = 0; i < copy->n_param; i++)
        wanted[i] = copy->param[i].value;
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lksi_graph_backward(copy, copy->loss, copy->n_param, wanted, grad), "first");
    lks_graph_destroy(&copy);
    lks_graph_destroy(&g);
}

/* A parameter as data, one in two sums, one that is its own gradient's twin: whole gradients, each
 * in memory of its own. */
Test(shared, other_uses)
{
    struct lks_graph *g;
    struct lksi_desc d = lksi_desc_make(LKSI_F32, 2, (int64_t)4, (int64_t)CLASSES), row = d;
    lksi_value in[2], a, b, out[4], wanted[2];
    struct net t;
    int compared;
    row.dim[0] = 4;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lksi_graph_add_state(g, "a", &d, LKSI_NONE, 0, &a));
    EXPECT_OK(lksi_graph_add_state(g, "b", &row, LKSI_NONE, 0, &b));
    in[0] = sum(g, sum(g, a, b), a);
    struct lksi_desc label = lksi_desc_make(LKSI_I32, 1, (int64_t)4);
    EXPECT_OK(lksi_graph_add_input(g, "label", &label, false, &in[1]));
    EXPECT_OK(lksi_graph_add_node(g, "loss", "softmax_cross_entropy", &plain, 2, in, out));
    EXPECT_OK(lksi_graph_add_node(g, "mean", "batch_mean", NULL, 1, &out[0], &g->loss));
    net_open(&t, g, 4, 2);
    wanted[0] = b;
    wanted[1] = a;
    net_gradients(&t, g->loss, 2, wanted);
    net_gradients(&t, g->loss, 1, &in[0]);
    cr_assert(t.grad[0] != t.grad[1] && t.grad[0] != t.grad[2]);
    for (int i = 0; i < 3; i++)
        cr_assert(t.g->value[t.grad[i]].home == LKSI_NONE);
    net_run(&t);
    compared = compare_gradients(&t);
    cr_expect(compared == 24, "%d compared", compared);
    net_close(&t);
}

/* ---- two losses ---- */

static lksi_value loss_of(struct lks_graph *g, lksi_value logits, lksi_value label)
{
    lksi_value out[4], mean, in[2] = {logits, label};
    EXPECT_OK(lksi_graph_add_node(g, "loss", "softmax_cross_entropy", &plain, 2, in, out));
    EXPECT_OK(lksi_graph_add_node(g, "mean", "batch_mean", NULL, 1, &out[0], &mean));
    return mean;
}

static lksi_value critic(struct lks_graph *g, lks_value x)
{
    bool first = lksi_graph_find(g, "c1.weight") == LKSI_NONE;
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.name = first ? "c1" : NULL, .out = 5,
                                                     .share = first ? NULL : "c1"), &x));
    EXPECT_OK(lks_graph_relu(g, x, &x));
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.name = first ? "c2" : NULL, .out = CLASSES,
                                                     .share = first ? NULL : "c2"), &x));
    return x;
}

Test(shared, two_losses_of_one_graph)
{
    struct lks_graph *g;
    lks_value noise, real, fake, held, d_loss, g_loss, label[2];
    struct lksi_desc l = lksi_desc_make(LKSI_I32, 1, (int64_t)1);
    struct net t;
    lksi_value wanted[WANTED], grad[4];
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "noise", 1, (int64_t[]){4}, &noise));
    EXPECT_OK(lks_graph_input(g, "real", 1, (int64_t[]){6}, &real));
    EXPECT_OK(lksi_graph_add_input(g, "yes", &l, true, &label[0]));
    EXPECT_OK(lksi_graph_add_input(g, "no", &l, true, &label[1]));
    EXPECT_OK(lks_graph_dense(g, noise, lks_dense_params(.name = "gen", .out = 6), &fake));
    EXPECT_OK(lks_graph_stop_gradient(g, fake, &held));
    d_loss = sum(g, loss_of(g, critic(g, real), label[0]), loss_of(g, critic(g, held), label[1]));
    g_loss = loss_of(g, critic(g, fake), label[0]);
    net_open(&t, g, 5, 2);
    cr_assert_eq(t.g->n_param, 6);
    for (size_t i = 0; i < 6; i++)
        wanted[i] = t.g->param[i].value; /* gen has the first two */
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_graph_backward(t.g, d_loss, 2, wanted, grad), "gen.weight");
    net_gradients(&t, d_loss, 4, wanted + 2);
    net_gradients(&t, g_loss, 2, wanted);
    net_run(&t);
    cr_expect(compare_gradients(&t) > 30);
    net_close(&t);
}
