/* device.c - see device.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

#include "device.h"

struct math_device {
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    bool soft;
    char name[1024];
};

/* The selector names platform and device numbers, or a part of the device's or platform's name. */
static bool matches(const char *select, unsigned p, unsigned d, const char *platform,
                    const char *device)
{
    char number[32];
    if (select == NULL)
        return true;
    snprintf(number, sizeof number, "%u:%u", p, d);
    return strcmp(select, number) == 0 || strstr(platform, select) != NULL ||
           strstr(device, select) != NULL;
}

static cl_device_id find(struct math_device *m, const char *select)
{
    cl_platform_id platforms[16];
    cl_uint np = 0;
    if (clGetPlatformIDs(16, platforms, &np) != CL_SUCCESS)
        return NULL;
    for (cl_uint p = 0; p < np && p < 16; p++) {
        cl_device_id devices[16];
        cl_uint nd = 0;
        if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 16, devices, &nd) != CL_SUCCESS)
            continue;
        for (cl_uint d = 0; d < nd && d < 16; d++) {
            char pn[256] = "", dn[256] = "", dv[128] = "";
            cl_device_fp_config fp = 0;
            clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof pn, pn, NULL);
            clGetDeviceInfo(devices[d], CL_DEVICE_NAME, sizeof dn, dn, NULL);
            clGetDeviceInfo(devices[d], CL_DRIVER_VERSION, sizeof dv, dv, NULL);
            clGetDeviceInfo(devices[d], CL_DEVICE_SINGLE_FP_CONFIG, sizeof fp, &fp, NULL);
            if (!matches(select, p, d, pn, dn))
                continue;
            if ((fp & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) == 0)
                m->soft = true;
            snprintf(m->name, sizeof m->name, "%s, %s, driver %s, %s division and square root", pn,
                     dn, dv, m->soft ? "own" : "native");
            return devices[d];
        }
    }
    return NULL;
}

static bool build(struct math_device *m, cl_device_id device, const struct math_device_params *p,
                  char *why, size_t why_size)
{
    const char *text = "#include \"sweep.cl\"\n";
    char options[2048];
    cl_int err;
    snprintf(options, sizeof options, "-cl-std=CL1.2 -I%s -I%s %s", p->cl_dir, p->src_dir,
             m->soft ? "-DLKS_SOFT_DIVSQRT=1"
                     : "-DLKS_NATIVE_DIVSQRT -cl-fp32-correctly-rounded-divide-sqrt");
    m->program = clCreateProgramWithSource(m->context, 1, &text, NULL, &err);
    if (err != CL_SUCCESS) {
        snprintf(why, why_size, "clCreateProgramWithSource: %d", err);
        return false;
    }
    err = clBuildProgram(m->program, 1, &device, options, NULL, NULL);
    if (err != CL_SUCCESS) {
        int used = snprintf(why, why_size, "clBuildProgram: %d: ", err);
        if (used > 0 && (size_t)used < why_size)
            clGetProgramBuildInfo(m->program, device, CL_PROGRAM_BUILD_LOG, why_size - (size_t)used,
                                  why + used, NULL);
        return false;
    }
    return true;
}

struct math_device *math_device_open(const struct math_device_params *params, char *why,
                                     size_t why_size)
{
    struct math_device *m = calloc(1, sizeof *m);
    cl_int err = CL_SUCCESS;
    if (m == NULL)
        return NULL;
    m->soft = params->soft;
    cl_device_id device = find(m, params->select);
    if (device == NULL) {
        snprintf(why, why_size, "no OpenCL device%s%s", params->select != NULL ? " named " : "",
                 params->select != NULL ? params->select : "");
        goto fail;
    }
    m->context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
    if (err == CL_SUCCESS)
        m->queue = clCreateCommandQueue(m->context, device, 0, &err);
    if (err != CL_SUCCESS) {
        snprintf(why, why_size, "no context or queue: %d", err);
        goto fail;
    }
    if (!build(m, device, params, why, why_size))
        goto fail;
    return m;
fail:
    math_device_close(m);
    return NULL;
}

void math_device_close(struct math_device *m)
{
    if (m == NULL)
        return;
    if (m->program != NULL)
        clReleaseProgram(m->program);
    if (m->queue != NULL)
        clReleaseCommandQueue(m->queue);
    if (m->context != NULL)
        clReleaseContext(m->context);
    free(m);
}

const char *math_device_name(const struct math_device *m)
{
    return m->name;
}

bool math_device_is_soft(const struct math_device *m)
{
    return m->soft;
}

struct argument {
    size_t size;
    const void *value;
};

/* Runs a kernel over n work-items and reads `bytes` of its result back. */
static bool launch(struct math_device *m, const char *name, const struct argument *args,
                   unsigned count, size_t n, cl_mem result, size_t bytes, void *out)
{
    cl_int err;
    cl_kernel kernel = clCreateKernel(m->program, name, &err);
    if (err != CL_SUCCESS) {
        fprintf(stderr, "%s: clCreateKernel: %d\n", name, err);
        return false;
    }
    for (unsigned i = 0; i < count && err == CL_SUCCESS; i++)
        err = clSetKernelArg(kernel, i, args[i].size, args[i].value);
    if (err == CL_SUCCESS)
        err = clEnqueueNDRangeKernel(m->queue, kernel, 1, NULL, &n, NULL, 0, NULL, NULL);
    if (err == CL_SUCCESS)
        err = clEnqueueReadBuffer(m->queue, result, CL_TRUE, 0, bytes, out, 0, NULL, NULL);
    clReleaseKernel(kernel);
    if (err != CL_SUCCESS)
        fprintf(stderr, "%s: OpenCL error %d\n", name, err);
    return err == CL_SUCCESS;
}

static cl_mem buffer(struct math_device *m, size_t bytes, const void *data)
{
    cl_int err;
    cl_mem b = clCreateBuffer(m->context, data != NULL ? CL_MEM_COPY_HOST_PTR : CL_MEM_WRITE_ONLY,
                              bytes, (void *)(uintptr_t)data, &err);
    return err == CL_SUCCESS ? b : NULL;
}

bool math_device_run(struct math_device *m, const char *name, uint32_t first, uint32_t stride,
                     uint32_t n, uint32_t *out)
{
    char kernel[64];
    size_t bytes = (size_t)n * sizeof *out;
    cl_mem b = buffer(m, bytes, NULL);
    struct argument args[] = {{sizeof first, &first}, {sizeof stride, &stride}, {sizeof b, &b}};
    snprintf(kernel, sizeof kernel, "sweep_%s", name);
    bool ok = b != NULL && launch(m, kernel, args, 3, n, b, bytes, out);
    if (b != NULL)
        clReleaseMemObject(b);
    return ok;
}

bool math_device_divide(struct math_device *m, const uint32_t *a, const uint32_t *b, uint32_t n,
                        uint32_t *out)
{
    size_t bytes = (size_t)n * sizeof *out;
    cl_mem mem[3] = {buffer(m, bytes, a), buffer(m, bytes, b), buffer(m, bytes, NULL)};
    struct argument args[] = {
        {sizeof mem[0], &mem[0]}, {sizeof mem[1], &mem[1]}, {sizeof mem[2], &mem[2]}};
    bool ok = mem[0] != NULL && mem[1] != NULL && mem[2] != NULL &&
              launch(m, "sweep_division", args, 3, n, mem[2], bytes, out);
    for (int i = 0; i < 3; i++)
        if (mem[i] != NULL)
            clReleaseMemObject(mem[i]);
    return ok;
}

bool math_device_rows(struct math_device *m, const float *x, uint32_t columns, uint32_t n,
                      uint32_t *out)
{
    size_t bytes = 2 * (size_t)columns * sizeof *out;
    cl_mem mem[2] = {buffer(m, (size_t)columns * n * sizeof *x, x), buffer(m, bytes, NULL)};
    struct argument args[] = {{sizeof mem[0], &mem[0]},
                              {sizeof columns, &columns},
                              {sizeof n, &n},
                              {sizeof mem[1], &mem[1]}};
    bool ok = mem[0] != NULL && mem[1] != NULL &&
              launch(m, "sweep_rows", args, 4, columns, mem[1], bytes, out);
    for (int i = 0; i < 2; i++)
        if (mem[i] != NULL)
            clReleaseMemObject(mem[i]);
    return ok;
}
