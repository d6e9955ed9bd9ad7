/*
 * admission.c - numerics.md, rule 14: before a schedule's results are used on a device for the
 * first time, a sample of them is compared with the contract's items in C.
 *
 * The verdict is kept beside the cached binaries, under the program's digest, the operator, the
 * schedule, its macros and its local size (an implementation may compile another binary for each).
 * It is "right", or "wrong" and what was seen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "contract/philox.h"
#include "op/sample.h"
#include "plan/plan.h"

#define SEED 0x6c6f636b73746570u

struct verdict {
    bool right;
    char text[128]; /* as it is kept */
};

/* A number in +-[2^-9, 1): exponents differ, so that another order of a sum shows. */
static uint32_t draw_float(struct lks_words w)
{
    return (w.w1 & 0x80000000u) | ((118u + w.w1 % 9u) << 23) | (w.w0 & 0x7fffffu);
}

static void draw(const struct lksi_call *call, int index, uint32_t *data)
{
    int64_t n = lksi_desc_count(&call->in[index]);
    uint32_t range = (uint32_t)call->in[0].dim[call->in[0].rank - 1];
    for (int64_t e = 0; e < n; e++) {
        struct lks_words w = lks_philox((U32)e, (U32)(e >> 32), (U32)index, 0, (U32)SEED,
                                        (U32)((U64)SEED >> 32));
        data[e] = call->in[index].dtype == LKSI_I32 ? w.w2 % (range > 0 ? range : 1)
                                                    : draw_float(w);
        if (call->op->test_input != NULL)
            data[e] = call->op->test_input(call, index, data[e]);
    }
}

/* A run on buffers of its own. */
struct trial {
    struct lksi_stage stage; /* a copy with these buffers; its kernels belong to the original */
    uint32_t *in[LKSI_MAX_IN], *out[LKSI_MAX_OUT];
    struct lksi_buf *owned[LKSI_MAX_IN + LKSI_MAX_OUT + LKSI_MAX_WORK];
    size_t n_owned;
};

static lks_status new_buf(struct trial *t, uint64_t bytes, struct lksi_buf **buf)
{
    lks_status st = lksi_buf_create(buf, t->stage.dev, bytes > 0 ? bytes : 4);
    if (st == LKS_OK)
        t->owned[t->n_owned++] = *buf;
    return st;
}

static lks_status prepare(struct trial *t)
{
    struct lksi_stage *s = &t->stage;
    const struct lksi_call *call = &s->call;
    lks_status st = LKS_OK;
    for (int k = 0; k < call->n_in; k++) {
        uint64_t bytes = 4u * (uint64_t)lksi_desc_count(&call->in[k]);
        t->in[k] = lksi_alloc(bytes, 1);
        if (t->in[k] == NULL)
            return LKS_E_MEMORY;
        draw(call, k, t->in[k]);
        LKSI_TRY(new_buf(t, bytes, &s->in[k]));
        LKSI_TRY(lksi_buf_write(s->in[k], 0, t->in[k], bytes, true));
    }
    for (int j = 0; j < call->n_out; j++) {
        uint64_t bytes = 4u * (uint64_t)lksi_desc_count(&call->out[j]);
        t->out[j] = lksi_alloc(bytes, 1);
        if (t->out[j] == NULL)
            return LKS_E_MEMORY;
        if (call->op->alias[j] > 0) {
            s->out[j] = s->in[call->op->alias[j] - 1];
            continue;
        }
        LKSI_TRY(new_buf(t, bytes, &s->out[j]));
    }
    for (int w = 0; w < s->recipe.n_work; w++)
        LKSI_TRY(new_buf(t, s->recipe.work_bytes[w], &s->work[w]));
fail:
    return st;
}

static lks_status run(struct trial *t, struct verdict *v)
{
    const struct lksi_call *call = &t->stage.call;
    uint64_t *items = NULL;
    size_t count;
    struct lksi_diff diff;
    lks_status st = LKS_OK;
    LKSI_TRY(lksi_stage_bind(&t->stage));
    LKSI_TRY(lksi_stage_run(&t->stage));
    for (int j = 0; j < call->n_out; j++)
        LKSI_TRY(lksi_buf_read(t->stage.out[j], 0, t->out[j],
                               4u * (uint64_t)lksi_desc_count(&call->out[j])));
    LKSI_TRY(lksi_sample_items(call, SEED, &items, &count));
    LKSI_TRY(lksi_check_sample(call, (const void *const *)t->in, (const void *const *)t->out,
                               items, count, &v->right, &diff));
    snprintf(v->text, sizeof v->text, "right");
    if (!v->right)
        snprintf(v->text, sizeof v->text,
                 "wrong: output %d, element %llu is 0x%08x, expected 0x%08x", diff.output,
                 (unsigned long long)diff.index, diff.got, diff.want);
fail:
    free(items);
    return st;
}

static lks_status try_stage(const struct lksi_stage *stage, struct verdict *v)
{
    lks_status st;
    struct trial *t = lksi_alloc(1, sizeof *t);
    if (t == NULL)
        return LKS_E_MEMORY;
    t->stage = *stage;
    st = prepare(t);
    if (st == LKS_OK)
        st = run(t, v);
    for (size_t i = 0; i < t->n_owned; i++)
        lksi_buf_destroy(&t->owned[i]);
    for (int k = 0; k < LKSI_MAX_IN; k++)
        free(t->in[k]);
    for (int j = 0; j < LKSI_MAX_OUT; j++)
        free(t->out[j]);
    free(t);
    return st;
}

static lks_status key_of(const struct lksi_stage *stage, struct lksi_program *program,
                         char hex[LKSI_SHA256_HEX])
{
    struct lksi_str s = {0};
    lks_status st;
    lksi_str_add(&s, "admission 2 contract %d %s %s", LKS_CONTRACT_VERSION,
                 stage->call.op->name, stage->schedule->name);
    for (int l = 0; l < stage->recipe.n_launch; l++) {
        const struct lksi_launch *launch = &stage->recipe.launch[l];
        if (launch->host != NULL) /* a library chooses its kernels by the shapes */
            for (int k = 0; k < stage->call.n_in; k++) {
                char shape[96];
                lksi_str_add(&s, " %s", lksi_desc_text(&stage->call.in[k], shape));
            }
        lksi_str_add(&s, "\n%s %s [%s] %zu %zu %zu",
                     launch->host != NULL ? "host" : lksi_program_digest(program, stage->unit[l]),
                     launch->kernel != NULL ? launch->kernel : "", launch->defines,
                     launch->local[0], launch->local[1], launch->local[2]);
    }
    st = s.failed ? LKS_E_MEMORY : lksi_sha256_bytes(s.text, s.length, hex);
    free(s.text);
    return st;
}

/* The kept verdict; false if there is none. */
static bool recall(const char *kept, struct verdict *v)
{
    if (kept == NULL)
        return false;
    v->right = strcmp(kept, "right") == 0;
    snprintf(v->text, sizeof v->text, "%s", kept);
    return v->right || strncmp(kept, "wrong", 5) == 0;
}

lks_status lksi_admit(const struct lksi_stage *stage, struct lksi_program *program, bool *right)
{
    char key[LKSI_SHA256_HEX];
    char *kept = NULL;
    struct verdict v;
    lks_status st = LKS_OK;
    LKSI_TRY(key_of(stage, program, key));
    LKSI_TRY(lksi_cache_get(stage->dev, key, &kept));
    if (!recall(kept, &v)) {
        st = try_stage(stage, &v);
        if (st != LKS_OK) {
            st = lksi_fail_prefix(st, "first check of %s (%s): ", stage->call.op->name,
                                  stage->schedule->name);
            goto fail;
        }
        LKSI_TRY(lksi_cache_put(stage->dev, key, v.text));
    }
    if (!v.right)
        lksi_log(LKS_LOG_WARNING,
                 "schedule `%s` of operator `%s` gives other bits than its contract on %s and is "
                 "struck off (%s)",
                 stage->schedule->name, stage->call.op->name, lksi_dev_limits(stage->dev)->name,
                 v.text);
    *right = v.right;
fail:
    free(kept);
    return st;
}
