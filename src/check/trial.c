/*
 * trial.c - a schedule run twice between guard bands; see trial.h.
 *
 * Bands of inputs hold NaN patterns too, so a kernel that reads past an input and uses what it
 * finds cannot give right bits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/trial.h"

#define BAND_WORD 0x7fb3d5a9u

static void fill_words(void *to, uint64_t bytes, uint32_t word)
{
    unsigned char *p = to;
    for (uint64_t b = 0; b < bytes; b++)
        p[b] = (unsigned char)(word >> (b % 4u * 8u));
}

static void guarded_close(struct lksi_guarded *g)
{
    lksi_buf_destroy(&g->part);
    lksi_buf_destroy(&g->whole);
    free(g->image);
    free(g->back);
    memset(g, 0, sizeof *g);
}

static lks_status guarded_open(struct lksi_guarded *g, struct lksi_dev *dev, uint64_t bytes)
{
    lks_status st = LKS_OK;
    uint64_t align = lksi_dev_limits(dev)->base_align;
    memset(g, 0, sizeof *g);
    if (align == 0)
        align = 4;
    g->band = (1024u + align - 1u) / align * align;
    g->bytes = bytes;
    g->image = lksi_alloc_aligned((size_t)(bytes + 2u * g->band));
    g->back = lksi_alloc_aligned((size_t)(bytes + 2u * g->band));
    if (g->image == NULL || g->back == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    fill_words(g->image, bytes + 2u * g->band, BAND_WORD);
    LKSI_TRY(lksi_buf_create(&g->whole, dev, bytes + 2u * g->band));
    LKSI_TRY(lksi_buf_part(&g->part, g->whole, g->band, bytes));
    return LKS_OK;
fail:
    guarded_close(g);
    return st;
}

static lks_status guarded_write(struct lksi_guarded *g)
{
    return lksi_buf_write(g->whole, 0, g->image, g->bytes + 2u * g->band, true);
}

static lks_status guarded_read(struct lksi_guarded *g)
{
    return lksi_buf_read(g->whole, 0, g->back, g->bytes + 2u * g->band);
}

static bool bands_intact(const struct lksi_guarded *g)
{
    return memcmp(g->image, g->back, (size_t)g->band) == 0 &&
           memcmp(g->image + g->band + g->bytes, g->back + g->band + g->bytes, (size_t)g->band) ==
               0;
}

static bool content_intact(const struct lksi_guarded *g)
{
    return memcmp(g->image + g->band, g->back + g->band, (size_t)g->bytes) == 0;
}

lks_status lksi_arena_open(struct lksi_arena *a, struct lksi_dev *dev, const struct lksi_oracle *o)
{
    lks_status st = LKS_OK;
    memset(a, 0, sizeof *a);
    a->dev = dev;
    for (int i = 0; i < o->call.n_in; i++)
        LKSI_TRY(guarded_open(&a->in[i], dev, o->in_bytes[i]));
    for (int j = 0; j < o->call.n_out; j++)
        if (lksi_oracle_alias(o->call.op, j) == 0)
            LKSI_TRY(guarded_open(&a->out[j], dev, o->out_bytes[j]));
    return LKS_OK;
fail:
    lksi_arena_close(a);
    return st;
}

void lksi_arena_close(struct lksi_arena *a)
{
    for (int i = 0; i < LKSI_MAX_IN; i++)
        guarded_close(&a->in[i]);
    for (int j = 0; j < LKSI_MAX_OUT; j++)
        guarded_close(&a->out[j]);
    for (int w = 0; w < LKSI_MAX_WORK; w++)
        guarded_close(&a->work[w]);
}

/* The buffer in which output j stands. */
static struct lksi_guarded *output(struct lksi_arena *a, const struct lksi_op *op, int j)
{
    int alias = lksi_oracle_alias(op, j);
    return alias != 0 ? &a->in[alias - 1] : &a->out[j];
}

static bool overwritten(const struct lksi_call *call, int i)
{
    for (int j = 0; j < call->n_out; j++)
        if (lksi_oracle_alias(call->op, j) == 1 + i)
            return true;
    return false;
}

/* ---- a run ---- */

static lks_status bind(struct lksi_arena *a, struct lksi_stage *stage)
{
    lks_status st = LKS_OK;
    for (int w = 0; w < LKSI_MAX_WORK; w++)
        guarded_close(&a->work[w]);
    for (int w = 0; w < stage->recipe.n_work; w++) {
        LKSI_TRY(guarded_open(&a->work[w], a->dev, stage->recipe.work_bytes[w]));
        stage->work[w] = a->work[w].part;
    }
    for (int i = 0; i < stage->call.n_in; i++)
        stage->in[i] = a->in[i].part;
    for (int j = 0; j < stage->call.n_out; j++)
        stage->out[j] = output(a, stage->call.op, j)->part;
    LKSI_TRY(lksi_stage_bind(stage));
fail:
    return st;
}

static lks_status upload(struct lksi_arena *a, const struct lksi_stage *stage,
                         const struct lksi_oracle *o, uint32_t poison)
{
    lks_status st = LKS_OK;
    for (int i = 0; i < o->call.n_in; i++) {
        memcpy(a->in[i].image + a->in[i].band, o->in[i], (size_t)o->in_bytes[i]);
        LKSI_TRY(guarded_write(&a->in[i]));
    }
    for (int j = 0; j < o->call.n_out; j++) {
        if (lksi_oracle_alias(o->call.op, j) != 0)
            continue;
        fill_words(a->out[j].image + a->out[j].band, o->out_bytes[j], poison);
        LKSI_TRY(guarded_write(&a->out[j]));
    }
    for (int w = 0; w < stage->recipe.n_work; w++) {
        fill_words(a->work[w].image + a->work[w].band, a->work[w].bytes, poison);
        LKSI_TRY(guarded_write(&a->work[w]));
    }
fail:
    return st;
}

/* The fast C loop of `ref` part by part, from the last to the first. */
static void run_parts_backwards(struct lksi_stage *stage)
{
    const struct lksi_call *call = &stage->call;
    const void *in[LKSI_MAX_IN] = {NULL};
    void *out[LKSI_MAX_OUT] = {NULL};
    U64 p = call->op->ref_parts != NULL ? call->op->ref_parts(call) : lksi_op_items(call);
    for (int i = 0; i < call->n_in; i++)
        in[i] = lksi_buf_host(stage->in[i]);
    for (int j = 0; j < call->n_out; j++)
        out[j] = lksi_buf_host(stage->out[j]);
    for (; p > 0; p--)
        call->op->ref(call, in, out, p - 1, p);
}

static lks_status run_once(struct lksi_arena *a, struct lksi_stage *stage,
                           const struct lksi_oracle *o, uint32_t poison, bool second)
{
    lks_status st = LKS_OK;
    LKSI_TRY(upload(a, stage, o, poison));
    if (second && lksi_dev_is_ref(a->dev) && !stage->items_only)
        run_parts_backwards(stage);
    else
        LKSI_TRY(lksi_stage_run(stage));
    LKSI_TRY(lksi_dev_wait(a->dev, 0));
    for (int i = 0; i < o->call.n_in; i++)
        LKSI_TRY(guarded_read(&a->in[i]));
    for (int j = 0; j < o->call.n_out; j++)
        if (lksi_oracle_alias(o->call.op, j) == 0)
            LKSI_TRY(guarded_read(&a->out[j]));
    for (int w = 0; w < stage->recipe.n_work; w++)
        LKSI_TRY(guarded_read(&a->work[w]));
fail:
    return st;
}

/* ---- the comparison ---- */

static void compare_output(struct lksi_arena *a, const struct lksi_oracle *o, int j,
                           uint32_t poison, struct lksi_check_failure *f)
{
    const struct lksi_guarded *g = output(a, o->call.op, j);
    const uint32_t *got = (const uint32_t *)(const void *)(g->back + g->band), *want = o->out[j];
    enum lksi_dtype dtype = o->call.out[j].dtype;
    bool own = lksi_oracle_alias(o->call.op, j) == 0;
    for (uint64_t e = 0; e < o->out_bytes[j] / 4u; e++) {
        bool unwritten = own && got[e] == poison && want[e] != poison;
        if (lksi_bits_same(dtype, got[e], want[e]) && !unwritten)
            continue;
        f->fault = unwritten ? LKSI_FAULT_UNWRITTEN : LKSI_FAULT_BITS;
        f->located = true;
        f->diff = (struct lksi_diff){j, e, got[e], want[e], lksi_bits_ulp(dtype, got[e], want[e])};
        return;
    }
}

static void guard_fault(struct lksi_check_failure *f, const char *what, int index)
{
    f->fault = LKSI_FAULT_GUARD;
    snprintf(f->text, sizeof f->text, "memory around %s %d was changed", what, index);
}

static void compare(struct lksi_arena *a, const struct lksi_stage *stage,
                    const struct lksi_oracle *o, uint32_t poison, struct lksi_check_failure *f)
{
    for (int j = 0; j < o->call.n_out && f->fault == LKSI_FAULT_NONE; j++) {
        compare_output(a, o, j, poison, f);
        if (f->fault == LKSI_FAULT_NONE && !bands_intact(output(a, o->call.op, j)))
            guard_fault(f, "output", j);
    }
    for (int i = 0; i < o->call.n_in && f->fault == LKSI_FAULT_NONE; i++) {
        if (!bands_intact(&a->in[i]))
            guard_fault(f, "input", i);
        else if (!overwritten(&o->call, i) && !content_intact(&a->in[i])) {
            f->fault = LKSI_FAULT_INPUT;
            snprintf(f->text, sizeof f->text, "input %d was changed", i);
        }
    }
    for (int w = 0; w < stage->recipe.n_work && f->fault == LKSI_FAULT_NONE; w++)
        if (!bands_intact(&a->work[w]))
            guard_fault(f, "workspace", w);
}

lks_status lksi_trial_run(struct lksi_arena *a, struct lksi_stage *stage,
                          const struct lksi_oracle *o, struct lksi_check_failure *f)
{
    static const uint32_t poison[2] = {LKSI_POISON, 0x7f9a3c5eu};
    lks_status st = bind(a, stage);
    for (int run = 0; run < 2 && st == LKS_OK && f->fault == LKSI_FAULT_NONE; run++) {
        st = run_once(a, stage, o, poison[run], run == 1);
        if (st == LKS_OK)
            compare(a, stage, o, poison[run], f);
        if (run == 1 && f->fault == LKSI_FAULT_BITS)
            f->fault = LKSI_FAULT_RUNS;
    }
    if (st != LKS_OK && st != LKS_E_MEMORY) {
        f->fault = LKSI_FAULT_STATUS;
        snprintf(f->text, sizeof f->text, "%s", lks_error_message());
        return LKS_OK;
    }
    return st;
}
