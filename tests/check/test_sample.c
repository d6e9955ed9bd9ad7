/*
 * test_sample.c - the comparison of bits, and the sample of items that admission compares.
 */
#include <criterion/criterion.h>

#include "helpers.h"
#include "op/sample.h"

#define ROWS 37
#define COLS 130

/* One item is a row: doubled, and its running sum. The second output overwrites input 1. */
static void rows_item(const void *const *in, void *const *out, const void *dims, U64 i)
{
    const F32 *x = in[0], *s = in[1];
    F32 *y = out[0], *t = out[1];
    (void)dims;
    for (U64 c = 0; c < COLS; c++)
        y[i * COLS + c] = x[i * COLS + c] * 2.0f;
    t[i] = s[i] + x[i * COLS];
}

static U64 rows_items(const struct lksi_call *call)
{
    return (U64)call->in[0].dim[0];
}

static lks_status rows_infer(struct lksi_call *call)
{
    call->out[0] = call->in[0];
    call->out[1] = call->in[1];
    return LKS_OK;
}

static const struct lksi_op rows = {.name = "rows",
                                    .min_in = 2,
                                    .max_in = 2,
                                    .n_out = 2,
                                    .alias = {0, 2},
                                    .infer = rows_infer,
                                    .items = rows_items,
                                    .item = rows_item};

static F32 x[ROWS * COLS], s[ROWS], y[ROWS * COLS], t[ROWS];

static struct lksi_call run(void)
{
    struct lksi_call call;
    struct lksi_desc in[2] = {lksi_desc_make(LKSI_F32, 2, (int64_t)ROWS, (int64_t)COLS),
                              lksi_desc_make(LKSI_F32, 1, (int64_t)ROWS)};
    const void *ins[2] = {x, s};
    void *outs[2] = {y, t};
    for (int i = 0; i < ROWS * COLS; i++)
        x[i] = (float)i;
    EXPECT_OK(lksi_call_make(&call, &rows, NULL, 8, 2, in));
    for (U64 i = 0; i < ROWS; i++) {
        s[i] = t[i] = 1.0f;
        rows_item(ins, outs, NULL, i);
    }
    return call;
}

static bool same_after(const struct lksi_call *call, const uint64_t *items, size_t count,
                       struct lksi_diff *diff)
{
    const void *in[2] = {x, s}, *got[2] = {y, t};
    bool same;
    EXPECT_OK(lksi_check_sample(call, in, got, items, count, &same, diff));
    return same;
}

Test(sample, bits_and_distance)
{
    cr_expect(lksi_bits_same(LKSI_F32, 0x7fc00000u, 0xffa00001u), "NaN is a class");
    cr_expect(!lksi_bits_same(LKSI_I32, 0x7fc00000u, 0xffa00001u));
    cr_expect(!lksi_bits_same(LKSI_F32, 0u, 0x80000000u), "+0 is not -0");
    cr_expect(lksi_bits_ulp(LKSI_F32, 0u, 0x80000000u) == 1);
    cr_expect(lksi_bits_ulp(LKSI_F32, 0x80000001u, 1u) == 3);
    cr_expect(lksi_bits_ulp(LKSI_F32, 0x3f800000u, 0x3f7fffffu) == 1);
    cr_expect(lksi_bits_ulp(LKSI_F32, 0x7fc00000u, 0u) == UINT64_MAX);
    cr_expect(lksi_bits_ulp(LKSI_I32, (uint32_t)-2, 3u) == 5);
}

Test(sample, finds_a_difference_in_each_output)
{
    struct lksi_call call = run();
    struct lksi_diff diff;
    uint64_t *items;
    size_t count;
    EXPECT_OK(lksi_sample_items(&call, 1, &items, &count));
    cr_assert(count == ROWS, "%zu of %d rows: 256 draws should reach them all", count, ROWS);
    cr_assert(same_after(&call, items, count, &diff));
    y[ROWS * COLS - 1] = -y[ROWS * COLS - 1];
    cr_assert(!same_after(&call, items, count, &diff));
    cr_expect(diff.output == 0 && diff.index == ROWS * COLS - 1);
    cr_expect(diff.got == (diff.want ^ 0x80000000u));
    y[ROWS * COLS - 1] = -y[ROWS * COLS - 1];
    t[5] += 1.0f;
    cr_assert(!same_after(&call, items, count, &diff));
    cr_expect(diff.output == 1 && diff.index == 5);
    cr_expect(same_after(&call, items, 5, &diff), "only the sample is looked at");
    free(items);
}

static lks_status wide_infer(struct lksi_call *call)
{
    call->out[0] = call->in[0];
    return LKS_OK;
}

Test(sample, holds_corners_and_borders)
{
    static const struct lksi_op wide = {
        .name = "wide", .min_in = 1, .max_in = 1, .n_out = 1, .infer = wide_infer};
    struct lksi_desc in = lksi_desc_make(LKSI_F32, 2, (int64_t)1000, (int64_t)1000);
    struct lksi_call call;
    uint64_t *items, again_count = 0, *again;
    size_t count;
    bool corner[4] = {false}, row_63 = false, row_64 = false;
    EXPECT_OK(lksi_call_make(&call, &wide, NULL, 8, 1, &in));
    EXPECT_OK(lksi_sample_items(&call, 1, &items, &count));
    EXPECT_OK(lksi_sample_items(&call, 2, &again, &again_count));
    for (size_t i = 0; i < count; i++) {
        cr_assert(items[i] < 1000000 && (i == 0 || items[i] > items[i - 1]));
        corner[0] |= items[i] == 0;
        corner[1] |= items[i] == 999;
        corner[2] |= items[i] == 999000;
        corner[3] |= items[i] == 999999;
        row_63 |= items[i] / 1000 == 63;
        row_64 |= items[i] / 1000 == 64;
    }
    cr_expect(corner[0] && corner[1] && corner[2] && corner[3] && row_63 && row_64);
    cr_expect(count > 256 && again_count > 256);
    cr_expect(memcmp(items, again, 64 * sizeof *items) != 0, "another seed, the same sample");
    free(items);
    free(again);
}
