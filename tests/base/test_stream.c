/*
 * test_stream.c - stream numbers against the published FNV-1a values, and the refusal of
 * collisions with a real one.
 */
#include "base/stream.h"
#include "helpers.h"

Test(stream, published_values)
{
    cr_assert_eq(lksi_fnv1a32("", 0), 0x811c9dc5u);
    cr_assert_eq(lksi_fnv1a32("a", 1), 0xe40c292cu);
    cr_assert_eq(lksi_fnv1a32("foobar", 6), 0xbf9cf968u);
    cr_assert_eq(lksi_stream_id("shuffle", "train"), lksi_fnv1a32("shuffle:train", 13));
    cr_assert_eq(lksi_stream_id("shuffle", "train"), 0xb11af9e6u);
}

Test(stream, registry)
{
    struct lksi_streams s = {0};
    uint32_t first, again, other = 7;
    EXPECT_OK(lksi_streams_add(&s, "init", "layer282208.weight", &first));
    EXPECT_OK(lksi_streams_add(&s, "dropout", "layer282208.weight", &other));
    cr_assert_neq(first, other);
    EXPECT_OK(lksi_streams_add(&s, "init", "layer282208.weight", &again));
    cr_assert_eq(first, again);
    cr_assert_eq(s.count, 2);
    other = 7;
    EXPECT_FAIL(LKS_E_INPUT, lksi_streams_add(&s, "init", "layer1132104.weight", &other),
                "init:layer282208.weight", "init:layer1132104.weight", "0x5a10312c", "rename");
    cr_assert_eq(other, 7, "written on failure");
    cr_assert_eq(s.count, 2);
    lksi_streams_free(&s);
    cr_assert_eq(s.count, 0);
}

Test(stream, many_stay_sorted)
{
    struct lksi_streams s = {0};
    char name[32];
    uint32_t id;
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "layer%d", i);
        EXPECT_OK(lksi_streams_add(&s, "init", name, &id));
    }
    cr_assert_eq(s.count, 300);
    for (size_t i = 1; i < s.count; i++)
        cr_assert_lt(s.items[i - 1].id, s.items[i].id);
    lksi_streams_free(&s);
}
