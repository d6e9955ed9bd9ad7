/*
 * test_safetensors.c - golden bytes, round trips, every lie a file can tell, failing writes,
 * mutated files.
 */
#include <signal.h>
#include <sys/resource.h>

#include "base/file.h"
#include "helpers.h"
#include "st_sample.h"

#define GOLDEN "82ffddfb28a97148e474e9680622ca3826f2d5a17fe05768918dd1f2706933b9"

static char *folder;

static void setup(void)
{
    folder = scratch_make();
}

static void teardown(void)
{
    scratch_remove(folder);
}

TestSuite(safetensors, .init = setup, .fini = teardown, .timeout = 120);

static const char *write_sample(void)
{
    const char *path = in_folder(folder, "s.safetensors");
    EXPECT_OK(
        lksi_safetensors_write(path, sample_tensors, SAMPLE_TENSORS, sample_meta, SAMPLE_META));
    return path;
}

/* A file with this header and `size` bytes of data that count up from 0. */
static const char *made_file(const char *header, size_t size)
{
    const char *path = in_folder(folder, "made.safetensors");
    uint64_t length = strlen(header);
    char *bytes = calloc(1, 8 + length + size);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < size; i++)
        bytes[8 + length + i] = (char)i;
    write_bytes(path, bytes, 8 + length + size);
    free(bytes);
    return path;
}

Test(safetensors, golden_bytes)
{
    char file[LKSI_SHA256_HEX], hashed[LKSI_SHA256_HEX];
    struct lksi_st_tensor turned[SAMPLE_TENSORS];
    EXPECT_OK(lksi_file_sha256(write_sample(), file));
    cr_assert_str_eq(file, GOLDEN);
    /* The order in which tensors come makes no difference, and no file is needed. */
    for (int i = 0; i < SAMPLE_TENSORS; i++)
        turned[i] = sample_tensors[SAMPLE_TENSORS - 1 - i];
    EXPECT_OK(lksi_safetensors_sha256(turned, SAMPLE_TENSORS, sample_meta, SAMPLE_META, hashed));
    cr_assert_str_eq(hashed, GOLDEN);
}

/* Weights without anything else: the whole header, letter by letter. */
Test(safetensors, weights_have_only_the_contract)
{
    const char want[] =
        "\x80\0\0\0\0\0\0\0"
        "{\"__metadata__\":{\"contract\":\"2\"},"
        "\"fc.bias\":{\"data_offsets\":[0,8],\"dtype\":\"F32\",\"shape\":[2]},"
        "\"fc.weight\":{\"data_offsets\":[8,12],\"dtype\":\"F32\",\"shape\":[1,1]}}";
    const float values[] = {1.0f, 2.0f, 3.0f};
    const struct lksi_st_tensor tensors[] = {
        {"fc.weight", LKSI_ST_F32, 2, {1, 1}, values + 2, 4},
        {"fc.bias", LKSI_ST_F32, 1, {2}, values, 8},
    };
    const char *path = in_folder(folder, "w.safetensors");
    struct lksi_bytes b;
    size_t length = sizeof want - 1, padded = (length + 7) / 8 * 8;
    EXPECT_OK(lksi_safetensors_write(path, tensors, 2, NULL, 0));
    EXPECT_OK(lksi_file_read(path, 1000, &b));
    cr_assert_eq(b.size, padded + 12);
    cr_assert_eq(b.data[0], padded - 8);
    cr_assert_eq(memcmp(b.data + 8, want + 8, length - 8), 0);
    for (size_t i = length; i < padded; i++)
        cr_assert_eq(b.data[i], ' ');
    cr_assert_eq(memcmp(b.data + padded, values, 12), 0);
    free(b.data);
}

Test(safetensors, round_trip)
{
    struct lksi_safetensors *st;
    const struct lksi_st_tensor *t;
    char again[LKSI_SHA256_HEX];
    EXPECT_OK(lksi_safetensors_read(write_sample(), &st));
    cr_assert(st->canonical);
    cr_assert_eq(st->count, SAMPLE_TENSORS);
    for (size_t i = 0; i < SAMPLE_TENSORS; i++) {
        const struct lksi_st_tensor *s = &sample_tensors[i];
        t = lksi_safetensors_find(st, s->name);
        cr_assert_not_null(t, "%s", s->name);
        cr_assert(t->dtype == s->dtype && t->dims == s->dims && t->bytes == s->bytes);
        cr_assert_eq(memcmp(t->dim, s->dim, s->dims * sizeof s->dim[0]), 0);
        cr_assert_eq((uintptr_t)t->data % 64, 0);
        if (s->dtype == LKSI_ST_I64 || s->dtype == LKSI_ST_U8)
            cr_assert_eq(memcmp(t->data, s->data, s->bytes), 0);
    }
    t = lksi_safetensors_find(st, "conv1.weight");
    cr_assert_eq(((const uint32_t *)t->data)[1], 0x80000000u, "-0 must stay");
    cr_assert_eq(((const uint32_t *)t->data)[3], 0x7fc00000u, "one pattern for NaN");
    cr_assert_eq(((const uint32_t *)t->data)[4], 1u, "subnormals must stay");
    cr_assert_str_eq(lksi_safetensors_meta(st, "note"), sample_meta[0].value);
    cr_assert_str_eq(lksi_safetensors_meta(st, "b"), "");
    cr_assert_str_eq(lksi_safetensors_meta(st, "contract"), "2");
    cr_assert_null(lksi_safetensors_meta(st, "none"));
    cr_assert_null(lksi_safetensors_find(st, "none"));
    EXPECT_OK(lksi_safetensors_sha256(st->tensors, st->count, sample_meta, SAMPLE_META, again));
    cr_assert_str_eq(again, GOLDEN);
    lksi_safetensors_destroy(&st);
    cr_assert_null(st);
    lksi_safetensors_destroy(&st);
}

/* Larger than the writer's piece, and not a multiple of it. */
Test(safetensors, large_tensor)
{
    enum { COUNT = 50001 };
    static float values[COUNT];
    struct lksi_st_tensor t = {"x", LKSI_ST_F32, 1, {COUNT}, values, sizeof values};
    struct lksi_safetensors *st;
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)i;
    EXPECT_OK(lksi_safetensors_write(in_folder(folder, "l"), &t, 1, NULL, 0));
    EXPECT_OK(lksi_safetensors_read(in_folder(folder, "l"), &st));
    cr_assert_eq(memcmp(st->tensors[0].data, values, sizeof values), 0);
    lksi_safetensors_destroy(&st);
}

Test(safetensors, digest)
{
    struct lksi_digest d;
    char want[LKSI_SHA256_HEX];
    EXPECT_OK(lksi_safetensors_digest(write_sample(), &d));
    cr_assert_str_eq(d.file, GOLDEN);
    cr_assert_eq(d.content->count, SAMPLE_TENSORS);
    cr_assert_str_eq(d.content->tensors[0].name, "Zeta");
    EXPECT_OK(lksi_sha256_bytes(sample_i64, sizeof sample_i64, want));
    cr_assert_str_eq(d.tensors[0], want);
    cr_assert_str_eq(d.content->tensors[1].name, sample_tensors[1].name);
    EXPECT_OK(lksi_sha256_bytes(sample_u8, sizeof sample_u8, want));
    cr_assert_str_eq(d.tensors[1], want);
    lksi_digest_free(&d);
    EXPECT_FAIL(LKS_E_IO, lksi_safetensors_digest(in_folder(folder, "none"), &d), "none`");
    EXPECT_FAIL(LKS_E_INPUT, lksi_safetensors_digest(made_file("{", 0), &d), "made.safetensors");
}

Test(safetensors, other_writers_are_read)
{
    static const char header[] =
        "{ \"b\" : {\"dtype\":\"F32\", \"shape\":[1], \"data_offsets\":[4,8]},"
        "\"a\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[0,4]} }";
    struct lksi_safetensors *st;
    EXPECT_OK(lksi_safetensors_read(made_file(header, 8), &st));
    cr_assert_not(st->canonical);
    cr_assert_eq(st->count, 2);
    cr_assert_str_eq(st->tensors[0].name, "a");
    cr_assert_eq(((const uint8_t *)st->tensors[0].data)[3], 3);
    cr_assert_eq(((const uint8_t *)st->tensors[1].data)[0], 4);
    cr_assert_null(lksi_safetensors_meta(st, "contract"));
    lksi_safetensors_destroy(&st);
    EXPECT_OK(lksi_safetensors_read(made_file("{}", 0), &st));
    cr_assert_eq(st->count, 0);
    cr_assert_not(st->canonical);
    lksi_safetensors_destroy(&st);
}

static void expect_lie(const char *header, size_t size, const char *place, const char *part)
{
    struct lksi_safetensors *st = NULL;
    const char *path = made_file(header, size);
    EXPECT_FAIL(LKS_E_INPUT, lksi_safetensors_read(path, &st), path, place, part);
    cr_assert_null(st, "written on failure");
}

#define ENTRY(offsets, dtype, shape)                                                               \
    "{\"data_offsets\":" offsets ",\"dtype\":" dtype ",\"shape\":" shape "}"

Test(safetensors, lies_of_the_header)
{
    expect_lie("", 0, "byte 8", "this is no safetensors file");
    expect_lie("[]", 0, "byte 8", "this is no safetensors file");
    expect_lie("{\"a\":", 0, "byte 13", "not valid JSON");
    expect_lie("{} x", 0, "byte", "not valid JSON");
    expect_lie("{\"a\":\"\xff\"}", 0, "byte", "not valid JSON");
    expect_lie("{\"a\":\"\\u0000\"}", 0, "byte", "not valid JSON");
    expect_lie("{\"a\":[[[[1]]]]}", 0, "byte 15", "more than 3 objects");
    expect_lie(
        "{\"a\":" ENTRY("[0,1]", "\"U8\"", "[1]") ",\"a\":" ENTRY("[0,1]", "\"U8\"", "[1]") "}", 1,
        "byte", "duplicate object key");
    expect_lie("{\"__metadata__\":[]}", 0, "byte 9", "not an object of strings");
    expect_lie("{\"__metadata__\":{\"k\":1}}", 0, "byte 25", "the value of `k` is not a string");
    expect_lie("{\"a\":5}", 0, "byte 9", "tensor `a` needs");
    expect_lie("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "byte 9", "needs `data_offsets`");
    expect_lie("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":1}}", 1,
               "byte 9", "nothing else");
    expect_lie("{\"\":" ENTRY("[0,1]", "\"U8\"", "[1]") "}", 1, "byte 9", "an empty name");
}

Test(safetensors, lies_of_an_entry)
{
    expect_lie("{\"a\":" ENTRY("[0,2]", "\"F16\"", "[1]") "}", 2, "byte 9", "`dtype` `F16`");
    expect_lie("{\"a\":" ENTRY("[0,2]", "7", "[1]") "}", 2, "byte 9", "supported are `F32`");
    expect_lie("{\"a\":" ENTRY("[0,1]", "\"U8\"", "1") "}", 1, "byte 9", "not a list");
    expect_lie("{\"a\":" ENTRY("[0,1]", "\"U8\"", "[1,1,1,1,1,1,1,1,1]") "}", 1, "byte 9",
               "at most 8 sizes");
    expect_lie("{\"a\":" ENTRY("[0,1]", "\"U8\"", "[1,-1]") "}", 1, "byte 9", "size 1 of `shape`");
    expect_lie("{\"a\":" ENTRY("[0,1]", "\"U8\"", "[1.0]") "}", 1, "byte 9", "size 0 of `shape`");
    expect_lie("{\"a\":" ENTRY("[0,1]", "\"U8\"", "[99999999999999999999]") "}", 1, "byte",
               "not valid JSON");
    expect_lie("{\"a\":" ENTRY("[0,0]", "\"F32\"", "[4294967296,4294967296]") "}", 0, "byte 9",
               "does not fit into 64 bits");
    expect_lie("{\"a\":" ENTRY("[0]", "\"U8\"", "[1]") "}", 1, "byte 9", "not a pair of integers");
    expect_lie("{\"a\":" ENTRY("[-1,0]", "\"U8\"", "[1]") "}", 1, "byte 9", "not a pair");
    expect_lie("{\"a\":" ENTRY("[0,8]", "\"F32\"", "[2]") "}", 7, "byte 9",
               "in the 7 bytes of data");
    expect_lie("{\"a\":" ENTRY("[4,0]", "\"F32\"", "[1]") "}", 4, "byte 9", "do not lie");
    expect_lie("{\"a\":" ENTRY("[0,4]", "\"F32\"", "[2]") "}", 4, "byte 9",
               "span 4 bytes, its shape needs 8");
}

Test(safetensors, lies_of_the_layout)
{
    expect_lie(
        "{\"a\":" ENTRY("[0,4]", "\"F32\"", "[1]") ",\"b\":" ENTRY("[2,6]", "\"F32\"", "[1]") "}",
        6, "tensor `b` begins at 2", "inside another tensor; it should begin at 4");
    expect_lie(
        "{\"a\":" ENTRY("[0,4]", "\"F32\"", "[1]") ",\"b\":" ENTRY("[0,4]", "\"F32\"", "[1]") "}",
        4, "begins at 0", "inside another tensor");
    expect_lie(
        "{\"a\":" ENTRY("[0,1]", "\"U8\"", "[1]") ",\"b\":" ENTRY("[2,3]", "\"U8\"", "[1]") "}", 3,
        "tensor `b` begins at 2", "behind a gap; it should begin at 1");
    expect_lie("{\"a\":" ENTRY("[1,2]", "\"U8\"", "[1]") "}", 2, "begins at 1",
               "should begin at 0");
    expect_lie("{}", 3, "byte 10", "3 bytes follow that belong to no tensor");
}

Test(safetensors, lies_of_the_length)
{
    const char *path = in_folder(folder, "l");
    struct lksi_safetensors *st = NULL;
    uint64_t huge[2] = {UINT64_MAX, 0};
    write_bytes(path, "1234567", 7);
    EXPECT_FAIL(LKS_E_INPUT, lksi_safetensors_read(path, &st), path,
                "byte 7: this is no safetensors file");
    write_bytes(path, huge, 16);
    EXPECT_FAIL(LKS_E_INPUT, lksi_safetensors_read(path, &st), path,
                "byte 8: this is no safetensors file");
    memcpy(&huge[1], "{", 1);
    write_bytes(path, huge, 16);
    EXPECT_FAIL(LKS_E_INPUT, lksi_safetensors_read(path, &st), path, "byte 0",
                "18446744073709551615 bytes, but 8 follow");
    huge[0] = 9;
    write_bytes(path, huge, 16);
    EXPECT_FAIL(LKS_E_INPUT, lksi_safetensors_read(path, &st), path, "9 bytes, but 8 follow");
    EXPECT_FAIL(LKS_E_IO, lksi_safetensors_read(in_folder(folder, "none"), &st), "No such file");
}

/* A million open brackets must not become a million stack frames. */
Test(safetensors, depth_bomb)
{
    size_t size = 1000000;
    char *bomb = malloc(size + 1);
    memset(bomb, '[', size);
    memcpy(bomb, "{\"a\":", 5);
    bomb[size] = '\0';
    expect_lie(bomb, 0, "byte 15", "more than 3 objects");
    free(bomb);
}

static void expect_refused(const struct lksi_st_tensor *t, size_t count,
                           const struct lksi_st_meta *meta, const char *part)
{
    char hex[LKSI_SHA256_HEX];
    size_t metas = meta != NULL;
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lksi_safetensors_write(in_folder(folder, "w"), t, count, meta, metas), part);
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_safetensors_sha256(t, count, meta, metas, hex), part);
    cr_assert_eq(count_entries(folder), 0, "something was left behind");
}

Test(safetensors, refusals_of_the_writer)
{
    struct lksi_st_tensor t[2] = {{"a", LKSI_ST_U8, 1, {1}, sample_u8, 1},
                                  {"a", LKSI_ST_U8, 1, {1}, sample_u8, 1}};
    expect_refused(t, 2, NULL, "two tensors are called `a`");
    t[0].name = "";
    expect_refused(t, 1, NULL, "an empty name");
    t[0].name = "\xff";
    expect_refused(t, 1, NULL, "not UTF-8");
    t[0].name = "__metadata__";
    expect_refused(t, 1, NULL, "`__metadata__`");
    t[1].bytes = 2;
    expect_refused(t + 1, 1, NULL, "has 2 bytes, its shape needs 1");
    t[1].dims = 9;
    expect_refused(t + 1, 1, NULL, "has 9 dimensions");
    t[1].dims = 2;
    t[1].dim[0] = t[1].dim[1] = UINT64_MAX;
    expect_refused(t + 1, 1, NULL, "does not fit into 64 bits");
    expect_refused(NULL, 0, &(struct lksi_st_meta){"contract", "9"}, "`contract` twice");
    expect_refused(NULL, 0, &(struct lksi_st_meta){"x", "\xc3"}, "not UTF-8");
}

/* A limit on the file size stands for a full disk. */
Test(safetensors, full_disk)
{
    static float values[20000];
    struct lksi_st_tensor t = {"x", LKSI_ST_F32, 1, {20000}, values, sizeof values};
    struct rlimit limit = {.rlim_cur = 70000, .rlim_max = RLIM_INFINITY};
    char before[LKSI_SHA256_HEX];
    const char *path = write_sample();
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_FAIL(LKS_E_IO, lksi_safetensors_write(path, &t, 1, NULL, 0), path, "File too large");
    EXPECT_FAIL(LKS_E_IO, lksi_safetensors_write(in_folder(folder, "no/x"), &t, 1, NULL, 0),
                "no/x");
    cr_assert_eq(count_entries(folder), 1);
    EXPECT_OK(lksi_file_sha256(path, before));
    cr_assert_str_eq(before, GOLDEN, "the old file must stay");
}

/* Changed, cut and grown files: LKS_OK or LKS_E_INPUT that names the file, never a crash. */
Test(safetensors, mutations)
{
    static const char spice[] = "{}[],:\"\\0123456789-.eE \xff";
    const char *path = in_folder(folder, "mutant");
    struct lksi_bytes b;
    uint64_t seed = 1;
    size_t accepted = 0;
    EXPECT_OK(lksi_file_read(write_sample(), 10000, &b));
    for (int round = 0; round < 5000; round++) {
        uint8_t copy[1200] = {0};
        size_t size = b.size;
        struct lksi_safetensors *st = NULL;
        cr_assert_lt(size + 8, sizeof copy);
        memcpy(copy, b.data, size);
        for (uint32_t n = next_random(&seed) % 3; n > 0; n--) {
            uint32_t r = next_random(&seed);
            copy[next_random(&seed) % size] =
                (uint8_t)(r % 2 == 0 ? spice[r / 2 % (sizeof spice - 1)] : (char)(r >> 8));
        }
        if (next_random(&seed) % 8 == 0)
            size = next_random(&seed) % (size + 8);
        write_bytes(path, copy, size);
        lks_status result = lksi_safetensors_read(path, &st);
        cr_assert(result == LKS_OK ||
                      (result == LKS_E_INPUT && strstr(lks_error_message(), path) != NULL),
                  "round %d: %s: %s", round, lks_status_name(result), lks_error_message());
        if (result == LKS_OK) {
            volatile uint8_t sum = 0;
            accepted++;
            for (size_t i = 0; i < st->count; i++)
                for (size_t k = 0; k < st->tensors[i].bytes; k++)
                    sum += ((const uint8_t *)st->tensors[i].data)[k];
            (void)sum;
        }
        lksi_safetensors_destroy(&st);
    }
    free(b.data);
    cr_assert(accepted > 500 && accepted < 4500, "%zu accepted: the mutations miss", accepted);
}
