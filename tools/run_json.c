/*
 * run_json.c - run.json through jansson, which writes numbers alike in every locale.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "base/file.h"
#include "model/optimizer.h"
#include "run_json.h"

enum { FILE_LIMIT = 1 << 20 };

void utc_now(char text[32])
{
    struct tm tm;
    time_t now = time(NULL);
    gmtime_r(&now, &tm);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* JSON's integers are signed in jansson; a larger seed is written as text. */
static json_t *unsigned_number(uint64_t v)
{
    char text[32];
    if (v <= INT64_MAX)
        return json_integer((json_int_t)v);
    snprintf(text, sizeof text, "%" PRIu64, v);
    return json_string(text);
}

/* A driver may put any bytes into its name; JSON must be UTF-8. */
static json_t *any_text(const char *text)
{
    char clean[256];
    json_t *j = json_string(text);
    if (j != NULL)
        return j;
    snprintf(clean, sizeof clean, "%s", text);
    for (char *p = clean; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
            *p = '?';
    return json_string(clean);
}

static json_t *describe_data(const lks_dataset *d)
{
    if (d == NULL)
        return json_null();
    json_t *j = json_pack("{s:s, s:I}", "sha256", lks_dataset_sha256(d), "samples",
                          (json_int_t)lks_dataset_count(d));
    const uint8_t *vocabulary = lks_dataset_vocabulary(d);
    json_t *list = j != NULL && vocabulary != NULL ? json_array() : NULL;
    for (uint32_t i = 0; list != NULL && i < lks_dataset_classes(d); i++)
        json_array_append_new(list, json_integer(vocabulary[i]));
    if (list != NULL)
        json_object_set_new(j, "vocabulary", list);
    return j;
}

static json_t *describe_device(const struct lks_device_info *d)
{
    static const char *const types[] = {"ref", "cpu", "gpu", "other"};
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "type", types[d->type], "platform",
                     any_text(d->platform), "name", any_text(d->name), "vendor",
                     any_text(d->vendor), "driver", any_text(d->driver), "version",
                     any_text(d->version));
}

static json_t *describe_schedule(const struct lks_lr_schedule *s)
{
    json_t *j = json_pack("{s:s}", "kind", lks_schedule_name(s->kind));
    if (s->warmup > 0)
        json_object_set_new(j, "warmup", unsigned_number(s->warmup));
    if (s->min > 0)
        json_object_set_new(j, "min", json_real(s->min));
    if (s->kind == LKS_SCHEDULE_STEP) {
        json_object_set_new(j, s->every_epochs ? "epochs" : "steps", unsigned_number(s->every));
        json_object_set_new(j, "factor", json_real(s->factor > 0 ? s->factor : 0.1));
    }
    if (s->kind == LKS_SCHEDULE_ONE_CYCLE) {
        json_object_set_new(j, "rise", json_real(s->rise > 0 ? s->rise : 0.3));
        json_object_set_new(j, "start", json_real(s->start > 0 ? s->start : 25.0));
        json_object_set_new(j, "end", json_real(s->end > 0 ? s->end : 10000.0));
    }
    if (json_object_size(j) == 1) { /* a bare word, as in the model file */
        json_decref(j);
        j = json_string(lks_schedule_name(s->kind));
    }
    return j;
}

static json_t *strings(const char *const *text, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, any_text(text[i]));
    return list;
}

/* As in the model file: {"adam": {...}}, with what a list of optimisers adds. */
static json_t *describe_optimizer(const struct lks_optimizer *o)
{
    json_t *numbers = json_object(), *j = json_object();
    for (const struct lksi_optimizer_field *f = lksi_optimizer_fields; f->name != NULL; f++) {
        double v = *lksi_optimizer_number((struct lks_optimizer *)(uintptr_t)o, f);
        if (lksi_optimizer_reads(o, f) && (v > 0 || strncmp(f->name, "clip", 4) != 0))
            json_object_set_new(numbers, f->name, json_real(v));
    }
    if (o->nesterov)
        json_object_set_new(numbers, "nesterov", json_true());
    if (o->centered)
        json_object_set_new(numbers, "centered", json_true());
    json_object_set_new(numbers, "schedule", describe_schedule(&o->schedule));
    json_object_set_new(j, lks_optimizer_name(o->kind), numbers);
    if (o->loss != NULL)
        json_object_set_new(j, "loss", any_text(o->loss));
    if (o->n_params > 0)
        json_object_set_new(j, "params", strings(o->params, o->n_params));
    if (o->every > 1)
        json_object_set_new(j, "every", json_integer((json_int_t)o->every));
    return j;
}

static json_t *describe_groups(const struct lks_trainer_params *p)
{
    json_t *list = json_array();
    for (size_t k = 0; k < p->n_groups; k++) {
        const struct lks_param_group *g = &p->groups[k];
        json_t *j = json_object();
        json_object_set_new(j, "params", strings(g->params, g->n_params));
        if (g->lr_scale > 0)
            json_object_set_new(j, "lr_scale", json_real(g->lr_scale));
        if (g->has_weight_decay)
            json_object_set_new(j, "weight_decay", json_real(g->weight_decay));
        json_array_append_new(list, j);
    }
    return list;
}

static json_t *describe_training(const struct lks_trainer_params *p)
{
    json_t *j = json_pack("{s:o, s:I, s:I, s:I, s:b}", "seed", unsigned_number(p->seed), "batch",
                          (json_int_t)p->batch, "leaf", (json_int_t)p->leaf, "epochs",
                          (json_int_t)p->epochs, "drop_last", p->drop_last);
    struct lks_optimizer sgd = lks_optimizer_of_sgd(&p->sgd);
    const struct lks_optimizer *o = p->optimizers != NULL ? p->optimizers : &sgd;
    if (j == NULL)
        return NULL;
    if (p->n_optimizers > 1) {
        json_t *list = json_array();
        for (size_t k = 0; k < p->n_optimizers; k++)
            json_array_append_new(list, describe_optimizer(&o[k]));
        json_object_set_new(j, "optimizers", list);
    } else {
        json_object_set_new(j, "optimizer", describe_optimizer(o));
    }
    if (p->n_groups > 0)
        json_object_set_new(j, "groups", describe_groups(p));
    if (p->n_frozen > 0)
        json_object_set_new(j, "frozen", strings(p->frozen, p->n_frozen));
    if (p->ema > 0) {
        json_object_set_new(j, "ema", json_real(p->ema));
        json_object_set_new(j, "evaluate", json_string(p->evaluate_ema ? "ema" : "weights"));
    }
    return j;
}

static json_t *describe_result(const struct run_facts *f)
{
    json_t *r = json_pack("{s:I}", "steps", (json_int_t)f->steps);
    if (r != NULL && f->tested) {
        for (size_t k = 0; k < f->form->n_loss; k++) {
            char key[64];
            snprintf(key, sizeof key, "test_%s", f->form->loss[k]);
            json_object_set_new(r, key, json_real(f->test_losses[k]));
        }
        if (f->form->positions > 0)
            json_object_set_new(r, "test_accuracy", json_real(f->test_accuracy));
    }
    if (r != NULL && f->weights_sha256 != NULL)
        json_object_set_new(r, "weights_sha256", json_string(f->weights_sha256));
    return r;
}

lks_status run_json_write(const struct run_facts *f, const char *path)
{
    char now[32], *text = NULL;
    lks_status st = LKS_E_MEMORY;
    utc_now(now);
    json_t *j = json_pack(
        "{s:s, s:i, s:{s:s, s:o, s:s}, s:{s:o, s:o}, s:o, s:s?, s:o, s:b, s:o, s:{s:s, s:s, s:f}}",
        "lockstep", lks_version(), "contract", lks_contract_version(), "model", "name",
        lks_model_name(f->model), "file", any_text(f->model_file), "sha256",
        lks_model_sha256(f->model), "data", "train", describe_data(lks_model_train_data(f->model)),
        "test", describe_data(lks_model_test_data(f->model)), "training",
        describe_training(f->params), "start_weights_sha256", f->start_weights, "device",
        describe_device(f->device), "finished", f->finished, "result", describe_result(f), "time",
        "started", f->started, "written", now, "seconds", f->seconds);
    if (j != NULL)
        text = json_dumps(j, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    json_decref(j);
    if (text == NULL)
        return lksi_fail(LKS_E_MEMORY, "out of host memory while writing `%s`", path);
    struct lksi_str s = {0};
    lksi_str_add(&s, "%s\n", text);
    st = s.failed ? LKS_E_MEMORY : lksi_file_write_atomic(path, s.text, s.length);
    free(s.text);
    free(text);
    return st;
}

lks_status run_json_check(const char *path, const lks_model *model, bool *finished)
{
    struct lksi_bytes bytes;
    json_error_t error;
    const char *sha = NULL;
    int done = 0;
    lks_status st = lksi_file_read(path, FILE_LIMIT, &bytes);
    if (st != LKS_OK)
        return st;
    json_t *j = json_loadb((const char *)bytes.data, bytes.size, 0, &error);
    if (j == NULL)
        st = lksi_fail(LKS_E_INPUT,
                       "%s:%d: damaged (%s); bring the file back, or start anew with "
                       "--overwrite",
                       path, error.line, error.text);
    else if (json_unpack(j, "{s:{s:s}, s:b}", "model", "sha256", &sha, "finished", &done) != 0)
        st = lksi_fail(LKS_E_INPUT,
                       "%s: `model.sha256` or `finished` is missing; bring the file "
                       "back, or start anew with --overwrite",
                       path);
    else if (model != NULL && strcmp(sha, lks_model_sha256(model)) != 0)
        st = lksi_fail(LKS_E_MISMATCH,
                       "%s: the run was begun with another model (layers, "
                       "normalisation or initial values differ: sha256 %.12s..., "
                       "now %.12s...); bring that model back, or choose another "
                       "folder with --out",
                       path, sha, lks_model_sha256(model));
    else
        *finished = done != 0;
    json_decref(j);
    free(bytes.data);
    return st;
}
