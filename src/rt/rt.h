/*
 * rt.h - the run time: devices, buffers, programs and launches, alike for OpenCL and for `ref`
 * (plain C on the host). Only src/rt includes an OpenCL header.
 *
 * A `lksi_dev` is used by one thread at a time; different handles are independent, also on one
 * physical device. Work on a device runs in the order in which it was queued.
 */
#ifndef LKSI_RT_H
#define LKSI_RT_H

#include "base/base.h"

struct lksi_dev;     /* an open device: context, queues, caches */
struct lksi_buf;     /* memory on a device, or a part of it */
struct lksi_program; /* kernels built for one device */
struct lksi_kernel;  /* one kernel of a program; arguments are set at launch */

enum lksi_dev_type { LKSI_DEV_REF, LKSI_DEV_CPU, LKSI_DEV_GPU, LKSI_DEV_OTHER };

/* What a device is and what it allows. Strings are owned by the device or the listing. */
struct lksi_limits {
    enum lksi_dev_type type;
    char platform[128], name[128], vendor[128], driver[128], version[128];
    int platform_index, device_index; /* within the loader's list; -1 for `ref` */
    uint32_t vendor_id;               /* CL_DEVICE_VENDOR_ID; 0x10de is NVIDIA */
    uint32_t compute_units;
    uint64_t memory, max_alloc, local_memory; /* bytes */
    size_t max_group, max_item[3];            /* work-items */
    uint32_t base_align;                      /* bytes a part of a buffer must be aligned to */
    bool native_divsqrt;                      /* CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT */
    bool has_fma, has_denorm;                 /* CL_FP_FMA, CL_FP_DENORM */
    bool unified_memory;
    char extensions[4096];
};

/* ---- discovery (device.c) ---- */

/*
 * All devices of all platforms, `ref` last. Free with free(). LKS_OK with only `ref` if the
 * loader finds no platform; `*note` (may be NULL) then points to a static text that says where it
 * looked and which package brings an implementation; else to "".
 */
lks_status lksi_dev_list(struct lksi_limits **list, size_t *count, const char **note);

struct lksi_dev_params {
    const char
        *select;  /* cpu | gpu | ref | PLATFORM:N | part of a name; NULL: first GPU, else CPU */
    int threads;  /* of `ref`; 0: the number of processors */
    bool profile; /* record events with times */
    bool soft_divsqrt;     /* force the contract's own division and square root */
    const char *cache_dir; /* of program binaries; NULL: the user's cache folder; "": no cache */
    bool always_binaries;  /* keep binaries also where the implementation keeps kernels itself */
    const char
        *kernel_dir;  /* read kernels from here in place of the embedded ones; NULL: embedded */
    const char *tuning; /* see plan/tuning.h; NULL: $LKS_TUNING, else the user's file */
    void *cl_context; /* the caller's own cl_context and cl_command_queue, or NULL */
    void *cl_queue;
};

/*
 * Opens the device that `select` names; an unknown or ambiguous name is LKS_E_DEVICE with the
 * candidates in the error text. `params` may be NULL.
 */
lks_status lksi_dev_open(struct lksi_dev **dev, const struct lksi_dev_params *params);
void lksi_dev_close(struct lksi_dev **dev);
const struct lksi_limits *lksi_dev_limits(const struct lksi_dev *dev);
bool lksi_dev_is_ref(const struct lksi_dev *dev);
/* What was named as tuning for it: a file, "none", "built-in", or NULL. */
const char *lksi_dev_tuning(const struct lksi_dev *dev);
/* True if kernels of this device must use the contract's own division and square root. */
bool lksi_dev_soft_divsqrt(const struct lksi_dev *dev);

/* ---- memory (buffer.c) ---- */

/* `bytes` of zeroed device memory. LKS_E_MEMORY names the size and the device's limit. */
lks_status lksi_buf_create(struct lksi_buf **buf, struct lksi_dev *dev, uint64_t bytes);
/* A part of `parent`, which must outlive it; offset is a multiple of limits.base_align. */
lks_status lksi_buf_part(struct lksi_buf **buf, struct lksi_buf *parent, uint64_t offset,
                         uint64_t bytes);
void lksi_buf_destroy(struct lksi_buf **buf);
uint64_t lksi_buf_bytes(const struct lksi_buf *buf);
/* Zeroed memory of the host at lksi_buf_host, for data on their way to the device: uploads from it
 * need no copy in between and leave the host's threads alone. No kernel may use it. */
lks_status lksi_buf_staging(struct lksi_buf **buf, struct lksi_dev *dev, uint64_t bytes);
/* Host address of a staging buffer, and of any buffer of `ref`; else NULL. */
void *lksi_buf_host(struct lksi_buf *buf);
/* Queued in order with launches. Blocking calls return when the bytes are there. A non-blocking
 * write needs `data` unchanged until lksi_dev_wait of a later mark. */
lks_status lksi_buf_write(struct lksi_buf *buf, uint64_t offset, const void *data, uint64_t bytes,
                          bool blocking);
lks_status lksi_buf_read(struct lksi_buf *buf, uint64_t offset, void *data, uint64_t bytes);
lks_status lksi_buf_zero(struct lksi_buf *buf);

/* Uploads beside compute: a write on the second queue that starts when `after` (a mark of earlier
 * compute, or 0) is reached; launches queued after lksi_dev_use_uploads wait for all uploads so
 * far. `data` must stay unchanged until a mark set after lksi_dev_use_uploads is reached. */
lks_status lksi_buf_upload(struct lksi_buf *buf, uint64_t offset, const void *data, uint64_t bytes,
                           uint64_t after);
lks_status lksi_dev_use_uploads(struct lksi_dev *dev);

/* ---- order (queue.c) ---- */

/* A mark behind everything queued so far; marks grow by one. */
lks_status lksi_dev_mark(struct lksi_dev *dev, uint64_t *mark);
/* Blocks until `mark` is reached (0: everything queued so far). */
lks_status lksi_dev_wait(struct lksi_dev *dev, uint64_t mark);
/* Hands queued work to the device without waiting. */
lks_status lksi_dev_flush(struct lksi_dev *dev);

/* ---- programs (program.c, cache.c) ---- */

/*
 * One piece of OpenCL C: an embedded file under cl/ ("op/conv2d_cpu.cl") or literal text, with
 * macros set in front of it and unset behind it, as are all macros that the text itself defines.
 * Contract headers stand once a program, before all units and their macros. `#include "x.h"` means
 * contract/x.h, `#include "x.cl"` a file beside the unit. In the text LKS_KERNEL(name) gives every
 * kernel, and LKS_FN(name) every helper function or type, a name that no other unit of the same
 * program has.
 */
struct lksi_unit {
    const char *source; /* embedded file name, or NULL if `text` is given */
    const char *text;
    const char *defines; /* "MR=6 NV=4 RELU", blanks between; may be "" */
    const char *options; /* build options beyond the fixed ones, e.g. "-cl-nv-opt-level=1"; "" */
};

struct lksi_build_progress {
    void (*fn)(void *user, size_t done, size_t total); /* may be NULL */
    void *user;
};

/*
 * Builds all units: as one program where builds are serialised (CPU devices), in parallel one by
 * one elsewhere; through the binary cache. Equal units are built once, also over the programs that
 * are alive on the device. LKS_E_DEVICE carries the build log's first lines and the unit's name.
 */
lks_status lksi_program_build(struct lksi_program **program, struct lksi_dev *dev,
                              const struct lksi_unit *units, size_t count,
                              struct lksi_build_progress progress);
void lksi_program_destroy(struct lksi_program **program);
/* The kernel `name` of unit `index`; a new object each call. */
lks_status lksi_kernel_create(struct lksi_kernel **kernel, struct lksi_program *program,
                              size_t index, const char *name);
void lksi_kernel_destroy(struct lksi_kernel **kernel);
/* SHA-256 (hex) behind unit `index`, the key of admission verdicts: of the binary, or, where the
 * binary grows with use (CPU devices), of its text, options, device, driver and our version. */
const char *lksi_program_digest(const struct lksi_program *program, size_t index);
/*
 * Stores binaries again where the implementation compiles late (PoCL builds per local size at the
 * first launch). Call it when all kernels ran, best at the end of a run. Nothing is done if every
 * launch so far was in the cache already, nor where the implementation keeps kernels itself, as
 * PoCL does unless POCL_KERNEL_CACHE is 0: giving a binary, PoCL compiles each kernel once more.
 */
lks_status lksi_program_settle(struct lksi_program *program);

/* A small text stored beside the cached binaries under `key` (admission verdicts, tuning). */
lks_status lksi_cache_get(struct lksi_dev *dev, const char *key, char **text); /* NULL: none */
lks_status lksi_cache_put(struct lksi_dev *dev, const char *key, const char *text);

/* Sets argument `index`: a buffer, `bytes` of data, or (data NULL) local memory. */
lks_status lksi_kernel_set_buf(struct lksi_kernel *kernel, unsigned index, struct lksi_buf *buf);
lks_status lksi_kernel_set_data(struct lksi_kernel *kernel, unsigned index, const void *data,
                                size_t bytes);
/* Queues the kernel. `local` NULL or local[0] 0: the implementation chooses. */
lks_status lksi_kernel_launch(struct lksi_kernel *kernel, int dims, const size_t *global,
                              const size_t *local);
/* Of the last launch of this kernel, only with params.profile: when it was queued, began and ended, in
 * ns of the device's clock. Waits for it. */
struct lksi_span {
    uint64_t queued, start, end;
};
lks_status lksi_kernel_span(struct lksi_kernel *kernel, struct lksi_span *span);
/* How long it ran, in ns. */
lks_status lksi_kernel_time(struct lksi_kernel *kernel, uint64_t *ns);

/* ---- CLBlast (clblast.c) ---- */

/* C[m][n] += op(A)[m][k] op(B)[k][n], row major; one product of alpha 1 and beta 1 for each `piece`
 * of k. */
lks_status lksi_clblast_sgemm(struct lksi_dev *dev, bool trans_a, bool trans_b, size_t m, size_t n,
                              size_t k, size_t piece, struct lksi_buf *a, size_t lda, struct lksi_buf *b,
                              size_t ldb, struct lksi_buf *c, size_t ldc);

/* NULL if CLBlast may be asked on this device, else why not (static text). */
const char *lksi_clblast_declines(const struct lksi_limits *limits);

/* ---- threads of `ref` (ref.c) ---- */

/* Runs fn(ctx, i) for i in [0, count) on the threads of `dev`; returns when all are done. */
void lksi_ref_parallel(struct lksi_dev *dev, uint64_t count, void (*fn)(void *ctx, uint64_t i),
                       void *ctx);
int lksi_ref_threads(const struct lksi_dev *dev);

/* ---- embedded kernels and tables of tuning (generated at build time) ---- */

struct lksi_embedded {
    const char *name; /* "contract/num.h" */
    const char *text;
};
/* Each ends with a NULL name: what lies under cl/ and under share/tuning/. */
extern const struct lksi_embedded lksi_embedded_files[], lksi_embedded_tuning[];

#endif
