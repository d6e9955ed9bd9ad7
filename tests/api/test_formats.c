/*
 * test_formats.c - texts, moving digits and pictures without labels through the C API: what a data
 * set says of itself, one hash of a training on two devices, a resume, and what is refused.
 */
#include "train/train_help.h"

enum { DIGIT = 5, FRAMES = 4, TALL = 9, WIDE = 11 };

static char *folder;

static void setup(void)
{
    folder = scratch_make();
}

static void teardown(void)
{
    scratch_remove(folder);
}

TestSuite(formats, .init = setup, .fini = teardown, .timeout = 300);

/* Six small images. */
static const char *image_file(void)
{
    uint8_t file[16 + 6 * DIGIT * DIGIT] = {0, 0, 8, 3, 0, 0, 0, 6, 0, 0, 0, DIGIT, 0, 0, 0, DIGIT};
    const char *path = in_folder(folder, "images");
    for (size_t i = 16; i < sizeof file; i++)
        file[i] = (uint8_t)(i * 37 % 256);
    write_bytes(path, file, sizeof file);
    return path;
}

static lks_dataset *moving(uint64_t seed)
{
    lks_dataset *d;
    EXPECT_OK(lks_dataset_open_moving_digits(
        &d, lks_moving_digits_params(.images = image_file(), .count = 31, .frames = FRAMES,
                                     .height = TALL, .width = WIDE, .speed = 2, .seed = seed,
                                     .normalize = {.std = 0.5})));
    return d;
}

static lks_dataset *text(const char *name, const char *words)
{
    lks_dataset *d;
    const char *path = in_folder(folder, name);
    write_bytes(path, words, strlen(words));
    EXPECT_OK(lks_dataset_open_text(&d, lks_text_params(.file = path, .context = 4)));
    return d;
}

/* Foretells the last frame from the first. */
static lks_graph *make_forecast(void)
{
    const int64_t dims[] = {FRAMES, TALL, WIDE, 1};
    lks_value x, first, last, loss;
    lks_graph *g;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "frames", 4, dims, &x));
    EXPECT_OK(lks_graph_select(g, x, 0, 0, &first));
    EXPECT_OK(lks_graph_select(g, x, 0, -1, &last));
    EXPECT_OK(lks_graph_conv2d(g, first, lks_conv2d_params(.out = 3, .kernel = 3, .pad = 1), &x));
    EXPECT_OK(lks_graph_relu(g, x, &x));
    EXPECT_OK(lks_graph_conv2d(g, x, lks_conv2d_params(.out = 1, .kernel = 3, .pad = 1), &x));
    EXPECT_OK(lks_graph_loss_to(g, LKS_LOSS_MSE, x, last, 0, &loss));
    EXPECT_OK(lks_graph_add_loss(g, "mse", loss, 1));
    return g;
}

Test(formats, describe_themselves)
{
    static const uint8_t vocabulary[] = {' ', 'a', 'b', 'n'};
    lks_dataset *d = text("book", "banana a banana"), *test;
    const char *path = in_folder(folder, "images");
    int64_t dims[4];
    int rank;
    lks_dataset_dims(d, &rank, dims);
    cr_assert(rank == 1 && dims[0] == 4 && lks_dataset_count(d) == 3);
    cr_assert(lks_dataset_positions(d) == 4 && lks_dataset_classes(d) == 4);
    cr_assert_arr_eq(lks_dataset_vocabulary(d), vocabulary, 4);
    cr_assert_eq(lks_dataset_label(d, 0), -1);
    EXPECT_OK(lks_dataset_open_text(&test, lks_text_params(.file = in_folder(folder, "book"),
                                                           .context = 4, .from = 0.4,
                                                           .vocabulary = d)));
    lks_dataset_destroy(&d); /* it has a copy */
    cr_assert_arr_eq(lks_dataset_vocabulary(test), vocabulary, 4);
    lks_dataset_destroy(&test);
    d = moving(3);
    lks_dataset_dims(d, &rank, dims);
    cr_assert(rank == 4 && dims[0] == FRAMES && dims[1] == TALL && dims[2] == WIDE && dims[3] == 1);
    cr_assert(lks_dataset_positions(d) == 0 && lks_dataset_vocabulary(d) == NULL);
    lks_dataset_destroy(&d);
    EXPECT_OK(lks_dataset_open_images(&d, lks_images_params(.images = path, .limit = 4)));
    cr_assert(lks_dataset_count(d) == 4 && lks_dataset_positions(d) == 0);
    lks_dataset_destroy(&d);
}

Test(formats, one_hash_and_a_resume)
{
    lks_dataset *data = moving(3), *other = moving(4);
    lks_device *device[2] = {open_or_skip("ref"), open_or_skip("cpu")};
    lks_graph *g = make_forecast();
    const char *path = in_folder(folder, "checkpoint");
    lks_trainer *t = NULL;
    double loss[2], accuracy;
    char sha[2][65];
    for (int i = 0; i < 2; i++) {
        struct lks_trainer_params p = small_params(device[i]);
        EXPECT_OK(lks_trainer_create(&t, g, &p));
        if (i == 1) {
            EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .max_steps = 4)));
            EXPECT_OK(lks_trainer_save_checkpoint(t, data, path));
            lks_trainer_destroy(&t);
            EXPECT_OK(lks_trainer_create(&t, g, &p));
            EXPECT_FAIL(LKS_E_MISMATCH, lks_trainer_load_checkpoint(t, other, path), "data");
            EXPECT_OK(lks_trainer_load_checkpoint(t, data, path));
        }
        EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
        EXPECT_OK(lks_trainer_evaluate(t, other, &loss[i], &accuracy));
        EXPECT_OK(lks_trainer_weights_sha256(t, sha[i]));
        lks_trainer_destroy(&t);
    }
    cr_assert_str_eq(sha[0], sha[1]);
    cr_assert_eq(loss[0], loss[1]);
    cr_assert(loss[0] > 0 && loss[0] < 1, "%g", loss[0]);
    lks_graph_destroy(&g);
    for (int i = 0; i < 2; i++)
        lks_device_close(&device[i]);
    lks_dataset_destroy(&data);
    lks_dataset_destroy(&other);
}

Test(formats, refused)
{
    lks_dataset *words = text("book", "banana a banana"), *d = NULL;
    lks_device *ref = open_or_skip("ref");
    struct lks_trainer_params p = small_params(ref);
    const int64_t dims[] = {4};
    lks_graph *g;
    lks_value x, y;
    lks_trainer *t = NULL;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "numbers", 1, dims, &x));
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = 4), &y));
    EXPECT_OK(lks_graph_loss_mean(g, y, &x));
    EXPECT_OK(lks_graph_add_loss(g, "mean", x, 1));
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    EXPECT_FAIL(LKS_E_INPUT, lks_trainer_fit(t, lks_fit_params(.train = words)), "integers",
                "floats");
    EXPECT_FAIL(LKS_E_INPUT, lks_trainer_predict(t, words, 0, 1, (float[16]){0}), "4 labels");
    lks_trainer_destroy(&t);
    lks_graph_destroy(&g);
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_dataset_open_text(NULL, lks_text_params(.file = "a")), "NULL");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_dataset_open_text(&d, NULL), "NULL");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_dataset_open_text(&d, lks_text_params(.context = 1)), "NULL");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_dataset_open_images(&d, NULL), "NULL");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_dataset_open_images(&d, lks_images_params(.limit = 1)), "NULL");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_dataset_open_moving_digits(&d, NULL), "NULL");
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lks_dataset_open_moving_digits(&d, lks_moving_digits_params(.count = 1)), "NULL");
    lks_dataset *sequences = moving(1);
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lks_dataset_open_text(&d, lks_text_params(.file = in_folder(folder, "book"),
                                                          .context = 4, .vocabulary = sequences)),
                "no text");
    cr_assert_null(d);
    lks_dataset_destroy(&sequences);
    lks_dataset_destroy(&words);
    lks_device_close(&ref);
}
