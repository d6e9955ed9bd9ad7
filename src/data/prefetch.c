/*
 * prefetch.c - a thread that gathers the next batch into one of two buffers.
 *
 * Batch number b of an epoch lives in slot b mod 2. `produced` and `consumed` count batches;
 * the thread may fill slot b while b < consumed + 2. A start raises `epoch`, so that a batch
 * gathered for an epoch that was given up is dropped.
 */
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/fenv.h"
#include "data/prefetch.h"

struct slot {
    float *x;
    int32_t *labels;
    size_t first, n;
    lks_status status;
    char message[2048];
};

struct lksi_prefetch {
    const struct lksi_dataset *ds;
    size_t batch;
    struct slot slots[2];
    pthread_t thread;
    bool thread_runs;

    pthread_mutex_t lock; /* of all below, and of a slot while it changes hands */
    pthread_cond_t changed;
    const uint32_t *order;
    size_t first, end;
    uint64_t epoch, produced, consumed, batches;
    bool gathering, held, quit;
};

/* Gathers one batch; called without the lock, the slot belongs to the thread. */
static void fill_slot(struct lksi_prefetch *p, struct slot *s, const uint32_t *order)
{
    if (lksi_dataset_sends_bytes(p->ds)) {
        lksi_dataset_gather_bytes(p->ds, order, s->first, s->n, (uint8_t *)s->x, s->labels);
        s->status = LKS_OK;
        return;
    }
    s->status = lksi_dataset_gather(p->ds, order, s->first, s->n, s->x, s->labels);
    if (s->status != LKS_OK) {
        strncpy(s->message, lks_error_message(), sizeof s->message - 1);
        s->message[sizeof s->message - 1] = '\0';
    }
}

static void *work(void *argument)
{
    struct lksi_prefetch *p = argument;
    struct lksi_fenv unused;
    lksi_fenv_enter(&unused);
    pthread_mutex_lock(&p->lock);
    while (!p->quit) {
        if (p->produced == p->batches || p->produced == p->consumed + 2) {
            pthread_cond_wait(&p->changed, &p->lock);
            continue;
        }
        struct slot *s = &p->slots[p->produced % 2];
        const uint32_t *order = p->order;
        uint64_t epoch = p->epoch;
        s->first = p->first + (size_t)p->produced * p->batch;
        s->n = p->end - s->first < p->batch ? p->end - s->first : p->batch;
        p->gathering = true;
        pthread_mutex_unlock(&p->lock);
        fill_slot(p, s, order);
        pthread_mutex_lock(&p->lock);
        p->gathering = false;
        if (p->epoch == epoch) {
            p->produced++;
            /* Nothing follows a failed batch. */
            if (s->status != LKS_OK)
                p->batches = p->produced;
        }
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Signals are for the application's threads, so this one starts with all of them blocked. */
static lks_status start_thread(struct lksi_prefetch *p)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&p->thread, NULL, work, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        return lksi_fail(LKS_E_MEMORY, "cannot start a thread for reading data: %s",
                         strerror(error));
    p->thread_runs = true;
    return LKS_OK;
}

lks_status lksi_prefetch_create(struct lksi_prefetch **out, const struct lksi_dataset *ds,
                                size_t batch)
{
    struct lksi_prefetch *p = NULL;
    lks_status st;
    size_t bytes;
    size_t width = lksi_dataset_sends_bytes(ds) ? 1 : sizeof(float);
    if (batch == 0 || __builtin_mul_overflow(batch, ds->sample * width, &bytes) ||
        batch > SIZE_MAX / sizeof(int32_t))
        return lksi_fail(LKS_E_ARGUMENT, "a batch of %zu samples is not possible", batch);
    p = lksi_alloc(1, sizeof *p);
    if (p == NULL)
        return LKS_E_MEMORY;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    p->ds = ds;
    p->batch = batch;
    for (int i = 0; i < 2; i++) {
        p->slots[i].x = lksi_alloc_aligned(bytes);
        p->slots[i].labels = lksi_alloc_aligned(batch * (ds->positions > 0 ? ds->positions : 1) * sizeof(int32_t));
        if (p->slots[i].x == NULL || p->slots[i].labels == NULL) {
            st = LKS_E_MEMORY;
            goto fail;
        }
    }
    LKSI_TRY(start_thread(p));
    *out = p;
    return LKS_OK;
fail:
    lksi_prefetch_destroy(&p);
    return st;
}

void lksi_prefetch_destroy(struct lksi_prefetch **prefetch)
{
    struct lksi_prefetch *p = *prefetch;
    if (p == NULL)
        return;
    if (p->thread_runs) {
        pthread_mutex_lock(&p->lock);
        p->quit = true;
        pthread_cond_broadcast(&p->changed);
        pthread_mutex_unlock(&p->lock);
        pthread_join(p->thread, NULL);
    }
    for (int i = 0; i < 2; i++) {
        free(p->slots[i].x);
        free(p->slots[i].labels);
    }
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
    *prefetch = NULL;
}

/* With the lock: gives up what is left. The caller may free or change the order afterwards, so no
 * further batch is begun and a gather under way is waited for. */
static void stop_epoch(struct lksi_prefetch *p)
{
    p->epoch++;
    p->batches = p->produced;
    while (p->gathering)
        pthread_cond_wait(&p->changed, &p->lock);
    p->order = NULL;
    p->first = p->end = 0;
    p->batches = p->produced = p->consumed = 0;
    p->held = false;
}

void lksi_prefetch_start(struct lksi_prefetch *p, const uint32_t *order, size_t first, size_t end)
{
    assert(first <= end);
    assert(order != NULL || end <= p->ds->count);
    pthread_mutex_lock(&p->lock);
    stop_epoch(p);
    p->order = order;
    p->first = first;
    p->end = end;
    p->batches = (end - first) / p->batch + ((end - first) % p->batch > 0);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

void lksi_prefetch_stop(struct lksi_prefetch *p)
{
    pthread_mutex_lock(&p->lock);
    stop_epoch(p);
    pthread_mutex_unlock(&p->lock);
}

lks_status lksi_prefetch_next(struct lksi_prefetch *p, struct lksi_batch *out)
{
    lks_status st = LKS_OK;
    pthread_mutex_lock(&p->lock);
    assert(!p->held);
    while (p->produced == p->consumed && p->consumed < p->batches)
        pthread_cond_wait(&p->changed, &p->lock);
    if (p->consumed == p->batches) {
        *out = (struct lksi_batch){.first = p->end};
    } else {
        const struct slot *s = &p->slots[p->consumed % 2];
        st = s->status;
        if (st != LKS_OK) {
            lksi_fail(st, "%s", s->message);
        } else {
            p->held = true;
            *out =
                (struct lksi_batch){.x = s->x, .labels = s->labels, .first = s->first, .n = s->n};
        }
    }
    pthread_mutex_unlock(&p->lock);
    return st;
}

void lksi_prefetch_release(struct lksi_prefetch *p)
{
    pthread_mutex_lock(&p->lock);
    assert(p->held);
    p->held = false;
    p->consumed++;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}
