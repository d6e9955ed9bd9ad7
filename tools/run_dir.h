/*
 * run_dir.h - the output folder of a training: who may write into it, what lies in it.
 *
 *     weights.safetensors     of the finished run; its sha256 is the digest of the run
 *     best.safetensors        weights of the epoch with the best test accuracy, or lowest test loss
 *     checkpoint.safetensors  the whole state, for --resume
 *     metrics.csv steps.csv   see history.h
 *     curves.svg              see curves.h
 *     run.json                what was trained, on what, with which result
 */
#ifndef LKS_TOOLS_RUN_DIR_H
#define LKS_TOOLS_RUN_DIR_H

#include "base/base.h"

enum run_file {
    RUN_WEIGHTS,
    RUN_EMA,
    RUN_BEST,
    RUN_CHECKPOINT,
    RUN_METRICS,
    RUN_STEPS,
    RUN_CURVES,
    RUN_JSON,
    RUN_FILES
};

struct run_dir {
    char *path;
    char *file[RUN_FILES];
    char *made; /* the highest folder that did not exist before, or NULL */
    int lock;   /* descriptor of the folder; -1: none */
};

/*
 * Makes the folder, locks it against other runs, removes what a killed run left half written, and
 * makes sure that `bytes` can be written there. Leaves nothing behind if that fails. LKS_E_IO.
 */
lks_status run_dir_open(struct run_dir *d, const char *path, uint64_t bytes);
/* Removes the files of an earlier run. */
lks_status run_dir_clear(const struct run_dir *d);
bool run_dir_has(const struct run_dir *d, enum run_file file);
/* `keep` false: removes the folders that run_dir_open made, if they are empty. */
void run_dir_close(struct run_dir *d, bool keep);

#endif
