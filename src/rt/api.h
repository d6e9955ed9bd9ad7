/*
 * api.h - the device inside a public lks_device.
 */
#ifndef LKSI_RT_API_H
#define LKSI_RT_API_H

#include <lockstep/device.h>

#include "rt/rt.h"

struct lksi_dev *lksi_device_dev(const lks_device *device);

#endif
