/*
 * compare.c - two trainers run operator by operator, every output compared.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/compare.h>

#include "base/fenv.h"
#include "op/sample.h"
#include "train/train.h"

/* One of the two runs within a step. */
struct side {
    struct lks_trainer *t;
    struct lksi_plan *plan;
    uint32_t *data; /* the output being compared */
    size_t capacity;
};

struct run {
    struct side side[2];
    const struct lks_compare_params *params;
    struct lks_difference *first;
    uint64_t step, tensors, bytes;
    bool same;
};

static lks_status prepare_step(struct run *r)
{
    struct lksi_form form = lksi_form_of(r->params->train->data, false);
    struct lksi_position p;
    for (int i = 0; i < 2; i++) {
        struct side *s = &r->side[i];
        struct lksi_feed *feed;
        struct lksi_step_plan *plan;
        lks_status st = LKS_OK;
        LKSI_TRY(lksi_feed_next(s->t, &feed));
        LKSI_TRY(lksi_gather_step(s->t, r->params->train, NULL, r->step, feed, &p));
        LKSI_TRY(lksi_step_plan_get(s->t, p.samples, true, form, &plan));
        LKSI_TRY(lksi_feed_bind(s->t, feed, plan));
        LKSI_TRY(lksi_dev_mark(s->t->dev, &feed->mark));
        s->plan = plan->plan;
    fail:
        if (st != LKS_OK)
            return st;
    }
    return LKS_OK;
}

static lks_status read_output(struct side *s, size_t stage, int output, uint64_t n)
{
    if (n > s->capacity) {
        free(s->data);
        s->data = lksi_alloc(n, sizeof *s->data);
        s->capacity = s->data != NULL ? n : 0;
        if (s->data == NULL)
            return LKS_E_MEMORY;
    }
    return lksi_buf_read(lksi_plan_stage(s->plan, stage)->out[output], 0, s->data,
                         n * sizeof *s->data);
}

static const char *schedule_name(const struct side *s, size_t stage)
{
    const struct lksi_stage *x = lksi_plan_stage(s->plan, stage);
    return x->schedule != NULL ? x->schedule->name : "ref";
}

static void describe(struct run *r, size_t stage, int output, uint64_t index, uint64_t differing)
{
    struct lks_difference *d = r->first;
    const struct lksi_stage *x = lksi_plan_stage(r->side[0].plan, stage);
    const struct lksi_desc *desc = &x->call.out[output];
    memset(d, 0, sizeof *d);
    d->step = r->step;
    snprintf(d->operation, sizeof d->operation, "%s",
             lksi_plan_stage_name(r->side[0].plan, stage));
    snprintf(d->op, sizeof d->op, "%s", x->call.op->name);
    snprintf(d->schedule_a, sizeof d->schedule_a, "%s", schedule_name(&r->side[0], stage));
    snprintf(d->schedule_b, sizeof d->schedule_b, "%s", schedule_name(&r->side[1], stage));
    d->output = output;
    lksi_desc_text(desc, d->shape);
    d->index = index;
    lksi_desc_place(desc, (int64_t)index, d->place);
    d->bits_a = r->side[0].data[index];
    d->bits_b = r->side[1].data[index];
    d->ulp = lksi_bits_ulp(desc->dtype, d->bits_a, d->bits_b);
    d->differing = differing;
    d->elements = (uint64_t)lksi_desc_count(desc);
    d->agreed = r->tensors - 1;
}

static lks_status compare_output(struct run *r, size_t stage, int output)
{
    const struct lksi_desc *desc = &lksi_plan_stage(r->side[0].plan, stage)->call.out[output];
    uint64_t n = (uint64_t)lksi_desc_count(desc), at = n, differing = 0;
    lks_status st = read_output(&r->side[0], stage, output, n);
    if (st == LKS_OK)
        st = read_output(&r->side[1], stage, output, n);
    if (st != LKS_OK)
        return st;
    r->tensors++;
    r->bytes += n * sizeof(uint32_t);
    if (memcmp(r->side[0].data, r->side[1].data, n * sizeof(uint32_t)) == 0)
        return LKS_OK;
    for (uint64_t i = n; i-- > 0;)
        if (!lksi_bits_same(desc->dtype, r->side[0].data[i], r->side[1].data[i])) {
            at = i;
            differing++;
        }
    if (differing > 0) {
        r->same = false;
        describe(r, stage, output, at, differing);
    }
    return LKS_OK;
}

static lks_status compare_step(struct run *r)
{
    lks_status st = prepare_step(r);
    if (st != LKS_OK)
        return st;
    if (lksi_plan_stages(r->side[0].plan) != lksi_plan_stages(r->side[1].plan))
        return lksi_fail(LKS_E_ARGUMENT, "lks_compare: the two trainers run different graphs");
    for (size_t s = 0; s < lksi_plan_stages(r->side[0].plan) && r->same; s++) {
        for (int i = 0; i < 2; i++) {
            st = lksi_plan_run_stage(r->side[i].plan, s);
            if (st != LKS_OK)
                return st;
        }
        for (int j = 0; j < lksi_plan_stage(r->side[0].plan, s)->call.n_out && r->same; j++) {
            st = compare_output(r, s, j);
            if (st != LKS_OK)
                return st;
        }
    }
    return LKS_OK;
}

static lks_status check(const struct lks_trainer *a, const struct lks_trainer *b)
{
    if (a->step != b->step || strcmp(a->graph_sha256, b->graph_sha256) != 0 ||
        a->params.seed != b->params.seed || a->params.batch != b->params.batch ||
        a->params.leaf != b->params.leaf || a->params.epochs != b->params.epochs ||
        !lksi_same_update(a, b))
        return lksi_fail(LKS_E_ARGUMENT, "lks_compare: the trainers differ in graph, step, seed, "
                                         "batch, leaf, epochs or optimiser");
    return LKS_OK;
}

static lks_status compare(lks_trainer *a, lks_trainer *b, const struct lks_compare_params *p,
                          bool *same, struct lks_difference *first)
{
    struct run r = {.side = {{.t = a}, {.t = b}}, .params = p, .first = first, .same = true};
    uint64_t end = a->step + (p->steps > 0 ? p->steps : 1);
    lks_status st = check(a, b);
    for (r.step = a->step; st == LKS_OK && r.same && r.step < end; r.step++) {
        st = compare_step(&r);
        if (st != LKS_OK || !r.same)
            break;
        a->step = b->step = r.step + 1;
        bool go_on = p->on_step == NULL || p->on_step(p->user, r.step, r.tensors, r.bytes);
        lksi_fenv_renew();
        if (!go_on)
            st = lksi_fail(LKS_E_CANCELLED, "comparison stopped after step %llu",
                           (unsigned long long)r.step);
    }
    free(r.side[0].data);
    free(r.side[1].data);
    if (st == LKS_OK)
        *same = r.same;
    return st;
}

lks_status lks_compare(lks_trainer *a, lks_trainer *b, const struct lks_compare_params *params,
                       bool *same, struct lks_difference *first)
{
    struct lksi_fenv env;
    lks_status st;
    if (a == NULL || b == NULL || params == NULL || params->train == NULL || same == NULL ||
        first == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_compare: an argument is NULL");
    lksi_fenv_enter(&env);
    st = compare(a, b, params, same, first);
    lksi_fenv_leave(&env);
    return st;
}
