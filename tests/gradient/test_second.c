/*
 * test_second.c - gradients inside a network (lks_graph_gradient), differentiated again: against
 * central differences in double, at batch sizes that the model was not built for.
 */
#include "net.h"
#include "op/attr.h"

enum { DENSE = 1, CONV = 2, POOL = 4, NORM = 8, BATCH_NORM = 16 };

/* Behind a batch normalisation, which moves every number, no kinks: differences would meet them. */
static lks_value bend(struct lks_graph *g, lks_value x, int parts)
{
    if (parts & BATCH_NORM) {
        EXPECT_OK(lks_graph_batch_norm(g, x, NULL, &x));
        EXPECT_OK(lks_graph_tanh(g, x, &x));
    } else {
        EXPECT_OK(lks_graph_relu(g, x, &x));
    }
    return x;
}

/* An image to one number or more. */
static lks_value critic(struct lks_graph *g, lks_value x, int parts)
{
    bool no_bias = (parts & BATCH_NORM) != 0; /* it would take it off again */
    if (parts & CONV) {
        EXPECT_OK(lks_graph_conv2d(
            g, x, lks_conv2d_params(.out = 4, .kernel = 3, .pad = 1, .no_bias = no_bias), &x));
        if (parts & NORM)
            EXPECT_OK(lks_graph_layer_norm(g, x, NULL, &x));
        x = bend(g, x, parts);
        if (parts & POOL)
            EXPECT_OK(lks_graph_maxpool(g, x, lks_pool_params(.kernel = 2), &x));
        EXPECT_OK(lks_graph_conv2d(
            g, x, lks_conv2d_params(.out = 4, .kernel = 3, .stride = 2, .pad = 1, .groups = 2,
                                    .no_bias = no_bias), &x));
        if (parts & NORM)
            EXPECT_OK(lks_graph_group_norm(g, x, lks_group_norm_params(.groups = 2), &x));
        x = bend(g, x, parts);
    }
    if (parts & DENSE) {
        EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = 6, .no_bias = no_bias), &x));
        x = bend(g, x, parts);
    }
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = CLASSES, .no_bias = true), &x));
    return x;
}

/* The loss of the scores and of their gradient for the image; the latter's logits are made of it by
 * a dense layer, so that the loss bends with it. */
static struct lks_graph *penalised(int parts)
{
    struct lks_graph *g;
    lks_value x, y, dx;
    const struct lksi_cross_entropy_attr plain = {0};
    lksi_value in[2], out[4], mean, both;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "image", 3, (int64_t[]){6, 5, 2}, &x));
    y = critic(g, x, parts);
    EXPECT_OK(lks_graph_gradient(g, y, x, &dx));
    EXPECT_OK(lks_graph_softmax_cross_entropy(g, y));
    EXPECT_OK(lks_graph_dense(g, dx, lks_dense_params(.name = "of_gradient", .out = CLASSES), &y));
    in[0] = y;
    in[1] = g->label;
    EXPECT_OK(lksi_graph_add_node(g, "penalty", "softmax_cross_entropy", &plain, 2, in, out));
    EXPECT_OK(lksi_graph_add_node(g, "mean", "batch_mean", NULL, 1, &out[0], &mean));
    in[0] = g->loss;
    in[1] = mean;
    EXPECT_OK(lksi_graph_add_node(g, "loss", "add", NULL, 2, in, &both));
    g->loss = both;
    return g;
}

static void check_penalty(int parts, uint32_t batch, int enough, bool fused)
{
    struct net t;
    int compared;
    net_open(&t, penalised(parts), batch, 2);
    if (fused) /* as a step does it: gradients of what fusion made */
        EXPECT_OK(lksi_graph_fuse(t.g));
    net_all_gradients(&t);
    net_gradients(&t, t.g->loss, 1, (lksi_value[]){lksi_graph_find(t.g, "image")});
    net_run(&t);
    compared = compare_gradients(&t);
    cr_expect(compared > enough, "%d compared", compared);
    net_close(&t);
}

Test(second, dense)
{
    check_penalty(DENSE, 5, 40, false);
    check_penalty(DENSE, 1, 40, false);
    check_penalty(DENSE, 5, 40, true);
}

Test(second, convolutions)
{
    check_penalty(CONV, 5, 60, false);
    check_penalty(CONV | DENSE, 2, 60, true);
}

Test(second, pooling)
{
    check_penalty(CONV | POOL | DENSE, 3, 60, false);
    check_penalty(CONV | POOL | DENSE, 3, 60, true);
}

Test(second, normalisations)
{
    check_penalty(CONV | NORM | DENSE, 3, 60, false);
    check_penalty(CONV | NORM | POOL, 2, 60, true);
}

/* Its samples mix; the statistics are differentiated, too. */
Test(second, batch_normalisations)
{
    check_penalty(BATCH_NORM | DENSE, 5, 40, false);
    check_penalty(BATCH_NORM | CONV | DENSE, 3, 60, false);
    check_penalty(BATCH_NORM | CONV | POOL | DENSE, 5, 60, true);
}

/* The gradient itself, as a value of the network. */
Test(second, the_gradient_is_one)
{
    struct net t;
    struct lks_graph *g;
    lks_value x, y, dx;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "image", 3, (int64_t[]){6, 5, 2}, &x));
    y = critic(g, x, CONV | POOL | DENSE);
    EXPECT_OK(lks_graph_gradient(g, y, x, &dx));
    net_open(&t, g, 3, 2);
    net_run(&t);
    for (size_t e = 0; e < size_of(&t, x); e++) {
        double slope[2], kept = t.d[x][e], was = t.d[dx][e];
        for (int side = 0; side < 2; side++) {
            slope[side] = 0.0;
            t.d[x][e] = kept + (side == 0 ? STEP : -STEP);
            run_real(&t, t.g->n_node);
            for (size_t k = 0; k < size_of(&t, y); k++)
                slope[side] += t.d[y][k] / (side == 0 ? STEP : -STEP);
            t.d[x][e] = kept;
            run_real(&t, t.g->n_node);
            for (size_t k = 0; k < size_of(&t, y); k++)
                slope[side] -= t.d[y][k] / (side == 0 ? STEP : -STEP);
        }
        if (fabs(slope[0] - slope[1]) < 1e-4)
            cr_expect(fabs(slope[0] - was) < 1e-5, "element %zu: %g, by differences %g", e, was,
                      slope[0]);
        cr_expect(fabs((double)t.f[dx][e] - was) < 1e-5);
    }
    net_close(&t);
}

/* ---- WGAN-GP: one critic on three images, the gradient of one of them in the loss ---- */

static lks_value score(struct lks_graph *g, lks_value x)
{
    const char *conv = g->n_param == 0 ? NULL : "conv1";
    const char *norm = conv == NULL ? NULL : "layer_norm1", *dense = conv == NULL ? NULL : "dense1";
    EXPECT_OK(lks_graph_conv2d(
        g, x, lks_conv2d_params(.share = conv, .out = 4, .kernel = 3, .stride = 2, .pad = 1), &x));
    EXPECT_OK(lks_graph_layer_norm(g, x, lks_norm_params(.share = norm), &x));
    EXPECT_OK(lks_graph_leaky_relu(g, x, 0.2, &x));
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.share = dense, .out = 1, .no_bias = true),
                              &x));
    return x;
}

static lksi_value mean(struct lks_graph *g, lks_value x)
{
    const struct lksi_reshape_attr flat = {1, {-1}};
    lksi_value v;
    EXPECT_OK(lksi_graph_add_node(g, "flat", "reshape", &flat, 1, &x, &v));
    EXPECT_OK(lksi_graph_add_node(g, "mean", "batch_mean", NULL, 1, &v, &v));
    return v;
}

static lksi_value sum(struct lks_graph *g, lksi_value a, lksi_value b)
{
    EXPECT_OK(lksi_graph_add_node(g, "add", "add", NULL, 2, (lksi_value[]){a, b}, &a));
    return a;
}

Test(second, wasserstein_with_a_gradient_penalty)
{
    static const char *const name[] = {"real", "fake", "between"};
    for (uint32_t batch = 1; batch <= 5; batch += 2) {
        struct lks_graph *g;
        lks_value image[3], y[3], dx, less;
        struct net t;
        EXPECT_OK(lks_graph_create(&g, NULL));
        for (int i = 0; i < 3; i++) {
            EXPECT_OK(lks_graph_input(g, name[i], 3, (int64_t[]){6, 5, 1}, &image[i]));
            y[i] = score(g, image[i]);
        }
        EXPECT_OK(lks_graph_gradient(g, y[2], image[2], &dx));
        EXPECT_OK(lks_graph_square(g, dx, &dx));
        EXPECT_OK(lks_graph_global_avgpool(g, dx, &dx));
        EXPECT_OK(lks_graph_sqrt(g, dx, &dx));
        EXPECT_OK(lks_graph_dense(g, dx, lks_dense_params(.out = 1), &dx)); /* norm - 1 or so */
        EXPECT_OK(lks_graph_square(g, dx, &dx));
        EXPECT_OK(lks_graph_neg(g, y[0], &less));
        g->loss = sum(g, sum(g, mean(g, less), mean(g, y[1])), mean(g, dx));
        net_open(&t, g, batch, 2);
        if (batch == 5)
            EXPECT_OK(lksi_graph_fuse(t.g));
        net_all_gradients(&t);
        net_gradients(&t, t.g->loss, 3, image);
        net_run(&t);
        cr_expect(t.n_wanted == 10 && compare_gradients(&t) > 60);
        net_close(&t);
    }
}

/* Functions of a vector that bend: softmax, also of masked rows, its logarithm, and powers. */
static lks_value softmax(struct lks_graph *g, lks_value x)
{
    EXPECT_OK(lks_graph_softmax(g, x, false, &x));
    return x;
}

static lks_value causal_softmax(struct lks_graph *g, lks_value x)
{
    EXPECT_OK(lks_graph_softmax(g, x, true, &x));
    return x;
}

static lks_value log_softmax(struct lks_graph *g, lks_value x)
{
    EXPECT_OK(lks_graph_log_softmax(g, x, &x));
    return x;
}

static lks_value power(struct lks_graph *g, lks_value x)
{
    lks_value base, exponent;
    EXPECT_OK(lks_graph_add_number(g, x, 4.0, &base));
    EXPECT_OK(lks_graph_select(g, x, 0, 1, &exponent)); /* broadcast over the rows */
    EXPECT_OK(lks_graph_pow(g, base, exponent, &x));
    return x;
}

static lks_value power_of_number(struct lks_graph *g, lks_value x)
{
    EXPECT_OK(lks_graph_add_number(g, x, 4.0, &x));
    EXPECT_OK(lks_graph_pow_number(g, x, -1.5, &x));
    return x;
}

/* The loss holds the gradient of the function's weighed sum, and the parameters in front of it get
 * a gradient through that. */
static void check_function(lks_value (*function)(struct lks_graph *g, lks_value x))
{
    struct lks_graph *g;
    lks_value x, h, y, dx;
    struct net t;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "x", 2, (int64_t[]){3, 4}, &x));
    EXPECT_OK(lks_graph_scale(g, x, NULL, &h));
    EXPECT_OK(lks_graph_dense(g, h, lks_dense_params(.out = 4, .last_axis = true), &h));
    y = function(g, h);
    EXPECT_OK(lks_graph_square(g, y, &y));
    EXPECT_OK(lks_graph_dense(g, y, lks_dense_params(.out = 1), &y));
    EXPECT_OK(lks_graph_gradient(g, y, x, &dx));
    EXPECT_OK(lks_graph_square(g, dx, &dx));
    EXPECT_OK(lks_graph_dense(g, dx, lks_dense_params(.out = 1), &dx));
    g->loss = sum(g, mean(g, y), mean(g, dx));
    net_open(&t, g, 3, 2);
    net_all_gradients(&t);
    net_gradients(&t, t.g->loss, 1, &x);
    net_run(&t);
    cr_expect(compare_gradients(&t) > 50);
    net_close(&t);
}

Test(second, softmax)
{
    check_function(softmax);
    check_function(causal_softmax);
    check_function(log_softmax);
}

Test(second, powers)
{
    check_function(power);
    check_function(power_of_number);
}

/* Whole powers, and their derivatives of every order, at 0 as elsewhere: the exponent as a number
 * of the operator and as a tensor. */
Test(second, derivatives_of_whole_powers)
{
    for (int way = 0; way < 2; way++)
        for (int n = 0; n <= 3; n++) {
            struct lks_graph *g;
            struct net t;
            lks_value x, e, y, d[6];
            EXPECT_OK(lks_graph_create(&g, NULL));
            EXPECT_OK(lks_graph_input(g, "x", 1, (int64_t[]){4}, &x));
            EXPECT_OK(lks_graph_constant(g, n, 1, (int64_t[]){4}, &e));
            EXPECT_OK(way == 0 ? lks_graph_pow_number(g, x, n, &y) : lks_graph_pow(g, x, e, &y));
            d[0] = y;
            int orders = 1;
            /* Nothing flows through the last derivative of a number's power. */
            for (; orders < (way == 0 ? n + 1 : 6); orders++)
                EXPECT_OK(lks_graph_gradient(g, d[orders - 1], x, &d[orders]));
            net_open(&t, g, 1, 2);
            net_run(&t);
            memcpy(t.f[x], (float[]){0.0f, -0.0f, -1.5f, 2.0f}, 4 * sizeof(float));
            run_items(&t);
            for (int k = 0; k < orders; k++)
                for (int i = 0; i < 4; i++) {
                    double want = k > n ? 0.0 : pow((double)t.f[x][i], n - k);
                    for (int j = 0; j < k && k <= n; j++)
                        want *= n - j;
                    cr_expect(fabs((double)t.f[d[k]][i] - want) <= 1e-6 * fabs(want),
                              "way %d: derivative %d of %g^%d is %g, not %g", way, k,
                              (double)t.f[x][i], n, (double)t.f[d[k]][i], want);
                }
            net_close(&t);
        }
}

Test(second, refusals)
{
    struct lks_graph *g;
    lks_value x, y, z, held, dx = 77;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "x", 1, (int64_t[]){4}, &x));
    EXPECT_OK(lks_graph_input(g, "z", 1, (int64_t[]){4}, &z));
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = 4), &y));
    EXPECT_OK(lks_graph_stop_gradient(g, y, &held));
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_gradient(g, held, x, &dx), "`x`");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_gradient(g, y, z, &dx), "`z`");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_gradient(g, y, 999, &dx), "999");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_gradient(g, y, x, NULL), "NULL");
    cr_expect_eq(dx, 77);
    lks_graph_destroy(&g);
}
