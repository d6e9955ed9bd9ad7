/*
 * leaf_gpu.c - see leaf_gpu.h.
 */
#include <stdio.h>

#include "op/leaf_gpu.h"

enum { GROUP = 128, CHANNELS = 8, PIECE = 256 };

static struct lks_leaf leaf_of(const struct lksi_leaf_shape *s)
{
    return lks_leaf_make(s->n, s->h, s->w, s->leaf);
}

/* Local memory for the positions of the longest leaf. */
static U64 tile_bytes(const struct lksi_leaf_shape *s)
{
    struct lks_leaf f = leaf_of(s);
    return (U64)f.join * f.step * s->w * CHANNELS * sizeof(F32);
}

bool lksi_leaf_serves(enum lksi_leaf_numbers numbers, const struct lksi_leaf_shape *s,
                      const struct lksi_limits *dev)
{
    U64 bytes = numbers == LKSI_LEAF_MOMENTS ? tile_bytes(s)
                                             : 2 * PIECE * CHANNELS * sizeof(F32);
    return dev->type == LKSI_DEV_GPU && s->channels % 4 == 0 && dev->max_group >= GROUP &&
           dev->max_item[0] >= GROUP && bytes <= dev->local_memory && leaf_of(s).leaves <= 65535;
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
    snprintf(l->defines, sizeof l->defines, "%s NT=%d KX=%d PIECE=%d", kind[numbers].macro, GROUP,
             CHANNELS, PIECE);
    for (int i = 0; i < kind[numbers].n_in; i++)
        l->arg[l->n_arg++] = LKSI_IN(i);
    l->arg[l->n_arg++] = LKSI_WORK(0);
    for (size_t i = 0; i < LKSI_COUNT(size); i++)
        l->arg[l->n_arg++] = LKSI_U32(size[i]);
    if (numbers == LKSI_LEAF_MOMENTS)
        l->arg[l->n_arg++] = LKSI_LOCAL(tile_bytes(s));
    l->dims = 2;
    l->local[0] = GROUP;
    l->local[1] = 1;
    l->global[0] = (size_t)(s->channels + CHANNELS - 1) / CHANNELS * GROUP;
    l->global[1] = leaves;
    r->n_work = 1;
    r->work_bytes[0] =
        (U64)leaves * s->channels * sizeof(F32) * (numbers == LKSI_LEAF_BIAS ? 1 : 2);
}
