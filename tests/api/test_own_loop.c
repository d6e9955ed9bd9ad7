/*
 * test_own_loop.c - forward, backward and update in the caller's hands: the bits of the ready loop,
 * what can be read and written between the passes, and what is refused.
 */
#include <math.h>

#include "train/train_help.h"

#define BATCH  12
#define STEPS  5 /* an epoch: four whole batches and one of five samples */
#define PIXELS (SIDE * SIDE)

static float samples[SAMPLES * PIXELS];

/* The data as floats, as the data set widens them. */
static void widen(void)
{
    for (int i = 0; i < SAMPLES * PIXELS; i++)
        samples[i] = (float)((help_pixels[i] / 255.0 - 0.3) / 0.3);
}

static struct lks_batch batch_of(int step)
{
    int first = step * BATCH, left = SAMPLES - first;
    return (struct lks_batch){.x = samples + first * PIXELS,
                              .labels = help_labels + first,
                              .samples = (uint32_t)(left < BATCH ? left : BATCH)};
}

static struct lks_trainer_params ordered_params(lks_device *device)
{
    struct lks_trainer_params p = small_params(device);
    p.no_shuffle = true;
    return p;
}

static lks_trainer *make_trainer(const struct lks_trainer_params *params)
{
    lks_trainer *t;
    lks_graph *g = make_graph();
    EXPECT_OK(lks_trainer_create(&t, g, params));
    lks_graph_destroy(&g);
    return t;
}

/* What the linear schedule of a fit does. */
static double lr_of(const struct lks_trainer_params *p, uint64_t step)
{
    return p->sgd.lr * (1.0 - (double)step / (double)(STEPS * p->epochs));
}

static struct lks_step_info fit_info[STEPS * 3];

static lks_status keep_info(void *user, const struct lks_step_info *info)
{
    (void)user;
    fit_info[info->step] = *info;
    return LKS_OK;
}

static void same_as_fit(const char *select, bool split)
{
    lks_dataset *data = make_data();
    lks_device *device = open_or_skip(select);
    struct lks_trainer_params p = ordered_params(device);
    lks_trainer *a = make_trainer(&p), *b = make_trainer(&p);
    char want[65], got[65];
    widen();
    EXPECT_OK(lks_trainer_fit(a, lks_fit_params(.train = data, .on_step = keep_info)));
    EXPECT_OK(lks_trainer_weights_sha256(a, want));
    for (int s = 0; s < STEPS * 3; s++) {
        struct lks_batch batch = batch_of(s % STEPS);
        struct lks_step_info info;
        EXPECT_OK(lks_trainer_set_lr(b, lr_of(&p, (uint64_t)s)));
        if (split) {
            EXPECT_OK(lks_trainer_forward(b, &batch, &info));
            EXPECT_OK(lks_trainer_backward(b));
            cr_assert_eq(lks_trainer_steps(b), (uint64_t)s);
            EXPECT_OK(lks_trainer_update(b));
        } else {
            EXPECT_OK(lks_trainer_step(b, &batch, &info));
        }
        cr_assert_eq(lks_trainer_steps(b), (uint64_t)s + 1);
        cr_assert(info.step == (uint64_t)s && info.samples == batch.samples);
        cr_assert(info.loss == fit_info[s].loss && info.hits == fit_info[s].hits,
                  "step %d: loss %a, hits %u, in the fit %a, %u", s, (double)info.loss, info.hits,
                  (double)fit_info[s].loss, fit_info[s].hits);
    }
    EXPECT_OK(lks_trainer_weights_sha256(b, got));
    cr_assert_str_eq(got, want);
    lks_trainer_destroy(&a);
    lks_trainer_destroy(&b);
    lks_device_close(&device);
    lks_dataset_destroy(&data);
}

Test(own_loop, steps_give_the_bits_of_a_fit_on_ref)
{
    same_as_fit("ref", false);
}

Test(own_loop, three_calls_give_the_bits_of_a_fit_on_ref)
{
    same_as_fit("ref", true);
}

Test(own_loop, steps_give_the_bits_of_a_fit_on_the_cpu)
{
    same_as_fit("cpu", false);
}

Test(own_loop, three_calls_give_the_bits_of_a_fit_on_the_cpu)
{
    same_as_fit("cpu", true);
}

/* ---- one trainer on `ref` ---- */

static lks_dataset *data;
static lks_device *device;
static struct lks_trainer_params params;
static lks_trainer *t;

static void setup(void)
{
    data = make_data();
    widen();
    device = open_or_skip("ref");
    params = ordered_params(device);
    params.sgd.schedule = LKS_SCHEDULE_CONSTANT;
    t = make_trainer(&params);
}

static void teardown(void)
{
    lks_trainer_destroy(&t);
    lks_device_close(&device);
    lks_dataset_destroy(&data);
}

TestSuite(own_loop_ref, .init = setup, .fini = teardown);

Test(own_loop_ref, calls_out_of_order_are_refused)
{
    struct lks_batch batch = batch_of(0);
    double loss, accuracy;
    char before[65], after[65];
    float g[6];
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_backward(t), "lks_trainer_forward first");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_update(t), "lks_trainer_backward first");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_get_gradient(t, "conv1.bias", g, 6),
                "no gradients yet");
    EXPECT_OK(lks_trainer_weights_sha256(t, before));
    EXPECT_OK(lks_trainer_forward(t, &batch, NULL));
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_update(t), "lks_trainer_backward first");
    EXPECT_OK(lks_trainer_evaluate(t, data, &loss, &accuracy));
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_backward(t), "no other use"); /* its values are gone */
    EXPECT_OK(lks_trainer_forward(t, &batch, NULL));
    EXPECT_OK(lks_trainer_backward(t));
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_backward(t), "lks_trainer_forward first");
    EXPECT_OK(lks_trainer_weights_sha256(t, after));
    cr_assert_str_eq(before, after, "only the update changes parameters");
    EXPECT_OK(lks_trainer_update(t));
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_update(t), "lks_trainer_backward first");
    EXPECT_OK(lks_trainer_weights_sha256(t, after));
    cr_assert_str_neq(before, after);
    cr_assert_eq(lks_trainer_steps(t), 1);
}

Test(own_loop_ref, wrong_batches_are_refused)
{
    struct lks_batch batch = batch_of(0);
    int32_t labels[BATCH] = {0};
    batch.samples = 0;
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_step(t, &batch, NULL), "0 samples");
    batch.samples = BATCH + 1;
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_step(t, &batch, NULL), "13 samples");
    batch = batch_of(0);
    batch.x = NULL;
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_step(t, &batch, NULL), "lacks x");
    batch = batch_of(0);
    batch.labels = NULL;
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_step(t, &batch, NULL), "lacks labels");
    batch.labels = labels;
    labels[7] = CLASSES;
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_step(t, &batch, NULL), "label 4 of sample 7");
    labels[7] = -1;
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_step(t, &batch, NULL), "label -1 of sample 7");
    cr_assert_eq(lks_trainer_steps(t), 0);
}

Test(own_loop_ref, the_learning_rate_may_change_until_the_update)
{
    struct lks_trainer_params p = params;
    struct lks_batch batch = batch_of(0);
    char want[65], got[65];
    lks_trainer *late;
    EXPECT_OK(lks_trainer_set_lr(t, 0.25));
    EXPECT_OK(lks_trainer_step(t, &batch, NULL));
    EXPECT_OK(lks_trainer_weights_sha256(t, want));
    late = make_trainer(&p);
    EXPECT_OK(lks_trainer_forward(late, &batch, NULL));
    EXPECT_OK(lks_trainer_backward(late));
    EXPECT_OK(lks_trainer_set_lr(late, 0.25));
    EXPECT_OK(lks_trainer_update(late));
    EXPECT_OK(lks_trainer_weights_sha256(late, got));
    cr_assert_str_eq(got, want);
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_set_lr(late, -0.1), "0 or more");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_set_lr(late, NAN), "finite");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_set_lr(late, 1e39), "32-bit float");
    lks_trainer_destroy(&late);
    p.sgd.schedule = LKS_SCHEDULE_LINEAR;
    late = make_trainer(&p);
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_step(late, &batch, NULL), "lks_trainer_set_lr");
    EXPECT_OK(lks_trainer_set_lr(late, 0.25));
    EXPECT_OK(lks_trainer_step(late, &batch, NULL));
    EXPECT_OK(lks_trainer_weights_sha256(late, got));
    cr_assert_str_eq(got, want);
    lks_trainer_destroy(&late);
}

Test(own_loop_ref, gradients_are_those_of_the_update)
{
    struct lks_batch batch = batch_of(1);
    float before[5], after[5], g[5];
    params.sgd = (struct lks_sgd){.lr = 0.5};
    lks_trainer *plain = make_trainer(&params);
    EXPECT_OK(lks_trainer_get(plain, "conv2.bias", before, 5));
    EXPECT_OK(lks_trainer_forward(plain, &batch, NULL));
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_set_gradient(plain, "conv2.bias", before, 5),
                "backward");
    EXPECT_OK(lks_trainer_backward(plain));
    EXPECT_OK(lks_trainer_get_gradient(plain, "conv2.bias", g, 5));
    g[2] = 3.0f; /* what the caller writes is what the update takes */
    EXPECT_OK(lks_trainer_set_gradient(plain, "conv2.bias", g, 5));
    EXPECT_OK(lks_trainer_update(plain));
    EXPECT_OK(lks_trainer_get(plain, "conv2.bias", after, 5));
    for (int i = 0; i < 5; i++) {
        cr_assert(after[i] == fmaf(-0.5f, g[i], before[i]), "element %d", i);
        cr_assert(g[i] != 0 || i == 2);
    }
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_get_gradient(plain, "conv2.bias", g, 4), "5 elements");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_get_gradient(plain, "conv9.bias", g, 5), "conv9.bias");
    lks_trainer_destroy(&plain);
}

Test(own_loop_ref, a_batch_with_a_nan_is_named_and_left_out)
{
    static float bad[BATCH * PIXELS];
    struct lks_batch batch = batch_of(0);
    struct lks_step_info info = {.step = 99};
    char before[65], after[65];
    float bias[CLASSES], good;
    EXPECT_OK(lks_trainer_step(t, &batch, NULL));
    EXPECT_OK(lks_trainer_weights_sha256(t, before));
    memcpy(bad, samples, sizeof bad);
    bad[3 * PIXELS + 7] = NAN;
    batch.x = bad;
    EXPECT_FAIL(LKS_E_NONFINITE, lks_trainer_step(t, &batch, &info), "step 1", "sample 3",
                "value 7");
    cr_assert_eq(info.step, 99);
    batch = batch_of(0);
    EXPECT_OK(lks_trainer_get(t, "dense2.bias", bias, CLASSES));
    good = bias[1];
    bias[1] = INFINITY;
    EXPECT_OK(lks_trainer_set(t, "dense2.bias", bias, CLASSES));
    EXPECT_FAIL(LKS_E_NONFINITE, lks_trainer_step(t, &batch, &info), "step 1", "`dense2`");
    bias[1] = good;
    EXPECT_OK(lks_trainer_set(t, "dense2.bias", bias, CLASSES));
    EXPECT_OK(lks_trainer_weights_sha256(t, after));
    cr_assert_str_eq(before, after);
    cr_assert_eq(lks_trainer_steps(t), 1);
    batch = batch_of(1);
    EXPECT_OK(lks_trainer_step(t, &batch, &info));
    cr_assert_eq(info.step, 1);
    EXPECT_OK(lks_trainer_weights_sha256(t, after));
    cr_assert_str_neq(before, after);
}

/* A repetition of the step lacks what the caller wrote, so it must not judge the device. */
Test(own_loop_ref, a_nan_that_the_caller_wrote_is_named_so)
{
    struct lks_batch batch = batch_of(0);
    float bias[CLASSES] = {0, INFINITY};
    char before[65], after[65];
    EXPECT_OK(lks_trainer_weights_sha256(t, before));
    EXPECT_OK(lks_trainer_forward(t, &batch, NULL));
    EXPECT_OK(lks_trainer_backward(t));
    EXPECT_OK(lks_trainer_set_gradient(t, "dense2.bias", bias, CLASSES));
    EXPECT_FAIL(LKS_E_NONFINITE, lks_trainer_update(t), "step 0", "lks_trainer_set_gradient");
    EXPECT_OK(lks_trainer_weights_sha256(t, after));
    cr_assert_str_eq(before, after);
    EXPECT_OK(lks_trainer_step(t, &batch, NULL));
    cr_assert_eq(lks_trainer_steps(t), 1);
}

Test(own_loop_ref, numbers_that_32_bits_cannot_hold_are_refused)
{
    lks_graph *g = make_graph();
    lks_trainer *none = NULL;
    struct lks_trainer_params p = params;
    p.sgd.lr = 1e39;
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_create(&none, g, &p), "lr is 1e+39", "32-bit");
    p = params;
    p.sgd.weight_decay = INFINITY;
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_create(&none, g, &p), "weight_decay is inf", "32-bit");
    p = params;
    p.sgd.schedule = (lks_schedule)9;
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_create(&none, g, &p), "schedule 9");
    cr_assert_null(none);
    lks_graph_destroy(&g);
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_create(&g, lks_graph_params(.init = (lks_init)9)),
                "init 9");
    cr_assert_null(g);
}

Test(own_loop_ref, inputs_beyond_31_bits_are_refused)
{
    const int64_t large[] = {46341, 46341, 1}, huge[] = {1ll << 40, 1ll << 40, 1ll << 40};
    const int64_t most[] = {1, 2147483647, 1};
    lks_graph *g = make_graph();
    lks_value x = 77;
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_input(g, "large", 3, large, &x), "2^31 - 1 elements");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_input(g, "huge", 3, huge, &x), "2^31 - 1 elements");
    cr_assert_eq(x, 77);
    EXPECT_OK(lks_graph_input(g, "most", 3, most, &x));
    lks_graph_destroy(&g);
}

Test(own_loop_ref, a_checkpoint_without_data_resumes_to_the_same_digest)
{
    char *folder = scratch_make(), want[65], got[65];
    const char *path = in_folder(folder, "own.safetensors");
    lks_trainer *again;
    for (int s = 0; s < 4; s++) {
        struct lks_batch batch = batch_of(s);
        if (s == 2)
            EXPECT_OK(lks_trainer_save_checkpoint(t, NULL, path));
        EXPECT_OK(lks_trainer_step(t, &batch, NULL));
    }
    EXPECT_OK(lks_trainer_weights_sha256(t, want));
    again = make_trainer(&params);
    EXPECT_FAIL(LKS_E_MISMATCH, lks_trainer_load_checkpoint(again, data, path), "`data`");
    EXPECT_OK(lks_trainer_load_checkpoint(again, NULL, path));
    cr_assert_eq(lks_trainer_steps(again), 2);
    for (int s = 2; s < 4; s++) {
        struct lks_batch batch = batch_of(s);
        EXPECT_OK(lks_trainer_step(again, &batch, NULL));
    }
    EXPECT_OK(lks_trainer_weights_sha256(again, got));
    cr_assert_str_eq(got, want);
    lks_trainer_destroy(&again);
    scratch_remove(folder);
}

Test(own_loop_ref, predictions_from_memory_are_those_from_a_data_set)
{
    static float a[SAMPLES * CLASSES], b[SAMPLES * CLASSES];
    EXPECT_OK(lks_trainer_predict(t, data, 0, SAMPLES, a));
    EXPECT_OK(lks_trainer_predict_floats(t, samples, SAMPLES, b));
    cr_assert(memcmp(a, b, sizeof a) == 0);
    cr_assert(a[0] > 0 && a[SAMPLES * CLASSES - 1] > 0);
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_predict_floats(t, NULL, 1, b), "NULL");
}

/* ---- a fit that a callback ends ---- */

static lks_status refuse_first(void *user, const struct lks_step_info *info)
{
    ++*(int *)user;
    return info->step == 0 ? LKS_E_CANCELLED : LKS_OK;
}

/* Steps run ahead of on_step: one of them may have met a NaN when the callback ends the fit. */
Test(own_loop_ref, a_nan_behind_a_refusing_callback_is_not_lost)
{
    char before[65], after[65];
    lks_dataset *bad;
    int calls = 0;
    lks_trainer *other = make_trainer(&params);
    struct lks_batch batch;
    for (int s = 0; s < 3; s++) {
        batch = batch_of(s);
        EXPECT_OK(lks_trainer_step(other, &batch, NULL));
    }
    EXPECT_OK(lks_trainer_weights_sha256(other, before));
    samples[3 * BATCH * PIXELS] = NAN;
    EXPECT_OK(
        lks_dataset_create(&bad, lks_dataset_params(.count = SAMPLES, .h = SIDE, .w = SIDE,
                                                    .floats = samples, .labels = help_labels)));
    EXPECT_FAIL(
        LKS_E_NONFINITE,
        lks_trainer_fit(t, lks_fit_params(.train = bad, .on_step = refuse_first, .user = &calls)),
        "step 3");
    cr_assert_eq(calls, 1, "a callback that refused is not called again");
    cr_assert_eq(lks_trainer_steps(t), 3);
    EXPECT_OK(lks_trainer_weights_sha256(t, after));
    cr_assert_str_eq(before, after);
    lks_dataset_destroy(&bad);
    lks_trainer_destroy(&other);
}

static lks_status fill(void *user, size_t index, float *x, int32_t *label)
{
    if (index == (size_t) * (int *)user)
        return LKS_E_IO;
    memcpy(x, samples + index * PIXELS, PIXELS * sizeof *x);
    *label = help_labels[index];
    return LKS_OK;
}

Test(own_loop_ref, a_fit_goes_on_after_its_data_failed)
{
    char want[65], got[65];
    int missing = 2 * BATCH + 3;
    lks_dataset *flaky;
    lks_trainer *other = make_trainer(&params);
    EXPECT_OK(lks_trainer_fit(other, lks_fit_params(.train = data)));
    EXPECT_OK(lks_trainer_weights_sha256(other, want));
    EXPECT_OK(lks_dataset_create(&flaky, lks_dataset_params(.count = SAMPLES, .h = SIDE, .w = SIDE,
                                                            .classes = CLASSES, .fill = fill,
                                                            .user = &missing)));
    EXPECT_FAIL(LKS_E_IO, lks_trainer_fit(t, lks_fit_params(.train = flaky)), "sample 27");
    cr_assert_eq(lks_trainer_steps(t), 2);
    missing = -1;
    memset(fit_info, 0, sizeof fit_info);
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = flaky, .on_step = keep_info)));
    cr_assert(fit_info[1].samples == 0 && fit_info[2].samples == BATCH, "steps 0 and 1 were told");
    EXPECT_OK(lks_trainer_weights_sha256(t, got));
    cr_assert_str_eq(got, want);
    lks_dataset_destroy(&flaky);
    lks_trainer_destroy(&other);
}
