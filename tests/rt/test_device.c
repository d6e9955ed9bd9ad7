/*
 * Discovery and choice of devices, and the texts of what cannot be had.
 */
#include <CL/cl.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "rt/rt_cl.h"
#include "rt_help.h"

/* A listing of our own, so that choices can be tested without the hardware. */
static struct lksi_cl_device made(enum lksi_dev_type type, const char *platform, int p, int n,
                                  const char *name)
{
    struct lksi_cl_device d = {0};
    d.limits.type = type;
    d.limits.platform_index = p;
    d.limits.device_index = n;
    snprintf(d.limits.platform, sizeof d.limits.platform, "%s", platform);
    snprintf(d.limits.name, sizeof d.limits.name, "%s", name);
    return d;
}

static lks_status choose(const char *select, size_t *order, size_t *n)
{
    const struct lksi_cl_device list[] = {
        made(LKSI_DEV_CPU, "Portable Computing Language", 0, 0, "pthread-zen"),
        made(LKSI_DEV_GPU, "NVIDIA CUDA", 1, 0, "NVIDIA H200"),
        made(LKSI_DEV_GPU, "NVIDIA CUDA", 1, 1, "NVIDIA H200"),
        made(LKSI_DEV_GPU, "AMD", 2, 0, "gfx1100"),
        made(LKSI_DEV_GPU, "AMD", 2, 1, "gfx11"),
        made(LKSI_DEV_REF, "lockstep", -1, -1, "ref"),
    };
    return lksi_cl_select(list, LKSI_COUNT(list), "", select, order, n);
}

static void expect_choice(const char *select, size_t first, size_t count)
{
    size_t order[6] = {99}, n = 0;
    lks_status st = choose(select, order, &n);
    cr_expect(st == LKS_OK, "'%s': %s", select, lks_error_message());
    cr_expect(n == count && order[0] == first, "'%s' chose %zu (%zu choices)", select, order[0], n);
}

Test(device, choice)
{
    size_t order[6], n = 0;
    expect_choice("cpu", 0, 1);
    expect_choice("GPU", 1, 4);
    expect_choice("ref", 5, 1);
    expect_choice("zen", 0, 1);
    expect_choice("portable", 0, 1);
    expect_choice("1:1", 2, 1);
    expect_choice("nvidia:0", 1, 1);
    expect_choice("AMD:1", 4, 1);
    expect_choice("gfx1100", 3, 1);
    expect_choice("gfx11", 4, 1); /* a whole name wins over a part of another */
    EXPECT_OK(choose(NULL, order, &n));
    cr_expect(n == 5 && order[0] == 1 && order[4] == 0, "GPUs first, then the CPU, never ref");
}

Test(device, wrong_choices_list_the_candidates)
{
    size_t order[6], n = 77;
    EXPECT_FAIL(LKS_E_DEVICE, choose("h200", order, &n), "'h200' fits several", "1:0 = NVIDIA H200",
                "1:1 = NVIDIA H200");
    cr_expect(strstr(lks_error_message(), "gfx") == NULL, "%s", lks_error_message());
    EXPECT_FAIL(LKS_E_DEVICE, choose("xpu", order, &n), "no device is called 'xpu'", "pthread-zen",
                "gfx1100", "ref");
    EXPECT_FAIL(LKS_E_DEVICE, choose("3:0", order, &n), "'3:0'");
    EXPECT_FAIL(LKS_E_DEVICE, choose("1:2", order, &n), "'1:2'");
    EXPECT_FAIL(LKS_E_DEVICE, choose("", order, &n), "no device");
    cr_expect(n == 77);
}

Test(device, listing)
{
    struct lksi_limits *list = NULL;
    const char *note = NULL;
    size_t count = 0;
    EXPECT_OK(lksi_dev_list(&list, &count, &note));
    cr_assert(count >= 1 && note != NULL);
    cr_expect(list[count - 1].type == LKSI_DEV_REF && list[count - 1].platform_index == -1);
    for (size_t i = 0; i < count; i++) {
        const struct lksi_limits *l = &list[i];
        cr_expect(l->name[0] != '\0' && l->platform[0] != '\0');
        cr_expect(l->memory > 0 && l->max_alloc > 0 && l->max_alloc <= l->memory);
        cr_expect(l->base_align > 0 && l->max_group >= 1 && l->compute_units > 0);
    }
    free(list);
}

Test(device, no_platform_says_where_it_looked)
{
    char *folder = scratch_make();
    struct lksi_limits *list = NULL;
    const char *note = NULL;
    size_t count = 0;
    struct lksi_dev *dev = NULL;
    setenv("OCL_ICD_VENDORS", folder, 1);
    EXPECT_OK(lksi_dev_list(&list, &count, &note));
    cr_expect(count == 1 && list[0].type == LKSI_DEV_REF);
    cr_expect(strstr(note, folder) != NULL && strstr(note, "OCL_ICD_VENDORS") != NULL, "%s", note);
    cr_expect(strstr(note, "pocl-opencl-icd") != NULL && strstr(note, "no .icd") != NULL);
    free(list);
    EXPECT_FAIL(LKS_E_DEVICE, lksi_dev_open(&dev, NULL), folder, "pocl-opencl-icd");
    const struct lksi_dev_params gpu = {.select = "gpu"};
    EXPECT_FAIL(LKS_E_DEVICE, lksi_dev_open(&dev, &gpu), "type 'gpu'", "pocl-opencl-icd");
    const struct lksi_dev_params ref = {.select = "ref"};
    EXPECT_OK(lksi_dev_open(&dev, &ref));
    lksi_dev_close(&dev);
    scratch_remove(folder);
}

Test(device, a_damaged_vendor_file_is_counted)
{
    char *folder = scratch_make();
    struct lksi_limits *list = NULL;
    const char *note = NULL;
    size_t count = 0;
    write_bytes(in_folder(folder, "none.icd"), "libabsent.so.1\n", 15);
    setenv("OCL_ICD_VENDORS", folder, 1);
    EXPECT_OK(lksi_dev_list(&list, &count, &note));
    cr_expect(count == 1 && strstr(note, "none of 1 .icd") != NULL, "%s", note);
    free(list);
    scratch_remove(folder);
}

Test(device, errors_by_name)
{
    cr_expect_str_eq(lksi_cl_name(-54), "CL_INVALID_WORK_GROUP_SIZE");
    cr_expect_str_eq(lksi_cl_name(-123456), "unknown OpenCL error");
    EXPECT_FAIL(LKS_E_MEMORY, lksi_cl_fail(-4, "clCreateBuffer", "a buffer"),
                "a buffer:", "clCreateBuffer failed", "CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)",
                "batch");
    EXPECT_FAIL(LKS_E_DEVICE, lksi_cl_fail(-5, "f", "x"), "CL_OUT_OF_RESOURCES (-5)");
    EXPECT_FAIL(LKS_E_DEVICE, lksi_cl_fail(-1001, "f", "x"), "pocl-opencl-icd");
    EXPECT_FAIL(LKS_E_MEMORY, lksi_cl_fail(-61, "f", "x"), "CL_DEVICE_MAX_MEM_ALLOC_SIZE");
}

Test(device, a_device_that_loses_subnormals_is_refused)
{
    struct lksi_dev *dev = NULL;
    struct lksi_limits *list = NULL;
    size_t count = 0;
    bool there = false;
    setenv("RUSTICL_ENABLE", "llvmpipe", 1);
    EXPECT_OK(lksi_dev_list(&list, &count, NULL));
    for (size_t i = 0; i < count; i++)
        there = there || (strstr(list[i].name, "llvmpipe") != NULL && !list[i].has_denorm);
    free(list);
    if (!there)
        cr_skip_test("no rusticl with llvmpipe here");
    const struct lksi_dev_params params = {.select = "llvmpipe", .cache_dir = ""};
    EXPECT_FAIL(LKS_E_NUMERICS, lksi_dev_open(&dev, &params), "llvmpipe", "subnormal");
    cr_expect(dev == NULL);
}

static void make_cl(cl_context *context, cl_command_queue *queue,
                    cl_command_queue_properties properties)
{
    cl_platform_id platform[8];
    cl_device_id id = NULL;
    cl_uint n = 0;
    clGetPlatformIDs(8, platform, &n);
    for (cl_uint i = 0; i < n && id == NULL; i++)
        if (clGetDeviceIDs(platform[i], CL_DEVICE_TYPE_CPU, 1, &id, NULL) != CL_SUCCESS)
            id = NULL;
    if (id == NULL)
        cr_skip_test("no OpenCL CPU device");
    *context = clCreateContext(NULL, 1, &id, NULL, NULL, NULL);
    *queue = clCreateCommandQueue(*context, id, properties, NULL);
    cr_assert(*context != NULL && *queue != NULL);
}

Test(device, the_callers_own_context_and_queue)
{
    cl_context context;
    cl_command_queue queue;
    struct lksi_dev *dev = NULL;
    struct lksi_buf *buf = NULL;
    cl_uint refs = 0;
    uint32_t value = 5, got = 0;
    make_cl(&context, &queue, 0);
    struct lksi_dev_params params = {.cl_context = context, .cl_queue = queue, .cache_dir = ""};
    EXPECT_OK(lksi_dev_open(&dev, &params));
    EXPECT_OK(lksi_buf_create(&buf, dev, 4));
    EXPECT_OK(lksi_buf_write(buf, 0, &value, 4, false));
    EXPECT_OK(lksi_buf_read(buf, 0, &got, 4));
    cr_expect(got == 5);
    lksi_buf_destroy(&buf);
    lksi_dev_close(&dev);
    /* PoCL lets go of a finished event, and with it of the queue, a little after the wait for it. */
    for (int i = 0; refs != 1 && i < 500; i++) {
        if (i > 0)
            usleep(10000);
        clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof refs, &refs, NULL);
    }
    cr_expect(refs == 1, "the caller's queue has %u references", refs);
    params.cl_context = NULL; /* the queue alone is enough, and so is the context */
    EXPECT_OK(lksi_dev_open(&dev, &params));
    lksi_dev_close(&dev);
    params.cl_context = context;
    params.cl_queue = NULL;
    EXPECT_OK(lksi_dev_open(&dev, &params));
    lksi_dev_close(&dev);
    params.cl_queue = queue;
    params.profile = true;
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_dev_open(&dev, &params), "CL_QUEUE_PROFILING_ENABLE");
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
}

Test(device, an_out_of_order_queue_is_refused)
{
    cl_context context;
    cl_command_queue queue;
    struct lksi_dev *dev = NULL;
    make_cl(&context, &queue, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    const struct lksi_dev_params params = {.cl_context = context, .cl_queue = queue};
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_dev_open(&dev, &params), "in-order");
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
}

#if defined(__SSE2__)
/*
 * An application that flushes and starts OpenCL before lockstep: PoCL's workers may inherit that.
 * Either every work-item keeps subnormal numbers all the same, or opening says what is wrong.
 */
Test(device, opencl_started_with_flush_to_zero)
{
    static const char text[] = "__kernel void LKS_KERNEL(halve)(__global float *x)\n"
                               "{ x[get_global_id(0)] *= 0.5f; }\n";
    enum { N = 4096 };
    cl_context context;
    cl_command_queue queue;
    struct lksi_dev *dev = NULL;
    struct lksi_program *program = NULL;
    struct lksi_buf *buf = NULL;
    uint32_t x[N];
    _mm_setcsr(_mm_getcsr() | 0x8040);
    make_cl(&context, &queue, 0);
    const struct lksi_dev_params params = {.select = "cpu", .cache_dir = ""};
    lks_status st = lksi_dev_open(&dev, &params);
    cr_expect((_mm_getcsr() & 0x8040) == 0x8040);
    if (st != LKS_OK) {
        cr_expect(st == LKS_E_NUMERICS && strstr(lks_error_message(), "-ffast-math") != NULL, "%s",
                  lks_error_message());
        return;
    }
    for (int i = 0; i < N; i++)
        x[i] = 0x00400000u + 2u * (uint32_t)i;
    EXPECT_OK(build_text(&program, dev, text, ""));
    EXPECT_OK(lksi_buf_create(&buf, dev, sizeof x));
    EXPECT_OK(lksi_buf_write(buf, 0, x, sizeof x, true));
    run_kernel(program, 0, "halve", buf, N, 16);
    EXPECT_OK(lksi_buf_read(buf, 0, x, sizeof x));
    for (int i = 0; i < N; i++)
        cr_assert(x[i] == 0x00200000u + (uint32_t)i, "item %d gave %08x", i, x[i]);
    lksi_buf_destroy(&buf);
    lksi_program_destroy(&program);
    lksi_dev_close(&dev);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
}
#endif
