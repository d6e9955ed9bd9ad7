/*
 * bind.h - one operator call made ready to run on a device: the chosen schedule, its kernels, its
 * buffers. The plan is a row of these stages; the contract harness runs single ones.
 */
#ifndef LKSI_PLAN_BIND_H
#define LKSI_PLAN_BIND_H

#include "op/op.h"

/* A schedule with its choices, as a table of tuning or a search names it. */
struct lksi_pick {
    const struct lksi_schedule *schedule;
    int tuned[LKSI_MAX_TUNABLE];
    const char *source; /* the table, for messages; NULL: none */
    size_t entry;       /* of the tuning, for lksi_tuning_refuse */
};

struct lksi_stage {
    struct lksi_call call; /* call.attr must outlive the stage */
    struct lksi_dev *dev;
    const struct lksi_schedule *schedule; /* NULL on `ref`: the C loop */
    struct lksi_pick pick;                /* what tuning chose; schedule NULL: nothing */
    bool items_only;                      /* on `ref`: the contract's items, not the fast loop */
    struct lksi_recipe recipe;            /* empty on `ref` */
    struct lksi_buf *in[LKSI_MAX_IN], *out[LKSI_MAX_OUT], *work[LKSI_MAX_WORK]; /* not owned */
    struct lksi_kernel *kernel[LKSI_MAX_LAUNCH];                                /* owned */
    size_t unit[LKSI_MAX_LAUNCH]; /* index in the program, for lksi_program_digest */
};

/*
 * Chooses the schedule for `call`: `wanted` by name (LKS_E_ARGUMENT with its reason if it
 * declines or does not exist), or NULL for the first that serves it and is not struck off
 * (`struck` may be NULL). LKS_E_NUMERICS if those that serve are struck off. Fills the recipe;
 * binds nothing yet.
 */
lks_status lksi_stage_choose(struct lksi_stage *stage, struct lksi_dev *dev,
                             const struct lksi_call *call, const char *wanted,
                             bool (*struck)(void *user, const struct lksi_schedule *s), void *user);

/* The same with the schedule of `pick` and its choices; false, nothing done, if it declines. */
bool lksi_stage_pick(struct lksi_stage *stage, struct lksi_dev *dev, const struct lksi_call *call,
                     const struct lksi_pick *pick);

/*
 * Builds the kernels of all stages as one program and creates their kernel objects. On `ref`
 * nothing is built and *program is NULL. The stages must not be copied afterwards.
 */
lks_status lksi_stages_build(struct lksi_program **program, struct lksi_dev *dev,
                             struct lksi_stage *stages, size_t count,
                             struct lksi_build_progress progress);

/* Sets every argument from in, out and work. Call it when these are filled, or were changed. */
lks_status lksi_stage_bind(struct lksi_stage *stage);

/* Queues the stage. On `ref` it has run when the call returns. */
lks_status lksi_stage_run(struct lksi_stage *stage);

/* Releases the kernels. */
void lksi_stage_close(struct lksi_stage *stage);

#endif
