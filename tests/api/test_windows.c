/*
 * test_windows.c - convolutions and poolings whose windows differ by axis: shapes, refusals, and a
 * sequence, which is an image of one row.
 */
#include "train/train_help.h"

static void expect_shape(lks_graph *g, lks_value x, int rank, int64_t a, int64_t b, int64_t c)
{
    const int64_t want[3] = {a, b, c};
    int64_t dim[4];
    int r;
    EXPECT_OK(lks_graph_shape(g, x, &r, dim));
    cr_expect_eq(r, rank);
    for (int i = 0; i < rank && i < r; i++)
        cr_expect_eq(dim[i], want[i], "dimension %d is %lld, not %lld", i, (long long)dim[i],
                     (long long)want[i]);
}

Test(windows, shapes)
{
    lks_graph *g;
    lks_value x, s, y;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "image", 3, (int64_t[]){13, 10, 4}, &x));
    EXPECT_OK(lks_graph_input(g, "sequence", 2, (int64_t[]){11, 6}, &s));
    EXPECT_OK(lks_graph_conv2d(g, x,
                               lks_conv2d_params(.out = 6, .kernel = 3, .kernel_w = 1, .stride = 2,
                                                 .stride_w = 3, .pads = {2, 1, 0, 3}),
                               &y));
    expect_shape(g, y, 3, 7, 5, 6);
    EXPECT_OK(lks_graph_conv2d(
        g, x, lks_conv2d_params(.out = 8, .kernel = 2, .dilation = 3, .dilation_w = 5, .groups = 2),
        &y));
    expect_shape(g, y, 3, 10, 5, 8);
    EXPECT_OK(lks_graph_conv1d(
        g, s, lks_conv2d_params(.out = 3, .kernel = 4, .stride = 2, .pads = {3, 0}), &y));
    expect_shape(g, y, 2, 6, 3, 0);
    EXPECT_OK(lks_graph_conv_transpose2d(
        g, x,
        lks_conv_transpose2d_params(.out = 6, .kernel = 4, .kernel_w = 3, .stride = 2, .stride_w = 3,
                                    .pads = {1, 1, 0, 2}, .output_pad_w = 2, .groups = 2),
        &y));
    expect_shape(g, y, 3, 26, 30, 6);
    EXPECT_OK(lks_graph_maxpool(g, x, lks_pool_params(.kernel = 2), &y));
    expect_shape(g, y, 3, 6, 5, 4);
    EXPECT_OK(lks_graph_maxpool(g, x, lks_pool_params(.kernel = 2, .ceil = true), &y));
    expect_shape(g, y, 3, 7, 5, 4);
    EXPECT_OK(lks_graph_avgpool(g, x,
                                lks_pool_params(.kernel = 3, .kernel_w = 2, .stride_w = 1,
                                                .pads = {1, 0, 0, 1}, .dilation = 2,
                                                .dilation_w = 1, .count_pad = true),
                                &y));
    expect_shape(g, y, 3, 4, 10, 4);
    EXPECT_OK(lks_graph_avgpool(g, s, lks_pool_params(.kernel = 3, .stride = 2, .pad = 1), &y));
    expect_shape(g, y, 2, 6, 6, 0);
    EXPECT_OK(lks_graph_global_avgpool(g, x, &y));
    expect_shape(g, y, 3, 1, 1, 4);
    EXPECT_OK(lks_graph_global_maxpool(g, s, &y));
    expect_shape(g, y, 2, 1, 6, 0);
    lks_graph_destroy(&g);
}

Test(windows, refusals)
{
    lks_graph *g;
    lks_value x, v, y;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "image", 3, (int64_t[]){8, 8, 4}, &x));
    EXPECT_OK(lks_graph_flatten(g, x, &v));
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lks_graph_conv1d(g, x, lks_conv2d_params(.out = 2, .kernel = 3), &y), "conv1d",
                "its input is [", "a sequence is [positions,channels]");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_avgpool(g, v, lks_pool_params(.kernel = 3), &y),
                "avgpool", "an image is [height,width,channels]");
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lks_graph_avgpool(g, x, lks_pool_params(.kernel = 3, .pads = {0, -1}), &y),
                "avgpool", "not negative");
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lks_graph_conv_transpose2d(
                    g, x, lks_conv_transpose2d_params(.out = 2, .kernel = 3, .output_pad = 1), &y),
                "output_pad 1", "stride 1");
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lks_graph_conv_transpose2d(
                    g, x, lks_conv_transpose2d_params(.out = 2, .kernel = 2, .pad = 5), &y),
                "output would be");
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lks_graph_conv_transpose2d(
                    g, x, lks_conv_transpose2d_params(.out = 3, .kernel = 2, .groups = 2), &y),
                "2 groups");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_global_avgpool(g, v, &y), "avgpool", "an image is [height,width,channels]");
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lks_graph_conv2d(g, x, lks_conv2d_params(.out = 2, .kernel = 3, .kernel_w = 9), &y),
                "width");
    lks_graph_destroy(&g);
}

/* The same network over [100, 1], or over the image [1, 100, 1]. */
static void train(const char *select, bool sequence, char hex[65])
{
    static float x[12 * SIDE * SIDE];
    lks_device *device = open_or_skip(select);
    struct lks_trainer_params p = small_params(device);
    struct lks_batch batch = {.x = x, .labels = help_labels, .samples = 12};
    lks_dataset *data = make_data();
    lks_graph *g;
    lks_trainer *t;
    lks_value v;
    EXPECT_OK(lks_graph_create(&g, NULL));
    if (sequence) {
        EXPECT_OK(lks_graph_input(g, "x", 2, (int64_t[]){SIDE * SIDE, 1}, &v));
        EXPECT_OK(lks_graph_conv1d(
            g, v,
            lks_conv2d_params(.name = "a", .out = 6, .kernel = 5, .stride = 2, .pads = {1, 3}),
            &v));
        EXPECT_OK(
            lks_graph_maxpool(g, v, lks_pool_params(.kernel = 3, .stride = 2, .ceil = true), &v));
        EXPECT_OK(lks_graph_conv1d(
            g, v, lks_conv2d_params(.name = "b", .out = 9, .kernel = 3, .dilation = 2), &v));
        EXPECT_OK(lks_graph_avgpool(g, v, lks_pool_params(.kernel = 3, .stride = 1, .pad = 1), &v));
    } else {
        EXPECT_OK(lks_graph_input(g, "x", 3, (int64_t[]){1, SIDE * SIDE, 1}, &v));
        EXPECT_OK(
            lks_graph_conv2d(g, v,
                             lks_conv2d_params(.name = "a", .out = 6, .kernel = 1, .kernel_w = 5,
                                               .stride = 1, .stride_w = 2, .pads = {0, 0, 1, 3}),
                             &v));
        EXPECT_OK(lks_graph_maxpool(
            g, v,
            lks_pool_params(.kernel = 1, .kernel_w = 3, .stride = 1, .stride_w = 2, .ceil = true),
            &v));
        EXPECT_OK(lks_graph_conv2d(
            g, v,
            lks_conv2d_params(.name = "b", .out = 9, .kernel = 1, .kernel_w = 3, .dilation_w = 2),
            &v));
        EXPECT_OK(lks_graph_avgpool(
            g, v, lks_pool_params(.kernel = 1, .kernel_w = 3, .stride = 1, .pads = {0, 0, 1, 1}),
            &v));
    }
    EXPECT_OK(lks_graph_global_avgpool(g, v, &v));
    EXPECT_OK(lks_graph_dense(g, v, lks_dense_params(.out = CLASSES), &v));
    EXPECT_OK(lks_graph_softmax_cross_entropy(g, v));
    for (int i = 0; i < 12 * SIDE * SIDE; i++)
        x[i] = (float)help_pixels[i] / 128.0f - 1.0f;
    p.sgd.schedule = LKS_SCHEDULE_CONSTANT;
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    for (int i = 0; i < 3; i++)
        EXPECT_OK(lks_trainer_step(t, &batch, NULL));
    EXPECT_OK(lks_trainer_weights_sha256(t, hex));
    lks_trainer_destroy(&t);
    lks_graph_destroy(&g);
    lks_dataset_destroy(&data);
    lks_device_close(&device);
}

Test(windows, a_sequence_is_an_image_of_one_row, .timeout = 240)
{
    char ref[65], image[65], cpu[65];
    train("ref", true, ref);
    train("ref", false, image);
    cr_expect_str_eq(ref, image);
    train("cpu", true, cpu);
    cr_expect_str_eq(ref, cpu);
}
