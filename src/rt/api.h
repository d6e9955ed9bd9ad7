/*
 * api.h - the device inside a public lks_device.
 */
#ifndef LKSI_RT_API_H
#define LKSI_RT_API_H

#include <lockstep/device.h>

#include "rt/rt.h"

struct lksi_dev *lksi_device_dev(const lks_device *device);

/* lks_device_open; with `profile` kernels have times (lksi_kernel_time). */
lks_status lksi_device_open(lks_device **device, const struct lks_device_params *p, bool profile);

#endif
