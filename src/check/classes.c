/*
 * classes.c - typical limits of the classes of devices. A schedule that declines every case here
 * and on the device at hand is reached by nobody; one that serves another class is "not here".
 */
#include "check/classes.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static const struct lksi_limits classes[] = {
    {.type = LKSI_DEV_CPU,
     .platform = "Portable Computing Language",
     .name = "a CPU",
     .compute_units = 16,
     .memory = 32 * GIB,
     .max_alloc = 8 * GIB,
     .local_memory = MIB / 2,
     .max_group = 4096,
     .max_item = {4096, 4096, 4096},
     .base_align = 128,
     .native_divsqrt = true,
     .has_fma = true,
     .has_denorm = true,
     .unified_memory = true},
    {.type = LKSI_DEV_GPU,
     .platform = "NVIDIA CUDA",
     .name = "an NVIDIA GPU",
     .vendor = "NVIDIA Corporation",
     .vendor_id = 0x10de,
     .compute_units = 132,
     .memory = 80 * GIB,
     .max_alloc = 20 * GIB,
     .local_memory = 48 * 1024,
     .max_group = 1024,
     .max_item = {1024, 1024, 64},
     .base_align = 512,
     .native_divsqrt = true,
     .has_fma = true,
     .has_denorm = true,
     .extensions = "cl_nv_device_attribute_query cl_nv_compiler_options"},
    {.type = LKSI_DEV_GPU,
     .platform = "AMD Accelerated Parallel Processing",
     .name = "an AMD GPU",
     .vendor = "Advanced Micro Devices, Inc.",
     .vendor_id = 0x1002,
     .compute_units = 60,
     .memory = 16 * GIB,
     .max_alloc = 8 * GIB,
     .local_memory = 64 * 1024,
     .max_group = 256,
     .max_item = {1024, 1024, 1024},
     .base_align = 256,
     .native_divsqrt = true,
     .has_fma = true,
     .has_denorm = true,
     .extensions = "cl_khr_subgroups"},
    {.type = LKSI_DEV_GPU,
     .platform = "Intel(R) OpenCL Graphics",
     .name = "an Intel GPU",
     .vendor = "Intel(R) Corporation",
     .vendor_id = 0x8086,
     .compute_units = 96,
     .memory = 12 * GIB,
     .max_alloc = 4 * GIB,
     .local_memory = 64 * 1024,
     .max_group = 512,
     .max_item = {512, 512, 512},
     .base_align = 128,
     .native_divsqrt = true,
     .has_fma = true,
     .has_denorm = true,
     .unified_memory = true,
     .extensions = "cl_intel_subgroups"},
};

bool lksi_classes_accept(const struct lksi_schedule *schedule, const struct lksi_call *call)
{
    for (size_t c = 0; c < LKSI_COUNT(classes); c++)
        if (schedule->declines(call, &classes[c]) == NULL)
            return true;
    return false;
}
