/*
 * product_tile.h - tiles of the GPU schedules of matrix products and convolutions, and the choice
 * among them. A tile decides speed alone.
 */
#ifndef LKSI_OP_PRODUCT_TILE_H
#define LKSI_OP_PRODUCT_TILE_H

#include "op/op.h"

/* Rows and columns of a work-group and of a work-item, k's of a tile, buffers in local memory. */
struct lksi_tile {
    U32 bm, bn, tm, tn, bk, s;
    U32 turned; /* a forward pass reads the weights as they stand; 0: they are packed first */
    U32 level;  /* of NVIDIA's optimiser: 1 keeps the order of fmas, hence the reuse of operands;
                   3, its default, hides latency better where a work-item has few sums */
};

enum lksi_product { LKSI_PRODUCT_FORWARD, LKSI_PRODUCT_DATA, LKSI_PRODUCT_WEIGHT };

/* The tile `wanted`, or (0) the one that takes the least estimated time for `copies` products of
 * rows x columns, each with a chain of `taps` times `link`. */
struct lksi_tile lksi_tile_choose(enum lksi_product kind, U64 rows, U32 columns, U64 copies,
                                  U32 taps, U32 link, const struct lksi_limits *dev, bool nv,
                                  int wanted);
/* The tile that `wanted` (from 1) stands for, in words; false past the last. */
bool lksi_tile_name(enum lksi_product kind, bool nv, int wanted, char text[LKSI_CHOICE_TEXT]);

static inline size_t lksi_tile_items(struct lksi_tile t)
{
    return (size_t)(t.bm / t.tm) * (t.bn / t.tn);
}

#endif
