/*
 * dataset.c - samples and labels in memory, or behind a callback.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fenv.h"
#include "data/dataset.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "content hashes need a little-endian host");

/* The shape as up to four dimensions; `rank` 0 means h, w, c. */
static lks_status take_shape(struct lksi_dataset *ds, const struct lksi_dataset_params *p)
{
    ds->rank = p->rank != 0 ? p->rank : 3;
    if (p->rank < 0 || p->rank > 4)
        return lksi_fail(LKS_E_ARGUMENT, "a sample has 1 to 4 dimensions, not %d", p->rank);
    if (p->rank == 0) {
        ds->dim[0] = p->h;
        ds->dim[1] = p->w;
        ds->dim[2] = p->c;
    }
    for (int i = 0; i < p->rank; i++) {
        if (p->dims[i] < 1 || p->dims[i] > INT32_MAX)
            return lksi_fail(LKS_E_ARGUMENT, "dimension %d of a sample is %lld, expected 1 or more",
                             i, (long long)p->dims[i]);
        ds->dim[i] = p->dims[i];
    }
    ds->positions = p->no_labels ? 0 : p->positions > 0 ? p->positions : 1;
    if (ds->positions > INT32_MAX)
        return lksi_fail(LKS_E_ARGUMENT, "%zu labels a sample are too many", ds->positions);
    return LKS_OK;
}

/* The same as height, width and channels, for messages and tables. */
static lks_status as_image(struct lksi_dataset_params *p)
{
    int64_t hwc[3] = {1, 1, 1}, rows = 1;
    if (p->rank < 1 || p->rank > 4)
        return LKS_OK;
    for (int i = 0; i < p->rank; i++) {
        int at = 3 - p->rank + i;
        rows = at <= 0 ? rows * p->dims[i] : rows;
        hwc[at > 0 ? at : 0] = at <= 0 ? rows : p->dims[i];
        if (p->dims[i] < 1 || rows > INT32_MAX || hwc[at > 0 ? at : 0] > INT32_MAX)
            return lksi_fail(LKS_E_ARGUMENT, "dimension %d of a sample is %lld: 1 or more, and less "
                                             "than 2^31 together, wanted", i,
                             (long long)p->dims[i]);
    }
    p->h = (uint32_t)hwc[0];
    p->w = (uint32_t)hwc[1];
    p->c = (uint32_t)hwc[2];
    return LKS_OK;
}

const char *lksi_dataset_shape_text(const struct lksi_dataset *ds, char *text)
{
    int used = 0;
    for (int i = 0; i < ds->rank; i++)
        used += snprintf(text + used, (size_t)(96 - used), "%s%lld", i > 0 ? " x " : "",
                         (long long)ds->dim[i]);
    return text;
}

static lks_status check_params(const struct lksi_dataset_params *p, size_t *sample)
{
    size_t values, all;
    int sources = (p->pixels != NULL) + (p->floats != NULL) + (p->fill != NULL) +
                  (p->ints != NULL);
    if (sources != 1)
        return lksi_fail(LKS_E_ARGUMENT,
                         "a data set needs exactly one of pixels, floats, tokens and fill, "
                         "%d were given",
                         sources);
    if (p->count == 0 || p->count > UINT32_MAX)
        return lksi_fail(LKS_E_ARGUMENT, "a data set has 1 to %u samples, %zu were given",
                         UINT32_MAX, p->count);
    if (p->h == 0 || p->w == 0 || p->c == 0)
        return lksi_fail(LKS_E_ARGUMENT, "a sample of %u x %u x %u values (h, w, c) is empty", p->h,
                         p->w, p->c);
    if (__builtin_mul_overflow((size_t)p->h, (size_t)p->w, &values) ||
        __builtin_mul_overflow(values, (size_t)p->c, &values) ||
        __builtin_mul_overflow(values, p->count, &all) || all > SIZE_MAX / sizeof(float))
        return lksi_fail(LKS_E_ARGUMENT,
                         "%zu samples of %u x %u x %u values do not fit into memory", p->count,
                         p->h, p->w, p->c);
    if (p->fill == NULL && p->labels == NULL && !p->no_labels)
        return lksi_fail(LKS_E_ARGUMENT, "labels are missing: give %zu class numbers", p->count);
    if (p->fill != NULL && p->classes == 0 && !p->no_labels)
        return lksi_fail(LKS_E_ARGUMENT, "classes is 0: a data set with a callback must say how "
                                         "many classes there are");
    if (p->classes > INT32_MAX)
        return lksi_fail(LKS_E_ARGUMENT, "classes is %u, at most %d are supported", p->classes,
                         INT32_MAX);
    if (p->pixels == NULL && p->normalize.channels > 0)
        return lksi_fail(LKS_E_ARGUMENT, "normalize is for pixels only: float samples are taken as "
                                         "they are, so normalise them before");
    *sample = values;
    return LKS_OK;
}

static lks_status check_normalize(const struct lksi_normalize *n, uint32_t c)
{
    if (n->channels > 1 && n->channels != c)
        return lksi_fail(LKS_E_INPUT,
                         "normalize has %zu values of mean and std, the samples have %u "
                         "channels; give 1 or %u of each",
                         n->channels, c, c);
    for (size_t i = 0; i < n->channels; i++) {
        if (!isfinite(n->mean[i]))
            return lksi_fail(LKS_E_INPUT,
                             "normalize: mean %g of channel %zu is not a finite number", n->mean[i],
                             i);
        if (!isfinite(n->std[i]) || n->std[i] <= 0)
            return lksi_fail(LKS_E_INPUT,
                             "normalize: std %g of channel %zu is not a positive number", n->std[i],
                             i);
    }
    return LKS_OK;
}

lks_status lksi_normalize_table(const struct lksi_normalize *n, uint32_t c, float **out)
{
    lks_status st = check_normalize(n, c);
    if (st != LKS_OK)
        return st;
    float *table = lksi_alloc(c, 256 * sizeof *table);
    if (table == NULL)
        return LKS_E_MEMORY;
    for (int b = 0; b < 256; b++)
        for (uint32_t k = 0; k < c; k++) {
            size_t from = n->channels > 1 ? k : 0;
            double mean = n->channels > 0 ? n->mean[from] : 0.0;
            double std = n->channels > 0 ? n->std[from] : 1.0;
            table[(size_t)b * c + k] = (float)((b / 255.0 - mean) / std);
            if (!isfinite(table[(size_t)b * c + k])) {
                free(table);
                return lksi_fail(LKS_E_INPUT,
                                 "normalize: mean %g and std %g of channel %u give "
                                 "values beyond single precision",
                                 mean, std, k);
            }
        }
    *out = table;
    return LKS_OK;
}

/* Copies the labels and finds or checks the number of classes. */
static lks_status take_labels(struct lksi_dataset *ds, const struct lksi_dataset_params *p)
{
    int32_t largest = 0;
    size_t n = ds->count * ds->positions;
    if (n == 0)
        return LKS_OK;
    if (__builtin_mul_overflow(ds->count, ds->positions, &n) || n > SIZE_MAX / sizeof(int32_t))
        return lksi_fail(LKS_E_ARGUMENT, "the labels do not fit into memory");
    ds->labels = lksi_alloc(n, sizeof *ds->labels);
    if (ds->labels == NULL)
        return LKS_E_MEMORY;
    memcpy(ds->labels, p->labels, n * sizeof *ds->labels);
    for (size_t i = 0; i < n; i++) {
        if (ds->labels[i] < 0 || ds->labels[i] == INT32_MAX)
            return lksi_fail(LKS_E_INPUT, "label %d of sample %zu is no class number (0, 1, ...)",
                             ds->labels[i], i / ds->positions);
        if (ds->labels[i] > largest)
            largest = ds->labels[i];
    }
    if (ds->classes == 0)
        ds->classes = (uint32_t)largest + 1;
    return lksi_dataset_check_classes(ds, ds->classes);
}

static lks_status hash_content(struct lksi_dataset *ds, bool plain)
{
    static const char *const intro[] = {"lockstep-data-1\n", "lockstep-data-2\n"};
    size_t width = ds->pixels != NULL ? 1 : sizeof(float), n = plain ? 5 : 8;
    const void *samples = ds->pixels != NULL   ? (const void *)ds->pixels
                          : ds->floats != NULL ? (const void *)ds->floats
                                               : ds->ints;
    uint64_t sizes[8] = {ds->count, ds->h, ds->w, ds->c, width};
    struct lksi_sha256 hash;
    lks_status st;
    if (!plain) {
        sizes[1] = (uint64_t)ds->rank;
        for (int i = 0; i < 4; i++)
            sizes[2 + i] = i < ds->rank ? (uint64_t)ds->dim[i] : 0;
        sizes[6] = ds->ints != NULL ? 2 : width;
        sizes[7] = ds->positions;
    }
    LKSI_TRY(lksi_sha256_init(&hash));
    LKSI_TRY(lksi_sha256_update(&hash, intro[!plain], strlen(intro[0])));
    LKSI_TRY(lksi_sha256_update(&hash, sizes, n * sizeof sizes[0]));
    LKSI_TRY(lksi_sha256_update(&hash, samples, ds->count * ds->sample * width));
    if (ds->positions > 0)
        LKSI_TRY(lksi_sha256_update(&hash, ds->labels,
                                    ds->count * ds->positions * sizeof *ds->labels));
    return lksi_sha256_final(&hash, ds->sha256);
fail:
    lksi_sha256_drop(&hash);
    return st;
}

lks_status lksi_dataset_create(struct lksi_dataset **out, const struct lksi_dataset_params *given)
{
    struct lksi_dataset_params copy = *given;
    const struct lksi_dataset_params *params = &copy;
    struct lksi_dataset *ds = NULL;
    size_t sample = 0;
    lks_status st;
    LKSI_TRY(as_image(&copy));
    LKSI_TRY(check_params(params, &sample));
    ds = lksi_alloc(1, sizeof *ds);
    if (ds == NULL)
        return LKS_E_MEMORY;
    *ds = (struct lksi_dataset){
        .count = params->count,
        .sample = sample,
        .h = params->h,
        .w = params->w,
        .c = params->c,
        .classes = params->classes,
        .pixels = params->pixels,
        .floats = params->floats,
        .ints = params->ints,
        .fill = params->fill,
        .user = params->user,
        .tokens = params->ints != NULL || params->tokens,
    };
    LKSI_TRY(take_shape(ds, params));
    if (ds->pixels != NULL)
        LKSI_TRY(lksi_normalize_table(&params->normalize, ds->c, &ds->table));
    if (ds->fill == NULL) {
        LKSI_TRY(take_labels(ds, params));
        LKSI_TRY(hash_content(ds, params->rank == 0 && ds->ints == NULL && ds->positions == 1));
    } else if (params->content != NULL) {
        LKSI_TRY(lksi_sha256_bytes(params->content, strlen(params->content), ds->sha256));
    }
    *out = ds;
    return LKS_OK;
fail:
    lksi_dataset_destroy(&ds);
    return st;
}

void lksi_dataset_destroy(struct lksi_dataset **ds)
{
    if (*ds == NULL)
        return;
    free((*ds)->labels);
    free((*ds)->table);
    free((*ds)->owned);
    free(*ds);
    *ds = NULL;
}

lks_status lksi_dataset_check_classes(const struct lksi_dataset *ds, uint32_t classes)
{
    assert(classes > 0 || ds->positions == 0);
    if (ds->positions == 0)
        return LKS_OK;
    if (ds->labels == NULL)
        return ds->classes <= classes
                   ? LKS_OK
                   : lksi_fail(LKS_E_INPUT, "the data has %u classes, at most %u fit here",
                               ds->classes, classes);
    for (size_t i = 0; i < ds->count * ds->positions; i++)
        if ((uint32_t)ds->labels[i] >= classes)
            return lksi_fail(
                LKS_E_INPUT,
                "label %d of sample %zu is out of range: with %u classes, labels are 0 "
                "to %u",
                ds->labels[i], i / ds->positions, classes, classes - 1);
    return LKS_OK;
}

static lks_status call_fill(const struct lksi_dataset *ds, size_t index, float *x, int32_t *label)
{
    int32_t unused;
    char text[40];
    if (ds->positions > 0)
        memset(label, 0xff, ds->positions * sizeof *label); /* -1: not written */
    lks_status st = ds->fill(ds->user, index, x, ds->positions > 0 ? label : &unused);
    lksi_fenv_renew(); /* the callback may have changed it */
    if (st != LKS_OK)
        return lksi_fail(st, "the data callback failed with %s at sample %zu",
                         lksi_status_text(st, text), index);
    for (size_t i = 0; i < ds->positions; i++)
        if (label[i] < 0 || (uint32_t)label[i] >= ds->classes)
            return lksi_fail(LKS_E_INPUT,
                             "the data callback gave label %d for sample %zu: with %u classes, "
                             "labels are 0 to %u",
                             label[i], index, ds->classes, ds->classes - 1);
    return LKS_OK;
}

static void widen(const struct lksi_dataset *ds, const uint8_t *restrict p, float *restrict x)
{
    const float *table = ds->table;
    uint32_t c = ds->c;
    if (c == 1) {
        for (size_t i = 0; i < ds->sample; i++)
            x[i] = table[p[i]];
        return;
    }
    for (size_t i = 0; i < ds->sample; i += c)
        for (uint32_t k = 0; k < c; k++)
            x[i + k] = table[(size_t)p[i + k] * c + k];
}

lks_status lksi_dataset_gather(const struct lksi_dataset *ds, const uint32_t *order, size_t first,
                               size_t n, float *x, int32_t *labels)
{
    for (size_t i = 0; i < n; i++, x += ds->sample) {
        size_t index = order != NULL ? order[first + i] : first + i;
        assert(index < ds->count);
        if (ds->fill != NULL) {
            lks_status st = call_fill(ds, index, x, labels + i * ds->positions);
            if (st != LKS_OK)
                return st;
            continue;
        }
        if (ds->pixels != NULL)
            widen(ds, ds->pixels + index * ds->sample, x);
        else if (ds->floats != NULL)
            memcpy(x, ds->floats + index * ds->sample, ds->sample * sizeof *x);
        else
            memcpy(x, ds->ints + index * ds->sample, ds->sample * sizeof *x);
        if (ds->positions > 0)
            memcpy(labels + i * ds->positions, ds->labels + index * ds->positions,
                   ds->positions * sizeof *labels);
    }
    return LKS_OK;
}

bool lksi_dataset_sends_bytes(const struct lksi_dataset *ds)
{
    return ds->pixels != NULL && 256u * (size_t)ds->c <= LKSI_MAX_TABLE;
}

void lksi_dataset_gather_bytes(const struct lksi_dataset *ds, const uint32_t *order, size_t first,
                               size_t n, uint8_t *x, int32_t *labels)
{
    for (size_t i = 0; i < n; i++, x += ds->sample) {
        size_t index = order != NULL ? order[first + i] : first + i;
        assert(index < ds->count);
        memcpy(x, ds->pixels + index * ds->sample, ds->sample);
        if (ds->positions > 0)
            memcpy(labels + i * ds->positions, ds->labels + index * ds->positions,
                   ds->positions * sizeof *labels);
    }
}
