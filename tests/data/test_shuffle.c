/*
 * test_shuffle.c - orders of epochs. The lists marked "oracle" are computed again by
 * shuffle_oracle.py, which has its own Philox.
 */
#include "base/hash.h"
#include "base/stream.h"
#include "data/shuffle.h"
#include "helpers.h"

static uint32_t stream(void)
{
    return lksi_stream_id(LKSI_SHUFFLE_USE, LKSI_SHUFFLE_NAME);
}

static void expect_order(uint64_t seed, uint32_t epoch, size_t count, const uint32_t *want)
{
    uint32_t got[64];
    cr_assert_leq(count, 64);
    EXPECT_OK(lksi_shuffle_order(seed, stream(), epoch, count, got));
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(got[i], want[i], "seed %llu epoch %u: place %zu", (unsigned long long)seed,
                     epoch, i);
}

/* clang-format off */
Test(shuffle, keys)
{
    const uint64_t want[] = {0xd5523b098e070124, 0x3272339348b89d5a, 0xb987dedb12846998,
                             0x1d3d5fc87469513d, 0x840d1c0480b547a9}; /* oracle: 1 0 5 key */
    for (uint32_t i = 0; i < LKSI_COUNT(want); i++)
        cr_assert_eq(lksi_shuffle_key(1, stream(), 0, i), want[i], "key %u", i);
}

Test(shuffle, orders)
{
    const uint32_t first[] = {10, 3, 1, 6, 12, 15, 9,
                              11, 4, 8, 14, 2, 5, 0, 13, 7}; /* oracle: 1 0 16 order */
    const uint32_t second[] = {0, 9, 4, 6, 5, 8, 10, 12,
                               13, 7, 2, 3, 15, 14, 1, 11}; /* oracle: 1 1 16 order */
    const uint32_t wide[] = {1, 5, 8, 4, 3, 0, 2, 6, 7}; /* oracle: 0xfedcba9876543210 7 9 order */
    expect_order(1, 0, LKSI_COUNT(first), first);
    expect_order(1, 1, LKSI_COUNT(second), second);
    expect_order(0xfedcba9876543210u, 7, LKSI_COUNT(wide), wide);
}
/* clang-format on */

/* The whole order of the bundled training set; the digest is of the u32 values, little-endian. */
Test(shuffle, whole_epoch)
{
    enum { COUNT = 8000 };
    static uint32_t order[COUNT];
    static bool seen[COUNT];
    char hex[LKSI_SHA256_HEX];
    EXPECT_OK(lksi_shuffle_order(1, stream(), 0, COUNT, order));
    for (size_t i = 0; i < COUNT; i++) {
        cr_assert_lt(order[i], COUNT);
        cr_assert_not(seen[order[i]], "%u comes twice", order[i]);
        seen[order[i]] = true;
        if (i > 0)
            cr_assert_lt(lksi_shuffle_key(1, stream(), 0, order[i - 1]),
                         lksi_shuffle_key(1, stream(), 0, order[i]));
    }
    EXPECT_OK(lksi_sha256_bytes(order, sizeof order, hex));
    cr_assert_str_eq(hex, "4221e1e3fa1b3e3316980d14999ee0d4890a5515a1f8123da3a19248a77b48f2");
}

Test(shuffle, index_breaks_ties)
{
    const uint64_t keys[] = {5, UINT64_MAX, 5, 0, 1ull << 63, 5, 0};
    const uint32_t want[] = {3, 6, 0, 2, 5, 4, 1};
    uint32_t got[LKSI_COUNT(want)];
    EXPECT_OK(lksi_shuffle_sort(keys, LKSI_COUNT(keys), got));
    for (size_t i = 0; i < LKSI_COUNT(want); i++)
        cr_assert_eq(got[i], want[i], "place %zu", i);
}

Test(shuffle, edges)
{
    uint32_t order[2] = {7, 7};
    EXPECT_OK(lksi_shuffle_order(1, stream(), 0, 0, order));
    cr_assert_eq(order[0], 7);
    EXPECT_OK(lksi_shuffle_order(1, stream(), 0, 1, order));
    cr_assert_eq(order[0], 0);
    cr_assert_eq(order[1], 7);
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_shuffle_order(1, stream(), 0, (size_t)UINT32_MAX + 1, order),
                "4294967296 samples");
}
