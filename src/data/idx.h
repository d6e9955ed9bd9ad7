/*
 * idx.h - the IDX format of MNIST and its relatives, plain or gzip'ed.
 *
 * A file is: two zero bytes, the type (0x08 = unsigned bytes, the only one read here), the number
 * of dimensions, each dimension as a big-endian u32, then the values, last dimension fastest.
 * Images are [n][h][w] or [n][h][w][c], labels [n].
 */
#ifndef LKSI_DATA_IDX_H
#define LKSI_DATA_IDX_H

#include "data/dataset.h"

enum { LKSI_IDX_MAX_DIMS = 4 };

struct lksi_idx {
    unsigned dims;
    uint32_t dim[LKSI_IDX_MAX_DIMS];
    uint8_t *values; /* free() */
    size_t count;    /* the product of the dimensions */
};

/*
 * Reads a file of `low_dims` to `high_dims` dimensions. LKS_E_IO if it cannot be read, LKS_E_INPUT
 * if anything in it is wrong: the text names the file, the byte (of the decompressed data for a
 * gzip'ed file), what stands there and what would be right. LKS_E_MEMORY.
 */
lks_status lksi_idx_read(const char *path, unsigned low_dims, unsigned high_dims,
                         struct lksi_idx *out);

/*
 * A data set from a file of images and one of labels (NULL: without). `classes` 0 takes the largest
 * label + 1; `limit` above 0 takes that many samples at most, the first. Errors as above, and LKS_E_INPUT if the counts differ, a label is out of range or the
 * normalisation does not fit.
 */
lks_status lksi_idx_dataset(const char *images, const char *labels, uint32_t classes, size_t limit,
                            const struct lksi_normalize *normalize, struct lksi_dataset **out);

#endif
