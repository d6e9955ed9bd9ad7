/*
 * flat.c - geometry of the schedule `flat`, see flat.h.
 */
#include <stdio.h>
#include <string.h>

#include "op/flat.h"

size_t lksi_group(const struct lksi_limits *dev, size_t wanted)
{
    while (wanted > 1 && (wanted > dev->max_group || wanted > dev->max_item[0]))
        wanted /= 2;
    return wanted;
}

const char *lksi_cpu_declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    (void)call;
    return dev->type == LKSI_DEV_CPU ? NULL : "made for CPU devices";
}

const char *lksi_gpu_declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    (void)call;
    return dev->type == LKSI_DEV_GPU ? NULL : "made for GPUs";
}

const char *lksi_lanes_declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    if (dev->type == LKSI_DEV_GPU && (dev->max_group < 32 || dev->max_item[0] < 32))
        return "groups of 32 are too large";
    return lksi_gpu_declines(call, dev);
}

const char *lksi_flat_declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    (void)call;
    (void)dev;
    return NULL;
}

void lksi_flat_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                      const char *source, const char *kernel, struct lksi_recipe *r)
{
    struct lksi_launch *l = &r->launch[0];
    U64 n = (U64)lksi_desc_count(&call->out[0]), chunk, items;
    size_t group = 1;
    int vec;
    if (dev->type == LKSI_DEV_GPU) {
        /* Neighbours read neighbouring vectors. */
        vec = 4;
        chunk = 4;
        group = lksi_group(dev, 128);
    } else {
        /* A core streams through its chunks; some chunks a core even out the load. */
        vec = 16;
        chunk = n / (4u * (dev->compute_units > 0 ? dev->compute_units : 1u));
        chunk = chunk < 2048 ? 2048 : chunk > 65536 ? 65536 : chunk;
        chunk = (chunk + 63) / 64 * 64;
    }
    items = (n + chunk - 1) / chunk;
    r->n_launch = 1;
    l->source = source;
    l->kernel = kernel;
    snprintf(l->defines, sizeof l->defines, "VEC=%d", vec);
    for (int i = 0; i < call->n_in; i++)
        l->arg[l->n_arg++] = LKSI_IN(i);
    for (int i = 0; i < call->n_out; i++)
        l->arg[l->n_arg++] = LKSI_OUT(i);
    l->arg[l->n_arg++] = LKSI_U64(n);
    l->arg[l->n_arg++] = LKSI_U32(chunk);
    l->dims = 1;
    l->local[0] = group;
    l->global[0] = (size_t)((items + group - 1) / group * group);
}

bool lksi_flat_case(int index, bool long_run, struct lksi_desc *d)
{
    static const int64_t size[] = {1, 3, 15, 16, 17, 31, 64, 65, 509, 2047, 2048, 2049, 40009};
    if (index < (int)LKSI_COUNT(size))
        *d = lksi_desc_make(LKSI_F32, 1, size[index]);
    else if (index == (int)LKSI_COUNT(size))
        *d = lksi_desc_make(LKSI_F32, 4, (int64_t)2, (int64_t)5, (int64_t)7, (int64_t)3);
    else if (long_run && index == (int)LKSI_COUNT(size) + 1)
        *d = lksi_desc_make(LKSI_F32, 1, (int64_t)3000017);
    else
        return false;
    return true;
}
