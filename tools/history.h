/*
 * history.h - what a run has seen so far, step by step and epoch by epoch, and its two files:
 *
 *     steps.csv    step,samples,loss,hits                     one row a step
 *     metrics.csv  epoch,steps,train_loss,...,test_accuracy   one row an epoch
 *
 * Further losses have columns of their names behind `loss`, `train_loss` and `test_loss`; without
 * labels there are no hits and no accuracies.
 *
 * Neither holds a time, so equal runs leave equal files, also when they were interrupted and
 * resumed: a resumed run reads both, drops the rows behind its checkpoint and goes on.
 */
#ifndef LKS_TOOLS_HISTORY_H
#define LKS_TOOLS_HISTORY_H

#include <lockstep/trainer.h>

#include "base/base.h"
#include "form.h"

struct step_row {
    uint32_t samples, hits;
    float loss[FORM_LOSSES];
};

struct history {
    struct form form; /* set before all else */
    struct step_row *step; /* step[i] is the i-th of the training */
    size_t n_step, cap_step;
    struct lks_epoch_info *epoch;
    size_t n_epoch, cap_epoch;
};

void history_free(struct history *h);

lks_status history_add_step(struct history *h, const struct lks_step_info *info);
lks_status history_add_epoch(struct history *h, const struct lks_epoch_info *info);

/* Write the two files, whole or not at all. */
lks_status history_write_steps(const struct history *h, const char *path);
lks_status history_write_metrics(const struct history *h, const char *path);

/*
 * Reads both files of a run that stands after `steps` steps. LKS_E_INPUT (file, line) if a file is
 * damaged or does not reach that far. `h` must be empty.
 */
lks_status history_read(struct history *h, const char *steps_path, const char *metrics_path,
                        uint64_t steps);

/* How good an epoch is: its test accuracy, or, without labels, the negative of its test loss; NAN if
 * it was not tested. And the best so far, below all others if there is none. */
double history_score(const struct history *h, const struct lks_epoch_info *info);
double history_best(const struct history *h);

#endif
