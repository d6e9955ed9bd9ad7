/*
 * resident.c - data sets that lie on the device: uploaded once, so that a step sends only the
 * numbers of its samples. They are copied, so the bits are those of batches sent by the host.
 */
#include <stdlib.h>
#include <string.h>

#include "rt/api.h"
#include "train/train.h"

#define MIB(bytes) ((double)(bytes) / 1048576.0)

static uint64_t sample_bytes(const struct lksi_dataset *d)
{
    return (uint64_t)d->count * d->sample * (d->pixels != NULL ? 1 : sizeof(float));
}

static uint64_t table_bytes(const struct lksi_dataset *d)
{
    return d->pixels != NULL ? 256u * (uint64_t)d->c * sizeof(float) : 0;
}

/* Whole words, since kernels read bytes by the word. */
static uint64_t words(uint64_t bytes)
{
    return (bytes + 3) / 4 * 4;
}

uint64_t lksi_resident_bytes(const struct lksi_dataset *d)
{
    return words(sample_bytes(d)) + table_bytes(d);
}

const char *lksi_resident_declines(enum lks_resident wish, const struct lksi_limits *dev,
                                   const struct lksi_dataset *d, uint64_t taken)
{
    uint64_t bytes = lksi_resident_bytes(d);
    uint64_t room = wish == LKS_RESIDENT_YES ? dev->memory : dev->memory / 4;
    if (wish == LKS_RESIDENT_NO)
        return "`resident` is `no`";
    if (d->fill != NULL)
        return "their samples are made as they are read (texts, moving digits, callbacks)";
    if (wish == LKS_RESIDENT_AUTO && (dev->type == LKSI_DEV_REF || dev->unified_memory))
        return "the device computes in the host's memory";
    if (words(sample_bytes(d)) > dev->max_alloc)
        return "they are larger than the largest allocation of the device";
    if (bytes > room || taken > dev->memory || bytes > dev->memory - taken)
        return wish == LKS_RESIDENT_YES ? "there is not enough device memory"
                                        : "they would take more than a quarter of the device's "
                                          "memory, or leave too little of it";
    return NULL;
}

static bool is_it(const struct lksi_resident *r, const struct lksi_dataset *d)
{
    return r->x != NULL && strcmp(r->sha256, d->sha256) == 0 &&
           r->table_bytes == table_bytes(d) &&
           (r->table_bytes == 0 || memcmp(r->table_copy, d->table, r->table_bytes) == 0);
}

const struct lksi_resident *lksi_resident_find(struct lks_trainer *t, const struct lksi_dataset *d)
{
    for (int i = 0; i < LKSI_RESIDENTS && d->fill == NULL; i++)
        if (is_it(&t->resident[i], d))
            return &t->resident[i];
    return NULL;
}

/* The device no longer uses it. */
static void drop(struct lksi_resident *r)
{
    lksi_buf_destroy(&r->x);
    lksi_buf_destroy(&r->table);
    free(r->table_copy);
    *r = (struct lksi_resident){0};
}

void lksi_residents_free(struct lks_trainer *t)
{
    for (int i = 0; i < LKSI_RESIDENTS; i++)
        drop(&t->resident[i]);
}

static lks_status send(struct lks_trainer *t, struct lksi_buf **buf, const void *data,
                       uint64_t bytes)
{
    lks_status st = lksi_buf_create(buf, t->dev, words(bytes));
    return st == LKS_OK ? lksi_buf_write(*buf, 0, data, bytes, true) : st;
}

static lks_status upload(struct lks_trainer *t, const struct lksi_dataset *d,
                         struct lksi_resident *r)
{
    const void *x = d->pixels != NULL   ? (const void *)d->pixels
                    : d->floats != NULL ? (const void *)d->floats
                                        : d->ints;
    lks_status st = LKS_OK;
    memcpy(r->sha256, d->sha256, sizeof r->sha256);
    r->table_bytes = table_bytes(d);
    r->bytes = lksi_resident_bytes(d);
    LKSI_TRY(send(t, &r->x, x, sample_bytes(d)));
    if (r->table_bytes > 0) {
        r->table_copy = lksi_alloc(1, r->table_bytes);
        if (r->table_copy == NULL) {
            st = LKS_E_MEMORY;
            goto fail;
        }
        memcpy(r->table_copy, d->table, r->table_bytes);
        LKSI_TRY(send(t, &r->table, d->table, r->table_bytes));
    }
    return LKS_OK;
fail:
    drop(r);
    return st;
}

uint64_t lksi_residents_bytes(const struct lks_trainer *t)
{
    uint64_t sum = 0;
    for (int i = 0; i < LKSI_RESIDENTS; i++)
        sum += t->resident[i].bytes;
    return sum;
}

/* What the trainer takes besides data sets; before it has a plan, nothing is known. */
static uint64_t taken(const struct lks_trainer *t)
{
    struct lks_memory m;
    if (t->n_plan == 0 || t->feed[0].buf == NULL || lks_trainer_memory(t, &m) != LKS_OK)
        return 0;
    return m.total - m.data + lksi_residents_bytes(t);
}

lks_status lksi_resident_decide(const struct lks_trainer *t, const struct lksi_dataset *d,
                                const char *what, bool *yes)
{
    enum lks_resident wish = t->params.resident;
    const struct lksi_limits *dev = lksi_dev_limits(t->dev);
    const char *why = lksi_resident_declines(wish, dev, d, taken(t));
    if (why != NULL && wish == LKS_RESIDENT_YES)
        return lksi_fail(d->fill != NULL ? LKS_E_INPUT : LKS_E_MEMORY,
                         "resident: the %s data (%.1f MiB) cannot lie on %s: %s; take `auto` or `no`",
                         what, MIB(lksi_resident_bytes(d)), dev->name, why);
    if (why != NULL && wish == LKS_RESIDENT_AUTO)
        lksi_log(LKS_LOG_INFO, "the %s data are sent batch by batch: %s", what, why);
    *yes = why == NULL;
    return LKS_OK;
}

/* A free place is there: at most the other data set has one. */
static lks_status place(struct lks_trainer *t, const struct lksi_dataset *d, const char *what)
{
    struct lksi_resident *r = t->resident[0].x == NULL ? &t->resident[0] : &t->resident[1];
    lks_status st = upload(t, d, r);
    if (st == LKS_E_MEMORY && t->params.resident == LKS_RESIDENT_AUTO) {
        lksi_log(LKS_LOG_INFO, "the %s data are sent batch by batch: %s", what,
                 lks_error_message());
        return LKS_OK;
    }
    if (st == LKS_OK)
        lksi_log(LKS_LOG_INFO, "the %s data lie on the device, %.1f MiB", what,
                 MIB(lksi_resident_bytes(d)));
    return st;
}

static lks_status get(struct lks_trainer *t, const struct lksi_dataset *d, const char *what)
{
    bool yes = false;
    lks_status st = LKS_OK;
    if (lksi_resident_find(t, d) != NULL)
        return LKS_OK;
    st = lksi_resident_decide(t, d, what, &yes);
    return st == LKS_OK && yes ? place(t, d, what) : st;
}

lks_status lksi_residents_get(struct lks_trainer *t, const struct lksi_dataset *train,
                              const struct lksi_dataset *test)
{
    lks_status st = LKS_OK;
    for (int i = 0; i < LKSI_RESIDENTS; i++) {
        struct lksi_resident *r = &t->resident[i];
        if (r->x == NULL || is_it(r, train) || (test != NULL && is_it(r, test)))
            continue;
        LKSI_TRY(lksi_dev_wait(t->dev, 0));
        drop(r);
    }
    LKSI_TRY(get(t, train, "training"));
    if (test != NULL)
        LKSI_TRY(get(t, test, "test"));
fail:
    return st;
}
