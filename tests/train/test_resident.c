/*
 * test_resident.c - data sets on the device: the bits of batches sent by the host, for pixels, floats
 * and integers, over short last batches, evaluation, predictions and a resume; when data lie there by
 * themselves; refusals.
 */
#include <string.h>

#include "rt/api.h"
#include "train/train.h"
#include "train_help.h"

static float help_floats[SAMPLES * SIDE * SIDE];

/* The pixels of make_data as floats. */
static lks_dataset *make_floats(void)
{
    lks_dataset *pixels = make_data(), *data;
    lks_dataset_destroy(&pixels);
    for (int i = 0; i < SAMPLES * SIDE * SIDE; i++)
        help_floats[i] = (float)help_pixels[i] / 128.0f - 1.0f;
    EXPECT_OK(lks_dataset_create(
        &data, lks_dataset_params(.count = SAMPLES, .h = SIDE, .w = SIDE, .floats = help_floats,
                                  .labels = help_labels)));
    return data;
}

/* Five channels: their table is larger than what is sent with a batch. And sizes that end within a
 * word. */
static lks_dataset *make_colours(lks_graph **g)
{
    static uint8_t pixels[SAMPLES * 3 * 3 * 5];
    const int64_t dims[] = {3, 3, 5};
    lks_dataset *data = make_data();
    lks_value x;
    memcpy(pixels, help_pixels, sizeof pixels);
    lks_dataset_destroy(&data);
    EXPECT_OK(lks_dataset_create(
        &data, lks_dataset_params(.count = SAMPLES, .h = 3, .w = 3, .c = 5, .pixels = pixels,
                                  .labels = help_labels, .normalize = {0.3, 0.3})));
    EXPECT_OK(lks_graph_create(g, NULL));
    EXPECT_OK(lks_graph_input(*g, "image", 3, dims, &x));
    EXPECT_OK(lks_graph_dense(*g, x, lks_dense_params(.out = CLASSES), &x));
    EXPECT_OK(lks_graph_softmax_cross_entropy(*g, x));
    return data;
}

static lks_dataset *make_tokens(lks_graph **g)
{
    enum { LENGTH = 7 };
    static int32_t tokens[SAMPLES * LENGTH];
    const int64_t dims[] = {LENGTH};
    lks_dataset *data = make_data();
    lks_value x;
    lks_dataset_destroy(&data);
    for (int i = 0; i < SAMPLES * LENGTH; i++)
        tokens[i] = help_pixels[i] % CLASSES;
    EXPECT_OK(lks_dataset_create(
        &data, lks_dataset_params(.count = SAMPLES, .rank = 1, .dims = {LENGTH}, .tokens = tokens,
                                  .labels = tokens, .positions = LENGTH, .classes = CLASSES)));
    EXPECT_OK(lks_graph_create(g, NULL));
    EXPECT_OK(lks_graph_input_tokens(*g, "text", 1, dims, &x));
    EXPECT_OK(lks_graph_embedding(
        *g, x, lks_embedding_params(.vocabulary = CLASSES, .out = 6), &x));
    EXPECT_OK(lks_graph_dense(*g, x, lks_dense_params(.out = CLASSES, .last_axis = true), &x));
    EXPECT_OK(lks_graph_softmax_loss(*g, x, NULL, &x));
    EXPECT_OK(lks_graph_add_loss(*g, "loss", x, 1.0));
    return data;
}

/* What a training gives: the digest, each epoch's losses, and predictions. */
struct result {
    char hex[65];
    double loss[8];
    size_t epochs;
    float predicted[SAMPLES * CLASSES];
};

static lks_status on_epoch(void *user, const struct lks_epoch_info *info)
{
    struct result *r = user;
    r->loss[r->epochs++] = info->train_loss;
    r->loss[r->epochs++] = info->test_loss;
    return LKS_OK;
}

static void train(const struct lks_trainer_params *p, const lks_graph *g, const lks_dataset *data,
                  bool predicts, struct result *r)
{
    lks_trainer *t;
    struct lks_memory memory;
    *r = (struct result){0};
    EXPECT_OK(lks_trainer_create(&t, g, p));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .test = data, .on_epoch = on_epoch,
                                                .user = r)));
    EXPECT_OK(lks_trainer_weights_sha256(t, r->hex));
    EXPECT_OK(lks_trainer_memory(t, &memory));
    cr_assert_eq(memory.data > 0, p->resident == LKS_RESIDENT_YES);
    cr_assert_eq(lksi_resident_find(t, data->data) != NULL, p->resident == LKS_RESIDENT_YES);
    cr_assert_eq(memory.total,
                 memory.parameters + memory.inputs + memory.values + memory.data);
    if (predicts)
        EXPECT_OK(lks_trainer_predict(t, data, 3, SAMPLES - 3, r->predicted));
    lks_trainer_destroy(&t);
}

static void same_with_and_without(const lks_graph *g, const lks_dataset *data, bool predicts)
{
    static const char *const names[] = {"ref", "cpu"};
    struct result sent, lying;
    for (int k = 0; k < 2; k++) {
        lks_device *device = open_or_skip(names[k]);
        struct lks_trainer_params p = small_params(device);
        for (int knows = 0; knows < 2; knows++) {
            p.data = knows ? data : NULL;
            p.resident = LKS_RESIDENT_NO;
            train(&p, g, data, predicts, &sent);
            p.resident = LKS_RESIDENT_YES;
            train(&p, g, data, predicts, &lying);
            cr_assert_str_eq(sent.hex, lying.hex);
            cr_assert_eq(sent.epochs, 6);
            cr_assert_arr_eq(sent.loss, lying.loss, sizeof sent.loss);
            cr_assert_arr_eq(sent.predicted, lying.predicted, sizeof sent.predicted);
        }
        lks_device_close(&device);
    }
}

Test(resident, pixels_give_the_same_bits)
{
    lks_graph *g = make_graph();
    lks_dataset *data = make_data();
    same_with_and_without(g, data, true);
    lks_dataset_destroy(&data);
    lks_graph_destroy(&g);
}

Test(resident, floats_give_the_same_bits)
{
    lks_graph *g = make_graph();
    lks_dataset *data = make_floats();
    same_with_and_without(g, data, true);
    lks_dataset_destroy(&data);
    lks_graph_destroy(&g);
}

Test(resident, five_channels_give_the_same_bits)
{
    lks_graph *g;
    lks_dataset *data = make_colours(&g);
    same_with_and_without(g, data, true);
    lks_dataset_destroy(&data);
    lks_graph_destroy(&g);
}

Test(resident, tokens_give_the_same_bits)
{
    lks_graph *g;
    lks_dataset *data = make_tokens(&g);
    same_with_and_without(g, data, false);
    lks_dataset_destroy(&data);
    lks_graph_destroy(&g);
}

/* Five steps on the device, the rest sent, and the other way round. */
Test(resident, a_resume_may_change_it)
{
    lks_device *device = open_or_skip("cpu");
    struct lks_trainer_params p = small_params(device);
    lks_graph *g = make_graph();
    lks_dataset *data = make_data();
    char hex[3][65], folder[] = "/tmp/lks-resident-XXXXXX", file[64];
    lks_trainer *t;
    cr_assert_not_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/c", folder);
    for (int k = 0; k < 3; k++) {
        p.resident = k == 1 ? LKS_RESIDENT_YES : LKS_RESIDENT_NO;
        EXPECT_OK(lks_trainer_create(&t, g, &p));
        EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .max_steps = k == 0 ? 0 : 6)));
        if (k > 0) {
            EXPECT_OK(lks_trainer_save_checkpoint(t, data, file));
            lks_trainer_destroy(&t);
            p.resident = k == 1 ? LKS_RESIDENT_NO : LKS_RESIDENT_YES;
            EXPECT_OK(lks_trainer_create(&t, g, &p));
            EXPECT_OK(lks_trainer_load_checkpoint(t, data, file));
            EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
        }
        EXPECT_OK(lks_trainer_weights_sha256(t, hex[k]));
        lks_trainer_destroy(&t);
    }
    cr_assert_str_eq(hex[0], hex[1]);
    cr_assert_str_eq(hex[0], hex[2]);
    remove(file);
    remove(folder);
    lks_dataset_destroy(&data);
    lks_graph_destroy(&g);
    lks_device_close(&device);
}

/* Other data, and the same pixels with another normalisation, are not taken for those that lie there. */
Test(resident, other_data_replace_it)
{
    lks_device *device = open_or_skip("ref");
    struct lks_trainer_params p = small_params(device);
    lks_graph *g = make_graph();
    lks_dataset *data = make_data(), *floats = make_floats(), *brighter;
    char hex[2][65];
    EXPECT_OK(lks_dataset_create(
        &brighter, lks_dataset_params(.count = SAMPLES, .h = SIDE, .w = SIDE, .pixels = help_pixels,
                                      .labels = help_labels, .normalize = {0.2, 0.5})));
    for (int k = 0; k < 2; k++) {
        lks_trainer *t;
        p.resident = k == 0 ? LKS_RESIDENT_NO : LKS_RESIDENT_YES;
        EXPECT_OK(lks_trainer_create(&t, g, &p));
        EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .test = brighter, .max_steps = 4)));
        EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = brighter, .max_steps = 7)));
        EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = floats, .test = data, .max_steps = 9)));
        EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .test = floats, .max_steps = 12)));
        EXPECT_OK(lks_trainer_weights_sha256(t, hex[k]));
        cr_assert_null(lksi_resident_find(t, brighter->data));
        cr_assert_eq(lksi_resident_find(t, floats->data) != NULL, k == 1);
        lks_trainer_destroy(&t);
    }
    cr_assert_str_eq(hex[0], hex[1]);
    lks_dataset_destroy(&brighter);
    lks_dataset_destroy(&floats);
    lks_dataset_destroy(&data);
    lks_graph_destroy(&g);
    lks_device_close(&device);
}

/* By itself it happens where the device has memory of its own and the data take a quarter of it at
 * most: limits of other devices stand in for theirs. */
Test(resident, auto_looks_at_the_device)
{
    lks_dataset *data = make_data();
    const struct lksi_dataset *d = data->data;
    uint64_t need = lksi_resident_bytes(d);
    struct lksi_limits dev = {.type = LKSI_DEV_GPU, .memory = 4 * need, .max_alloc = need};
    cr_assert_eq(need, SAMPLES * SIDE * SIDE + 256 * 4);
    cr_assert_null(lksi_resident_declines(LKS_RESIDENT_AUTO, &dev, d, 3 * need));
    cr_assert_not_null(lksi_resident_declines(LKS_RESIDENT_AUTO, &dev, d, 3 * need + 1));
    cr_assert_not_null(lksi_resident_declines(LKS_RESIDENT_NO, &dev, d, 0));
    dev.memory--;
    cr_assert_not_null(lksi_resident_declines(LKS_RESIDENT_AUTO, &dev, d, 0));
    cr_assert_null(lksi_resident_declines(LKS_RESIDENT_YES, &dev, d, 0));
    dev.memory = 100 * need;
    dev.max_alloc = SAMPLES * SIDE * SIDE - 1;
    cr_assert_not_null(lksi_resident_declines(LKS_RESIDENT_AUTO, &dev, d, 0));
    dev.max_alloc = need;
    dev.unified_memory = true;
    cr_assert_not_null(lksi_resident_declines(LKS_RESIDENT_AUTO, &dev, d, 0));
    cr_assert_null(lksi_resident_declines(LKS_RESIDENT_YES, &dev, d, 0));
    lks_dataset_destroy(&data);
}

/* A training whose data fit, or do not, on a device that says it has memory of its own. */
Test(resident, what_does_not_fit_is_sent)
{
    lks_device *device = open_or_skip("cpu");
    struct lksi_limits *limits =
        (struct lksi_limits *)(uintptr_t)lksi_dev_limits(lksi_device_dev(device));
    struct lks_trainer_params p = small_params(device);
    uint64_t memory = limits->memory;
    lks_graph *g = make_graph();
    lks_dataset *data = make_data();
    struct lks_memory m;
    char hex[3][65];
    for (int k = 0; k < 3; k++) { /* it fits; it does not; it did when the trainer was made */
        lks_trainer *t;
        limits->unified_memory = false;
        limits->memory = memory;
        p.data = data;
        EXPECT_OK(lks_trainer_create(&t, g, &p));
        EXPECT_OK(lks_trainer_memory(t, &m));
        cr_assert_gt(m.data, 0);
        uint64_t tight = m.total - 1;
        if (k == 1) {
            lks_trainer_destroy(&t);
            limits->memory = tight;
            EXPECT_OK(lks_trainer_create(&t, g, &p));
            EXPECT_OK(lks_trainer_memory(t, &m));
            cr_assert_eq(m.data, 0);
        }
        limits->memory = k > 0 ? tight : memory;
        EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
        cr_assert_eq(lksi_resident_find(t, data->data) != NULL, k == 0);
        EXPECT_OK(lks_trainer_weights_sha256(t, hex[k]));
        lks_trainer_destroy(&t);
    }
    cr_assert_str_eq(hex[0], hex[1]);
    cr_assert_str_eq(hex[0], hex[2]);
    limits->unified_memory = true;
    limits->memory = memory;
    lks_dataset_destroy(&data);
    lks_graph_destroy(&g);
    lks_device_close(&device);
}

static lks_status fill(void *user, size_t index, float *x, int32_t *label)
{
    (void)user;
    for (int i = 0; i < SIDE * SIDE; i++)
        x[i] = (float)help_pixels[index * SIDE * SIDE + (size_t)i] / 255.0f;
    *label = help_labels[index];
    return LKS_OK;
}

Test(resident, refusals)
{
    lks_device *device = open_or_skip("ref");
    struct lksi_limits *limits =
        (struct lksi_limits *)(uintptr_t)lksi_dev_limits(lksi_device_dev(device));
    struct lks_trainer_params p = small_params(device);
    lks_graph *g = make_graph();
    lks_dataset *data = make_data(), *made;
    lks_trainer *t = NULL;
    EXPECT_OK(lks_dataset_create(
        &made, lks_dataset_params(.count = SAMPLES, .h = SIDE, .w = SIDE, .fill = fill,
                                  .classes = CLASSES)));
    p.resident = LKS_RESIDENT_YES;
    p.data = made;
    cr_assert_eq(lks_trainer_create(&t, g, &p), LKS_E_INPUT);
    cr_assert_not_null(strstr(lks_error_message(), "callback"), "%s", lks_error_message());
    p.data = NULL;
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    cr_assert_eq(lks_trainer_fit(t, lks_fit_params(.train = made)), LKS_E_INPUT);
    limits->max_alloc = 1000;
    cr_assert_eq(lks_trainer_fit(t, lks_fit_params(.train = data)), LKS_E_MEMORY);
    cr_assert_not_null(strstr(lks_error_message(), "largest allocation"), "%s",
                       lks_error_message());
    lks_trainer_destroy(&t);
    lks_dataset_destroy(&made);
    lks_dataset_destroy(&data);
    lks_graph_destroy(&g);
    lks_device_close(&device);
}
