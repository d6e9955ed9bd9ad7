/*
 * blocks.h - groups of layers that a model file defines once and uses many times.
 *
 *     blocks:
 *       basic:
 *         args: {out: , stride: 1}         without a value: must be given
 *         layers:
 *           - conv2d: {out: $out, kernel: 3, stride: $stride, pad: 1}
 *           - add: {from: [conv1, in]}     `in` is what the block takes
 *     layers:
 *       - block: {use: basic, out: 64, times: 2, name: stage1}
 *
 * A use adds the layers with `NAME_` in front of their names; NAME itself then means the last one.
 */
#ifndef LKSI_MODEL_BLOCKS_H
#define LKSI_MODEL_BLOCKS_H

#include "model/yaml.h"

enum { LKSI_BLOCK_MAX_DEPTH = 8, LKSI_BLOCK_MAX_TIMES = 1024, LKSI_MODEL_MAX_LAYERS = 20000 };

/* The layers of a block with their arguments filled in. */
struct lksi_block_body {
    const struct lksi_node *layers; /* a sequence */
    struct lksi_node **made;        /* the nodes that belong to this body */
    size_t n_made, cap_made;
    char index[16]; /* the text of $i */
};

/*
 * Finds the block that `use` (the keys of a `- block:` layer) names in `blocks` (NULL: the file has
 * none), checks its arguments and fills them in; $i is `index`. The caller frees with lksi_block_body_free, also
 * after a failure. LKS_E_INPUT names file, line and key.
 */
lks_status lksi_block_body_make(const struct lksi_node *blocks, const struct lksi_node *use,
                                int index, struct lksi_block_body *body);
void lksi_block_body_free(struct lksi_block_body *body);

#endif
