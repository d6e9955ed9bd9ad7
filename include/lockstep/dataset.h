/*
 * dataset.h - samples with labels: from files, from memory, or from a callback.
 *
 *     lks_dataset *d;
 *     lks_dataset_create(&d, lks_dataset_params(.count = 1000, .h = 28, .w = 28, .pixels = pixels,
 *                                               .labels = labels, .normalize = {0.13, 0.31}));
 *
 * A data set does not change: several trainers in several threads may read one at the same time,
 * except one with a `fill` callback, which belongs to one thread at a time.
 */
#ifndef LOCKSTEP_DATASET_H
#define LOCKSTEP_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lks_dataset lks_dataset;

/* Bytes b become (float)((b / 255.0 - mean) / std), the same for every channel; std 0 means 1. */
struct lks_normalize {
    double mean, std;
};

/*
 * Reads a pair of IDX files (the format of MNIST; gzip or plain): images u8 [n][h][w] or
 * [n][h][w][c] and labels u8 [n], wholly into memory. `normalize` may be NULL (mean 0, std 1). The
 * caller destroys *dataset. LKS_E_IO if a file cannot be read, LKS_E_INPUT if it is damaged or lies
 * (the text names file and offset), LKS_E_MEMORY. Blocks. Thread-safe.
 */
LKS_API lks_status lks_dataset_open_idx(lks_dataset **dataset, const char *images,
                                        const char *labels, const struct lks_normalize *normalize);

/*
 * Writes sample `index` (h*w*c floats) and its label (or labels); any result but LKS_OK stops the training with
 * it. Called from a thread of the library, one call at a time; the order of the calls is not
 * promised, so the same index must give the same sample.
 */
typedef lks_status (*lks_fill_fn)(void *user, size_t index, float *x, int32_t *label);

struct lks_dataset_params {
    size_t count;          /* samples */
    uint32_t h, w, c;      /* 0 means 1 */
    uint32_t classes;      /* 0: the largest label + 1; required with `fill` */
    const uint8_t *pixels; /* exactly one of pixels, floats, fill; [count][h][w][c], not copied */
    const float *floats;
    lks_fill_fn fill;      /* called from one thread at a time */
    void *user;
    const int32_t *labels; /* [count], copied; NULL with `fill` */
    struct lks_normalize normalize; /* of pixels */
    int rank;              /* of a sample: 1 to 4, with `dims`, in place of h, w, c; 0: these */
    int64_t dims[4];
    const int32_t *tokens; /* a fourth kind of sample: integers, not copied */
    size_t positions;      /* labels a sample, [count][positions] in `labels`; 0 means 1 */
    bool no_labels;        /* there are none, for losses that need none */
};
#ifndef __cplusplus
#define lks_dataset_params(...) (&(struct lks_dataset_params){__VA_ARGS__})
#endif
/* h, w and c are 1, all else is zero. Thread-safe. */
LKS_API struct lks_dataset_params lks_dataset_params_default(void);

/*
 * A data set from memory or a callback. Memory behind pixels and floats stays the caller's and must
 * stay unchanged until lks_dataset_destroy; labels are copied. Floats are taken as they are: a
 * normalisation given with them, or with `fill`, is refused. LKS_E_ARGUMENT, LKS_E_INPUT for a label
 * that is no class, LKS_E_MEMORY. Blocks while the content is hashed. Thread-safe.
 */
LKS_API lks_status lks_dataset_create(lks_dataset **dataset,
                                      const struct lks_dataset_params *params);
/* Destroys it, after every trainer's last use, and sets *dataset to NULL; NULL and a pointer to NULL
 * are allowed. */
LKS_API void lks_dataset_destroy(lks_dataset **dataset);

/* These need a data set (not NULL), cannot fail, do not block and are thread-safe. */

/* Samples. */
LKS_API size_t lks_dataset_count(const lks_dataset *dataset);
/* Classes: labels are 0 to classes - 1. */
LKS_API uint32_t lks_dataset_classes(const lks_dataset *dataset);
/* Rank and dimensions of a sample; `dims` holds 4. */
LKS_API void lks_dataset_dims(const lks_dataset *dataset, int *rank, int64_t *dims);
/* Height, width and channels of a sample; of other ranks the dimensions in front are one. */
LKS_API void lks_dataset_shape(const lks_dataset *dataset, uint32_t hwc[3]);
/* The label of sample `index`; -1 beyond the last, and with a callback. */
LKS_API int32_t lks_dataset_label(const lks_dataset *dataset, size_t index);
/* sha256 of the samples and labels in lower-case hex; "" with a callback. Valid until the data set
 * is destroyed. */
LKS_API const char *lks_dataset_sha256(const lks_dataset *dataset);

#ifdef __cplusplus
}
#endif
#endif
