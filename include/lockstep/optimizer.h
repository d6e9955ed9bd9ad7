/*
 * optimizer.h - how the parameters move: optimisers, learning rates, parameter groups.
 *
 *     struct lks_optimizer adam = lks_optimizer_default(LKS_OPTIMIZER_ADAM);
 *     adam.lr = 0.0003;
 *     adam.clip_norm = 1.0;
 *     adam.schedule = (struct lks_lr_schedule){.kind = LKS_SCHEDULE_COSINE, .warmup = 100};
 *     lks_trainer_create(&t, graph,
 *                        lks_trainer_params(.device = d, .optimizers = &adam, .n_optimizers = 1));
 *
 * Every number is a double; what the device computes with is rounded once to 32 bits. The formulas
 * and defaults are PyTorch's; numerics.md, rule 16, and the headers cl/contract/{sgd, adam, rmsprop,
 * adagrad, lamb}.h say in which order they are computed.
 */
#ifndef LOCKSTEP_OPTIMIZER_H
#define LOCKSTEP_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lockstep/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- learning rates ---- */

/* The learning rate of step s = 0, 1, ... of T steps in all. T counts the steps of all epochs of a
 * lks_trainer_fit; with a warm-up of W steps, s and T begin behind it. */
typedef enum lks_schedule {
    LKS_SCHEDULE_CONSTANT, /* lr */
    LKS_SCHEDULE_LINEAR,   /* min + (lr - min) * (1 - s / T) */
    LKS_SCHEDULE_STEP,     /* lr * factor^floor(s / every) */
    LKS_SCHEDULE_COSINE,   /* min + (lr - min) * (1 + cos(pi s / T)) / 2 */
    LKS_SCHEDULE_ONE_CYCLE /* by half cosines from lr / start to lr within rise * T - 1 steps, then
                              down to lr / (start * end) at the last step; momentum stays */
} lks_schedule;

struct lks_lr_schedule {
    lks_schedule kind;
    uint64_t warmup;         /* W: before all else, step s < W has lr * (s + 1) / W */
    double min;              /* of linear and cosine; 0 to lr */
    uint64_t every;          /* of step: required */
    bool every_epochs;       /* `every` counts epochs, not steps */
    double factor;           /* of step, above 0 up to 1; 0 means 0.1 */
    double rise, start, end; /* of one cycle: above 0 and below 1, 1 or more, 1 or more; 0 means
                                0.3, 25 and 10000 */
};

/* ---- optimisers ---- */

typedef enum lks_optimizer_kind {
    LKS_OPTIMIZER_SGD,     /* momentum, or Nesterov's */
    LKS_OPTIMIZER_ADAM,    /* weight decay added to the gradient */
    LKS_OPTIMIZER_ADAMW,   /* weight decay taken from the parameter */
    LKS_OPTIMIZER_RMSPROP, /* with momentum; centered: divided by the deviation */
    LKS_OPTIMIZER_ADAGRAD, /* lr / (1 + updates before * lr_decay) */
    LKS_OPTIMIZER_LAMB     /* AdamW's direction, scaled by |p| / |direction| of each parameter */
} lks_optimizer_kind;

/*
 * One optimiser. Fields that its kind does not read must be zero. Take lks_optimizer_default and
 * change it: a beta or eps of zero is not replaced.
 */
struct lks_optimizer {
    lks_optimizer_kind kind;
    double lr;           /* above 0 */
    double weight_decay; /* 0 or more */
    double momentum;     /* sgd, rmsprop: 0 up to below 1 */
    bool nesterov;       /* sgd: needs momentum */
    double beta1, beta2; /* adam, adamw, lamb: 0 up to below 1 */
    double alpha;        /* rmsprop: 0 up to below 1 */
    bool centered;       /* rmsprop */
    double eps;          /* all but sgd: above 0 */
    double lr_decay;     /* adagrad: 0 or more */
    double initial_accumulator; /* adagrad: 0 or more */
    struct lks_lr_schedule schedule;
    double clip_norm;  /* 0: none. Gradients times min(1, clip_norm / (norm + 1e-6)), where norm is
                          the Euclidean one of all gradients of this optimiser */
    double clip_value; /* 0: none. Then each gradient is limited to -clip_value .. clip_value */
    /* Only of use where there are several: */
    const char *loss;          /* name of the loss it lowers; NULL: the graph's first */
    const char *const *params; /* patterns of its parameters; NULL: all that are not frozen */
    size_t n_params;
    uint32_t every; /* updates at each such step only (the every-th is the first); 0 means 1 */
};

/*
 * PyTorch's defaults: lr 0.01 (adam, adamw, lamb 0.001), betas 0.9 and 0.999, alpha 0.99, eps 1e-8
 * (adagrad 1e-10), weight_decay 0 (adamw 0.01); of LAMB, which PyTorch lacks, eps 1e-6 and weight
 * decay 0.01. All else is zero. An unknown kind gives zeros, which are refused. Thread-safe.
 */
LKS_API struct lks_optimizer lks_optimizer_default(lks_optimizer_kind kind);

/* "sgd", "adam", ...; "?" for an unknown kind. Thread-safe. */
LKS_API const char *lks_optimizer_name(lks_optimizer_kind kind);
/* "constant", "linear", ...; "?" for an unknown one. Thread-safe. */
LKS_API const char *lks_schedule_name(lks_schedule schedule);

/*
 * The learning rate of a step (from 0) by the optimiser's schedule, to the bit what lks_trainer_fit
 * takes: for own loops. `total` is the number of all steps; `epoch` that of an epoch, read by
 * every_epochs alone. Thread-safe.
 */
LKS_API double lks_learning_rate(const struct lks_optimizer *optimizer, uint64_t step,
                                 uint64_t total, uint64_t epoch);

/*
 * The older way to ask for SGD, field `sgd` of lks_trainer_params. Element by element, every line
 * one fused multiply-add:
 *     g = weight_decay * p + gradient;  m = momentum * m + g;  p = -lr * m + p.
 * The three numbers are rounded from double once, and must be finite then.
 */
struct lks_sgd {
    double lr;             /* above 0; required */
    double momentum;       /* 0 up to below 1 */
    double weight_decay;   /* 0 or more */
    lks_schedule schedule; /* constant, linear (to 0), cosine (to 0) or one cycle */
    bool nesterov;         /* the third line is p = -lr * (momentum * m + g) + p */
};

/* The same as a struct lks_optimizer. Thread-safe. */
LKS_API struct lks_optimizer lks_optimizer_of_sgd(const struct lks_sgd *sgd);

/* ---- parameter groups ---- */

/*
 * Parameters whose name fits one of `params` get numbers of their own. In a pattern `*` stands for
 * any characters (none too) and `?` for one: "*.bias", "bn*". A parameter belongs to the first group
 * that it fits. A pattern that no parameter fits is an error.
 */
struct lks_param_group {
    const char *const *params;
    size_t n_params;
    double lr_scale;       /* times the learning rate; 0 means 1 (to hold parameters still, freeze
                              them) */
    bool has_weight_decay; /* take weight_decay in place of the optimiser's */
    double weight_decay;
};

#ifdef __cplusplus
}
#endif
#endif
