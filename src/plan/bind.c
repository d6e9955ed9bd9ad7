/*
 * bind.c - stages: recipes turned into kernels with arguments, and the C loops of `ref`.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/bind.h"

lks_status lksi_stage_choose(struct lksi_stage *stage, struct lksi_dev *dev,
                             const struct lksi_call *call, const char *wanted,
                             bool (*struck)(void *user, const struct lksi_schedule *s), void *user)
{
    const struct lksi_limits *limits = lksi_dev_limits(dev);
    const struct lksi_schedule *s;
    bool exists = wanted == NULL;
    memset(stage, 0, sizeof *stage);
    stage->call = *call;
    stage->dev = dev;
    if (lksi_dev_is_ref(dev)) {
        stage->items_only = wanted != NULL && strcmp(wanted, "plain") == 0;
        return LKS_OK;
    }
    for (size_t i = 0; (s = lksi_op_schedule(call->op, i)) != NULL; i++) {
        const char *reason;
        if (wanted != NULL && strcmp(wanted, s->name) != 0)
            continue;
        exists = true;
        reason = s->declines(call, limits);
        if (reason != NULL && wanted != NULL)
            return lksi_fail(LKS_E_ARGUMENT, "schedule `%s` of operator `%s` declines on %s: %s",
                             wanted, call->op->name, limits->name, reason);
        if (reason != NULL || (struck != NULL && struck(user, s)))
            continue;
        stage->schedule = s;
        s->recipe(call, limits, &stage->recipe);
        return LKS_OK;
    }
    if (!exists)
        return lksi_fail(LKS_E_ARGUMENT, "operator `%s` has no schedule `%s`", call->op->name,
                         wanted);
    if (wanted != NULL)
        return lksi_fail(LKS_E_NUMERICS,
                         "schedule `%s` of operator `%s` gives other bits than its contract on %s",
                         wanted, call->op->name, limits->name);
    return lksi_fail(LKS_E_NUMERICS, "no schedule of operator `%s` gives the contract's bits on %s",
                     call->op->name, limits->name);
}

bool lksi_stage_pick(struct lksi_stage *stage, struct lksi_dev *dev, const struct lksi_call *call,
                     const struct lksi_pick *pick)
{
    const struct lksi_limits *limits = lksi_dev_limits(dev);
    if (pick->schedule->declines(call, limits) != NULL)
        return false;
    memset(stage, 0, sizeof *stage);
    stage->call = *call;
    stage->dev = dev;
    stage->schedule = pick->schedule;
    stage->pick = *pick;
    memcpy(stage->recipe.tuned, pick->tuned, sizeof pick->tuned);
    pick->schedule->recipe(call, limits, &stage->recipe);
    return true;
}

static lks_status create_kernels(struct lksi_program *program, struct lksi_stage *stage)
{
    for (int l = 0; l < stage->recipe.n_launch; l++) {
        const struct lksi_launch *launch = &stage->recipe.launch[l];
        if (launch->host != NULL)
            continue;
        lks_status st =
            lksi_kernel_create(&stage->kernel[l], program, stage->unit[l], launch->kernel);
        if (st != LKS_OK)
            return st;
    }
    return LKS_OK;
}

lks_status lksi_stages_build(struct lksi_program **program, struct lksi_dev *dev,
                             struct lksi_stage *stages, size_t count,
                             struct lksi_build_progress progress)
{
    lks_status st = LKS_OK;
    struct lksi_program *built = NULL;
    struct lksi_unit *units = NULL;
    char **texts = NULL;
    size_t n = 0;
    if (lksi_dev_is_ref(dev)) {
        *program = NULL;
        return LKS_OK;
    }
    units = lksi_alloc(count * LKSI_MAX_LAUNCH, sizeof *units);
    texts = lksi_alloc(count * LKSI_MAX_LAUNCH, sizeof *texts);
    if (units == NULL || texts == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    for (size_t i = 0; i < count; i++)
        for (int l = 0; l < stages[i].recipe.n_launch; l++) {
            const struct lksi_launch *launch = &stages[i].recipe.launch[l];
            if (launch->host != NULL)
                continue;
            units[n].source = launch->plain != NULL ? NULL : launch->source;
            units[n].defines = launch->defines;
            units[n].options = launch->options != NULL ? launch->options : "";
            if (launch->plain != NULL) {
                texts[n] = lksi_op_plain_text(launch->plain);
                if (texts[n] == NULL) {
                    st = LKS_E_MEMORY;
                    goto fail;
                }
                units[n].text = texts[n];
            }
            stages[i].unit[l] = n++;
        }
    if (n > 0)
        LKSI_TRY(lksi_program_build(&built, dev, units, n, progress));
    for (size_t i = 0; i < count; i++)
        LKSI_TRY(create_kernels(built, &stages[i]));
    *program = built;
    built = NULL;
fail:
    if (st != LKS_OK) {
        for (size_t i = 0; i < count; i++)
            lksi_stage_close(&stages[i]);
        lksi_program_destroy(&built);
    }
    for (size_t i = 0; texts != NULL && i < n; i++)
        free(texts[i]);
    free(texts);
    free(units);
    return st;
}

/* An absent optional input is never read; any buffer stands in for it. */
static struct lksi_buf *input_or_any(const struct lksi_stage *stage, int index)
{
    if (stage->in[index] != NULL)
        return stage->in[index];
    return stage->in[0] != NULL ? stage->in[0] : stage->out[0];
}

static lks_status set_argument(struct lksi_stage *stage, int l, unsigned index)
{
    const struct lksi_arg *a = &stage->recipe.launch[l].arg[index];
    struct lksi_kernel *k = stage->kernel[l];
    switch (a->kind) {
    case LKSI_ARG_IN:
        return lksi_kernel_set_buf(k, index, input_or_any(stage, a->u.index));
    case LKSI_ARG_OUT:
        return lksi_kernel_set_buf(k, index, stage->out[a->u.index]);
    case LKSI_ARG_WORK:
        return lksi_kernel_set_buf(k, index, stage->work[a->u.index]);
    case LKSI_ARG_DIMS:
        return lksi_kernel_set_data(k, index, stage->call.dims.bytes, stage->call.dims_size);
    case LKSI_ARG_U32:
        return lksi_kernel_set_data(k, index, &a->u.u32, sizeof a->u.u32);
    case LKSI_ARG_U64:
        return lksi_kernel_set_data(k, index, &a->u.u64, sizeof a->u.u64);
    case LKSI_ARG_F32:
        return lksi_kernel_set_data(k, index, &a->u.f32, sizeof a->u.f32);
    case LKSI_ARG_TURN: /* set again at each launch */
        return lksi_kernel_set_data(k, index, &a->u.u32, sizeof a->u.u32);
    case LKSI_ARG_LOCAL:
        return lksi_kernel_set_data(k, index, NULL, (size_t)a->u.u64);
    }
    return lksi_fail(LKS_E_ARGUMENT, "unknown kind of kernel argument");
}

lks_status lksi_stage_bind(struct lksi_stage *stage)
{
    for (int l = 0; l < stage->recipe.n_launch; l++)
        for (int i = 0; stage->kernel[l] != NULL && i < stage->recipe.launch[l].n_arg; i++) {
            lks_status st = set_argument(stage, l, (unsigned)i);
            if (st != LKS_OK)
                return lksi_fail_prefix(st, "%s (%s): ", stage->call.op->name,
                                        stage->schedule->name);
        }
    return LKS_OK;
}

/* ---- ref ---- */

struct ref_job {
    const struct lksi_stage *stage;
    const void *in[LKSI_MAX_IN];
    void *out[LKSI_MAX_OUT];
    U64 parts, chunks;
    bool fast;
};

static void ref_chunk(void *ctx, uint64_t i)
{
    struct ref_job *job = ctx;
    const struct lksi_call *call = &job->stage->call;
    U64 p0 = job->parts * i / job->chunks, p1 = job->parts * (i + 1) / job->chunks;
    if (job->fast) {
        call->op->ref(call, job->in, job->out, p0, p1);
        return;
    }
    for (U64 p = p0; p < p1; p++)
        call->op->item(job->in, job->out, call->dims.bytes, p);
}

static lks_status run_ref(struct lksi_stage *stage)
{
    const struct lksi_op *op = stage->call.op;
    struct ref_job job = {.stage = stage, .fast = op->ref != NULL && !stage->items_only};
    U64 most = 4u * (U64)lksi_ref_threads(stage->dev);
    for (int i = 0; i < stage->call.n_in; i++)
        job.in[i] = stage->in[i] != NULL ? lksi_buf_host(stage->in[i]) : NULL;
    for (int i = 0; i < stage->call.n_out; i++)
        job.out[i] = lksi_buf_host(stage->out[i]);
    job.parts = job.fast && op->ref_parts != NULL ? op->ref_parts(&stage->call)
                                                  : lksi_op_items(&stage->call);
    job.chunks = job.parts < most ? job.parts : most;
    if (job.chunks > 0)
        lksi_ref_parallel(stage->dev, job.chunks, ref_chunk, &job);
    return LKS_OK;
}

static lks_status run_launch(struct lksi_stage *stage, int l, uint32_t turn)
{
    const struct lksi_launch *launch = &stage->recipe.launch[l];
    if (launch->host != NULL)
        return launch->host(stage->dev, &stage->call, stage->in, stage->out, stage->work);
    for (int i = 0; i < launch->n_arg; i++) {
        lks_status st = launch->arg[i].kind == LKSI_ARG_TURN
                            ? lksi_kernel_set_data(stage->kernel[l], (unsigned)i, &turn, sizeof turn)
                            : LKS_OK;
        if (st != LKS_OK)
            return st;
    }
    return lksi_kernel_launch(stage->kernel[l], launch->dims, launch->global, launch->local);
}

lks_status lksi_stage_run(struct lksi_stage *stage)
{
    const struct lksi_recipe *r = &stage->recipe;
    uint32_t turn = 0;
    if (stage->call.op->view)
        return LKS_OK;
    if (lksi_dev_is_ref(stage->dev))
        return run_ref(stage);
    for (int l = 0; l < r->n_launch; l++) {
        lks_status st = run_launch(stage, l, turn);
        if (st != LKS_OK)
            return lksi_fail_prefix(st, "%s (%s): ", stage->call.op->name, stage->schedule->name);
        if (l + 1 == r->turn_to && ++turn < r->turns)
            l = r->turn_from - 1;
    }
    return LKS_OK;
}

void lksi_stage_close(struct lksi_stage *stage)
{
    for (int l = 0; l < LKSI_MAX_LAUNCH; l++)
        lksi_kernel_destroy(&stage->kernel[l]);
}
