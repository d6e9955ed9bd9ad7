/*
 * test_losses.c - the losses of loss.h against their formulas in double, by hand; values of a layer
 * for samples of a data set; random numbers that the size of the batches does not change.
 */
#include <math.h>

#include "base/stream.h"
#include "train/train_help.h"

enum { N = 10, POSITIONS = 3, WIDTH = 4 };

static float samples[N][POSITIONS][WIDTH];
static int32_t labels[N][POSITIONS];

/* Samples of [POSITIONS][WIDTH], the same number for all, between -2 and 2. */
static lks_dataset *make_rows(bool labelled)
{
    lks_dataset *data;
    uint64_t state = 5;
    for (int i = 0; i < N; i++)
        for (int p = 0; p < POSITIONS; p++) {
            labels[i][p] = (int32_t)(next_random(&state) % WIDTH);
            for (int k = 0; k < WIDTH; k++)
                samples[i][p][k] = (float)(next_random(&state) % 4001) / 1000.0f - 2.0f;
        }
    EXPECT_OK(lks_dataset_create(&data, lks_dataset_params(.count = N, .rank = 2,
                                                           .dims = {POSITIONS, WIDTH},
                                                           .floats = &samples[0][0][0],
                                                           .no_labels = !labelled,
                                                           .positions = POSITIONS,
                                                           .labels = &labels[0][0])));
    return data;
}

/* A trainer needs a parameter: a bias, which is 0 and so changes no value. */
static lks_graph *begin(lks_value *x)
{
    const int64_t dims[] = {POSITIONS, WIDTH};
    lks_graph *g;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "x", 2, dims, x));
    EXPECT_OK(lks_graph_bias(g, *x, NULL, x));
    return g;
}

static lks_trainer *train(lks_device *device, const lks_graph *g, uint32_t batch, uint64_t seed)
{
    struct lks_trainer_params p = {
        .device = device, .batch = batch, .seed = seed, .sgd = {.lr = 0.1}};
    lks_trainer *t;
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    return t;
}

/* Evaluates all losses on both devices, in one batch. */
static void expect_losses(const lks_graph *g, const lks_dataset *data, const double *want,
                          double accuracy)
{
    static const char *const selects[] = {"ref", "cpu"};
    double bits[2][5], got[5], share;
    for (int d = 0; d < 2; d++) {
        lks_device *device = open_or_skip(selects[d]);
        lks_trainer *t = train(device, g, N, 1);
        EXPECT_OK(lks_trainer_evaluate_losses(t, data, got, &share));
        for (size_t k = 0; k < lks_graph_loss_count(g); k++) {
            cr_assert(fabs(got[k] - want[k]) <= 2e-6 * (1 + fabs(want[k])), "%s: %s is %.9g, not %.9g",
                      selects[d], lks_graph_loss_name(g, k), got[k], want[k]);
            bits[d][k] = got[k];
        }
        cr_assert(isnan(accuracy) ? isnan(share) : fabs(share - accuracy) < 1e-12, "%g, not %g",
                  share, accuracy);
        lks_trainer_destroy(&t);
        lks_device_close(&device);
    }
    cr_assert(memcmp(bits[0], bits[1], lks_graph_loss_count(g) * sizeof(double)) == 0);
}

/* ---- losses of elements ---- */

static double distance(lks_loss_kind kind, double x, double t, double beta)
{
    double d = fabs(x - t);
    switch (kind) {
    case LKS_LOSS_MSE:
        return d * d;
    case LKS_LOSS_L1:
        return d;
    case LKS_LOSS_HUBER:
        return d < beta ? d * d / 2 : beta * (d - beta / 2);
    case LKS_LOSS_SMOOTH_L1:
        return d < beta ? d * d / (2 * beta) : d - beta / 2;
    case LKS_LOSS_BCE:
        return log1p(exp(x)) - x * t;
    }
    return NAN;
}

static const char *const names[] = {"mse", "l1", "huber", "smooth_l1", "bce"};

/* Row 0 of a sample against row 1, or, `fixed`, against 0.75; weighted, with a second term. */
static void check_distances(bool fixed)
{
    lks_dataset *data = make_rows(false);
    double want[5] = {0};
    lks_value x, a, b, v;
    lks_graph *g = begin(&x);
    EXPECT_OK(lks_graph_select(g, x, 0, 0, &a));
    EXPECT_OK(lks_graph_select(g, x, 0, 1, &b));
    for (int k = 0; k < 5; k++) {
        double beta = k == LKS_LOSS_HUBER ? 0.5 : k == LKS_LOSS_SMOOTH_L1 ? 0 : 1;
        if (fixed)
            EXPECT_OK(lks_graph_loss_to_number(g, (lks_loss_kind)k, a, 0.75, beta, &v));
        else
            EXPECT_OK(lks_graph_loss_to(g, (lks_loss_kind)k, a, b, beta, &v));
        EXPECT_OK(lks_graph_add_loss(g, names[k], v, k == 1 ? -2.5 : 1.0));
        for (int i = 0; i < N * WIDTH; i++) {
            float p = samples[i / WIDTH][0][i % WIDTH], q = samples[i / WIDTH][1][i % WIDTH];
            want[k] += distance((lks_loss_kind)k, (double)p, fixed ? 0.75 : (double)q,
                                beta > 0 ? beta : 1) * (k == 1 ? -2.5 : 1.0) / (N * WIDTH);
        }
    }
    EXPECT_OK(lks_graph_loss_mean(g, b, &v)); /* a second term */
    EXPECT_OK(lks_graph_add_loss(g, "mse", v, 3.0));
    for (int i = 0; i < N * WIDTH; i++)
        want[0] += 3.0 * (double)samples[i / WIDTH][1][i % WIDTH] / (N * WIDTH);
    expect_losses(g, data, want, (double)NAN);
    lks_graph_destroy(&g);
    lks_dataset_destroy(&data);
}

Test(losses, of_elements)
{
    check_distances(false);
}

Test(losses, of_elements_to_a_number)
{
    check_distances(true);
}

/* ---- cross entropy ---- */

static double nll(const float *x, int k)
{
    double sum = 0;
    for (int i = 0; i < WIDTH; i++)
        sum += exp((double)x[i]);
    return log(sum) - (double)x[k];
}

static double cross_entropy(const struct lks_softmax_loss_params *p)
{
    double sum = 0, total = 0;
    for (int i = 0; i < N * POSITIONS; i++) {
        const float *x = samples[i / POSITIONS][i % POSITIONS];
        int label = labels[i / POSITIONS][i % POSITIONS];
        double w = p->weights != NULL ? (double)p->weights[label] : 1, all = 0;
        if (p->ignores && label == p->ignored)
            continue;
        for (int k = 0; k < WIDTH; k++)
            all += (p->weights != NULL ? (double)p->weights[k] : 1) * nll(x, k);
        sum += (1 - p->smoothing) * w * nll(x, label) + p->smoothing / WIDTH * all;
        total += w;
    }
    return sum / total;
}

static double hits(int ignored)
{
    double n = 0;
    for (int i = 0; i < N * POSITIONS; i++) {
        const float *x = samples[i / POSITIONS][i % POSITIONS];
        int label = labels[i / POSITIONS][i % POSITIONS], best = 0;
        for (int k = 1; k < WIDTH; k++)
            best = x[k] > x[best] ? k : best;
        n += best == label && label != ignored;
    }
    return n / (N * POSITIONS);
}

Test(losses, of_labels)
{
    static const float weights[WIDTH] = {0.5f, 2, 0, 1.25f};
    struct lks_softmax_loss_params p[5] = {
        {0},
        {.smoothing = 0.1},
        {.weights = weights, .n_weights = WIDTH},
        {.ignores = true, .ignored = 2},
        {.smoothing = 0.3, .weights = weights, .n_weights = WIDTH, .ignores = true, .ignored = 0},
    };
    lks_dataset *data = make_rows(true);
    for (int first = 0; first < 5; first += 3) { /* the accuracy is that of the first loss */
        double want[5];
        lks_value x, v;
        lks_graph *g = begin(&x);
        for (int k = 0; k < 5; k++) {
            const struct lks_softmax_loss_params *q = &p[(first + k) % 5];
            char name[16];
            snprintf(name, sizeof name, "loss_%d", k);
            EXPECT_OK(lks_graph_softmax_loss(g, x, q, &v));
            EXPECT_OK(lks_graph_add_loss(g, name, v, 1));
            want[k] = cross_entropy(q);
        }
        expect_losses(g, data, want, hits(first == 3 ? 2 : -1));
        lks_graph_destroy(&g);
    }
    cr_assert(hits(2) < hits(-1)); /* else the case tells nothing */
    lks_dataset_destroy(&data);
}

/* One label a sample: the same numbers as the usual loss, which is another operator. */
Test(losses, of_one_label_as_the_usual_loss)
{
    lks_dataset *data = make_data();
    lks_device *device = open_or_skip("ref");
    double loss[2], accuracy[2];
    for (int k = 0; k < 2; k++) {
        const int64_t dims[] = {SIDE, SIDE, 1};
        lks_graph *g;
        lks_value x, v;
        EXPECT_OK(lks_graph_create(&g, NULL));
        EXPECT_OK(lks_graph_input(g, "image", 3, dims, &x));
        EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = CLASSES), &x));
        if (k == 0) {
            EXPECT_OK(lks_graph_softmax_cross_entropy(g, x));
        } else {
            EXPECT_OK(lks_graph_softmax_loss(g, x, NULL, &v));
            EXPECT_OK(lks_graph_add_loss(g, "loss", v, 1));
        }
        lks_trainer *t = train(device, g, 8, 3);
        EXPECT_OK(lks_trainer_evaluate(t, data, &loss[k], &accuracy[k]));
        lks_trainer_destroy(&t);
        lks_graph_destroy(&g);
    }
    cr_assert(fabs(loss[0] - loss[1]) < 1e-6 && accuracy[0] == accuracy[1]);
    lks_device_close(&device);
    lks_dataset_destroy(&data);
}

Test(losses, refusals)
{
    static const float weights[2] = {1, -1};
    lks_value x, v, w;
    lks_graph *g = begin(&x);
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_add_loss(g, "loss", x, 1), "lks_graph_loss_mean");
    lks_graph_destroy(&g);
    g = begin(&x);
    EXPECT_OK(lks_graph_loss_mean(g, x, &v));
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_add_loss(g, "a b", v, 1), "letters");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_add_loss(g, "loss", v, (double)INFINITY), "inf");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_loss_to_number(g, LKS_LOSS_L1, x, 1e300, 0, &w), "1e+300");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_loss_to_number(g, (lks_loss_kind)9, x, 0, 0, &w), "9");
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lks_graph_softmax_loss(g, x,
                                       lks_softmax_loss_params(.weights = weights, .n_weights = 2),
                                       &w), "weight 1");
    for (int k = 0; k < 6; k++)
        EXPECT_OK(lks_graph_add_loss(g, "loss", v, 1));
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_add_loss(g, "loss", v, 1), "6 terms");
    for (int k = 0; k < 4; k++)
        EXPECT_OK(lks_graph_add_loss(g, (const char *[]){"a", "b", "c", "d"}[k], v, 1));
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_add_loss(g, "e", v, 1), "at most 5");
    cr_assert_eq(lks_graph_loss_count(g), 5);
    cr_assert_str_eq(lks_graph_loss_name(g, 4), "d");
    cr_assert_null(lks_graph_loss_name(g, 5));
    lks_graph_destroy(&g);
}

/* ---- values of a layer, and random numbers ---- */

Test(output, is_the_layer_of_each_sample)
{
    lks_dataset *data = make_rows(false);
    lks_device *device = open_or_skip("cpu");
    lks_value x, v, mean;
    lks_graph *g = begin(&x);
    float got[N][POSITIONS][WIDTH];
    EXPECT_OK(lks_graph_loss_to_number(g, LKS_LOSS_MSE, x, 0, 0, &mean));
    EXPECT_OK(lks_graph_add_loss(g, "loss", mean, 1));
    EXPECT_OK(lks_graph_square(g, x, &v));
    lks_trainer *t = train(device, g, 4, 1);
    for (size_t first = 0; first < N; first += 3) { /* N - first: over batches of 4 and a rest */
        EXPECT_OK(lks_trainer_output(t, data, x, first, N - first, &got[0][0][0]));
        cr_assert(memcmp(got, samples[first], (N - first) * sizeof samples[0]) == 0);
        EXPECT_OK(lks_trainer_output(t, data, v, first, 1, &got[0][0][0]));
        for (int k = 0; k < WIDTH; k++)
            cr_assert(got[0][1][k] == samples[first][1][k] * samples[first][1][k]);
    }
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_output(t, data, x, N, 1, &got[0][0][0]), "of 10");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_output(t, data, mean, 0, 1, &got[0][0][0]), "each sample");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_output(t, data, 999, 0, 1, &got[0][0][0]), "999");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_predict(t, data, 0, 1, &got[0][0][0]), "lks_trainer_output");
    lks_trainer_destroy(&t);
    lks_graph_destroy(&g);
    lks_device_close(&device);
    lks_dataset_destroy(&data);
}

enum { NOISE = 64 };

/* The noise "noise" that `seed` gives the samples of an evaluation. */
static void draw(const char *select, bool normal, uint32_t batch, uint64_t seed,
                 float out[N][NOISE])
{
    lks_dataset *data = make_rows(false);
    lks_device *device = open_or_skip(select);
    const int64_t dims[] = {NOISE};
    lks_value x, noise, v;
    lks_graph *g = begin(&x);
    EXPECT_OK(lks_graph_random(g, "noise", normal, 1, dims, &noise));
    EXPECT_OK(lks_graph_loss_mean(g, x, &v));
    EXPECT_OK(lks_graph_add_loss(g, "loss", v, 1));
    lks_trainer *t = train(device, g, batch, seed);
    EXPECT_OK(lks_trainer_output(t, data, noise, 0, N, &out[0][0]));
    lks_trainer_destroy(&t);
    lks_graph_destroy(&g);
    lks_device_close(&device);
    lks_dataset_destroy(&data);
}

Test(random, does_not_depend_on_the_batch)
{
    static float one[N][NOISE], other[N][NOISE];
    draw("ref", true, N, 7, one);
    draw("ref", true, 3, 7, other);
    cr_assert(memcmp(one, other, sizeof one) == 0);
    draw("cpu", true, 4, 7, other);
    cr_assert(memcmp(one, other, sizeof one) == 0);
    cr_assert(memcmp(one[0], one[1], sizeof one[0]) != 0); /* a sample's own */
    draw("ref", true, N, 8, other);
    cr_assert(memcmp(one, other, sizeof one) != 0);
}

Test(random, has_the_asked_shape)
{
    static float value[N][NOISE];
    for (int normal = 0; normal < 2; normal++) {
        double sum = 0, squares = 0, n = N * NOISE;
        draw("ref", normal != 0, N, 7, value);
        for (int i = 0; i < N * NOISE; i++) {
            double v = (double)value[i / NOISE][i % NOISE];
            cr_assert(normal || (v >= 0 && v < 1));
            sum += v;
            squares += v * v;
        }
        /* Four standard errors of the mean, about five of the variance. */
        double mean = sum / n, variance = squares / n - mean * mean;
        double deviation = normal ? 1 : sqrt(1 / 12.0);
        cr_assert(fabs(mean - (normal ? 0 : 0.5)) < 4 * deviation / sqrt(n), "mean %g", mean);
        cr_assert(fabs(variance / (deviation * deviation) - 1) < 0.28, "variance %g", variance);
    }
}

Test(random, refuses_equal_streams)
{
    lks_device *device = open_or_skip("ref");
    const int64_t dims[] = {2};
    lks_value x, v;
    lks_graph *g = begin(&x);
    lks_trainer *t = NULL;
    EXPECT_OK(lks_graph_random(g, "n129599", true, 1, dims, &v));
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_random(g, "n129599", true, 1, dims, &v), "taken");
    lks_graph_destroy(&g);
    g = begin(&x);
    EXPECT_OK(lks_graph_random(g, "n129599", true, 1, dims, &v));
    EXPECT_OK(lks_graph_random(g, "n732382", true, 1, dims, &v));
    cr_assert_eq(lksi_stream_id("noise", "n129599"), lksi_stream_id("noise", "n732382"));
    EXPECT_OK(lks_graph_loss_mean(g, x, &v));
    EXPECT_OK(lks_graph_add_loss(g, "loss", v, 1));
    struct lks_trainer_params p = {.device = device, .sgd = {.lr = 0.1}};
    EXPECT_FAIL(LKS_E_INPUT, lks_trainer_create(&t, g, &p), "`noise:n129599` and `noise:n732382`");
    lks_graph_destroy(&g);
    lks_device_close(&device);
}
