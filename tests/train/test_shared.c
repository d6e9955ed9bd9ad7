/*
 * test_shared.c - training with shared parameters, and with a gradient inside the network: the same bits on `ref`, by its contract items, by
 * plain and by fast kernels, for several leaves and a batch that is no multiple of them.
 */
#include "graph/graph.h"
#include "train_help.h"

/* A convolution used twice, and a dense cell unrolled over three steps. */
static lks_graph *shared_graph(void)
{
    lks_graph *g;
    lks_value x;
    const int64_t dims[] = {SIDE, SIDE, 1};
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "image", 3, dims, &x));
    EXPECT_OK(lks_graph_conv2d(g, x, lks_conv2d_params(.out = 5, .kernel = 3, .pad = 1), &x));
    EXPECT_OK(lks_graph_relu(g, x, &x));
    for (int t = 0; t < 2; t++) {
        EXPECT_OK(lks_graph_conv2d(
            g, x, lks_conv2d_params(.name = t == 0 ? "conv" : NULL, .share = t == 0 ? NULL : "conv",
                                    .out = 5, .kernel = 3, .pad = 1), &x));
        EXPECT_OK(lks_graph_layer_norm(
            g, x, lks_norm_params(.name = t == 0 ? "norm" : NULL, .share = t == 0 ? NULL : "norm"),
            &x));
        EXPECT_OK(lks_graph_relu(g, x, &x));
        EXPECT_OK(lks_graph_maxpool(g, x, lks_pool_params(.kernel = 2), &x));
    }
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = 17), &x));
    EXPECT_OK(lks_graph_relu(g, x, &x));
    for (int t = 0; t < 3; t++) {
        EXPECT_OK(lks_graph_dense(
            g, x, lks_dense_params(.name = t == 0 ? "cell" : NULL, .share = t == 0 ? NULL : "cell",
                                   .out = 17), &x));
        EXPECT_OK(lks_graph_relu(g, x, &x));
    }
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = CLASSES), &x));
    EXPECT_OK(lks_graph_softmax_cross_entropy(g, x));
    return g;
}

/* Classifies by a score and by its gradient for the image. */
static lks_graph *gradient_graph(void)
{
    lks_graph *g;
    lks_value image, x, dx;
    const int64_t dims[] = {SIDE, SIDE, 1};
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "image", 3, dims, &image));
    EXPECT_OK(lks_graph_conv2d(g, image, lks_conv2d_params(.out = 6, .kernel = 3, .pad = 1), &x));
    EXPECT_OK(lks_graph_relu(g, x, &x));
    EXPECT_OK(lks_graph_maxpool(g, x, lks_pool_params(.kernel = 2), &x));
    EXPECT_OK(lks_graph_conv2d(g, x, lks_conv2d_params(.out = 5, .kernel = 3, .no_bias = true), &x));
    EXPECT_OK(lks_graph_layer_norm(g, x, NULL, &x));
    EXPECT_OK(lks_graph_relu(g, x, &x));
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = 1, .no_bias = true), &x));
    EXPECT_OK(lks_graph_gradient(g, x, image, &dx));
    EXPECT_OK(lks_graph_dense(g, dx, lks_dense_params(.out = CLASSES), &dx));
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = CLASSES), &x));
    EXPECT_OK(lksi_graph_add_node(g, "add", "add", NULL, 2, (lks_value[]){x, dx}, &x));
    EXPECT_OK(lks_graph_softmax_cross_entropy(g, x));
    return g;
}

static void digest_of(lks_graph *(*build)(void), lks_device *device, uint32_t leaf, bool plain,
                      const lks_dataset *data, char *hex)
{
    lks_graph *g = build();
    lks_trainer *t;
    struct lks_trainer_params p = small_params(device);
    p.batch = 13;
    p.leaf = leaf;
    p.plain = plain;
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    lks_graph_destroy(&g);
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(
                               .train = data, .test = data, .max_steps = 6)));
    EXPECT_OK(lks_trainer_weights_sha256(t, hex));
    lks_trainer_destroy(&t);
}

Test(shared, one_digest)
{
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref"), *cpu = open_or_skip("cpu");
    const uint32_t leaf[] = {2, 4, 8};
    char first[3][65], other[65];
    for (size_t k = 0; k < LKSI_COUNT(leaf); k++) {
        digest_of(shared_graph, ref, leaf[k], false, data, first[k]);
        digest_of(shared_graph, ref, leaf[k], true, data, other);
        cr_assert_str_eq(first[k], other, "ref and its contract items, leaf %u", leaf[k]);
        digest_of(shared_graph, cpu, leaf[k], true, data, other);
        cr_assert_str_eq(first[k], other, "ref and the plain kernels, leaf %u", leaf[k]);
        digest_of(shared_graph, cpu, leaf[k], false, data, other);
        cr_assert_str_eq(first[k], other, "ref and the fast kernels, leaf %u", leaf[k]);
    }
    cr_expect_str_neq(first[0], first[1], "leaf 2 and 4");
    cr_expect_str_neq(first[1], first[2], "leaf 4 and 8");
    lks_device_close(&cpu);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

Test(shared, gradient_inside_the_network)
{
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref"), *cpu = open_or_skip("cpu");
    char first[65], other[65];
    digest_of(gradient_graph, ref, 4, false, data, first);
    digest_of(gradient_graph, ref, 4, true, data, other);
    cr_assert_str_eq(first, other, "ref and its contract items");
    digest_of(gradient_graph, cpu, 4, true, data, other);
    cr_assert_str_eq(first, other, "ref and the plain kernels");
    digest_of(gradient_graph, cpu, 4, false, data, other);
    cr_assert_str_eq(first, other, "ref and the fast kernels");
    lks_device_close(&cpu);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}
