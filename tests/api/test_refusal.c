/*
 * test_refusal.c - what the C API refuses: numbers of threads, graphs in which a call failed, data of
 * another shape; and what it says about callbacks.
 */
#include "train/train_help.h"

Test(refusal, numbers_of_threads)
{
    lks_device *d = NULL;
    static const int wrong[] = {-1, -2147483647 - 1, LKS_MAX_THREADS + 1, 2147483647};
    for (size_t i = 0; i < LKSI_COUNT(wrong); i++)
        EXPECT_FAIL(LKS_E_ARGUMENT,
                    lks_device_open(&d, lks_device_params(.select = "ref", .threads = wrong[i])),
                    "threads", "1 to 256");
    cr_assert_null(d);
    EXPECT_OK(
        lks_device_open(&d, lks_device_params(.select = "ref", .threads = LKS_MAX_THREADS)));
    lks_device_close(&d);
}

/* Failed calls, also such that fail behind their parameters, and a training afterwards. */
Test(refusal, a_graph_in_which_a_call_failed)
{
    lks_device *ref = open_or_skip("ref");
    struct lks_trainer_params p = small_params(ref);
    lks_trainer *t = NULL;
    lks_graph *g = make_graph();
    lks_value x = 0, y = -7;
    size_t parameters = lks_graph_parameter_count(g);
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lks_graph_maxpool(g, x, lks_pool_params(.kernel = SIDE + 1), &y), "maxpool");
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lks_graph_conv2d(g, x, lks_conv2d_params(.out = 2, .kernel = SIDE + 1), &y), "conv");
    cr_assert(y == -7, "the result is untouched");
    cr_assert(lks_graph_parameter_count(g) == parameters);
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    lks_trainer_destroy(&t);
    lks_graph_destroy(&g);
    lks_device_close(&ref);
}

static lks_status fit_shape(lks_device *device, lks_trainer *t, uint32_t h, uint32_t w,
                            uint32_t c)
{
    lks_dataset *data;
    EXPECT_OK(lks_dataset_create(&data, lks_dataset_params(.count = SAMPLES, .h = h, .w = w, .c = c,
                                                           .pixels = help_pixels,
                                                           .labels = help_labels)));
    /* A trainer that is made for these data says the same, and earlier. */
    struct lks_trainer_params p = small_params(device);
    lks_graph *g = make_graph();
    lks_trainer *made = NULL;
    p.data = data;
    lks_status early = lks_trainer_create(&made, g, &p);
    lks_trainer_destroy(&made);
    lks_graph_destroy(&g);
    lks_status st = lks_trainer_fit(t, lks_fit_params(.train = data, .max_steps = 1));
    cr_assert_eq(st, early);
    lks_dataset_destroy(&data);
    return st;
}

static lks_trainer *make_trainer(lks_device *device)
{
    struct lks_trainer_params p = small_params(device);
    lks_graph *g = make_graph();
    lks_trainer *t;
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    lks_graph_destroy(&g);
    return t;
}

Test(refusal, data_of_another_shape_and_the_same_size)
{
    lks_dataset *data = make_data(); /* fills the pixels */
    lks_device *ref = open_or_skip("ref");
    lks_trainer *t = make_trainer(ref);
    EXPECT_FAIL(LKS_E_INPUT, fit_shape(ref, t, 5, 20, 1), "5 x 20 x 1", "[1,10,10,1]");
    EXPECT_FAIL(LKS_E_INPUT, fit_shape(ref, t, 5, 5, 4), "5 x 5 x 4");
    EXPECT_FAIL(LKS_E_INPUT, fit_shape(ref, t, 5, 5, 1), "5 x 5 x 1");
    EXPECT_FAIL(LKS_E_INPUT, fit_shape(ref, t, 1, 1, 99), "1 x 1 x 99");
    EXPECT_OK(fit_shape(ref, t, 10, 10, 1));
    EXPECT_OK(fit_shape(ref, t, 0, 0, SIDE * SIDE)); /* a row of numbers has no shape */
    lks_trainer_destroy(&t);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

static lks_status stop_with(void *user, const struct lks_step_info *info)
{
    (void)info;
    return *(const lks_status *)user;
}

static lks_status fill_with(void *user, size_t index, float *x, int32_t *label)
{
    (void)index, (void)x, (void)label;
    return *(const lks_status *)user;
}

Test(refusal, what_callbacks_return)
{
    lks_status unknown = (lks_status)77, cancelled = LKS_E_CANCELLED;
    lks_dataset *data = make_data(), *filled;
    lks_device *ref = open_or_skip("ref");
    lks_trainer *t = make_trainer(ref);
    EXPECT_FAIL(unknown,
                lks_trainer_fit(t, lks_fit_params(.train = data, .on_step = stop_with,
                                                  .user = &unknown, .max_steps = 1)),
                "on_step", "unknown status 77");
    EXPECT_FAIL(LKS_E_CANCELLED,
                lks_trainer_fit(t, lks_fit_params(.train = data, .on_step = stop_with,
                                                  .user = &cancelled, .max_steps = 2)),
                "on_step", "LKS_E_CANCELLED");
    EXPECT_OK(lks_dataset_create(&filled, lks_dataset_params(.count = SAMPLES, .h = SIDE, .w = SIDE,
                                                             .classes = CLASSES, .fill = fill_with,
                                                             .user = &unknown)));
    EXPECT_FAIL(unknown, lks_trainer_fit(t, lks_fit_params(.train = filled)),
                "data callback", "unknown status 77", "sample");
    lks_dataset_destroy(&filled);
    lks_trainer_destroy(&t);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

Test(refusal, labels_are_told)
{
    lks_dataset *data = make_data();
    cr_assert_eq(lks_dataset_label(data, 0), 0);
    cr_assert_eq(lks_dataset_label(data, 6), 2);
    cr_assert_eq(lks_dataset_label(data, SAMPLES), -1);
    lks_dataset_destroy(&data);
}
