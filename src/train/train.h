/*
 * train.h - the trainer behind lks_trainer, shared by the files of src/train.
 */
#ifndef LKSI_TRAIN_H
#define LKSI_TRAIN_H

#include <lockstep/trainer.h>

#include "base/stream.h"
#include "data/dataset.h"
#include "model/optimizer.h"
#include "plan/plan.h"

#define LKSI_RING  256 /* steps whose loss and hits the device keeps */
#define LKSI_FEEDS 3   /* batches in flight */
#define LKSI_RESIDENTS 2 /* data sets on the device: to train and to test on */

/* Parameters lie in one flat arena, so that the update is one launch; starts are multiples of
 * this many elements (4096 bytes, the largest alignment that a device asks for). */
#define LKSI_ARENA_ALIGN 1024

struct lks_dataset {
    struct lksi_dataset *data;
};

/* The samples of a data set on the device. Labels are few, and sent. */
struct lksi_resident {
    struct lksi_buf *x, *table; /* x NULL: none; table NULL: it has none */
    float *table_copy;
    uint64_t table_bytes, bytes;
    char sha256[LKSI_SHA256_HEX]; /* the data set's: of samples and labels */
};

/* How samples come to the device. */
struct lksi_form {
    int32_t channels; /* above 0: as bytes, with a table of so many columns; 0: as they are */
    bool resident;    /* out of a data set that lies there, by their numbers */
};

/* The inputs of one step, on the host and on the device, uploaded in one piece. */
struct lksi_feed {
    struct lksi_buf *staging;
    unsigned char *host; /* the memory of `staging` */
    struct lksi_buf *buf;
    struct lksi_buf *hyper_buf, *step_buf, *which_buf, *label_buf, *table_buf, *x_buf; /* its parts */
    float *hyper, *table, *x; /* into host */
    int32_t *step, *label;
    uint32_t *which; /* numbers of the samples of `resident` */
    uint64_t x_offset;
    const struct lksi_resident *resident; /* the samples are there; or NULL: they are in x */
    uint64_t mark; /* behind the last step that read it; 0: none */
};

/* A plan for one batch size, training or evaluation, and the values to talk to it. */
struct lksi_step_plan {
    uint32_t batch;
    bool training;
    struct lksi_form form;
    struct lksi_plan *plan;
    lksi_value x, table, label, which, hyper, step, prob;
    lksi_value output; /* what lks_trainer_output asked for, or LKSI_NONE */
    size_t forward, backward; /* the stages before these end the forward and backward pass */
};

/* How far the step of an own loop has come. */
enum lksi_phase { LKSI_PHASE_NONE, LKSI_PHASE_FORWARD, LKSI_PHASE_BACKWARD, LKSI_PHASE_UPDATE };

/* An optimiser of the trainer: parameters from `start` on, `count` elements of the arenas. */
struct lksi_optimizer {
    struct lks_optimizer o; /* `params` is NULL; `loss` is owned */
    int64_t start, count;
    size_t first, n; /* its parameters: t->order[first .. first + n) */
    uint64_t powers; /* updates that power1 = beta1^powers and power2 = beta2^powers belong to */
    double power1, power2;
};

/* Where a parameter stands. */
struct lksi_place {
    int64_t offset;   /* in the arenas */
    int optimizer;    /* -1: frozen */
    size_t row;       /* of hyper */
};

/* A row of hyper: an optimiser and a group. */
struct lksi_hyper_row {
    double lr_scale, weight_decay;
};

#define LKSI_MAX_ROWS 64 /* of hyper, 16 numbers each: what a feed has room for */

struct lks_trainer {
    struct lks_trainer_params params; /* defaults filled in */
    struct lksi_dev *dev;
    struct lks_graph *model;
    struct lksi_streams streams;
    char graph_sha256[LKSI_SHA256_HEX];
    struct lksi_optimizer *optimizer;
    size_t n_optimizer;
    struct lksi_hyper_row *row; /* [n_optimizer][groups + 1], the last for those in no group */
    size_t n_row;
    struct lksi_place *place;   /* of each parameter */
    size_t *order;              /* parameters as they lie in the arena */
    char groups_sha256[LKSI_SHA256_HEX]; /* of which parameter has which numbers; "none" */
    int64_t arena;   /* elements of the parameters' arena */
    int64_t trained; /* elements of it before the frozen ones: the size of all other arenas */
    struct lksi_store *store;
    struct lksi_step_plan *plan; /* the first one is made with the trainer */
    size_t n_plan, cap_plan, n_settled;
    struct lksi_feed feed[LKSI_FEEDS];
    struct lksi_resident resident[LKSI_RESIDENTS];
    uint64_t to_reside; /* bytes of the data known at creation that will lie on the device */
    size_t next_feed;
    size_t sample;    /* values a sample */
    bool tokens;      /* which are integers */
    size_t positions; /* labels a sample; 0: the graph has no labels */
    size_t width;     /* numbers a slot of the ring */
    lks_value output; /* of the next evaluation plan; see lksi_step_plan */
    int64_t classes;
    lks_value *keep; /* copy of params.keep */
    size_t n_keep;

    uint64_t step; /* done in the training */
    double epoch_loss[LKSI_MAX_LOSSES], epoch_hits, epoch_samples; /* sums over the running epoch */

    struct lks_step_info pending[LKSI_RING]; /* queued, not yet reported */
    size_t n_pending;

    /* The own loop: where it stands, on which plan (by index) and feed. Every other use of the
     * device puts it back to LKSI_PHASE_NONE, since it may overwrite the activations. */
    enum lksi_phase phase;
    size_t own_plan;
    struct lksi_feed *own_feed;
    const char *written; /* the function that last changed this step's numbers; NULL: none did */
    bool has_grads, has_lr;
    double lr; /* of lks_trainer_set_lr */
};

/* Where a step stands in the training. */
struct lksi_position {
    uint32_t epoch, samples;
    size_t first; /* place in the epoch's order */
    uint64_t steps_per_epoch, total;
};
lks_status lksi_position_of(const struct lks_trainer *t, const lks_dataset *train, uint64_t step,
                            struct lksi_position *p);

/* groups.c: takes the optimisers, groups and patterns of t->params and lays the arenas out. */
lks_status lksi_groups_make(struct lks_trainer *t);
void lksi_groups_free(struct lks_trainer *t);

/* hyper.c: the numbers of every optimiser for step `step` of `total`; steps_per_epoch may be 0 where
 * no schedule needs it. `lr` in place of the schedules' rates, or NULL. */
void lksi_hyper_fill(struct lks_trainer *t, uint64_t step, uint64_t total,
                     uint64_t steps_per_epoch, const double *lr, float *hyper);
/* Optimisers, groups and averages give the same bits. */
bool lksi_same_update(const struct lks_trainer *a, const struct lks_trainer *b);

/* update_graph.c: guard, clipping, optimisers and average, behind the gradients; *flag receives the
 * guard's. And the tables that they read, written once. */
lks_status lksi_add_update(struct lks_graph *g, const struct lks_trainer *t, lksi_value params,
                           lksi_value grads, lksi_value hyper, lksi_value step, lksi_value *flag);
lks_status lksi_update_init(struct lks_trainer *t);
/* Arenas of optimiser k's states ("state0", ...): how many, and what state s is called in files. */
int lksi_optimizer_states(const struct lksi_optimizer *k);
const char *lksi_state_name(const struct lksi_optimizer *k, int s);

/* params.c */
lks_status lksi_params_init(struct lks_trainer *t);

/* trainer.c: a trainer without a device or memory on one: what files are compared with. */
lks_status lksi_trainer_describe(struct lks_trainer **trainer, const lks_graph *graph,
                                 const struct lks_trainer_params *params);

/* trainer.c: one parameter's part of an arena ("params", "ema", "grads", "state0"), canonical
 * layout. LKS_E_ARGUMENT for a frozen one in another arena than "params". */
lks_status lksi_param_read(struct lks_trainer *t, const char *arena, const char *name, float *data,
                           size_t count);
lks_status lksi_param_write(struct lks_trainer *t, const char *arena, const char *name,
                            const float *data, size_t count);

/* step_graph.c: the model at a batch size with gradients, guard, update and record (training), or
 * with record alone. */
lks_status lksi_step_graph(struct lks_graph **graph, const struct lks_trainer *t, uint32_t batch,
                           bool training, struct lksi_form form, struct lksi_step_plan *ids);

/* Numbers a slot of the ring: the losses in their order, then the hits if there are labels. */
size_t lksi_ring_width(const struct lks_graph *g);
/* Puts a slot into losses and hits of `info`. */
void lksi_read_slot(const struct lks_trainer *t, const float *slot, struct lks_step_info *info);
/* The loss `name`; the first one for NULL. */
lks_status lksi_find_loss(const struct lks_graph *g, const char *name, lksi_value *out);

/* LKS_E_INPUT unless the data set's samples are what the graph takes. */
lks_status lksi_check_samples(const struct lks_trainer *t, const lks_dataset *d, const char *what);
/* LKS_E_INPUT unless the data set's samples and labels are what the graph takes. */
lks_status lksi_check_data(const struct lks_trainer *t, const lks_dataset *d, const char *what);

/* The only input besides the labels. */
lksi_value lksi_data_input(const struct lks_graph *g);

/* plans.c: the plan for a batch size, made at its first use. The pointer is valid until the next
 * call. */
lks_status lksi_step_plan_get(struct lks_trainer *t, uint32_t batch, bool training,
                              struct lksi_form form, struct lksi_step_plan **plan);

/* What a plan for the samples of `data` takes where the host sends them, and where they lie on the
 * device. */
struct lksi_form lksi_form_of(const struct lksi_dataset *data, bool resident);

/* resident.c: puts the data sets of a training on the device where trainer and device allow it, and
 * drops others. LKS_E_MEMORY or LKS_E_INPUT if they must lie there and cannot. */
lks_status lksi_residents_get(struct lks_trainer *t, const struct lksi_dataset *train,
                              const struct lksi_dataset *test);
void lksi_residents_free(struct lks_trainer *t);
/* The data set's place on the device, or NULL. */
const struct lksi_resident *lksi_resident_find(struct lks_trainer *t, const struct lksi_dataset *d);
/* Whether it would be put there. Fails as lksi_residents_get; `what` is for messages. */
lks_status lksi_resident_decide(const struct lks_trainer *t, const struct lksi_dataset *d,
                                const char *what, bool *yes);
/* NULL if `d` may lie on a device `taken` bytes of which are in use, else why not. */
const char *lksi_resident_declines(enum lks_resident wish, const struct lksi_limits *dev,
                                   const struct lksi_dataset *d, uint64_t taken);
/* Device memory of a data set, and of those that lie there. */
uint64_t lksi_resident_bytes(const struct lksi_dataset *d);
uint64_t lksi_residents_bytes(const struct lks_trainer *t);

/* Lets the binary cache keep what the plans so far compiled late; all of them must have run. */
lks_status lksi_step_plans_settle(struct lks_trainer *t);

/* feed.c */
lks_status lksi_feeds_create(struct lks_trainer *t);
void lksi_feeds_destroy(struct lks_trainer *t);
/* Samples and labels order[first, first + n) of a data set (order NULL: 0, 1, ...), for a plan of
 * lksi_form_of(data, false): bytes and their table, or floats. Fails as lksi_dataset_gather. */
lks_status lksi_feed_gather(struct lksi_feed *feed, const struct lksi_dataset *data,
                            const uint32_t *order, size_t first, size_t n);
/* The same of a data set that lies on the device: numbers and labels. */
void lksi_feed_pick(struct lksi_feed *feed, const struct lksi_resident *resident,
                    const struct lksi_dataset *data, const uint32_t *order, size_t first, size_t n);
/* Sets the feed's step words for training step `step`. */
void lksi_feed_step(const struct lks_trainer *t, struct lksi_feed *feed, uint64_t step);
/* The same for a batch of an evaluation: its slot in the ring, and the number of its first sample. */
void lksi_feed_evaluation(const struct lks_trainer *t, struct lksi_feed *feed, int32_t slot,
                          size_t first);
/* The next free feed; waits until the device is done with it. Ends the step of an own loop. */
lks_status lksi_feed_next(struct lks_trainer *t, struct lksi_feed **feed);
/* Uploads the feed's batch and lets the plan read it. */
lks_status lksi_feed_bind(struct lks_trainer *t, struct lksi_feed *feed,
                          struct lksi_step_plan *plan);
/* The same, and queues the plan. */
lks_status lksi_feed_run(struct lks_trainer *t, struct lksi_feed *feed,
                         struct lksi_step_plan *plan);

/* nonfinite.c: repeats a step operator by operator and returns LKS_E_NONFINITE with the place. */
lks_status lksi_explain_nonfinite(struct lks_trainer *t, const lks_dataset *train, uint64_t step);
/* The same for a step of an own loop, whose batch still stands in `feed`. */
lks_status lksi_explain_feed(struct lks_trainer *t, struct lksi_feed *feed, uint32_t samples,
                             uint64_t step);
/* The same for a step whose values or gradients the caller wrote, which a repetition lacks. */
lks_status lksi_explain_written(struct lks_trainer *t, uint64_t step);

/* fit.c: the batch of a step in a feed, from `resident`, or gathered by the host if that is NULL. */
lks_status lksi_gather_step(struct lks_trainer *t, const lks_dataset *train,
                            const struct lksi_resident *resident, uint64_t step,
                            struct lksi_feed *feed, struct lksi_position *p);

#endif
