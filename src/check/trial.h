/*
 * trial.h - one schedule of one case on a device, its buffers between guard bands.
 */
#ifndef LKSI_CHECK_TRIAL_H
#define LKSI_CHECK_TRIAL_H

#include "check/oracle.h"
#include "plan/bind.h"

/* A buffer inside a bigger one: a band, the part, a band. `image` is what the host wrote. */
struct lksi_guarded {
    struct lksi_buf *whole, *part;
    uint64_t band, bytes; /* of one band; of the part */
    unsigned char *image, *back;
};

/* The buffers of a case on one device; all its schedules use them in turn. */
struct lksi_arena {
    struct lksi_dev *dev;
    struct lksi_guarded in[LKSI_MAX_IN], out[LKSI_MAX_OUT], work[LKSI_MAX_WORK];
};

lks_status lksi_arena_open(struct lksi_arena *a, struct lksi_dev *dev, const struct lksi_oracle *o);
void lksi_arena_close(struct lksi_arena *a);

/*
 * Runs `stage` (chosen and built) twice on the oracle's inputs and compares: outputs with the
 * oracle, bands, inputs. The first fault goes to *f, whose fault is LKSI_FAULT_NONE before.
 * Returns only LKS_E_MEMORY; other failures are faults.
 */
lks_status lksi_trial_run(struct lksi_arena *a, struct lksi_stage *stage,
                          const struct lksi_oracle *o, struct lksi_check_failure *f);

#endif
