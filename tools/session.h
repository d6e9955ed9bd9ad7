/*
 * session.h - a model on a device with given weights: what eval, predict and sample begin with.
 */
#ifndef LKS_TOOLS_SESSION_H
#define LKS_TOOLS_SESSION_H

#include <lockstep/lockstep.h>

#include "cli.h"

struct session {
    lks_model *model;
    lks_device *device;
    lks_trainer *trainer;
};

struct session_options {
    struct device_choice device;
    struct number batch;
    const char *weights, *data;
    struct number seed; /* of random numbers; not in the table of options */
    bool plain;
    const char *needs_classes; /* what to say of a model without; NULL: nothing. Not in the table */
};
#define SESSION_OPTIONS(type, member)                                                              \
    {"weights",                                                                                    \
     'w',                                                                                          \
     OPTION_TEXT,                                                                                  \
     offsetof(type, member.weights),                                                               \
     "FILE",                                                                                       \
     "weights to use (required)",                                                                  \
     0},                                                                                           \
        DEVICE_OPTIONS(type, member.device),                                                       \
        {"data",                                                                                   \
         0,                                                                                        \
         OPTION_TEXT,                                                                              \
         offsetof(type, member.data),                                                              \
         "train|test",                                                                             \
         "which data of the model file (default: test)",                                           \
         0},                                                                                       \
        {"batch",    'b',                                                                          \
         OPTION_U32, offsetof(type, member.batch),                                                 \
         "N",        "samples at a time; same bits",                                               \
         1},                                                                                       \
    {                                                                                              \
        "plain", 0, OPTION_FLAG, offsetof(type, member.plain), NULL,                               \
            "slow contract kernels only; same bits", 0                                             \
    }

/* EXIT_OK, or the exit status after saying the error; session_close is due in both cases. */
int session_open(struct session *s, const char *command, const char *model_file,
                 const struct session_options *o);
void session_close(struct session *s);

/* The data that --data names. */
int session_data(const struct session *s, const struct session_options *o,
                 const lks_dataset **data);

#endif
