/*
 * other_driver.c - loaded in front of the OpenCL loader: every device gets another driver version.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#define DRIVER_VERSION 0x102d /* CL_DRIVER_VERSION */
#define INVALID_VALUE  (-30)  /* CL_INVALID_VALUE */

int32_t clGetDeviceInfo(void *device, uint32_t what, size_t size, void *value, size_t *needed);

int32_t clGetDeviceInfo(void *device, uint32_t what, size_t size, void *value, size_t *needed)
{
    static const char text[] = "another driver";
    int32_t (*real)(void *, uint32_t, size_t, void *, size_t *);
    void *found = dlsym(RTLD_NEXT, "clGetDeviceInfo");
    memcpy(&real, &found, sizeof real);
    if (what != DRIVER_VERSION)
        return real(device, what, size, value, needed);
    if (value != NULL && size < sizeof text)
        return INVALID_VALUE;
    if (value != NULL)
        memcpy(value, text, sizeof text);
    if (needed != NULL)
        *needed = sizeof text;
    return 0;
}
