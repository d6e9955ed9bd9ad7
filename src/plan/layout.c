/*
 * layout.c - buffer reuse: values whose lifetimes do not meet share memory. The largest are placed
 * first, each at the lowest offset that no living neighbour covers.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

struct order {
    const struct lksi_slot *slot;
    size_t index;
};

static int larger_first(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    if (x->slot->bytes != y->slot->bytes)
        return x->slot->bytes > y->slot->bytes ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static bool meet(const struct lksi_slot *a, const struct lksi_slot *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The placed slots in the order of chunk and offset, so that one look at each finds a gap. */
struct placed {
    struct lksi_slot **slot;
    size_t n;
};

/* The first of them in `chunk` or behind. */
static size_t chunk_begin(const struct placed *p, size_t chunk)
{
    size_t low = 0, high = p->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (p->slot[middle]->chunk < chunk)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The lowest offset in `chunk` where `s` covers no placed slot that lives at the same time. */
static uint64_t lowest(const struct lksi_slot *s, const struct placed *placed, size_t chunk)
{
    uint64_t at = 0;
    for (size_t i = chunk_begin(placed, chunk); i < placed->n; i++) {
        const struct lksi_slot *p = placed->slot[i];
        if (p->chunk != chunk || p->offset >= at + s->bytes)
            break;
        if (meet(p, s) && at < p->offset + p->bytes)
            at = p->offset + p->bytes;
    }
    return at;
}

static void insert(struct placed *placed, struct lksi_slot *s)
{
    size_t at = chunk_begin(placed, s->chunk);
    while (at < placed->n && placed->slot[at]->chunk == s->chunk &&
           placed->slot[at]->offset < s->offset)
        at++;
    memmove(placed->slot + at + 1, placed->slot + at, (placed->n - at) * sizeof *placed->slot);
    placed->slot[at] = s;
    placed->n++;
}

lks_status lksi_layout(struct lksi_slot *slot, size_t n, uint64_t align, uint64_t max_chunk,
                       uint64_t *chunk_bytes, size_t *n_chunk)
{
    struct order *order = lksi_alloc(n, sizeof *order);
    struct placed placed = {lksi_alloc(n, sizeof *placed.slot), 0};
    lks_status st = LKS_OK;
    size_t chunks = 0;
    if (order == NULL || placed.slot == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    for (size_t i = 0; i < n; i++) {
        slot[i].bytes = (slot[i].bytes + align - 1) / align * align;
        order[i] = (struct order){&slot[i], i};
        if (slot[i].bytes > max_chunk) {
            st = lksi_fail(LKS_E_MEMORY,
                           "one value needs %.1f MiB, and the device allows %.1f MiB in one piece; "
                           "use a smaller batch",
                           (double)slot[i].bytes / 1048576, (double)max_chunk / 1048576);
            goto fail;
        }
    }
    qsort(order, n, sizeof *order, larger_first);
    for (size_t i = 0; i < n; i++) {
        struct lksi_slot *s = &slot[order[i].index];
        for (s->chunk = 0;; s->chunk++) {
            s->offset = lowest(s, &placed, s->chunk);
            if (s->offset + s->bytes <= max_chunk)
                break;
        }
        if (s->chunk >= chunks) {
            chunk_bytes[s->chunk] = 0;
            chunks = s->chunk + 1;
        }
        if (s->offset + s->bytes > chunk_bytes[s->chunk])
            chunk_bytes[s->chunk] = s->offset + s->bytes;
        insert(&placed, s);
    }
    *n_chunk = chunks;
fail:
    free(order);
    free(placed.slot);
    return st;
}
