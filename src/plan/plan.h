/*
 * plan.h - a graph made ready for one device: launch order, schedules, memory.
 *
 * A plan is used by one thread at a time. Several plans of one device (other batch sizes,
 * evaluation) share a store: the states by name, and the memory of values that live within a step.
 */
#ifndef LKSI_PLAN_H
#define LKSI_PLAN_H

#include "graph/graph.h"
#include "plan/bind.h"
#include "plan/tuning.h"

/* ---- store ---- */

struct lksi_store;

lks_status lksi_store_create(struct lksi_store **store, struct lksi_dev *dev);
void lksi_store_destroy(struct lksi_store **store);
struct lksi_dev *lksi_store_dev(struct lksi_store *store);
/* The state `name`, created with zeros if new; its size never changes. Owned by the store. */
lks_status lksi_store_state(struct lksi_store *store, const char *name, uint64_t bytes,
                            struct lksi_buf **buf);
/* Memory chunk `index` of at least `bytes`, shared by all plans. Owned by the store. */
lks_status lksi_store_chunk(struct lksi_store *store, size_t index, uint64_t bytes,
                            struct lksi_buf **buf);
/* Schedules that failed admission on the store's device: no plan chooses them again. */
bool lksi_store_struck(const struct lksi_store *store, const struct lksi_op *op,
                       const struct lksi_schedule *schedule);
lks_status lksi_store_strike(struct lksi_store *store, const struct lksi_op *op,
                             const struct lksi_schedule *schedule);

/* What tuning knows of the device; NULL: nothing is asked. */
struct lksi_tuning *lksi_store_tuning(const struct lksi_store *store);

/* ---- memory of a graph, known before anything is allocated ---- */

struct lksi_memory {
    uint64_t state, input, values, work; /* bytes; `values` is the peak within a step */
    uint64_t total;
    size_t chunks; /* buffers that hold the values */
};

/* Where a value or a workspace lies within a step. */
struct lksi_slot {
    uint64_t bytes, offset;
    size_t chunk;
    int first, last; /* nodes */
};

/*
 * Lays out slots so that those alive at the same node do not overlap, each chunk at most
 * `max_chunk` bytes, offsets multiples of `align`. Fills chunk and offset; chunk_bytes (n slots
 * long at most) and n_chunk receive the result. LKS_E_MEMORY if one slot exceeds max_chunk.
 */
lks_status lksi_layout(struct lksi_slot *slot, size_t n, uint64_t align, uint64_t max_chunk,
                       uint64_t *chunk_bytes, size_t *n_chunk);

/* ---- plan ---- */

struct lksi_plan;

struct lksi_plan_params {
    struct lksi_store *store;
    struct lksi_build_progress progress;
    bool plain;        /* only `plain` schedules (on `ref`: contract items) */
    bool no_admission; /* skip rule 14 (the harness and bench have checked already) */
};

/* Takes over *graph and sets it to NULL, on failure too. */
lks_status lksi_plan_create(struct lksi_plan **plan, struct lks_graph **graph,
                            const struct lksi_plan_params *params);
/* The memory that a plan of *graph would take; allocates and builds nothing. Takes over *graph.
 * LKS_E_MEMORY if it does not fit the device. */
lks_status lksi_plan_measure(struct lksi_memory *memory, struct lks_graph **graph,
                             struct lksi_store *store);
void lksi_plan_destroy(struct lksi_plan **plan);
const struct lks_graph *lksi_plan_graph(const struct lksi_plan *plan);
const struct lksi_memory *lksi_plan_memory(const struct lksi_plan *plan);

/* Lets the input `value` be read from `buf` (at least its size) from the next run on. */
lks_status lksi_plan_set_input(struct lksi_plan *plan, lksi_value value, struct lksi_buf *buf);

/* Queues one step. */
lks_status lksi_plan_run(struct lksi_plan *plan);

/* After the plan ran once: lets the binary cache keep what was compiled late. */
lks_status lksi_plan_settle(struct lksi_plan *plan);

/* Single stages, to look between them. */
size_t lksi_plan_stages(const struct lksi_plan *plan);
struct lksi_stage *lksi_plan_stage(struct lksi_plan *plan, size_t index);
const char *lksi_plan_stage_name(const struct lksi_plan *plan, size_t index);
/* The followers that it absorbed, "relu (relu1), ..."; NULL: none. */
const char *lksi_plan_stage_fused(const struct lksi_plan *plan, size_t index);
lks_status lksi_plan_run_stage(struct lksi_plan *plan, size_t index);

/* Reads a value that is alive (kept, a state, or just computed). Blocks. */
lks_status lksi_plan_read(struct lksi_plan *plan, lksi_value value, void *data);
/* The buffer of a value, NULL for inputs that are not set. */
struct lksi_buf *lksi_plan_buf(struct lksi_plan *plan, lksi_value value);

/* ---- admission (numerics.md, rule 14) ---- */

/*
 * Runs the stage on seeded data at its own shapes and compares a sample of its outputs with the
 * contract's items. *right receives the answer; "no" is logged in one line. Verdicts are cached.
 * `program` built the stage.
 */
lks_status lksi_admit(const struct lksi_stage *stage, struct lksi_program *program, bool *right);

#endif
