/*
 * open.c - opens a device: context, one queue for compute and one for uploads, the probe.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fenv.h"
#include "rt/grid.h"
#include "rt/rt_cl.h"

/* "OpenCL C 1.2 ..." is at least 1.2: then that language is asked for, whatever the default. */
static bool has_cl12(cl_device_id id)
{
    char text[256] = "";
    int major = 0, minor = 0;
    if (clGetDeviceInfo(id, CL_DEVICE_OPENCL_C_VERSION, sizeof text, text, NULL) != CL_SUCCESS)
        return false;
    return sscanf(text, "OpenCL C %d.%d", &major, &minor) == 2 &&
           (major > 1 || (major == 1 && minor >= 2));
}

static void set_options(struct lksi_dev *d)
{
    snprintf(d->options, sizeof d->options, "%s%s", has_cl12(d->id) ? "-cl-std=CL1.2 " : "",
             d->soft_divsqrt ? "-DLKS_SOFT_DIVSQRT=1"
                             : "-cl-fp32-correctly-rounded-divide-sqrt -DLKS_NATIVE_DIVSQRT");
}

/* Everything that may change what a compiler makes of a text. */
static lks_status set_identity(struct lksi_dev *d, cl_platform_id platform)
{
    char version[256] = "";
    const char *const texts[] = {"lockstep " LKSI_VERSION, d->limits.platform, version,
                                 d->limits.name,           d->limits.vendor,   d->limits.driver,
                                 d->limits.version};
    if (platform != NULL)
        clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof version, version, NULL);
    return lksi_hash_texts(d->identity, texts, LKSI_COUNT(texts));
}

/* The caller's queue must keep our order, and tell times if they are asked for. */
static lks_status take_queue(struct lksi_dev *d, cl_command_queue queue)
{
    cl_command_queue_properties properties = 0;
    cl_int e =
        clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    if (e != CL_SUCCESS)
        return lksi_cl_fail(e, "clGetCommandQueueInfo", "the caller's queue");
    if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        return lksi_fail(LKS_E_ARGUMENT,
                         "the caller's queue is out of order; give an in-order one");
    if (d->profile && !(properties & CL_QUEUE_PROFILING_ENABLE))
        return lksi_fail(LKS_E_ARGUMENT,
                         "the caller's queue lacks CL_QUEUE_PROFILING_ENABLE, which "
                         "profiling needs");
    clRetainCommandQueue(queue);
    d->queue = queue;
    return LKS_OK;
}

static lks_status make_queue(struct lksi_dev *d, cl_command_queue *queue)
{
    cl_int e;
    *queue =
        clCreateCommandQueue(d->context, d->id, d->profile ? CL_QUEUE_PROFILING_ENABLE : 0, &e);
    return e == CL_SUCCESS ? LKS_OK : lksi_cl_fail(e, "clCreateCommandQueue", "%s", d->limits.name);
}

static lks_status check_device(const struct lksi_dev *d)
{
    cl_bool compiler = CL_FALSE, available = CL_FALSE, little = CL_FALSE;
    clGetDeviceInfo(d->id, CL_DEVICE_COMPILER_AVAILABLE, sizeof compiler, &compiler, NULL);
    clGetDeviceInfo(d->id, CL_DEVICE_AVAILABLE, sizeof available, &available, NULL);
    clGetDeviceInfo(d->id, CL_DEVICE_ENDIAN_LITTLE, sizeof little, &little, NULL);
    if (!available)
        return lksi_fail(LKS_E_DEVICE, "%s says that it is not available", d->limits.name);
    if (!compiler)
        return lksi_fail(LKS_E_DEVICE, "%s has no compiler for kernels", d->limits.name);
    if (!little)
        return lksi_fail(LKS_E_DEVICE, "%s is big-endian, which is not supported", d->limits.name);
    return LKS_OK;
}

/*
 * PoCL keeps every kernel that it compiled in a cache of its own, by the hash of the program's
 * text, unless told not to. Asking it for a binary compiles each kernel once more, without a local
 * size, which doubles the time of a cold start, and a warm start from the binary is not faster.
 */
static bool keeps_kernels(const struct lksi_limits *limits)
{
    const char *cache = getenv("POCL_KERNEL_CACHE");
    return strcmp(limits->platform, "Portable Computing Language") == 0 &&
           (cache == NULL || strcmp(cache, "0") != 0);
}

static lks_status open_cl(struct lksi_dev *d, const struct lksi_cl_device *c, cl_context context,
                          cl_command_queue queue, bool always_binaries)
{
    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)c->platform,
                                          0};
    lks_status st;
    cl_int e;
    d->id = c->id;
    d->soft_divsqrt = d->soft_divsqrt || !d->limits.native_divsqrt;
    /* Oclgrind calls itself a GPU; its compiler crashes where two threads use it (seen in 21.10). */
    d->late = d->limits.type == LKSI_DEV_CPU || strcmp(d->limits.platform, "Oclgrind") == 0;
    d->keeps_kernels = !always_binaries && keeps_kernels(&d->limits);
    set_options(d);
    LKSI_TRY(check_device(d));
    if (context != NULL) {
        clRetainContext(context);
        d->context = context;
    } else {
        d->context = clCreateContext(properties, 1, &d->id, NULL, NULL, &e);
        if (e != CL_SUCCESS)
            return lksi_cl_fail(e, "clCreateContext", "%s", d->limits.name);
    }
    LKSI_TRY(queue != NULL ? take_queue(d, queue) : make_queue(d, &d->queue));
    LKSI_TRY(make_queue(d, &d->upload));
    if (lksi_grid_miscounts(&d->limits)) {
        LKSI_TRY(lksi_grid_open(d));
        d->miscounts = true;
    }
    LKSI_TRY(lksi_probe(d));
fail:
    return st;
}

/* Opens one device of the listing. */
static lks_status open_one(struct lksi_dev **dev, const struct lksi_cl_device *c,
                           const struct lksi_dev_params *p, cl_context context,
                           cl_command_queue queue)
{
    const char *tuning = p->tuning != NULL ? p->tuning : getenv("LKS_TUNING");
    const char *kernels = p->kernel_dir != NULL ? p->kernel_dir : getenv("LKS_KERNEL_DIR");
    lks_status st;
    struct lksi_dev *d = lksi_alloc(1, sizeof *d);
    if (d == NULL)
        return LKS_E_MEMORY;
    d->limits = c->limits;
    d->soft_divsqrt = p->soft_divsqrt;
    d->profile = p->profile;
    d->mark_first = d->mark_next = d->mark_flushed = 1;
    d->cache_dir = lksi_cache_folder(p->cache_dir);
    if (kernels != NULL && kernels[0] != '\0' && (d->kernel_dir = lksi_strdup(kernels)) == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    if (tuning != NULL && (d->tuning = lksi_strdup(tuning[0] != '\0' ? tuning : "none")) == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    LKSI_TRY(set_identity(d, c->platform));
    if (c->id == NULL)
        LKSI_TRY(lksi_pool_create(&d->pool, p->threads));
    else
        LKSI_TRY(open_cl(d, c, context, queue, p->always_binaries));
    *dev = d;
    return LKS_OK;
fail:
    lksi_dev_close(&d);
    return st;
}

/* The listed device that the caller's context or queue stands on. */
static lks_status find_callers(const struct lksi_cl_device *list, size_t count,
                               const struct lksi_dev_params *p, cl_context *context, size_t *index)
{
    cl_device_id id[16] = {NULL};
    size_t bytes = 0;
    cl_int e = CL_SUCCESS;
    *context = p->cl_context;
    if (p->cl_queue != NULL) {
        e = clGetCommandQueueInfo(p->cl_queue, CL_QUEUE_DEVICE, sizeof id[0], id, &bytes);
        if (e == CL_SUCCESS && *context == NULL)
            e = clGetCommandQueueInfo(p->cl_queue, CL_QUEUE_CONTEXT, sizeof *context, context,
                                      NULL);
    } else {
        e = clGetContextInfo(*context, CL_CONTEXT_DEVICES, sizeof id, id, &bytes);
    }
    if (e != CL_SUCCESS)
        return lksi_cl_fail(e, "clGetContextInfo", "the caller's context or queue");
    if (bytes / sizeof id[0] > 1)
        return lksi_fail(LKS_E_ARGUMENT,
                         "the caller's context has several devices; give the queue too");
    for (size_t i = 0; i < count; i++) {
        if (list[i].id == id[0] && id[0] != NULL) {
            *index = i;
            return LKS_OK;
        }
    }
    return lksi_fail(LKS_E_DEVICE, "the device of the caller's context is in no platform's list");
}

static lks_status open_listed(struct lksi_dev **dev, const struct lksi_dev_params *p,
                              const struct lksi_cl_device *list, size_t count, const char *note,
                              size_t *order)
{
    cl_context context = NULL;
    size_t n = 0;
    lks_status st;
    if (p->cl_context != NULL || p->cl_queue != NULL) {
        LKSI_TRY(find_callers(list, count, p, &context, order));
        return open_one(dev, &list[order[0]], p, context, p->cl_queue);
    }
    LKSI_TRY(lksi_cl_select(list, count, note, p->select, order, &n));
    for (size_t i = 0; i < n; i++) {
        st = open_one(dev, &list[order[i]], p, NULL, NULL);
        if (st != LKS_E_NUMERICS && st != LKS_E_DEVICE)
            return st;
        if (i + 1 < n)
            lksi_log(LKS_LOG_WARNING, "device passed over: %s", lks_error_message());
    }
fail:
    return st;
}

static bool wants_ref(const struct lksi_dev_params *p)
{
    return p->select != NULL && strcasecmp(p->select, "ref") == 0 && p->cl_context == NULL &&
           p->cl_queue == NULL;
}

lks_status lksi_dev_open(struct lksi_dev **dev, const struct lksi_dev_params *params)
{
    const struct lksi_dev_params none = {0};
    struct lksi_cl_device *list = NULL;
    struct lksi_fenv fenv;
    const char *note = "";
    size_t *order = NULL;
    size_t count = 0;
    lks_status st;
    lksi_fenv_enter(&fenv);
    params = params != NULL ? params : &none;
    LKSI_TRY(lksi_cl_list(wants_ref(params), &list, &count, &note));
    order = lksi_alloc(count, sizeof *order);
    if (order == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    st = open_listed(dev, params, list, count, note, order);
fail:
    free(order);
    free(list);
    lksi_fenv_leave(&fenv);
    return st;
}

void lksi_dev_close(struct lksi_dev **dev)
{
    struct lksi_dev *d = *dev;
    if (d == NULL)
        return;
    if (d->queue != NULL)
        clFinish(d->queue);
    if (d->miscounts)
        lksi_grid_close(d);
    if (d->upload != NULL)
        clFinish(d->upload);
    lksi_marks_release(d);
    if (d->upload != NULL)
        clReleaseCommandQueue(d->upload);
    if (d->queue != NULL)
        clReleaseCommandQueue(d->queue);
    if (d->context != NULL)
        clReleaseContext(d->context);
    lksi_pool_destroy(&d->pool);
    free(d->kernel_dir);
    free(d->tuning);
    free(d->cache_dir);
    free(d);
    *dev = NULL;
}

const struct lksi_limits *lksi_dev_limits(const struct lksi_dev *dev)
{
    return &dev->limits;
}

bool lksi_dev_is_ref(const struct lksi_dev *dev)
{
    return dev->id == NULL;
}

const char *lksi_dev_tuning(const struct lksi_dev *dev)
{
    return dev->tuning;
}

bool lksi_dev_soft_divsqrt(const struct lksi_dev *dev)
{
    return dev->soft_divsqrt;
}
