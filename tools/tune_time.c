/*
 * tune_time.c - times of candidates, taken in turns so that a change of the machine's speed meets
 * all alike, and the question whether a difference is more than noise.
 */
#include <stdlib.h>

#include "progress.h"
#include "tune.h"

enum { LEAST_ROUNDS = 9, MOST_ROUNDS = 64, QUICK = 3 };
static const double sample_ms = 1.0; /* one time is taken over at least so much work */

/* Milliseconds a run, of `runs` in a row. */
static lks_status time_runs(struct tune_candidate *c, unsigned runs, double *ms)
{
    struct lksi_dev *dev = c->stage->dev;
    double from;
    lks_status st = LKS_OK;
    LKSI_TRY(lksi_dev_wait(dev, 0));
    from = seconds_now();
    for (unsigned i = 0; i < runs; i++)
        LKSI_TRY(lksi_stage_run(c->stage));
    LKSI_TRY(lksi_dev_wait(dev, 0));
    *ms = (seconds_now() - from) * 1e3 / runs;
fail:
    return st;
}

lks_status tune_quick(struct tune_candidate *c, struct lksi_dev *dev)
{
    double ms;
    lks_status st;
    (void)dev;
    LKSI_TRY(time_runs(c, 1, &ms)); /* it may compile still */
    LKSI_TRY(time_runs(c, 1, &ms));
    c->runs = ms >= sample_ms ? 1 : (unsigned)(sample_ms / (ms > 1e-3 ? ms : 1e-3)) + 1;
    c->quick = ms;
    for (int i = 0; i < QUICK; i++) {
        LKSI_TRY(time_runs(c, c->runs, &ms));
        c->quick = ms < c->quick || i == 0 ? ms : c->quick;
    }
fail:
    return st;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_size);
    return 0.5 * (v[(n - 1) / 2] + v[n / 2]);
}

lks_status tune_rounds(struct tune_candidate *first, struct tune_candidate **c, size_t n,
                       size_t rounds, double until,
                       lks_status (*bind)(void *user, struct tune_candidate *c), void *user,
                       bool *clear)
{
    double *ms = lksi_alloc((n + 1) * MOST_ROUNDS, sizeof *ms), base[MOST_ROUNDS];
    size_t done = 0;
    lks_status st = ms != NULL ? LKS_OK : LKS_E_MEMORY;
    rounds = rounds < MOST_ROUNDS ? rounds : MOST_ROUNDS;
    for (; st == LKS_OK && done < rounds && (done < LEAST_ROUNDS || seconds_now() < until); done++)
        for (size_t i = 0; i <= n && st == LKS_OK; i++) {
            struct tune_candidate *at = i == 0 ? first : c[i - 1];
            double warm;
            st = bind(user, at);
            if (st == LKS_OK)
                st = time_runs(at, 1, &warm); /* its data and code back into the caches */
            if (st == LKS_OK)
                st = time_runs(at, at->runs, &ms[i * MOST_ROUNDS + done]);
        }
    for (size_t i = 0; i < n && st == LKS_OK; i++) {
        double ratio[MOST_ROUNDS];
        size_t won = 0;
        for (size_t k = 0; k < done; k++) {
            ratio[k] = ms[(i + 1) * MOST_ROUNDS + k] / ms[k];
            won += ratio[k] < 1;
        }
        c[i]->ratio = median(ratio, done);
        /* at least 3 % in the middle, and faster in four rounds of five */
        clear[i] = c[i]->ratio < 0.97 && won * 5 >= done * 4;
        c[i]->ms = median(&ms[(i + 1) * MOST_ROUNDS], done);
    }
    if (st == LKS_OK) {
        for (size_t k = 0; k < done; k++)
            base[k] = ms[k];
        first->ratio = 1;
        first->ms = median(base, done);
    }
    free(ms);
    return st;
}
