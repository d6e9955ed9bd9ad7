/*
 * feed.c - batches on their way to the device: while one step computes, the next batch is gathered
 * and uploaded.
 */
#include <stdlib.h>
#include <string.h>

#include "contract/update.h"
#include "train/train.h"

#define PIECE 4096 /* bytes; every part starts at a multiple */

_Static_assert(LKSI_MAX_TABLE * sizeof(float) <= PIECE, "the table is one piece");
_Static_assert(LKSI_MAX_ROWS * LKS_UPDATE_HYPER * sizeof(float) <= PIECE, "hyper is one piece");

static uint64_t pad(uint64_t bytes)
{
    return (bytes + PIECE - 1) / PIECE * PIECE;
}

static lks_status create_feed(struct lks_trainer *t, struct lksi_feed *f)
{
    uint64_t batch = t->params.batch;
    uint64_t labels = pad(batch * (t->positions > 0 ? t->positions : 1) * sizeof(int32_t));
    uint64_t x_bytes = batch * t->sample * sizeof(float);
    uint64_t hyper = 0, step = PIECE, which = 2 * PIECE, label = which + pad(batch * 4);
    uint64_t table = label + labels, x = table + PIECE;
    lks_status st = LKS_OK;
    LKSI_TRY(lksi_buf_staging(&f->staging, t->dev, x + x_bytes));
    f->host = lksi_buf_host(f->staging);
    f->hyper = (float *)(void *)(f->host + hyper);
    f->step = (int32_t *)(void *)(f->host + step);
    f->which = (uint32_t *)(void *)(f->host + which);
    f->table = (float *)(void *)(f->host + table);
    f->label = (int32_t *)(void *)(f->host + label);
    f->x = (float *)(void *)(f->host + x);
    f->x_offset = x;
    LKSI_TRY(lksi_buf_create(&f->buf, t->dev, x + pad(x_bytes)));
    LKSI_TRY(lksi_buf_part(&f->hyper_buf, f->buf, hyper, PIECE));
    LKSI_TRY(lksi_buf_part(&f->step_buf, f->buf, step, PIECE));
    LKSI_TRY(lksi_buf_part(&f->which_buf, f->buf, which, pad(batch * 4)));
    LKSI_TRY(lksi_buf_part(&f->table_buf, f->buf, table, PIECE));
    LKSI_TRY(lksi_buf_part(&f->label_buf, f->buf, label, labels));
    LKSI_TRY(lksi_buf_part(&f->x_buf, f->buf, x, pad(x_bytes)));
fail:
    return st;
}

lks_status lksi_feeds_create(struct lks_trainer *t)
{
    for (size_t i = 0; i < LKSI_FEEDS; i++) {
        lks_status st = create_feed(t, &t->feed[i]);
        if (st != LKS_OK)
            return st;
    }
    return LKS_OK;
}

void lksi_feeds_destroy(struct lks_trainer *t)
{
    for (size_t i = 0; i < LKSI_FEEDS; i++) {
        struct lksi_feed *f = &t->feed[i];
        lksi_buf_destroy(&f->hyper_buf);
        lksi_buf_destroy(&f->step_buf);
        lksi_buf_destroy(&f->which_buf);
        lksi_buf_destroy(&f->table_buf);
        lksi_buf_destroy(&f->label_buf);
        lksi_buf_destroy(&f->x_buf);
        lksi_buf_destroy(&f->buf);
        lksi_buf_destroy(&f->staging);
        f->host = NULL;
    }
}

lks_status lksi_feed_gather(struct lksi_feed *f, const struct lksi_dataset *data,
                            const uint32_t *order, size_t first, size_t n)
{
    if (!lksi_dataset_sends_bytes(data))
        return lksi_dataset_gather(data, order, first, n, f->x, f->label);
    memcpy(f->table, data->table, 256 * data->c * sizeof(float));
    lksi_dataset_gather_bytes(data, order, first, n, (uint8_t *)f->x, f->label);
    return LKS_OK;
}

void lksi_feed_pick(struct lksi_feed *f, const struct lksi_resident *resident,
                    const struct lksi_dataset *data, const uint32_t *order, size_t first, size_t n)
{
    size_t each = data->positions;
    f->resident = resident;
    for (size_t i = 0; i < n; i++) {
        f->which[i] = order != NULL ? order[first + i] : (uint32_t)(first + i);
        if (each > 0)
            memcpy(f->label + i * each, data->labels + f->which[i] * each, each * sizeof(int32_t));
    }
}

static void set_step(const struct lks_trainer *t, struct lksi_feed *f, uint32_t number,
                     uint32_t slot, uint32_t first)
{
    const uint32_t word[LKSI_STEP_WORDS] = {number, slot, (uint32_t)t->params.seed,
                                            (uint32_t)(t->params.seed >> 32), first};
    memcpy(f->step, word, sizeof word);
}

void lksi_feed_step(const struct lks_trainer *t, struct lksi_feed *f, uint64_t step)
{
    uint32_t number = (uint32_t)(step % LKSI_STEP_RANGE);
    set_step(t, f, number, number, 0);
}

void lksi_feed_evaluation(const struct lks_trainer *t, struct lksi_feed *f, int32_t slot,
                          size_t first)
{
    set_step(t, f, LKSI_STEP_EVALUATION, (uint32_t)slot, (uint32_t)first);
}

lks_status lksi_feed_next(struct lks_trainer *t, struct lksi_feed **feed)
{
    struct lksi_feed *f = &t->feed[t->next_feed];
    if (f->mark != 0) {
        lks_status st = lksi_dev_wait(t->dev, f->mark);
        if (st != LKS_OK)
            return st;
        f->mark = 0;
    }
    t->next_feed = (t->next_feed + 1) % LKSI_FEEDS;
    t->phase = LKSI_PHASE_NONE;
    f->resident = NULL;
    *feed = f;
    return LKS_OK;
}

/* Bytes of the feed that a step of the plan reads: up to the labels or up to the samples. */
static uint64_t bytes_of(const struct lks_trainer *t, const struct lksi_feed *f,
                         const struct lksi_step_plan *p)
{
    if (p->form.resident)
        return (uint64_t)((unsigned char *)f->label - f->host) +
               p->batch * t->positions * sizeof(int32_t);
    return f->x_offset + (uint64_t)p->batch * t->sample * (p->form.channels > 0 ? 1 : 4);
}

lks_status lksi_feed_bind(struct lks_trainer *t, struct lksi_feed *f, struct lksi_step_plan *p)
{
    const struct lksi_resident *r = f->resident;
    lks_status st = LKS_OK;
    LKSI_TRY(lksi_buf_upload(f->buf, 0, f->host, bytes_of(t, f, p), 0));
    LKSI_TRY(lksi_dev_use_uploads(t->dev));
    LKSI_TRY(lksi_plan_set_input(p->plan, p->x, r != NULL ? r->x : f->x_buf));
    if (p->form.channels > 0)
        LKSI_TRY(lksi_plan_set_input(p->plan, p->table, r != NULL ? r->table : f->table_buf));
    if (r != NULL)
        LKSI_TRY(lksi_plan_set_input(p->plan, p->which, f->which_buf));
    if (p->label != LKSI_NONE)
        LKSI_TRY(lksi_plan_set_input(p->plan, p->label, f->label_buf));
    LKSI_TRY(lksi_plan_set_input(p->plan, p->step, f->step_buf));
    LKSI_TRY(lksi_plan_set_input(p->plan, p->hyper, f->hyper_buf));
fail:
    return st;
}

lks_status lksi_feed_run(struct lks_trainer *t, struct lksi_feed *f, struct lksi_step_plan *p)
{
    lks_status st = LKS_OK;
    LKSI_TRY(lksi_feed_bind(t, f, p));
    t->has_grads = t->has_grads || p->training;
    LKSI_TRY(lksi_plan_run(p->plan));
    LKSI_TRY(lksi_dev_mark(t->dev, &f->mark));
    LKSI_TRY(lksi_dev_flush(t->dev));
fail:
    return st;
}
