/*
 * oracle.c - inputs and contract results of one case on the host; see oracle.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/oracle.h"

int lksi_oracle_alias(const struct lksi_op *op, int j)
{
    return op->view && j == 0 ? 1 : op->alias[j];
}

static lks_status allocate(struct lksi_oracle *o)
{
    for (int i = 0; i < o->call.n_in; i++) {
        o->in_bytes[i] = (uint64_t)lksi_desc_count(&o->call.in[i]) * 4u;
        o->in[i] = lksi_alloc_aligned((size_t)o->in_bytes[i]);
        if (o->in[i] == NULL)
            return LKS_E_MEMORY;
    }
    for (int j = 0; j < o->call.n_out; j++) {
        o->out_bytes[j] = (uint64_t)lksi_desc_count(&o->call.out[j]) * 4u;
        o->out[j] = lksi_alloc_aligned((size_t)o->out_bytes[j]);
        if (o->out[j] == NULL)
            return LKS_E_MEMORY;
    }
    return LKS_OK;
}

lks_status lksi_oracle_open(struct lksi_oracle *o, const struct lksi_op *op, int index,
                            bool long_run, bool *found)
{
    struct lksi_call drawn = {.leaf = 8};
    lks_status st;
    memset(o, 0, sizeof *o);
    *found = false;
    if (op->test_case == NULL)
        return LKS_OK;
    o->attr = lksi_alloc(1, op->attr_size);
    if (o->attr == NULL)
        return LKS_E_MEMORY;
    if (!op->test_case(index, long_run, &drawn, o->attr)) {
        lksi_oracle_close(o);
        return LKS_OK;
    }
    o->index = index;
    st = lksi_call_make(&o->call, op, o->attr, drawn.leaf, drawn.n_in, drawn.in);
    if (st == LKS_OK)
        st = allocate(o);
    if (st != LKS_OK) {
        lksi_oracle_close(o);
        return lksi_fail_prefix(st, "case %d: ", index);
    }
    *found = true;
    return LKS_OK;
}

void lksi_oracle_close(struct lksi_oracle *o)
{
    for (int i = 0; i < LKSI_MAX_IN; i++)
        free(o->in[i]);
    for (int j = 0; j < LKSI_MAX_OUT; j++)
        free(o->out[j]);
    free(o->attr);
    memset(o, 0, sizeof *o);
}

/* ---- the items ---- */

struct items_job {
    const struct lksi_call *call;
    const void *in[LKSI_MAX_IN];
    void *out[LKSI_MAX_OUT];
    uint64_t items, chunks;
};

static void items_chunk(void *ctx, uint64_t c)
{
    const struct items_job *job = ctx;
    uint64_t i = job->items * c / job->chunks, end = job->items * (c + 1) / job->chunks;
    for (; i < end; i++)
        job->call->op->item(job->in, job->out, job->call->dims.bytes, i);
}

static void run_items(struct lksi_dev *ref, struct items_job *job)
{
    uint64_t most = 8u * (uint64_t)lksi_ref_threads(ref);
    job->items = lksi_op_items(job->call);
    job->chunks = job->items < most ? job->items : most;
    if (job->chunks > 0)
        lksi_ref_parallel(ref, job->chunks, items_chunk, job);
}

/* What an output holds before the run: the input it overwrites, or poison. */
static void prepare_output(const struct lksi_oracle *o, int j, void *out)
{
    int alias = lksi_oracle_alias(o->call.op, j);
    uint32_t *word = out;
    if (alias != 0) {
        memcpy(out, o->in[alias - 1], (size_t)o->out_bytes[j]);
        return;
    }
    for (uint64_t e = 0; e < o->out_bytes[j] / 4u; e++)
        word[e] = LKSI_POISON;
}

static void blame(struct lksi_check_failure *f, int j, uint64_t e, uint32_t got, uint32_t want,
                  const char *text)
{
    f->fault = LKSI_FAULT_CONTRACT;
    f->located = true;
    f->diff = (struct lksi_diff){j, e, got, want, lksi_bits_ulp(LKSI_F32, got, want)};
    snprintf(f->text, sizeof f->text, "%s", text);
}

static void examine(const struct lksi_oracle *o, enum lksi_regime regime,
                    struct lksi_check_failure *f)
{
    for (int j = 0; j < o->call.n_out; j++) {
        const uint32_t *out = o->out[j];
        for (uint64_t e = 0; e < o->out_bytes[j] / 4u; e++) {
            if (out[e] == LKSI_POISON && lksi_oracle_alias(o->call.op, j) == 0) {
                blame(f, j, e, out[e], 0, "the item function leaves this element unwritten");
                return;
            }
            if (regime == LKSI_REGIME_UNIFORM && o->call.out[j].dtype == LKSI_F32 &&
                !lks_isfinite(lks_float(out[e]))) {
                blame(f, j, e, out[e], 0,
                      "uniform inputs give no finite number, so the case compares little: "
                      "bend them with test_input");
                return;
            }
        }
    }
}

/* Items again, outputs now in the very memory of the inputs that they overwrite. */
static lks_status examine_in_place(const struct lksi_oracle *o, struct lksi_dev *ref,
                                   struct lksi_check_failure *f)
{
    struct items_job job = {.call = &o->call};
    void *own[LKSI_MAX_OUT] = {NULL};
    lks_status st = LKS_OK;
    for (int i = 0; i < o->call.n_in; i++)
        job.in[i] = o->in[i];
    for (int j = 0; j < o->call.n_out; j++) {
        int alias = lksi_oracle_alias(o->call.op, j);
        own[j] = lksi_alloc_aligned((size_t)o->out_bytes[j]);
        if (own[j] == NULL) {
            st = LKS_E_MEMORY;
            goto fail;
        }
        prepare_output(o, j, own[j]);
        job.out[j] = own[j];
        if (alias != 0)
            job.in[alias - 1] = own[j];
    }
    run_items(ref, &job);
    for (int j = 0; j < o->call.n_out && f->fault == LKSI_FAULT_NONE; j++) {
        const uint32_t *got = own[j], *want = o->out[j];
        for (uint64_t e = 0; e < o->out_bytes[j] / 4u && f->fault == LKSI_FAULT_NONE; e++)
            if (!lksi_bits_same(o->call.out[j].dtype, got[e], want[e]))
                blame(f, j, e, got[e], want[e],
                      "the item function gives other bits when it works in place");
    }
fail:
    for (int j = 0; j < o->call.n_out; j++)
        free(own[j]);
    return st;
}

lks_status lksi_oracle_compute(struct lksi_oracle *o, struct lksi_dev *ref, enum lksi_regime regime,
                               uint64_t seed, struct lksi_check_failure *f)
{
    struct items_job job = {.call = &o->call};
    bool in_place = false;
    for (int i = 0; i < o->call.n_in; i++) {
        lksi_regime_fill(regime, seed + (uint64_t)o->index * 0x9e3779b97f4a7c15u, &o->call, i,
                         o->in[i]);
        job.in[i] = o->in[i];
    }
    for (int j = 0; j < o->call.n_out; j++) {
        prepare_output(o, j, o->out[j]);
        job.out[j] = o->out[j];
        in_place |= lksi_oracle_alias(o->call.op, j) != 0;
    }
    run_items(ref, &job);
    examine(o, regime, f);
    if (f->fault == LKSI_FAULT_NONE && in_place)
        return examine_in_place(o, ref, f);
    return LKS_OK;
}

void lksi_oracle_shapes(const struct lksi_oracle *o, char *text, size_t size)
{
    size_t used = 0;
    char shape[96];
    text[0] = '\0';
    for (int i = 0; i < o->call.n_in && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s ",
                                 lksi_desc_text(&o->call.in[i], shape));
    if (used < size)
        used += (size_t)snprintf(text + used, size - used, "->");
    for (int j = 0; j < o->call.n_out && used < size; j++)
        used += (size_t)snprintf(text + used, size - used, " %s",
                                 lksi_desc_text(&o->call.out[j], shape));
    if (used < size)
        snprintf(text + used, size - used, ", leaf %u", o->call.leaf);
}
