/*
 * grid.h - launches on PoCL that must not overlap; see grid.c. Thread-safe.
 */
#ifndef LKSI_RT_GRID_H
#define LKSI_RT_GRID_H

#include "rt/rt_cl.h"

/* True for implementations with the fault. */
bool lksi_grid_miscounts(const struct lksi_limits *limits);

/* Announces a device with a compute queue, until lksi_grid_close. */
lks_status lksi_grid_open(struct lksi_dev *dev);
void lksi_grid_close(const struct lksi_dev *dev);

/* Says that PoCL may have loaded `copies` more kernels by itself, as it does for a binary. */
void lksi_grid_loaded(size_t copies);

/*
 * Calls launch(ctx), which queues the kernel `id` (program, name and local size) with a grid of
 * `width` work-items in its widest dimension; alone where copies of two
 * widths could meet.
 */
lks_status lksi_grid_launch(struct lksi_dev *dev, uint64_t id, size_t width,
                            lks_status (*launch)(void *ctx), void *ctx);

#endif
