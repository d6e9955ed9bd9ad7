/*
 * scope.h - the names of a model file's layers, and where they are looked up: in one use of a block,
 * then around it. Shared by model_layers.c (layers), block_uses.c (uses of blocks) and scope.c.
 */
#ifndef LKSI_MODEL_SCOPE_H
#define LKSI_MODEL_SCOPE_H

#include "model/model.h"

enum { LKSI_MAX_CARRIED = 16 };

/* A name for what the use of a block before this one gave. Layers are counted from 1, 0 is the
 * model's input. */
struct lksi_carried {
    const char *name;
    size_t at;
};

/* The file's own layers, or those of one use of a block. */
struct lksi_scope {
    const struct lksi_scope *outer; /* NULL: the file itself */
    const char *prefix;             /* in front of the names of its layers */
    size_t first;                   /* the layers before it */
    size_t in;                      /* what it takes */
    int depth;
    size_t *uses; /* of blocks in it so far */
    const struct lksi_carried *carried;
    size_t n_carried;
    const char *share; /* the prefix of the use whose parameters it takes, or NULL */
};

/* The key of `node` may be the name of a layer. */
lks_status lksi_check_carried(const struct lksi_node *node);

/* The given name, or "conv2" for the second convolution of the scope; inside a block behind the
 * prefix. `count` is how many of its kind stand before it. The caller frees. */
lks_status lksi_read_layer_name(const struct lks_model *m, const struct lksi_scope *s,
                                const struct lksi_node *item, const struct lksi_node *map,
                                const char *prefix, size_t count, char **out);

/* `name` as the scope sees it: its own layers first, then those around it. Layers from 1; 0: none. */
lks_status lksi_look_up(const struct lks_model *m, const struct lksi_scope *s, const char *name,
                        size_t *out);

/* The earlier layer that `node` names: 0 for the input, i + 1 for layer i. */
lks_status lksi_find_layer(const struct lks_model *m, const struct lksi_scope *s,
                           const struct lksi_node *node, size_t *out);

/* The same, or of a name with `*` the layers that have 1, 2, 3, ... in its place; *n is how many
 * there are so far, `room` how many there may be. */
lks_status lksi_find_layers(const struct lks_model *m, const struct lksi_scope *s,
                            const struct lksi_node *node, size_t room, size_t *out, size_t *n);

/* model_layers.c: one layer, and a sequence of layers and uses of blocks. */
lks_status lksi_add_layer(struct lks_model *m, const struct lksi_scope *s,
                          const struct lksi_node *item, struct lksi_str *canon);
lks_status lksi_add_layers(struct lks_model *m, const struct lksi_scope *s,
                           const struct lksi_node *layers, struct lksi_str *canon);

/* block_uses.c: `- block: {use: NAME, times: N, name: X}`. */
lks_status lksi_add_block(struct lks_model *m, const struct lksi_scope *s,
                          const struct lksi_node *item, struct lksi_str *canon);

#endif
