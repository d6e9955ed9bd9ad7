/*
 * test_formats.c - texts and moving digits: samples with published hashes (formats_oracle.py makes
 * them once more), windows by hand, what is refused, what changes the content hash.
 */
#include "base/file.h"
#include "data/moving.h"
#include "data/text.h"
#include "helpers.h"

static char *folder;

static void setup(void)
{
    folder = scratch_make();
}

static void teardown(void)
{
    scratch_remove(folder);
}

TestSuite(formats, .init = setup, .fini = teardown, .timeout = 120);

#define MNIST MNIST_DIR "/train-images-idx3-ubyte.gz"

/* sha256 of the bytes that samples `first` to `last` are made of. */
static void expect_moving(const struct lks_moving_digits_params *p, uint32_t first, uint32_t last,
                          const char *want)
{
    const struct lksi_normalize none = {0};
    size_t n = (size_t)p->frames * p->height * p->width, count = last - first + 1;
    float *x = lksi_alloc(n * count, sizeof *x);
    uint8_t *bytes = lksi_alloc(n * count, 1);
    uint32_t order[8];
    struct lksi_dataset *ds = NULL;
    char sha[LKSI_SHA256_HEX];
    cr_assert(x != NULL && bytes != NULL && count <= LKSI_COUNT(order));
    for (uint32_t i = 0; i < count; i++)
        order[i] = first + i;
    EXPECT_OK(lksi_moving_dataset(p, &none, &ds));
    EXPECT_OK(lksi_dataset_gather(ds, order, 0, count, x, NULL));
    for (size_t i = 0; i < n * count; i++) {
        bytes[i] = (uint8_t)(x[i] * 255.0f + 0.5f);
        cr_assert_eq(x[i], (float)(bytes[i] / 255.0), "value %zu is no byte", i);
    }
    EXPECT_OK(lksi_sha256_bytes(bytes, n * count, sha));
    cr_assert_str_eq(sha, want);
    lksi_dataset_destroy(&ds);
    free(x);
    free(bytes);
}

Test(formats, moving_bits)
{
    expect_moving(
        &(struct lks_moving_digits_params){
            .images = MNIST, .count = 2000, .frames = 10, .height = 40, .width = 40, .seed = 1},
        0, 3,
        "62a2c1c3c27630baa18bf7e4203fd7eaa2ae426dc805df3be6cc0711b8c2f731"); /* oracle: moving frames=10 height=40 width=40 speed=3 seed=1 digits=2 first=0 last=3 */
    expect_moving(
        &(struct lks_moving_digits_params){.images = MNIST,
                                           .count = 79,
                                           .frames = 7,
                                           .height = 33,
                                           .width = 61,
                                           .speed = 9,
                                           .digits = 3,
                                           .seed = 81985529216486895u},
        77, 78,
        "e1b7cf6768ac93f97ad37a093362cf54e6e51737db028702389b803e6c97af91"); /* oracle: moving frames=7 height=33 width=61 speed=9 seed=81985529216486895 digits=3 first=77 last=78 */
    /* No room along one axis, and the last sample that can be named. */
    expect_moving(
        &(struct lks_moving_digits_params){.images = MNIST,
                                           .count = UINT32_MAX,
                                           .frames = 3,
                                           .height = 28,
                                           .width = 64,
                                           .speed = 1,
                                           .digits = 1,
                                           .seed = 5},
        UINT32_MAX - 1, UINT32_MAX - 1,
        "61aff07618318f1905179c944cd8e0c422e376f796738d92b42aa72ad7520b4d"); /* oracle: moving frames=3 height=28 width=64 speed=1 seed=5 digits=1 first=4294967294 last=4294967294 */
}

static void expect_text(const struct lks_text_params *p, const struct lksi_dataset *vocabulary,
                        size_t first, size_t last, const char *want)
{
    size_t n = p->context;
    int32_t *both = lksi_alloc(2 * n * (last - first + 1), sizeof *both);
    struct lksi_dataset *ds = NULL;
    char sha[LKSI_SHA256_HEX];
    cr_assert_not_null(both);
    EXPECT_OK(lksi_text_dataset(p, vocabulary, &ds));
    cr_assert_lt(last, ds->count);
    for (size_t i = first; i <= last; i++) {
        int32_t *out = both + 2 * n * (i - first);
        EXPECT_OK(lksi_dataset_gather(ds, NULL, i, 1, (float *)(void *)out, out + n));
    }
    EXPECT_OK(lksi_sha256_bytes(both, 2 * n * (last - first + 1) * sizeof *both, sha));
    cr_assert_str_eq(sha, want);
    lksi_dataset_destroy(&ds);
    free(both);
}

Test(formats, text_bits)
{
    struct lksi_dataset *all = NULL;
    EXPECT_OK(lksi_text_dataset(&(struct lks_text_params){.file = ALICE, .context = 1}, NULL, &all));
    cr_assert_eq(all->classes, 72);
    expect_text(
        &(struct lks_text_params){.file = ALICE, .context = 64, .to = 0.9}, NULL, 0, 99,
        "deadb5c1ac082af0d906cc199e42c52dd61d2ae1897438b199c281dcb4320b07"); /* oracle: text context=64 stride=64 from=0 to=900 first=0 last=99 */
    expect_text(
        &(struct lks_text_params){.file = ALICE, .context = 33, .stride = 5, .from = 0.9}, all, 100,
        220,
        "a544e2a47cb1633d43eb929358f8c3bd48532a3ab858e183049175e13ad7e971"); /* oracle: text context=33 stride=5 from=900 to=1000 first=100 last=220 */
    lksi_dataset_destroy(&all);
}

static const char *text_file(const char *name, const char *text)
{
    const char *path = in_folder(folder, name);
    write_bytes(path, text, strlen(text));
    return path;
}

Test(formats, windows)
{
    const char *path = text_file("a", "cabbage"); /* a b c e g: 2 0 1 1 0 4 3 */
    static const int32_t want[2][3] = {{2, 0, 1}, {1, 1, 0}}, next[2][3] = {{0, 1, 1}, {1, 0, 4}};
    struct lks_text_params p = {.file = path, .context = 3, .stride = 2};
    struct lksi_dataset *ds = NULL;
    int32_t x[2][3], label[2][3];
    EXPECT_OK(lksi_text_dataset(&p, NULL, &ds));
    cr_assert(ds->count == 2 && ds->rank == 1 && ds->dim[0] == 3 && ds->positions == 3 &&
              ds->tokens && ds->classes == 5);
    cr_assert_arr_eq(ds->vocabulary, "abceg", 5);
    EXPECT_OK(lksi_dataset_gather(ds, NULL, 0, 2, (float *)(void *)x, label[0]));
    cr_assert_arr_eq(x, want, sizeof want);
    cr_assert_arr_eq(label, next, sizeof next);
    lksi_dataset_destroy(&ds);
    p.context = 6; /* the one window that just fits */
    EXPECT_OK(lksi_text_dataset(&p, NULL, &ds));
    cr_assert_eq(ds->count, 1);
    lksi_dataset_destroy(&ds);
    p.context = 1;
    p.stride = 0;
    EXPECT_OK(lksi_text_dataset(&p, NULL, &ds));
    cr_assert_eq(ds->count, 6);
    lksi_dataset_destroy(&ds);
    p.limit = 4;
    EXPECT_OK(lksi_text_dataset(&p, NULL, &ds));
    cr_assert_eq(ds->count, 4);
    lksi_dataset_destroy(&ds);
}

Test(formats, refused_texts)
{
    const char *path = text_file("a", "cabbage"), *other = text_file("b", "baggage!");
    struct lksi_dataset *ds = NULL, *train = NULL;
    EXPECT_OK(lksi_text_dataset(&(struct lks_text_params){.file = path, .context = 2}, NULL, &train));
    EXPECT_FAIL(LKS_E_INPUT,
                lksi_text_dataset(&(struct lks_text_params){.file = other, .context = 2}, train, &ds),
                other, "byte 7", "0x21", "5 different bytes");
    EXPECT_OK(lksi_text_dataset(&(struct lks_text_params){.file = other, .context = 2, .to = 0.9},
                                train, &ds)); /* the byte is behind the part */
    lksi_dataset_destroy(&ds);
    EXPECT_FAIL(LKS_E_INPUT,
                lksi_text_dataset(&(struct lks_text_params){.file = path, .context = 7}, NULL, &ds),
                path, "are 7", "takes 8");
    EXPECT_FAIL(LKS_E_INPUT,
                lksi_text_dataset(
                    &(struct lks_text_params){.file = path, .context = 2, .from = 0.5, .to = 0.8},
                    NULL, &ds),
                path, "bytes 3 to 5", "takes 3");
    EXPECT_FAIL(LKS_E_INPUT,
                lksi_text_dataset(
                    &(struct lks_text_params){.file = text_file("c", ""), .context = 1}, NULL, &ds),
                "are 0");
    EXPECT_FAIL(LKS_E_IO,
                lksi_text_dataset(&(struct lks_text_params){.file = in_folder(folder, "none"),
                                                            .context = 1},
                                  NULL, &ds),
                "none");
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_text_dataset(&(struct lks_text_params){.file = path}, NULL, &ds),
                "context");
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lksi_text_dataset(
                    &(struct lks_text_params){.file = path, .context = 1, .from = 0.5, .to = 0.5},
                    NULL, &ds),
                "`from` below");
    cr_assert_null(ds);
    lksi_dataset_destroy(&train);
}

Test(formats, refused_sequences)
{
    const struct lksi_normalize none = {0};
    const struct lks_moving_digits_params good = {
        .images = MNIST, .count = 5, .frames = 2, .height = 28, .width = 28};
    struct lks_moving_digits_params p = good;
    struct lksi_dataset *ds = NULL;
    p.width = 27;
    EXPECT_FAIL(LKS_E_INPUT, lksi_moving_dataset(&p, &none, &ds), MNIST, "28 x 28", "28 x 27");
    p = good;
    p.frames = 0;
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_moving_dataset(&p, &none, &ds), "frames is 0");
    p = good;
    p.count = 0;
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_moving_dataset(&p, &none, &ds), "count is 0");
    p = good;
    p.images = in_folder(folder, "none");
    EXPECT_FAIL(LKS_E_IO, lksi_moving_dataset(&p, &none, &ds), "none");
    p.images = MNIST_DIR "/train-labels-idx1-ubyte.gz";
    EXPECT_FAIL(LKS_E_INPUT, lksi_moving_dataset(&p, &none, &ds), "byte 3");
    cr_assert_null(ds);
}

static void text_sha(struct lks_text_params p, char sha[LKSI_SHA256_HEX])
{
    struct lksi_dataset *ds = NULL;
    EXPECT_OK(lksi_text_dataset(&p, NULL, &ds));
    memcpy(sha, ds->sha256, LKSI_SHA256_HEX);
    lksi_dataset_destroy(&ds);
}

static void moving_sha(struct lks_moving_digits_params p, double mean, char sha[LKSI_SHA256_HEX])
{
    const double std = 0.5;
    const struct lksi_normalize n = {&mean, &std, 1};
    struct lksi_dataset *ds = NULL;
    EXPECT_OK(lksi_moving_dataset(&p, &n, &ds));
    memcpy(sha, ds->sha256, LKSI_SHA256_HEX);
    lksi_dataset_destroy(&ds);
}

/* All of a list differ, each being a hash. */
static void expect_different(char sha[][LKSI_SHA256_HEX], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        cr_assert_eq(strlen(sha[i]), 64);
        for (size_t k = 0; k < i; k++)
            cr_assert_str_neq(sha[i], sha[k], "%zu and %zu have one hash", i, k);
    }
}

Test(formats, content_hash)
{
    const char *a = text_file("a", "cabbage"), *same = text_file("b", "cabbage");
    char sha[12][LKSI_SHA256_HEX], again[LKSI_SHA256_HEX];
    const struct lks_moving_digits_params m = {
        .images = MNIST, .count = 5, .frames = 2, .height = 30, .width = 31};
    struct lks_moving_digits_params all[8] = {m, m, m, m, m, m, m, m};
    text_sha((struct lks_text_params){.file = a, .context = 2}, sha[0]);
    text_sha((struct lks_text_params){.file = same, .context = 2, .stride = 2}, again);
    cr_assert_str_eq(sha[0], again, "the path or a default counts");
    text_sha((struct lks_text_params){.file = a, .context = 3}, sha[1]);
    text_sha((struct lks_text_params){.file = a, .context = 2, .stride = 1}, sha[2]);
    text_sha((struct lks_text_params){.file = a, .context = 2, .limit = 1}, sha[3]);
    text_sha((struct lks_text_params){.file = a, .context = 2, .from = 0.3}, sha[4]);
    text_sha((struct lks_text_params){.file = text_file("c", "cabbagf"), .context = 2}, sha[5]);
    expect_different(sha, 6);
    all[1].count = 6;
    all[2].frames = 3;
    all[3].height = 31;
    all[4].digits = 3;
    all[5].speed = 4;
    all[6].seed = 1;
    all[7].images = MNIST_DIR "/t10k-images-idx3-ubyte.gz";
    for (size_t i = 0; i < LKSI_COUNT(all); i++)
        moving_sha(all[i], 0, sha[i]);
    expect_different(sha, LKSI_COUNT(all));
    moving_sha(m, 0.25, again);
    cr_assert_str_eq(sha[0], again, "the normalisation counts");
}

Test(formats, normalized_sequences)
{
    const double mean = 0.5, std = 0.25;
    const struct lksi_normalize n = {&mean, &std, 1};
    const struct lks_moving_digits_params p = {
        .images = MNIST, .count = 1, .frames = 1, .height = 29, .width = 29};
    struct lksi_dataset *ds = NULL;
    float x[29 * 29];
    EXPECT_OK(lksi_moving_dataset(&p, &n, &ds));
    EXPECT_OK(lksi_dataset_gather(ds, NULL, 0, 1, x, NULL));
    cr_assert_eq(x[0], -2.0f); /* a corner, where no digit has ink */
    lksi_dataset_destroy(&ds);
}
