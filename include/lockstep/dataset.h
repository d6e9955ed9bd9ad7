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

struct lks_images_params {
    const char *images, *labels;    /* IDX files as above; `labels` NULL: there are none */
    size_t limit;                   /* above 0: the first so many samples at most */
    struct lks_normalize normalize;
};
#ifndef __cplusplus
#define lks_images_params(...) (&(struct lks_images_params){__VA_ARGS__})
#endif
LKS_API struct lks_images_params lks_images_params_default(void);
/* The same with these. Errors as above, LKS_E_ARGUMENT for NULL. */
LKS_API lks_status lks_dataset_open_images(lks_dataset **dataset,
                                           const struct lks_images_params *params);

/*
 * Windows of a text file. Its bytes from floor(`from` * bytes) to before floor(`to` * bytes) become
 * numbers: places in the vocabulary, the ascending set of the bytes of the whole file, or that of
 * another text, for a test. Sample i is the integers [context] from i * stride on, its `context`
 * labels the same one further: the character behind each. Only whole windows count.
 */
struct lks_text_params {
    const char *file;
    uint32_t context;              /* required */
    uint32_t stride;               /* from window to window; 0: context */
    double from, to;               /* the part, 0 to 1; `to` 0 means 1 */
    size_t limit;                  /* above 0: the first so many windows at most */
    const lks_dataset *vocabulary; /* NULL: the file's own */
};
#ifndef __cplusplus
#define lks_text_params(...) (&(struct lks_text_params){__VA_ARGS__})
#endif
LKS_API struct lks_text_params lks_text_params_default(void);
/*
 * Reads the part into memory; the caller destroys *dataset. LKS_E_IO if the file cannot be read,
 * LKS_E_INPUT for a part too short for one window or a byte that the vocabulary lacks (the text
 * names its offset), LKS_E_ARGUMENT, LKS_E_MEMORY. Blocks. Thread-safe.
 */
LKS_API lks_status lks_dataset_open_text(lks_dataset **dataset,
                                         const struct lks_text_params *params);

/*
 * Sequences [frames][height][width][1], without labels, of images that move with constant speed and
 * bounce at the borders; the brightest is seen. All is worked out in integers from the number of the
 * sample and the seed (docs/models.md has the rule), while the sample is gathered.
 */
struct lks_moving_digits_params {
    const char *images;             /* an IDX file, u8 [n][h][w] */
    size_t count;                   /* samples, at most 2^32 - 1 */
    uint32_t frames, height, width; /* required, each at most 32768 */
    uint32_t digits;                /* images a sample, at most 1024; 0 means 2 */
    uint32_t speed;                 /* pixels a frame at most, along each axis; 0 means 3 */
    uint64_t seed;
    struct lks_normalize normalize;
};
#ifndef __cplusplus
#define lks_moving_digits_params(...) (&(struct lks_moving_digits_params){__VA_ARGS__})
#endif
LKS_API struct lks_moving_digits_params lks_moving_digits_params_default(void);
/* Errors as lks_dataset_open_images; LKS_E_INPUT too if the images exceed the frames. */
LKS_API lks_status lks_dataset_open_moving_digits(lks_dataset **dataset,
                                                  const struct lks_moving_digits_params *params);

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
/* Labels a sample; 0: there are none. */
LKS_API size_t lks_dataset_positions(const lks_dataset *dataset);
/* Of a text, the byte of each class, `classes` of them in ascending order; else NULL. Valid until
 * the data set is destroyed. */
LKS_API const uint8_t *lks_dataset_vocabulary(const lks_dataset *dataset);
/* Rank and dimensions of a sample; `dims` holds 4. */
LKS_API void lks_dataset_dims(const lks_dataset *dataset, int *rank, int64_t *dims);
/* Height, width and channels of a sample; of other ranks the dimensions in front are one. */
LKS_API void lks_dataset_shape(const lks_dataset *dataset, uint32_t hwc[3]);
/* The label of sample `index`; -1 beyond the last, without labels, with a callback and of a text. */
LKS_API int32_t lks_dataset_label(const lks_dataset *dataset, size_t index);
/* sha256 in lower-case hex of the samples and labels, or of what determines them; "" with a
 * callback. Valid until the data set is destroyed. */
LKS_API const char *lks_dataset_sha256(const lks_dataset *dataset);

#ifdef __cplusplus
}
#endif
#endif
