/*
 * evaluate.c - loss and accuracy over a data set, and predictions.
 */
#include <math.h>
#include <string.h>

#include "base/fenv.h"
#include "train/train.h"

struct sums {
    double loss[LKSI_MAX_LOSSES], hits;
    uint32_t samples[LKSI_RING]; /* of the batches whose results are still in the ring */
    size_t n;
};

static lks_status collect(struct lks_trainer *t, struct sums *s)
{
    struct lksi_buf *buf;
    float ring[(LKSI_MAX_LOSSES + 1) * LKSI_RING];
    uint64_t bytes = t->width * LKSI_RING * sizeof(float);
    size_t n_loss = t->model->n_loss;
    lks_status st = lksi_store_state(t->store, "ring", bytes, &buf);
    if (st == LKS_OK)
        st = lksi_buf_read(buf, 0, ring, bytes);
    if (st != LKS_OK)
        return st;
    for (size_t i = 0; i < s->n; i++) {
        for (size_t k = 0; k < n_loss; k++)
            s->loss[k] += (double)ring[t->width * i + k] * s->samples[i];
        if (t->positions > 0)
            s->hits += (double)ring[t->width * i + n_loss];
    }
    s->n = 0;
    return LKS_OK;
}

/* Samples of a data set from `first` on, or, without one, of memory. */
struct source {
    const struct lksi_dataset *data;
    const struct lksi_resident *resident; /* the data set on the device, or NULL */
    const float *x;
};

static struct source source_of(struct lks_trainer *t, const lks_dataset *d)
{
    return (struct source){.data = d->data, .resident = lksi_resident_find(t, d->data)};
}

static lks_status gather(const struct lks_trainer *t, const struct source *from, size_t first,
                         uint32_t n, struct lksi_feed *feed)
{
    if (from->resident != NULL) {
        lksi_feed_pick(feed, from->resident, from->data, NULL, first, n);
        return LKS_OK;
    }
    if (from->data != NULL)
        return lksi_feed_gather(feed, from->data, NULL, first, n);
    memcpy(feed->x, from->x + first * t->sample, n * t->sample * sizeof(float));
    memset(feed->label, 0, n * t->positions * sizeof(int32_t)); /* probabilities do not depend on them */
    return LKS_OK;
}

static lks_status queue_batch(struct lks_trainer *t, const struct source *from, size_t first,
                              uint32_t n, int32_t slot, struct lksi_step_plan **plan)
{
    struct lksi_feed *feed;
    lks_status st = LKS_OK;
    struct lksi_form form = {0};
    if (from->data != NULL)
        form = lksi_form_of(from->data, from->resident != NULL);
    LKSI_TRY(lksi_step_plan_get(t, n, false, form, plan));
    LKSI_TRY(lksi_feed_next(t, &feed));
    LKSI_TRY(gather(t, from, first, n, feed));
    lksi_feed_evaluation(t, feed, slot, first);
    LKSI_TRY(lksi_feed_run(t, feed, *plan));
fail:
    return st;
}

static lks_status evaluate(struct lks_trainer *t, const lks_dataset *data, double *losses,
                           double *accuracy)
{
    struct sums s = {0};
    struct lksi_step_plan *plan;
    const struct source from = source_of(t, data);
    size_t count = data->data->count;
    lks_status st = LKS_OK;
    LKSI_TRY(lksi_check_data(t, data, "test"));
    for (size_t first = 0; first < count; first += t->params.batch) {
        uint32_t n = count - first < t->params.batch ? (uint32_t)(count - first) : t->params.batch;
        LKSI_TRY(queue_batch(t, &from, first, n, (int32_t)s.n, &plan));
        s.samples[s.n++] = n;
        if (s.n == LKSI_RING)
            LKSI_TRY(collect(t, &s));
    }
    LKSI_TRY(collect(t, &s));
    for (size_t k = 0; k < t->model->n_loss; k++)
        losses[k] = s.loss[k] / (double)count;
    *accuracy = t->positions > 0 ? s.hits / ((double)count * (double)t->positions) : (double)NAN;
fail:
    return st;
}

lks_status lks_trainer_evaluate(lks_trainer *t, const lks_dataset *data, double *loss,
                                double *accuracy)
{
    double losses[LKSI_MAX_LOSSES];
    lks_status st;
    if (t == NULL || data == NULL || loss == NULL || accuracy == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_evaluate: an argument is NULL");
    st = lks_trainer_evaluate_losses(t, data, losses, accuracy);
    if (st == LKS_OK)
        *loss = losses[0];
    return st;
}

lks_status lks_trainer_evaluate_losses(lks_trainer *t, const lks_dataset *data, double *losses,
                                       double *accuracy)
{
    struct lksi_fenv env;
    double unused;
    lks_status st;
    if (t == NULL || data == NULL || losses == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_evaluate_losses: an argument is NULL");
    lksi_fenv_enter(&env);
    st = evaluate(t, data, losses, accuracy != NULL ? accuracy : &unused);
    lksi_fenv_leave(&env);
    return st;
}

/* `value` of each batch; LKSI_NONE: the probabilities. */
static lks_status predict(struct lks_trainer *t, const struct source *from, lksi_value value,
                          size_t first, size_t n, float *out)
{
    struct lksi_step_plan *plan;
    lksi_value what = value != LKSI_NONE ? value : t->model->prob;
    size_t done = 0, each;
    if (what == LKSI_NONE)
        return lksi_fail(LKS_E_ARGUMENT, "the network gives no probabilities, since its loss knows "
                                         "no classes; take lks_trainer_output");
    each = (size_t)lksi_desc_count(&t->model->value[what].desc);
    while (done < n) {
        size_t left = n - done;
        uint32_t now = left < t->params.batch ? (uint32_t)left : t->params.batch;
        t->output = value;
        lks_status st = queue_batch(t, from, first + done, now, 0, &plan);
        t->output = LKSI_NONE;
        if (st == LKS_OK)
            st = lksi_plan_read(plan->plan, what, out);
        if (st != LKS_OK)
            return st;
        out += now * each;
        done += now;
    }
    return LKS_OK;
}

static bool depends_on_batch(const struct lks_trainer *t, lks_value value)
{
    const struct lksi_gvalue *v = &t->model->value[value];
    return v->kind == LKSI_VALUE_NODE ? v->desc.rank > 1 : v->batched;
}

lks_status lks_trainer_output(lks_trainer *t, const lks_dataset *data, lks_value value,
                              size_t first, size_t n, float *out)
{
    struct lksi_fenv env;
    lks_status st;
    if (t == NULL || data == NULL || out == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_output: an argument is NULL");
    if (value < 0 || (size_t)value >= t->model->n_value ||
        t->model->value[value].desc.dtype != LKSI_F32 || !depends_on_batch(t, value))
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_output: %d is no value of floats that each "
                                         "sample has", (int)value);
    if (first > data->data->count || n > data->data->count - first)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_output: samples %zu to %zu of %zu", first,
                         first + n, data->data->count);
    lksi_fenv_enter(&env);
    st = lksi_check_data(t, data, "the");
    if (st == LKS_OK) {
        const struct source from = source_of(t, data);
        st = predict(t, &from, value, first, n, out);
    }
    lksi_fenv_leave(&env);
    return st;
}

lks_status lks_trainer_predict(lks_trainer *t, const lks_dataset *data, size_t first, size_t n,
                               float *probabilities)
{
    struct lksi_fenv env;
    struct source from;
    lks_status st;
    if (t == NULL || data == NULL || probabilities == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_predict: an argument is NULL");
    from = source_of(t, data);
    if (from.data->sample != t->sample || first > from.data->count || n > from.data->count - first)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_predict: samples %zu to %zu of %zu", first,
                         first + n, from.data->count);
    if (from.data->positions > (t->positions > 0 ? t->positions : 1)) /* they are gathered too */
        return lksi_fail(LKS_E_INPUT, "lks_trainer_predict: the data have %zu labels a sample, the "
                                      "graph's loss has %zu",
                         from.data->positions, t->positions);
    lksi_fenv_enter(&env);
    st = lksi_check_samples(t, data, "the");
    if (st == LKS_OK)
        st = predict(t, &from, LKSI_NONE, first, n, probabilities);
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
    if (t->tokens)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_predict_floats: the graph takes integers; use "
                                         "lks_trainer_predict");
    lksi_fenv_enter(&env);
    st = predict(t, &from, LKSI_NONE, 0, n, probabilities);
    lksi_fenv_leave(&env);
    return st;
}
