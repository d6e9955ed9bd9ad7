/*
 * Programs: units beside one another, errors, options, soft division, folders of kernels.
 */
#include "rt_help.h"

#include "rt/rt_cl.h"

static const struct lksi_build_progress silent = {0};

/* Two units with the same macro, helper and kernel names, and one twin of the first. */
static const char unit_text[] = "#include \"contract/num.h\"\n"
                                "#define TILE (MR * 10)\n"
                                "  #  define INNER TILE\n"
                                "#ifdef EXTRA\n"
                                "#define PLUS EXTRA\n"
                                "#else\n"
                                "#define PLUS 0\n"
                                "#endif\n"
                                "static int LKS_FN(value)(void) { return INNER + PLUS; }\n"
                                "__kernel void LKS_KERNEL(write)(__global int *x)\n"
                                "{ x[0] = LKS_FN(value)(); }\n";

static int run_unit(struct lksi_dev *dev, struct lksi_program *program, size_t index)
{
    struct lksi_buf *buf = NULL;
    int got = -1;
    EXPECT_OK(lksi_buf_create(&buf, dev, 4));
    run_kernel(program, index, "write", buf, 1, 1);
    EXPECT_OK(lksi_buf_read(buf, 0, &got, 4));
    lksi_buf_destroy(&buf);
    return got;
}

struct seen {
    size_t calls, last, total;
};

static void see(void *user, size_t done, size_t total)
{
    struct seen *s = user;
    cr_expect(done >= s->last && done <= total);
    s->calls++;
    s->last = done;
    s->total = total;
}

static const struct lksi_unit four_units[] = {
    {.text = unit_text, .defines = "MR=6", .options = ""},
    {.text = unit_text, .defines = " MR=7  EXTRA ", .options = ""},
    {.text = unit_text, .defines = "MR=6"},
    {.text = unit_text, .defines = "MR=6", .options = "-DLKS_OTHER=1"},
};

static void check_four(struct lksi_dev *dev, int programs)
{
    struct lksi_program *program = NULL;
    struct seen seen = {0};
    capture_log();
    EXPECT_OK(
        lksi_program_build(&program, dev, four_units, 4, (struct lksi_build_progress){see, &seen}));
    cr_expect(count_log("built from source") == programs, "%s", log_text);
    cr_expect(seen.calls >= 2 && seen.last == 4 && seen.total == 4);
    const int want[] = {60, 71, 60, 60};
    for (size_t i = 0; i < 4; i++)
        cr_expect(run_unit(dev, program, i) == want[i], "unit %zu", i);
    cr_expect_str_eq(lksi_program_digest(program, 0), lksi_program_digest(program, 2));
    cr_expect_str_neq(lksi_program_digest(program, 0), lksi_program_digest(program, 3));
    lksi_program_destroy(&program);
}

Test(program, units_with_the_same_names)
{
    struct lksi_dev *dev = NULL;
    OPEN_CPU(dev);
    check_four(dev, 2); /* one for each set of options */
    lksi_dev_close(&dev);
}

/* The way of GPUs, on the CPU: each unit its own program, built by several threads. */
Test(program, a_program_a_unit_in_parallel)
{
    struct lksi_dev *dev = NULL;
    OPEN_CPU(dev);
    dev->late = false;
    check_four(dev, 3); /* the twin costs nothing */
    lksi_dev_close(&dev);
}

Test(program, a_failure_among_parallel_builds_is_reported)
{
    struct lksi_dev *dev = NULL;
    struct lksi_program *program = NULL;
    const struct lksi_unit units[] = {
        {.text = unit_text, .defines = "MR=6"},
        {.text = unit_text, .defines = "MR=nonsense"},
        {.text = unit_text, .defines = "MR=8"},
    };
    OPEN_CPU(dev);
    dev->late = false;
    EXPECT_FAIL(LKS_E_DEVICE, lksi_program_build(&program, dev, units, 3, silent), "nonsense",
                "CL_BUILD_PROGRAM_FAILURE");
    cr_expect(program == NULL);
    lksi_dev_close(&dev);
}

Test(program, a_broken_kernel_names_its_unit_and_line)
{
    struct lksi_dev *dev = NULL;
    struct lksi_program *program = NULL;
    const struct lksi_unit units[] = {
        {.text = unit_text, .defines = "MR=6"},
        {.text = "\n\n__kernel void LKS_KERNEL(bad)(__global int *x) { x[0] = missing_word; }\n"},
    };
    OPEN_CPU(dev);
    EXPECT_FAIL(LKS_E_DEVICE, lksi_program_build(&program, dev, units, 2, silent), "unit_1:3",
                "missing_word", lksi_dev_limits(dev)->name);
    EXPECT_FAIL(LKS_E_DEVICE, build_text(&program, dev, "#include \"contract/absent.h\"\n", ""),
                "contract/absent.h");
    const struct lksi_unit absent = {.source = "op/absent.cl"};
    EXPECT_FAIL(LKS_E_DEVICE, lksi_program_build(&program, dev, &absent, 1, silent),
                "op/absent.cl");
    EXPECT_OK(build_text(&program, dev, unit_text, "MR=1"));
    struct lksi_kernel *kernel = NULL;
    EXPECT_FAIL(LKS_E_DEVICE, lksi_kernel_create(&kernel, program, 0, "nothing"), "nothing",
                "CL_INVALID_KERNEL_NAME");
    lksi_program_destroy(&program);
    lksi_dev_close(&dev);
}

/* Builds op/one.cl and op/two.cl of a folder, and expects a failure at `place`. */
static void expect_place(struct lksi_dev *dev, const char *place)
{
    static const struct lksi_unit units[] = {{.source = "op/one.cl", .defines = "WIDE=1"},
                                             {.source = "op/two.cl", .defines = "WIDE=2"}};
    struct lksi_program *program = NULL;
    char start[100], line[100];
    int told = 0;
    EXPECT_FAIL(LKS_E_DEVICE, lksi_program_build(&program, dev, units, 2, silent), place);
    snprintf(start, sizeof start, "%s: clBuildProgram failed", place);
    snprintf(line, sizeof line, "error: %s:", place);
    const char *message = lks_error_message();
    cr_expect(strncmp(message, start, strlen(start)) == 0, "%s", message);
    for (const char *p = message; (p = strstr(p, line)) != NULL; p++)
        told++;
    cr_expect_eq(told, 1, "once, though two units have it: %s", message);
}

Test(program, a_fault_is_placed_in_the_file_that_has_it)
{
    static const char good[] = "#define SHARED 1\n", text[] =
        "#include \"contract/num.h\"\n\n#include \"op/shared.h\"\n#include \"part.cl\"\n"
        "__kernel void LKS_KERNEL(write)(__global I32 *x) { x[0] = SHARED + PART + WIDE; }\n";
    static const char num[] = "#ifndef LKS_NUM_H\n#define LKS_NUM_H\ntypedef int I32;\n#endif\n";
    char *folder = scratch_make(), two[600];
    struct lksi_dev *dev = NULL;
    OPEN_CPU(dev);
    mkdir(in_folder(folder, "op"), 0700);
    mkdir(in_folder(folder, "contract"), 0700);
    snprintf(two, sizeof two, "%sint later(void) { return missing_word; }\n", text);
    write_bytes(in_folder(folder, "op/one.cl"), text, sizeof text - 1);
    write_bytes(in_folder(folder, "op/two.cl"), two, strlen(two));
    write_bytes(in_folder(folder, "op/part.cl"), "#define PART 12\n", 16);
    write_bytes(in_folder(folder, "op/shared.h"), good, sizeof good - 1);
    write_bytes(in_folder(folder, "contract/num.h"), num, sizeof num - 1);
    dev->kernel_dir = strdup(folder);
    expect_place(dev, "op/two.cl:6"); /* behind its includes */
    write_bytes(in_folder(folder, "op/shared.h"), "\n\nmissing_word;\n", 16);
    expect_place(dev, "op/shared.h:3");
    write_bytes(in_folder(folder, "contract/num.h"), "typedef int I32;\nmissing_word;\n", 31);
    expect_place(dev, "contract/num.h:2");
    lksi_dev_close(&dev);
    scratch_remove(folder);
}

Test(program, relaxed_options_are_refused)
{
    static const char *const options[] = {"-cl-fast-relaxed-math", "-cl-mad-enable",
                                          "-O1 -cl-denorms-are-zero", "-cl-finite-math-only"};
    struct lksi_dev *dev = NULL;
    struct lksi_program *program = NULL;
    OPEN_CPU(dev);
    for (size_t i = 0; i < LKSI_COUNT(options); i++) {
        const struct lksi_unit unit = {.text = unit_text, .defines = "MR=1", .options = options[i]};
        EXPECT_FAIL(LKS_E_ARGUMENT, lksi_program_build(&program, dev, &unit, 1, silent),
                    options[i]);
    }
    lksi_dev_close(&dev);
}

Test(program, kernels_from_a_folder)
{
    static const char text[] =
        "#include \"num.h\"\n#include \"part.cl\"\n"
        "__kernel void LKS_KERNEL(write)(__global I32 *x) { x[0] = PART; }\n";
    char *folder = scratch_make();
    struct lksi_dev *dev = NULL;
    struct lksi_program *program = NULL;
    const struct lksi_unit unit = {.source = "op/mine.cl"};
    const struct lksi_dev_params params = {.select = "cpu", .cache_dir = ""};
    mkdir(in_folder(folder, "op"), 0700);
    write_bytes(in_folder(folder, "op/mine.cl"), text, sizeof text - 1);
    write_bytes(in_folder(folder, "op/part.cl"), "#define PART 12\n", 16);
    OPEN_CPU(dev);
    dev->kernel_dir = strdup(folder); /* after the probe, whose contract text is not there */
    EXPECT_FAIL(LKS_E_DEVICE, lksi_program_build(&program, dev, &unit, 1, silent), "contract/num.h",
                folder);
    mkdir(in_folder(folder, "contract"), 0700);
    write_bytes(in_folder(folder, "contract/num.h"), "typedef int I32;\n", 17);
    EXPECT_OK(lksi_program_build(&program, dev, &unit, 1, silent));
    cr_expect(run_unit(dev, program, 0) == 12);
    lksi_program_destroy(&program);
    lksi_dev_close(&dev);
    setenv("LKS_KERNEL_DIR", folder, 1);
    EXPECT_FAIL(LKS_E_DEVICE, lksi_dev_open(&dev, &params), "probing");
    scratch_remove(folder);
}

/* Divisions and square roots over many bit patterns: the soft sequence equals plain C. */
static const char div_text[] =
    "#include \"contract/num.h\"\n"
    "__kernel void LKS_KERNEL(divide)(__global U32 *x)\n"
    "{\n"
    "    U32 i = (U32)get_global_id(0);\n"
    "    F32 a = lks_float(i * 2654435761u), b = lks_float(i * 40503u * 65537u + 1u);\n"
    "    x[2u * i] = lks_bits(lks_div(a, b));\n"
    "    x[2u * i + 1u] = lks_bits(lks_sqrt(lks_abs(a)));\n"
    "}\n";

static void check_divisions(struct lksi_dev *dev)
{
    enum { N = 1 << 16 };
    struct lksi_program *program = NULL;
    struct lksi_buf *buf = NULL;
    uint32_t *x = calloc(2 * N, sizeof *x);
    EXPECT_OK(build_text(&program, dev, div_text, ""));
    EXPECT_OK(lksi_buf_create(&buf, dev, 2 * N * sizeof *x));
    run_kernel(program, 0, "divide", buf, N, 64);
    EXPECT_OK(lksi_buf_read(buf, 0, x, 2 * N * sizeof *x));
    for (uint32_t i = 0; i < N; i++) {
        float a, b, q, r;
        uint32_t ua = i * 2654435761u, ub = i * 40503u * 65537u + 1u, uq, ur;
        memcpy(&a, &ua, 4);
        memcpy(&b, &ub, 4);
        q = a / b;
        ua &= 0x7fffffffu;
        memcpy(&r, &ua, 4);
        r = __builtin_sqrtf(r);
        memcpy(&uq, &q, 4);
        memcpy(&ur, &r, 4);
        cr_assert(q != q ? (x[2 * i] & 0x7fffffffu) > 0x7f800000u : x[2 * i] == uq, "%u: %08x", i,
                  x[2 * i]);
        cr_assert(r != r ? (x[2 * i + 1] & 0x7fffffffu) > 0x7f800000u : x[2 * i + 1] == ur);
    }
    free(x);
    lksi_buf_destroy(&buf);
    lksi_program_destroy(&program);
}

Test(program, division_native_and_soft)
{
    struct lksi_dev *dev = NULL;
    OPEN_CPU(dev);
    cr_expect(lksi_dev_soft_divsqrt(dev) == !lksi_dev_limits(dev)->native_divsqrt);
    check_divisions(dev);
    lksi_dev_close(&dev);
    OPEN_CPU(dev, .soft_divsqrt = true);
    cr_expect(lksi_dev_soft_divsqrt(dev));
    cr_expect(strstr(dev->options, "-DLKS_SOFT_DIVSQRT=1") != NULL);
    check_divisions(dev);
    lksi_dev_close(&dev);
}

Test(program, launches)
{
    static const char text[] =
        "__kernel void LKS_KERNEL(put)(__global int *x, int a, __local int *l, float4 v)\n"
        "{\n"
        "    l[get_local_id(0)] = a + (int)get_global_id(0) + (int)v.w;\n"
        "    barrier(CLK_LOCAL_MEM_FENCE);\n"
        "    x[get_global_id(0)] = l[get_local_size(0) - 1 - get_local_id(0)];\n"
        "}\n";
    struct lksi_dev *dev = NULL;
    struct lksi_program *program = NULL;
    struct lksi_kernel *kernel = NULL;
    struct lksi_buf *buf = NULL;
    const float v[4] = {0, 0, 0, 1000};
    const size_t global = 8, local = 4, odd = 3, none = 0;
    int a = 100, got[8];
    uint64_t ns = 0;
    OPEN_CPU(dev, .profile = true);
    EXPECT_OK(build_text(&program, dev, text, ""));
    EXPECT_OK(lksi_kernel_create(&kernel, program, 0, "put"));
    EXPECT_OK(lksi_buf_create(&buf, dev, sizeof got));
    EXPECT_OK(lksi_kernel_set_buf(kernel, 0, buf));
    EXPECT_FAIL(LKS_E_DEVICE, lksi_kernel_set_data(kernel, 9, &a, 4), "argument 9");
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_kernel_time(kernel, &ns), "not launched");
    EXPECT_OK(lksi_kernel_set_data(kernel, 1, &a, sizeof a));
    EXPECT_OK(lksi_kernel_set_data(kernel, 2, NULL, 4 * sizeof(int)));
    EXPECT_OK(lksi_kernel_set_data(kernel, 3, v, sizeof v));
    EXPECT_FAIL(LKS_E_DEVICE, lksi_kernel_launch(kernel, 1, &global, &odd), "put_u0",
                "CL_INVALID_WORK_GROUP_SIZE", "8x1x1", "3x1x1");
    EXPECT_OK(lksi_kernel_launch(kernel, 1, &none, &local));
    EXPECT_OK(lksi_kernel_launch(kernel, 1, &global, &local));
    EXPECT_OK(lksi_kernel_time(kernel, &ns));
    cr_expect(ns > 0);
    EXPECT_OK(lksi_buf_read(buf, 0, got, sizeof got));
    for (int i = 0; i < 8; i++)
        cr_expect(got[i] == 1100 + i / 4 * 4 + 3 - i % 4, "item %d: %d", i, got[i]);
    EXPECT_OK(lksi_kernel_launch(kernel, 1, &global, &none));
    EXPECT_OK(lksi_dev_wait(dev, 0));
    lksi_kernel_destroy(&kernel);
    lksi_buf_destroy(&buf);
    lksi_program_destroy(&program);
    lksi_dev_close(&dev);
}

/* A unit that another living program holds is not built again, and outlives that program. */
static void check_sharing(bool late)
{
    struct lksi_dev *dev = NULL;
    struct lksi_program *first = NULL, *second = NULL, *third = NULL;
    const struct lksi_unit more[] = {
        {.text = unit_text, .defines = " MR=7  EXTRA ", .options = ""},
        {.text = unit_text, .defines = "MR=9"},
    };
    OPEN_CPU(dev);
    dev->late = late;
    EXPECT_OK(lksi_program_build(&first, dev, four_units, 4, silent));
    capture_log();
    EXPECT_OK(lksi_program_build(&second, dev, more, 2, silent));
    cr_expect(count_log("built from source") == 1, "%s", log_text);
    EXPECT_OK(lksi_program_build(&third, dev, more, 2, silent));
    cr_expect(count_log("built from source") == 1, "%s", log_text);
    cr_expect_str_eq(lksi_program_digest(first, 1), lksi_program_digest(second, 0));
    lksi_program_destroy(&first);
    cr_expect(run_unit(dev, second, 0) == 71 && run_unit(dev, second, 1) == 90);
    lksi_program_destroy(&second);
    cr_expect(run_unit(dev, third, 0) == 71 && run_unit(dev, third, 1) == 90);
    lksi_program_destroy(&third);
    capture_log();
    EXPECT_OK(lksi_program_build(&second, dev, more, 2, silent)); /* nobody holds them any more */
    cr_expect(count_log("built from source") == (late ? 1 : 2), "%s", log_text);
    lksi_program_destroy(&second);
    lksi_dev_close(&dev);
}

Test(program, units_are_shared)
{
    check_sharing(true);
}

Test(program, units_are_shared_where_builds_are_parallel)
{
    check_sharing(false);
}
