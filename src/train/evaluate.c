/*
 * evaluate.c - loss and accuracy over a data set, and predictions.
 */
#include <string.h>

#include "base/fenv.h"
#include "train/train.h"

struct sums {
    double loss, hits;
    uint32_t samples[LKSI_RING]; /* of the batches whose results are still in the ring */
    size_t n;
};

static lks_status collect(struct lks_trainer *t, struct sums *s)
{
    struct lksi_buf *buf;
    float ring[2 * LKSI_RING];
    lks_status st = lksi_store_state(t->store, "ring", sizeof ring, &buf);
    if (st == LKS_OK)
        st = lksi_buf_read(buf, 0, ring, sizeof ring);
    if (st != LKS_OK)
        return st;
    for (size_t i = 0; i < s->n; i++) {
        s->loss += (double)ring[2 * i] * s->samples[i];
        s->hits += (double)ring[2 * i + 1];
    }
    s->n = 0;
    return LKS_OK;
}

/* Samples of a data set from `first` on, or, without one, of memory. */
struct source {
    const struct lksi_dataset *data;
    const float *x;
};

static lks_status gather(const struct lks_trainer *t, const struct source *from, size_t first,
                         uint32_t n, struct lksi_feed *feed)
{
    if (from->data != NULL)
        return lksi_dataset_gather(from->data, NULL, first, n, feed->x, feed->label);
    memcpy(feed->x, from->x + first * t->sample, n * t->sample * sizeof(float));
    memset(feed->label, 0, n * sizeof(int32_t)); /* probabilities do not depend on them */
    return LKS_OK;
}

static lks_status queue_batch(struct lks_trainer *t, const struct source *from, size_t first,
                              uint32_t n, int32_t slot, struct lksi_step_plan **plan)
{
    struct lksi_feed *feed;
    lks_status st = LKS_OK;
    LKSI_TRY(lksi_step_plan_get(t, n, false, plan));
    LKSI_TRY(lksi_feed_next(t, &feed));
    LKSI_TRY(gather(t, from, first, n, feed));
    lksi_feed_evaluation(t, feed, slot, first);
    LKSI_TRY(lksi_feed_run(t, feed, *plan));
fail:
    return st;
}

static lks_status evaluate(struct lks_trainer *t, const lks_dataset *data, double *loss,
                           double *accuracy)
{
    struct sums s = {0};
    struct lksi_step_plan *plan;
    const struct source from = {.data = data->data};
    size_t count = data->data->count;
    lks_status st = LKS_OK;
    if (data->data->sample != t->sample)
        return lksi_fail(LKS_E_INPUT, "a sample has %zu values, the graph's input has %zu",
                         data->data->sample, t->sample);
    LKSI_TRY(lksi_dataset_check_classes(data->data, (uint32_t)t->classes));
    for (size_t first = 0; first < count; first += t->params.batch) {
        uint32_t n = count - first < t->params.batch ? (uint32_t)(count - first) : t->params.batch;
        LKSI_TRY(queue_batch(t, &from, first, n, (int32_t)s.n, &plan));
        s.samples[s.n++] = n;
        if (s.n == LKSI_RING)
            LKSI_TRY(collect(t, &s));
    }
    LKSI_TRY(collect(t, &s));
    *loss = s.loss / (double)count;
    *accuracy = s.hits / (double)count;
fail:
    return st;
}

lks_status lks_trainer_evaluate(lks_trainer *t, const lks_dataset *data, double *loss,
                                double *accuracy)
{
    struct lksi_fenv env;
    lks_status st;
    if (t == NULL || data == NULL || loss == NULL || accuracy == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_evaluate: an argument is NULL");
    lksi_fenv_enter(&env);
    st = evaluate(t, data, loss, accuracy);
    lksi_fenv_leave(&env);
    return st;
}

static lks_status predict(struct lks_trainer *t, const struct source *from, size_t first, size_t n,
                          float *probabilities)
{
    struct lksi_step_plan *plan;
    size_t done = 0;
    while (done < n) {
        size_t left = n - done;
        uint32_t now = left < t->params.batch ? (uint32_t)left : t->params.batch;
        lks_status st = queue_batch(t, from, first + done, now, 0, &plan);
        if (st == LKS_OK)
            st = lksi_plan_read(plan->plan, plan->prob, probabilities);
        if (st != LKS_OK)
            return st;
        probabilities += (size_t)now * (size_t)t->classes;
        done += now;
    }
    return LKS_OK;
}

lks_status lks_trainer_predict(lks_trainer *t, const lks_dataset *data, size_t first, size_t n,
                               float *probabilities)
{
    struct lksi_fenv env;
    struct source from;
    lks_status st;
    if (t == NULL || data == NULL || probabilities == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_predict: an argument is NULL");
    from = (struct source){.data = data->data};
    if (from.data->sample != t->sample || first > from.data->count || n > from.data->count - first)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_predict: samples %zu to %zu of %zu", first,
                         first + n, from.data->count);
    lksi_fenv_enter(&env);
    st = predict(t, &from, first, n, probabilities);
    lksi_fenv_leave(&env);
    return st;
}

lks_status lks_trainer_predict_floats(lks_trainer *t, const float *x, size_t n,
                                      float *probabilities)
{
    struct lksi_fenv env;
    const struct source from = {.x = x};
    lks_status st;
    if (t == NULL || x == NULL || probabilities == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_predict_floats: an argument is NULL");
    lksi_fenv_enter(&env);
    st = predict(t, &from, 0, n, probabilities);
    lksi_fenv_leave(&env);
    return st;
}
