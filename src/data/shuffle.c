/*
 * shuffle.c - the order of an epoch, by a radix sort of Philox keys. The sort is stable and starts
 * from the indices in order, which is the rule for equal keys.
 */
#include <stdlib.h>

#include "contract/philox.h"
#include "data/shuffle.h"

struct entry {
    uint64_t key;
    uint32_t index;
};

enum { DIGITS = 8, VALUES = 256 };

uint64_t lksi_shuffle_key(uint64_t seed, uint32_t stream, uint32_t epoch, uint32_t index)
{
    struct lks_words b = lks_random_block(seed, stream, epoch, 2 * (uint64_t)index);
    return index % 2 == 0 ? b.w0 | (uint64_t)b.w1 << 32 : b.w2 | (uint64_t)b.w3 << 32;
}

/* Moves all entries from `from` to `to`, ordered by one digit of the key; `start` holds how many
 * entries have each value of it. */
static void sort_by_digit(const struct entry *from, struct entry *to, size_t count, int digit,
                          size_t start[VALUES])
{
    size_t sum = 0;
    for (int v = 0; v < VALUES; v++) {
        size_t n = start[v];
        start[v] = sum;
        sum += n;
    }
    for (size_t i = 0; i < count; i++)
        to[start[from[i].key >> (8 * digit) & 255]++] = from[i];
}

lks_status lksi_shuffle_sort(const uint64_t *keys, size_t count, uint32_t *order)
{
    size_t counts[DIGITS][VALUES] = {{0}};
    lks_status st = LKS_OK;
    struct entry *a = lksi_alloc(count, sizeof *a);
    struct entry *b = a != NULL ? lksi_alloc(count, sizeof *b) : NULL;
    if (b == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    for (size_t i = 0; i < count; i++) {
        a[i] = (struct entry){.key = keys[i], .index = (uint32_t)i};
        for (int d = 0; d < DIGITS; d++)
            counts[d][keys[i] >> (8 * d) & 255]++;
    }
    for (int d = 0; d < DIGITS; d++) {
        sort_by_digit(a, b, count, d, counts[d]);
        struct entry *swap = a;
        a = b;
        b = swap;
    }
    for (size_t i = 0; i < count; i++)
        order[i] = a[i].index;
fail:
    free(a);
    free(b);
    return st;
}

lks_status lksi_shuffle_order(uint64_t seed, uint32_t stream, uint32_t epoch, size_t count,
                              uint32_t *order)
{
    uint64_t *keys;
    lks_status st;
    if (count > UINT32_MAX)
        return lksi_fail(LKS_E_ARGUMENT, "cannot shuffle %zu samples: at most %u are supported",
                         count, UINT32_MAX);
    keys = lksi_alloc(count, sizeof *keys);
    if (keys == NULL)
        return LKS_E_MEMORY;
    for (size_t i = 0; i < count; i++)
        keys[i] = lksi_shuffle_key(seed, stream, epoch, (uint32_t)i);
    st = lksi_shuffle_sort(keys, count, order);
    free(keys);
    return st;
}
