/*
 * test_layout.c - values that live at the same time never share memory, and reuse happens.
 */
#include "helpers.h"
#include "plan/plan.h"

#define N 60

static bool overlap(const struct lksi_slot *a, const struct lksi_slot *b)
{
    return a->first <= b->last && b->first <= a->last && a->chunk == b->chunk &&
           a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static void random_slots(struct lksi_slot *s, uint64_t *state)
{
    for (int i = 0; i < N; i++) {
        int first = (int)(next_random(state) % 40);
        s[i] = (struct lksi_slot){.bytes = 1 + next_random(state) % 5000, .first = first,
                                  .last = first + (int)(next_random(state) % 8)};
    }
}

Test(layout, living_values_are_apart_for_many_graphs)
{
    uint64_t state = 99;
    for (int round = 0; round < 200; round++) {
        struct lksi_slot s[N];
        uint64_t chunk[N], max = round % 3 == 0 ? 8192 : 1u << 30, sum = 0;
        size_t chunks;
        random_slots(s, &state);
        EXPECT_OK(lksi_layout(s, N, 128, max, chunk, &chunks));
        for (int i = 0; i < N; i++) {
            cr_assert_eq(s[i].offset % 128, 0);
            cr_assert(s[i].chunk < chunks && s[i].offset + s[i].bytes <= chunk[s[i].chunk]);
            cr_assert_leq(chunk[s[i].chunk], max);
            sum += s[i].bytes;
            for (int j = 0; j < i; j++)
                cr_assert(!overlap(&s[i], &s[j]), "round %d: %d and %d", round, i, j);
        }
        if (max > 8192)
            cr_assert_lt(chunk[0], sum, "nothing was reused");
    }
}

Test(layout, a_chain_needs_two_buffers)
{
    struct lksi_slot s[10];
    uint64_t chunk[10];
    size_t chunks;
    for (int i = 0; i < 10; i++)
        s[i] = (struct lksi_slot){.bytes = 1024, .first = i, .last = i + 1};
    EXPECT_OK(lksi_layout(s, 10, 64, 1u << 20, chunk, &chunks));
    cr_assert_eq(chunks, 1);
    cr_assert_eq(chunk[0], 2048);
}

Test(layout, a_value_above_the_allocation_limit_is_refused)
{
    struct lksi_slot s = {.bytes = 5000, .first = 0, .last = 0};
    uint64_t chunk[1];
    size_t chunks;
    EXPECT_FAIL(LKS_E_MEMORY, lksi_layout(&s, 1, 64, 4096, chunk, &chunks), "smaller batch");
}
