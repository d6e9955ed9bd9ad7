/*
 * graph.h - the graph behind lks_graph: values, nodes, and how it is copied for a batch size.
 *
 * A model graph is built with batch 1. lksi_graph_at_batch copies it for the batch size of a step;
 * autodiff, fusion and the training operators are added to that copy, which a plan then runs.
 * Nodes stand in the order in which they run.
 */
#ifndef LKSI_GRAPH_H
#define LKSI_GRAPH_H

#include <lockstep/graph.h>

#include "op/op.h"

enum lksi_value_kind {
    LKSI_VALUE_NODE,  /* an operator's output */
    LKSI_VALUE_INPUT, /* written by the host before each step */
    LKSI_VALUE_STATE  /* lives on the device over all steps: parameters, optimiser, flags */
};

struct lksi_gvalue {
    enum lksi_value_kind kind;
    char *name; /* of inputs and states; may be NULL for nodes' outputs */
    struct lksi_desc desc;
    bool batched;        /* inputs: dimension 0 is the batch */
    bool keep;           /* still readable after the step */
    int node;            /* producer, or -1 */
    lksi_value home;     /* the state this value is stored in, or LKSI_NONE */
    int64_t home_offset; /* in elements */
};

struct lksi_gnode {
    struct lksi_call call; /* call.attr is owned by the node */
    lksi_value in[LKSI_MAX_IN], out[LKSI_MAX_OUT];
    char *name; /* "conv1", "conv1.weight_grad"; for messages */
    char *fused; /* followers it absorbed, "relu (relu1), ..."; NULL: none */
    bool dead;  /* absorbed by a neighbour */
};

struct lksi_param {
    char *name; /* "conv1.weight" */
    lksi_value value;
    lks_init init;
    int64_t fan_in, fan_out;
    bool constant; /* starts at `start` everywhere, whatever `init` says */
    float start;
};

/* A tensor that is kept with the parameters but not trained: a running statistic. */
struct lksi_buffer {
    lksi_value value; /* a state, whose name it has */
    float start;
};

/* A batch normalisation of the model, as it was built: node `node` writes statistics that the
 * running ones take in; in an evaluation the running ones are used. */
struct lksi_norm {
    size_t node;
    lksi_value mean, variance, running_mean, running_var;
};

/* A loss: one term of weight 1, or the sum of several (operator loss_sum). */
enum { LKSI_MAX_LOSSES = 5, LKSI_MAX_TERMS = 6 };
struct lksi_loss {
    char *name;
    lksi_value value;
    int n_term;
    lksi_value term[LKSI_MAX_TERMS];
    float weight[LKSI_MAX_TERMS];
};

struct lks_graph {
    struct lksi_builder builder; /* first: operators' gradients get this */
    uint32_t batch, leaf;
    lks_init init;
    struct lksi_gvalue *value;
    size_t n_value, cap_value;
    struct lksi_gnode *node;
    size_t n_node, cap_node;
    lksi_value *name; /* hash table of named values: open addressing, LKSI_NONE where empty */
    size_t n_name, cap_name; /* a power of two, never full */
    struct lksi_param *param;
    size_t n_param, cap_param;
    struct lksi_buffer *buffer;
    size_t n_buffer, cap_buffer;
    struct lksi_norm *norm;
    size_t n_norm, cap_norm;
    struct {
        const char *prefix;
        int count;
    } kind[32]; /* layers of each kind so far, for default names */
    size_t n_kind;
    lksi_value logits, label; /* LKSI_NONE before the loss */
    lksi_value loss, prob, hit; /* `loss`: of losses[0]; `hit`: of each position */
    struct lksi_loss losses[LKSI_MAX_LOSSES];
    size_t n_loss;
    lksi_value step;          /* LKSI_NONE before its first use (lksi_graph_step_value) */
    const char *scope;        /* prefix of the names of nodes being added */
};

/* Adds a value that the host writes before each step. */
lks_status lksi_graph_add_input(struct lks_graph *g, const char *name,
                                const struct lksi_desc *desc, bool batched, lksi_value *out);
/*
 * The input "step", I32[LKSI_STEP_WORDS], made at its first use: what an operator needs that draws
 * random numbers (numerics.md, rule 10). Its words, all unsigned:
 *   0  c3: the training's step modulo LKSI_STEP_RANGE; LKSI_STEP_EVALUATION in an evaluation
 *   1  the slot of the ring that `record` writes
 *   2  the seed's low word
 *   3  the seed's high word
 *   4  the number of the batch's first sample, where elements begin to count: 0 in training, its
 *      place in the data in an evaluation, so that the size of the batches changes nothing
 */
enum { LKSI_STEP_WORDS = 5, LKSI_STEP_RANGE = 0x40000000 };
#define LKSI_STEP_EVALUATION 0xffffffffu
lks_status lksi_graph_step_value(struct lks_graph *g, lksi_value *out);

/* Adds a value that lives on the device, stored in `home` at an offset or (LKSI_NONE) by itself. */
lks_status lksi_graph_add_state(struct lks_graph *g, const char *name,
                                const struct lksi_desc *desc, lksi_value home, int64_t offset,
                                lksi_value *out);
/* Adds an operator behind the others. `name` may be NULL. */
lks_status lksi_graph_add_node(struct lks_graph *g, const char *name, const char *op,
                               const void *attr, int n_in, const lksi_value *in, lksi_value *out);

/*
 * A public call that adds more than one thing ends with
 *     LKSI_RETURN_WHOLE(g, add_it(g, ...));
 * which returns add_it's status and, if that is a failure, takes back all that it added (whole.c).
 * It may hold others. `g` may be NULL. Only what lies in struct lks_graph itself and new entries of
 * its arrays are taken back, so add_it must change no entry that was there before.
 */
#define LKSI_RETURN_WHOLE(g, call)                                                                 \
    do {                                                                                           \
        const struct lks_graph before_ = lksi_graph_mark(g);                                       \
        return lksi_graph_settle(g, &before_, (call));                                             \
    } while (0)
struct lks_graph lksi_graph_mark(const struct lks_graph *g);
lks_status lksi_graph_settle(struct lks_graph *g, const struct lks_graph *before, lks_status st);
/* Frees what the entries of g's arrays own that `before` did not have. */
void lksi_graph_free_behind(struct lks_graph *g, const struct lks_graph *before);

/* Lets the input `x` be the output of an operator that runs before all others. Its inputs are inputs
 * or states. Before gradients only: it moves the nodes. */
lks_status lksi_graph_make_input(struct lks_graph *g, lksi_value x, const char *op,
                                 const void *attr, int n_in, const lksi_value *in);
/* Value with this name, or LKSI_NONE. */
lksi_value lksi_graph_find(const struct lks_graph *g, const char *name);
/* Makes room in the table of names for one more; false if memory is out. */
bool lksi_graph_room_for_name(struct lks_graph *g);
/* Enters the value `v`, which has a name that is not in the table; there must be room. */
void lksi_graph_enter_name(struct lks_graph *g, lksi_value v);
/* Empties the table and enters all named values. */
void lksi_graph_enter_names(struct lks_graph *g);

/* A copy of a model graph with another batch size and leaf. */
lks_status lksi_graph_at_batch(struct lks_graph **copy, const struct lks_graph *model,
                               uint32_t batch, uint32_t leaf);

/* The same for an evaluation: batch normalisations use their running statistics. */
lks_status lksi_graph_for_evaluation(struct lks_graph **copy, const struct lks_graph *model,
                                     uint32_t batch, uint32_t leaf);

/*
 * Reverse mode: adds the operators that compute the gradient of `loss` (one element) for the values
 * wanted[i], parameters or any others, in grad[i]; each is a new value without a home. It may be
 * called again for another loss and other values. What flows back from several uses is added as
 * rules 8 and 9 of numerics.md say (blocks.h). A value that does not reach the loss is an error.
 */
lks_status lksi_graph_backward(struct lks_graph *g, lksi_value loss, size_t n_wanted,
                               const lksi_value *wanted, lksi_value *grad);
/* The same inside a model, whose batch is not known yet: d(sum of y)/dx, see lks_graph_gradient. */
lks_status lksi_graph_inner_gradient(struct lks_graph *g, lksi_value y, lksi_value x,
                                     lksi_value *dx);

/* reached[v]: one of the n values depends on value v; with `gradients`, by a way along which a
 * gradient flows back. */
void lksi_graph_reach(const struct lks_graph *g, size_t n, const lksi_value *values, bool gradients,
                      bool *reached);

/* Lets operators absorb their only followers (lksi_op.absorb). Moves no bit. */
lks_status lksi_graph_fuse(struct lks_graph *g);
/* Drops operators that neither a kept value nor a state needs. Call it last. */
lks_status lksi_graph_prune(struct lks_graph *g);

#endif
