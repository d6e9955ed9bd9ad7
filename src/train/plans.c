/*
 * plans.c - one plan a batch size and kind; they share states and memory through the store.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fenv.h"
#include "train/train.h"

/* The largest smaller batch whose step fits the device, or 0. */
static uint32_t batch_that_fits(struct lks_trainer *t, uint32_t batch, bool training)
{
    while ((batch /= 2) > 0) {
        struct lksi_step_plan ids;
        struct lks_graph *g = NULL;
        struct lksi_memory memory;
        if (lksi_step_graph(&g, t, batch, training, (struct lksi_form){0}, &ids) == LKS_OK &&
            lksi_plan_measure(&memory, &g, t->store) == LKS_OK)
            return batch;
        lks_graph_destroy(&g);
    }
    return 0;
}

static lks_status out_of_memory(struct lks_trainer *t, uint32_t batch, bool training)
{
    char why[1024];
    strncpy(why, lks_error_message(), sizeof why - 1);
    why[sizeof why - 1] = '\0';
    uint32_t fits = batch_that_fits(t, batch, training);
    if (fits == 0)
        return lksi_fail(LKS_E_MEMORY, "%s", why);
    return lksi_fail(LKS_E_MEMORY, "%s; batch %u would fit", why, fits);
}

/* The borders of the passes; step_graph.c says why these operators mark them. */
static void find_borders(struct lksi_step_plan *p)
{
    size_t n = lksi_plan_stages(p->plan);
    p->forward = p->backward = n;
    for (size_t s = 0; s < n; s++) {
        const char *op = lksi_plan_stage(p->plan, s)->call.op->name;
        if (strcmp(op, "record") == 0)
            p->forward = s + 1;
        if (strcmp(op, "guard") == 0 && p->backward == n)
            p->backward = s;
    }
}

/* The caller's progress callback may change the floating-point state. */
static void on_build(void *user, size_t done, size_t total)
{
    struct lks_trainer *t = user;
    t->params.on_build(t->params.user, done, total);
    lksi_fenv_renew();
}

lks_status lksi_step_plans_settle(struct lks_trainer *t)
{
    for (; t->n_settled < t->n_plan; t->n_settled++) {
        lks_status st = lksi_plan_settle(t->plan[t->n_settled].plan);
        if (st != LKS_OK)
            return st;
    }
    return LKS_OK;
}

struct lksi_form lksi_form_of(const struct lksi_dataset *data, bool resident)
{
    bool bytes = resident ? data->pixels != NULL : lksi_dataset_sends_bytes(data);
    return (struct lksi_form){bytes ? (int32_t)data->c : 0, resident};
}

lks_status lksi_step_plan_get(struct lks_trainer *t, uint32_t batch, bool training,
                              struct lksi_form form, struct lksi_step_plan **plan)
{
    struct lksi_step_plan made = {0};
    struct lks_graph *g = NULL;
    struct lksi_plan_params params = {
        .store = t->store,
        .plain = t->params.plain,
        .no_admission = t->params.no_admission,
        .progress = {t->params.on_build != NULL ? on_build : NULL, t},
    };
    lks_status st;
    for (size_t i = 0; i < t->n_plan; i++)
        if (t->plan[i].batch == batch && t->plan[i].training == training &&
            t->plan[i].form.channels == form.channels &&
            t->plan[i].form.resident == form.resident && (training || t->plan[i].output == t->output)) {
            *plan = &t->plan[i];
            return LKS_OK;
        }
    if (!lksi_grow(&t->plan, &t->cap_plan, t->n_plan + 1, sizeof *t->plan))
        return LKS_E_MEMORY;
    st = lksi_step_graph(&g, t, batch, training, form, &made);
    if (st == LKS_OK)
        st = lksi_plan_create(&made.plan, &g, &params);
    if (st == LKS_E_MEMORY)
        return out_of_memory(t, batch, training);
    if (st != LKS_OK)
        return st;
    find_borders(&made);
    t->plan[t->n_plan] = made;
    *plan = &t->plan[t->n_plan++];
    return LKS_OK;
}
