/*
 * store.c - device memory that plans share: states by name and chunks for values of a step.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

struct entry {
    char *name; /* NULL: a chunk */
    size_t index;
    struct lksi_buf *buf;
};

struct strike {
    const struct lksi_op *op;
    const struct lksi_schedule *schedule;
};

struct lksi_store {
    struct lksi_dev *dev;
    struct entry *entry;
    size_t n, cap;
    struct strike *strike;
    size_t n_strike, cap_strike;
    struct lksi_tuning *tuning;
};

lks_status lksi_store_create(struct lksi_store **store, struct lksi_dev *dev)
{
    struct lksi_store *s = lksi_alloc(1, sizeof *s);
    if (s == NULL)
        return LKS_E_MEMORY;
    s->dev = dev;
    lks_status st = lksi_tuning_open(&s->tuning, dev, lksi_embedded_tuning);
    if (st != LKS_OK) {
        free(s);
        return st;
    }
    *store = s;
    return LKS_OK;
}

struct lksi_tuning *lksi_store_tuning(const struct lksi_store *store)
{
    return store->tuning;
}

void lksi_store_destroy(struct lksi_store **store)
{
    struct lksi_store *s = *store;
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n; i++) {
        free(s->entry[i].name);
        lksi_buf_destroy(&s->entry[i].buf);
    }
    free(s->entry);
    free(s->strike);
    lksi_tuning_close(&s->tuning);
    free(s);
    *store = NULL;
}

struct lksi_dev *lksi_store_dev(struct lksi_store *store)
{
    return store->dev;
}

static lks_status add(struct lksi_store *s, const char *name, size_t index, uint64_t bytes,
                      struct lksi_buf **buf)
{
    struct lksi_buf *made = NULL;
    char *copy = NULL;
    lks_status st;
    if (!lksi_grow(&s->entry, &s->cap, s->n + 1, sizeof *s->entry))
        return LKS_E_MEMORY;
    if (name != NULL && (copy = lksi_strdup(name)) == NULL)
        return LKS_E_MEMORY;
    st = lksi_buf_create(&made, s->dev, bytes);
    if (st != LKS_OK) {
        free(copy);
        return st;
    }
    s->entry[s->n++] = (struct entry){copy, index, made};
    *buf = made;
    return LKS_OK;
}

lks_status lksi_store_state(struct lksi_store *s, const char *name, uint64_t bytes,
                            struct lksi_buf **buf)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->entry[i].name == NULL || strcmp(s->entry[i].name, name) != 0)
            continue;
        if (lksi_buf_bytes(s->entry[i].buf) < bytes)
            return lksi_fail(LKS_E_ARGUMENT, "state `%s` is used with two sizes", name);
        *buf = s->entry[i].buf;
        return LKS_OK;
    }
    return add(s, name, 0, bytes, buf);
}

lks_status lksi_store_chunk(struct lksi_store *s, size_t index, uint64_t bytes,
                            struct lksi_buf **buf)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->entry[i].name == NULL && s->entry[i].index == index &&
            lksi_buf_bytes(s->entry[i].buf) >= bytes) {
            *buf = s->entry[i].buf;
            return LKS_OK;
        }
    return add(s, NULL, index, bytes, buf);
}

bool lksi_store_struck(const struct lksi_store *store, const struct lksi_op *op,
                       const struct lksi_schedule *schedule)
{
    for (size_t i = 0; i < store->n_strike; i++)
        if (store->strike[i].op == op && store->strike[i].schedule == schedule)
            return true;
    return false;
}

lks_status lksi_store_strike(struct lksi_store *store, const struct lksi_op *op,
                             const struct lksi_schedule *schedule)
{
    if (!lksi_grow(&store->strike, &store->cap_strike, store->n_strike + 1, sizeof *store->strike))
        return LKS_E_MEMORY;
    store->strike[store->n_strike++] = (struct strike){op, schedule};
    return LKS_OK;
}
