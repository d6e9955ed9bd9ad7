/*
 * own_loop.c - a step in the caller's hands: forward, backward and update as separate calls on a
 * batch in memory, and what can be read and written between them.
 *
 * A pass is a range of the stages that lks_trainer_fit runs in one go, so the bits are the same.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/fenv.h"
#include "contract/update.h"
#include "train/train.h"

static lks_status check_batch(const struct lks_trainer *t, const struct lks_batch *b)
{
    if (t->tokens ? b->tokens == NULL : b->x == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "the batch lacks %s", t->tokens ? "tokens" : "x");
    if (t->positions > 0 && b->labels == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "the batch lacks labels");
    if (b->samples < 1 || b->samples > t->params.batch)
        return lksi_fail(LKS_E_ARGUMENT,
                         "the batch has %u samples, expected 1 to %u (`batch` of "
                         "the trainer)",
                         b->samples, t->params.batch);
    for (size_t i = 0; i < b->samples * t->positions; i++)
        if (b->labels[i] < 0 || b->labels[i] >= t->classes)
            return lksi_fail(LKS_E_ARGUMENT,
                             "label %d of sample %zu is out of range: with %lld classes, labels are "
                             "0 to %lld",
                             (int)b->labels[i], i / t->positions, (long long)t->classes,
                             (long long)t->classes - 1);
    return LKS_OK;
}

/* Whether the learning rate of the next update is known. */
static lks_status check_rate(const struct lks_trainer *t)
{
    for (size_t k = 0; k < t->n_optimizer && !t->has_lr; k++)
        if (lksi_schedule_needs_total(&t->optimizer[k].o.schedule) ||
            lksi_schedule_needs_epoch(&t->optimizer[k].o.schedule))
            return lksi_fail(LKS_E_ARGUMENT,
                             "an own loop does not know how many steps there will be, so the "
                             "schedule `%s` cannot go on by itself: call lks_trainer_set_lr before "
                             "each update (lks_learning_rate has the rates), or use "
                             "LKS_SCHEDULE_CONSTANT",
                             lks_schedule_name(t->optimizer[k].o.schedule.kind));
    return LKS_OK;
}

/* The optimisers' numbers for the next update. */
static void fill_hyper(struct lks_trainer *t, float *hyper)
{
    lksi_hyper_fill(t, t->step, 0, 0, t->has_lr ? &t->lr : NULL, hyper);
}

static void fill_feed(struct lks_trainer *t, const struct lks_batch *b,
                      struct lksi_feed *feed)
{
    const void *x = t->tokens ? (const void *)b->tokens : b->x;
    memcpy(feed->x, x, b->samples * t->sample * sizeof(float));
    if (t->positions > 0)
        memcpy(feed->label, b->labels, b->samples * t->positions * sizeof(int32_t));
    fill_hyper(t, feed->hyper);
    lksi_feed_step(t, feed, t->step);
}

static lks_status run_stages(struct lks_trainer *t, size_t from, size_t to)
{
    struct lksi_plan *plan = t->plan[t->own_plan].plan;
    lks_status st = LKS_OK;
    for (size_t s = from; st == LKS_OK && s < to; s++)
        st = lksi_plan_run_stage(plan, s);
    return st == LKS_OK ? lksi_dev_flush(t->dev) : st;
}

static lks_status read_state(struct lks_trainer *t, const char *name, uint64_t bytes,
                             uint64_t offset, void *data, uint64_t count)
{
    struct lksi_buf *buf;
    lks_status st = lksi_store_state(t->store, name, bytes, &buf);
    return st == LKS_OK ? lksi_buf_read(buf, offset, data, count) : st;
}

static lks_status read_info(struct lks_trainer *t, uint64_t step, struct lks_step_info *info)
{
    uint64_t slot = step % LKSI_STEP_RANGE % LKSI_RING;
    float numbers[LKSI_MAX_LOSSES + 1];
    uint64_t bytes = t->width * sizeof(float);
    lks_status st = read_state(t, "ring", bytes * LKSI_RING, slot * bytes, numbers, bytes);
    if (st == LKS_OK) {
        *info = (struct lks_step_info){.step = step, .samples = t->plan[t->own_plan].batch};
        lksi_read_slot(t, numbers, info);
    }
    return st;
}

static lks_status forward(struct lks_trainer *t, const struct lks_batch *batch,
                          struct lks_step_info *info)
{
    struct lksi_step_plan *plan;
    struct lksi_feed *feed;
    lks_status st = check_batch(t, batch);
    if (st != LKS_OK)
        return st;
    LKSI_TRY(lksi_step_plan_get(t, batch->samples, true, (struct lksi_form){0}, &plan));
    LKSI_TRY(lksi_feed_next(t, &feed));
    fill_feed(t, batch, feed);
    LKSI_TRY(lksi_feed_bind(t, feed, plan));
    t->own_plan = (size_t)(plan - t->plan);
    t->own_feed = feed;
    LKSI_TRY(run_stages(t, 0, plan->forward));
    LKSI_TRY(lksi_dev_mark(t->dev, &feed->mark));
    if (info != NULL)
        LKSI_TRY(read_info(t, t->step, info));
    t->phase = LKSI_PHASE_FORWARD;
    t->written = NULL;
fail:
    return st;
}

static lks_status want_phase(const struct lks_trainer *t, enum lksi_phase phase, const char *what,
                             const char *before)
{
    if (t->phase == phase)
        return LKS_OK;
    return lksi_fail(LKS_E_ARGUMENT,
                     "%s: call %s first, with no other use of the trainer's device in between",
                     what, before);
}

static lks_status backward(struct lks_trainer *t)
{
    const struct lksi_step_plan *plan = &t->plan[t->own_plan];
    lks_status st = LKS_OK;
    t->phase = LKSI_PHASE_NONE; /* unless it succeeds */
    LKSI_TRY(run_stages(t, plan->forward, plan->backward));
    LKSI_TRY(lksi_dev_mark(t->dev, &t->own_feed->mark));
    t->has_grads = true;
    t->phase = LKSI_PHASE_BACKWARD;
fail:
    return st;
}

/* lks_trainer_set_lr may have been called since the batch was uploaded. */
static lks_status renew_lr(struct lks_trainer *t)
{
    struct lksi_feed *feed = t->own_feed;
    float hyper[LKSI_MAX_ROWS * LKS_UPDATE_HYPER];
    size_t bytes = t->n_row * LKS_UPDATE_HYPER * sizeof(float);
    lks_status st = check_rate(t);
    if (st != LKS_OK)
        return st;
    fill_hyper(t, hyper);
    if (memcmp(hyper, feed->hyper, bytes) == 0)
        return LKS_OK;
    LKSI_TRY(lksi_dev_wait(t->dev, 0)); /* the upload reads feed->hyper */
    memcpy(feed->hyper, hyper, bytes);
    LKSI_TRY(lksi_buf_write(feed->hyper_buf, 0, feed->hyper, bytes, true));
fail:
    return st;
}

static lks_status update(struct lks_trainer *t)
{
    const struct lksi_step_plan *plan = &t->plan[t->own_plan];
    uint32_t samples = plan->batch;
    int32_t flag = 0;
    lks_status st = LKS_OK;
    LKSI_TRY(renew_lr(t));
    t->phase = LKSI_PHASE_NONE;
    LKSI_TRY(run_stages(t, plan->backward, lksi_plan_stages(plan->plan)));
    LKSI_TRY(lksi_dev_mark(t->dev, &t->own_feed->mark));
    LKSI_TRY(read_state(t, "flag", sizeof flag, 0, &flag, sizeof flag));
    if (flag != 0 && t->written != NULL)
        return lksi_explain_written(t, t->step);
    if (flag != 0)
        return lksi_explain_feed(t, t->own_feed, samples, t->step);
    t->step++;
    t->phase = LKSI_PHASE_UPDATE;
    LKSI_TRY(lksi_step_plans_settle(t));
fail:
    return st;
}

static lks_status step(struct lks_trainer *t, const struct lks_batch *batch,
                       struct lks_step_info *info)
{
    lks_status st = check_rate(t); /* before anything runs */
    if (st != LKS_OK)
        return st;
    LKSI_TRY(forward(t, batch, NULL));
    LKSI_TRY(backward(t));
    LKSI_TRY(update(t));
    if (info != NULL)
        LKSI_TRY(read_info(t, t->step - 1, info));
fail:
    return st;
}

/* ---- the public functions ---- */

lks_status lks_trainer_forward(lks_trainer *t, const struct lks_batch *batch,
                               struct lks_step_info *info)
{
    struct lksi_fenv env;
    lks_status st;
    if (t == NULL || batch == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_forward: an argument is NULL");
    lksi_fenv_enter(&env);
    st = forward(t, batch, info);
    lksi_fenv_leave(&env);
    return st;
}

lks_status lks_trainer_backward(lks_trainer *t)
{
    struct lksi_fenv env;
    lks_status st;
    if (t == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_backward: the trainer is NULL");
    lksi_fenv_enter(&env);
    st = want_phase(t, LKSI_PHASE_FORWARD, "lks_trainer_backward", "lks_trainer_forward");
    if (st == LKS_OK)
        st = backward(t);
    lksi_fenv_leave(&env);
    return st;
}

lks_status lks_trainer_update(lks_trainer *t)
{
    struct lksi_fenv env;
    lks_status st;
    if (t == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_update: the trainer is NULL");
    lksi_fenv_enter(&env);
    st = want_phase(t, LKSI_PHASE_BACKWARD, "lks_trainer_update", "lks_trainer_backward");
    if (st == LKS_OK)
        st = update(t);
    lksi_fenv_leave(&env);
    return st;
}

lks_status lks_trainer_step(lks_trainer *t, const struct lks_batch *batch,
                            struct lks_step_info *info)
{
    struct lksi_fenv env;
    lks_status st;
    if (t == NULL || batch == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_step: an argument is NULL");
    lksi_fenv_enter(&env);
    st = step(t, batch, info);
    lksi_fenv_leave(&env);
    return st;
}

lks_status lks_trainer_set_lr(lks_trainer *t, double lr)
{
    /* By its bits, so that a caller's floating-point state has no say. */
    uint64_t bits;
    memcpy(&bits, &lr, sizeof bits);
    if (t == NULL || (bits >> 63) != 0 || !isfinite(lr) || lr > (double)FLT_MAX)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_set_lr: expected a trainer and a learning "
                                         "rate of 0 or more that is finite as a 32-bit float");
    t->lr = lr;
    t->has_lr = true;
    return LKS_OK;
}

lks_status lks_trainer_get_gradient(lks_trainer *t, const char *name, float *data, size_t count)
{
    struct lksi_fenv env;
    lks_status st;
    if (t == NULL || name == NULL || data == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_get_gradient: an argument is NULL");
    if (!t->has_grads)
        return lksi_fail(LKS_E_ARGUMENT, "there are no gradients yet: no backward pass was run");
    lksi_fenv_enter(&env);
    st = lksi_param_read(t, "grads", name, data, count);
    lksi_fenv_leave(&env);
    return st;
}

lks_status lks_trainer_set_gradient(lks_trainer *t, const char *name, const float *data,
                                    size_t count)
{
    struct lksi_fenv env;
    lks_status st;
    if (t == NULL || name == NULL || data == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_set_gradient: an argument is NULL");
    lksi_fenv_enter(&env);
    st = want_phase(t, LKSI_PHASE_BACKWARD, "lks_trainer_set_gradient", "lks_trainer_backward");
    if (st == LKS_OK)
        st = lksi_param_write(t, "grads", name, data, count);
    if (st == LKS_OK)
        t->written = "lks_trainer_set_gradient";
    lksi_fenv_leave(&env);
    return st;
}

/* The buffer of a kept value of the own loop's batch. */
static lks_status kept_buf(struct lks_trainer *t, lks_value value, size_t count,
                           struct lksi_buf **buf)
{
    struct lksi_plan *plan = t->plan[t->own_plan].plan;
    const struct lks_graph *g;
    int64_t n;
    bool kept = false;
    for (size_t i = 0; i < t->n_keep; i++)
        kept = kept || t->keep[i] == value;
    if (!kept)
        return lksi_fail(LKS_E_ARGUMENT,
                         "value %d is not kept: name it in `keep` of "
                         "lks_trainer_params",
                         (int)value);
    if (t->phase == LKSI_PHASE_NONE)
        return lksi_fail(LKS_E_ARGUMENT,
                         "there are no values: call lks_trainer_forward first, with "
                         "no other use of the trainer's device in between");
    g = lksi_plan_graph(plan);
    n = lksi_desc_count(&g->value[value].desc);
    if ((uint64_t)n != count)
        return lksi_fail(LKS_E_ARGUMENT, "value %d has %lld elements for this batch, not %zu",
                         (int)value, (long long)n, count);
    *buf = lksi_plan_buf(plan, value);
    return LKS_OK;
}

lks_status lks_trainer_get_value(lks_trainer *t, lks_value value, float *data, size_t count)
{
    struct lksi_fenv env;
    struct lksi_buf *buf;
    lks_status st;
    if (t == NULL || data == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_get_value: an argument is NULL");
    lksi_fenv_enter(&env);
    st = kept_buf(t, value, count, &buf);
    if (st == LKS_OK)
        st = lksi_buf_read(buf, 0, data, count * sizeof(float));
    lksi_fenv_leave(&env);
    return st;
}

lks_status lks_trainer_set_value(lks_trainer *t, lks_value value, const float *data, size_t count)
{
    struct lksi_fenv env;
    struct lksi_buf *buf;
    lks_status st;
    if (t == NULL || data == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_set_value: an argument is NULL");
    lksi_fenv_enter(&env);
    st = want_phase(t, LKSI_PHASE_FORWARD, "lks_trainer_set_value", "lks_trainer_forward");
    if (st == LKS_OK)
        st = kept_buf(t, value, count, &buf);
    if (st == LKS_OK)
        st = lksi_buf_write(buf, 0, data, count * sizeof(float), true);
    if (st == LKS_OK)
        t->written = "lks_trainer_set_value";
    lksi_fenv_leave(&env);
    return st;
}
