/*
 * api.c - the public functions of device.h on top of the run time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fenv.h"
#include "rt/api.h"

struct lks_device {
    struct lksi_dev *dev;
    struct lks_device_info info;
};

struct lksi_dev *lksi_device_dev(const lks_device *device)
{
    return device->dev;
}

static void fill_info(struct lks_device_info *info, const struct lksi_limits *l)
{
    static const lks_device_type types[] = {
        [LKSI_DEV_REF] = LKS_DEVICE_REF,
        [LKSI_DEV_CPU] = LKS_DEVICE_CPU,
        [LKSI_DEV_GPU] = LKS_DEVICE_GPU,
        [LKSI_DEV_OTHER] = LKS_DEVICE_OTHER,
    };
    memset(info, 0, sizeof *info);
    info->type = types[l->type];
    snprintf(info->platform, sizeof info->platform, "%s", l->platform);
    snprintf(info->name, sizeof info->name, "%s", l->name);
    snprintf(info->vendor, sizeof info->vendor, "%s", l->vendor);
    snprintf(info->driver, sizeof info->driver, "%s", l->driver);
    snprintf(info->version, sizeof info->version, "%s", l->version);
    if (l->type == LKSI_DEV_REF)
        snprintf(info->select, sizeof info->select, "ref");
    else
        snprintf(info->select, sizeof info->select, "%d:%d", l->platform_index, l->device_index);
    info->compute_units = l->compute_units;
    info->memory = l->memory;
    info->max_allocation = l->max_alloc;
    info->local_memory = l->local_memory;
    info->max_group = l->max_group;
}

static lks_status list(struct lks_device_info **out, size_t *count, const char **note)
{
    struct lksi_limits *limits = NULL;
    struct lks_device_info *infos;
    size_t n;
    lks_status st = lksi_dev_list(&limits, &n, note);
    if (st != LKS_OK)
        return st;
    infos = lksi_alloc(n, sizeof *infos);
    for (size_t i = 0; infos != NULL && i < n; i++)
        fill_info(&infos[i], &limits[i]);
    free(limits);
    if (infos == NULL)
        return LKS_E_MEMORY;
    *out = infos;
    *count = n;
    return LKS_OK;
}

lks_status lks_device_list(struct lks_device_info **out, size_t *count, const char **note)
{
    struct lksi_fenv env;
    lks_status st;
    if (out == NULL || count == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_device_list: an argument is NULL");
    lksi_fenv_enter(&env);
    st = list(out, count, note);
    lksi_fenv_leave(&env);
    return st;
}

lks_status lksi_device_open(lks_device **device, const struct lks_device_params *p, bool profile)
{
    static const struct lks_device_params defaults;
    struct lksi_fenv env;
    struct lks_device *d;
    lks_status st;
    if (device == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_device_open: `device` is NULL");
    if (p == NULL)
        p = &defaults;
    if (p->threads < 0 || p->threads > LKS_MAX_THREADS)
        return lksi_fail(LKS_E_ARGUMENT,
                         "lks_device_open: %d threads; expected 1 to %d, or 0 for one a processor",
                         p->threads, LKS_MAX_THREADS);
    d = lksi_alloc(1, sizeof *d);
    if (d == NULL)
        return LKS_E_MEMORY;
    struct lksi_dev_params params = {
        .select = p->select,
        .threads = p->threads,
        .profile = profile,
        .soft_divsqrt = p->own_divsqrt,
        .cache_dir = p->cache_dir,
        .tuning = p->tuning,
        .kernel_dir = getenv("LKS_KERNEL_DIR"),
        .cl_context = p->cl_context,
        .cl_queue = p->cl_queue,
    };
    lksi_fenv_enter(&env);
    st = lksi_dev_open(&d->dev, &params);
    lksi_fenv_leave(&env);
    if (st != LKS_OK) {
        free(d);
        return st;
    }
    fill_info(&d->info, lksi_dev_limits(d->dev));
    *device = d;
    return LKS_OK;
}

lks_status lks_device_open(lks_device **device, const struct lks_device_params *p)
{
    return lksi_device_open(device, p, false);
}

void lks_device_close(lks_device **device)
{
    struct lksi_fenv env;
    if (device == NULL || *device == NULL)
        return;
    lksi_fenv_enter(&env);
    lksi_dev_close(&(*device)->dev);
    lksi_fenv_leave(&env);
    free(*device);
    *device = NULL;
}

const struct lks_device_info *lks_device_get_info(const lks_device *device)
{
    return &device->info;
}
