/*
 * buffer.c - device memory: creation within the device's limits, parts, reads, writes, uploads; and
 * memory of the host that the device reads by itself.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "rt/rt_cl.h"

#define MIB(bytes) ((double)(bytes) / 1048576.0)

/* Refuses what the device said it cannot hold, before the driver fails in its own words. */
static lks_status check_size(const struct lksi_dev *dev, uint64_t bytes)
{
    const struct lksi_limits *l = &dev->limits;
    if (bytes > l->memory)
        return lksi_fail(LKS_E_MEMORY,
                         "a buffer of %.1f MiB does not fit into the %.1f MiB of %s; use a smaller "
                         "batch or another device",
                         MIB(bytes), MIB(l->memory), l->name);
    if (bytes > l->max_alloc)
        return lksi_fail(LKS_E_MEMORY,
                         "a buffer of %.1f MiB is above the largest single allocation of %s, %.1f "
                         "MiB (CL_DEVICE_MAX_MEM_ALLOC_SIZE); use a smaller batch",
                         MIB(bytes), l->name, MIB(l->max_alloc));
    return LKS_OK;
}

static lks_status fill_zero(struct lksi_buf *b, cl_event *event)
{
    const cl_uint zero = 0;
    uint64_t bytes = b->bytes > 0 ? b->bytes : 4;
    size_t pattern = bytes % 4 == 0 ? 4 : 1;
    cl_int e = clEnqueueFillBuffer(b->dev->queue, b->mem, &zero, pattern, 0, (size_t)bytes, 0, NULL,
                                   event);
    return e == CL_SUCCESS ? LKS_OK
                           : lksi_cl_fail(e, "clEnqueueFillBuffer", "a buffer of %.1f MiB on %s",
                                          MIB(bytes), b->dev->limits.name);
}

/* Creates and fills; waits for the fill, since an upload on the other queue could overtake it, and
 * since drivers that allocate late report a lack of memory here. */
static lks_status create_cl(struct lksi_buf *b)
{
    cl_event event = NULL;
    lks_status st = LKS_OK;
    cl_int e;
    b->mem = clCreateBuffer(b->dev->context, CL_MEM_READ_WRITE,
                            (size_t)(b->bytes > 0 ? b->bytes : 4), NULL, &e);
    if (e != CL_SUCCESS)
        return lksi_cl_fail(e, "clCreateBuffer", "a buffer of %.1f MiB on %s", MIB(b->bytes),
                            b->dev->limits.name);
    LKSI_TRY(fill_zero(b, &event));
    e = clWaitForEvents(1, &event);
    clReleaseEvent(event);
    if (e != CL_SUCCESS) {
        st = lksi_cl_fail(e, "clWaitForEvents", "zeroing a buffer of %.1f MiB on %s", MIB(b->bytes),
                          b->dev->limits.name);
        goto fail;
    }
    return LKS_OK;
fail:
    clReleaseMemObject(b->mem);
    return st;
}

lks_status lksi_buf_create(struct lksi_buf **buf, struct lksi_dev *dev, uint64_t bytes)
{
    struct lksi_buf *b = NULL;
    lks_status st;
    LKSI_TRY(check_size(dev, bytes));
    b = lksi_alloc(1, sizeof *b);
    if (b == NULL)
        return LKS_E_MEMORY;
    b->dev = dev;
    b->bytes = bytes;
    if (dev->id == NULL) {
        b->host = lksi_alloc_aligned((size_t)bytes);
        st = b->host != NULL ? LKS_OK : LKS_E_MEMORY;
    } else {
        st = create_cl(b);
    }
    if (st != LKS_OK)
        goto fail;
    *buf = b;
    return LKS_OK;
fail:
    free(b);
    return st;
}

/* Memory that the device can read stays where it is while it is mapped. */
static lks_status create_staging(struct lksi_buf *b)
{
    lks_status st;
    cl_int e;
    b->mem = clCreateBuffer(b->dev->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                            (size_t)b->bytes, NULL, &e);
    if (e != CL_SUCCESS)
        return lksi_cl_fail(e, "clCreateBuffer", "%.1f MiB of the host's memory for %s",
                            MIB(b->bytes), b->dev->limits.name);
    b->host = clEnqueueMapBuffer(b->dev->upload, b->mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                 (size_t)b->bytes, 0, NULL, NULL, &e);
    if (e != CL_SUCCESS) {
        st = lksi_cl_fail(e, "clEnqueueMapBuffer", "%.1f MiB of the host's memory for %s",
                          MIB(b->bytes), b->dev->limits.name);
        clReleaseMemObject(b->mem);
        return st;
    }
    memset(b->host, 0, (size_t)b->bytes);
    return LKS_OK;
}

lks_status lksi_buf_staging(struct lksi_buf **buf, struct lksi_dev *dev, uint64_t bytes)
{
    struct lksi_buf *b = NULL;
    lks_status st = LKS_OK;
    if (dev->id == NULL)
        return lksi_buf_create(buf, dev, bytes);
    b = lksi_alloc(1, sizeof *b);
    if (b == NULL)
        return LKS_E_MEMORY;
    b->dev = dev;
    b->bytes = bytes;
    LKSI_TRY(create_staging(b));
    *buf = b;
    return LKS_OK;
fail:
    free(b);
    return st;
}

/*
 * The region as an OpenCL object. It lives as long as its buffer: NVIDIA's driver 580 crashes when
 * overlapping sub-buffers of different sizes are released in another order than the reverse of
 * their creation.
 */
static lks_status region_of(struct lksi_buf *b, uint64_t offset, uint64_t bytes, cl_mem *mem)
{
    cl_buffer_region place = {(size_t)offset, (size_t)bytes};
    cl_int e;
    for (size_t i = 0; i < b->n_region; i++)
        if (b->region[i].offset == offset && b->region[i].bytes == bytes) {
            *mem = b->region[i].mem;
            return LKS_OK;
        }
    if (!lksi_grow(&b->region, &b->region_capacity, b->n_region + 1, sizeof *b->region))
        return LKS_E_MEMORY;
    *mem = clCreateSubBuffer(b->mem, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &place, &e);
    if (e != CL_SUCCESS)
        return lksi_cl_fail(e, "clCreateSubBuffer", "a part of %llu bytes at %llu on %s",
                            (unsigned long long)bytes, (unsigned long long)offset,
                            b->dev->limits.name);
    b->region[b->n_region++] = (struct lksi_region){offset, bytes, *mem};
    return LKS_OK;
}

lks_status lksi_buf_part(struct lksi_buf **buf, struct lksi_buf *parent, uint64_t offset,
                         uint64_t bytes)
{
    struct lksi_dev *dev = parent->dev;
    if (bytes == 0 || offset > parent->bytes || bytes > parent->bytes - offset ||
        offset % dev->limits.base_align != 0 || parent->is_part)
        return lksi_fail(
            LKS_E_ARGUMENT,
            "a part of %llu bytes at %llu does not fit a %s of %llu bytes (parts start "
            "at multiples of %u, and have no parts themselves)",
            (unsigned long long)bytes, (unsigned long long)offset,
            parent->is_part ? "part" : "buffer", (unsigned long long)parent->bytes,
            dev->limits.base_align);
    struct lksi_buf *b = lksi_alloc(1, sizeof *b);
    if (b == NULL)
        return LKS_E_MEMORY;
    b->dev = dev;
    b->bytes = bytes;
    b->is_part = true;
    if (dev->id == NULL) {
        b->host = parent->host + offset;
    } else {
        lks_status st = region_of(parent, offset, bytes, &b->mem);
        if (st != LKS_OK) {
            free(b);
            return st;
        }
    }
    *buf = b;
    return LKS_OK;
}

void lksi_buf_destroy(struct lksi_buf **buf)
{
    struct lksi_buf *b = *buf;
    if (b == NULL)
        return;
    for (size_t i = b->n_region; i > 0; i--)
        clReleaseMemObject(b->region[i - 1].mem);
    free(b->region);
    if (b->mem != NULL && b->host != NULL && /* of lksi_buf_staging */
        clEnqueueUnmapMemObject(b->dev->upload, b->mem, b->host, 0, NULL, NULL) == CL_SUCCESS)
        clFinish(b->dev->upload);
    if (b->mem != NULL && !b->is_part)
        clReleaseMemObject(b->mem);
    else if (!b->is_part)
        free(b->host);
    free(b);
    *buf = NULL;
}

uint64_t lksi_buf_bytes(const struct lksi_buf *buf)
{
    return buf->bytes;
}

void *lksi_buf_host(struct lksi_buf *buf)
{
    return buf->host;
}

static lks_status check_range(const struct lksi_buf *b, uint64_t offset, uint64_t bytes)
{
    if (offset <= b->bytes && bytes <= b->bytes - offset)
        return LKS_OK;
    return lksi_fail(LKS_E_ARGUMENT, "bytes [%llu, +%llu) reach beyond a buffer of %llu bytes",
                     (unsigned long long)offset, (unsigned long long)bytes,
                     (unsigned long long)b->bytes);
}

lks_status lksi_buf_write(struct lksi_buf *b, uint64_t offset, const void *data, uint64_t bytes,
                          bool blocking)
{
    lks_status st = check_range(b, offset, bytes);
    if (st != LKS_OK || bytes == 0)
        return st;
    if (b->mem == NULL) {
        memcpy(b->host + offset, data, (size_t)bytes);
        return LKS_OK;
    }
    cl_int e = clEnqueueWriteBuffer(b->dev->queue, b->mem, blocking ? CL_TRUE : CL_FALSE,
                                    (size_t)offset, (size_t)bytes, data, 0, NULL, NULL);
    return e == CL_SUCCESS ? LKS_OK
                           : lksi_cl_fail(e, "clEnqueueWriteBuffer", "writing %.1f MiB to %s",
                                          MIB(bytes), b->dev->limits.name);
}

lks_status lksi_buf_read(struct lksi_buf *b, uint64_t offset, void *data, uint64_t bytes)
{
    lks_status st = check_range(b, offset, bytes);
    if (st != LKS_OK || bytes == 0)
        return st;
    if (b->mem == NULL) {
        memcpy(data, b->host + offset, (size_t)bytes);
        return LKS_OK;
    }
    cl_int e = clEnqueueReadBuffer(b->dev->queue, b->mem, CL_TRUE, (size_t)offset, (size_t)bytes,
                                   data, 0, NULL, NULL);
    return e == CL_SUCCESS ? LKS_OK
                           : lksi_cl_fail(e, "clEnqueueReadBuffer", "reading %.1f MiB from %s",
                                          MIB(bytes), b->dev->limits.name);
}

lks_status lksi_buf_zero(struct lksi_buf *b)
{
    if (b->mem != NULL)
        return fill_zero(b, NULL);
    memset(b->host, 0, (size_t)b->bytes);
    return LKS_OK;
}

lks_status lksi_buf_upload(struct lksi_buf *b, uint64_t offset, const void *data, uint64_t bytes,
                           uint64_t after)
{
    struct lksi_dev *dev = b->dev;
    cl_event behind = NULL, done = NULL;
    lks_status st;
    cl_int e;
    LKSI_TRY(check_range(b, offset, bytes));
    if (bytes == 0)
        return LKS_OK;
    if (b->mem == NULL) {
        memcpy(b->host + offset, data, (size_t)bytes);
        return LKS_OK;
    }
    if (after != 0)
        LKSI_TRY(lksi_mark_event(dev, after, &behind));
    e = clEnqueueWriteBuffer(dev->upload, b->mem, CL_FALSE, (size_t)offset, (size_t)bytes, data,
                             behind != NULL ? 1 : 0, behind != NULL ? &behind : NULL, &done);
    if (e != CL_SUCCESS)
        return lksi_cl_fail(e, "clEnqueueWriteBuffer", "uploading %.1f MiB to %s", MIB(bytes),
                            dev->limits.name);
    if (dev->last_upload != NULL)
        clReleaseEvent(dev->last_upload); /* the upload queue is in order: the last one suffices */
    dev->last_upload = done;
    e = clFlush(dev->upload);
    if (e != CL_SUCCESS)
        return lksi_cl_fail(e, "clFlush", "uploading to %s", dev->limits.name);
fail:
    return st;
}
