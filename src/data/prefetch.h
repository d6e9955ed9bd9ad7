/*
 * prefetch.h - a thread that gathers the next batch while the device computes.
 *
 * Two buffers: while the trainer holds one batch, the thread fills the other. The batches and
 * their content do not depend on timing.
 *
 *     lksi_prefetch_start(p, order, 0, count);
 *     for (;;) {
 *         LKSI_TRY(lksi_prefetch_next(p, &batch));
 *         if (batch.n == 0)
 *             break;
 *         ... use batch.x and batch.labels ...
 *         lksi_prefetch_release(p);
 *     }
 *
 * All calls on one prefetcher come from one thread. A callback of the data set runs on the
 * prefetcher's thread.
 */
#ifndef LKSI_DATA_PREFETCH_H
#define LKSI_DATA_PREFETCH_H

#include "data/dataset.h"

struct lksi_prefetch;

struct lksi_batch {
    const void *x;         /* [n][h][w][c]: floats, or bytes of a data set that sends them */
    const int32_t *labels; /* [n] */
    size_t first, n;       /* samples first .. first+n-1 of the order; n = 0: the epoch is over */
};

/* Starts the thread, for batches of `batch` samples (at least 1). `ds` must outlive it.
 * LKS_E_ARGUMENT, LKS_E_MEMORY. */
lks_status lksi_prefetch_create(struct lksi_prefetch **out, const struct lksi_dataset *ds,
                                size_t batch);

/* Joins the thread; a callback of the data set that is running is waited for. */
void lksi_prefetch_destroy(struct lksi_prefetch **p);

/*
 * Begins with the samples order[first .. end-1], cut into batches from `first`; the last one may
 * be shorter. Drops what an earlier start left over, and a batch still held. The thread reads
 * `order` until the epoch is over (n = 0), so change or free it only then, or after stop, another
 * start (with another order) or destroy. NULL means 0, 1, 2, ...
 */
void lksi_prefetch_start(struct lksi_prefetch *p, const uint32_t *order, size_t first, size_t end);

/* Gives up the epoch, and a batch still held; waits for a gather under way. */
void lksi_prefetch_stop(struct lksi_prefetch *p);

/* Waits for the next batch; it is valid until release. The batch before must have been released.
 * Fails as lksi_dataset_gather did for this batch, again at every call until start. */
lks_status lksi_prefetch_next(struct lksi_prefetch *p, struct lksi_batch *out);

/* Hands the batch back, so that its buffer is filled anew. */
void lksi_prefetch_release(struct lksi_prefetch *p);

#endif
