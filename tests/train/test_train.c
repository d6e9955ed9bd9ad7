/*
 * test_train.c - the same bits on every device, after a resume and for every schedule; and what a
 * trainer refuses.
 */
#include <math.h>
#include <unistd.h>

#include "train_help.h"

/* Trains to `steps` and returns the digest of the weights. */
static void digest_after(const struct lks_trainer_params *params, const lks_dataset *data,
                         uint64_t steps, char *hex)
{
    lks_trainer *t;
    lks_graph *g = make_graph();
    EXPECT_OK(lks_trainer_create(&t, g, params));
    lks_graph_destroy(&g);
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .max_steps = steps)));
    EXPECT_OK(lks_trainer_weights_sha256(t, hex));
    lks_trainer_destroy(&t);
}

Test(train, one_digest_on_ref_cpu_and_plain)
{
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref"), *cpu = open_or_skip("cpu");
    struct lks_trainer_params p = small_params(ref);
    char a[65], b[65], c[65], d[65];
    digest_after(&p, data, 0, a);
    p.plain = true;
    digest_after(&p, data, 0, b);
    p.device = cpu;
    digest_after(&p, data, 0, c);
    p.plain = false;
    digest_after(&p, data, 0, d);
    cr_assert_str_eq(a, b, "ref and its contract items");
    cr_assert_str_eq(a, c, "ref and the plain kernels");
    cr_assert_str_eq(a, d, "ref and the fast kernels");
    lks_device_close(&cpu);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

static void count_builds(void *user, size_t done, size_t total)
{
    (void)done;
    (void)total;
    ++*(int *)user;
}

/* Kernels for the form of the data are made with the trainer, and no others. */
Test(train, a_trainer_that_knows_its_data_makes_one_plan)
{
    lks_dataset *data = make_data();
    lks_device *cpu = open_or_skip("cpu");
    struct lks_trainer_params p = small_params(cpu);
    struct lks_memory before, after;
    int builds = 0, first;
    char hex[2][65];
    p.on_build = count_builds;
    p.user = &builds;
    for (int knows = 0; knows < 2; knows++) {
        lks_graph *g = make_graph();
        lks_trainer *t;
        p.data = knows ? data : NULL;
        builds = 0;
        EXPECT_OK(lks_trainer_create(&t, g, &p));
        first = builds;
        cr_assert_gt(first, 0);
        EXPECT_OK(lks_trainer_memory(t, &before));
        EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .max_steps = 3)));
        cr_assert(knows ? builds == first : builds > first, "%d, then %d", first, builds);
        EXPECT_OK(lks_trainer_memory(t, &after));
        cr_assert_eq(before.total, after.total);
        EXPECT_OK(lks_trainer_weights_sha256(t, hex[knows]));
        lks_trainer_destroy(&t);
        lks_graph_destroy(&g);
    }
    cr_assert_str_eq(hex[0], hex[1]);
    lks_device_close(&cpu);
    lks_dataset_destroy(&data);
}

Test(train, own_division_gives_the_same_digest)
{
    lks_dataset *data = make_data();
    lks_device *native = open_or_skip("cpu"), *own;
    struct lks_trainer_params p = small_params(native);
    char a[65], b[65];
    digest_after(&p, data, 4, a);
    EXPECT_OK(lks_device_open(
        &own, lks_device_params(.select = "cpu", .cache_dir = "", .own_divsqrt = true)));
    p.device = own;
    digest_after(&p, data, 4, b);
    cr_assert_str_eq(a, b);
    lks_device_close(&own);
    lks_device_close(&native);
    lks_dataset_destroy(&data);
}

Test(train, what_the_bits_depend_on_changes_them)
{
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref");
    struct lks_trainer_params p = small_params(ref), q;
    char base[65], other[65];
    digest_after(&p, data, 6, base);
    q = p;
    q.seed = 8;
    digest_after(&q, data, 6, other);
    cr_assert_str_neq(base, other, "seed");
    q = p;
    q.batch = 13;
    digest_after(&q, data, 6, other);
    cr_assert_str_neq(base, other, "batch");
    q = p;
    q.leaf = 1;
    digest_after(&q, data, 6, other);
    cr_assert_str_neq(base, other, "leaf");
    q = p;
    q.no_shuffle = true;
    digest_after(&q, data, 6, other);
    cr_assert_str_neq(base, other, "order");
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

static double last_accuracy;
static uint64_t seen_steps;

static lks_status on_epoch(void *user, const struct lks_epoch_info *info)
{
    (void)user;
    last_accuracy = info->test_accuracy;
    cr_assert(isfinite(info->train_loss) && isfinite(info->test_loss));
    cr_assert(info->train_accuracy >= 0 && info->train_accuracy <= 1);
    return LKS_OK;
}

static lks_status on_step(void *user, const struct lks_step_info *info)
{
    (void)user;
    cr_assert_eq(info->step, seen_steps);
    cr_assert_eq(info->epoch, info->step / 5);
    cr_assert_eq(info->samples, info->step % 5 == 4 ? SAMPLES % 12 : 12);
    seen_steps++;
    return LKS_OK;
}

Test(train, it_learns_and_reports_every_step)
{
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref");
    struct lks_trainer_params p = small_params(ref);
    lks_trainer *t;
    lks_graph *g = make_graph();
    float prob[3 * CLASSES];
    p.epochs = 40;
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .test = data, .on_epoch = on_epoch,
                                                .on_step = on_step)));
    cr_assert_eq(seen_steps, 40 * 5);
    cr_assert_eq(lks_trainer_steps(t), 40 * 5);
    cr_assert_gt(last_accuracy, 0.95);
    EXPECT_OK(lks_trainer_predict(t, data, SAMPLES - 3, 3, prob));
    for (int i = 0; i < 3; i++) {
        float sum = 0, *row = prob + i * CLASSES;
        for (int c = 0; c < CLASSES; c++)
            sum += row[c];
        cr_assert_float_eq(sum, 1.0f, 1e-5f);
        cr_assert_gt(row[help_labels[SAMPLES - 3 + i]], 0.5f);
    }
    lks_trainer_destroy(&t);
    lks_graph_destroy(&g);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

/* ---- checkpoints ---- */

Test(train, resume_at_any_step_gives_the_same_digest)
{
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref");
    struct lks_trainer_params p = small_params(ref);
    lks_graph *g = make_graph();
    char whole[65], resumed[65], path[300];
    char *folder = scratch_make();
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", folder);
    digest_after(&p, data, 0, whole);
    for (uint64_t stop = 1; stop < 15; stop += 2) {
        lks_trainer *t;
        EXPECT_OK(lks_trainer_create(&t, g, &p));
        EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .max_steps = stop)));
        EXPECT_OK(lks_trainer_save_checkpoint(t, data, path));
        lks_trainer_destroy(&t);
        EXPECT_OK(lks_trainer_create(&t, g, &p));
        EXPECT_OK(lks_trainer_load_checkpoint(t, data, path));
        cr_assert_eq(lks_trainer_steps(t), stop);
        EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
        EXPECT_OK(lks_trainer_weights_sha256(t, resumed));
        cr_assert_str_eq(whole, resumed, "stopped after step %d", (int)stop);
        lks_trainer_destroy(&t);
    }
    scratch_remove(folder);
    lks_graph_destroy(&g);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

Test(train, a_checkpoint_of_something_else_is_refused)
{
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref");
    struct lks_trainer_params p = small_params(ref), q;
    lks_graph *g = make_graph();
    lks_trainer *t;
    char path[300], weights[300];
    char *folder = scratch_make();
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", folder);
    snprintf(weights, sizeof weights, "%s/weights.safetensors", folder);
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .max_steps = 2)));
    EXPECT_OK(lks_trainer_save_checkpoint(t, data, path));
    EXPECT_OK(lks_trainer_save_weights(t, weights));
    cr_assert_eq(lks_trainer_load_checkpoint(t, data, weights), LKS_E_INPUT);
    lks_trainer_destroy(&t);

    q = p;
    q.seed++;
    EXPECT_OK(lks_trainer_create(&t, g, &q));
    cr_assert_eq(lks_trainer_load_checkpoint(t, data, path), LKS_E_MISMATCH);
    cr_assert(strstr(lks_error_message(), "`seed`") != NULL, "%s", lks_error_message());
    cr_assert_eq(lks_trainer_steps(t), 0);
    lks_trainer_destroy(&t);

    q = p;
    q.sgd.lr = 0.06;
    EXPECT_OK(lks_trainer_create(&t, g, &q));
    cr_assert_eq(lks_trainer_load_checkpoint(t, data, path), LKS_E_MISMATCH);
    cr_assert(strstr(lks_error_message(), "`lr`") != NULL, "%s", lks_error_message());
    lks_trainer_destroy(&t);

    EXPECT_OK(lks_trainer_create(&t, g, &p));
    help_pixels[17] ^= 1;
    lks_dataset *changed;
    EXPECT_OK(lks_dataset_create(
        &changed, lks_dataset_params(.count = SAMPLES, .h = SIDE, .w = SIDE, .pixels = help_pixels,
                                     .labels = help_labels, .normalize = {0.3, 0.3})));
    cr_assert_eq(lks_trainer_load_checkpoint(t, changed, path), LKS_E_MISMATCH);
    cr_assert(strstr(lks_error_message(), "`data`") != NULL, "%s", lks_error_message());
    EXPECT_OK(lks_trainer_load_weights(t, weights));
    lks_trainer_destroy(&t);
    lks_dataset_destroy(&changed);
    scratch_remove(folder);
    lks_graph_destroy(&g);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

/* ---- cancelling, NaN, wrong parameters ---- */

static bool after_three(void *user)
{
    return lks_trainer_steps(*(lks_trainer **)user) >= 3;
}

Test(train, a_cancelled_fit_goes_on_to_the_same_digest)
{
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref");
    struct lks_trainer_params p = small_params(ref);
    lks_graph *g = make_graph();
    lks_trainer *t;
    char whole[65], hex[65];
    digest_after(&p, data, 0, whole);
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    cr_assert_eq(lks_trainer_fit(
                     t, lks_fit_params(.train = data, .cancelled = after_three, .user = &t)),
                 LKS_E_CANCELLED);
    cr_assert_eq(lks_trainer_steps(t), 3);
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
    EXPECT_OK(lks_trainer_weights_sha256(t, hex));
    cr_assert_str_eq(whole, hex);
    lks_trainer_destroy(&t);
    lks_graph_destroy(&g);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

static void nonfinite_on(const char *select)
{
    lks_dataset *data = make_data();
    lks_device *device = open_or_skip(select);
    struct lks_trainer_params p = small_params(device);
    lks_graph *g = make_graph();
    lks_trainer *t;
    char before[65], after[65];
    float w[17 * CLASSES];
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .max_steps = 2)));
    EXPECT_OK(lks_trainer_get(t, "dense2.weight", w, 17 * CLASSES));
    w[5] = INFINITY;
    EXPECT_OK(lks_trainer_set(t, "dense2.weight", w, 17 * CLASSES));
    EXPECT_OK(lks_trainer_weights_sha256(t, before));
    cr_assert_eq(lks_trainer_fit(t, lks_fit_params(.train = data)), LKS_E_NONFINITE);
    cr_assert(strstr(lks_error_message(), "step 2: operator `dense2` (dense)") != NULL, "%s",
              lks_error_message());
    cr_assert_eq(lks_trainer_steps(t), 2);
    EXPECT_OK(lks_trainer_weights_sha256(t, after));
    cr_assert_str_eq(before, after, "no step took the infinity in");
    w[5] = 0.25f;
    EXPECT_OK(lks_trainer_set(t, "dense2.weight", w, 17 * CLASSES));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
    EXPECT_OK(lks_trainer_weights_sha256(t, after));
    cr_assert_str_neq(before, after, "training goes on once the cause is gone");
    lks_trainer_destroy(&t);
    lks_graph_destroy(&g);
    lks_device_close(&device);
    lks_dataset_destroy(&data);
}

Test(train, an_infinity_stops_ref_before_the_update)
{
    nonfinite_on("ref");
}

Test(train, an_infinity_stops_the_cpu_before_the_update)
{
    nonfinite_on("cpu");
}

Test(train, wrong_parameters_are_refused)
{
    lks_device *ref = open_or_skip("ref");
    struct lks_trainer_params p = small_params(ref), q;
    lks_graph *g = make_graph(), *empty;
    lks_trainer *t = NULL;
    q = p;
    q.leaf = 6;
    cr_assert_eq(lks_trainer_create(&t, g, &q), LKS_E_ARGUMENT);
    cr_assert(strstr(lks_error_message(), "power of two") != NULL);
    q = p;
    q.sgd.lr = NAN;
    cr_assert_eq(lks_trainer_create(&t, g, &q), LKS_E_ARGUMENT);
    q = p;
    q.sgd.momentum = 1;
    cr_assert_eq(lks_trainer_create(&t, g, &q), LKS_E_ARGUMENT);
    EXPECT_OK(lks_graph_create(&empty, NULL));
    cr_assert_eq(lks_trainer_create(&t, empty, &p), LKS_E_ARGUMENT);
    cr_assert(strstr(lks_error_message(), "no loss") != NULL);
    cr_assert_null(t);
    lks_graph_destroy(&empty);
    lks_graph_destroy(&g);
    lks_device_close(&ref);
}

Test(train, a_step_beyond_memory_says_what_fits)
{
    lks_device *ref = open_or_skip("ref");
    struct lks_trainer_params p = small_params(ref);
    lks_graph *g = make_graph();
    lks_trainer *t = NULL;
    p.batch = 1u << 24;
    cr_assert_eq(lks_trainer_create(&t, g, &p), LKS_E_MEMORY);
    cr_assert(strstr(lks_error_message(), "would fit") != NULL, "%s", lks_error_message());
    lks_graph_destroy(&g);
    lks_device_close(&ref);
}
