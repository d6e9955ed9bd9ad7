/*
 * checkpoint.c - the whole state of a training in one file, written whole or not at all.
 *
 * Tensors: each parameter and running statistic under its name, the optimisers' states under e.g.
 * "momentum/NAME", the average under "ema/NAME". Strings: what the bits depend on (compared when
 * loading; those of a second optimiser end with ".1") and the position (step, sums over the running
 * epoch). Doubles are written as their bit patterns, so nothing is lost. Powers of Adam's betas
 * follow from the step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fenv.h"
#include "train/weights.h"

static const char *const arenas[] = {"params", "state0", "state1", "state2", "ema"};

static bool has_arena(const struct lks_trainer *t, const char *arena)
{
    return strcmp(arena, "ema") != 0 || t->params.ema > 0;
}

struct meta {
    struct lksi_st_meta *item; /* owned */
    const char **absent;       /* what a file says that lacks the key, or NULL */
    size_t compared, n;        /* the first `compared` items must be equal when loading */
    size_t cap_item, cap_absent, optimizer;
    bool failed;
};

static void meta_free(struct meta *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free((void *)(uintptr_t)m->item[i].key);
        free((void *)(uintptr_t)m->item[i].value);
    }
    free(m->item);
    free(m->absent);
}

/* `absent`: files of earlier versions lack the key, and mean this. */
static void add_optional(struct meta *m, const char *key, const char *value, const char *absent)
{
    struct lksi_str name = {0};
    char *copy = lksi_strdup(value);
    lksi_str_add(&name, "%s", key);
    if (m->optimizer > 0)
        lksi_str_add(&name, ".%zu", m->optimizer);
    if (copy == NULL || name.failed ||
        !lksi_grow(&m->item, &m->cap_item, m->n + 1, sizeof *m->item) ||
        !lksi_grow(&m->absent, &m->cap_absent, m->n + 1, sizeof *m->absent)) {
        free(copy);
        free(name.text);
        m->failed = true;
        return;
    }
    m->absent[m->n] = absent;
    m->item[m->n++] = (struct lksi_st_meta){name.text, copy};
}

static void add_text(struct meta *m, const char *key, const char *value)
{
    add_optional(m, key, value, NULL);
}

static void add_number(struct meta *m, const char *key, uint64_t value, const char *absent)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    add_optional(m, key, text, absent);
}

#define NO_DOUBLE "0x0000000000000000"

/* As its bit pattern: exact and the same in every locale. */
static void add_double(struct meta *m, const char *key, double value, const char *absent)
{
    uint64_t bits = 0;
    char text[32];
    memcpy(&bits, &value, sizeof bits);
    snprintf(text, sizeof text, "0x%016llx", (unsigned long long)bits);
    add_optional(m, key, text, absent);
}

static void add_optimizer(struct meta *m, const struct lks_optimizer *o, uint32_t epochs)
{
    const struct lks_lr_schedule *s = &o->schedule;
    add_optional(m, "optimizer", lks_optimizer_name(o->kind), "sgd");
    add_number(m, "schedule", (uint64_t)s->kind, NULL);
    /* Only a decaying learning rate depends on how long the training will be. */
    add_number(m, "epochs", lksi_schedule_needs_total(s) ? epochs : 0, NULL);
    for (const struct lksi_optimizer_field *f = lksi_optimizer_fields; f->name != NULL; f++) {
        bool late = strncmp(f->name, "clip", 4) == 0; /* newer than the first checkpoints */
        if (lksi_optimizer_reads(o, f))
            add_double(m, f->name, *lksi_optimizer_number((struct lks_optimizer *)(uintptr_t)o, f),
                       late ? NO_DOUBLE : NULL);
    }
    add_number(m, "nesterov", o->nesterov, "0");
    add_number(m, "centered", o->centered, "0");
    add_number(m, "warmup", s->warmup, "0");
    add_double(m, "schedule_min", s->min, NO_DOUBLE);
    add_number(m, "schedule_every", s->every, "0");
    add_number(m, "schedule_every_epochs", s->every_epochs, "0");
    add_double(m, "schedule_factor", s->factor, NO_DOUBLE);
    add_double(m, "schedule_rise", s->rise, NO_DOUBLE);
    add_double(m, "schedule_start", s->start, NO_DOUBLE);
    add_double(m, "schedule_end", s->end, NO_DOUBLE);
    add_optional(m, "loss", o->loss != NULL ? o->loss : "", "");
    add_number(m, "every", o->every, "1");
}

/* "epoch_loss", "epoch_loss.1", ... */
static const char *loss_key(size_t k, char text[32])
{
    snprintf(text, 32, k > 0 ? "epoch_loss.%zu" : "epoch_loss", k);
    return text;
}

static lks_status fill_meta(struct meta *m, const struct lks_trainer *t, const lks_dataset *train)
{
    char key[32];
    memset(m, 0, sizeof *m);
    add_text(m, "graph", t->graph_sha256);
    add_text(m, "data", train != NULL ? train->data->sha256 : "none");
    add_number(m, "samples", train != NULL ? train->data->count : 0, NULL);
    add_number(m, "seed", t->params.seed, NULL);
    add_number(m, "batch", t->params.batch, NULL);
    add_number(m, "leaf", t->params.leaf, NULL);
    add_number(m, "drop_last", t->params.drop_last, NULL);
    add_number(m, "no_shuffle", t->params.no_shuffle, NULL);
    add_number(m, "optimizers", t->n_optimizer, "1");
    for (m->optimizer = 0; m->optimizer < t->n_optimizer; m->optimizer++)
        add_optimizer(m, &t->optimizer[m->optimizer].o, t->params.epochs);
    m->optimizer = 0;
    add_optional(m, "groups", t->groups_sha256, "none");
    add_double(m, "ema", t->params.ema, NO_DOUBLE);
    m->compared = m->n;
    add_number(m, "step", t->step, NULL);
    for (size_t k = 0; k < t->model->n_loss; k++)
        add_double(m, loss_key(k, key), t->epoch_loss[k], NULL);
    add_double(m, "epoch_hits", t->epoch_hits, NULL);
    add_double(m, "epoch_samples", t->epoch_samples, NULL);
    return m->failed ? LKS_E_MEMORY : LKS_OK;
}

static lks_status save(struct lks_trainer *t, const lks_dataset *train, const char *path)
{
    struct lksi_tensors s = {0};
    struct meta m;
    lks_status st = fill_meta(&m, t, train);
    for (size_t a = 0; a < LKSI_COUNT(arenas) && st == LKS_OK; a++)
        if (has_arena(t, arenas[a]))
            st = lksi_tensors_read(&s, t, arenas[a]);
    if (st == LKS_OK)
        st = lksi_safetensors_write(path, s.tensor, s.count, m.item, m.n);
    lksi_tensors_free(&s);
    meta_free(&m);
    return st;
}

lks_status lks_trainer_save_checkpoint(lks_trainer *t, const lks_dataset *train, const char *path)
{
    struct lksi_fenv env;
    lks_status st;
    if (t == NULL || path == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_save_checkpoint: an argument is NULL");
    lksi_fenv_enter(&env);
    st = save(t, train, path);
    lksi_fenv_leave(&env);
    return st;
}

static lks_status compare_meta(const struct meta *m, const struct lksi_safetensors *file,
                               const char *path)
{
    const char *contract = lksi_safetensors_meta(file, "contract");
    char ours[16];
    snprintf(ours, sizeof ours, "%d", LKS_CONTRACT_VERSION);
    if (contract == NULL || strcmp(contract, ours) != 0)
        return lksi_fail(LKS_E_MISMATCH,
                         "%s: written under contract version %s, this library has version %s; "
                         "resume with the version that wrote it",
                         path, contract != NULL ? contract : "(none)", ours);
    for (size_t i = 0; i < m->compared; i++) {
        const char *found = lksi_safetensors_meta(file, m->item[i].key);
        if (found == NULL)
            found = m->absent[i];
        if (found == NULL)
            return lksi_fail(LKS_E_INPUT, "%s: no `%s`; this is no checkpoint of lockstep", path,
                             m->item[i].key);
        if (strcmp(found, m->item[i].value) != 0)
            return lksi_fail(LKS_E_MISMATCH,
                             "%s: the checkpoint has another `%s` (%s, here %s); resuming would give "
                             "other bits",
                             path, m->item[i].key, found, m->item[i].value);
    }
    return LKS_OK;
}

static lks_status get_number(const struct lksi_safetensors *file, const char *path,
                             const char *key, uint64_t *value)
{
    const char *text = lksi_safetensors_meta(file, key);
    char *end = NULL;
    if (text == NULL || *text < '0' || *text > '9')
        return lksi_fail(LKS_E_INPUT, "%s: `%s` is no number; the checkpoint is damaged", path,
                         key);
    *value = strtoull(text, &end, 0);
    if (*end != '\0')
        return lksi_fail(LKS_E_INPUT, "%s: `%s` is no number; the checkpoint is damaged", path,
                         key);
    return LKS_OK;
}

static lks_status get_double(const struct lksi_safetensors *file, const char *path,
                             const char *key, double *value)
{
    uint64_t bits = 0;
    lks_status st = get_number(file, path, key, &bits);
    if (st == LKS_OK)
        memcpy(value, &bits, sizeof bits);
    return st;
}

static lks_status take(struct lks_trainer *t, const struct lksi_safetensors *file,
                       const char *path)
{
    uint64_t step = 0;
    double loss[LKSI_MAX_LOSSES] = {0}, hits, samples;
    char key[32];
    lks_status st = LKS_OK;
    LKSI_TRY(get_number(file, path, "step", &step));
    for (size_t k = 0; k < t->model->n_loss; k++)
        LKSI_TRY(get_double(file, path, loss_key(k, key), &loss[k]));
    LKSI_TRY(get_double(file, path, "epoch_hits", &hits));
    LKSI_TRY(get_double(file, path, "epoch_samples", &samples));
    for (size_t a = 0; a < LKSI_COUNT(arenas); a++) /* params first: they begin the average anew */
        if (has_arena(t, arenas[a]))
            LKSI_TRY(lksi_tensors_write(t, file, arenas[a]));
    t->step = step;
    memcpy(t->epoch_loss, loss, sizeof loss);
    t->epoch_hits = hits;
    t->epoch_samples = samples;
fail:
    return st;
}

/* Reads a checkpoint of this very training. */
static lks_status read_file(const struct lks_trainer *t, const lks_dataset *train, const char *path,
                            struct lksi_safetensors **out)
{
    struct lksi_safetensors *file = NULL;
    struct meta m;
    lks_status st = fill_meta(&m, t, train);
    if (st != LKS_OK)
        goto fail;
    LKSI_TRY(lksi_safetensors_read(path, &file));
    LKSI_TRY(compare_meta(&m, file, path));
    for (size_t a = 0; a < LKSI_COUNT(arenas); a++)
        if (has_arena(t, arenas[a]))
            LKSI_TRY(lksi_tensors_check(t, file, path, arenas[a]));
    *out = file;
    meta_free(&m);
    return LKS_OK;
fail:
    meta_free(&m);
    lksi_safetensors_destroy(&file);
    return st;
}

static lks_status load(struct lks_trainer *t, const lks_dataset *train, const char *path)
{
    struct lksi_safetensors *file = NULL;
    lks_status st = read_file(t, train, path, &file);
    if (st == LKS_OK)
        st = take(t, file, path);
    lksi_safetensors_destroy(&file);
    return st;
}

lks_status lksi_checkpoint_check(const lks_graph *graph, const struct lks_trainer_params *params,
                                 const lks_dataset *train, const char *path, uint64_t *step)
{
    struct lks_trainer *t = NULL;
    struct lksi_safetensors *file = NULL;
    lks_status st = lksi_trainer_describe(&t, graph, params);
    if (st == LKS_OK)
        st = read_file(t, train, path, &file);
    if (st == LKS_OK)
        st = get_number(file, path, "step", step);
    lksi_safetensors_destroy(&file);
    lks_trainer_destroy(&t);
    return st;
}

lks_status lks_trainer_load_checkpoint(lks_trainer *t, const lks_dataset *train, const char *path)
{
    struct lksi_fenv env;
    lks_status st;
    if (t == NULL || path == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_load_checkpoint: an argument is NULL");
    lksi_fenv_enter(&env);
    st = load(t, train, path);
    lksi_fenv_leave(&env);
    return st;
}
