/*
 * test_idx.c - the bundled digits, every lie an IDX file can tell, and mutated files.
 */
#include <zlib.h>

#include "data/idx.h"
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

TestSuite(idx, .init = setup, .fini = teardown, .timeout = 120);

/* Two images of 2 x 3 and their labels. */
static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2,  0,  0,
                                 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 4, 1};

static size_t gzip_bytes(const void *data, size_t size, uint8_t *out, size_t room)
{
    z_stream z = {
        .next_in = (Bytef *)data, .avail_in = (uInt)size, .next_out = out, .avail_out = (uInt)room};
    cr_assert_eq(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

/* Writes `size` bytes of an image file, one of them changed if `at` is not negative. */
static const char *image_file(size_t size, int at, uint8_t value)
{
    uint8_t copy[64] = {0};
    const char *path = in_folder(folder, "images");
    memcpy(copy, images, sizeof images);
    if (at >= 0)
        copy[at] = value;
    write_bytes(path, copy, size);
    return path;
}

static void expect_lie(const char *path, const char *first, const char *second)
{
    struct lksi_idx idx = {.count = 77};
    EXPECT_FAIL(LKS_E_INPUT, lksi_idx_read(path, 3, 4, &idx), path, first, second);
    cr_assert_eq(idx.count, 77, "written on failure");
}

static void expect_mnist(const char *kind, uint32_t count, const size_t *histogram,
                         const char *sha256)
{
    const double mean[] = {0.1307}, std[] = {0.3081};
    const struct lksi_normalize normalize = {mean, std, 1};
    char x[512], y[512];
    size_t got[10] = {0};
    struct lksi_dataset *ds;
    snprintf(x, sizeof x, "%s/%s-images-idx3-ubyte.gz", MNIST_DIR, kind);
    snprintf(y, sizeof y, "%s/%s-labels-idx1-ubyte.gz", MNIST_DIR, kind);
    EXPECT_OK(lksi_idx_dataset(x, y, 10, 0, &normalize, &ds));
    cr_assert_eq(ds->count, count);
    cr_assert(ds->h == 28 && ds->w == 28 && ds->c == 1 && ds->classes == 10);
    for (size_t i = 0; i < ds->count; i++)
        got[ds->labels[i]]++;
    for (int k = 0; k < 10; k++)
        cr_assert_eq(got[k], histogram[k], "%s: %zu of class %d", kind, got[k], k);
    cr_assert_str_eq(ds->sha256, sha256);
    lksi_dataset_destroy(&ds);
}

Test(idx, bundled_digits)
{
    const size_t train[10] = {809, 911, 799, 827, 788, 676, 786, 858, 770, 776};
    const size_t test[10] = {192, 216, 192, 205, 192, 187, 228, 212, 174, 202};
    expect_mnist("train", 8000, train,
                 "cffbb448df11820caeecd610f500eeab156c982fc60719922241c2e6111779e7");
    expect_mnist("t10k", 2000, test,
                 "080e4e8c5532db4b9c98b5b41de12f9b66a404720accc76040f8051af380048e");
}

Test(idx, plain_gzip_and_two_members)
{
    uint8_t packed[256];
    struct lksi_idx idx;
    size_t first = gzip_bytes(images, 10, packed, sizeof packed), size;
    size =
        first + gzip_bytes(images + 10, sizeof images - 10, packed + first, sizeof packed - first);
    write_bytes(in_folder(folder, "two.gz"), packed, size);
    size = gzip_bytes(images, sizeof images, packed, sizeof packed);
    write_bytes(in_folder(folder, "one.gz"), packed, size);
    image_file(sizeof images, -1, 0);
    for (int i = 0; i < 3; i++) {
        const char *const names[] = {"images", "one.gz", "two.gz"};
        EXPECT_OK(lksi_idx_read(in_folder(folder, names[i]), 3, 4, &idx));
        cr_assert(idx.dims == 3 && idx.dim[0] == 2 && idx.dim[1] == 2 && idx.dim[2] == 3);
        cr_assert_eq(memcmp(idx.values, images + 16, 12), 0);
        free(idx.values);
    }
}

Test(idx, colour_images)
{
    const uint8_t colour[] = {0, 0, 8, 4, 0, 0, 0, 2, 0, 0, 0, 1, 0,
                              0, 0, 1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
    struct lksi_dataset *ds;
    write_bytes(in_folder(folder, "images"), colour, sizeof colour);
    write_bytes(in_folder(folder, "labels"), labels, sizeof labels);
    EXPECT_OK(
        lksi_idx_dataset(in_folder(folder, "images"), in_folder(folder, "labels"), 0, 0, NULL, &ds));
    cr_assert(ds->count == 2 && ds->h == 1 && ds->w == 1 && ds->c == 3 && ds->classes == 5);
    cr_assert_eq(ds->pixels[3], 4);
    lksi_dataset_destroy(&ds);
}

Test(idx, lies_of_the_header)
{
    expect_lie(image_file(0, -1, 0), "byte 0", "ends inside its header");
    expect_lie(image_file(3, -1, 0), "byte 3", "ends inside its header");
    expect_lie(image_file(9, -1, 0), "byte 9", "3 sizes of 4 bytes");
    expect_lie(image_file(sizeof images, 1, 7), "byte 0", "found 0x0007, expected 0x0000");
    expect_lie(image_file(sizeof images, 2, 0x0d), "byte 2", "found type 0x0d, expected 0x08");
    expect_lie(image_file(sizeof images, 3, 1), "byte 3", "found 1 dimensions");
    expect_lie(image_file(sizeof images, 3, 5), "byte 3", "images: 3 ([n][h][w]) or 4");
    expect_lie(image_file(sizeof images, 7, 0), "byte 4", "size 0 in dimension 0");
    expect_lie(image_file(sizeof images, 15, 0), "byte 12", "size 0 in dimension 2");
}

Test(idx, lies_of_the_length)
{
    expect_lie(image_file(sizeof images - 1, -1, 0), "byte 27",
               "ends after 11 values, its header promises 12");
    expect_lie(image_file(16, -1, 0), "byte 16", "ends after 0 values");
    expect_lie(image_file(sizeof images + 2, -1, 0), "byte 28", "2 bytes behind the last value");
    /* 2^31 times more images than there are. */
    expect_lie(image_file(sizeof images, 4, 0x80), "byte 28", "promises 12884901900");
}

Test(idx, sizes_that_overflow)
{
    uint8_t big[28];
    memset(big, 0xff, sizeof big);
    memcpy(big, (const uint8_t[]){0, 0, 8, 4}, 4);
    write_bytes(in_folder(folder, "images"), big, sizeof big);
    expect_lie(in_folder(folder, "images"), "byte 12", "does not fit into 64 bits");
}

Test(idx, lies_in_gzip)
{
    uint8_t copy[sizeof images + 8] = {0}, packed[256];
    const char *path = in_folder(folder, "images.gz");
    size_t size = gzip_bytes(images, sizeof images, packed, sizeof packed - 1);
    write_bytes(path, packed, size - 9);
    expect_lie(path, "gzip stream is cut off", "download the file again");
    write_bytes(path, packed, size - 1);
    expect_lie(path, "gzip stream is cut off", "after 28 decompressed bytes");
    packed[size - 5] ^= 1;
    write_bytes(path, packed, size);
    expect_lie(path, "damaged", "incorrect data check");
    packed[size - 5] ^= 1;
    packed[size] = 'x';
    write_bytes(path, packed, size + 1);
    expect_lie(path, "1 bytes that are not gzip", "the file should end here");
    memcpy(copy, images, sizeof images);
    size = gzip_bytes(copy, sizeof images + 3, packed, sizeof packed);
    write_bytes(path, packed, size);
    expect_lie(path, "byte 28 of the decompressed data", "bytes behind the last value");
    size = gzip_bytes(copy, sizeof images - 3, packed, sizeof packed);
    write_bytes(path, packed, size);
    expect_lie(path, "byte 25 of the decompressed data", "ends after 9 values");
    copy[4] = 0x80;
    size = gzip_bytes(copy, sizeof images, packed, sizeof packed);
    write_bytes(path, packed, size);
    expect_lie(path, "byte 4 of the decompressed data", "cannot hold more than");
}

Test(idx, pairs_that_do_not_fit)
{
    const uint8_t three[] = {0, 0, 8, 1, 0, 0, 0, 3, 4, 1, 1};
    const char *x = image_file(sizeof images, -1, 0), *y = in_folder(folder, "labels");
    struct lksi_dataset *ds = NULL;
    const double bad[] = {0.0};
    const struct lksi_normalize normalize = {bad, bad, 1};
    EXPECT_FAIL(LKS_E_IO, lksi_idx_dataset(x, y, 10, 0, NULL, &ds), y, "No such file",
                "check the spelling");
    EXPECT_FAIL(LKS_E_IO, lksi_idx_dataset(y, x, 10, 0, NULL, &ds), y, "No such file");
    write_bytes(y, three, sizeof three);
    EXPECT_FAIL(LKS_E_INPUT, lksi_idx_dataset(x, y, 10, 0, NULL, &ds), y, "byte 4", "3 labels", x,
                "2 images");
    write_bytes(y, labels, sizeof labels);
    EXPECT_FAIL(LKS_E_INPUT, lksi_idx_dataset(x, y, 4, 0, NULL, &ds), y, "byte 8", "label 4",
                "0 to 3");
    EXPECT_FAIL(LKS_E_INPUT, lksi_idx_dataset(y, x, 10, 0, NULL, &ds), y, "byte 3", "swapped");
    EXPECT_FAIL(LKS_E_INPUT, lksi_idx_dataset(x, x, 10, 0, NULL, &ds), x, "labels: 1 ([n])");
    EXPECT_FAIL(LKS_E_INPUT, lksi_idx_dataset(x, y, 10, 0, &normalize, &ds), x, "std 0");
    cr_assert_null(ds, "written on failure");
    EXPECT_OK(lksi_idx_dataset(x, y, 5, 0, NULL, &ds));
    cr_assert_eq(ds->classes, 5);
    lksi_dataset_destroy(&ds);
}

/* Changed, cut and grown files: the answer is LKS_OK or LKS_E_INPUT with a text, never a crash. */
Test(idx, mutations)
{
    uint8_t packed[256], copy[300];
    const char *path = in_folder(folder, "mutant");
    size_t packed_size = gzip_bytes(images, sizeof images, packed, sizeof packed), accepted = 0;
    uint64_t seed = 1;
    for (int round = 0; round < 4000; round++) {
        bool gz = round % 2 == 1;
        size_t size = gz ? packed_size : sizeof images;
        struct lksi_idx idx;
        memset(copy, 0, sizeof copy);
        memcpy(copy, gz ? packed : images, size);
        for (uint32_t n = next_random(&seed) % 4; n > 0; n--)
            copy[next_random(&seed) % size] = (uint8_t)next_random(&seed);
        if (next_random(&seed) % 4 == 0)
            size = next_random(&seed) % (size + 8);
        write_bytes(path, copy, size);
        lks_status st = lksi_idx_read(path, 1, 4, &idx);
        cr_assert(st == LKS_OK || (st == LKS_E_INPUT && strstr(lks_error_message(), path) != NULL),
                  "round %d: %s: %s", round, lks_status_name(st), lks_error_message());
        if (st == LKS_OK) {
            accepted++;
            free(idx.values);
        }
    }
    cr_assert(accepted > 100 && accepted < 3900, "%zu accepted: the mutations miss", accepted);
}
