/*
 * test_large.c - a network of thousands of operators is planned in time that grows with it, not with
 * its square or cube: the test's timeout is its measure.
 */
#include <lockstep/lockstep.h>

#include "helpers.h"

#define LAYERS 2500

Test(large, a_cell_unrolled_over_many_steps)
{
    lks_device *device;
    lks_trainer *t;
    lks_graph *g;
    lks_value x;
    EXPECT_OK(lks_device_open(&device, lks_device_params(.select = "ref", .cache_dir = "")));
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "x", 1, (int64_t[]){8}, &x));
    for (int i = 0; i < LAYERS; i++) {
        EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.name = i == 0 ? "cell" : NULL, .out = 8,
                                                         .share = i == 0 ? NULL : "cell"), &x));
        EXPECT_OK(lks_graph_relu(g, x, &x));
    }
    EXPECT_OK(lks_graph_softmax_cross_entropy(g, x));
    EXPECT_OK(lks_trainer_create(
        &t, g, lks_trainer_params(.device = device, .batch = 8, .epochs = 1, .sgd = {.lr = 0.01})));
    cr_expect_eq(lks_graph_parameter_count(g), 2);
    lks_trainer_destroy(&t);
    lks_graph_destroy(&g);
    lks_device_close(&device);
}
