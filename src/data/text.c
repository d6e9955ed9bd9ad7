/*
 * text.c - windows of a text file as integers, labelled with the next character.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data/text.h"

struct text {
    size_t context, stride;
    uint8_t vocabulary[256];
    uint8_t code[]; /* the part, as places in the vocabulary */
};

/* The sorted set of the bytes. */
static unsigned collect(const struct lksi_bytes *file, uint8_t vocabulary[256])
{
    bool seen[256] = {false};
    unsigned n = 0;
    for (size_t i = 0; i < file->size; i++)
        seen[file->data[i]] = true;
    for (unsigned b = 0; b < 256; b++)
        if (seen[b])
            vocabulary[n++] = (uint8_t)b;
    return n;
}

/* Translates bytes `begin` to `end` of the file. */
static lks_status encode(const char *path, const struct lksi_bytes *file, size_t begin, size_t end,
                         struct text *t, unsigned n_vocabulary)
{
    int16_t place[256];
    memset(place, 0xff, sizeof place);
    for (unsigned i = 0; i < n_vocabulary; i++)
        place[t->vocabulary[i]] = (int16_t)i;
    for (size_t i = begin; i < end; i++) {
        int16_t p = place[file->data[i]];
        if (p < 0)
            return lksi_fail(LKS_E_INPUT,
                             "%s: byte %zu: 0x%02x does not occur in the training text, whose %u "
                             "different bytes are the vocabulary; leave it out, or train on a text "
                             "that has it",
                             path, i, file->data[i], n_vocabulary);
        t->code[i - begin] = (uint8_t)p;
    }
    return LKS_OK;
}

static lks_status fill(void *user, size_t index, float *x, int32_t *label)
{
    const struct text *t = user;
    const uint8_t *code = t->code + index * t->stride;
    for (size_t i = 0; i < t->context; i++) {
        int32_t token = code[i];
        memcpy(x + i, &token, sizeof token);
        label[i] = code[i + 1];
    }
    return LKS_OK;
}

/* What determines the samples. */
static lks_status describe(const struct text *t, const uint8_t *part, size_t size, size_t count,
                           unsigned n_vocabulary, struct lksi_str *s)
{
    char sha[LKSI_SHA256_HEX];
    lks_status st = lksi_sha256_bytes(part, size, sha);
    if (st != LKS_OK)
        return st;
    lksi_str_add(s, "lockstep-text-1\ncount %zu context %zu stride %zu\nbytes %s\nvocabulary ",
                 count, t->context, t->stride, sha);
    for (unsigned i = 0; i < n_vocabulary; i++)
        lksi_str_add(s, "%02x", t->vocabulary[i]);
    lksi_str_add(s, "\n");
    return s->failed ? LKS_E_MEMORY : LKS_OK;
}

static lks_status check(const struct lks_text_params *p, double to)
{
    if (p->context < 1 || p->context >= INT32_MAX || p->stride > INT32_MAX)
        return lksi_fail(LKS_E_ARGUMENT, "a text is cut into windows of a context of 1 to %d and a "
                                         "stride of 1 to %d characters, not %u and %u",
                         INT32_MAX - 1, INT32_MAX, p->context, p->stride);
    if (!(p->from >= 0 && p->from < to && to <= 1))
        return lksi_fail(LKS_E_ARGUMENT, "the part of a text lies between 0 and 1, `from` below "
                                         "`to`; %g and %g were given",
                         p->from, to);
    return LKS_OK;
}

static lks_status make(const struct lks_text_params *p, const struct lksi_bytes *file, size_t begin,
                       size_t end, const struct lksi_dataset *vocabulary, struct lksi_dataset **out)
{
    struct lksi_str content = {0};
    struct lksi_dataset *ds = NULL;
    size_t size = end - begin, stride = p->stride > 0 ? p->stride : p->context, count;
    unsigned n;
    lks_status st;
    struct text *t = NULL;
    if (size <= p->context)
        return lksi_fail(LKS_E_INPUT,
                         "%s: bytes %zu to %zu are %zu; a window of context %u takes %u with the "
                         "character behind it; give a longer part or a smaller context",
                         p->file, begin, end, size, p->context, p->context + 1);
    count = (size - p->context - 1) / stride + 1;
    if (p->limit > 0 && p->limit < count)
        count = p->limit;
    t = lksi_alloc(1, sizeof *t + size);
    if (t == NULL)
        return LKS_E_MEMORY;
    t->context = p->context;
    t->stride = stride;
    n = vocabulary != NULL ? vocabulary->classes : collect(file, t->vocabulary);
    if (vocabulary != NULL)
        memcpy(t->vocabulary, vocabulary->vocabulary, n);
    LKSI_TRY(encode(p->file, file, begin, end, t, n));
    LKSI_TRY(describe(t, file->data + begin, (count - 1) * stride + p->context + 1, count, n,
                      &content));
    struct lksi_dataset_params params = {
        .count = count,
        .rank = 1,
        .dims = {p->context},
        .positions = p->context,
        .classes = n,
        .fill = fill,
        .user = t,
        .content = content.text,
        .tokens = true,
    };
    LKSI_TRY(lksi_dataset_create(&ds, &params));
    ds->vocabulary = t->vocabulary;
    ds->owned = t;
    t = NULL;
    *out = ds;
fail:
    free(content.text);
    free(t);
    return st;
}

lks_status lksi_text_dataset(const struct lks_text_params *p, const struct lksi_dataset *vocabulary,
                             struct lksi_dataset **out)
{
    struct lksi_bytes file = {0};
    double to = p->to != 0 ? p->to : 1;
    lks_status st;
    if (vocabulary != NULL && vocabulary->vocabulary == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "the data set whose vocabulary is wanted is no text");
    LKSI_TRY(check(p, to));
    LKSI_TRY(lksi_file_read(p->file, UINT32_MAX, &file));
    st = make(p, &file, (size_t)floor(p->from * (double)file.size),
              (size_t)floor(to * (double)file.size), vocabulary, out);
fail:
    free(file.data);
    return st;
}
