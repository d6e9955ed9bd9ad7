/*
 * safetensors_read.c - the strict reader. Nothing the header says is believed before it has been
 * compared with the file: memory is asked for only for bytes that are there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/file.h"
#include "model/safetensors.h"

/* The format's own limit on the header, and the deepest nesting it needs. */
#define MAX_HEADER ((uint64_t)100000000)
enum { MAX_DEPTH = 3 };

struct reader {
    const char *path;
    int fd;
    uint64_t size, data_at, data_size; /* of the file; where data starts; bytes of data */
    char *header;
    size_t header_size;
    json_t *json;
    struct lksi_safetensors *st;
    uint64_t *begins; /* [count], by name */
};

LKSI_PRINTF(3, 4)
static lks_status fail_at(const struct reader *r, uint64_t offset, const char *format, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return lksi_fail(LKS_E_INPUT, "%s: byte %" PRIu64 ": %s", r->path, offset, text);
}

/* Where a key stands in the file, as far as a plain search finds it; else the header's start. */
static uint64_t place_of(const struct reader *r, const char *key)
{
    size_t length = strlen(key);
    for (size_t i = 0; i + length + 2 < r->header_size; i++)
        if (r->header[i] == '"' && memcmp(r->header + i + 1, key, length) == 0 &&
            r->header[i + 1 + length] == '"' && r->header[i + 2 + length] == ':')
            return 8 + i;
    return 8;
}

/* Refuses deep nesting before the parser recurses into it. */
static lks_status check_depth(const struct reader *r)
{
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < r->header_size; i++) {
        char c = r->header[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > MAX_DEPTH)
                return fail_at(r, 8 + i,
                               "more than %d objects and lists inside each other; this is "
                               "no safetensors header",
                               MAX_DEPTH);
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return LKS_OK;
}

static lks_status read_header(struct reader *r)
{
    uint64_t length;
    json_error_t error;
    char first = '\0';
    lks_status st;
    if (r->size < 9)
        return fail_at(r, r->size,
                       "this is no safetensors file: it ends before its header begins (byte 8)");
    LKSI_TRY(lksi_file_read_at(r->fd, r->path, 0, &length, sizeof length));
    LKSI_TRY(lksi_file_read_at(r->fd, r->path, 8, &first, 1));
    if (first != '{')
        return fail_at(r, 8, "this is no safetensors file: its header would begin here with `{`");
    if (length > MAX_HEADER || length > r->size - 8)
        return fail_at(r, 0,
                       "the header should have %" PRIu64 " bytes, but %" PRIu64 " follow and "
                       "at most %" PRIu64 " are allowed; the file is cut off or damaged",
                       length, r->size - 8, MAX_HEADER);
    r->header_size = (size_t)length;
    r->data_at = 8 + length;
    r->data_size = r->size - r->data_at;
    r->header = lksi_alloc(r->header_size + 1, 1);
    if (r->header == NULL)
        return LKS_E_MEMORY;
    LKSI_TRY(lksi_file_read_at(r->fd, r->path, 8, r->header, r->header_size));
    LKSI_TRY(check_depth(r));
    r->json = json_loadb(r->header, r->header_size, JSON_REJECT_DUPLICATES, &error);
    if (r->json == NULL)
        return fail_at(r, 8 + (error.position > 0 ? error.position : 0),
                       "the header is not valid JSON: %s", error.text);
    return LKS_OK;
fail:
    return st;
}

static int compare_meta(const void *a, const void *b)
{
    return strcmp(((const struct lksi_st_meta *)a)->key, ((const struct lksi_st_meta *)b)->key);
}

static lks_status read_meta(struct reader *r, json_t *object)
{
    struct lksi_safetensors *st = r->st;
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return fail_at(r, place_of(r, "__metadata__"),
                       "`__metadata__` is not an object of strings");
    st->meta = lksi_alloc(json_object_size(object), sizeof *st->meta);
    if (st->meta == NULL)
        return LKS_E_MEMORY;
    json_object_foreach(object, key, value)
    {
        if (!json_is_string(value))
            return fail_at(r, place_of(r, key),
                           "`__metadata__`: the value of `%.200s` is not a "
                           "string",
                           key);
        struct lksi_st_meta *m = &st->meta[st->meta_count++];
        m->key = lksi_strdup(key);
        m->value = lksi_strdup(json_string_value(value));
        if (m->key == NULL || m->value == NULL)
            return LKS_E_MEMORY;
    }
    qsort(st->meta, st->meta_count, sizeof *st->meta, compare_meta);
    return LKS_OK;
}

/* An integer of a list, not negative. */
static bool list_value(const json_t *list, size_t index, uint64_t *out)
{
    const json_t *item = json_array_get(list, index);
    if (!json_is_integer(item) || json_integer_value(item) < 0)
        return false;
    *out = (uint64_t)json_integer_value(item);
    return true;
}

static lks_status read_shape(const struct reader *r, const json_t *shape, struct lksi_st_tensor *t)
{
    t->bytes = lksi_st_dtype_size(t->dtype);
    if (!json_is_array(shape) || json_array_size(shape) > LKSI_ST_MAX_DIMS)
        return fail_at(r, place_of(r, t->name),
                       "tensor `%.200s`: `shape` is not a list of at most %d sizes", t->name,
                       LKSI_ST_MAX_DIMS);
    t->dims = (unsigned)json_array_size(shape);
    for (unsigned i = 0; i < t->dims; i++) {
        if (!list_value(shape, i, &t->dim[i]))
            return fail_at(r, place_of(r, t->name),
                           "tensor `%.200s`: size %u of `shape` is not an integer from 0 on",
                           t->name, i);
        if (__builtin_mul_overflow(t->bytes, t->dim[i], &t->bytes))
            return fail_at(r, place_of(r, t->name),
                           "tensor `%.200s`: the product of its sizes does not fit into 64 "
                           "bits",
                           t->name);
    }
    return LKS_OK;
}

static lks_status read_offsets(const struct reader *r, const json_t *offsets,
                               const struct lksi_st_tensor *t, uint64_t *begin)
{
    uint64_t b, e;
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 || !list_value(offsets, 0, &b) ||
        !list_value(offsets, 1, &e))
        return fail_at(r, place_of(r, t->name),
                       "tensor `%.200s`: `data_offsets` is not a pair of integers from 0 on",
                       t->name);
    if (b > e || e > r->data_size)
        return fail_at(r, place_of(r, t->name),
                       "tensor `%.200s`: `data_offsets` [%" PRIu64 ",%" PRIu64 "] do not lie "
                       "in the %" PRIu64 " bytes of data; the file is cut off or damaged",
                       t->name, b, e, r->data_size);
    if (e - b != t->bytes)
        return fail_at(r, place_of(r, t->name),
                       "tensor `%.200s`: `data_offsets` span %" PRIu64 " bytes, its shape "
                       "needs %zu",
                       t->name, e - b, t->bytes);
    *begin = b;
    return LKS_OK;
}

static lks_status read_entry(const struct reader *r, json_t *entry, struct lksi_st_tensor *t,
                             uint64_t *begin)
{
    json_t *dtype = json_object_get(entry, "dtype");
    lks_status st;
    if (!json_is_object(entry) || json_object_size(entry) != 3 || dtype == NULL ||
        json_object_get(entry, "shape") == NULL || json_object_get(entry, "data_offsets") == NULL)
        return fail_at(r, place_of(r, t->name),
                       "tensor `%.200s` needs `data_offsets`, `dtype` and "
                       "`shape`, and nothing else",
                       t->name);
    if (!json_is_string(dtype) || !lksi_st_dtype_find(json_string_value(dtype), &t->dtype))
        return fail_at(r, place_of(r, t->name),
                       "tensor `%.200s` has `dtype` `%.40s`, supported are "
                       "`F32`, `F64`, `I64` and `U8`",
                       t->name, json_is_string(dtype) ? json_string_value(dtype) : "(no string)");
    LKSI_TRY(read_shape(r, json_object_get(entry, "shape"), t));
    LKSI_TRY(read_offsets(r, json_object_get(entry, "data_offsets"), t, begin));
fail:
    return st;
}

/* A name with its entry, to be sorted before anything is read from it. */
struct named {
    const char *name;
    json_t *entry;
};

static int compare_named(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static lks_status read_entries(struct reader *r)
{
    size_t room = json_object_size(r->json), count = 0;
    struct named *list = lksi_alloc(room, sizeof *list);
    const char *key;
    json_t *value;
    lks_status st = LKS_E_MEMORY;
    r->st->tensors = lksi_alloc(room, sizeof *r->st->tensors);
    r->begins = lksi_alloc(room, sizeof *r->begins);
    if (list == NULL || r->st->tensors == NULL || r->begins == NULL)
        goto fail;
    json_object_foreach(r->json, key, value)
    {
        if (strcmp(key, "__metadata__") == 0)
            LKSI_TRY(read_meta(r, value));
        else
            list[count++] = (struct named){key, value};
    }
    qsort(list, count, sizeof *list, compare_named);
    st = LKS_OK;
    for (size_t i = 0; i < count; i++) {
        struct lksi_st_tensor *t = &r->st->tensors[r->st->count++];
        t->name = lksi_strdup(list[i].name);
        if (t->name == NULL) {
            st = LKS_E_MEMORY;
            goto fail;
        }
        if (t->name[0] == '\0') {
            st = fail_at(r, place_of(r, ""), "a tensor has an empty name");
            goto fail;
        }
        LKSI_TRY(read_entry(r, list[i].entry, t, &r->begins[i]));
    }
fail:
    free(list);
    return st;
}

struct span {
    uint64_t begin, end;
    const char *name;
};

static int compare_spans(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* Together the tensors cover the data: no overlap, no gap, nothing behind. */
static lks_status check_cover(const struct reader *r)
{
    size_t count = r->st->count;
    uint64_t end = 0;
    struct span *spans = lksi_alloc(count, sizeof *spans);
    lks_status st = LKS_OK;
    if (spans == NULL)
        return LKS_E_MEMORY;
    for (size_t i = 0; i < count; i++)
        spans[i] = (struct span){r->begins[i], r->begins[i] + r->st->tensors[i].bytes,
                                 r->st->tensors[i].name};
    qsort(spans, count, sizeof *spans, compare_spans);
    for (size_t i = 0; i < count && st == LKS_OK; i++) {
        if (spans[i].begin != end)
            st =
                fail_at(r, place_of(r, spans[i].name),
                        "tensor `%.200s` begins at %" PRIu64 " of the data, %s; it should begin at "
                        "%" PRIu64,
                        spans[i].name, spans[i].begin,
                        spans[i].begin < end ? "inside another tensor" : "behind a gap", end);
        end = spans[i].end;
    }
    if (st == LKS_OK && end != r->data_size)
        st = fail_at(r, r->data_at + end,
                     "%" PRIu64 " bytes follow that belong to no tensor; the "
                     "file should end here",
                     r->data_size - end);
    free(spans);
    return st;
}

static lks_status read_data(struct reader *r)
{
    size_t total = 0;
    lks_status st;
    for (size_t i = 0; i < r->st->count; i++)
        total += (r->st->tensors[i].bytes + 63) / 64 * 64;
    r->st->memory = lksi_alloc_aligned(total);
    if (r->st->memory == NULL)
        return LKS_E_MEMORY;
    char *at = r->st->memory;
    for (size_t i = 0; i < r->st->count; i++) {
        struct lksi_st_tensor *t = &r->st->tensors[i];
        LKSI_TRY(lksi_file_read_at(r->fd, r->path, r->data_at + r->begins[i], at, t->bytes));
        t->data = at;
        at += (t->bytes + 63) / 64 * 64;
    }
    return LKS_OK;
fail:
    return st;
}

/* Whether the writer would have made the same header, and so the same layout. */
static lks_status compare_header(struct reader *r)
{
    struct lksi_str header = {0};
    const struct lksi_st_tensor **sorted = lksi_alloc(r->st->count, sizeof *sorted);
    lks_status st = LKS_E_MEMORY;
    if (sorted == NULL)
        goto fail;
    for (size_t i = 0; i < r->st->count; i++)
        sorted[i] = &r->st->tensors[i];
    LKSI_TRY(lksi_st_header(sorted, r->st->count, r->st->meta, r->st->meta_count, &header));
    r->st->canonical = lksi_safetensors_meta(r->st, "contract") != NULL &&
                       header.length == r->header_size &&
                       memcmp(header.text, r->header, header.length) == 0;
fail:
    free(header.text);
    free(sorted);
    return st;
}

lks_status lksi_safetensors_read(const char *path, struct lksi_safetensors **out)
{
    struct reader r = {.path = path, .fd = -1};
    lks_status st;
    LKSI_TRY(lksi_file_open(path, &r.fd, &r.size));
    r.st = lksi_alloc(1, sizeof *r.st);
    if (r.st == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    LKSI_TRY(read_header(&r));
    LKSI_TRY(read_entries(&r));
    LKSI_TRY(check_cover(&r));
    LKSI_TRY(read_data(&r));
    LKSI_TRY(compare_header(&r));
    *out = r.st;
    r.st = NULL;
fail:
    lksi_safetensors_destroy(&r.st);
    json_decref(r.json);
    free(r.header);
    free(r.begins);
    if (r.fd >= 0)
        close(r.fd);
    return st;
}

void lksi_safetensors_destroy(struct lksi_safetensors **st)
{
    struct lksi_safetensors *s = *st;
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->count; i++)
        free((char *)s->tensors[i].name);
    for (size_t i = 0; i < s->meta_count; i++) {
        free((char *)s->meta[i].key);
        free((char *)s->meta[i].value);
    }
    free(s->tensors);
    free(s->meta);
    free(s->memory);
    free(s);
    *st = NULL;
}

const struct lksi_st_tensor *lksi_safetensors_find(const struct lksi_safetensors *st,
                                                   const char *name)
{
    for (size_t i = 0; i < st->count; i++)
        if (strcmp(st->tensors[i].name, name) == 0)
            return &st->tensors[i];
    return NULL;
}

const char *lksi_safetensors_meta(const struct lksi_safetensors *st, const char *key)
{
    for (size_t i = 0; i < st->meta_count; i++)
        if (strcmp(st->meta[i].key, key) == 0)
            return st->meta[i].value;
    return NULL;
}

lks_status lksi_safetensors_digest(const char *path, struct lksi_digest *out)
{
    struct lksi_digest d = {0};
    lks_status st;
    LKSI_TRY(lksi_safetensors_read(path, &d.content));
    LKSI_TRY(lksi_file_sha256(path, d.file));
    d.tensors = lksi_alloc(d.content->count, sizeof *d.tensors);
    if (d.tensors == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    for (size_t i = 0; i < d.content->count; i++)
        LKSI_TRY(lksi_sha256_bytes(d.content->tensors[i].data, d.content->tensors[i].bytes,
                                   d.tensors[i]));
    *out = d;
    return LKS_OK;
fail:
    lksi_digest_free(&d);
    return st;
}

void lksi_digest_free(struct lksi_digest *d)
{
    lksi_safetensors_destroy(&d->content);
    free(d->tensors);
    *d = (struct lksi_digest){0};
}
