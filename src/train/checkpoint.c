/*
 * checkpoint.c - the whole state of a training in one file, written whole or not at all.
 *
 * Tensors: each parameter and running statistic under its name, the momentum of a parameter under
 * "momentum/NAME". Strings: what the
 * bits depend on (compared when loading) and the position (step, sums over the running epoch).
 * Doubles are written as their bit patterns, so nothing is lost.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fenv.h"
#include "train/weights.h"

#define MOMENTUM "momentum/"
#define MAX_META 20

struct meta {
    struct lksi_st_meta item[MAX_META];
    char text[MAX_META][80];
    size_t compared, n; /* the first `compared` items must be equal when loading */
};

static void add_text(struct meta *m, const char *key, const char *value)
{
    snprintf(m->text[m->n], sizeof m->text[0], "%s", value);
    m->item[m->n] = (struct lksi_st_meta){key, m->text[m->n]};
    m->n++;
}

static void add_number(struct meta *m, const char *key, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    add_text(m, key, text);
}

/* As its bit pattern: exact and the same in every locale. */
static void add_double(struct meta *m, const char *key, double value)
{
    uint64_t bits = 0;
    char text[32];
    memcpy(&bits, &value, sizeof bits);
    snprintf(text, sizeof text, "0x%016llx", (unsigned long long)bits);
    add_text(m, key, text);
}

static void fill_meta(struct meta *m, const struct lks_trainer *t, const lks_dataset *train)
{
    const struct lks_sgd *s = &t->params.sgd;
    memset(m, 0, sizeof *m);
    add_text(m, "graph", t->graph_sha256);
    add_text(m, "data", train != NULL ? train->data->sha256 : "none");
    add_number(m, "samples", train != NULL ? train->data->count : 0);
    add_number(m, "seed", t->params.seed);
    add_number(m, "batch", t->params.batch);
    add_number(m, "leaf", t->params.leaf);
    add_number(m, "drop_last", t->params.drop_last);
    add_number(m, "no_shuffle", t->params.no_shuffle);
    add_number(m, "schedule", (uint64_t)s->schedule);
    /* Only a decaying learning rate depends on how long the training will be. */
    add_number(m, "epochs", s->schedule == LKS_SCHEDULE_CONSTANT ? 0 : t->params.epochs);
    add_double(m, "lr", s->lr);
    add_double(m, "momentum", s->momentum);
    add_double(m, "weight_decay", s->weight_decay);
    m->compared = m->n;
    add_number(m, "step", t->step);
    add_double(m, "epoch_loss", t->epoch_loss);
    add_double(m, "epoch_hits", t->epoch_hits);
    add_double(m, "epoch_samples", t->epoch_samples);
}

static lks_status save(struct lks_trainer *t, const lks_dataset *train, const char *path)
{
    struct lksi_tensors s = {0};
    struct meta m;
    lks_status st;
    fill_meta(&m, t, train);
    st = lksi_tensors_read(&s, t, "params", "");
    if (st == LKS_OK)
        st = lksi_tensors_read(&s, t, "momentum", MOMENTUM);
    if (st == LKS_OK)
        st = lksi_safetensors_write(path, s.tensor, s.count, m.item, m.n);
    lksi_tensors_free(&s);
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
    double loss, hits, samples;
    lks_status st = LKS_OK;
    LKSI_TRY(get_number(file, path, "step", &step));
    LKSI_TRY(get_double(file, path, "epoch_loss", &loss));
    LKSI_TRY(get_double(file, path, "epoch_hits", &hits));
    LKSI_TRY(get_double(file, path, "epoch_samples", &samples));
    LKSI_TRY(lksi_tensors_write(t, file, "params", ""));
    LKSI_TRY(lksi_tensors_write(t, file, "momentum", MOMENTUM));
    t->step = step;
    t->epoch_loss = loss;
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
    lks_status st;
    fill_meta(&m, t, train);
    LKSI_TRY(lksi_safetensors_read(path, &file));
    LKSI_TRY(compare_meta(&m, file, path));
    LKSI_TRY(lksi_tensors_check(t, file, path, "params", ""));
    LKSI_TRY(lksi_tensors_check(t, file, path, "momentum", MOMENTUM));
    *out = file;
    return LKS_OK;
fail:
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
                                 const lks_dataset *train, const char *path)
{
    struct lks_trainer *t = NULL;
    struct lksi_safetensors *file = NULL;
    lks_status st = lksi_trainer_describe(&t, graph, params);
    if (st == LKS_OK)
        st = read_file(t, train, path, &file);
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
