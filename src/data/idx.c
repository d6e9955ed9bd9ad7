/*
 * idx.c - the IDX format, plain or gzip'ed. Nothing the header says is believed before it has been
 * compared with the file: no size leads to an allocation that the file could not fill.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "base/file.h"
#include "data/idx.h"

enum { PIECE = 1 << 16 };

/* Bytes in order from a plain or gzip'ed file. */
struct source {
    const char *path;
    int fd;
    uint64_t size;  /* of the file */
    uint64_t taken; /* bytes of the file read so far */
    uint64_t at;    /* bytes handed out so far */
    bool gzip, open_stream, ended;
    z_stream z;
    uint8_t *piece;
};

/* Failure at the next byte, or at `offset` of what the user sees as the content. */
#define FAIL_AT(s, offset, format, ...)                                                            \
    lksi_fail(LKS_E_INPUT, "%s: byte %" PRIu64 "%s: " format, (s)->path, (uint64_t)(offset),       \
              (s)->gzip ? " of the decompressed data" : "", __VA_ARGS__)

static void source_close(struct source *s)
{
    if (s->open_stream)
        inflateEnd(&s->z);
    if (s->fd >= 0)
        close(s->fd);
    free(s->piece);
}

static lks_status source_open(struct source *s, const char *path)
{
    uint8_t magic[2] = {0};
    lks_status st;
    *s = (struct source){.path = path, .fd = -1};
    LKSI_TRY(lksi_file_open(path, &s->fd, &s->size));
    if (s->size >= sizeof magic)
        LKSI_TRY(lksi_file_read_at(s->fd, path, 0, magic, sizeof magic));
    s->gzip = magic[0] == 0x1f && magic[1] == 0x8b;
    if (!s->gzip)
        return LKS_OK;
    s->piece = lksi_alloc(PIECE, 1);
    if (s->piece == NULL)
        return LKS_E_MEMORY;
    if (inflateInit2(&s->z, 15 + 16) != Z_OK)
        return lksi_fail(LKS_E_MEMORY, "%s: zlib is out of memory", path);
    s->open_stream = true;
    return LKS_OK;
fail:
    return st;
}

/* Gives the decompressor its next piece of the file; none is left at the end. */
static lks_status refill(struct source *s)
{
    uint64_t left = s->size - s->taken;
    size_t n = left < PIECE ? (size_t)left : PIECE;
    if (s->z.avail_in > 0 || n == 0)
        return LKS_OK;
    lks_status st = lksi_file_read_at(s->fd, s->path, s->taken, s->piece, n);
    if (st == LKS_OK) {
        s->taken += n;
        s->z.next_in = s->piece;
        s->z.avail_in = (uInt)n;
    }
    return st;
}

static uint64_t file_position(const struct source *s)
{
    return s->taken - s->z.avail_in;
}

/* Behind the end of a gzip stream there is nothing, or another gzip stream that continues it. */
static lks_status next_member(struct source *s)
{
    lks_status st = refill(s);
    if (st != LKS_OK)
        return st;
    if (s->z.avail_in == 0) {
        s->ended = true;
        return LKS_OK;
    }
    if (s->z.next_in[0] != 0x1f)
        return lksi_fail(LKS_E_INPUT,
                         "%s: byte %" PRIu64 ": found %" PRIu64
                         " bytes that are not gzip behind the "
                         "end of the gzip stream; the file should end here",
                         s->path, file_position(s), s->size - file_position(s));
    return inflateReset(&s->z) == Z_OK ? LKS_OK
                                       : lksi_fail(LKS_E_MEMORY, "%s: zlib failed", s->path);
}

/* Decompresses up to `size` bytes; less only at the end of the data. */
static lks_status inflate_some(struct source *s, uint8_t *data, size_t size, size_t *got)
{
    size_t done = 0;
    while (done < size && !s->ended) {
        size_t room = size - done;
        lks_status st = refill(s);
        if (st != LKS_OK)
            return st;
        if (s->z.avail_in == 0)
            return lksi_fail(LKS_E_INPUT,
                             "%s: byte %" PRIu64 ": the gzip stream is cut off after %" PRIu64
                             " decompressed bytes; copy or download the file again",
                             s->path, s->size, s->at + done);
        uInt offered = room < PIECE ? (uInt)room : PIECE;
        s->z.next_out = data + done;
        s->z.avail_out = offered;
        int result = inflate(&s->z, Z_NO_FLUSH);
        done += offered - s->z.avail_out;
        if (result == Z_STREAM_END)
            st = next_member(s);
        else if (result != Z_OK)
            st =
                lksi_fail(LKS_E_INPUT,
                          "%s: byte %" PRIu64 ": the gzip stream is damaged (%s); copy or download "
                          "the file again",
                          s->path, file_position(s), s->z.msg != NULL ? s->z.msg : zError(result));
        if (st != LKS_OK)
            return st;
    }
    *got = done;
    return LKS_OK;
}

/* Up to `size` bytes; less only at the end of the data. */
static lks_status source_some(struct source *s, uint8_t *data, size_t size, size_t *got)
{
    size_t n = size;
    lks_status st;
    if (s->gzip) {
        LKSI_TRY(inflate_some(s, data, size, &n));
    } else {
        if (n > s->size - s->at)
            n = (size_t)(s->size - s->at);
        LKSI_TRY(lksi_file_read_at(s->fd, s->path, s->at, data, n));
    }
    s->at += n;
    *got = n;
    return LKS_OK;
fail:
    return st;
}

static lks_status read_header(struct source *s, unsigned low, unsigned high, struct lksi_idx *idx)
{
    uint8_t head[4 + 4 * LKSI_IDX_MAX_DIMS] = {0};
    const char *want = low == 1 ? "labels: 1 ([n])" : "images: 3 ([n][h][w]) or 4 ([n][h][w][c])";
    size_t got;
    lks_status st;
    LKSI_TRY(source_some(s, head, 4, &got));
    if (got < 4)
        return FAIL_AT(s, got,
                       "the file ends inside its header; an IDX file starts with 4 bytes "
                       "and %u sizes",
                       low);
    if (head[0] != 0 || head[1] != 0)
        return FAIL_AT(s, 0, "found 0x%02x%02x, expected 0x0000; this is no IDX file", head[0],
                       head[1]);
    if (head[2] != 0x08)
        return FAIL_AT(s, 2,
                       "found type 0x%02x, expected 0x08 (unsigned bytes); convert the values "
                       "to bytes",
                       head[2]);
    if (head[3] < low || head[3] > high)
        return FAIL_AT(s, 3, "found %u dimensions, expected for %s; are images and labels swapped?",
                       head[3], want);
    idx->dims = head[3];
    LKSI_TRY(source_some(s, head + 4, 4 * idx->dims, &got));
    if (got < 4 * idx->dims)
        return FAIL_AT(s, 4 + got,
                       "the file ends inside its header; %u sizes of 4 bytes belong here",
                       idx->dims);
    idx->count = 1;
    for (unsigned i = 0; i < idx->dims; i++) {
        const uint8_t *p = head + 4 + 4 * i;
        idx->dim[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
        if (idx->dim[i] == 0)
            return FAIL_AT(s, 4 + 4 * i, "found size 0 in dimension %u, expected at least 1", i);
        if (__builtin_mul_overflow(idx->count, (size_t)idx->dim[i], &idx->count))
            return FAIL_AT(s, 4 + 4 * i,
                           "found size %u in dimension %u; the product of the sizes "
                           "does not fit into 64 bits",
                           idx->dim[i], i);
    }
    return LKS_OK;
fail:
    return st;
}

/* Compares the promised count with the file before memory is asked for. */
static lks_status check_size(const struct source *s, const struct lksi_idx *idx)
{
    /* Deflate never expands beyond 1032 to 1. */
    uint64_t most =
        s->gzip ? s->size > UINT64_MAX / 1032 ? UINT64_MAX : 1032 * s->size : s->size - s->at;
    if (idx->count > most && s->gzip)
        return FAIL_AT(s, 4,
                       "the sizes promise %zu values, a gzip'ed file of %" PRIu64 " bytes "
                       "cannot hold more than %" PRIu64 "; the header is wrong",
                       idx->count, s->size, most);
    if (idx->count > most)
        return FAIL_AT(s, s->size,
                       "the file ends after %" PRIu64 " values, its header promises %zu; "
                       "copy or download it again",
                       most, idx->count);
    if (!s->gzip && idx->count < most)
        return FAIL_AT(s, s->at + idx->count,
                       "found %" PRIu64 " bytes behind the last value; the "
                       "header promises %zu values, so the file should end "
                       "here",
                       most - idx->count, idx->count);
    return LKS_OK;
}

lks_status lksi_idx_read(const char *path, unsigned low_dims, unsigned high_dims,
                         struct lksi_idx *out)
{
    struct source s;
    struct lksi_idx idx = {0};
    uint8_t extra;
    size_t got;
    lks_status st;
    assert(1 <= low_dims && low_dims <= high_dims && high_dims <= LKSI_IDX_MAX_DIMS);
    LKSI_TRY(source_open(&s, path));
    LKSI_TRY(read_header(&s, low_dims, high_dims, &idx));
    LKSI_TRY(check_size(&s, &idx));
    idx.values = malloc(idx.count);
    if (idx.values == NULL) {
        st = lksi_fail(LKS_E_MEMORY, "out of host memory: %s holds %zu values", path, idx.count);
        goto fail;
    }
    LKSI_TRY(source_some(&s, idx.values, idx.count, &got));
    if (got < idx.count) {
        st = FAIL_AT(&s, s.at,
                     "the file ends after %zu values, its header promises %zu; copy or "
                     "download it again",
                     got, idx.count);
        goto fail;
    }
    /* Also makes zlib check the sum at the end of the stream. */
    LKSI_TRY(source_some(&s, &extra, 1, &got));
    if (got > 0) {
        st = FAIL_AT(&s, s.at - 1,
                     "found bytes behind the last value; the header promises %zu "
                     "values, so the file should end here",
                     idx.count);
        goto fail;
    }
    source_close(&s);
    *out = idx;
    return LKS_OK;
fail:
    source_close(&s);
    free(idx.values);
    return st;
}

/* Labels widened to i32, each below `classes` if that is not 0. */
static lks_status widen_labels(const char *path, const struct lksi_idx *idx, uint32_t classes,
                               int32_t **out)
{
    int32_t *labels = lksi_alloc(idx->count, sizeof *labels);
    if (labels == NULL)
        return LKS_E_MEMORY;
    for (size_t i = 0; i < idx->count; i++) {
        if (classes > 0 && idx->values[i] >= classes) {
            free(labels);
            return lksi_fail(LKS_E_INPUT,
                             "%s: byte %zu: found label %u for sample %zu; with %u classes, labels "
                             "are 0 to %u",
                             path, 8 + i, idx->values[i], i, classes, classes - 1);
        }
        labels[i] = idx->values[i];
    }
    *out = labels;
    return LKS_OK;
}

lks_status lksi_idx_dataset(const char *images, const char *labels, uint32_t classes, size_t limit,
                            const struct lksi_normalize *normalize, struct lksi_dataset **out)
{
    struct lksi_idx x = {0}, y = {0};
    struct lksi_dataset *ds = NULL;
    int32_t *numbers = NULL;
    lks_status st;
    LKSI_TRY(lksi_idx_read(images, 3, 4, &x));
    if (labels != NULL)
        LKSI_TRY(lksi_idx_read(labels, 1, 1, &y));
    if (labels != NULL && x.dim[0] != y.dim[0]) {
        st = lksi_fail(LKS_E_INPUT,
                       "%s: byte 4: found %u labels, but %s holds %u images; name two files of one "
                       "set",
                       labels, y.dim[0], images, x.dim[0]);
        goto fail;
    }
    if (labels != NULL)
        LKSI_TRY(widen_labels(labels, &y, classes, &numbers));
    struct lksi_dataset_params params = {
        .count = limit > 0 && limit < x.dim[0] ? limit : x.dim[0],
        .h = x.dim[1],
        .w = x.dim[2],
        .c = x.dims == 4 ? x.dim[3] : 1,
        .classes = classes,
        .pixels = x.values,
        .labels = numbers,
        .no_labels = labels == NULL,
        .normalize = normalize != NULL ? *normalize : (struct lksi_normalize){0},
    };
    st = lksi_dataset_create(&ds, &params);
    if (st != LKS_OK) {
        st = lksi_fail_prefix(st, "%s: ", images);
        goto fail;
    }
    ds->owned = x.values;
    x.values = NULL;
    *out = ds;
fail:
    free(x.values);
    free(y.values);
    free(numbers);
    return st;
}
