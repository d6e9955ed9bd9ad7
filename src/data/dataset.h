/*
 * dataset.h - samples and labels in memory, or behind a callback, and batches gathered from them.
 *
 * A sample is an image [h][w][c] (NHWC), gathered as f32. Bytes go through a table of 256 values
 * a channel, (float)((b / 255.0 - mean) / std), computed in double and rounded once (rule 1).
 * Float samples and those of a callback are taken as they are. Labels are class numbers.
 */
#ifndef LKSI_DATA_DATASET_H
#define LKSI_DATA_DATASET_H

#include "base/base.h"
#include "base/hash.h"

/*
 * Writes sample `index` (h*w*c values) and its label. Any result but LKS_OK stops the reading.
 * Called from one thread at a time, but not always from the same one (see prefetch.h).
 */
typedef lks_status (*lksi_fill_fn)(void *user, size_t index, float *x, int32_t *label);

/* mean and std of the values b / 255; `channels` is how many of each: 0 (mean 0, std 1), 1 (the
 * same for every channel) or c. */
struct lksi_normalize {
    const double *mean, *std;
    size_t channels;
};

/* What a data set is made of: exactly one of pixels, floats and fill. */
struct lksi_dataset_params {
    size_t count;          /* samples, 1 .. 2^32 - 1 */
    uint32_t h, w, c;      /* each at least 1 */
    uint32_t classes;      /* labels are 0 .. classes-1; 0: the largest label + 1 (not with fill) */
    const uint8_t *pixels; /* [count][h][w][c], kept by the caller until destroy */
    const float *floats;   /* the same */
    lksi_fill_fn fill;     /* called for every sample of every batch */
    void *user;            /* handed to fill */
    const int32_t *labels; /* [count], copied; NULL with fill */
    struct lksi_normalize normalize; /* for pixels only */
    int rank;              /* 0: h, w, c; else 1 to 4 dimensions of a sample, in place of these */
    int64_t dims[4];
    const int32_t *ints;   /* a fourth kind of sample: integers, gathered into x bit by bit */
    size_t positions;      /* labels a sample; 0 means 1 */
    bool no_labels;
    /* Of a `fill` of our own, a pure function that threads may share: the text that determines all
     * samples, hashed, and whether it writes integers into x, bit by bit. */
    const char *content;
    bool tokens;
};

struct lksi_dataset {
    size_t count, sample; /* samples; values a sample = h*w*c */
    uint32_t h, w, c, classes;
    const uint8_t *pixels; /* one of these three is set */
    const float *floats;
    lksi_fill_fn fill;
    void *user;
    const int32_t *ints;
    bool tokens;      /* integers come */
    int rank;         /* a sample's shape */
    int64_t dim[4];
    size_t positions; /* labels a sample; 0: there are none */
    int32_t *labels; /* NULL with fill */
    float *table;    /* [256][c], NULL unless pixels */
    /*
     * Of the content: "lockstep-data-1\n", then count, h, w, c and the bytes a value (1 or 4) as
     * little-endian u64, the samples as given, the labels as little-endian i32. The normalisation
     * is left out: it belongs to the model. Empty with fill. Where the shape was given as `dims`, or
     * samples are integers, or labels are not one a sample: "lockstep-data-2\n", then count, rank,
     * four dimensions (0 behind the last), bytes a value (2 for integers) and labels a sample.
     * Of `content`: its sha256.
     */
    char sha256[LKSI_SHA256_HEX];
    void *owned;               /* freed with the data set */
    const uint8_t *vocabulary; /* the byte of each class, ascending, in `owned`; or NULL */
};

/*
 * Checks and makes a data set. LKS_E_ARGUMENT if a size or a pointer is wrong, LKS_E_INPUT if a
 * label or the normalisation is, LKS_E_MEMORY. Free it with lksi_dataset_destroy.
 */
lks_status lksi_dataset_create(struct lksi_dataset **out, const struct lksi_dataset_params *params);
void lksi_dataset_destroy(struct lksi_dataset **ds);

/* The table above for c channels; free() it. LKS_E_INPUT if a number does not fit. */
lks_status lksi_normalize_table(const struct lksi_normalize *n, uint32_t c, float **out);

/* LKS_E_INPUT unless every label is below `classes` (what the network's output has). With fill,
 * labels are compared with the data set's own classes at every gather instead. */
lks_status lksi_dataset_check_classes(const struct lksi_dataset *ds, uint32_t classes);

/*
 * x[i] = sample order[first + i] as f32 and labels[i] its label, for i < n. `order` NULL means
 * 0, 1, 2, ... Indices must be below count (asserted). Fails only with fill: the callback's
 * status, or LKS_E_INPUT if its label is out of range; x and labels are then partly written.
 * Threads may gather from one data set at the same time unless it has a callback.
 */
lks_status lksi_dataset_gather(const struct lksi_dataset *ds, const uint32_t *order, size_t first,
                               size_t n, float *x, int32_t *labels);

/* The samples are bytes with a table small enough to be sent along with each batch. */
bool lksi_dataset_sends_bytes(const struct lksi_dataset *ds);
/* As lksi_dataset_gather, of such a data set, with the bytes as they are. */
void lksi_dataset_gather_bytes(const struct lksi_dataset *ds, const uint32_t *order, size_t first,
                               size_t n, uint8_t *x, int32_t *labels);
#define LKSI_MAX_TABLE 1024 /* floats of such a table */

/* "28 x 28 x 1" into `text` (at least 96 bytes); returns text. */
const char *lksi_dataset_shape_text(const struct lksi_dataset *ds, char *text);

#endif
