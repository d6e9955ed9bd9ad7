/*
 * as_cpu.c - loaded in front of the OpenCL loader: every device says that it is a CPU and no GPU.
 * Oclgrind says that it is both, and counts as a GPU; so the schedules for CPUs run on it too.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#define DEVICE_TYPE 0x1000 /* CL_DEVICE_TYPE */
#define TYPE_CPU    2u     /* CL_DEVICE_TYPE_CPU */

int32_t clGetDeviceInfo(void *device, uint32_t what, size_t size, void *value, size_t *needed);

int32_t clGetDeviceInfo(void *device, uint32_t what, size_t size, void *value, size_t *needed)
{
    const uint64_t type = TYPE_CPU;
    int32_t (*real)(void *, uint32_t, size_t, void *, size_t *);
    void *found = dlsym(RTLD_NEXT, "clGetDeviceInfo");
    int32_t st;
    memcpy(&real, &found, sizeof real);
    st = real(device, what, size, value, needed);
    if (st == 0 && what == DEVICE_TYPE && value != NULL)
        memcpy(value, &type, sizeof type);
    return st;
}
