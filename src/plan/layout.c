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

/* The lowest offset in `chunk` where `s` covers no placed slot that lives at the same time. */
static uint64_t lowest(const struct lksi_slot *s, struct lksi_slot *const *placed, size_t n,
                       size_t chunk)
{
    uint64_t at = 0;
    bool moved = true;
    while (moved) {
        moved = false;
        for (size_t i = 0; i < n; i++) {
            const struct lksi_slot *p = placed[i];
            if (p->chunk == chunk && meet(p, s) && at < p->offset + p->bytes &&
                p->offset < at + s->bytes) {
                at = p->offset + p->bytes;
                moved = true;
            }
        }
    }
    return at;
}

lks_status lksi_layout(struct lksi_slot *slot, size_t n, uint64_t align, uint64_t max_chunk,
                       uint64_t *chunk_bytes, size_t *n_chunk)
{
    struct order *order = lksi_alloc(n, sizeof *order);
    struct lksi_slot **placed = lksi_alloc(n, sizeof *placed);
    lks_status st = LKS_OK;
    size_t chunks = 0;
    if (order == NULL || placed == NULL) {
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
            s->offset = lowest(s, placed, i, s->chunk);
            if (s->offset + s->bytes <= max_chunk)
                break;
        }
        if (s->chunk >= chunks) {
            chunk_bytes[s->chunk] = 0;
            chunks = s->chunk + 1;
        }
        if (s->offset + s->bytes > chunk_bytes[s->chunk])
            chunk_bytes[s->chunk] = s->offset + s->bytes;
        placed[i] = s;
    }
    *n_chunk = chunks;
fail:
    free(order);
    free(placed);
    return st;
}
