/*
 * test_norm_gradient.c - a gradient penalty through batch normalisations: one digest on every device,
 * and an evaluation that differentiates with the running statistics.
 */
#include <math.h>

#include "train_help.h"

#define PIXELS (SIDE * SIDE)
#define MOVED  (1.0f / 64)

static lks_value score, slope;

static lks_graph *penalised(void)
{
    lks_graph *g;
    lks_value image, x, loss;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "image", 3, (int64_t[]){SIDE, SIDE, 1}, &image));
    EXPECT_OK(lks_graph_conv2d(
        g, image, lks_conv2d_params(.out = 4, .kernel = 3, .stride = 2, .no_bias = true), &x));
    EXPECT_OK(lks_graph_batch_norm(g, x, lks_batch_norm_params(.momentum = 0.25), &x));
    EXPECT_OK(lks_graph_tanh(g, x, &x));
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = 6, .no_bias = true), &x));
    EXPECT_OK(lks_graph_batch_norm(g, x, NULL, &x));
    EXPECT_OK(lks_graph_tanh(g, x, &x));
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = 1, .no_bias = true), &score));
    EXPECT_OK(lks_graph_gradient(g, score, image, &slope));
    EXPECT_OK(lks_graph_square(g, slope, &x));
    EXPECT_OK(lks_graph_loss_mean(g, x, &loss));
    EXPECT_OK(lks_graph_add_loss(g, "loss", loss, 10.0));
    EXPECT_OK(lks_graph_loss_to_number(g, LKS_LOSS_MSE, score, 1.0, 0, &loss));
    EXPECT_OK(lks_graph_add_loss(g, "loss", loss, 1.0));
    return g;
}

static lks_trainer *trained(lks_device *device, bool plain, const lks_dataset *data)
{
    struct lks_trainer_params p = small_params(device);
    lks_trainer *t;
    lks_graph *g = penalised();
    p.plain = plain;
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
    lks_graph_destroy(&g);
    return t;
}

static lks_dataset *floats_of(const float *x, size_t count)
{
    lks_dataset *data;
    EXPECT_OK(lks_dataset_create(&data, lks_dataset_params(.count = count, .h = SIDE, .w = SIDE,
                                                           .floats = x, .no_labels = true)));
    return data;
}

static float samples[SAMPLES * PIXELS];

static lks_dataset *draw(void)
{
    uint32_t state = 99;
    for (int i = 0; i < SAMPLES * PIXELS; i++) {
        state = state * 1664525u + 1013904223u;
        samples[i] = (float)(state >> 8) * 0x1p-23f - 1.0f;
    }
    return floats_of(samples, SAMPLES);
}

Test(norm_gradient, one_digest_on_ref_cpu_and_plain)
{
    lks_dataset *data = draw();
    lks_device *device[2] = {open_or_skip("ref"), open_or_skip("cpu")};
    char hex[4][65];
    double loss[4];
    for (int i = 0; i < 4; i++) {
        lks_trainer *t = trained(device[i / 2], i % 2 == 1, data);
        EXPECT_OK(lks_trainer_weights_sha256(t, hex[i]));
        EXPECT_OK(lks_trainer_evaluate_losses(t, data, &loss[i], NULL));
        cr_expect_str_eq(hex[i], hex[0], "device %d", i);
        cr_expect(loss[i] == loss[0] && isfinite(loss[i]), "device %d: loss %g", i, loss[i]);
        lks_trainer_destroy(&t);
    }
    lks_device_close(&device[1]);
    lks_device_close(&device[0]);
    lks_dataset_destroy(&data);
}

/* Of sample 0, by pixels moved up and down: an evaluation's samples do not mix. */
Test(norm_gradient, an_evaluation_takes_the_running_statistics_as_constants)
{
    static float moved[2 * PIXELS * PIXELS], scores[2 * PIXELS], got[3 * PIXELS];
    lks_dataset *data = draw(), *around;
    lks_device *ref = open_or_skip("ref");
    lks_trainer *t = trained(ref, false, data);
    double largest = 0;
    for (int i = 0; i < 2 * PIXELS; i++) {
        memcpy(moved + i * PIXELS, samples, PIXELS * sizeof *samples);
        moved[i * PIXELS + i / 2] += i % 2 == 0 ? MOVED : -MOVED;
    }
    around = floats_of(moved, 2 * PIXELS);
    EXPECT_OK(lks_trainer_output(t, data, slope, 0, 3, got));
    EXPECT_OK(lks_trainer_output(t, around, score, 0, 2 * PIXELS, scores));
    for (int e = 0; e < PIXELS; e++)
        largest = fmax(largest, fabs((double)got[e]));
    cr_expect(largest > 1e-3, "gradients up to %g say nothing", largest);
    for (int e = 0; e < PIXELS; e++) {
        double want = ((double)scores[2 * e] - (double)scores[2 * e + 1]) / (2 * (double)MOVED);
        cr_expect(fabs((double)got[e] - want) < 3e-3 * largest, "pixel %d: %g, by differences %g",
                  e, (double)got[e], want);
    }
    lks_trainer_destroy(&t);
    lks_device_close(&ref);
    lks_dataset_destroy(&around);
    lks_dataset_destroy(&data);
}
