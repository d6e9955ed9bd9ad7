/*
 * ref.c - the threads of the device `ref`.
 *
 * The caller of lksi_ref_parallel works beside the pool's threads; items are taken one by one from
 * a shared counter, so that uneven items balance. Which thread computes an item cannot change its
 * bits.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <lockstep/device.h>

#include "base/fenv.h"
#include "rt/rt_cl.h"

struct lksi_pool {
    pthread_t thread[LKS_MAX_THREADS];
    int n_threads; /* without the caller */
    pthread_mutex_t lock;
    pthread_cond_t start, finished;
    uint64_t turn; /* grows with each job */
    int busy;      /* threads that have not finished the current job */
    bool quit;
    void (*fn)(void *ctx, uint64_t i);
    void *ctx;
    uint64_t count;
    atomic_uint_fast64_t next;
};

/* Set while this thread runs an item: an inner call then runs its items itself. */
static _Thread_local bool inside;

static void take_items(struct lksi_pool *p)
{
    uint64_t i;
    inside = true;
    while ((i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed)) < p->count)
        p->fn(p->ctx, i);
    inside = false;
}

static void *thread_main(void *arg)
{
    struct lksi_pool *p = arg;
    struct lksi_fenv fenv;
    uint64_t seen = 0;
    lksi_fenv_enter(&fenv);
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->turn == seen && !p->quit)
            pthread_cond_wait(&p->start, &p->lock);
        if (p->quit)
            break;
        seen = p->turn;
        pthread_mutex_unlock(&p->lock);
        take_items(p);
        pthread_mutex_lock(&p->lock);
        if (--p->busy == 0)
            pthread_cond_signal(&p->finished);
    }
    pthread_mutex_unlock(&p->lock);
    lksi_fenv_leave(&fenv);
    return NULL;
}

lks_status lksi_pool_create(struct lksi_pool **pool, int threads)
{
    struct lksi_pool *p = lksi_alloc(1, sizeof *p);
    if (p == NULL)
        return LKS_E_MEMORY;
    if (threads <= 0) {
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        threads = cpus > 0 ? (int)cpus : 1;
    }
    if (threads > LKS_MAX_THREADS)
        threads = LKS_MAX_THREADS;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->start, NULL);
    pthread_cond_init(&p->finished, NULL);
    for (; p->n_threads < threads - 1; p->n_threads++) {
        int e = pthread_create(&p->thread[p->n_threads], NULL, thread_main, p);
        if (e != 0) {
            int got = p->n_threads + 1;
            lksi_pool_destroy(&p);
            return lksi_fail(LKS_E_MEMORY,
                             "ref: the system gave %d of %d threads (error %d); ask for fewer", got,
                             threads, e);
        }
    }
    *pool = p;
    return LKS_OK;
}

void lksi_pool_destroy(struct lksi_pool **pool)
{
    struct lksi_pool *p = *pool;
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_cond_broadcast(&p->start);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_threads; i++)
        pthread_join(p->thread[i], NULL);
    pthread_cond_destroy(&p->finished);
    pthread_cond_destroy(&p->start);
    pthread_mutex_destroy(&p->lock);
    free(p);
    *pool = NULL;
}

int lksi_ref_threads(const struct lksi_dev *dev)
{
    return dev->pool != NULL ? dev->pool->n_threads + 1 : 1;
}

void lksi_ref_parallel(struct lksi_dev *dev, uint64_t count, void (*fn)(void *ctx, uint64_t i),
                       void *ctx)
{
    struct lksi_pool *p = dev->pool;
    assert(p != NULL);
    if (inside || p->n_threads == 0 || count < 2) {
        for (uint64_t i = 0; i < count; i++)
            fn(ctx, i);
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->fn = fn;
    p->ctx = ctx;
    p->count = count;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    p->busy = p->n_threads;
    p->turn++;
    pthread_cond_broadcast(&p->start);
    pthread_mutex_unlock(&p->lock);
    take_items(p);
    pthread_mutex_lock(&p->lock);
    while (p->busy > 0)
        pthread_cond_wait(&p->finished, &p->lock);
    pthread_mutex_unlock(&p->lock);
}
