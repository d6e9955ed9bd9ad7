/*
 * leaf_gpu.c - see leaf_gpu.h.
 */
#include <stdio.h>

#include "contract/piece.h"
#include "op/leaf_gpu.h"

/* TOGETHER: a piece a work-item. */
enum { GROUP = 128, CHANNELS = 8, TOGETHER = GROUP / CHANNELS * LKS_SPAN };

static struct lks_leaf leaf_of(const struct lksi_leaf_shape *s)
{
    return lks_leaf_make(s->n, s->h, s->w, s->leaf);
}

/* Floats of local memory for `pieces` pieces of a tile, gaps included. */
static U64 tile_floats(U64 pieces)
{
    return pieces * (LKS_SPAN + 1) * CHANNELS;
}

/* Bytes of the kernel's argument `room`, and all of its local memory. */
static U64 room_bytes(enum lksi_leaf_numbers numbers, const struct lksi_leaf_shape *s)
{
    struct lks_leaf f = leaf_of(s);
    U64 pieces = ((U64)f.join * f.step * s->w + LKS_SPAN - 1) / LKS_SPAN;
    U64 floats = pieces * CHANNELS * (numbers == LKSI_LEAF_SUMS ? 2 : 1);
    return (floats + (numbers == LKSI_LEAF_MOMENTS ? tile_floats(pieces) : 0)) * sizeof(F32);
}

static U64 local_bytes(enum lksi_leaf_numbers numbers, const struct lksi_leaf_shape *s)
{
    U64 tiles = numbers == LKSI_LEAF_MOMENTS ? 0 : numbers == LKSI_LEAF_SUMS ? 2 : 1;
    return room_bytes(numbers, s) + tiles * tile_floats(TOGETHER / LKS_SPAN) * sizeof(F32);
}

bool lksi_leaf_serves(enum lksi_leaf_numbers numbers, const struct lksi_leaf_shape *s,
                      const struct lksi_limits *dev)
{
    return dev->type == LKSI_DEV_GPU && s->channels % 4 == 0 && dev->max_group >= GROUP &&
           dev->max_item[0] >= GROUP && local_bytes(numbers, s) <= dev->local_memory && leaf_of(s).leaves <= 65535;
}

void lksi_leaf_launch(enum lksi_leaf_numbers numbers, const struct lksi_leaf_shape *s,
                      struct lksi_recipe *r)
{
    static const struct {
        const char *kernel, *macro;
        int n_in;
    } kind[] = {{"moments", "MOMENTS", 1}, {"sums", "SUMS", 4}, {"sums", "BIAS", 1}};
    const U32 size[] = {s->n, s->h, s->w, s->channels, s->leaf};
    struct lksi_launch *l = &r->launch[r->n_launch++];
    U32 leaves = leaf_of(s).leaves;
    l->source = "op/leaf_gpu.cl";
    l->kernel = kind[numbers].kernel;
    snprintf(l->defines, sizeof l->defines, "%s NT=%d KX=%d TOGETHER=%du", kind[numbers].macro,
             GROUP, CHANNELS, TOGETHER);
    for (int i = 0; i < kind[numbers].n_in; i++)
        l->arg[l->n_arg++] = LKSI_IN(i);
    l->arg[l->n_arg++] = LKSI_WORK(0);
    for (size_t i = 0; i < LKSI_COUNT(size); i++)
        l->arg[l->n_arg++] = LKSI_U32(size[i]);
    l->arg[l->n_arg++] = LKSI_LOCAL(room_bytes(numbers, s));
    l->dims = 2;
    l->local[0] = GROUP;
    l->local[1] = 1;
    l->global[0] = (size_t)(s->channels + CHANNELS - 1) / CHANNELS * GROUP;
    l->global[1] = leaves;
    r->n_work = 1;
    r->work_bytes[0] =
        (U64)leaves * s->channels * sizeof(F32) * (numbers == LKSI_LEAF_BIAS ? 1 : 2);
}
