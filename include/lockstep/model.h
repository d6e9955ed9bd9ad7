/*
 * model.h - model files: a network, its data and how to train it, in YAML.
 *
 *     lks_model *m;
 *     lks_trainer *t;
 *     struct lks_trainer_params p;
 *     lks_model_open(&m, "lenet.yaml");
 *     lks_model_trainer_params(m, &p);
 *     p.device = device;
 *     lks_trainer_create(&t, lks_model_graph(m), &p);
 *     lks_trainer_fit(t, lks_fit_params(.train = lks_model_train_data(m)));
 *
 * docs/models.md describes the format.
 */
#ifndef LOCKSTEP_MODEL_H
#define LOCKSTEP_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/dataset.h>
#include <lockstep/graph.h>
#include <lockstep/status.h>
#include <lockstep/trainer.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lks_model lks_model;

/*
 * Reads a model file and opens its data, whose paths are relative to the file. LKS_E_IO if the
 * model file or a data file cannot be read, LKS_E_INPUT if something in one of them is wrong: the
 * text names file, line and key, and what would be right. LKS_E_MEMORY. The model owns its graph
 * and data sets; destroy it after every trainer that uses them. Blocks while the files are read.
 * Different models may be used by different threads.
 */
LKS_API lks_status lks_model_open(lks_model **model, const char *path);
/* Destroys the model and sets *model to NULL; NULL and a pointer to NULL are allowed. */
LKS_API void lks_model_destroy(lks_model **model);

/* These need a model (not NULL), cannot fail and do not block; what they return belongs to the model
 * and is valid until it is destroyed. Thread-safe. */

/* The key `name` of the file. */
LKS_API const char *lks_model_name(const lks_model *model);
/*
 * sha256, in lower-case hex, of what the network is: input shape, normalisation, layers, names,
 * initial values and loss, with all defaults filled in. Comments, order of keys, paths and the
 * `train` section do not change it.
 */
LKS_API const char *lks_model_sha256(const lks_model *model);
LKS_API const lks_graph *lks_model_graph(const lks_model *model);
LKS_API const lks_dataset *lks_model_train_data(const lks_model *model);
LKS_API const lks_dataset *lks_model_test_data(const lks_model *model); /* NULL if there is none */
LKS_API struct lks_normalize lks_model_normalize(const lks_model *model);
/* Classes: the outputs of the layer whose loss reads labels; 0 if no loss does. */
LKS_API uint32_t lks_model_classes(const lks_model *model);

/* Writes *params: batch, epochs, seed, leaf, drop_last and optimiser from the file, and the training
 * data, else zero. What it points to is the model's. */
LKS_API void lks_model_trainer_params(const lks_model *model, struct lks_trainer_params *params);

/* What `lockstep summary` shows of a layer. Strings belong to the model. */
struct lks_layer_info {
    const char *name, *type; /* "conv1", "conv2d" */
    const char *from;        /* name of the layer it takes, "input" for the image */
    int rank;                /* of its output, without the batch */
    int64_t dims[4];
    int64_t parameters;    /* scalars */
    int64_t multiply_adds; /* of a sample, forward */
};
LKS_API size_t lks_model_layer_count(const lks_model *model);
/* LKS_E_ARGUMENT past the last layer. */
LKS_API lks_status lks_model_layer(const lks_model *model, size_t index,
                                   struct lks_layer_info *info);
/* *value is what the layer `name` gives (of a block's use: its last layer; "input": the data), for
 * lks_trainer_output and lks_trainer_params.keep. LKS_E_ARGUMENT if there is no such layer. */
LKS_API lks_status lks_model_value(const lks_model *model, const char *name, lks_value *value);

#ifdef __cplusplus
}
#endif
#endif
