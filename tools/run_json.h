/*
 * run_json.h - run.json: what was trained, on what, with which result; and the check that a
 * resumed run is the same one.
 */
#ifndef LKS_TOOLS_RUN_JSON_H
#define LKS_TOOLS_RUN_JSON_H

#include <lockstep/lockstep.h>

#include "base/base.h"
#include "form.h"

struct run_facts {
    const char *model_file;
    const lks_model *model;
    const struct form *form;
    const struct lks_trainer_params *params;
    const struct lks_device_info *device;
    const char *start_weights; /* sha256 of --weights, or NULL */
    char started[32];          /* UTC */
    double seconds;            /* of this session */
    uint64_t steps;
    bool finished;
    bool tested;
    double test_losses[FORM_LOSSES], test_accuracy;
    const char *weights_sha256; /* when finished */
};

/* The time now in UTC, "2024-01-31T12:00:00Z". */
void utc_now(char text[32]);

/* Writes the file whole or not at all. */
lks_status run_json_write(const struct run_facts *facts, const char *path);

/* Reads a run.json. *finished: the run reached its end. `model` must be the model it was made with:
 * else LKS_E_MISMATCH. NULL: not compared. */
lks_status run_json_check(const char *path, const lks_model *model, bool *finished);

#endif
