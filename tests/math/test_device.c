/*
 * test_device.c - the same text as OpenCL C gives the same bits as in C, on the first OpenCL device
 * (PoCL on a machine without a GPU), with native and with own division and square root.
 */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "device.h"
#include "functions.h"
#include "table.h"

enum { N = 1 << 16, COLUMNS = 7, ROWS = 9001 };

static struct math_device *open_device(bool soft)
{
    static char why[8192];
    struct math_device_params params = {getenv("MATH_DEVICE"), MATH_CL_DIR, MATH_SRC_DIR, soft};
    struct math_device *d = math_device_open(&params, why, sizeof why);
    cr_assert(d != NULL, "%s", why);
    cr_assert(math_device_is_soft(d) || !soft);
    return d;
}

static void compare_all(bool soft)
{
    struct math_device *d = open_device(soft);
    static uint32_t want[N], got[N];
    /* one stride over all patterns; one block of neighbours around 1; the subnormals */
    static const struct {
        uint32_t first, stride;
    } runs[] = {{0, 65537}, {0x3f7f8000u, 1}, {0x80000000u, 127}};
    for (int i = 0; i < MATH_COUNT; i++)
        for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) {
            math_table(soft)[i].run(runs[k].first, runs[k].stride, N, want);
            cr_assert(math_device_run(d, math_base[i].name, runs[k].first, runs[k].stride, N, got));
            for (uint32_t j = 0; j < N; j++)
                cr_assert(got[j] == want[j], "%s at pattern %08x: %08x on %s, %08x in C",
                          math_base[i].name, runs[k].first + j * runs[k].stride, got[j],
                          math_device_name(d), want[j]);
        }
    math_device_close(d);
}

Test(device, native_functions)
{
    compare_all(false);
}

Test(device, soft_functions)
{
    compare_all(true);
}

Test(device, own_division)
{
    struct math_device *d = open_device(true);
    static uint32_t a[N], b[N], out[N];
    for (uint32_t round = 0; round < 16; round++) {
        for (uint32_t i = 0; i < N; i++) {
            uint32_t z = (round * N + i) * 2654435761u;
            a[i] = math_div_pattern((z >> 4) % MATH_DIV_PATTERNS);
            b[i] = math_div_pattern((z >> 18) % MATH_DIV_PATTERNS);
        }
        cr_assert(math_device_divide(d, a, b, N, out));
        for (uint32_t i = 0; i < N; i++)
            cr_assert(out[i] == math_canonical(lks_float(a[i]) / lks_float(b[i])),
                      "%08x / %08x: %08x on %s", a[i], b[i], out[i], math_device_name(d));
    }
    math_device_close(d);
}

Test(device, rows)
{
    struct math_device *d = open_device(false);
    float *x = malloc(sizeof *x * COLUMNS * ROWS);
    uint32_t out[2 * COLUMNS];
    cr_assert(x != NULL);
    for (uint32_t i = 0; i < COLUMNS * ROWS; i++)
        x[i] = lks_random_normal(3u, 1u, 0u, i) * lks_float((100u + i % 40u) << 23);
    cr_assert(math_device_rows(d, x, COLUMNS, ROWS, out));
    for (uint32_t c = 0; c < COLUMNS; c++) {
        cr_assert(out[2 * c] == lks_bits(lks_row_sum(x + c, COLUMNS, ROWS)), "column %u", c);
        cr_assert(out[2 * c + 1] == lks_bits(lks_row_dot(x + c, COLUMNS, x + c, COLUMNS, ROWS)),
                  "squares of column %u", c);
    }
    free(x);
    math_device_close(d);
}
