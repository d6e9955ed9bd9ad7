/*
 * nonfinite.c - finds where a NaN or an infinity came from (numerics.md, rule 12). The update of
 * the step did nothing, so the step can be repeated with a look at every operator's outputs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/train.h"

/* The first element that is not finite, or n. */
static int64_t first_bad(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if ((lks_bits(x[i]) & 0x7f800000u) == 0x7f800000u)
            return i;
    return n;
}

static lks_status look(struct lksi_stage *stage, const char *name, uint64_t step)
{
    if (strcmp(stage->call.op->name, "record") == 0)
        return LKS_OK; /* its ring also holds the losses of earlier steps */
    for (int j = 0; j < stage->call.n_out; j++) {
        const struct lksi_desc *d = &stage->call.out[j];
        int64_t n = lksi_desc_count(d), bad;
        char where[96];
        float *x;
        lks_status st;
        if (d->dtype != LKSI_F32)
            continue;
        x = lksi_alloc((size_t)n, sizeof *x);
        if (x == NULL)
            return LKS_E_MEMORY;
        st = lksi_buf_read(stage->out[j], 0, x, (uint64_t)n * sizeof *x);
        bad = st == LKS_OK ? first_bad(x, n) : n;
        if (bad < n) {
            st = lksi_fail(LKS_E_NONFINITE,
                           "step %llu: operator `%s` (%s) is the first to give %g, at element %s of "
                           "output %d; the parameters are as they were before this step; lower the "
                           "learning rate or look at the data",
                           (unsigned long long)step, name, stage->call.op->name, (double)x[bad],
                           lksi_desc_place(d, bad, where), j);
        }
        free(x);
        if (st != LKS_OK)
            return st;
    }
    return LKS_OK;
}

static lks_status explain_feed(struct lks_trainer *t, struct lksi_feed *feed, uint32_t samples,
                               struct lksi_form form, uint64_t step)
{
    struct lksi_step_plan *plan;
    bool floats = !t->tokens && form.channels == 0;
    int64_t n = (int64_t)(samples * t->sample), bad = floats ? first_bad(feed->x, n) : n;
    lks_status st = LKS_OK;
    if (bad < n)
        return lksi_fail(LKS_E_NONFINITE,
                         "step %llu: the data hold %g in sample %lld of the batch, at value %lld; "
                         "the parameters are as they were before this step",
                         (unsigned long long)step, (double)feed->x[bad],
                         (long long)(bad / (int64_t)t->sample),
                         (long long)(bad % (int64_t)t->sample));
    LKSI_TRY(lksi_step_plan_get(t, samples, true, form, &plan));
    LKSI_TRY(lksi_feed_bind(t, feed, plan));
    for (size_t s = 0; s < lksi_plan_stages(plan->plan); s++) {
        LKSI_TRY(lksi_plan_run_stage(plan->plan, s));
        LKSI_TRY(look(lksi_plan_stage(plan->plan, s), lksi_plan_stage_name(plan->plan, s), step));
    }
    st = lksi_fail(LKS_E_DEVICE,
                   "step %llu gave a NaN or an infinity that a second run of the same step did not "
                   "give: the device does not compute reliably",
                   (unsigned long long)step);
fail:
    return st;
}

static lks_status explain(struct lks_trainer *t, const lks_dataset *train, uint64_t step)
{
    struct lksi_position p;
    struct lksi_feed *feed;
    lks_status st = LKS_OK;
    LKSI_TRY(lksi_dev_wait(t->dev, 0));
    LKSI_TRY(lksi_feed_next(t, &feed));
    LKSI_TRY(lksi_gather_step(t, train, NULL, step, feed, &p));
    return explain_feed(t, feed, p.samples, lksi_form_of(train->data, false), step);
fail:
    return st;
}

/* The flag falls, so that the trainer can go on with other data or another learning rate. */
static lks_status clear_flag(struct lks_trainer *t)
{
    static const int32_t zero;
    struct lksi_buf *buf;
    lks_status st = lksi_store_state(t->store, "flag", sizeof zero, &buf);
    return st != LKS_OK ? st : lksi_buf_write(buf, 0, &zero, sizeof zero, true);
}

/* Clears the flag and keeps the text that explains why it was raised. */
static lks_status finish(struct lks_trainer *t, lks_status why)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", lks_error_message());
    clear_flag(t);
    return lksi_fail(why, "%s", text);
}

lks_status lksi_explain_nonfinite(struct lks_trainer *t, const lks_dataset *train, uint64_t step)
{
    return finish(t, explain(t, train, step));
}

lks_status lksi_explain_feed(struct lks_trainer *t, struct lksi_feed *feed, uint32_t samples,
                             uint64_t step)
{
    return finish(t, explain_feed(t, feed, samples, (struct lksi_form){0}, step));
}

lks_status lksi_explain_written(struct lks_trainer *t, uint64_t step)
{
    lksi_fail(LKS_E_NONFINITE,
              "step %llu: the loss or a gradient is not finite after %s wrote into the step; the "
              "parameters are as they were before this step; look at what was written",
              (unsigned long long)step, t->written);
    return finish(t, LKS_E_NONFINITE);
}
