/*
 * test_shapes.c - layers that move elements: their numbers, element by element, against tables
 * written by hand; refusals; and one digest of a network of all of them on every device.
 */
#include <stdlib.h>
#include <string.h>

#include "api/items.h"
#include "train/train_help.h"

/* Samples 0, 1, 2, ... / scale. */
static float count_up(int64_t e, void *user)
{
    return (float)e / *(float *)user;
}

static lks_graph *start(int rank, const int64_t *dims, lks_value *x)
{
    lks_graph *g;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "x", rank, dims, x));
    return g;
}

/* y has `rank` dimensions, holds `want` (batch 1), and the graph is done with. */
static void expect(lks_graph *g, lks_value y, float scale, int rank, const int64_t *dims,
                   const float *want)
{
    int r;
    int64_t dim[5], n, count = 1;
    float *got = run_items(g, y, count_up, &scale, &n);
    EXPECT_OK(lks_graph_shape(g, y, &r, dim));
    cr_assert_eq(r, rank);
    for (int k = 0; k < rank; k++) {
        cr_assert_eq(dim[k], dims[k], "dimension %d is %lld", k, (long long)dim[k]);
        count *= dims[k];
    }
    cr_assert_eq(n, count);
    for (int64_t e = 0; e < n; e++)
        cr_expect_eq(got[e], want[e], "element %lld is %g, not %g", (long long)e, (double)got[e],
                     (double)want[e]);
    free(got);
    lks_graph_destroy(&g);
}

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define EXPECT(g, y, scale, dims, ...)                                                             \
    expect(g, y, scale, (int)(sizeof(dims) / sizeof(int64_t)), dims, (const float[]){__VA_ARGS__})

Test(shapes, slices)
{
    lks_value x, y;
    lks_graph *g = start(2, DIMS(3, 4), &x);
    EXPECT_OK(lks_graph_slice(g, x, lks_slice_params(.begin = {1, -3}, .end = {0, -1}), &y));
    EXPECT(g, y, 1, DIMS(2, 2), 5, 6, 9, 10);
    g = start(2, DIMS(3, 4), &x);
    EXPECT_OK(lks_graph_slice(g, x, lks_slice_params(.step = {-1, -2}), &y));
    EXPECT(g, y, 1, DIMS(3, 2), 11, 9, 7, 5, 3, 1);
    g = start(1, DIMS(7), &x);
    EXPECT_OK(lks_graph_slice(g, x, lks_slice_params(.begin = {5}, .end = {1}, .step = {-3}), &y));
    EXPECT(g, y, 1, DIMS(2), 5, 2);
    g = start(3, DIMS(2, 3, 2), &x);
    EXPECT_OK(lks_graph_select(g, x, 1, -1, &y));
    EXPECT(g, y, 1, DIMS(2, 2), 4, 5, 10, 11);
}

Test(shapes, constants)
{
    lks_value x, y, z;
    lks_graph *g = start(2, DIMS(2, 3), &x);
    EXPECT_OK(lks_graph_constant(g, 0.5f, 3, DIMS(2, 1, 4), &y));
    EXPECT(g, y, 1, DIMS(2, 1, 4), 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f);
    g = start(4, DIMS(2, 1, 3, 2), &x);
    EXPECT_OK(lks_graph_constant(g, -2, 1, DIMS(3), &y));
    EXPECT_OK(lks_graph_constant(g, 0, 1, DIMS(2), &z));
    EXPECT_OK(lks_graph_concat(g, 2, (const lks_value[]){y, z}, 0, &y));
    EXPECT(g, y, 1, DIMS(5), -2, -2, -2, 0, 0);
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_constant(g, 0, 1, DIMS(2), &y), "no input of floats");
    EXPECT_OK(lks_graph_input(g, "x", 1, DIMS(2), &x));
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_constant(g, 0, 5, DIMS(1, 1, 1, 1, 1), &y), "1 to 4");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_constant(g, 0, 2, DIMS(3, 0), &y), "dimension 1 is 0");
    lks_graph_destroy(&g);
}

Test(shapes, orders)
{
    lks_value x, y;
    lks_graph *g = start(3, DIMS(2, 1, 3), &x);
    EXPECT_OK(lks_graph_transpose(g, x, (const int[]){2, 0, 1}, &y));
    EXPECT(g, y, 1, DIMS(3, 2, 1), 0, 3, 1, 4, 2, 5);
    g = start(3, DIMS(1, 2, 4), &x);
    EXPECT_OK(lks_graph_depth_to_space(g, x, 2, &y));
    EXPECT(g, y, 1, DIMS(2, 4, 1), 0, 1, 4, 5, 2, 3, 6, 7);
    g = start(3, DIMS(2, 4, 1), &x);
    EXPECT_OK(lks_graph_space_to_depth(g, x, 2, &y));
    EXPECT(g, y, 1, DIMS(1, 2, 4), 0, 1, 4, 5, 2, 3, 6, 7);
    g = start(3, DIMS(2, 3, 2), &x);
    EXPECT_OK(lks_graph_reshape(g, x, 2, DIMS(0, -1), &y));
    EXPECT(g, y, 1, DIMS(2, 6), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
}

Test(shapes, joins)
{
    lks_value x, y, many[11];
    lks_graph *g = start(2, DIMS(2, 2), &x);
    EXPECT_OK(lks_graph_slice(g, x, lks_slice_params(.end = {0, 1}), &y));
    EXPECT_OK(lks_graph_concat(g, 3, (const lks_value[]){x, y, x}, -1, &y));
    EXPECT(g, y, 1, DIMS(2, 5), 0, 1, 0, 0, 1, 2, 3, 2, 2, 3);
    g = start(2, DIMS(2, 2), &x);
    EXPECT_OK(lks_graph_stack(g, 2, (const lks_value[]){x, x}, -1, &y));
    EXPECT(g, y, 1, DIMS(2, 2, 2), 0, 0, 1, 1, 2, 2, 3, 3);
    g = start(1, DIMS(11), &x);
    for (int i = 0; i < 11; i++)
        EXPECT_OK(lks_graph_slice(
            g, x, lks_slice_params(.begin = {10 - i}, .end = {11 - i}), &many[i]));
    EXPECT_OK(lks_graph_concat(g, 11, many, 0, &y));
    EXPECT(g, y, 1, DIMS(11), 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
}

Test(shapes, borders)
{
    lks_value x, y;
    lks_graph *g = start(2, DIMS(1, 3), &x);
    EXPECT_OK(lks_graph_pad(
        g, x, lks_pad_params(.before = {1, 0}, .after = {0, 2}, .value = -5), &y));
    EXPECT(g, y, 1, DIMS(2, 5), -5, -5, -5, -5, -5, 0, 1, 2, -5, -5);
    g = start(2, DIMS(2, 2), &x);
    EXPECT_OK(lks_graph_pad(
        g, x, lks_pad_params(.before = {0, 2}, .after = {1, 1}, .mode = LKS_PAD_EDGE), &y));
    EXPECT(g, y, 1, DIMS(3, 5), 0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 2, 2, 2, 3, 3);
    g = start(2, DIMS(2, 3), &x);
    EXPECT_OK(lks_graph_pad(
        g, x, lks_pad_params(.before = {1, 2}, .after = {0, 1}, .mode = LKS_PAD_REFLECT), &y));
    EXPECT(g, y, 1, DIMS(3, 6), 5, 4, 3, 4, 5, 4, 2, 1, 0, 1, 2, 1, 5, 4, 3, 4, 5, 4);
}

/* As PyTorch's interpolate and ONNX's Resize have them. */
Test(shapes, sizes)
{
    lks_value x, y;
    lks_graph *g = start(3, DIMS(1, 2, 2), &x);
    EXPECT_OK(lks_graph_resize(g, x, lks_resize_params(.factor = 2), &y));
    EXPECT(g, y, 1, DIMS(2, 4, 2), 0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3);
    g = start(2, DIMS(2, 1), &x);
    EXPECT_OK(
        lks_graph_resize(g, x, lks_resize_params(.factor = 2, .mode = LKS_RESIZE_BILINEAR), &y));
    EXPECT(g, y, 1, DIMS(4, 1), 0, 0.25f, 0.75f, 1);
    g = start(3, DIMS(2, 2, 1), &x);
    EXPECT_OK(lks_graph_resize(g, x,
                               lks_resize_params(.height = 3, .width = 5,
                                                 .mode = LKS_RESIZE_BILINEAR,
                                                 .place = LKS_PLACE_ALIGN_CORNERS),
                               &y));
    EXPECT(g, y, 1, DIMS(3, 5, 1), 0, 0.25f, 0.5f, 0.75f, 1, 1, 1.25f, 1.5f, 1.75f, 2, 2, 2.25f,
           2.5f, 2.75f, 3);
    /* resize_downsample_sizes_linear: 4 columns to 2 of half pixels. */
    g = start(2, DIMS(4, 1), &x);
    EXPECT_OK(lks_graph_resize(
        g, x, lks_resize_params(.width = 2, .mode = LKS_RESIZE_BILINEAR), &y));
    EXPECT(g, y, 1, DIMS(2, 1), 0.5f, 2.5f);
    /* Places of 4 to 5 by half pixels: -0.1, 0.7, 1.5, 2.3, 3.1. */
    static const float half[4][5] = {
        {0, 0, 1, 2, 3}, {0, 1, 2, 3, 3}, {0, 1, 1, 2, 3}, {0, 1, 2, 2, 3}};
    for (int round = 0; round < 4; round++) {
        g = start(2, DIMS(4, 1), &x);
        EXPECT_OK(lks_graph_resize(g, x,
                                   lks_resize_params(.width = 5, .place = LKS_PLACE_HALF_PIXEL,
                                                     .round = (lks_resize_round)round),
                                   &y));
        expect(g, y, 1, 2, DIMS(5, 1), half[round]);
    }
}

Test(shapes, refusals)
{
    lks_value x, f, y;
    lks_graph *g = start(3, DIMS(4, 6, 5), &x);
    EXPECT_OK(lks_graph_flatten(g, x, &f));
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_reshape(g, x, 2, DIMS(7, -1), &y), "[4,6,5]", "120",
                "[7,-1]");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_reshape(g, x, 1, DIMS(60), &y), "120", "[60]");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_transpose(g, x, (const int[]){0, 2, 2}, &y), "transpose",
                "axis 2", "once");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_concat(g, 2, (const lks_value[]){x, f}, 0, &y), "concat",
                "[4,6,5]", "[120]");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_concat(g, 2, (const lks_value[]){x, x}, 3, &y), "axis 3",
                "-3 to 2");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_slice(g, x, lks_slice_params(.begin = {0, 6}), &y),
                "axis 1", "6 elements");
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lks_graph_slice(g, x, lks_slice_params(.begin = {2}, .end = {2}), &y), "axis 0",
                "takes nothing");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_select(g, x, 0, 4, &y), "index 4", "4 elements");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_pad(g, x, lks_pad_params(.before = {-1}), &y), "-1",
                "axis 0");
    EXPECT_FAIL(
        LKS_E_ARGUMENT,
        lks_graph_pad(g, x, lks_pad_params(.after = {4}, .mode = LKS_PAD_REFLECT), &y), "0 to 3");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_resize(g, f, lks_resize_params(.factor = 2), &y),
                "[120]", "[H,W,C]");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_resize(g, x, lks_resize_params(.mode = 0), &y), "factor");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_depth_to_space(g, x, 2, &y), "[4,6,5]", "block 2");
    lks_graph_destroy(&g);
}

/* Every layer of shape.h between two dense layers, whose weights hear of every gradient. Views
 * follow one another, and one stands on a value that is used twice. */
static lks_graph *network(bool inner)
{
    lks_value image, x, a, b, v, part[3];
    lks_graph *g = start(3, DIMS(SIDE, SIDE, 1), &image);
    EXPECT_OK(lks_graph_conv2d(g, image, lks_conv2d_params(.out = 8, .kernel = 3), &x)); /* [8,8,8] */
    EXPECT_OK(lks_graph_reshape(g, x, 2, DIMS(64, 8), &a));
    EXPECT_OK(lks_graph_reshape(g, a, 3, DIMS(16, 4, -1), &a)); /* [16,4,8] */
    EXPECT_OK(lks_graph_transpose(g, a, (const int[]){2, 1, 0}, &b)); /* [8,4,16] */
    EXPECT_OK(lks_graph_depth_to_space(g, b, 2, &b)); /* [16,8,4] */
    EXPECT_OK(lks_graph_space_to_depth(g, b, 4, &b)); /* [4,2,64] */
    EXPECT_OK(lks_graph_reshape(g, b, 3, DIMS(8, 8, 8), &b));
    EXPECT_OK(lks_graph_concat(g, 2, (const lks_value[]){x, b}, -1, &v)); /* [8,8,16] */
    EXPECT_OK(lks_graph_slice(
        g, v, lks_slice_params(.begin = {1, 0, 3}, .step = {0, -3, 2}), &part[0])); /* [7,0..] */
    EXPECT_OK(lks_graph_select(g, v, 0, 2, &part[1]));                                  /* [8,16] */
    EXPECT_OK(lks_graph_stack(g, 2, (const lks_value[]){part[1], part[1]}, 1, &part[1]));
    EXPECT_OK(lks_graph_pad(
        g, part[0],
        lks_pad_params(.before = {1, 2, 0}, .after = {3, 1, 2}, .mode = LKS_PAD_REFLECT), &part[0]));
    EXPECT_OK(lks_graph_pad(
        g, part[1], lks_pad_params(.before = {1, 1, 1}, .after = {0, 2}, .mode = LKS_PAD_EDGE),
        &part[1]));
    EXPECT_OK(lks_graph_pad(g, part[1], lks_pad_params(.before = {2}, .value = 0.5f), &part[1]));
    EXPECT_OK(lks_graph_resize(g, part[0],
                               lks_resize_params(.factor = 2, .mode = LKS_RESIZE_BILINEAR), &part[0]));
    EXPECT_OK(lks_graph_resize(g, part[1], lks_resize_params(.height = 5, .width = 9), &part[1]));
    for (int i = 0; i < 2; i++)
        EXPECT_OK(lks_graph_flatten(g, part[i], &part[i]));
    EXPECT_OK(lks_graph_flatten(g, a, &part[2]));
    EXPECT_OK(lks_graph_concat(g, 3, part, 0, &v));
    if (inner) { /* the gradient of the image, whose own gradient then goes through all layers */
        EXPECT_OK(lks_graph_tanh(g, v, &a));
        EXPECT_OK(lks_graph_gradient(g, a, image, &a));
        EXPECT_OK(lks_graph_flatten(g, a, &a));
        EXPECT_OK(lks_graph_concat(g, 2, (const lks_value[]){v, a}, 0, &v));
    }
    EXPECT_OK(lks_graph_dense(g, v, lks_dense_params(.out = CLASSES), &v));
    EXPECT_OK(lks_graph_softmax_cross_entropy(g, v));
    return g;
}

static void train(const char *select, bool plain, bool inner, char hex[65])
{
    lks_device *device = open_or_skip(select);
    struct lks_trainer_params p = small_params(device);
    lks_dataset *data = make_data();
    lks_graph *g = network(inner);
    lks_trainer *t;
    p.plain = plain;
    p.sgd.lr = 1e-3;
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
    EXPECT_OK(lks_trainer_weights_sha256(t, hex));
    lks_trainer_destroy(&t);
    lks_graph_destroy(&g);
    lks_dataset_destroy(&data);
    lks_device_close(&device);
}

static void expect_one_digest(bool inner)
{
    char ref[65], fast[65], plain[65];
    train("ref", false, inner, ref);
    train("cpu", false, inner, fast);
    train("cpu", true, inner, plain);
    cr_expect_str_eq(ref, fast);
    cr_expect_str_eq(ref, plain);
}

/* Batches of 12, the last one of 5. */
Test(shapes, one_digest, .timeout = 240)
{
    expect_one_digest(false);
}

Test(shapes, one_digest_of_gradients_inside, .timeout = 240)
{
    expect_one_digest(true);
}
