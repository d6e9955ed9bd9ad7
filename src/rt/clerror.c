/*
 * clerror.c - OpenCL's error numbers as names, with what a user can do about them.
 */
#include <stdio.h>
#include <string.h>

#include "rt/rt_cl.h"

static const struct {
    cl_int code;
    const char *name;
    const char *advice; /* NULL: the name says it */
} table[] = {
    {-1, "CL_DEVICE_NOT_FOUND", "the platform has no device of this type"},
    {-2, "CL_DEVICE_NOT_AVAILABLE", "another program may hold the device"},
    {-3, "CL_COMPILER_NOT_AVAILABLE", "this driver cannot compile kernels; install its compiler"},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE",
     "device memory is not enough: use a smaller batch or a memory limit, or close other programs"},
    {-5, "CL_OUT_OF_RESOURCES",
     "the kernel needs more memory, registers or local memory than the device has left, or an "
     "earlier kernel crashed: try a smaller batch; `lockstep check` tells which schedule fails"},
    {-6, "CL_OUT_OF_HOST_MEMORY", "host memory is not enough: close other programs"},
    {-7, "CL_PROFILING_INFO_NOT_AVAILABLE", "open the device with profiling"},
    {-8, "CL_MEM_COPY_OVERLAP", NULL},
    {-11, "CL_BUILD_PROGRAM_FAILURE", "the driver's compiler refused the kernel; its log follows"},
    {-12, "CL_MAP_FAILURE", NULL},
    {-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET", "parts of a buffer must start at base_align"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
     "an earlier command on this device failed; the driver may have been reset"},
    {-15, "CL_COMPILE_PROGRAM_FAILURE", NULL},
    {-16, "CL_LINKER_NOT_AVAILABLE", NULL},
    {-17, "CL_LINK_PROGRAM_FAILURE", NULL},
    {-30, "CL_INVALID_VALUE", NULL},
    {-31, "CL_INVALID_DEVICE_TYPE", NULL},
    {-32, "CL_INVALID_PLATFORM", NULL},
    {-33, "CL_INVALID_DEVICE", NULL},
    {-34, "CL_INVALID_CONTEXT", NULL},
    {-35, "CL_INVALID_QUEUE_PROPERTIES", NULL},
    {-36, "CL_INVALID_COMMAND_QUEUE",
     "after a crashed kernel the driver drops the queue: open the device again"},
    {-37, "CL_INVALID_HOST_PTR", NULL},
    {-38, "CL_INVALID_MEM_OBJECT", NULL},
    {-42, "CL_INVALID_BINARY", NULL},
    {-43, "CL_INVALID_BUILD_OPTIONS", "the driver does not know one of the build options"},
    {-44, "CL_INVALID_PROGRAM", NULL},
    {-45, "CL_INVALID_PROGRAM_EXECUTABLE", NULL},
    {-46, "CL_INVALID_KERNEL_NAME", "the program has no kernel of this name"},
    {-47, "CL_INVALID_KERNEL_DEFINITION", NULL},
    {-48, "CL_INVALID_KERNEL", NULL},
    {-49, "CL_INVALID_ARG_INDEX", NULL},
    {-50, "CL_INVALID_ARG_VALUE", NULL},
    {-51, "CL_INVALID_ARG_SIZE", "the kernel's parameter has another size"},
    {-52, "CL_INVALID_KERNEL_ARGS", "an argument of the kernel was not set"},
    {-53, "CL_INVALID_WORK_DIMENSION", NULL},
    {-54, "CL_INVALID_WORK_GROUP_SIZE",
     "the group is larger than this kernel allows here, or does not divide the global size"},
    {-55, "CL_INVALID_WORK_ITEM_SIZE", "one side of the group is larger than the device allows"},
    {-56, "CL_INVALID_GLOBAL_OFFSET", NULL},
    {-57, "CL_INVALID_EVENT_WAIT_LIST", NULL},
    {-58, "CL_INVALID_EVENT", NULL},
    {-59, "CL_INVALID_OPERATION", NULL},
    {-61, "CL_INVALID_BUFFER_SIZE",
     "the buffer is empty or above the device's largest allocation (CL_DEVICE_MAX_MEM_ALLOC_SIZE): "
     "use a smaller batch"},
    {-63, "CL_INVALID_GLOBAL_WORK_SIZE", NULL},
    {-64, "CL_INVALID_PROPERTY", NULL},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR",
     "no OpenCL implementation is installed; on Debian the package pocl-opencl-icd brings one for "
     "the CPU"},
    {-9999, "NVIDIA: illegal read or write by a kernel", "open the device again"},
};

const char *lksi_cl_name(cl_int error)
{
    for (size_t i = 0; i < LKSI_COUNT(table); i++)
        if (table[i].code == error)
            return table[i].name;
    return "unknown OpenCL error";
}

static const char *advice_of(cl_int error)
{
    for (size_t i = 0; i < LKSI_COUNT(table); i++)
        if (table[i].code == error)
            return table[i].advice;
    return NULL;
}

lks_status lksi_cl_fail(cl_int error, const char *call, const char *what, ...)
{
    char text[512];
    const char *advice = advice_of(error);
    bool memory = error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_OUT_OF_HOST_MEMORY ||
                  error == CL_INVALID_BUFFER_SIZE;
    va_list ap;
    va_start(ap, what);
    vsnprintf(text, sizeof text, what, ap);
    va_end(ap);
    return lksi_fail(memory ? LKS_E_MEMORY : LKS_E_DEVICE, "%s: %s failed: %s (%d)%s%s", text, call,
                     lksi_cl_name(error), error, advice != NULL ? "; " : "",
                     advice != NULL ? advice : "");
}
