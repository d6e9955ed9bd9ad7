/*
 * model.c - a model file: name and initial values. model_data.c reads the data, model_layers.c the
 * layers, model_loss.c the losses, model_train.c how to train; yaml.h does the reading of values and
 * most of the complaining.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fenv.h"
#include "graph/graph.h"
#include "model/model.h"

static const char *const init_words[] = {
    [LKS_INIT_GLOROT_UNIFORM] = "glorot_uniform",
    [LKS_INIT_HE_NORMAL] = "he_normal",
    [LKS_INIT_ZERO] = "zero",
};

static lks_status read_network(struct lks_model *m, const struct lksi_node *root)
{
    const struct lksi_node *node;
    struct lks_graph_params gp = {LKS_INIT_GLOROT_UNIFORM};
    struct lksi_str canon = {0};
    size_t word = LKS_INIT_GLOROT_UNIFORM;
    lks_status st;
    node = lksi_node_get(root, "init");
    if (node != NULL)
        LKSI_TRY(lksi_node_choice(node, init_words, LKSI_COUNT(init_words), &word));
    gp.init = (lks_init)word;
    LKSI_TRY(lks_graph_create(&m->graph, &gp));
    LKSI_TRY(lksi_model_input(m));
    lksi_model_canon_head(m, &canon);
    m->blocks = lksi_node_get(root, "blocks");
    if (m->blocks != NULL)
        LKSI_TRY(lksi_node_is(m->blocks, LKSI_NODE_MAPPING, "blocks: {basic: {layers: [relu]}}"));
    LKSI_TRY(lksi_node_need(root, "layers", "layers: [dense: {out: 10}]", &node));
    LKSI_TRY(lksi_model_layers(m, node, &canon));
    LKSI_TRY(lksi_model_loss(m, root, &canon));
    LKSI_TRY(lksi_model_check_reach(m, root));
    lksi_str_add(&canon, "init %s\n", init_words[gp.init]);
    st = canon.failed ? LKS_E_MEMORY : lksi_sha256_bytes(canon.text, canon.length, m->sha256);
fail:
    free(canon.text);
    return st;
}

static lks_status read_name(struct lks_model *m, const struct lksi_node *root)
{
    const struct lksi_node *node;
    const char *name;
    lks_status st;
    LKSI_TRY(lksi_node_need(root, "name", "name: lenet", &node));
    LKSI_TRY(lksi_node_string(node, "name: lenet", &name));
    /* The default output folder is runs/NAME. */
    if (name[0] == '\0' || name[0] == '.' || strlen(name) > 64 || strchr(name, '/') != NULL)
        return lksi_node_expected(node, "1 to 64 characters without `/` and no dot in front",
                                  "name: lenet");
    for (const char *p = name; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            return lksi_node_expected(node, "a name without control characters", "name: lenet");
    m->name = lksi_strdup(name);
    st = m->name != NULL ? LKS_OK : LKS_E_MEMORY;
fail:
    return st;
}

static lks_status open_model(lks_model **model, const char *path)
{
    static const char *const keys[] = {"name", "data",   "blocks", "layers",
                                       "loss", "losses", "init",   "train"};
    const struct lksi_node *root;
    struct lksi_yaml *doc = NULL;
    lks_model *m = NULL;
    lks_status st;
    LKSI_TRY(lksi_yaml_load(path, &doc));
    m = lksi_alloc(1, sizeof *m);
    if (m == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    root = lksi_yaml_root(doc);
    LKSI_TRY(lksi_node_is(root, LKSI_NODE_MAPPING, "name: lenet"));
    LKSI_TRY(lksi_node_check_keys(root, keys, LKSI_COUNT(keys)));
    LKSI_TRY(read_name(m, root));
    LKSI_TRY(lksi_model_train(m, root));
    LKSI_TRY(lksi_model_data(m, root));
    LKSI_TRY(read_network(m, root));
    LKSI_TRY(lksi_model_check_train(m, root));
    m->blocks = NULL; /* goes with the document */
    lksi_yaml_destroy(&doc);
    *model = m;
    return LKS_OK;
fail:
    lksi_yaml_destroy(&doc);
    lks_model_destroy(&m);
    return st;
}

lks_status lks_model_open(lks_model **model, const char *path)
{
    struct lksi_fenv env;
    lks_status st;
    if (model == NULL || path == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_model_open: `model` or `path` is NULL");
    lksi_fenv_enter(&env);
    st = open_model(model, path);
    lksi_fenv_leave(&env);
    return st;
}

void lks_model_destroy(lks_model **model)
{
    lks_model *m;
    if (model == NULL || *model == NULL)
        return;
    m = *model;
    for (size_t i = 0; i < m->n_layer; i++) {
        free(m->layer[i].name);
        free(m->layer[i].from);
        free(m->layer[i].owner);
    }
    for (size_t i = 0; i < m->n_block; i++)
        free(m->block[i].name);
    free(m->block);
    free(m->layer);
    free(m->name);
    lksi_model_update_free(m->update);
    lks_graph_destroy(&m->graph);
    lks_dataset_destroy(&m->train);
    lks_dataset_destroy(&m->test);
    free(m);
    *model = NULL;
}

const char *lks_model_name(const lks_model *model)
{
    return model->name;
}

const char *lks_model_sha256(const lks_model *model)
{
    return model->sha256;
}

const lks_graph *lks_model_graph(const lks_model *model)
{
    return model->graph;
}

const lks_dataset *lks_model_train_data(const lks_model *model)
{
    return model->train;
}

const lks_dataset *lks_model_test_data(const lks_model *model)
{
    return model->test;
}

struct lks_normalize lks_model_normalize(const lks_model *model)
{
    return model->normalize;
}

uint32_t lks_model_classes(const lks_model *model)
{
    return model->classes;
}

void lks_model_trainer_params(const lks_model *model, struct lks_trainer_params *params)
{
    *params = model->params;
    params->data = model->train;
}

size_t lks_model_layer_count(const lks_model *model)
{
    return model->n_layer;
}

lks_status lks_model_layer(const lks_model *model, size_t index, struct lks_layer_info *info)
{
    const struct lksi_layer *l;
    struct lks_layer_info made;
    if (model == NULL || info == NULL || index >= model->n_layer)
        return lksi_fail(LKS_E_ARGUMENT,
                         "lks_model_layer: layer %zu does not exist, or an "
                         "argument is NULL",
                         index);
    l = &model->layer[index];
    made = (struct lks_layer_info){
        .name = l->name,
        .type = l->type,
        .from = l->from,
        .rank = l->rank,
        .parameters = l->parameters,
        .multiply_adds = l->multiply_adds,
    };
    memcpy(made.dims, l->dims, sizeof made.dims);
    *info = made;
    return LKS_OK;
}

lks_status lks_model_value(const lks_model *m, const char *name, lks_value *value)
{
    size_t at;
    if (m == NULL || name == NULL || value == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_model_value: an argument is NULL");
    at = lksi_model_layer_called(m, name);
    if (at == 0 && strcmp(name, "input") != 0)
        return lksi_fail(LKS_E_ARGUMENT, "no layer is named `%s`; `lockstep summary` lists them",
                         name);
    *value = at == 0 ? m->input : m->layer[at - 1].value;
    return LKS_OK;
}
