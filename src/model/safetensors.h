/*
 * safetensors.h - weights and checkpoints in files: a canonical writer and a strict reader.
 *
 * A file is: the header's length N as little-endian u64, N bytes of JSON, then the data. The
 * canonical form (rule 15), in which a run has exactly one file and so one sha256:
 *   - the header is minimal JSON in UTF-8 (no spaces between tokens; in strings only `"`, `\` and
 *     control characters are escaped, as \" \\ \b \f \n \r \t or \u00xx in lower case), keys sorted
 *     by bytes at every level, and spaces behind it until N is a multiple of 8;
 *   - an entry is {"data_offsets":[begin,end],"dtype":"F32","shape":[...]};
 *   - `__metadata__` holds "contract", and for checkpoints the caller's own strings;
 *   - tensors lie in the order of their names, without gaps, as little-endian values;
 *   - each NaN is the one pattern 0x7fc00000 (0x7ff8000000000000 in F64), rule 12.
 */
#ifndef LKSI_MODEL_SAFETENSORS_H
#define LKSI_MODEL_SAFETENSORS_H

#include "base/base.h"
#include "base/hash.h"

enum lksi_st_dtype { LKSI_ST_F32, LKSI_ST_F64, LKSI_ST_I64, LKSI_ST_U8 };

enum { LKSI_ST_MAX_DIMS = 8 };

struct lksi_st_tensor {
    const char *name;
    enum lksi_st_dtype dtype;
    unsigned dims; /* 0: one value */
    uint64_t dim[LKSI_ST_MAX_DIMS];
    const void *data;
    size_t bytes; /* product of the dimensions times the size of a value */
};

struct lksi_st_meta {
    const char *key, *value;
};

/*
 * Writes the canonical form, whole or not at all (file.h). Tensors and strings may come in any
 * order. "contract" is added with the library's contract version and must not be among `meta`
 * (NULL for weights). LKS_E_ARGUMENT: a name that is empty, not UTF-8, `__metadata__` or there
 * twice, or bytes that do not fit the shape. LKS_E_IO, LKS_E_MEMORY.
 */
lks_status lksi_safetensors_write(const char *path, const struct lksi_st_tensor *tensors,
                                  size_t count, const struct lksi_st_meta *meta, size_t meta_count);

/* The sha256 of the file that lksi_safetensors_write would write. */
lks_status lksi_safetensors_sha256(const struct lksi_st_tensor *tensors, size_t count,
                                   const struct lksi_st_meta *meta, size_t meta_count,
                                   char hex[LKSI_SHA256_HEX]);

/* What a file holds. All of it is owned by this and freed by lksi_safetensors_destroy. */
struct lksi_safetensors {
    struct lksi_st_tensor *tensors; /* sorted by name; data aligned to 64 bytes */
    size_t count;
    struct lksi_st_meta *meta; /* sorted by key */
    size_t meta_count;
    bool canonical; /* header and layout are what the writer would have written */
    void *memory;   /* all data */
};

/*
 * Reads a file, which need not be canonical but must be right in every other respect: the text of
 * LKS_E_INPUT names the file, a byte offset, what stands there and what would be right.
 * LKS_E_IO, LKS_E_MEMORY.
 */
lks_status lksi_safetensors_read(const char *path, struct lksi_safetensors **out);
void lksi_safetensors_destroy(struct lksi_safetensors **st);

/* The tensor or string with that name, or NULL. */
const struct lksi_st_tensor *lksi_safetensors_find(const struct lksi_safetensors *st,
                                                   const char *name);
const char *lksi_safetensors_meta(const struct lksi_safetensors *st, const char *key);

/* The digest of a file and of the bytes of each tensor in it; for `lockstep hash`. */
struct lksi_digest {
    char file[LKSI_SHA256_HEX];
    struct lksi_safetensors *content;
    char (*tensors)[LKSI_SHA256_HEX]; /* [content->count] */
};
lks_status lksi_safetensors_digest(const char *path, struct lksi_digest *out);
void lksi_digest_free(struct lksi_digest *d);

/* Shared by writer and reader: name and size of a type; the padded canonical header of tensors and
 * strings already sorted, "contract" included. */
const char *lksi_st_dtype_name(enum lksi_st_dtype dtype);
size_t lksi_st_dtype_size(enum lksi_st_dtype dtype);
bool lksi_st_dtype_find(const char *name, enum lksi_st_dtype *out);
lks_status lksi_st_header(const struct lksi_st_tensor *const *tensors, size_t count,
                          const struct lksi_st_meta *meta, size_t meta_count, struct lksi_str *out);

#endif
