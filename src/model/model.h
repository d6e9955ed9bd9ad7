/*
 * model.h - the model behind lks_model, shared by model.c (file, network), model_data.c,
 * model_layers.c and model_train.c.
 */
#ifndef LKSI_MODEL_H
#define LKSI_MODEL_H

#include <lockstep/model.h>

#include "base/base.h"
#include "base/hash.h"
#include "model/yaml.h"

#define LKSI_MODEL_MAX_FROM 32 /* values that a layer may take */

struct lksi_layer {
    char *name;
    const char *type; /* static */
    char *from;       /* the names of what it takes, ", " between */
    char *owner;      /* the layer whose parameters it shares, or NULL */
    int line, depth;  /* depth: blocks around it */
    lks_value value;
    int rank;
    int64_t dims[4], parameters, multiply_adds;
};

struct lksi_model_update;

struct lks_model {
    char *name;
    char sha256[LKSI_SHA256_HEX];
    lks_graph *graph;
    lks_dataset *train, *test;
    struct lks_normalize normalize;
    bool has_normalize; /* the file has the key */
    struct lks_trainer_params params;
    uint32_t classes;     /* 0: no loss has labels */
    size_t logits_layer;  /* that gives the classes, from 1 */
    lks_value input;
    struct lksi_layer *layer;
    size_t n_layer, cap_layer;
    struct {
        char *name;
        size_t last; /* its last layer */
    } *block;        /* uses of blocks, whose names mean their last layers */
    size_t n_block, cap_block;
    struct lksi_model_update *update; /* optimisers and groups, which params points to */
    const struct lksi_node *blocks; /* while the file is read: its blocks, or NULL */
};

/*
 * Adds the layers of a sequence to m->graph, behind m->input, and appends each in its canonical
 * form (every key, defaults filled in) to `canon`. LKS_E_INPUT names file, line and key.
 */
lks_status lksi_model_layers(struct lks_model *m, const struct lksi_node *layers,
                             struct lksi_str *canon);

/* model_data.c: the section `data`; */
lks_status lksi_model_data(struct lks_model *m, const struct lksi_node *root);
/* the input of the graph, shaped as the samples; */
lks_status lksi_model_input(struct lks_model *m);
/* the canonical form of what goes in, without the batch; */
void lksi_model_canon_head(const struct lks_model *m, struct lksi_str *canon);
/* and the check that the labels of `data` (`which` in the file) are outputs of the last layer. */
lks_status lksi_model_check_classes(const struct lks_model *m, const struct lksi_node *root,
                                    const lks_dataset *data, const char *which);

/* The layer or use of a block called `name`: its number from 1; 0: none. */
size_t lksi_model_layer_called(const struct lks_model *m, const char *name);

/* model_loss.c: `loss` or `losses`, appended to `canon`. */
lks_status lksi_model_loss(struct lks_model *m, const struct lksi_node *root,
                           struct lksi_str *canon);
/* The layer whose outputs are the classes. */
const char *lksi_model_logits_name(const struct lks_model *m);
/* Every parameter must reach a loss. */
lks_status lksi_model_check_reach(const struct lks_model *m, const struct lksi_node *root);
/* Those that an optimiser trains, own[i], must reach its loss (NULL: the first), which must exist. */
lks_status lksi_model_check_trained(const struct lks_model *m, const struct lksi_node *root,
                                    size_t optimizer, const char *loss, const bool *own);

/* model_train.c: the section `train`, and, once the network is known, its patterns. */
lks_status lksi_model_train(struct lks_model *m, const struct lksi_node *root);
lks_status lksi_model_check_train(const struct lks_model *m, const struct lksi_node *root);
void lksi_model_update_free(struct lksi_model_update *u);

#endif
