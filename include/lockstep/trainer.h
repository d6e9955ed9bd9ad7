/*
 * trainer.h - training: a graph, a device, a seed, and data.
 *
 * The bits of the trained weights depend on the graph, the data, the batch size, the leaf, the
 * seed and the optimiser, and on nothing else: not on the device, its driver, or its speed.
 */
#ifndef LOCKSTEP_TRAINER_H
#define LOCKSTEP_TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lockstep/dataset.h>
#include <lockstep/device.h>
#include <lockstep/graph.h>
#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lks_trainer lks_trainer;

typedef enum lks_schedule {
    LKS_SCHEDULE_CONSTANT, /* lr */
    LKS_SCHEDULE_LINEAR    /* lr * (1 - step / total steps): decays to 0 */
} lks_schedule;

/* Stochastic gradient descent: g = decay * p + g; m = momentum * m + g; p = p - lr * m. */
struct lks_sgd {
    double lr; /* required */
    double momentum, weight_decay;
    lks_schedule schedule;
};

struct lks_trainer_params {
    lks_device *device; /* required; must outlive the trainer */
    uint32_t batch;     /* samples a step; 0 means 64 */
    uint32_t leaf;      /* samples a block of the ordered sums, a power of two; 0 means 8. Other
                           values give other bits. */
    uint64_t seed;
    uint32_t epochs;    /* of the whole training; 0 means 1 */
    bool drop_last;     /* leave out the last short batch */
    bool no_shuffle;
    struct lks_sgd sgd;
    bool plain;         /* run the slow contract schedules only; same bits */
    bool no_admission;  /* skip the check of schedules at their first use on a device; to study a
                           device that fails it */
    void (*on_build)(void *user, size_t done, size_t total); /* kernels being compiled; or NULL */
    void *user;
};
#define lks_trainer_params(...) (&(struct lks_trainer_params){__VA_ARGS__})

/*
 * Creates a trainer for a copy of `graph`, which must have a loss, and sets the parameters to
 * their initial values. Compiles the kernels (seconds at first, then cached). LKS_E_MEMORY if a
 * step does not fit the device; the text names what would.
 */
LKS_API lks_status lks_trainer_create(lks_trainer **trainer, const lks_graph *graph,
                                      const struct lks_trainer_params *params);
LKS_API void lks_trainer_destroy(lks_trainer **trainer);

/* Device memory of a training step by plan, in bytes. */
struct lks_memory {
    uint64_t parameters, inputs, values, workspace, total; /* workspace is part of values */
};
LKS_API lks_status lks_trainer_memory(const lks_trainer *trainer, struct lks_memory *memory);

/* ---- the ready loop ---- */

struct lks_step_info {
    uint64_t step;  /* of the training, from 0 */
    uint32_t epoch; /* from 0 */
    uint32_t samples; /* in this batch */
    float loss;     /* mean over the batch */
    uint32_t hits;  /* samples whose largest logit was their label */
};

struct lks_epoch_info {
    uint32_t epoch; /* that ended, from 0 */
    uint64_t steps; /* done so far in the training */
    double train_loss, train_accuracy; /* over the epoch, as the steps saw it */
    double test_loss, test_accuracy;   /* NAN without test data */
};

struct lks_fit_params {
    const lks_dataset *train; /* required */
    const lks_dataset *test;  /* evaluated after each epoch; may be NULL */
    uint64_t max_steps;       /* stop after this many steps of the training; 0: after the epochs */
    uint64_t checkpoint_every; /* steps between calls of on_checkpoint; 0: none */
    /* Callbacks, each may be NULL. Another result than LKS_OK ends the fit with it. on_step is
     * called in order for every step, some time after it ran. */
    lks_status (*on_step)(void *user, const struct lks_step_info *info);
    lks_status (*on_epoch)(void *user, const struct lks_epoch_info *info);
    lks_status (*on_checkpoint)(void *user, lks_trainer *trainer);
    bool (*cancelled)(void *user); /* asked between steps: true ends with LKS_E_CANCELLED */
    void *user;
};
#define lks_fit_params(...) (&(struct lks_fit_params){__VA_ARGS__})

/*
 * Trains from where the trainer stands (start, or a loaded checkpoint) to the end of its epochs.
 * Blocks. A loss or gradient that is not finite stops it with LKS_E_NONFINITE before any parameter
 * takes it in; the text names step, operator and element. After LKS_E_CANCELLED the trainer stands
 * after the last finished step and can be saved or fitted again.
 */
LKS_API lks_status lks_trainer_fit(lks_trainer *trainer, const struct lks_fit_params *params);

/* Mean loss and share of right answers over a data set. Blocks. */
LKS_API lks_status lks_trainer_evaluate(lks_trainer *trainer, const lks_dataset *data,
                                        double *loss, double *accuracy);

/* Class probabilities [n][classes] of n samples of a data set from `first` on. Blocks. */
LKS_API lks_status lks_trainer_predict(lks_trainer *trainer, const lks_dataset *data, size_t first,
                                       size_t n, float *probabilities);

/* Steps done so far. */
LKS_API uint64_t lks_trainer_steps(const lks_trainer *trainer);

/* ---- parameters and files ---- */

/* Name and element count of parameter `index`; LKS_E_ARGUMENT past the last. Name is valid as long
 * as the trainer. */
LKS_API lks_status lks_trainer_parameter(const lks_trainer *trainer, size_t index,
                                         const char **name, size_t *count);
/* Reads or writes one parameter in its canonical layout. Blocks. */
LKS_API lks_status lks_trainer_get(lks_trainer *trainer, const char *name, float *data,
                                   size_t count);
LKS_API lks_status lks_trainer_set(lks_trainer *trainer, const char *name, const float *data,
                                   size_t count);

/* Writes the weights as safetensors in the canonical form whose sha256 is the digest of the
 * training; whole or not at all. */
LKS_API lks_status lks_trainer_save_weights(lks_trainer *trainer, const char *path);
/* Reads weights; names and shapes must be those of the graph. */
LKS_API lks_status lks_trainer_load_weights(lks_trainer *trainer, const char *path);
/* sha256 of what lks_trainer_save_weights would write, in lower-case hex; `hex` holds 65 bytes. */
LKS_API lks_status lks_trainer_weights_sha256(lks_trainer *trainer, char *hex);

/*
 * Saves or loads the whole state: weights, optimiser, position in the data, running sums. `train`
 * is the data trained on (its sha256 is kept and compared). Loading refuses another graph, data,
 * seed, batch, leaf, optimiser or contract with LKS_E_MISMATCH and names the difference.
 */
LKS_API lks_status lks_trainer_save_checkpoint(lks_trainer *trainer, const lks_dataset *train,
                                               const char *path);
LKS_API lks_status lks_trainer_load_checkpoint(lks_trainer *trainer, const lks_dataset *train,
                                               const char *path);

#ifdef __cplusplus
}
#endif
#endif
