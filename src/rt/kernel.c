/*
 * kernel.c - kernels of a program: arguments, launches, times.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt/grid.h"
#include "rt/program.h"

struct lksi_kernel {
    struct lksi_dev *dev;
    struct lksi_part *part;
    cl_kernel kernel;
    cl_event event; /* of the last launch, with profiling */
    uint64_t name_hash, last_variant;
    char name[96];
};

#define FNV_START         UINT64_C(14695981039346656037)
#define FNV_STEP(h, byte) (((h) ^ (byte)) * UINT64_C(1099511628211))

lks_status lksi_kernel_create(struct lksi_kernel **kernel, struct lksi_program *program,
                              size_t index, const char *name)
{
    const struct lksi_place *place = &program->place[index];
    cl_int e;
    struct lksi_kernel *k = lksi_alloc(1, sizeof *k);
    if (k == NULL)
        return LKS_E_MEMORY;
    k->dev = program->dev;
    k->part = program->part[place->part];
    snprintf(k->name, sizeof k->name, "%s_u%zu", name, place->index);
    k->kernel = clCreateKernel(k->part->program, k->name, &e);
    if (e != CL_SUCCESS) {
        free(k);
        return lksi_cl_fail(e, "clCreateKernel", "kernel %s of unit %zu on %s", name, index,
                            program->dev->limits.name);
    }
    k->name_hash = FNV_START;
    for (const char *c = k->name; *c != '\0'; c++)
        k->name_hash = FNV_STEP(k->name_hash, (unsigned char)*c);
    *kernel = k;
    return LKS_OK;
}

void lksi_kernel_destroy(struct lksi_kernel **kernel)
{
    struct lksi_kernel *k = *kernel;
    if (k == NULL)
        return;
    if (k->event != NULL)
        clReleaseEvent(k->event);
    clReleaseKernel(k->kernel);
    free(k);
    *kernel = NULL;
}

lks_status lksi_kernel_set_buf(struct lksi_kernel *kernel, unsigned index, struct lksi_buf *buf)
{
    return lksi_kernel_set_data(kernel, index, &buf->mem, sizeof buf->mem);
}

lks_status lksi_kernel_set_data(struct lksi_kernel *kernel, unsigned index, const void *data,
                                size_t bytes)
{
    cl_int e = clSetKernelArg(kernel->kernel, index, bytes, data);
    return e == CL_SUCCESS ? LKS_OK
                           : lksi_cl_fail(e, "clSetKernelArg", "kernel %s, argument %u, %zu bytes",
                                          kernel->name, index, bytes);
}

/* What PoCL compiles a kernel for: the local size, and whether the grid is below 65,536. Without a
 * local size it chooses one from the global size, which then counts instead. */
static uint64_t variant_of(const struct lksi_kernel *k, int dims, const size_t *global,
                           const size_t *local)
{
    uint64_t h = k->name_hash; /* FNV-1a */
    uint64_t word[4] = {1, 1, 1, 0};
    for (int i = 0; i < dims; i++) {
        word[i] = local != NULL ? local[i] : global[i];
        word[3] |= (uint64_t)(global[i] >= 65536);
    }
    word[3] |= local == NULL ? 2 : 0;
    for (int i = 0; i < 4; i++)
        for (int byte = 0; byte < 8; byte++)
            h = FNV_STEP(h, (word[i] >> (8 * byte)) & 255);
    return h;
}

static lks_status launch_failed(const struct lksi_kernel *k, cl_int e, int dims,
                                const size_t *global, const size_t *local)
{
    size_t allowed = 0;
    char group[64] = "chosen by the driver";
    clGetKernelWorkGroupInfo(k->kernel, k->dev->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof allowed,
                             &allowed, NULL);
    if (local != NULL)
        snprintf(group, sizeof group, "%zux%zux%zu", local[0], dims > 1 ? local[1] : 1,
                 dims > 2 ? local[2] : 1);
    return lksi_cl_fail(e, "clEnqueueNDRangeKernel",
                        "kernel %s, %zux%zux%zu items in groups %s (at most %zu on %s)", k->name,
                        global[0], dims > 1 ? global[1] : 1, dims > 2 ? global[2] : 1, group,
                        allowed, k->dev->limits.name);
}

struct launch {
    struct lksi_kernel *kernel;
    int dims;
    const size_t *global, *local;
};

static lks_status enqueue(void *ctx)
{
    const struct launch *l = ctx;
    struct lksi_kernel *k = l->kernel;
    cl_event event = NULL;
    cl_int e = clEnqueueNDRangeKernel(k->dev->queue, k->kernel, (cl_uint)l->dims, NULL, l->global,
                                      l->local, 0, NULL, k->dev->profile ? &event : NULL);
    if (e != CL_SUCCESS)
        return launch_failed(k, e, l->dims, l->global, l->local);
    if (k->event != NULL)
        clReleaseEvent(k->event);
    k->event = event;
    return LKS_OK;
}

/* Name and local size within a program. */
static uint64_t grid_id(const struct launch *l)
{
    uint64_t h = l->kernel->name_hash;
    for (const char *c = l->kernel->part->key; *c != '\0'; c++)
        h = FNV_STEP(h, (unsigned char)*c);
    for (int i = 0; i < l->dims; i++)
        h = FNV_STEP(h, (uint64_t)(l->local != NULL ? l->local[i] : l->global[i]));
    return h;
}

static size_t width_of(const struct launch *l)
{
    size_t width = 0;
    for (int i = 0; i < l->dims; i++)
        width = l->global[i] > width ? l->global[i] : width;
    return width;
}

lks_status lksi_kernel_launch(struct lksi_kernel *k, int dims, const size_t *global,
                              const size_t *local)
{
    struct launch launch = {k, dims, global, local};
    lks_status st;
    if (local != NULL && local[0] == 0)
        launch.local = NULL;
    for (int i = 0; i < dims; i++)
        if (global[i] == 0)
            return LKS_OK;
    if (!k->dev->late)
        return enqueue(&launch);
    uint64_t variant = variant_of(k, dims, global, launch.local);
    st = k->dev->miscounts
             ? lksi_grid_launch(k->dev, grid_id(&launch), width_of(&launch), enqueue, &launch)
             : enqueue(&launch);
    if (st != LKS_OK)
        return st;
    if (variant != k->last_variant)
        lksi_part_launched(k->part, variant);
    k->last_variant = variant;
    return LKS_OK;
}

lks_status lksi_kernel_span(struct lksi_kernel *k, struct lksi_span *span)
{
    static const cl_profiling_info what[] = {
        CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
    cl_ulong ns[3] = {0};
    if (k->event == NULL)
        return lksi_fail(LKS_E_ARGUMENT,
                         "kernel %s: no time; it was not launched, or the device "
                         "was opened without profiling",
                         k->name);
    cl_int e = clWaitForEvents(1, &k->event);
    for (size_t i = 0; i < LKSI_COUNT(what) && e == CL_SUCCESS; i++)
        e = clGetEventProfilingInfo(k->event, what[i], sizeof ns[i], &ns[i], NULL);
    if (e != CL_SUCCESS)
        return lksi_cl_fail(e, "clGetEventProfilingInfo", "kernel %s", k->name);
    *span = (struct lksi_span){ns[0], ns[1], ns[2]};
    return LKS_OK;
}

lks_status lksi_kernel_time(struct lksi_kernel *k, uint64_t *ns)
{
    struct lksi_span span = {0};
    lks_status st = lksi_kernel_span(k, &span);
    if (st == LKS_OK)
        *ns = span.end - span.start;
    return st;
}
