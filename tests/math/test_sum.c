/* test_sum.c - tree, counter and rows against the words of rules 4 to 6. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "contract/sum.h"

enum { MOST = 20000 };

static F32 data[MOST], work[MOST];

/* Wide exponents and both signs, so that another order gives other bits. */
static void fill(void)
{
    U64 state = 7;
    for (int i = 0; i < MOST; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        data[i] = lks_float((U32)(state >> 63) << 31 | (110u + (U32)(state >> 58 & 31u)) << 23 |
                            (U32)(state >> 30 & 0x7fffffu));
    }
}

/* Rule 5 as it is written there. */
static F32 tree(F32 *v, int m)
{
    for (int s = 1; s < m; s *= 2)
        for (int i = 0; i + s < m; i += 2 * s)
            v[i] += v[i + s];
    return v[0];
}

static F32 row_piece(const F32 *x, const F32 *y, int n)
{
    F32 lane[32] = {0};
    for (int j = 0; j < 32; j++)
        for (int i = j; i < n; i += 32)
            lane[j] = y != NULL ? fmaf(x[i], y[i], lane[j]) : lane[j] + x[i];
    return tree(lane, 32);
}

/* Rule 6 as it is written there. */
static F32 row(const F32 *x, const F32 *y, int n)
{
    F32 pieces[MOST / 4096 + 1];
    int count = 0;
    for (int begin = 0; begin < n; begin += 4096)
        pieces[count++] =
            row_piece(x + begin, y != NULL ? y + begin : NULL, n - begin < 4096 ? n - begin : 4096);
    return count > 0 ? tree(pieces, count) : 0.0f;
}

Test(sum, tree_and_counter)
{
    int orders = 0;
    fill();
    for (int m = 1; m < 600; m++) {
        struct lks_counter counter;
        F32 chain = 0, want, got;
        lks_counter_init(&counter);
        for (int i = 0; i < m; i++) {
            lks_counter_push(&counter, data[i]);
            chain += data[i];
        }
        memcpy(work, data, sizeof work);
        want = tree(work, m);
        memcpy(work, data, sizeof work);
        got = lks_tree(work, (U32)m);
        cr_assert(lks_bits(got) == lks_bits(want), "tree of %d", m);
        cr_assert(lks_bits(lks_counter_root(&counter)) == lks_bits(want), "counter of %d", m);
        memset(work, 0, sizeof work);
        for (int i = 0; i < m; i++)
            work[3 * i] = data[i];
        cr_assert(lks_bits(lks_tree_global(work, 3, (U32)m)) == lks_bits(want), "strided %d", m);
        orders += lks_bits(chain) != lks_bits(want);
    }
    cr_assert(orders > 300, "the data do not show the order: %d of 600", orders);
}

/* Padding with +0 to a power of two is the same tree once + 0.0f has been applied. */
Test(sum, padding_is_harmless)
{
    fill();
    for (int m = 1; m < 300; m++) {
        int p = 1;
        while (p < m)
            p *= 2;
        memcpy(work, data, sizeof work);
        F32 want = lks_final(lks_tree(work, (U32)m));
        memset(work, 0, sizeof work);
        memcpy(work, data, (size_t)m * sizeof *work);
        cr_assert(lks_bits(lks_final(lks_tree(work, (U32)p))) == lks_bits(want), "%d to %d", m, p);
    }
}

Test(sum, rows)
{
    static const int sizes[] = {0,    1,    2,    31,   32,   33,   63,   64,    65,    1000,
                                4095, 4096, 4097, 8191, 8192, 8193, 9999, 12288, 12289, 19999};
    fill();
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        int n = sizes[k];
        cr_assert(lks_bits(lks_row_sum(data, 1, (U64)n)) == lks_bits(row(data, NULL, n)), "%d", n);
        cr_assert(lks_bits(lks_row_dot(data, 1, data, 1, (U64)n)) == lks_bits(row(data, data, n)),
                  "dot %d", n);
    }
    for (int i = 0; i < MOST / 2; i++)
        work[i] = data[2 * i];
    cr_assert(lks_bits(lks_row_sum(data, 2, 9001)) == lks_bits(row(work, NULL, 9001)), "stride");
}

Test(sum, final_zero)
{
    cr_assert(lks_bits(lks_final(-0.0f)) == 0u);
    cr_assert(lks_bits(lks_final(-1.5f)) == lks_bits(-1.5f));
    cr_assert(lks_bits(lks_final(-0x1p-149f)) == 0x80000001u);
}
