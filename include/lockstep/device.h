/*
 * device.h - the devices a training can run on.
 *
 * Every OpenCL device that keeps the contract gives the same bits; `ref` is plain C on the host.
 *
 *     lks_device *device;
 *     lks_device_open(&device, NULL);                                  the best one
 *     lks_device_open(&device, lks_device_params(.select = "cpu"));    or by name
 *     ...
 *     lks_device_close(&device);
 */
#ifndef LOCKSTEP_DEVICE_H
#define LOCKSTEP_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lks_device lks_device;

typedef enum lks_device_type {
    LKS_DEVICE_REF,
    LKS_DEVICE_CPU,
    LKS_DEVICE_GPU,
    LKS_DEVICE_OTHER
} lks_device_type;

struct lks_device_info {
    lks_device_type type;
    char platform[128], name[128], vendor[128], driver[128], version[128];
    char select[160];     /* what lks_device_params.select takes for exactly this device */
    uint32_t compute_units;
    uint64_t memory, max_allocation, local_memory; /* bytes */
    size_t max_group;                              /* work-items */
};

/*
 * All devices of all OpenCL platforms, `ref` last. Free *list with free(). If the loader finds no
 * platform the list holds only `ref`, and *note (may be NULL) is a static text that says why and
 * what to install; else "". LKS_E_MEMORY. Thread-safe.
 */
LKS_API lks_status lks_device_list(struct lks_device_info **list, size_t *count,
                                   const char **note);

#define LKS_MAX_THREADS 256 /* of `ref` */

struct lks_device_params {
    const char *select;    /* cpu, gpu, ref, PLATFORM:N or part of a name; NULL: the first GPU, else
                              the CPU device, else an error: never `ref` unasked. Not looked at with
                              cl_context or cl_queue */
    int threads;           /* of `ref`, at most LKS_MAX_THREADS; 0: one a processor */
    bool own_divsqrt;      /* use the contract's own division and square root where the device
                              has correctly rounded ones too; same bits */
    const char *cache_dir; /* compiled kernels; NULL: $XDG_CACHE_HOME/lockstep or
                              ~/.cache/lockstep; "": none */
    const char *tuning;    /* a file of `lockstep tune`: which schedules and tiles are fastest; NULL:
                              $LKS_TUNING, else the user's file for this device below
                              $XDG_CONFIG_HOME/lockstep or ~/.config/lockstep, if there is one.
                              Behind the file the library asks tables of its own; "built-in":
                              these alone; "" or "none": no tuning at all. Never changes a bit.
                              Read when a trainer is made, which fails with LKS_E_INPUT (file, line, remedy) if a
                              file that was named is damaged; the user's own is then left aside with
                              a warning */
    void *cl_context;      /* the caller's own cl_context and in-order cl_command_queue; either
                              alone is enough, but a context of several devices needs the queue.
                              Retained until lks_device_close; or NULL */
    void *cl_queue;
};
#ifndef __cplusplus
#define lks_device_params(...) (&(struct lks_device_params){__VA_ARGS__})
#endif
/* All zero. Thread-safe. */
LKS_API struct lks_device_params lks_device_params_default(void);

/*
 * Opens a device and checks on a small program that it computes as it must; `params` may be NULL.
 * LKS_E_DEVICE if there is none or several of that name (the text lists the candidates),
 * LKS_E_NUMERICS if it cannot keep the bits (the text says why; one reason is an application linked
 * with -ffast-math that started OpenCL before lockstep), LKS_E_ARGUMENT for an unusable context,
 * queue or number of threads, LKS_E_MEMORY. Blocks. The caller closes *device after everything that uses it.
 *
 * A handle, with all that was made on it, is used by one thread at a time. Different threads may
 * open, use and close different handles at once, also of one physical device.
 */
LKS_API lks_status lks_device_open(lks_device **device, const struct lks_device_params *params);
/* Waits for the device, closes the handle and sets *device to NULL; NULL and a pointer to NULL are
 * allowed. */
LKS_API void lks_device_close(lks_device **device);
/* What the device is; never NULL, and valid until the device is closed. Thread-safe. */
LKS_API const struct lks_device_info *lks_device_get_info(const lks_device *device);

#ifdef __cplusplus
}
#endif
#endif
