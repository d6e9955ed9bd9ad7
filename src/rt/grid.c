/*
 * grid.c - a way around a fault of PoCL (seen in 3.1 and in the text of 5.0).
 *
 * PoCL loads a kernel's binary for the width of the grid it was first launched with; a wider
 * launch loads it a second time. A finished launch gives back its reference by name and local size
 * alone, so to the copy loaded last. If launches of both copies are in flight, the count of one
 * falls below zero and an assertion ends the process.
 *
 * So before a kernel gets wider than ever in this process, all queues are drained, and the wide
 * launch is waited for. From then on every launch of it finds the widest copy first. This costs a
 * few waits in the first steps and nothing afterwards.
 *
 * PoCL keeps at most 128 copies and unloads the one that was not used for longest, so a kernel may
 * come back narrow. The copies used since a kernel's last launch are counted: while they are fewer
 * than 128 it is still loaded, otherwise it is as wide as its next launch. For that count launches
 * must be executed in the order they come here, so where several devices are open, one waits for
 * the other's work when they take turns, once 128 copies may have been loaded.
 * All launches of all threads pass one lock, or one of them could slip in beside a lone one.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rt/grid.h"

#define POCL_COPIES 128

struct seen {
    uint64_t id;
    size_t width;  /* that PoCL has loaded it for, at least */
    size_t extra;  /* n_extra at the latest launch */
    uint64_t used; /* the number of the latest launch */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct lksi_dev *open_dev[256]; /* PoCL devices that are open in this process */
static size_t n_open;
static struct seen *seen;
static size_t n_seen, cap_seen;
static size_t n_loaded; /* copies that PoCL may have loaded so far, and never fewer than it has */
static size_t n_extra;  /* those beyond the first of each kernel */
static uint64_t n_launched;
static struct lksi_dev *latest; /* the device of the latest launch, if it is open */

bool lksi_grid_miscounts(const struct lksi_limits *limits)
{
    return strcmp(limits->platform, "Portable Computing Language") == 0;
}

lks_status lksi_grid_open(struct lksi_dev *dev)
{
    bool full;
    pthread_mutex_lock(&lock);
    full = n_open == LKSI_COUNT(open_dev);
    if (!full)
        open_dev[n_open++] = dev;
    pthread_mutex_unlock(&lock);
    return full ? lksi_fail(LKS_E_DEVICE, "more than %zu PoCL devices are open in this process",
                            LKSI_COUNT(open_dev))
                : LKS_OK;
}

void lksi_grid_close(const struct lksi_dev *dev)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_open; i++)
        if (open_dev[i] == dev) {
            open_dev[i] = open_dev[--n_open];
            break;
        }
    if (latest == dev)
        latest = NULL;
    if (n_open == 0) { /* the last one: nothing is in flight, and PoCL's copies stay harmless */
        free(seen);
        seen = NULL;
        n_seen = cap_seen = 0;
    }
    pthread_mutex_unlock(&lock);
}

static struct seen *find(uint64_t id)
{
    for (size_t i = 0; i < n_seen; i++)
        if (seen[i].id == id)
            return &seen[i];
    return NULL;
}

/* With the lock held. Errors of other queues show where those queues are used. */
static lks_status launch_alone(struct lksi_dev *dev, lks_status (*launch)(void *ctx), void *ctx)
{
    lks_status st;
    for (size_t i = 0; i < n_open; i++)
        clFinish(open_dev[i]->queue);
    st = launch(ctx);
    clFinish(dev->queue);
    return st;
}

void lksi_grid_loaded(size_t copies)
{
    pthread_mutex_lock(&lock);
    n_loaded += copies;
    n_extra += copies;
    pthread_mutex_unlock(&lock);
}

/* Whether PoCL may have unloaded the widest copy since the latest launch of it: where it used or
 * loaded as many others. A kernel has one that is used, and more only where it was loaded anew. */
static bool may_be_unloaded(const struct seen *s)
{
    size_t newer = n_extra - s->extra;
    if (n_loaded < POCL_COPIES)
        return false;
    for (size_t i = 0; i < n_seen; i++)
        newer += seen[i].used > s->used;
    return newer + 2 >= POCL_COPIES; /* a copy in use is passed over: one kernel runs at a time */
}

lks_status lksi_grid_launch(struct lksi_dev *dev, uint64_t id, size_t width,
                            lks_status (*launch)(void *ctx), void *ctx)
{
    lks_status st;
    struct seen *s;
    bool alone, unloaded;
    pthread_mutex_lock(&lock);
    s = find(id);
    unloaded = s != NULL && may_be_unloaded(s);
    alone = s == NULL || width > s->width;
    if (latest != NULL && latest != dev && n_loaded >= POCL_COPIES)
        clFinish(latest->queue);
    latest = dev;
    if (s == NULL && lksi_grow(&seen, &cap_seen, n_seen + 1, sizeof *seen)) {
        s = &seen[n_seen++];
        *s = (struct seen){.id = id};
    }
    if (alone || unloaded)
        n_loaded++;
    if (alone && (s == NULL || s->width > 0))
        n_extra++;
    st = alone ? launch_alone(dev, launch, ctx) : launch(ctx);
    if (s != NULL) {
        s->width = width > s->width || unloaded ? width : s->width;
        s->extra = n_extra;
        s->used = ++n_launched;
    }
    pthread_mutex_unlock(&lock);
    return st;
}
