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
    return json_pack("{s:s, s:I}", "sha256", lks_dataset_sha256(d), "samples",
                     (json_int_t)lks_dataset_count(d));
}

static json_t *describe_device(const struct lks_device_info *d)
{
    static const char *const types[] = {"ref", "cpu", "gpu", "other"};
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "type", types[d->type], "platform",
                     any_text(d->platform), "name", any_text(d->name), "vendor",
                     any_text(d->vendor), "driver", any_text(d->driver), "version",
                     any_text(d->version));
}

static json_t *describe_training(const struct lks_trainer_params *p)
{
    return json_pack("{s:o, s:I, s:I, s:I, s:b, s:{s:{s:f, s:f, s:f, s:s}}}", "seed",
                     unsigned_number(p->seed), "batch", (json_int_t)p->batch, "leaf",
                     (json_int_t)p->leaf, "epochs", (json_int_t)p->epochs, "drop_last",
                     p->drop_last, "optimizer", "sgd", "lr", p->sgd.lr, "momentum", p->sgd.momentum,
                     "weight_decay", p->sgd.weight_decay, "schedule",
                     p->sgd.schedule == LKS_SCHEDULE_LINEAR ? "linear" : "constant");
}

static json_t *describe_result(const struct run_facts *f)
{
    json_t *r = json_pack("{s:I}", "steps", (json_int_t)f->steps);
    if (r != NULL && f->tested) {
        json_object_set_new(r, "test_loss", json_real(f->test_loss));
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
