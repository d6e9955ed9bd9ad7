/*
 * safetensors.c - the canonical writer. The reader is in safetensors_read.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/file.h"
#include "model/safetensors.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "values are written as they lie in memory");

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [LKSI_ST_F32] = {"F32", 4},
    [LKSI_ST_F64] = {"F64", 8},
    [LKSI_ST_I64] = {"I64", 8},
    [LKSI_ST_U8] = {"U8", 1},
};

const char *lksi_st_dtype_name(enum lksi_st_dtype dtype)
{
    return dtypes[dtype].name;
}

size_t lksi_st_dtype_size(enum lksi_st_dtype dtype)
{
    return dtypes[dtype].size;
}

bool lksi_st_dtype_find(const char *name, enum lksi_st_dtype *out)
{
    for (size_t i = 0; i < LKSI_COUNT(dtypes); i++)
        if (strcmp(dtypes[i].name, name) == 0) {
            *out = (enum lksi_st_dtype)i;
            return true;
        }
    return false;
}

/* A JSON string in its shortest form. */
static void add_string(struct lksi_str *s, const char *text)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    lksi_str_append(s, "\"", 1);
    for (; *text != '\0'; text++) {
        const char *at = strchr(plain, *text);
        if (at != NULL)
            lksi_str_add(s, "\\%c", letter[at - plain]);
        else if ((unsigned char)*text < 0x20)
            lksi_str_add(s, "\\u%04x", (unsigned)*text);
        else
            lksi_str_append(s, text, 1);
    }
    lksi_str_append(s, "\"", 1);
}

static void add_meta(struct lksi_str *s, const struct lksi_st_meta *meta, size_t count)
{
    lksi_str_add(s, "\"__metadata__\":{");
    for (size_t i = 0; i < count; i++) {
        lksi_str_add(s, i > 0 ? "," : "");
        add_string(s, meta[i].key);
        lksi_str_add(s, ":");
        add_string(s, meta[i].value);
    }
    lksi_str_add(s, "}");
}

static void add_tensor(struct lksi_str *s, const struct lksi_st_tensor *t, uint64_t begin)
{
    add_string(s, t->name);
    lksi_str_add(s, ":{\"data_offsets\":[%" PRIu64 ",%" PRIu64 "],\"dtype\":\"%s\",\"shape\":[",
                 begin, begin + t->bytes, dtypes[t->dtype].name);
    for (unsigned i = 0; i < t->dims; i++)
        lksi_str_add(s, "%s%" PRIu64, i > 0 ? "," : "", t->dim[i]);
    lksi_str_add(s, "]}");
}

lks_status lksi_st_header(const struct lksi_st_tensor *const *tensors, size_t count,
                          const struct lksi_st_meta *meta, size_t meta_count, struct lksi_str *out)
{
    struct lksi_str s = {0};
    uint64_t begin = 0;
    bool meta_done = false;
    lksi_str_add(&s, "{");
    for (size_t i = 0; i < count; i++) {
        if (!meta_done && strcmp("__metadata__", tensors[i]->name) < 0) {
            add_meta(&s, meta, meta_count);
            lksi_str_add(&s, ",");
            meta_done = true;
        }
        add_tensor(&s, tensors[i], begin);
        begin += tensors[i]->bytes;
        if (i + 1 < count)
            lksi_str_add(&s, ",");
    }
    if (!meta_done) {
        lksi_str_add(&s, count > 0 ? "," : "");
        add_meta(&s, meta, meta_count);
    }
    lksi_str_add(&s, "}");
    while (s.length % 8 != 0 && !s.failed)
        lksi_str_append(&s, " ", 1);
    if (s.failed) {
        free(s.text);
        return LKS_E_MEMORY;
    }
    *out = s;
    return LKS_OK;
}

/* jansson refuses what is not UTF-8. */
static bool is_utf8(const char *text)
{
    json_t *string = json_string(text);
    bool good = string != NULL;
    json_decref(string);
    return good;
}

static lks_status check_tensor(const struct lksi_st_tensor *t)
{
    size_t bytes = dtypes[t->dtype].size;
    if (t->name[0] == '\0')
        return lksi_fail(LKS_E_ARGUMENT, "a tensor has an empty name");
    if (!is_utf8(t->name))
        return lksi_fail(LKS_E_ARGUMENT, "the name of a tensor is not UTF-8");
    if (strcmp(t->name, "__metadata__") == 0)
        return lksi_fail(LKS_E_ARGUMENT, "no tensor can be called `__metadata__`: the file format "
                                         "uses that name");
    if (t->dims > LKSI_ST_MAX_DIMS)
        return lksi_fail(LKS_E_ARGUMENT, "tensor `%s` has %u dimensions, at most %d are supported",
                         t->name, t->dims, LKSI_ST_MAX_DIMS);
    for (unsigned i = 0; i < t->dims; i++)
        if (__builtin_mul_overflow(bytes, t->dim[i], &bytes))
            return lksi_fail(LKS_E_ARGUMENT, "the size of tensor `%s` does not fit into 64 bits",
                             t->name);
    if (bytes != t->bytes)
        return lksi_fail(LKS_E_ARGUMENT, "tensor `%s` has %zu bytes, its shape needs %zu", t->name,
                         t->bytes, bytes);
    return LKS_OK;
}

static int compare_tensors(const void *a, const void *b)
{
    return strcmp((*(const struct lksi_st_tensor *const *)a)->name,
                  (*(const struct lksi_st_tensor *const *)b)->name);
}

static int compare_meta(const void *a, const void *b)
{
    return strcmp(((const struct lksi_st_meta *)a)->key, ((const struct lksi_st_meta *)b)->key);
}

static lks_status sort_tensors(const struct lksi_st_tensor **sorted,
                               const struct lksi_st_tensor *tensors, size_t count)
{
    lks_status st;
    for (size_t i = 0; i < count; i++) {
        sorted[i] = &tensors[i];
        LKSI_TRY(check_tensor(&tensors[i]));
    }
    qsort(sorted, count, sizeof *sorted, compare_tensors);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            return lksi_fail(LKS_E_ARGUMENT, "two tensors are called `%s`", sorted[i]->name);
    return LKS_OK;
fail:
    return st;
}

static lks_status sort_meta(struct lksi_st_meta *sorted, const struct lksi_st_meta *meta,
                            size_t count, const char *contract)
{
    if (count > 0)
        memcpy(sorted, meta, count * sizeof *sorted);
    sorted[count] = (struct lksi_st_meta){"contract", contract};
    for (size_t i = 0; i < count; i++)
        if (!is_utf8(sorted[i].key) || !is_utf8(sorted[i].value))
            return lksi_fail(LKS_E_ARGUMENT, "a string of the metadata is not UTF-8");
    qsort(sorted, count + 1, sizeof *sorted, compare_meta);
    for (size_t i = 1; i < count + 1; i++)
        if (strcmp(sorted[i - 1].key, sorted[i].key) == 0)
            return lksi_fail(LKS_E_ARGUMENT, "the metadata has `%s` twice", sorted[i].key);
    return LKS_OK;
}

/* Where the bytes go: a file or a hash. */
typedef lks_status (*put_fn)(void *to, const void *data, size_t size);

static lks_status put_file(void *to, const void *data, size_t size)
{
    return lksi_file_put(to, data, size);
}

static lks_status put_hash(void *to, const void *data, size_t size)
{
    return lksi_sha256_update(to, data, size);
}

/* Copies a piece of a tensor with every NaN as one pattern, rule 12. `size` is whole values. */
static void copy_values(enum lksi_st_dtype dtype, void *to, const void *from, size_t size)
{
    memcpy(to, from, size);
    if (dtype == LKSI_ST_F32) {
        uint32_t *u = to;
        for (size_t i = 0; i < size / 4; i++)
            if ((u[i] & 0x7fffffffu) > 0x7f800000u)
                u[i] = 0x7fc00000u;
    } else if (dtype == LKSI_ST_F64) {
        uint64_t *u = to;
        for (size_t i = 0; i < size / 8; i++)
            if ((u[i] & 0x7fffffffffffffffu) > 0x7ff0000000000000u)
                u[i] = 0x7ff8000000000000u;
    }
}

static lks_status put_tensor(put_fn put, void *to, const struct lksi_st_tensor *t, uint64_t *piece,
                             size_t room)
{
    for (size_t at = 0; at < t->bytes; at += room) {
        size_t n = t->bytes - at < room ? t->bytes - at : room;
        copy_values(t->dtype, piece, (const char *)t->data + at, n);
        lks_status st = put(to, piece, n);
        if (st != LKS_OK)
            return st;
    }
    return LKS_OK;
}

static lks_status put_all(put_fn put, void *to, const struct lksi_st_tensor *const *tensors,
                          size_t count, const struct lksi_str *header)
{
    enum { ROOM = 1 << 16 };
    uint64_t length = header->length;
    uint64_t *piece = lksi_alloc(ROOM, 1);
    lks_status st = LKS_E_MEMORY;
    if (piece == NULL)
        goto fail;
    LKSI_TRY(put(to, &length, sizeof length));
    LKSI_TRY(put(to, header->text, header->length));
    for (size_t i = 0; i < count; i++)
        LKSI_TRY(put_tensor(put, to, tensors[i], piece, ROOM));
fail:
    free(piece);
    return st;
}

/* Checks and sorts, makes the header, and hands all to `put`. */
static lks_status emit(put_fn put, void *to, const struct lksi_st_tensor *tensors, size_t count,
                       const struct lksi_st_meta *meta, size_t meta_count)
{
    const struct lksi_st_tensor **sorted = lksi_alloc(count, sizeof *sorted);
    struct lksi_st_meta *strings = lksi_alloc(meta_count + 1, sizeof *strings);
    struct lksi_str header = {0};
    char contract[16];
    lks_status st = LKS_E_MEMORY;
    if (sorted == NULL || strings == NULL)
        goto fail;
    snprintf(contract, sizeof contract, "%d", LKS_CONTRACT_VERSION);
    LKSI_TRY(sort_tensors(sorted, tensors, count));
    LKSI_TRY(sort_meta(strings, meta, meta_count, contract));
    LKSI_TRY(lksi_st_header(sorted, count, strings, meta_count + 1, &header));
    st = put_all(put, to, sorted, count, &header);
fail:
    free(header.text);
    free(strings);
    free(sorted);
    return st;
}

lks_status lksi_safetensors_write(const char *path, const struct lksi_st_tensor *tensors,
                                  size_t count, const struct lksi_st_meta *meta, size_t meta_count)
{
    struct lksi_file_writer w;
    lks_status st = lksi_file_begin(&w, path);
    if (st != LKS_OK)
        return st;
    st = emit(put_file, &w, tensors, count, meta, meta_count);
    if (st != LKS_OK) {
        lksi_file_abort(&w);
        return st;
    }
    return lksi_file_commit(&w);
}

lks_status lksi_safetensors_sha256(const struct lksi_st_tensor *tensors, size_t count,
                                   const struct lksi_st_meta *meta, size_t meta_count,
                                   char hex[LKSI_SHA256_HEX])
{
    struct lksi_sha256 hash;
    lks_status st;
    LKSI_TRY(lksi_sha256_init(&hash));
    LKSI_TRY(emit(put_hash, &hash, tensors, count, meta, meta_count));
    return lksi_sha256_final(&hash, hex);
fail:
    lksi_sha256_drop(&hash);
    return st;
}
