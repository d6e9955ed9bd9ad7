/*
 * queue.c - order on a device: marks behind queued work, uploads beside it.
 *
 * A mark is an OpenCL marker event. Events are kept in a list from the oldest mark that may be
 * unreached; the queue is in order, so that reaching one mark reaches all earlier ones. On `ref`
 * everything is done when a call returns, and marks only count.
 */
#include <stdlib.h>
#include <string.h>

#include "rt/rt_cl.h"

/* Drops the events of marks below `mark`, all reached. */
static void drop_below(struct lksi_dev *dev, uint64_t mark)
{
    size_t n = (size_t)(mark - dev->mark_first);
    size_t left = (size_t)(dev->mark_next - mark);
    for (size_t i = 0; i < n; i++)
        clReleaseEvent(dev->mark_event[i]);
    memmove(dev->mark_event, dev->mark_event + n, left * sizeof *dev->mark_event);
    dev->mark_first = mark;
}

/* Drops what is reached by now, so that marks nobody waits for do not pile up. */
static void drop_reached(struct lksi_dev *dev)
{
    uint64_t mark = dev->mark_first;
    while (mark < dev->mark_next) {
        cl_int state = CL_QUEUED;
        clGetEventInfo(dev->mark_event[mark - dev->mark_first], CL_EVENT_COMMAND_EXECUTION_STATUS,
                       sizeof state, &state, NULL);
        if (state != CL_COMPLETE) /* an error (negative) stays for lksi_dev_wait to report */
            break;
        mark++;
    }
    if (mark > dev->mark_first)
        drop_below(dev, mark);
}

void lksi_marks_release(struct lksi_dev *dev)
{
    if (dev->mark_event != NULL)
        drop_below(dev, dev->mark_next);
    free(dev->mark_event);
    dev->mark_event = NULL;
    if (dev->last_upload != NULL)
        clReleaseEvent(dev->last_upload);
    dev->last_upload = NULL;
}

lks_status lksi_dev_mark(struct lksi_dev *dev, uint64_t *mark)
{
    cl_int e;
    if (dev->id == NULL) {
        *mark = dev->mark_next++;
        dev->mark_first = dev->mark_next;
        return LKS_OK;
    }
    if (dev->mark_next - dev->mark_first >= 16)
        drop_reached(dev);
    size_t n = (size_t)(dev->mark_next - dev->mark_first);
    if (!lksi_grow(&dev->mark_event, &dev->mark_capacity, n + 1, sizeof *dev->mark_event))
        return LKS_E_MEMORY;
    e = clEnqueueMarkerWithWaitList(dev->queue, 0, NULL, &dev->mark_event[n]);
    if (e != CL_SUCCESS)
        return lksi_cl_fail(e, "clEnqueueMarkerWithWaitList", "%s", dev->limits.name);
    *mark = dev->mark_next++;
    return LKS_OK;
}

lks_status lksi_mark_event(struct lksi_dev *dev, uint64_t mark, cl_event *event)
{
    *event = NULL;
    if (mark >= dev->mark_next)
        return lksi_fail(LKS_E_ARGUMENT, "mark %llu was never set", (unsigned long long)mark);
    if (mark < dev->mark_first)
        return LKS_OK;
    if (mark >= dev->mark_flushed) {
        cl_int e = clFlush(dev->queue);
        if (e != CL_SUCCESS)
            return lksi_cl_fail(e, "clFlush", "%s", dev->limits.name);
        dev->mark_flushed = dev->mark_next;
    }
    *event = dev->mark_event[mark - dev->mark_first];
    return LKS_OK;
}

lks_status lksi_dev_wait(struct lksi_dev *dev, uint64_t mark)
{
    cl_event event = NULL;
    lks_status st;
    cl_int e;
    if (mark >= dev->mark_next)
        return lksi_fail(LKS_E_ARGUMENT, "mark %llu was never set", (unsigned long long)mark);
    if (dev->id == NULL)
        return LKS_OK;
    if (mark == 0) {
        e = clFinish(dev->upload);
        if (e == CL_SUCCESS)
            e = clFinish(dev->queue);
        if (e != CL_SUCCESS)
            return lksi_cl_fail(e, "clFinish", "%s", dev->limits.name);
        drop_reached(dev);
        return LKS_OK;
    }
    LKSI_TRY(lksi_mark_event(dev, mark, &event));
    if (event == NULL)
        return LKS_OK;
    e = clWaitForEvents(1, &event);
    if (e != CL_SUCCESS)
        return lksi_cl_fail(e, "clWaitForEvents", "%s", dev->limits.name);
    drop_below(dev, mark + 1);
fail:
    return st;
}

lks_status lksi_dev_flush(struct lksi_dev *dev)
{
    if (dev->id == NULL)
        return LKS_OK;
    cl_int e = clFlush(dev->queue);
    if (e != CL_SUCCESS)
        return lksi_cl_fail(e, "clFlush", "%s", dev->limits.name);
    dev->mark_flushed = dev->mark_next;
    return LKS_OK;
}

lks_status lksi_dev_use_uploads(struct lksi_dev *dev)
{
    if (dev->last_upload == NULL)
        return LKS_OK;
    cl_int e = clEnqueueBarrierWithWaitList(dev->queue, 1, &dev->last_upload, NULL);
    if (e != CL_SUCCESS)
        return lksi_cl_fail(e, "clEnqueueBarrierWithWaitList", "%s", dev->limits.name);
    clReleaseEvent(dev->last_upload);
    dev->last_upload = NULL;
    return LKS_OK;
}
