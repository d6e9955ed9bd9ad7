/*
 * weights.h - parameters and optimiser states between the device and safetensors files.
 */
#ifndef LKSI_TRAIN_WEIGHTS_H
#define LKSI_TRAIN_WEIGHTS_H

#include "model/safetensors.h"
#include "train/train.h"

/* Tensors copied from the device; names and data are owned. Zero-initialise. */
struct lksi_tensors {
    struct lksi_st_tensor *tensor;
    size_t count, capacity;
};

/*
 * Arenas and the names of their tensors in files: "params", NAME, with it the running statistics;
 * "ema", ema/NAME; "state0" to "state2", the optimiser's state, e.g. momentum/NAME. An arena that
 * holds nothing has no tensors.
 */

/* Appends every parameter's part of an arena. Blocks. */
lks_status lksi_tensors_read(struct lksi_tensors *s, struct lks_trainer *t, const char *arena);
void lksi_tensors_free(struct lksi_tensors *s);

/* LKS_E_INPUT unless the file holds all of them in the right shape. */
lks_status lksi_tensors_check(const struct lks_trainer *t, const struct lksi_safetensors *file,
                              const char *path, const char *arena);
/* Copies them into the arena. Call it after the check. */
lks_status lksi_tensors_write(struct lks_trainer *t, const struct lksi_safetensors *file,
                              const char *arena);

/*
 * What lks_trainer_load_weights and lks_trainer_load_checkpoint would refuse, told without a
 * device, so before kernels are built. params->device is not looked at.
 * *step: how far the checkpoint is.
 */
lks_status lksi_weights_check(const lks_graph *graph, const struct lks_trainer_params *params,
                              const char *path);
lks_status lksi_checkpoint_check(const lks_graph *graph, const struct lks_trainer_params *params,
                                 const lks_dataset *train, const char *path, uint64_t *step);

#endif
