/*
 * status.h - results of calls and the text that explains a failure.
 */
#ifndef LOCKSTEP_STATUS_H
#define LOCKSTEP_STATUS_H

#include <lockstep/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Every function that can fail returns one of these. Zero is success. Out-parameters are written
 * only on success.
 */
typedef enum lks_status {
    LKS_OK = 0,
    LKS_E_ARGUMENT,  /* a parameter of a call is outside what its comment allows */
    LKS_E_INPUT,     /* a file or its content is wrong (model, data, weights) */
    LKS_E_IO,        /* the operating system refused to read or write */
    LKS_E_MEMORY,    /* host or device memory is not enough */
    LKS_E_DEVICE,    /* no such device, or OpenCL reported an error */
    LKS_E_NUMERICS,  /* a device cannot keep the promise of the bits */
    LKS_E_NONFINITE, /* training met a NaN or an infinity */
    LKS_E_CANCELLED, /* a callback asked to stop */
    LKS_E_MISMATCH   /* the answer is no: two runs or files differ */
} lks_status;

/*
 * The text of the calling thread's latest failure: what, where, and what to do. Never NULL; an
 * empty string if nothing failed yet. Valid until the thread's next failing call.
 */
LKS_API const char *lks_error_message(void);

/* The name of a status, for example "LKS_E_INPUT". Never NULL. Thread-safe. */
LKS_API const char *lks_status_name(lks_status status);

#ifdef __cplusplus
}
#endif
#endif
