/*
 * train_help.h - a small network and data for the tests of training.
 */
#ifndef LKS_TESTS_TRAIN_HELP_H
#define LKS_TESTS_TRAIN_HELP_H

#include <lockstep/lockstep.h>

#include "helpers.h"

#define SIDE    10
#define SAMPLES 53 /* not a multiple of any batch here */
#define CLASSES 4

static uint8_t help_pixels[SAMPLES * SIDE * SIDE];
static int32_t help_labels[SAMPLES];

/* Squares of four sizes on noise: learnable, and never symmetric. */
static inline lks_dataset *make_data(void)
{
    lks_dataset *data;
    uint32_t state = 12345;
    for (int i = 0; i < SAMPLES; i++) {
        help_labels[i] = i % CLASSES;
        for (int p = 0; p < SIDE * SIDE; p++) {
            int y = p / SIDE, x = p % SIDE, edge = 2 + 2 * help_labels[i];
            state = state * 1664525u + 1013904223u;
            help_pixels[i * SIDE * SIDE + p] =
                (uint8_t)((state >> 26) + (y < edge && x < edge ? 180u : 0u));
        }
    }
    EXPECT_OK(lks_dataset_create(
        &data, lks_dataset_params(.count = SAMPLES, .h = SIDE, .w = SIDE, .pixels = help_pixels,
                                  .labels = help_labels, .normalize = {0.3, 0.3})));
    return data;
}

/* conv 3x3, relu, pool, conv 3x3 stride 2, relu, dense, relu, dense. */
static inline lks_graph *make_graph(void)
{
    lks_graph *g;
    lks_value x;
    const int64_t dims[] = {SIDE, SIDE, 1};
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "image", 3, dims, &x));
    EXPECT_OK(lks_graph_conv2d(g, x, lks_conv2d_params(.out = 6, .kernel = 3, .pad = 1), &x));
    EXPECT_OK(lks_graph_relu(g, x, &x));
    EXPECT_OK(lks_graph_maxpool(g, x, lks_pool_params(.kernel = 2), &x));
    EXPECT_OK(lks_graph_conv2d(g, x, lks_conv2d_params(.out = 5, .kernel = 3, .stride = 2), &x));
    EXPECT_OK(lks_graph_relu(g, x, &x));
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = 17), &x));
    EXPECT_OK(lks_graph_relu(g, x, &x));
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = CLASSES), &x));
    EXPECT_OK(lks_graph_softmax_cross_entropy(g, x));
    return g;
}

static inline lks_device *open_or_skip(const char *select)
{
    lks_device *device;
    lks_status st =
        lks_device_open(&device, lks_device_params(.select = select, .threads = 2, .cache_dir = ""));
    if (st == LKS_E_DEVICE && strcmp(select, "ref") != 0)
        cr_skip_test("no OpenCL CPU device: install pocl-opencl-icd");
    cr_assert_eq(st, LKS_OK, "%s", lks_error_message());
    return device;
}

static inline struct lks_trainer_params small_params(lks_device *device)
{
    return (struct lks_trainer_params){
        .device = device, .batch = 12, .leaf = 4, .seed = 7, .epochs = 3,
        .sgd = {.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-4,
                .schedule = LKS_SCHEDULE_LINEAR}};
}

#endif
