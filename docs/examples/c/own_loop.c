/*
 * own_loop.c - a training loop of one's own: batches made in memory, a learning rate that warms up,
 * gradients clipped between the backward pass and the update, activations looked at, predictions
 * from memory. It learns to tell rising from falling stripes.
 *
 * Usage: own_loop [DEVICE [STEPS]]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <lockstep/lockstep.h>

#define SIDE  16
#define BATCH 32
#define CLIP  1.0

#define TRY(call) do { lks_status st = (call); if (st != LKS_OK) return st; } while (0)

static struct {
    lks_device *device;
    lks_graph *graph;
    lks_trainer *trainer;
    lks_value features; /* the activations that are looked at */
} my;

static float images[BATCH * SIDE * SIDE];
static int32_t labels[BATCH];

/* The same numbers on every machine. */
static unsigned next_number(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return state >> 16;
}

static void make_batch(void)
{
    for (int n = 0; n < BATCH; n++) {
        int phase = (int)(next_number() % 8u);
        labels[n] = (int32_t)(next_number() % 2u);
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                int d = labels[n] != 0 ? x + y : x - y + SIDE;
                float noise = (float)(next_number() % 256u) / 256.0f;
                images[(n * SIDE + y) * SIDE + x] = ((d + phase) % 8 < 4 ? 0.5f : -0.5f) + 4.0f * noise - 2.0f;
            }
    }
}

static lks_status build(lks_graph *g)
{
    const int64_t image[3] = {SIDE, SIDE, 1};
    struct lks_conv2d_params conv = lks_conv2d_params_default();
    struct lks_pool_params pool = lks_pool_params_default();
    struct lks_dense_params dense = lks_dense_params_default();
    lks_value x;
    TRY(lks_graph_input(g, "image", 3, image, &x));
    conv.out = 8;
    conv.kernel = 5;
    TRY(lks_graph_conv2d(g, x, &conv, &x));
    TRY(lks_graph_relu(g, x, &x));
    my.features = x;
    pool.kernel = 4;
    TRY(lks_graph_maxpool(g, x, &pool, &x));
    dense.out = 2;
    TRY(lks_graph_dense(g, x, &dense, &x));
    return lks_graph_softmax_cross_entropy(g, x);
}

/* Scales all gradients so that their norm is at most CLIP. */
static lks_status clip(lks_trainer *t)
{
    static float g[8192];
    double sum = 0;
    size_t count = 0, parameters = lks_graph_parameter_count(my.graph);
    const char *name = NULL;
    for (size_t i = 0; i < parameters; i++) {
        TRY(lks_trainer_parameter(t, i, &name, &count));
        TRY(lks_trainer_get_gradient(t, name, g, count));
        for (size_t k = 0; k < count; k++)
            sum += (double)g[k] * (double)g[k];
    }
    if (sum <= CLIP * CLIP)
        return LKS_OK;
    float scale = (float)(CLIP / sqrt(sum));
    for (size_t i = 0; i < parameters; i++) {
        TRY(lks_trainer_parameter(t, i, &name, &count));
        TRY(lks_trainer_get_gradient(t, name, g, count));
        for (size_t k = 0; k < count; k++)
            g[k] *= scale;
        TRY(lks_trainer_set_gradient(t, name, g, count));
    }
    return LKS_OK;
}

static lks_status one_step(lks_trainer *t, int step)
{
    static float features[BATCH * 12 * 12 * 8];
    const size_t count = sizeof features / sizeof features[0];
    struct lks_batch batch = {images, labels, BATCH, NULL};
    struct lks_step_info info;
    size_t alive = 0;
    make_batch();
    TRY(lks_trainer_forward(t, &batch, &info));
    TRY(lks_trainer_get_value(t, my.features, features, count));
    for (size_t i = 0; i < count; i++)
        alive += features[i] > 0;
    TRY(lks_trainer_backward(t));
    TRY(clip(t));
    TRY(lks_trainer_set_lr(t, step < 10 ? 0.01 * (step + 1) : 0.1));
    TRY(lks_trainer_update(t));
    if (step % 10 == 0)
        printf("step %3d: loss %.4f, %2u of %d right, %.0f %% of the features alive\n", step,
               (double)info.loss, info.hits, BATCH, 100.0 * (double)alive / (double)count);
    return LKS_OK;
}

static lks_status run(const char *device, int steps)
{
    struct lks_device_params where = lks_device_params_default();
    struct lks_trainer_params how = lks_trainer_params_default();
    static float probabilities[BATCH * 2];
    char sha256[65];
    int right = 0;
    where.select = device;
    TRY(lks_device_open(&my.device, &where));
    TRY(lks_graph_create(&my.graph, NULL));
    TRY(build(my.graph));
    how.device = my.device;
    how.batch = BATCH;
    how.seed = 3;
    how.sgd.lr = 0.1;
    how.sgd.momentum = 0.9;
    how.keep = &my.features;
    how.n_keep = 1;
    TRY(lks_trainer_create(&my.trainer, my.graph, &how));
    for (int step = 0; step < steps; step++)
        TRY(one_step(my.trainer, step));
    make_batch();
    TRY(lks_trainer_predict_floats(my.trainer, images, BATCH, probabilities));
    for (int n = 0; n < BATCH; n++)
        right += (probabilities[2 * n + 1] > 0.5f) == (labels[n] == 1);
    TRY(lks_trainer_weights_sha256(my.trainer, sha256));
    printf("%d of %d new stripes right, sha256 %s\n", right, BATCH, sha256);
    return LKS_OK;
}

int main(int argc, char **argv)
{
    lks_status st = run(argc > 1 ? argv[1] : NULL, argc > 2 ? atoi(argv[2]) : 100);
    if (st != LKS_OK)
        fprintf(stderr, "%s: %s\n", lks_status_name(st), lks_error_message());
    lks_trainer_destroy(&my.trainer);
    lks_graph_destroy(&my.graph);
    lks_device_close(&my.device);
    return st == LKS_OK ? 0 : 1;
}
