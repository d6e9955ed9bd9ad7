/*
 * flat.h - the schedule `flat` of operators that treat each element alone: vectors, and a chunk of
 * consecutive elements a work-item. Its kernels take all inputs, all outputs, then U64 n (elements
 * of output 0) and U32 chunk; the macro VEC is the vector width. And what other schedules share.
 */
#ifndef LKSI_OP_FLAT_H
#define LKSI_OP_FLAT_H

#include "op/op.h"

const char *lksi_flat_declines(const struct lksi_call *call, const struct lksi_limits *dev);
void lksi_flat_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                      const char *source, const char *kernel, struct lksi_recipe *r);

/* `declines` of schedules for CPU devices; for GPUs; for GPUs with a group of 32 work-items a row,
 * item j being lane j of rule 6. */
const char *lksi_cpu_declines(const struct lksi_call *call, const struct lksi_limits *dev);
const char *lksi_gpu_declines(const struct lksi_call *call, const struct lksi_limits *dev);
const char *lksi_lanes_declines(const struct lksi_call *call, const struct lksi_limits *dev);

/* Work-items a group on a GPU: `wanted`, or less where the device allows less. */
size_t lksi_group(const struct lksi_limits *dev, size_t wanted);

/* The widest vector of at most 16 lanes that fits into `n` neighbours. */
static inline unsigned lksi_lanes(uint64_t n)
{
    unsigned lanes = 16;
    while (lanes > n)
        lanes /= 2;
    return lanes;
}

/* Harness cases: a vector of lengths around the vectors and chunks. False past the last. */
bool lksi_flat_case(int index, bool long_run, struct lksi_desc *d);

#endif
