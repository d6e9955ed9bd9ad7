/*
 * fit.c - the training loop. The host queues steps ahead of the device and reads losses in
 * batches of many steps, so that the device never waits for it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fenv.h"
#include "data/prefetch.h"
#include "data/shuffle.h"
#include "train/train.h"

#define REPORT_SECONDS 0.2 /* at least this long between two looks at the device */

struct fit {
    struct lks_trainer *t;
    const struct lks_fit_params *p;
    uint32_t *order; /* of the running epoch */
    const struct lksi_resident *resident; /* the training data on the device, or NULL */
    struct lksi_prefetch *prefetch; /* NULL if they lie there */
    double reported; /* time of the last report */
};

/* What follows each of the caller's callbacks, which may change the floating-point state of this
 * thread. A refusal keeps the text of the library call that failed in it, or gets one. */
static lks_status told(lks_status st, const char *callback)
{
    char text[40];
    lksi_fenv_renew();
    if (st != LKS_OK && lks_error_message()[0] == '\0')
        lksi_fail(st, "%s ended the training with %s", callback, lksi_status_text(st, text));
    return st;
}

static lks_status tell_step(const struct fit *f, const struct lks_step_info *info)
{
    lksi_error_clear();
    return told(f->p->on_step != NULL ? f->p->on_step(f->p->user, info) : LKS_OK, "on_step");
}

static lks_status tell_epoch(const struct fit *f, const struct lks_epoch_info *info)
{
    lksi_error_clear();
    return told(f->p->on_epoch != NULL ? f->p->on_epoch(f->p->user, info) : LKS_OK, "on_epoch");
}

static lks_status tell_checkpoint(const struct fit *f)
{
    lksi_error_clear();
    return told(f->p->on_checkpoint(f->p->user, f->t), "on_checkpoint");
}

static bool is_cancelled(const struct fit *f)
{
    bool yes = f->p->cancelled != NULL && f->p->cancelled(f->p->user);
    lksi_fenv_renew();
    return yes;
}

lks_status lksi_position_of(const struct lks_trainer *t, const lks_dataset *train, uint64_t step,
                            struct lksi_position *p)
{
    uint64_t count = train->data->count, batch = t->params.batch;
    uint64_t steps = t->params.drop_last ? count / batch : (count + batch - 1) / batch;
    if (steps == 0)
        return lksi_fail(LKS_E_INPUT,
                         "drop_last leaves no batch: %llu samples, batch %llu; use a smaller batch",
                         (unsigned long long)count, (unsigned long long)batch);
    uint64_t first = step % steps * batch;
    p->epoch = (uint32_t)(step / steps);
    p->first = (size_t)first;
    p->samples = (uint32_t)(count - first < batch ? count - first : batch);
    p->steps_per_epoch = steps;
    p->total = steps * t->params.epochs;
    return LKS_OK;
}

static lks_status make_order(const struct lks_trainer *t, const lks_dataset *train, uint32_t epoch,
                             uint32_t *order)
{
    size_t count = train->data->count;
    if (!t->params.no_shuffle)
        return lksi_shuffle_order(t->params.seed,
                                  lksi_stream_id(LKSI_SHUFFLE_USE, LKSI_SHUFFLE_NAME), epoch,
                                  count, order);
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    return LKS_OK;
}

static void set_hyper(struct lks_trainer *t, const struct lksi_position *p, uint64_t step,
                      struct lksi_feed *feed)
{
    lksi_hyper_fill(t, step, p->total, p->steps_per_epoch, NULL, feed->hyper);
    lksi_feed_step(t, feed, step);
}

lks_status lksi_gather_step(struct lks_trainer *t, const lks_dataset *train,
                            const struct lksi_resident *resident, uint64_t step,
                            struct lksi_feed *feed, struct lksi_position *p)
{
    uint32_t *order = lksi_alloc(train->data->count, sizeof *order);
    lks_status st = order != NULL ? lksi_position_of(t, train, step, p) : LKS_E_MEMORY;
    if (st == LKS_OK)
        st = make_order(t, train, p->epoch, order);
    if (st == LKS_OK && resident != NULL)
        lksi_feed_pick(feed, resident, train->data, order, p->first, p->samples);
    else if (st == LKS_OK)
        st = lksi_feed_gather(feed, train->data, order, p->first, p->samples);
    if (st == LKS_OK)
        set_hyper(t, p, step, feed);
    free(order);
    return st;
}

void lksi_read_slot(const struct lks_trainer *t, const float *slot, struct lks_step_info *info)
{
    info->n_losses = (uint32_t)t->model->n_loss;
    for (size_t i = 0; i < t->model->n_loss; i++)
        info->losses[i] = slot[i];
    info->loss = slot[0];
    info->labels = info->samples * (uint32_t)t->positions;
    info->hits = t->positions > 0 ? (uint32_t)slot[t->model->n_loss] : 0;
}

/* Reads what the device recorded for the pending steps, and hands it on in order. */
static lks_status report(struct fit *f)
{
    struct lks_trainer *t = f->t;
    struct lksi_buf *ring_buf, *flag_buf;
    float ring[(LKSI_MAX_LOSSES + 1) * LKSI_RING];
    uint64_t ring_bytes = t->width * LKSI_RING * sizeof(float);
    int32_t flag = 0;
    lks_status st = LKS_OK;
    f->reported = lksi_seconds();
    LKSI_TRY(lksi_step_plans_settle(t));
    if (t->n_pending == 0)
        return LKS_OK;
    LKSI_TRY(lksi_store_state(t->store, "ring", ring_bytes, &ring_buf));
    LKSI_TRY(lksi_store_state(t->store, "flag", sizeof flag, &flag_buf));
    LKSI_TRY(lksi_buf_read(ring_buf, 0, ring, ring_bytes));
    LKSI_TRY(lksi_buf_read(flag_buf, 0, &flag, sizeof flag));
    size_t n = t->n_pending;
    t->n_pending = 0;
    for (size_t i = 0; i < n; i++) {
        struct lks_step_info *info = &t->pending[i];
        uint64_t number = info->step % LKSI_STEP_RANGE;
        if (flag != 0 && (uint64_t)flag == number + 1) {
            lksi_prefetch_destroy(&f->prefetch); /* its thread may be in a callback of the data */
            t->step = info->step;
            return lksi_explain_nonfinite(t, f->p->train, info->step);
        }
        lksi_read_slot(t, ring + t->width * (number % LKSI_RING), info);
        for (size_t k = 0; k < t->model->n_loss; k++)
            t->epoch_loss[k] += (double)info->losses[k] * info->samples;
        t->epoch_hits += info->hits;
        t->epoch_samples += info->samples;
        if (st == LKS_OK) /* a callback's refusal ends the fit, not the accounts */
            st = tell_step(f, info);
    }
fail:
    return st;
}

/* The next batch that the thread has gathered, into a feed. */
static lks_status take_gathered(struct fit *f, struct lksi_form form, struct lksi_feed *feed)
{
    const struct lks_trainer *t = f->t;
    const struct lksi_dataset *data = f->p->train->data;
    struct lksi_batch batch;
    lks_status st = lksi_prefetch_next(f->prefetch, &batch);
    if (st != LKS_OK)
        return st;
    memcpy(feed->x, batch.x, batch.n * t->sample * (form.channels > 0 ? 1 : sizeof(float)));
    if (form.channels > 0)
        memcpy(feed->table, data->table, 256 * data->c * sizeof(float));
    memcpy(feed->label, batch.labels, batch.n * t->positions * sizeof(int32_t));
    lksi_prefetch_release(f->prefetch);
    return LKS_OK;
}

static lks_status queue_step(struct fit *f, const struct lksi_position *p)
{
    struct lks_trainer *t = f->t;
    const struct lksi_dataset *data = f->p->train->data;
    struct lksi_form form = lksi_form_of(data, f->resident != NULL);
    struct lksi_step_plan *plan;
    struct lksi_feed *feed;
    lks_status st = LKS_OK;
    LKSI_TRY(lksi_step_plan_get(t, p->samples, true, form, &plan));
    LKSI_TRY(lksi_feed_next(t, &feed));
    if (f->resident != NULL)
        lksi_feed_pick(feed, f->resident, data, f->order, p->first, p->samples);
    else
        LKSI_TRY(take_gathered(f, form, feed));
    set_hyper(t, p, t->step, feed);
    LKSI_TRY(lksi_feed_run(t, feed, plan));
    t->pending[t->n_pending++] = (struct lks_step_info){
        .step = t->step, .epoch = p->epoch, .samples = p->samples};
    t->step++;
    if (t->n_pending == LKSI_RING || lksi_seconds() - f->reported >= REPORT_SECONDS)
        LKSI_TRY(report(f));
fail:
    return st;
}

static lks_status end_epoch(struct fit *f, const struct lksi_position *p)
{
    struct lks_trainer *t = f->t;
    struct lks_epoch_info info = {.epoch = p->epoch,
                                  .steps = t->step,
                                  .train_accuracy = (double)NAN,
                                  .test_accuracy = (double)NAN,
                                  .n_losses = (uint32_t)t->model->n_loss};
    lks_status st = LKS_OK;
    LKSI_TRY(report(f));
    for (size_t k = 0; k < t->model->n_loss; k++) {
        info.train_losses[k] = t->epoch_loss[k] / t->epoch_samples;
        info.test_losses[k] = (double)NAN;
        t->epoch_loss[k] = 0;
    }
    if (t->positions > 0)
        info.train_accuracy = t->epoch_hits / (t->epoch_samples * (double)t->positions);
    t->epoch_hits = t->epoch_samples = 0;
    if (f->p->test != NULL)
        LKSI_TRY(lks_trainer_evaluate_losses(t, f->p->test, info.test_losses, &info.test_accuracy));
    info.train_loss = info.train_losses[0];
    info.test_loss = info.test_losses[0];
    LKSI_TRY(tell_epoch(f, &info));
    f->reported = lksi_seconds();
fail:
    return st;
}

/* Order and prefetching of the epoch that `p` stands in, from `p` on. */
static lks_status begin_epoch(struct fit *f, const struct lksi_position *p)
{
    const struct lksi_dataset *data = f->p->train->data;
    uint64_t end = p->steps_per_epoch * f->t->params.batch;
    lks_status st = make_order(f->t, f->p->train, p->epoch, f->order);
    if (st == LKS_OK && f->prefetch != NULL)
        lksi_prefetch_start(f->prefetch, f->order, p->first,
                            end < data->count ? (size_t)end : data->count);
    return st;
}

static lks_status loop(struct fit *f)
{
    struct lks_trainer *t = f->t;
    struct lksi_position p = {0};
    uint64_t last;
    lks_status st = lksi_position_of(t, f->p->train, t->step, &p);
    if (st != LKS_OK)
        return st;
    last = f->p->max_steps > 0 && f->p->max_steps < p.total ? f->p->max_steps : p.total;
    if (t->step < last)
        LKSI_TRY(begin_epoch(f, &p));
    while (t->step < last) {
        if (is_cancelled(f)) {
            LKSI_TRY(report(f));
            return lksi_fail(LKS_E_CANCELLED, "stopped after step %llu",
                             (unsigned long long)t->step);
        }
        LKSI_TRY(queue_step(f, &p));
        if (t->step % p.steps_per_epoch == 0)
            LKSI_TRY(end_epoch(f, &p));
        if (f->p->checkpoint_every > 0 && t->step % f->p->checkpoint_every == 0 &&
            f->p->on_checkpoint != NULL) {
            LKSI_TRY(report(f));
            LKSI_TRY(tell_checkpoint(f));
        }
        LKSI_TRY(lksi_position_of(t, f->p->train, t->step, &p));
        if (p.first == 0 && t->step < last)
            LKSI_TRY(begin_epoch(f, &p));
    }
    LKSI_TRY(report(f));
    LKSI_TRY(lksi_dev_wait(t->dev, 0));
fail:
    return st;
}

/*
 * After a failure (of a data callback, say) steps may be queued that nobody has looked at. They
 * are reported now: the caller may go on in another way. A NaN among them is the earlier failure.
 */
static lks_status report_rest(struct fit *f, lks_status why)
{
    char text[1024];
    lks_status st;
    if (why == LKS_OK || f->t->n_pending == 0)
        return why;
    snprintf(text, sizeof text, "%s", lks_error_message());
    st = report(f);
    return st == LKS_E_NONFINITE ? st : lksi_fail(why, "%s", text);
}

/* Sizes of 1 do not count, and a plain row of numbers on either side takes any shape. */
static bool same_shape(const struct lks_trainer *t, const struct lksi_desc *input,
                       const struct lksi_dataset *d)
{
    int64_t a[4], b[4];
    int n_a = 0, n_b = 0;
    for (int i = 1; i < input->rank; i++)
        if (input->dim[i] != 1)
            a[n_a++] = input->dim[i];
    for (int i = 0; i < d->rank; i++)
        if (d->dim[i] != 1)
            b[n_b++] = d->dim[i];
    if (n_a <= 1 || n_b <= 1)
        return d->sample == t->sample;
    return n_a == n_b && memcmp(a, b, (size_t)n_a * sizeof a[0]) == 0;
}

lks_status lksi_check_samples(const struct lks_trainer *t, const lks_dataset *d, const char *what)
{
    const struct lksi_desc *input = &t->model->value[lksi_data_input(t->model)].desc;
    char shape[96];
    if (!same_shape(t, input, d->data))
        return lksi_fail(LKS_E_INPUT,
                         "%s data: a sample has %s values, the graph's input is %s (batch first)",
                         what, lksi_dataset_shape_text(d->data, (char[96]){0}),
                         lksi_desc_text(input, shape));
    if (d->data->tokens != t->tokens && (d->data->fill == NULL || d->data->sha256[0] != '\0'))
        return lksi_fail(LKS_E_INPUT, "%s data: samples are %s, the graph's input takes %s", what,
                         d->data->tokens ? "integers" : "floats",
                         t->tokens ? "integers" : "floats");
    return LKS_OK;
}

lks_status lksi_check_data(const struct lks_trainer *t, const lks_dataset *d, const char *what)
{
    lks_status st = lksi_check_samples(t, d, what);
    if (st != LKS_OK)
        return st;
    if (t->positions == 0 && d->data->positions <= 1) /* one is read over */
        return LKS_OK;
    if (d->data->positions != t->positions)
        return lksi_fail(LKS_E_INPUT, "%s data: %zu labels a sample, the graph's loss needs %zu",
                         what, d->data->positions, t->positions);
    return lksi_dataset_check_classes(d->data, (uint32_t)t->classes);
}

static lks_status fit(struct lks_trainer *t, const struct lks_fit_params *p)
{
    struct fit f = {.t = t, .p = p, .reported = lksi_seconds()};
    lks_status st = lksi_check_data(t, p->train, "training");
    if (st == LKS_OK && p->test != NULL)
        st = lksi_check_data(t, p->test, "test");
    if (st != LKS_OK)
        return st;
    st = lksi_residents_get(t, p->train->data, p->test != NULL ? p->test->data : NULL);
    if (st != LKS_OK)
        return st;
    f.resident = lksi_resident_find(t, p->train->data);
    f.order = lksi_alloc(p->train->data->count, sizeof *f.order);
    if (f.order == NULL)
        return LKS_E_MEMORY;
    if (f.resident == NULL)
        st = lksi_prefetch_create(&f.prefetch, p->train->data, t->params.batch);
    if (st == LKS_OK)
        st = report_rest(&f, loop(&f));
    lksi_prefetch_destroy(&f.prefetch);
    free(f.order);
    return st;
}

lks_status lks_trainer_fit(lks_trainer *t, const struct lks_fit_params *params)
{
    struct lksi_fenv env;
    lks_status st;
    if (t == NULL || params == NULL || params->train == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_fit: an argument is NULL");
    lksi_fenv_enter(&env);
    st = fit(t, params);
    lksi_fenv_leave(&env);
    return st;
}
