/*
 * compare.h - two trainings side by side, compared bit for bit after every operator.
 *
 *     bool same;
 *     struct lks_difference d;
 *     lks_compare(a, b, lks_compare_params(.train = data, .steps = 100), &same, &d);
 */
#ifndef LOCKSTEP_COMPARE_H
#define LOCKSTEP_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include <lockstep/trainer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where two runs first part. */
struct lks_difference {
    uint64_t step;
    char operation[128];              /* the node, for example "conv1.conv2d_weight_grad" */
    char op[64];                      /* its operator */
    char schedule_a[32], schedule_b[32];
    int output;                       /* number of the operator's output */
    char shape[96];                   /* of that output */
    uint64_t index;                   /* element in it */
    char place[96];                   /* the same as coordinates, "[0,3,5,7]" */
    uint32_t bits_a, bits_b;          /* bit patterns */
    uint64_t ulp;                     /* numbers between them; UINT64_MAX with a NaN */
    uint64_t differing, elements;     /* in this output */
    uint64_t agreed;                  /* tensors before it, over all steps */
};

struct lks_compare_params {
    const lks_dataset *train; /* required */
    uint64_t steps;           /* 0 means 1 */
    /* Called after each step with the tensors and bytes compared so far; false stops. May be NULL. */
    bool (*on_step)(void *user, uint64_t step, uint64_t tensors, uint64_t bytes);
    void *user;
};
#ifndef __cplusplus
#define lks_compare_params(...) (&(struct lks_compare_params){__VA_ARGS__})
#endif
/* The defaults written out: one step; `train` is still to be set. Thread-safe. */
LKS_API struct lks_compare_params lks_compare_params_default(void);

/*
 * Trains both from where they stand and compares every tensor of every step: activations,
 * gradients, parameters after the update. They must be at the same step of equal graphs, seeds and
 * sizes, and are usually on two devices. NaN equals NaN. *same is the answer; if false *first is
 * filled and both stand within that step (destroy them).
 *
 * LKS_E_ARGUMENT if the trainers do not belong together, LKS_E_CANCELLED if on_step said so,
 * LKS_E_INPUT, LKS_E_MEMORY, LKS_E_DEVICE. Both trainers stay the caller's; after a failure destroy
 * them. Blocks. Uses both trainers and their devices on the calling thread.
 */
LKS_API lks_status lks_compare(lks_trainer *a, lks_trainer *b,
                               const struct lks_compare_params *params, bool *same,
                               struct lks_difference *first);

#ifdef __cplusplus
}
#endif
#endif
