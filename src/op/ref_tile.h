/*
 * ref_tile.h - tiles of 4 x 16 sums in registers, and a binary counter of them: how the C loops of
 * the weight gradients walk the tree over leaves (lks_counter of sum.h, for 64 trees at once).
 */
#ifndef LKSI_OP_REF_TILE_H
#define LKSI_OP_REF_TILE_H

#include "contract/sum.h"
#include "op/conv_ref.h"

#define REF_ROWS 4

struct ref_tile {
    F32 v[REF_ROWS][REF_LANES];
};

struct ref_tiles {
    U32 count;
    struct ref_tile partial[LKS_TREE_LEVEL];
};

REF_INLINE void ref_tile_add(struct ref_tile *to, const struct ref_tile *first)
{
    for (int r = 0; r < REF_ROWS; r++)
        for (int j = 0; j < REF_LANES; j++)
            to->v[r][j] = first->v[r][j] + to->v[r][j];
}

/* Ends a piece of a leaf (piece.h): its sums join `sum`, and it starts at +0 again. */
REF_INLINE void ref_tile_turn(struct ref_tile *sum, struct ref_tile *piece)
{
    for (int r = 0; r < REF_ROWS; r++)
        for (int j = 0; j < REF_LANES; j++) {
            sum->v[r][j] = sum->v[r][j] + piece->v[r][j];
            piece->v[r][j] = 0.0f;
        }
}

/* Takes in the next leaf; `v` is used up. */
REF_INLINE void ref_tiles_push(struct ref_tiles *t, struct ref_tile *v)
{
    U32 level = 0;
    for (U32 k = t->count; (k & 1) != 0; k >>= 1)
        ref_tile_add(v, &t->partial[level++]);
    t->partial[level] = *v;
    t->count++;
}

/* The sum of all leaves, of which there is at least one. */
REF_INLINE void ref_tiles_root(const struct ref_tiles *t, struct ref_tile *v)
{
    bool have = false;
    for (U32 k = t->count, level = 0; k != 0; k >>= 1, level++) {
        if ((k & 1) == 0)
            continue;
        if (have)
            ref_tile_add(v, &t->partial[level]);
        else
            *v = t->partial[level];
        have = true;
    }
}

#endif
