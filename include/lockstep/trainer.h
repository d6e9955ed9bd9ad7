/*
 * trainer.h - training: a graph, a device, a seed, and data.
 *
 * The bits of the trained weights depend on the graph, the data, the batch size, the leaf, the
 * seed and the optimiser, and on nothing else: not on the device, its driver, or its speed.
 *
 *     lks_trainer *t;
 *     lks_trainer_create(&t, graph, lks_trainer_params(.device = device, .sgd = {.lr = 0.05}));
 *     lks_trainer_fit(t, lks_fit_params(.train = data));            the ready loop, or
 *     lks_trainer_step(t, &batch, &info);                           an own loop
 *     lks_trainer_save_weights(t, "weights.safetensors");
 *     lks_trainer_destroy(&t);
 *
 * Threads: a trainer, like its device, is used by one thread at a time; different trainers on
 * different devices (also several handles of one physical device) are independent. Every function
 * here computes in round-to-nearest with subnormal numbers, whatever the caller's floating-point
 * state is, and leaves that state as it was; callbacks run in the library's state.
 *
 * Errors: where a comment names no others, a function fails with LKS_E_ARGUMENT (an argument is
 * NULL or out of range), LKS_E_MEMORY (host or device) or LKS_E_DEVICE (OpenCL reported an error;
 * destroy the trainer). Out-parameters are untouched on failure.
 */
#ifndef LOCKSTEP_TRAINER_H
#define LOCKSTEP_TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lockstep/dataset.h>
#include <lockstep/device.h>
#include <lockstep/graph.h>
#include <lockstep/optimizer.h>
#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lks_trainer lks_trainer;

/*
 * Whether data sets lie on the device: samples and labels are uploaded once, before the first step
 * of lks_trainer_fit, and a step sends only the numbers of its samples. The bits stay. AUTO: where the
 * device has memory of its own and they take at most a quarter of it. YES: on any device that has
 * the room; LKS_E_MEMORY where training data do not fit, LKS_E_INPUT where a callback makes them. NO: the host
 * gathers each batch and sends it.
 */
typedef enum lks_resident { LKS_RESIDENT_AUTO, LKS_RESIDENT_YES, LKS_RESIDENT_NO } lks_resident;

struct lks_trainer_params {
    lks_device *device; /* required; must outlive the trainer */
    uint32_t batch;     /* samples a step; 0 means 64 */
    uint32_t leaf;      /* samples a block of the ordered sums, a power of two; 0 means 8. Other
                           values give other bits. */
    uint64_t seed;      /* of the initial values and the order of the samples */
    uint32_t epochs;    /* of the whole training; 0 means 1 */
    bool drop_last;     /* leave out the last short batch */
    bool no_shuffle;
    struct lks_sgd sgd; /* the optimiser, if `optimizers` is NULL */
    /*
     * One optimiser, or several (see optimizer.h). Every parameter belongs to exactly one of them,
     * or is frozen: it fits a pattern of `frozen`, gets no gradient and stays as it is, to the bit.
     * All gradients of a step are those at the parameters before it. Arrays and texts are copied.
     */
    const struct lks_optimizer *optimizers;
    size_t n_optimizers;
    const struct lks_param_group *groups; /* over all optimisers */
    size_t n_groups;
    const char *const *frozen;
    size_t n_frozen;
    /* Above 0 and below 1: keep an average of the parameters too, e = e + (1 - ema) * (p - e) after
     * each step, which begins as the initial values; see lks_trainer_save_ema. 0: none. */
    double ema;
    bool evaluate_ema; /* lks_trainer_evaluate and lks_trainer_predict use the average */
    bool plain;         /* run the slow contract schedules only; same bits */
    bool no_admission;  /* skip the check of schedules at their first use on a device; to study a
                           device that fails it */
    void (*on_build)(void *user, size_t done, size_t total); /* kernels being compiled; or NULL */
    void *user;
    const lks_value *keep; /* float values of the graph that lks_trainer_get_value will read; copied.
                              They take device memory of their own; the bits stay. */
    size_t n_keep;
    const lks_dataset *data; /* what it will be trained on, if that is known: kernels are made for the
                                form that its samples are sent in. NULL: for floats, as an own loop
                                gives them. Any other use makes a second plan when it comes; same
                                bits. Needed during lks_trainer_create only. */
    lks_resident resident;   /* 0: AUTO */
};
#ifndef __cplusplus
#define lks_trainer_params(...) (&(struct lks_trainer_params){__VA_ARGS__})
#endif
/* The defaults written out: batch 64, leaf 8, epochs 1, all else zero. device and sgd.lr are still
 * to be set. Thread-safe. */
LKS_API struct lks_trainer_params lks_trainer_params_default(void);

/*
 * Creates a trainer for a copy of `graph`, which must have a loss, one input besides the labels,
 * and parameters; sets the parameters to their initial values. The caller keeps the graph and may
 * destroy it at once; *trainer is the caller's to destroy. Blocks while kernels are compiled
 * (seconds at the first use on a device, then cached) and checked.
 *
 * LKS_E_ARGUMENT with the reason; LKS_E_INPUT if `data` do not fit the graph; LKS_E_MEMORY if a step
 * does not fit the device (the text names the largest batch that would); LKS_E_NUMERICS if no schedule of some operator gives the right
 * bits on this device.
 */
LKS_API lks_status lks_trainer_create(lks_trainer **trainer, const lks_graph *graph,
                                      const struct lks_trainer_params *params);

/* Waits for the device, frees the trainer and sets *trainer to NULL; NULL and a pointer to NULL are
 * allowed. The device stays open. */
LKS_API void lks_trainer_destroy(lks_trainer **trainer);

/* Device memory of a training step by plan, in bytes. */
struct lks_memory {
    uint64_t parameters; /* with gradients and the optimiser's state */
    uint64_t inputs;     /* batches in flight */
    uint64_t values;     /* the peak of activations and workspace within a step */
    uint64_t workspace;  /* part of `values` */
    uint64_t total;
    uint64_t data;       /* data sets that lie on the device, or will; part of `total` */
};
/* Writes *memory. Does not block. */
LKS_API lks_status lks_trainer_memory(const lks_trainer *trainer, struct lks_memory *memory);

/* Steps done so far, by lks_trainer_fit, by an own loop or before a loaded checkpoint; 0 for NULL. */
LKS_API uint64_t lks_trainer_steps(const lks_trainer *trainer);

/* ---- the ready loop ---- */

struct lks_step_info {
    uint64_t step;    /* of the training, from 0 */
    uint32_t epoch;   /* from 0; 0 in an own loop */
    uint32_t samples; /* in this batch */
    float loss;       /* mean over the batch, before the update */
    uint32_t hits;    /* labels that had the largest logit */
    uint32_t labels;  /* in this batch: `samples` times those of a sample; 0 without labels */
    uint32_t n_losses;
    float losses[5];  /* of all losses of the graph; losses[0] is `loss` */
};

struct lks_epoch_info {
    uint32_t epoch;                    /* that ended, from 0 */
    uint64_t steps;                    /* done so far in the training */
    double train_loss, train_accuracy; /* over the epoch, as the steps saw it; an accuracy is NAN
                                          without labels */
    double test_loss, test_accuracy;   /* NAN without test data */
    uint32_t n_losses;
    double train_losses[5], test_losses[5]; /* of all losses; [0] is the one above */
};

struct lks_fit_params {
    const lks_dataset *train;  /* required */
    const lks_dataset *test;   /* evaluated after each epoch; may be NULL */
    uint64_t max_steps;        /* stop after this many steps of the training; 0: after the epochs */
    uint64_t checkpoint_every; /* steps between calls of on_checkpoint; 0: none */
    /*
     * Callbacks, each may be NULL; all are called on the thread of lks_trainer_fit. A result other
     * than LKS_OK ends the fit with it: return LKS_E_CANCELLED to stop. on_step is called in order
     * for every step, some time after it ran (later steps may have run already; they count).
     * on_checkpoint may use the trainer, the others only lks_trainer_steps.
     */
    lks_status (*on_step)(void *user, const struct lks_step_info *info);
    lks_status (*on_epoch)(void *user, const struct lks_epoch_info *info);
    lks_status (*on_checkpoint)(void *user, lks_trainer *trainer);
    bool (*cancelled)(void *user); /* asked between steps: true ends with LKS_E_CANCELLED */
    void *user;
};
#ifndef __cplusplus
#define lks_fit_params(...) (&(struct lks_fit_params){__VA_ARGS__})
#endif
/* All zero; `train` is still to be set. Thread-safe. */
LKS_API struct lks_fit_params lks_fit_params_default(void);

/*
 * Trains from where the trainer stands (the start, or a loaded checkpoint) to the end of its
 * epochs, or to max_steps. Data sets stay the caller's and must not change meanwhile. Blocks; a
 * second thread reads ahead in the data.
 *
 * LKS_E_INPUT if the data do not fit the graph; what a callback returned; LKS_E_CANCELLED;
 * LKS_E_NONFINITE if a loss or gradient is not finite: no parameter took it in, and the text names
 * step, operator and element. After any of these the trainer stands after its last finished step
 * and can be saved or fitted again, to the bits of an uninterrupted training.
 */
LKS_API lks_status lks_trainer_fit(lks_trainer *trainer, const struct lks_fit_params *params);

/*
 * Mean (first) loss and share of right answers (0 to 1; NAN without labels) over a data set, with
 * the parameters as they are.
 * Blocks. LKS_E_INPUT if the data do not fit the graph.
 */
LKS_API lks_status lks_trainer_evaluate(lks_trainer *trainer, const lks_dataset *data,
                                        double *loss, double *accuracy);
/* The same for all losses of the graph: losses holds as many as it has. `accuracy` may be NULL. */
LKS_API lks_status lks_trainer_evaluate_losses(lks_trainer *trainer, const lks_dataset *data,
                                               double *losses, double *accuracy);
/*
 * The value `value` of the graph (of floats, and batched) for n samples of a data set from `first`
 * on, as an evaluation computes it: out is [n][its shape] and the caller's. Blocks; a value asked for
 * the first time makes a new plan. LKS_E_ARGUMENT, LKS_E_INPUT if the data do not fit the graph.
 */
LKS_API lks_status lks_trainer_output(lks_trainer *trainer, const lks_dataset *data,
                                      lks_value value, size_t first, size_t n, float *out);

/*
 * softmax(logits) of n samples of a data set from `first` on: probabilities is [n][classes], or
 * [n][positions][classes], and the caller's. Blocks. On a failure part of it may have been written.
 */
LKS_API lks_status lks_trainer_predict(lks_trainer *trainer, const lks_dataset *data, size_t first,
                                       size_t n, float *probabilities);
/* The same for samples in memory: x is [n][h][w][c], normalised as the training data were. */
LKS_API lks_status lks_trainer_predict_floats(lks_trainer *trainer, const float *x, size_t n,
                                              float *probabilities);

/* ---- an own loop ---- */

/*
 * One step is forward, backward, update:
 *
 *     lks_trainer_forward(t, &batch, &info);      loss and hits
 *     lks_trainer_backward(t);                    gradients
 *     lks_trainer_set_lr(t, lr);                  if it changes
 *     lks_trainer_update(t);                      parameters
 *
 * lks_trainer_step is the three in one call. Both give the bits that lks_trainer_fit gives for the
 * same batches and learning rates. What happens between the calls is the caller's: reading
 * activations, clipping gradients, leaving out the update. Any other use of the trainer that runs
 * the network (fit, evaluate, predict, lks_compare, the next forward) ends the step that was begun.
 */

/* A batch in memory. It is copied; the caller's memory is free when the call returns. */
struct lks_batch {
    const float *x;        /* [samples][h][w][c] */
    const int32_t *labels; /* [samples], or one a position; class numbers from 0; NULL without */
    uint32_t samples;      /* 1 to `batch` of the trainer */
    const int32_t *tokens; /* in place of x where the graph's input is of integers */
};

/*
 * Runs the network on the batch. With `info` it blocks and writes loss and hits; with NULL it
 * returns when the work is queued. A number of samples not seen before makes a new plan, which may
 * compile kernels. The loss may be NAN or infinite here; lks_trainer_update then refuses.
 */
LKS_API lks_status lks_trainer_forward(lks_trainer *trainer, const struct lks_batch *batch,
                                       struct lks_step_info *info);

/* Computes the gradients of the mean loss of the forward pass. LKS_E_ARGUMENT without a forward
 * pass. Returns when the work is queued. */
LKS_API lks_status lks_trainer_backward(lks_trainer *trainer);

/*
 * Takes one step of the optimiser with the gradients of the backward pass, and counts it. Blocks.
 * LKS_E_ARGUMENT without a backward pass, or with a schedule that needs the number of steps
 * (linear, cosine, one cycle, every_epochs) and no lks_trainer_set_lr;
 * LKS_E_NONFINITE if loss or gradients are not finite: no parameter changed, the text names the
 * operator, and the step does not count.
 */
LKS_API lks_status lks_trainer_update(lks_trainer *trainer);

/* Forward, backward and update. Blocks. `info` may be NULL. Errors as of the three. */
LKS_API lks_status lks_trainer_step(lks_trainer *trainer, const struct lks_batch *batch,
                                    struct lks_step_info *info);

/*
 * The learning rate of the own loop's updates from now on (0 or more, finite as a float); before
 * the first call it is that of the schedule. It holds for every optimiser; groups scale it. It does
 * not touch lks_trainer_fit and is not part of a checkpoint. lks_learning_rate computes the rates of
 * a fit. Does not block.
 */
LKS_API lks_status lks_trainer_set_lr(lks_trainer *trainer, double lr);

/*
 * Reads or writes the gradient of the parameter `name` in the layout of lks_trainer_get; `count` is
 * its number of elements. Reading needs a backward pass or a fit before (it shows the latest one,
 * clipped if the update clips); a frozen parameter has none (LKS_E_ARGUMENT);
 * writing must stand between lks_trainer_backward and lks_trainer_update, which then uses what was
 * written. Block.
 */
LKS_API lks_status lks_trainer_get_gradient(lks_trainer *trainer, const char *name, float *data,
                                            size_t count);
LKS_API lks_status lks_trainer_set_gradient(lks_trainer *trainer, const char *name,
                                            const float *data, size_t count);

/*
 * Reads or writes a value named in lks_trainer_params.keep, for the batch of the latest forward
 * pass: [samples][its shape], `count` elements in all. Reading is possible from the forward pass
 * until the step ends; writing must stand between forward and backward: the backward pass then
 * reads what was written, the loss stays. Block. LKS_E_ARGUMENT for a value that is not kept.
 */
LKS_API lks_status lks_trainer_get_value(lks_trainer *trainer, lks_value value, float *data,
                                         size_t count);
LKS_API lks_status lks_trainer_set_value(lks_trainer *trainer, lks_value value, const float *data,
                                         size_t count);

/* ---- parameters and files ---- */

/*
 * Name ("conv1.weight") and element count of parameter `index`; LKS_E_ARGUMENT past the last one
 * (there are lks_graph_parameter_count of them). The name is valid as long as the trainer.
 */
LKS_API lks_status lks_trainer_parameter(const lks_trainer *trainer, size_t index,
                                         const char **name, size_t *count);
/*
 * Reads or writes one parameter of `count` elements in its canonical layout: convolutions
 * [out][kernel][kernel][in / groups], dense layers [out][in], biases [out]. Writing begins the
 * parameter's average again at what is written. Block.
 */
LKS_API lks_status lks_trainer_get(lks_trainer *trainer, const char *name, float *data,
                                   size_t count);
LKS_API lks_status lks_trainer_set(lks_trainer *trainer, const char *name, const float *data,
                                   size_t count);

/*
 * Writes the weights as safetensors in the canonical form whose sha256 is the digest of the
 * training; whole or not at all. LKS_E_IO. Blocks.
 */
LKS_API lks_status lks_trainer_save_weights(lks_trainer *trainer, const char *path);
/* The same with the average of the parameters (`ema` of lks_trainer_params) in place of those that
 * are trained; frozen ones and running statistics stay as they are. LKS_E_ARGUMENT without one. */
LKS_API lks_status lks_trainer_save_ema(lks_trainer *trainer, const char *path);
/*
 * Reads weights, also out of a checkpoint; names and shapes must be those of the graph. The
 * optimiser's state and the step count stay; the average of a parameter begins again at what was
 * read. LKS_E_IO, or LKS_E_INPUT if the file is damaged or of another network: nothing was changed
 * then. Blocks.
 */
LKS_API lks_status lks_trainer_load_weights(lks_trainer *trainer, const char *path);
/* sha256 of what lks_trainer_save_weights would write, in lower-case hex; `hex` holds 65 bytes.
 * Blocks. */
LKS_API lks_status lks_trainer_weights_sha256(lks_trainer *trainer, char *hex);

/*
 * Saves or loads the whole state: weights, optimiser, position in the data, running sums. `train`
 * is the data trained on (its sha256 is kept and compared), or NULL for an own loop, whose place in
 * its data is the caller's to keep. Saving is whole or not at all. Loading refuses another graph,
 * data, seed, batch, leaf, optimiser or contract with LKS_E_MISMATCH and names the difference;
 * LKS_E_INPUT if the file is damaged, LKS_E_IO. The trainer is unchanged after these. Block.
 */
LKS_API lks_status lks_trainer_save_checkpoint(lks_trainer *trainer, const lks_dataset *train,
                                               const char *path);
LKS_API lks_status lks_trainer_load_checkpoint(lks_trainer *trainer, const lks_dataset *train,
                                               const char *path);

#ifdef __cplusplus
}
#endif
#endif
