/*
 * probe.c - a few hard cases of each primitive, computed by the device at every opening and
 * compared with plain C. Wrong bits refuse the device; capability flags alone refuse nothing.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rt/rt_cl.h"

enum probe_op { ADD, MUL, FMA, DIV, SQRT, UNFUSED, CHAIN };

/* One work-item a case; the operands come from memory, so that no compiler can fold them. */
static const char kernel_text[] =
    "#include \"contract/num.h\"\n"
    "__kernel void LKS_KERNEL(probe)(__global const U32 *in, __global U32 *out)\n"
    "{\n"
    "    U32 i = (U32)get_global_id(0), j;\n"
    "    U32 op = in[4u * i];\n"
    "    F32 a = lks_float(in[4u * i + 1u]), b = lks_float(in[4u * i + 2u]);\n"
    "    F32 c = lks_float(in[4u * i + 3u]), r = 0.0f;\n"
    "    if (op == 0u) r = a + b;\n"
    "    else if (op == 1u) r = a * b;\n"
    "    else if (op == 2u) r = lks_fma(a, b, c);\n"
    "    else if (op == 3u) r = lks_div(a, b);\n"
    "    else if (op == 4u) r = lks_sqrt(a);\n"
    "    else if (op == 5u) r = a * b + c;\n"
    "    else for (j = 0u; j < 64u; j += 1u) r = lks_fma(a, r, b + c * (F32)(I32)j);\n"
    "    out[i] = lks_bits(r);\n"
    "}\n";

static const struct {
    uint32_t op, a, b, c;
    const char *name;
} cases[] = {
    /* Single rounding: (1+2^-12)(1-2^-12) - 1 = -2^-24; 2^-24 beside 1; a double rounding trap. */
    {FMA, 0x3f800800, 0x3f7ff000, 0xbf800000, "fma is not rounded once"},
    {FMA, 0x3f800001, 0x3f800001, 0xbf800002, "fma is not rounded once"},
    {FMA, 0x33800001, 0x3f800000, 0x3f800000, "fma is not rounded once"},
    {FMA, 0x3f800fff, 0x3f801001, 0x33000000, "fma is not rounded once"},
    {FMA, 0x7f7fffff, 0x40000000, 0xff7fffff, "fma is not rounded once"},
    {UNFUSED, 0x3f800800, 0x3f7ff000, 0xbf800000, "a * b + c is contracted to fma"},
    {UNFUSED, 0x3f800001, 0x3f800001, 0xbf800002, "a * b + c is contracted to fma"},
    /* Subnormal operands and results. */
    {ADD, 0x00000001, 0x00000001, 0, "subnormal numbers are flushed to zero in +"},
    {ADD, 0x00800001, 0x80800000, 0, "subnormal numbers are flushed to zero in +"},
    {ADD, 0x007fffff, 0x00000001, 0, "subnormal numbers are flushed to zero in +"},
    {MUL, 0x00400001, 0x3f000000, 0, "subnormal numbers are flushed to zero in *"},
    {MUL, 0x00000003, 0x4b000000, 0, "subnormal numbers are flushed to zero in *"},
    {MUL, 0x1f800001, 0x1f8abcde, 0, "subnormal numbers are flushed to zero in *"},
    {FMA, 0x00000003, 0x4b000000, 0x00000005, "subnormal numbers are flushed to zero in fma"},
    {FMA, 0x1f812345, 0x1f8abcde, 0x80000007, "subnormal numbers are flushed to zero in fma"},
    {ADD, 0x80000000, 0x00000000, 0, "-0 + 0 is not +0"},
    {MUL, 0x80000000, 0x3f800000, 0, "-0 is lost in *"},
    /* Rounding to nearest even. */
    {ADD, 0x3f800000, 0x33800000, 0, "+ is not rounded to nearest even"},
    {ADD, 0x3f800001, 0x33800000, 0, "+ is not rounded to nearest even"},
    {MUL, 0x3f800001, 0x3f800001, 0, "* is not rounded to nearest even"},
    {MUL, 0xbfc90fdb, 0x402df854, 0, "* is not rounded to nearest even"},
    {DIV, 0x3f800000, 0x40400000, 0, "/ is not correctly rounded"},
    {DIV, 0x3f800001, 0x3f7fffff, 0, "/ is not correctly rounded"},
    {DIV, 0x3fffffff, 0x3f800001, 0, "/ is not correctly rounded"},
    {DIV, 0x7f7fffff, 0x7f7ffffe, 0, "/ is not correctly rounded"},
    {DIV, 0x4b800001, 0x40e00000, 0, "/ is not correctly rounded"},
    {DIV, 0x00000007, 0x40000000, 0, "subnormal numbers are flushed to zero in /"},
    {DIV, 0x00800001, 0x3fc00000, 0, "subnormal numbers are flushed to zero in /"},
    {DIV, 0x3f800000, 0x7e800001, 0, "subnormal numbers are flushed to zero in /"},
    {SQRT, 0x40000000, 0, 0, "sqrt is not correctly rounded"},
    {SQRT, 0x3f800001, 0, 0, "sqrt is not correctly rounded"},
    {SQRT, 0x3f7fffff, 0, 0, "sqrt is not correctly rounded"},
    {SQRT, 0x40400001, 0, 0, "sqrt is not correctly rounded"},
    {SQRT, 0x7f7fffff, 0, 0, "sqrt is not correctly rounded"},
    {SQRT, 0x00000003, 0, 0, "subnormal numbers are flushed to zero in sqrt"},
    {SQRT, 0x80000000, 0, 0, "sqrt(-0) is not -0"},
    {CHAIN, 0x3f7d70a4, 0x3dcccccd, 0xbc23d70a, "a chain of fma differs"},
    {CHAIN, 0xbf6b851f, 0x3e99999a, 0x3ba3d70a, "a chain of fma differs"},
};
#define N_CASES LKSI_COUNT(cases)

static float number(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t expected(size_t i)
{
    float a = number(cases[i].a), b = number(cases[i].b), c = number(cases[i].c), r = 0.0f;
    uint32_t bits;
    switch (cases[i].op) {
    case ADD:
        r = a + b;
        break;
    case MUL:
        r = a * b;
        break;
    case FMA:
        r = fmaf(a, b, c);
        break;
    case DIV:
        r = a / b;
        break;
    case SQRT:
        r = sqrtf(a);
        break;
    case UNFUSED:
        r = a * b + c;
        break;
    default:
        for (int j = 0; j < 64; j++)
            r = fmaf(a, r, b + c * (float)j);
    }
    memcpy(&bits, &r, sizeof bits);
    return bits;
}

static lks_status run(struct lksi_dev *dev, const uint32_t *in, uint32_t *out)
{
    const struct lksi_unit unit = {.text = kernel_text, .defines = "", .options = ""};
    const struct lksi_build_progress silent = {NULL, NULL};
    const size_t global = N_CASES, local = 1;
    struct lksi_program *program = NULL;
    struct lksi_kernel *kernel = NULL;
    struct lksi_buf *from = NULL, *to = NULL;
    lks_status st;
    LKSI_TRY(lksi_program_build(&program, dev, &unit, 1, silent));
    LKSI_TRY(lksi_kernel_create(&kernel, program, 0, "probe"));
    LKSI_TRY(lksi_buf_create(&from, dev, N_CASES * 4 * sizeof *in));
    LKSI_TRY(lksi_buf_create(&to, dev, N_CASES * sizeof *out));
    LKSI_TRY(lksi_buf_write(from, 0, in, N_CASES * 4 * sizeof *in, false));
    LKSI_TRY(lksi_kernel_set_buf(kernel, 0, from));
    LKSI_TRY(lksi_kernel_set_buf(kernel, 1, to));
    LKSI_TRY(lksi_kernel_launch(kernel, 1, &global, &local));
    LKSI_TRY(lksi_buf_read(to, 0, out, N_CASES * sizeof *out));
    LKSI_TRY(lksi_program_settle(program));
fail:
    lksi_kernel_destroy(&kernel);
    lksi_program_destroy(&program);
    lksi_buf_destroy(&from);
    lksi_buf_destroy(&to);
    return st;
}

/* A CPU device that flushes although it says it need not: the application did it. */
static const char *hint(const struct lksi_dev *dev, size_t i)
{
    if (strncmp(cases[i].name, "subnormal", 9) != 0)
        return "";
    if (dev->limits.type == LKSI_DEV_CPU && dev->limits.has_denorm)
        return "; an application linked with -ffast-math that starts OpenCL before lockstep does "
               "this: call lockstep first, or link without -ffast-math";
    return dev->limits.has_denorm ? "" : "; it does not claim CL_FP_DENORM either";
}

lks_status lksi_probe(struct lksi_dev *dev)
{
    uint32_t in[N_CASES * 4], out[N_CASES];
    lks_status st;
    for (size_t i = 0; i < N_CASES; i++) {
        in[4 * i] = cases[i].op;
        in[4 * i + 1] = cases[i].a;
        in[4 * i + 2] = cases[i].b;
        in[4 * i + 3] = cases[i].c;
        out[i] = 0;
    }
    st = run(dev, in, out);
    if (st != LKS_OK)
        return lksi_fail_prefix(st, "probing %s: ", dev->limits.name);
    for (size_t i = 0; i < N_CASES; i++) {
        uint32_t want = expected(i);
        if (out[i] != want)
            return lksi_fail(LKS_E_NUMERICS,
                             "%s cannot keep the bits: %s (operands %08x %08x %08x gave %08x, not "
                             "%08x)%s",
                             dev->limits.name, cases[i].name, cases[i].a, cases[i].b, cases[i].c,
                             out[i], want, hint(dev, i));
    }
    return LKS_OK;
}
