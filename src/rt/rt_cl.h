/*
 * rt_cl.h - what the files of src/rt share among themselves. No one outside includes it.
 */
#ifndef LKSI_RT_CL_H
#define LKSI_RT_CL_H

#include <CL/cl.h>

#include "base/base.h"
#include "base/hash.h"
#include "rt/rt.h"

/* ---- errors (clerror.c) ---- */

const char *lksi_cl_name(cl_int error); /* "CL_OUT_OF_RESOURCES" */
/* Fails with "what: call failed: NAME (-5); advice". Out of memory is LKS_E_MEMORY, all other
 * errors are LKS_E_DEVICE. */
lks_status lksi_cl_fail(cl_int error, const char *call, const char *what, ...) LKSI_PRINTF(3, 4);

/* ---- devices (device.c) ---- */

struct lksi_cl_device {
    struct lksi_limits limits;
    cl_platform_id platform; /* NULL for `ref` */
    cl_device_id id;
};

/* All devices; `only_ref`: that one alone, without asking the OpenCL loader, which loads every
 * driver of the machine and dies with a broken one. */
lks_status lksi_cl_list(bool only_ref, struct lksi_cl_device **list, size_t *count,
                        const char **note);
/* Sets `order` to the indices of `list` that `select` names, in the order in which to try them;
 * more than one only for a type or for NULL. */
lks_status lksi_cl_select(const struct lksi_cl_device *list, size_t count, const char *note,
                          const char *select, size_t *order, size_t *n_order);

/* ---- an open device (open.c) ---- */

struct lksi_pool; /* threads of `ref` */

struct lksi_dev {
    struct lksi_limits limits;
    bool soft_divsqrt, profile;
    struct lksi_pool *pool; /* `ref` only */
    cl_device_id id;        /* NULL for `ref`, and so is all of OpenCL below */
    cl_context context;
    cl_command_queue queue, upload;
    bool late;         /* compiles kernels at their first launch, one after the other */
    bool keeps_kernels;      /* across processes, by itself (PoCL): we keep no binaries */
    struct lksi_part *parts; /* programs that are alive, to be shared (program.c) */
    bool miscounts;    /* PoCL's fault of grid.c */
    char options[160]; /* fixed build options */
    char identity[LKSI_SHA256_HEX]; /* of platform, device, driver and library version */
    char *kernel_dir;               /* NULL: embedded kernels */
    char *cache_dir;                /* NULL: no cache */
    char *tuning;                   /* NULL: none was named */
    bool cache_refused;             /* the folder could not be written: said once */
    /* Marks [mark_first, mark_next) have an event in the ring; earlier ones are reached. */
    uint64_t mark_first, mark_next, mark_flushed;
    cl_event *mark_event;
    size_t mark_capacity;
    cl_event last_upload; /* latest upload that compute does not yet wait for */
};

/* A region of a buffer as an OpenCL object, which all parts of that region share. */
struct lksi_region {
    uint64_t offset, bytes;
    cl_mem mem;
};

struct lksi_buf {
    struct lksi_dev *dev;
    cl_mem mem;
    char *host; /* `ref`, or where staging memory is mapped */
    uint64_t bytes;
    bool is_part; /* then `mem` belongs to the parent */
    struct lksi_region *region;
    size_t n_region, region_capacity;
};

/* ---- marks (queue.c) ---- */

/* The event of `mark`, flushed, or NULL if it is reached already. */
lks_status lksi_mark_event(struct lksi_dev *dev, uint64_t mark, cl_event *event);
void lksi_marks_release(struct lksi_dev *dev);

/* ---- threads of `ref` (ref.c) ---- */

lks_status lksi_pool_create(struct lksi_pool **pool, int threads);
void lksi_pool_destroy(struct lksi_pool **pool);

/* ---- program text (source.c) ---- */

/* The text of `name` from the kernel folder (then `*owned` is to be freed) or the embedded table;
 * LKS_E_DEVICE if there is none. */
lks_status lksi_source_file(const struct lksi_dev *dev, const char *name, const char **text,
                            char **owned);
/* The whole text of a program made of units; unit i's kernels end in "_u<i>". Free with free(). */
lks_status lksi_source_program(const struct lksi_dev *dev, const struct lksi_unit *const *units,
                               size_t count, char **text);
/* A name of unit `index` for messages and #line: its file, or "unit <index>". */
void lksi_source_name(const struct lksi_unit *unit, size_t index, char name[80]);

/* ---- binary cache (cache.c) ---- */

/* What a cache entry holds. `digest` is the program's identity; `variant` lists hashes of
 * launches that its binary was compiled for. */
struct lksi_entry {
    char digest[LKSI_SHA256_HEX];
    unsigned char *binary;
    size_t bytes;
    uint64_t *variant;
    size_t n_variant, variant_capacity;
};

/* SHA-256 over several texts. */
lks_status lksi_hash_texts(char hex[LKSI_SHA256_HEX], const char *const *text, size_t count);
/* True if `key` was found whole; a damaged entry gives one log line and false. */
bool lksi_cache_load(struct lksi_dev *dev, const char *key, struct lksi_entry *entry);
/* Stores, replacing an older entry. A refusing folder gives one log line. */
void lksi_cache_store(struct lksi_dev *dev, const char *key, const struct lksi_entry *entry);
void lksi_entry_free(struct lksi_entry *entry);
/* The cache folder that `given` (lksi_dev_params.cache_dir) means; NULL if none. */
char *lksi_cache_folder(const char *given);

/* ---- the probe of every opening (probe.c) ---- */

/* LKS_E_NUMERICS, naming the first operation whose bits are wrong. */
lks_status lksi_probe(struct lksi_dev *dev);

#endif
