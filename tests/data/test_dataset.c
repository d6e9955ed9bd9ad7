/*
 * test_dataset.c - the table of rule 1, gathering from each source, content hashes, refusals.
 */
#include <math.h>

#include <lockstep/dataset.h>

#include "data/dataset.h"
#include "helpers.h"

static const uint8_t pixels[2 * 2 * 1 * 3] = {0, 1, 77, 128, 255, 0, 9, 8, 7, 6, 5, 4};
static const int32_t labels[2] = {3, 1};

static struct lksi_dataset_params pixel_params(void)
{
    return (struct lksi_dataset_params){
        .count = 2, .h = 2, .w = 1, .c = 3, .pixels = pixels, .labels = labels};
}

static uint32_t bits(float value)
{
    uint32_t u;
    memcpy(&u, &value, sizeof u);
    return u;
}

/* The expected bits come from another language's doubles, rounded once to single. */
Test(dataset, table_is_rule_1)
{
    const double mean[] = {0.1307}, std[] = {0.3081};
    struct lksi_dataset_params p = {.count = 1,
                                    .h = 1,
                                    .w = 1,
                                    .c = 1,
                                    .pixels = pixels,
                                    .labels = (const int32_t[]){0},
                                    .normalize = {mean, std, 1}};
    struct lksi_dataset *ds;
    char hex[LKSI_SHA256_HEX];
    EXPECT_OK(lksi_dataset_create(&ds, &p));
    cr_assert_eq(bits(ds->table[0]), 0xbed93270u);
    cr_assert_eq(bits(ds->table[128]), 0x3f9a3d78u);
    cr_assert_eq(bits(ds->table[255]), 0x4034933cu);
    EXPECT_OK(lksi_sha256_bytes(ds->table, 256 * sizeof(float), hex));
    cr_assert_str_eq(hex, "457d93e31847c7d04b61d2185707df177eede7abda82382cf5d8b7b8117339a8");
    lksi_dataset_destroy(&ds);
    cr_assert_null(ds);
    lksi_dataset_destroy(&ds);
}

Test(dataset, gather_pixels_by_channel)
{
    const double mean[] = {0, 0.5, 0}, std[] = {1, 0.25, 1};
    const uint32_t order[] = {0, 1, 0};
    struct lksi_dataset_params p = pixel_params();
    struct lksi_dataset *ds;
    float x[13] = {[12] = 42};
    int32_t y[3] = {[2] = 42};
    p.normalize = (struct lksi_normalize){mean, std, 3};
    EXPECT_OK(lksi_dataset_create(&ds, &p));
    cr_assert_eq(ds->classes, 4);
    cr_assert_eq(ds->sample, 6);
    EXPECT_OK(lksi_dataset_gather(ds, order, 1, 2, x, y));
    cr_assert_eq(y[0], 1);
    cr_assert_eq(y[1], 3);
    cr_assert_eq(bits(x[6]), 0x00000000u, "channel 0, byte 0");
    cr_assert_eq(bits(x[7]), 0xbffdfdfeu, "channel 1, byte 1");
    cr_assert_eq(bits(x[8]), 0x3e9a9a9bu, "channel 2, byte 77");
    cr_assert_eq(bits(x[9]), 0x3f008081u, "channel 0, byte 128");
    cr_assert_eq(bits(x[10]), 0x40000000u, "channel 1, byte 255");
    cr_assert_eq(x[0], (float)(9 / 255.0));
    cr_assert_eq(x[12], 42, "written behind the batch");
    cr_assert_eq(y[2], 42, "written behind the labels");
    EXPECT_OK(lksi_dataset_gather(ds, NULL, 1, 1, x, y));
    cr_assert_eq(x[0], (float)(9 / 255.0));
    cr_assert_eq(y[0], 1);
    lksi_dataset_destroy(&ds);
}

Test(dataset, gather_floats_bit_by_bit)
{
    const float values[4] = {-0.0f, NAN, 1e-42f, 3.5f};
    struct lksi_dataset_params p = {
        .count = 2, .h = 1, .w = 2, .c = 1, .floats = values, .labels = labels};
    struct lksi_dataset *ds;
    float x[4];
    int32_t y[2];
    EXPECT_OK(lksi_dataset_create(&ds, &p));
    EXPECT_OK(lksi_dataset_gather(ds, NULL, 0, 2, x, y));
    cr_assert_eq(memcmp(x, values, sizeof x), 0);
    cr_assert_eq(y[0], 3);
    cr_assert_eq(strlen(ds->sha256), 64);
    lksi_dataset_destroy(&ds);
}

/* Label 9 is out of range, sample 3 fails. */
static lks_status fill(void *user, size_t index, float *x, int32_t *label)
{
    (*(int *)user)++;
    if (index == 3)
        return LKS_E_CANCELLED;
    x[0] = (float)index;
    x[1] = -1.0f;
    *label = index == 2 ? 9 : (int32_t)index;
    return LKS_OK;
}

Test(dataset, gather_from_a_callback)
{
    int calls = 0;
    struct lksi_dataset_params p = {
        .count = 5, .h = 2, .w = 1, .c = 1, .classes = 5, .fill = fill, .user = &calls};
    const uint32_t order[] = {1, 0, 2, 3};
    struct lksi_dataset *ds;
    float x[4];
    int32_t y[2];
    EXPECT_OK(lksi_dataset_create(&ds, &p));
    cr_assert_str_eq(ds->sha256, "");
    EXPECT_OK(lksi_dataset_gather(ds, order, 0, 2, x, y));
    cr_assert_eq(calls, 2);
    cr_assert(x[0] == 1 && x[1] == -1 && x[2] == 0 && y[0] == 1 && y[1] == 0);
    EXPECT_FAIL(LKS_E_INPUT, lksi_dataset_gather(ds, order, 2, 1, x, y), "label 9", "sample 2",
                "0 to 4");
    EXPECT_FAIL(LKS_E_CANCELLED, lksi_dataset_gather(ds, order, 3, 1, x, y), "LKS_E_CANCELLED",
                "sample 3");
    EXPECT_OK(lksi_dataset_check_classes(ds, 5));
    EXPECT_FAIL(LKS_E_INPUT, lksi_dataset_check_classes(ds, 4), "5 classes", "at most 4");
    lksi_dataset_destroy(&ds);
}

Test(dataset, hash_sees_shape_samples_and_labels)
{
    struct lksi_dataset_params p[4] = {pixel_params(), pixel_params(), pixel_params(),
                                       pixel_params()};
    const double mean[] = {0.5}, std[] = {2};
    uint8_t changed[sizeof pixels];
    struct lksi_dataset *ds[4], *same;
    memcpy(changed, pixels, sizeof pixels);
    changed[11] ^= 1;
    p[1].h = 1;
    p[1].w = 2;
    p[2].pixels = changed;
    p[3].labels = (const int32_t[]){3, 2};
    for (int i = 0; i < 4; i++)
        EXPECT_OK(lksi_dataset_create(&ds[i], &p[i]));
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++)
            cr_assert_str_neq(ds[i]->sha256, ds[j]->sha256, "%d and %d", i, j);
    p[0].normalize = (struct lksi_normalize){mean, std, 1};
    EXPECT_OK(lksi_dataset_create(&same, &p[0]));
    cr_assert_str_eq(same->sha256, ds[0]->sha256);
    for (int i = 0; i < 4; i++)
        lksi_dataset_destroy(&ds[i]);
    lksi_dataset_destroy(&same);
}

static void expect_refused(const struct lksi_dataset_params *p, lks_status status, const char *part)
{
    struct lksi_dataset *ds = (struct lksi_dataset *)&labels;
    EXPECT_FAIL(status, lksi_dataset_create(&ds, p), part);
    cr_assert_eq((void *)ds, (void *)&labels, "written on failure");
}

Test(dataset, refusals_of_arguments)
{
    const double one[] = {1};
    struct lksi_dataset_params p = pixel_params();
    p.floats = (const float *)pixels;
    expect_refused(&p, LKS_E_ARGUMENT, "2 were given");
    p = pixel_params();
    p.pixels = NULL;
    expect_refused(&p, LKS_E_ARGUMENT, "0 were given");
    p = pixel_params();
    p.count = 0;
    expect_refused(&p, LKS_E_ARGUMENT, "0 were given");
    p.count = (size_t)UINT32_MAX + 1;
    expect_refused(&p, LKS_E_ARGUMENT, "4294967296 were given");
    p = pixel_params();
    p.w = 0;
    expect_refused(&p, LKS_E_ARGUMENT, "2 x 0 x 3");
    p.count = p.h = p.w = p.c = UINT32_MAX;
    expect_refused(&p, LKS_E_ARGUMENT, "do not fit into memory");
    p = pixel_params();
    p.labels = NULL;
    expect_refused(&p, LKS_E_ARGUMENT, "labels are missing");
    p = pixel_params();
    p.classes = UINT32_MAX;
    expect_refused(&p, LKS_E_ARGUMENT, "classes is 4294967295");
    p = (struct lksi_dataset_params){.count = 1, .h = 1, .w = 1, .c = 1, .fill = fill};
    expect_refused(&p, LKS_E_ARGUMENT, "classes is 0");
    p.classes = 2;
    p.normalize = (struct lksi_normalize){one, one, 1};
    expect_refused(&p, LKS_E_ARGUMENT, "normalize is for pixels only");
}

Test(dataset, refusals_of_content)
{
    const double three[] = {0.5, INFINITY, 0.5}, zero[] = {0.1, 0.0, 0.1}, tiny[] = {1e-300};
    struct lksi_dataset_params p = pixel_params();
    p.classes = 3;
    expect_refused(&p, LKS_E_INPUT,
                   "label 3 of sample 0 is out of range: with 3 classes, labels are "
                   "0 to 2");
    p = pixel_params();
    p.labels = (const int32_t[]){0, -1};
    expect_refused(&p, LKS_E_INPUT, "label -1 of sample 1");
    p = pixel_params();
    p.normalize = (struct lksi_normalize){three, zero, 2};
    expect_refused(&p, LKS_E_INPUT, "give 1 or 3 of each");
    p.normalize = (struct lksi_normalize){three, three, 3};
    expect_refused(&p, LKS_E_INPUT, "mean inf of channel 1");
    p.normalize = (struct lksi_normalize){zero, zero, 3};
    expect_refused(&p, LKS_E_INPUT, "std 0 of channel 1");
    p.normalize = (struct lksi_normalize){zero, tiny, 1};
    expect_refused(&p, LKS_E_INPUT, "beyond single precision");
}

/* The public functions over the same code: each source, the defaults, and a refusal. */
Test(dataset, public_calls)
{
    const float values[4] = {1, 2, 3, 4};
    struct lks_dataset_params p = {.count = 2, .w = 2, .floats = values, .labels = labels};
    lks_dataset *d = NULL;
    uint32_t hwc[3];
    int calls = 0;
    EXPECT_OK(lks_dataset_create(&d, &p));
    lks_dataset_shape(d, hwc);
    cr_assert(hwc[0] == 1 && hwc[1] == 2 && hwc[2] == 1);
    cr_assert_eq(lks_dataset_count(d), 2);
    cr_assert_eq(lks_dataset_classes(d), 4);
    cr_assert_eq(strlen(lks_dataset_sha256(d)), 64);
    lks_dataset_destroy(&d);
    cr_assert_null(d);
    p.normalize.std = 2;
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_dataset_create(&d, &p), "normalize is for pixels only");
    p = (struct lks_dataset_params){.count = 5, .h = 2, .classes = 5, .fill = fill, .user = &calls};
    EXPECT_OK(lks_dataset_create(&d, &p));
    cr_assert_str_eq(lks_dataset_sha256(d), "");
    lks_dataset_destroy(&d);
    p = (struct lks_dataset_params){.count = 2, .h = 2, .c = 3, .pixels = pixels, .labels = labels};
    EXPECT_OK(lks_dataset_create(&d, &p));
    lks_dataset_destroy(&d);
}
