/*
 * test_norm.c - networks with batch normalisation: one digest on every device, running statistics
 * that follow the batches, are saved, resumed and used by evaluations, and stay in a failed step.
 */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "train_help.h"

static lks_graph *norm_graph(void)
{
    lks_graph *g;
    lks_value x;
    const int64_t dims[] = {SIDE, SIDE, 1};
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "image", 3, dims, &x));
    EXPECT_OK(lks_graph_batch_norm(g, x, NULL, &x));
    EXPECT_OK(
        lks_graph_conv2d(g, x, lks_conv2d_params(.out = 6, .kernel = 3, .no_bias = true), &x));
    EXPECT_OK(
        lks_graph_batch_norm(g, x, lks_batch_norm_params(.name = "bn", .momentum = 0.25), &x));
    EXPECT_OK(lks_graph_relu(g, x, &x));
    EXPECT_OK(lks_graph_maxpool(g, x, lks_pool_params(.kernel = 2), &x));
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = 17), &x));
    EXPECT_OK(lks_graph_batch_norm(g, x, lks_batch_norm_params(.eps = 1e-3), &x));
    EXPECT_OK(lks_graph_relu(g, x, &x));
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = CLASSES), &x));
    EXPECT_OK(lks_graph_softmax_cross_entropy(g, x));
    return g;
}

/* The normalisations of single samples. */
static lks_graph *row_graph(void)
{
    lks_graph *g;
    lks_value x;
    const int64_t dims[] = {SIDE, SIDE, 1};
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "image", 3, dims, &x));
    EXPECT_OK(lks_graph_conv2d(g, x, lks_conv2d_params(.out = 6, .kernel = 3), &x));
    EXPECT_OK(lks_graph_group_norm(g, x, lks_group_norm_params(.groups = 2), &x));
    EXPECT_OK(lks_graph_relu(g, x, &x));
    EXPECT_OK(lks_graph_conv2d(g, x, lks_conv2d_params(.out = 5, .kernel = 3, .stride = 2), &x));
    EXPECT_OK(lks_graph_instance_norm(g, x, lks_norm_params(.eps = 1e-3), &x));
    EXPECT_OK(lks_graph_layer_norm(g, x, NULL, &x));
    EXPECT_OK(lks_graph_relu(g, x, &x));
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = 33), &x));
    EXPECT_OK(lks_graph_layer_norm(g, x, NULL, &x));
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = CLASSES), &x));
    EXPECT_OK(lks_graph_softmax_cross_entropy(g, x));
    return g;
}

static lks_graph *(*graph_of)(void) = norm_graph;

static lks_trainer *make_trainer(const struct lks_trainer_params *params)
{
    lks_trainer *t;
    lks_graph *g = graph_of();
    EXPECT_OK(lks_trainer_create(&t, g, params));
    lks_graph_destroy(&g);
    return t;
}

static void fit(lks_trainer *t, const lks_dataset *data, uint64_t steps)
{
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .max_steps = steps)));
}

static void digest_and_loss(const struct lks_trainer_params *params, const lks_dataset *data,
                            char *hex, double *loss)
{
    double accuracy;
    lks_trainer *t = make_trainer(params);
    fit(t, data, 0);
    EXPECT_OK(lks_trainer_weights_sha256(t, hex));
    EXPECT_OK(lks_trainer_evaluate(t, data, loss, &accuracy));
    lks_trainer_destroy(&t);
}

static void compare_devices(void)
{
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref"), *cpu = open_or_skip("cpu");
    struct lks_trainer_params p = small_params(ref);
    char hex[4][65];
    double loss[4];
    for (int i = 0; i < 4; i++) {
        p.device = i < 2 ? ref : cpu;
        p.plain = i % 2 == 1;
        digest_and_loss(&p, data, hex[i], &loss[i]);
        cr_expect_str_eq(hex[i], hex[0], "device %d", i);
        cr_expect(loss[i] == loss[0], "device %d: %.17g, not %.17g", i, loss[i], loss[0]);
    }
    lks_device_close(&cpu);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

Test(norm, one_digest_on_ref_cpu_and_plain)
{
    compare_devices();
}

Test(norm, one_digest_of_the_norms_of_a_sample)
{
    graph_of = row_graph;
    compare_devices();
}

/* The image's own normalisation sees raw pixels, so its statistics can be computed here. */
Test(norm, running_statistics_follow_the_batch)
{
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref");
    struct lks_trainer_params p = small_params(ref);
    double sum = 0, squares = 0, n = (double)SAMPLES * SIDE * SIDE, mean, variance;
    float got[2], start[2];
    lks_trainer *t;
    p.batch = SAMPLES;
    t = make_trainer(&p);
    EXPECT_OK(lks_trainer_get(t, "batch_norm1.running_mean", &start[0], 1));
    EXPECT_OK(lks_trainer_get(t, "batch_norm1.running_var", &start[1], 1));
    cr_assert(start[0] == 0.0f && start[1] == 1.0f);
    fit(t, data, 2);
    EXPECT_OK(lks_trainer_get(t, "batch_norm1.running_mean", &got[0], 1));
    EXPECT_OK(lks_trainer_get(t, "batch_norm1.running_var", &got[1], 1));
    for (int i = 0; i < SAMPLES * SIDE * SIDE; i++) {
        double v = (help_pixels[i] / 255.0 - 0.3) / 0.3;
        sum += v;
        squares += v * v;
    }
    mean = sum / n;
    variance = (squares / n - mean * mean) * n / (n - 1);
    mean = 0.19 * mean; /* twice a tenth of the way */
    variance = 0.81 + 0.19 * variance;
    cr_expect(fabs((double)got[0] - mean) < 1e-5, "%.9g, not %.9g", (double)got[0], mean);
    cr_expect(fabs((double)got[1] - variance) < 1e-5, "%.9g, not %.9g", (double)got[1], variance);
    lks_trainer_destroy(&t);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

Test(norm, an_evaluation_uses_and_keeps_the_running_statistics)
{
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref");
    struct lks_trainer_params p = small_params(ref);
    lks_trainer *t = make_trainer(&p);
    float all[SAMPLES * CLASSES], one[CLASSES], before[6], after[6];
    double loss, moved, accuracy;
    fit(t, data, 7);
    EXPECT_OK(lks_trainer_get(t, "bn.running_mean", before, 6));
    EXPECT_OK(lks_trainer_predict(t, data, 0, SAMPLES, all));
    for (size_t i = 0; i < SAMPLES; i += 11) {
        /* A sample's own result, whatever stands beside it in the batch. */
        EXPECT_OK(lks_trainer_predict(t, data, i, 1, one));
        cr_expect(memcmp(one, all + i * CLASSES, sizeof one) == 0, "sample %zu", i);
    }
    EXPECT_OK(lks_trainer_evaluate(t, data, &loss, &accuracy));
    EXPECT_OK(lks_trainer_get(t, "bn.running_mean", after, 6));
    cr_expect(memcmp(before, after, sizeof before) == 0);
    after[2] += 0.5f;
    EXPECT_OK(lks_trainer_set(t, "bn.running_mean", after, 6));
    EXPECT_OK(lks_trainer_evaluate(t, data, &moved, &accuracy));
    cr_expect(moved != loss, "the running mean does not reach the evaluation");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_get(t, "bn.running_mean", after, 5), "6 elements");
    lks_trainer_destroy(&t);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

static void path_of(char *path, size_t size, const char *name)
{
    snprintf(path, size, "/tmp/lks_norm_%d_%s", (int)getpid(), name);
}

Test(norm, files_hold_the_running_statistics)
{
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref");
    struct lks_trainer_params p = small_params(ref);
    lks_trainer *whole = make_trainer(&p), *half = make_trainer(&p), *rest = make_trainer(&p);
    char path[64], weights[64], a[65], b[65];
    double loss[2], accuracy;
    path_of(path, sizeof path, "checkpoint");
    path_of(weights, sizeof weights, "weights");
    fit(whole, data, 0);
    fit(half, data, 6);
    EXPECT_OK(lks_trainer_save_checkpoint(half, data, path));
    EXPECT_OK(lks_trainer_load_checkpoint(rest, data, path));
    fit(rest, data, 0);
    EXPECT_OK(lks_trainer_weights_sha256(whole, a));
    EXPECT_OK(lks_trainer_weights_sha256(rest, b));
    cr_expect_str_eq(a, b, "resumed");
    EXPECT_OK(lks_trainer_save_weights(whole, weights));
    EXPECT_OK(lks_trainer_load_weights(half, weights));
    EXPECT_OK(lks_trainer_weights_sha256(half, b));
    cr_expect_str_eq(a, b, "loaded");
    EXPECT_OK(lks_trainer_evaluate(whole, data, &loss[0], &accuracy));
    EXPECT_OK(lks_trainer_evaluate(half, data, &loss[1], &accuracy));
    cr_expect(loss[0] == loss[1]);
    unlink(path);
    unlink(weights);
    lks_trainer_destroy(&whole);
    lks_trainer_destroy(&half);
    lks_trainer_destroy(&rest);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

Test(norm, a_failed_step_leaves_the_running_statistics)
{
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref");
    struct lks_trainer_params p = small_params(ref);
    lks_trainer *t = make_trainer(&p);
    float before[6], after[6], bad[17] = {[3] = INFINITY};
    fit(t, data, 3);
    EXPECT_OK(lks_trainer_get(t, "bn.running_var", before, 6));
    EXPECT_OK(lks_trainer_set(t, "dense1.bias", bad, 17));
    cr_assert_eq(lks_trainer_fit(t, lks_fit_params(.train = data, .max_steps = 5)),
                 LKS_E_NONFINITE);
    EXPECT_OK(lks_trainer_get(t, "bn.running_var", after, 6));
    cr_expect(memcmp(before, after, sizeof before) == 0);
    lks_trainer_destroy(&t);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

/* A name that fits before `.weight` only must not be cut before `.running_mean`. */
Test(norm, a_name_too_long_for_the_statistics_is_refused)
{
    lks_graph *g;
    lks_value x, y = 77;
    char name[246];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "image", 1, (int64_t[]){4}, &x));
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lks_graph_batch_norm(g, x, lks_batch_norm_params(.name = name), &y), "longer than");
    cr_assert_eq(y, 77);
    lks_graph_destroy(&g);
}

Test(norm, refuses)
{
    lks_graph *g;
    lks_value x, y;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "sequence", 2, (int64_t[]){5, 3}, &x));
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lks_graph_batch_norm(g, x, lks_batch_norm_params(.momentum = 1.5), &y), "momentum");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_batch_norm(g, x, lks_batch_norm_params(.eps = -1.0), &y),
                "eps");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_batch_norm(g, x, NULL, &y), "[N,H,W,C]");
    lks_graph_destroy(&g);
}

/* Samples so large that a variance overflows: the loss stays finite with an infinite variance taken
 * as it is (1/sqrt(inf) is 0), yet nothing may be learnt from them. */
static void overflow_on(const char *select)
{
    static float huge[SAMPLES * SIDE * SIDE];
    lks_dataset *data = make_data(), *large;
    lks_device *device = open_or_skip(select);
    struct lks_trainer_params p = small_params(device);
    lks_graph *g;
    lks_trainer *t;
    lks_value x;
    float before, after;
    const int64_t dims[] = {SIDE, SIDE, 1};
    for (int i = 0; i < SAMPLES * SIDE * SIDE; i++)
        huge[i] = i % 2 == 0 ? 1e30f : -1e30f;
    EXPECT_OK(lks_dataset_create(&large, lks_dataset_params(.count = SAMPLES, .h = SIDE, .w = SIDE,
                                                            .floats = huge, .labels = help_labels)));
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "image", 3, dims, &x));
    EXPECT_OK(lks_graph_batch_norm(g, x, lks_batch_norm_params(.name = "bn"), &x));
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = CLASSES), &x));
    EXPECT_OK(lks_graph_softmax_cross_entropy(g, x));
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    fit(t, data, 2);
    EXPECT_OK(lks_trainer_get(t, "bn.running_var", &before, 1));
    EXPECT_FAIL(LKS_E_NONFINITE, lks_trainer_fit(t, lks_fit_params(.train = large)),
                "operator `bn` (batch_norm) is the first to give");
    EXPECT_OK(lks_trainer_get(t, "bn.running_var", &after, 1));
    cr_assert_eq(before, after, "the running variance is as it was");
    fit(t, data, 0);
    lks_trainer_destroy(&t);
    lks_graph_destroy(&g);
    lks_device_close(&device);
    lks_dataset_destroy(&large);
    lks_dataset_destroy(&data);
}

Test(norm, a_variance_that_overflows_stops_ref)
{
    overflow_on("ref");
}

Test(norm, a_variance_that_overflows_stops_the_cpu)
{
    overflow_on("cpu");
}
