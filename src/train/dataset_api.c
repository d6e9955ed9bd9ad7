/*
 * dataset_api.c - the public functions of dataset.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fenv.h"
#include "data/idx.h"
#include "data/moving.h"
#include "data/text.h"
#include "train/train.h"

static lks_status wrap(lks_dataset **out, struct lksi_dataset *data)
{
    lks_dataset *d = lksi_alloc(1, sizeof *d);
    if (d == NULL) {
        lksi_dataset_destroy(&data);
        return LKS_E_MEMORY;
    }
    d->data = data;
    *out = d;
    return LKS_OK;
}

/* std 0 means 1, so that a zeroed struct changes nothing. */
static struct lksi_normalize normalize_of(const struct lks_normalize *n, double value[2])
{
    value[0] = n != NULL ? n->mean : 0;
    value[1] = n != NULL && n->std != 0 ? n->std : 1;
    return (struct lksi_normalize){&value[0], &value[1], 1};
}

lks_status lks_dataset_open_idx(lks_dataset **dataset, const char *images, const char *labels,
                                const struct lks_normalize *normalize)
{
    struct lks_images_params params = {.images = images, .labels = labels};
    if (dataset == NULL || images == NULL || labels == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_dataset_open_idx: an argument is NULL");
    if (normalize != NULL)
        params.normalize = *normalize;
    return lks_dataset_open_images(dataset, &params);
}

lks_status lks_dataset_open_images(lks_dataset **dataset, const struct lks_images_params *params)
{
    double value[2];
    struct lksi_fenv env;
    struct lksi_dataset *data;
    struct lksi_normalize n;
    lks_status st;
    if (dataset == NULL || params == NULL || params->images == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_dataset_open_images: an argument is NULL");
    lksi_fenv_enter(&env);
    n = normalize_of(&params->normalize, value);
    st = lksi_idx_dataset(params->images, params->labels, 0, params->limit, &n, &data);
    lksi_fenv_leave(&env);
    return st == LKS_OK ? wrap(dataset, data) : st;
}

lks_status lks_dataset_open_text(lks_dataset **dataset, const struct lks_text_params *params)
{
    struct lksi_fenv env;
    struct lksi_dataset *data;
    lks_status st;
    if (dataset == NULL || params == NULL || params->file == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_dataset_open_text: an argument is NULL");
    lksi_fenv_enter(&env);
    st = lksi_text_dataset(params, params->vocabulary != NULL ? params->vocabulary->data : NULL,
                           &data);
    lksi_fenv_leave(&env);
    return st == LKS_OK ? wrap(dataset, data) : st;
}

lks_status lks_dataset_open_moving_digits(lks_dataset **dataset,
                                          const struct lks_moving_digits_params *params)
{
    double value[2];
    struct lksi_fenv env;
    struct lksi_dataset *data;
    struct lksi_normalize n;
    lks_status st;
    if (dataset == NULL || params == NULL || params->images == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_dataset_open_moving_digits: an argument is NULL");
    lksi_fenv_enter(&env);
    n = normalize_of(&params->normalize, value);
    st = lksi_moving_dataset(params, &n, &data);
    lksi_fenv_leave(&env);
    return st == LKS_OK ? wrap(dataset, data) : st;
}

lks_status lks_dataset_create(lks_dataset **dataset, const struct lks_dataset_params *p)
{
    double value[2];
    struct lksi_fenv env;
    struct lksi_dataset *data;
    lks_status st;
    if (dataset == NULL || p == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_dataset_create: an argument is NULL");
    struct lksi_dataset_params params = {
        .count = p->count,
        .h = p->h > 0 ? p->h : 1,
        .w = p->w > 0 ? p->w : 1,
        .c = p->c > 0 ? p->c : 1,
        .classes = p->classes,
        .pixels = p->pixels,
        .floats = p->floats,
        .fill = p->fill,
        .user = p->user,
        .labels = p->labels,
        .rank = p->rank,
        .ints = p->tokens,
        .positions = p->positions,
        .no_labels = p->no_labels,
    };
    memcpy(params.dims, p->dims, sizeof params.dims);
    /* Float samples are taken as they are: a normalisation given with them is refused below. */
    if (p->pixels != NULL || p->normalize.mean != 0 || p->normalize.std != 0)
        params.normalize = normalize_of(&p->normalize, value);
    lksi_fenv_enter(&env);
    st = lksi_dataset_create(&data, &params);
    lksi_fenv_leave(&env);
    return st == LKS_OK ? wrap(dataset, data) : st;
}

void lks_dataset_destroy(lks_dataset **dataset)
{
    if (dataset == NULL || *dataset == NULL)
        return;
    lksi_dataset_destroy(&(*dataset)->data);
    free(*dataset);
    *dataset = NULL;
}

size_t lks_dataset_count(const lks_dataset *d)
{
    return d->data->count;
}

uint32_t lks_dataset_classes(const lks_dataset *d)
{
    return d->data->classes;
}

size_t lks_dataset_positions(const lks_dataset *d)
{
    return d->data->positions;
}

const uint8_t *lks_dataset_vocabulary(const lks_dataset *d)
{
    return d->data->vocabulary;
}

void lks_dataset_dims(const lks_dataset *d, int *rank, int64_t *dims)
{
    *rank = d->data->rank;
    memcpy(dims, d->data->dim, sizeof d->data->dim);
}

void lks_dataset_shape(const lks_dataset *d, uint32_t hwc[3])
{
    hwc[0] = d->data->h;
    hwc[1] = d->data->w;
    hwc[2] = d->data->c;
}

int32_t lks_dataset_label(const lks_dataset *d, size_t index)
{
    return d->data->labels != NULL && index < d->data->count ? d->data->labels[index] : -1;
}

const char *lks_dataset_sha256(const lks_dataset *d)
{
    return d->data->sha256;
}
