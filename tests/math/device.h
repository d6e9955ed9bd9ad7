/*
 * device.h - the sweeps on an OpenCL device, straight through the OpenCL API: a test tool that does
 * not depend on the library it tests.
 */
#ifndef LKS_TESTS_MATH_DEVICE_H
#define LKS_TESTS_MATH_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct math_device;

struct math_device_params {
    const char *select;  /* PLATFORM:DEVICE by number, or part of a name; NULL: the first device */
    const char *cl_dir;  /* folder that holds contract/ */
    const char *src_dir; /* folder that holds sweep.cl and functions.h */
    bool soft;           /* force the own division and square root */
};

/* NULL, with a reason in `why`, if there is no such device or the build fails. */
struct math_device *math_device_open(const struct math_device_params *params, char *why,
                                     size_t why_size);
void math_device_close(struct math_device *d);
/* Platform, device, driver, and whether / and sqrt are native, in one line. */
const char *math_device_name(const struct math_device *d);
bool math_device_is_soft(const struct math_device *d);

/* out[i] = canonical bits of function `name` at the pattern first + i * stride. */
bool math_device_run(struct math_device *d, const char *name, uint32_t first, uint32_t stride,
                     uint32_t n, uint32_t *out);
/* out[i] = canonical bits of a[i] / b[i] by the own sequence. */
bool math_device_divide(struct math_device *d, const uint32_t *a, const uint32_t *b, uint32_t n,
                        uint32_t *out);
/* Two results a column: row sum and row sum of squares of x[i + j * columns], j < n. */
bool math_device_rows(struct math_device *d, const float *x, uint32_t columns, uint32_t n,
                      uint32_t *out);

#endif
