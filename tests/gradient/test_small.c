/*
 * test_small.c - the kinds of networks that people train, each small and whole: the gradients of
 * every parameter by autodiff against central differences in double, at batches of one and of
 * several blocks, as built and after fusion.
 */
#include "net.h"

typedef lks_graph *(*build_fn)(void);

/* ---- pieces ---- */

static lks_graph *begin(const int64_t *dims, lks_value *x)
{
    lks_graph *g;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "x", 3, dims, x));
    return g;
}

static void classify(lks_graph *g, lks_value x)
{
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = CLASSES), &x));
    EXPECT_OK(lks_graph_softmax_cross_entropy(g, x));
}

static void add_loss(lks_graph *g, const char *name, lks_loss_kind kind, lks_value x,
                     lks_value target, double weight)
{
    lks_value loss;
    EXPECT_OK(lks_graph_loss_to(g, kind, x, target, 0, &loss));
    EXPECT_OK(lks_graph_add_loss(g, name, loss, weight));
}

static lks_value norm(lks_graph *g, lks_value x)
{
    EXPECT_OK(lks_graph_batch_norm(g, x, NULL, &x));
    return x;
}

static lks_value conv_norm(lks_graph *g, lks_value x, int out, int kernel, int stride, int groups)
{
    EXPECT_OK(lks_graph_conv2d(g, x, lks_conv2d_params(.out = out, .kernel = kernel,
                                                       .stride = stride, .pad = kernel / 2,
                                                       .groups = groups, .no_bias = true), &x));
    return norm(g, x);
}

static lks_value relu(lks_graph *g, lks_value x)
{
    EXPECT_OK(lks_graph_relu(g, x, &x));
    return x;
}

/* ---- networks ---- */

static lks_graph *classifier(void)
{
    lks_value x;
    lks_graph *g = begin((int64_t[]){9, 8, 2}, &x);
    x = relu(g, conv_norm(g, x, 4, 3, 1, 1));
    EXPECT_OK(lks_graph_maxpool(g, x, lks_pool_params(.kernel = 3, .stride = 2, .pad = 1), &x));
    x = relu(g, conv_norm(g, x, 5, 3, 1, 1));
    EXPECT_OK(lks_graph_avgpool(g, x, lks_pool_params(.kernel = 2), &x));
    classify(g, x);
    return g;
}

static lks_graph *residual(void)
{
    lks_value x, y;
    lks_graph *g = begin((int64_t[]){6, 6, 3}, &x);
    x = relu(g, conv_norm(g, x, 4, 3, 1, 1));
    y = conv_norm(g, relu(g, conv_norm(g, x, 4, 3, 1, 1)), 4, 3, 1, 1);
    EXPECT_OK(lks_graph_add(g, y, x, &x));
    x = relu(g, x);
    y = conv_norm(g, relu(g, conv_norm(g, x, 6, 3, 2, 1)), 6, 3, 1, 1);
    EXPECT_OK(lks_graph_add(g, y, conv_norm(g, x, 6, 1, 2, 1), &x));
    EXPECT_OK(lks_graph_global_avgpool(g, relu(g, x), &x));
    classify(g, x);
    return g;
}

/* Inverted residuals: wider, each channel by itself, narrower. The second widens by 3 x 3 with a
 * border, without which the bias of the normalisation before would have no gradient. */
static lks_graph *depthwise(void)
{
    lks_value x, y;
    lks_graph *g = begin((int64_t[]){7, 6, 3}, &x);
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(lks_graph_relu6(g, conv_norm(g, x, 6, 2 * i + 1, 1, 1), &y));
        EXPECT_OK(lks_graph_relu6(g, conv_norm(g, y, 6, 3, i + 1, 6), &y));
        y = conv_norm(g, y, 3, 1, 1, 1);
        if (i == 0)
            EXPECT_OK(lks_graph_add(g, y, x, &y));
        x = y;
    }
    EXPECT_OK(lks_graph_global_avgpool(g, x, &x));
    classify(g, x);
    return g;
}

/* Down to a code and up again by transposed convolutions. */
static lks_graph *decoder(void)
{
    lks_value image, x;
    lks_graph *g = begin((int64_t[]){8, 8, 1}, &image);
    EXPECT_OK(lks_graph_dense(g, image, lks_dense_params(.out = 5), &x));
    EXPECT_OK(lks_graph_tanh(g, x, &x));
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = 12, .no_bias = true), &x));
    EXPECT_OK(lks_graph_reshape(g, x, 3, (int64_t[]){2, 2, 3}, &x));
    x = relu(g, norm(g, x));
    EXPECT_OK(lks_graph_conv_transpose2d(
        g, x, lks_conv_transpose2d_params(.out = 4, .kernel = 4, .stride = 2, .pad = 1), &x));
    EXPECT_OK(lks_graph_softplus(g, x, &x));
    EXPECT_OK(lks_graph_conv_transpose2d(
        g, x, lks_conv_transpose2d_params(.out = 1, .kernel = 3, .stride = 2, .pad = 1,
                                          .output_pad = 1), &x));
    EXPECT_OK(lks_graph_sigmoid(g, x, &x));
    add_loss(g, "loss", LKS_LOSS_MSE, x, image, 1.0);
    return g;
}

static lks_value gate(lks_graph *g, lks_value x, lks_value h, const char *name, int t)
{
    char of_h[8], of_x[8];
    lks_value a, b;
    snprintf(of_x, sizeof of_x, "x_%s", name);
    snprintf(of_h, sizeof of_h, "h_%s", name);
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.name = t == 0 ? of_x : NULL, .out = 3,
                                                     .share = t == 0 ? NULL : of_x), &a));
    EXPECT_OK(lks_graph_dense(g, h, lks_dense_params(.name = t == 0 ? of_h : NULL, .out = 3,
                                                     .share = t == 0 ? NULL : of_h,
                                                     .no_bias = true), &b));
    EXPECT_OK(lks_graph_add(g, a, b, &a));
    if (name[0] == 'g')
        EXPECT_OK(lks_graph_tanh(g, a, &a));
    else
        EXPECT_OK(lks_graph_sigmoid(g, a, &a));
    return a;
}

/* An LSTM over three vectors of a sequence. */
static lks_graph *recurrence(void)
{
    lks_value all, x, h, c, kept, new;
    lks_graph *g;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "x", 2, (int64_t[]){3, 4}, &all));
    EXPECT_OK(lks_graph_constant(g, 0.5f, 1, (int64_t[]){3}, &h));
    EXPECT_OK(lks_graph_constant(g, 0, 1, (int64_t[]){3}, &c));
    for (int t = 0; t < 3; t++) {
        EXPECT_OK(lks_graph_select(g, all, 0, t, &x));
        EXPECT_OK(lks_graph_mul(g, gate(g, x, h, "f", t), c, &kept));
        EXPECT_OK(lks_graph_mul(g, gate(g, x, h, "i", t), gate(g, x, h, "g", t), &new));
        EXPECT_OK(lks_graph_add(g, kept, new, &c));
        EXPECT_OK(lks_graph_tanh(g, c, &new));
        EXPECT_OK(lks_graph_mul(g, gate(g, x, h, "o", t), new, &h));
    }
    classify(g, h);
    return g;
}

static lks_value linear(lks_graph *g, lks_value x, int out)
{
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = out, .last_axis = true), &x));
    return x;
}

/* [positions, width] as [heads, positions, width / heads]. */
static lks_value heads(lks_graph *g, lks_value x)
{
    EXPECT_OK(lks_graph_reshape(g, x, 3, (int64_t[]){0, 2, -1}, &x));
    EXPECT_OK(lks_graph_transpose(g, x, (int[]){1, 0, 2}, &x));
    return x;
}

/* A block of a transformer: two causal heads, then two layers with gelu. */
static lks_graph *attention(void)
{
    lks_value x, n, y, loss;
    lks_graph *g;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input_tokens(g, "tokens", 1, (int64_t[]){5}, &x));
    EXPECT_OK(lks_graph_embedding(g, x, lks_embedding_params(.vocabulary = CLASSES, .out = 4), &x));
    EXPECT_OK(lks_graph_positions(g, x, NULL, &x));
    EXPECT_OK(lks_graph_layer_norm(g, x, NULL, &n));
    EXPECT_OK(lks_graph_matmul(g, heads(g, linear(g, n, 4)), heads(g, linear(g, n, 4)), false, true,
                               &y));
    EXPECT_OK(lks_graph_mul_number(g, y, 0.7, &y));
    EXPECT_OK(lks_graph_softmax(g, y, true, &y));
    EXPECT_OK(lks_graph_matmul(g, y, heads(g, linear(g, n, 4)), false, false, &y));
    EXPECT_OK(lks_graph_transpose(g, y, (int[]){1, 0, 2}, &y));
    EXPECT_OK(lks_graph_reshape(g, y, 2, (int64_t[]){0, 4}, &y));
    EXPECT_OK(lks_graph_add(g, x, linear(g, y, 4), &x));
    EXPECT_OK(lks_graph_layer_norm(g, x, NULL, &n));
    EXPECT_OK(lks_graph_gelu(g, linear(g, n, 6), &y));
    EXPECT_OK(lks_graph_add(g, x, linear(g, y, 4), &x));
    EXPECT_OK(lks_graph_softmax_loss(g, linear(g, x, CLASSES),
                                     lks_softmax_loss_params(.smoothing = 0.1), &loss));
    EXPECT_OK(lks_graph_add_loss(g, "loss", loss, 1.0));
    return g;
}

static lks_value judge(lks_graph *g, lks_value x, bool first)
{
    EXPECT_OK(lks_graph_conv2d(g, x, lks_conv2d_params(.name = first ? "d1" : NULL,
                                                       .share = first ? NULL : "d1", .out = 3,
                                                       .kernel = 4, .stride = 2, .pad = 1), &x));
    EXPECT_OK(lks_graph_leaky_relu(g, x, 0.2, &x));
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.name = first ? "d2" : NULL, .out = 1,
                                                     .share = first ? NULL : "d2"), &x));
    return x;
}

/* A generator and a discriminator against each other: two losses of one graph. */
static lks_graph *two_losses(void)
{
    lks_value noise, real, x, judged, loss;
    lks_graph *g;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "noise", 1, (int64_t[]){4}, &noise));
    EXPECT_OK(lks_graph_input(g, "real", 3, (int64_t[]){6, 6, 1}, &real));
    EXPECT_OK(lks_graph_dense(g, noise, lks_dense_params(.name = "g1", .out = 18, .no_bias = true),
                              &x));
    EXPECT_OK(lks_graph_reshape(g, x, 3, (int64_t[]){3, 3, 2}, &x));
    x = relu(g, norm(g, x));
    EXPECT_OK(lks_graph_conv_transpose2d(
        g, x, lks_conv_transpose2d_params(.name = "g2", .out = 1, .kernel = 4, .stride = 2,
                                          .pad = 1), &x));
    EXPECT_OK(lks_graph_tanh(g, x, &x));
    judged = judge(g, real, true);
    EXPECT_OK(lks_graph_loss_to_number(g, LKS_LOSS_BCE, judged, 1, 0, &loss));
    EXPECT_OK(lks_graph_add_loss(g, "d_loss", loss, 1.0));
    judged = judge(g, x, false);
    EXPECT_OK(lks_graph_loss_to_number(g, LKS_LOSS_BCE, judged, 0, 0, &loss));
    EXPECT_OK(lks_graph_add_loss(g, "d_loss", loss, 1.0));
    EXPECT_OK(lks_graph_loss_to_number(g, LKS_LOSS_BCE, judged, 1, 0, &loss));
    EXPECT_OK(lks_graph_add_loss(g, "g_loss", loss, 0.5));
    return g;
}

/* ---- the comparison ---- */

struct network {
    const char *name;
    build_fn build;
    size_t losses, parameters;
};

static const struct network networks[] = {
    {"classifier", classifier, 1, 8},
    {"residual", residual, 1, 20},
    {"depthwise", depthwise, 1, 20},
    {"decoder", decoder, 1, 9},
    {"recurrence", recurrence, 1, 14},
    {"attention", attention, 1, 20},
    {"two_losses", two_losses, 2, 9},
};

/* Of several losses, each for every parameter that reaches it. */
static void gradients_of_losses(struct net *t)
{
    for (size_t l = 0; l < t->g->n_loss; l++) {
        bool *reached = calloc(t->g->n_value, sizeof *reached);
        lksi_value wanted[WANTED], loss = t->g->losses[l].value;
        size_t n = 0;
        lksi_graph_reach(t->g, 1, &loss, true, reached);
        for (size_t p = 0; p < t->g->n_param; p++)
            if (reached[t->g->param[p].value])
                wanted[n++] = t->g->param[p].value;
        free(reached);
        net_gradients(t, loss, n, wanted);
    }
}

static void check(const struct network *n, uint32_t batch, uint32_t leaf, bool fused)
{
    struct net t;
    int compared, possible = 0;
    net_open(&t, n->build(), batch, leaf);
    if (fused)
        EXPECT_OK(lksi_graph_fuse(t.g));
    if (n->losses == 1)
        net_all_gradients(&t);
    else
        gradients_of_losses(&t);
    net_run(&t);
    cr_expect_eq(t.g->n_loss, n->losses);
    cr_expect(t.g->n_param == n->parameters, "%s: %zu parameters", n->name, t.g->n_param);
    for (size_t w = 0; w < t.n_wanted; w++)
        possible += size_of(&t, t.wanted[w]) < SAMPLES ? (int)size_of(&t, t.wanted[w]) : SAMPLES;
    compared = compare_gradients(&t);
    cr_expect(compared * 10 > possible * 9, "%s, batch %u: %d of %d compared, the others on kinks",
              n->name, batch, compared, possible);
    net_close(&t);
}

static void check_named(const char *name)
{
    size_t i = 0;
    while (strcmp(networks[i].name, name) != 0)
        i++;
    check(&networks[i], 2, 8, false);
    check(&networks[i], 5, 2, false);
    check(&networks[i], 4, 8, true);
}

#define SMALL(name)                                                                                \
    Test(small, name)                                                                              \
    {                                                                                              \
        check_named(#name);                                                                        \
    }
SMALL(classifier)
SMALL(residual)
SMALL(depthwise)
SMALL(decoder)
SMALL(recurrence)
SMALL(attention)
SMALL(two_losses)
