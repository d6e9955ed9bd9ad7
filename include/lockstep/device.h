/*
 * device.h - the devices a training can run on.
 *
 * Every OpenCL device that keeps the contract gives the same bits; `ref` is plain C on the host.
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
 * what to install; else "". Thread-safe.
 */
LKS_API lks_status lks_device_list(struct lks_device_info **list, size_t *count,
                                   const char **note);

struct lks_device_params {
    const char *select;    /* cpu, gpu, ref, PLATFORM:N or part of a name; NULL: the first GPU, else
                              the CPU device, else an error: never `ref` unasked */
    int threads;           /* of `ref`; 0: one a processor */
    bool own_divsqrt;      /* use the contract's own division and square root where the device
                              has correctly rounded ones too; same bits */
    const char *cache_dir; /* compiled kernels; NULL: $XDG_CACHE_HOME/lockstep or
                              ~/.cache/lockstep; "": none */
    void *cl_context;      /* the caller's own cl_context and in-order cl_command_queue, or NULL */
    void *cl_queue;
};
#define lks_device_params(...) (&(struct lks_device_params){__VA_ARGS__})

/*
 * Opens a device; `params` may be NULL. LKS_E_DEVICE if there is none or several of that name
 * (the text lists the candidates), LKS_E_NUMERICS if it cannot keep the bits (the text says why).
 * A device is used by one thread at a time; several handles may name one device. The caller
 * closes it after everything that uses it.
 */
LKS_API lks_status lks_device_open(lks_device **device, const struct lks_device_params *params);
LKS_API void lks_device_close(lks_device **device);
/* Valid until the device is closed. */
LKS_API const struct lks_device_info *lks_device_get_info(const lks_device *device);

#ifdef __cplusplus
}
#endif
#endif
