/*
 * session.c - opening model, device and weights, each failure said once.
 */
#include <string.h>

#include "session.h"
#include "train/weights.h"

int session_data(const struct session *s, const struct session_options *o, const lks_dataset **data)
{
    const char *which = o->data != NULL ? o->data : "test";
    if (strcmp(which, "train") == 0) {
        *data = lks_model_train_data(s->model);
        return EXIT_OK;
    }
    if (strcmp(which, "test") != 0)
        return fail_usage("--data: `%s` is neither `train` nor `test`", which);
    *data = lks_model_test_data(s->model);
    if (*data == NULL)
        return fail_usage("the model file names no test data; add `test:` under `data:`, or use "
                          "--data train");
    return EXIT_OK;
}

int session_open(struct session *s, const char *command, const char *model_file,
                 const struct session_options *o)
{
    struct lks_trainer_params p;
    lks_status st;
    int status;
    if (o->weights == NULL)
        return fail_usage("%s needs --weights FILE, e.g. --weights runs/NAME/weights.safetensors",
                          command);
    st = lks_model_open(&s->model, model_file);
    if (st != LKS_OK)
        return fail_library(st);
    if (o->needs_classes != NULL && lks_model_classes(s->model) == 0)
        return fail_usage("%s has no loss with labels, so it knows no classes; %s", model_file,
                          o->needs_classes);
    lks_model_trainer_params(s->model, &p);
    p.plain = o->plain;
    if (o->batch.given)
        p.batch = (uint32_t)o->batch.value;
    if (o->seed.given)
        p.seed = o->seed.value;
    st = lksi_weights_check(lks_model_graph(s->model), &p, o->weights);
    if (st != LKS_OK)
        return fail_library(st);
    status = open_device(&s->device, &o->device);
    if (status != EXIT_OK)
        return status;
    p.device = s->device;
    st = lks_trainer_create(&s->trainer, lks_model_graph(s->model), &p);
    if (st == LKS_OK)
        st = lks_trainer_load_weights(s->trainer, o->weights);
    return st == LKS_OK ? EXIT_OK : fail_library(st);
}

void session_close(struct session *s)
{
    lks_trainer_destroy(&s->trainer);
    lks_device_close(&s->device);
    lks_model_destroy(&s->model);
}
