/*
 * product_gpu.h - what the schedules `nv` (NVIDIA, inline PTX) and `gpu` (any GPU) of convolutions
 * and dense layers share. A dense layer is a convolution with one tap over one pixel.
 */
#ifndef LKSI_OP_PRODUCT_GPU_H
#define LKSI_OP_PRODUCT_GPU_H

#include "op/op.h"
#include "contract/conv.h"

/* ---- what the launches are written with ---- */

static inline void lksi_add(struct lksi_launch *l, struct lksi_arg a)
{
    l->arg[l->n_arg++] = a;
}

/* A uint2. */
static inline void lksi_add_pair(struct lksi_launch *l, U32 x, U32 y)
{
    lksi_add(l, LKSI_U64((U64)x | (U64)y << 32));
}

/* gx x gy x gz groups of lx x ly items. */
static inline void lksi_set_groups(struct lksi_launch *l, size_t lx, size_t ly, U64 gx, U64 gy,
                                   U64 gz)
{
    l->dims = 3;
    l->local[0] = lx;
    l->local[1] = ly;
    l->local[2] = 1;
    l->global[0] = (size_t)gx * lx;
    l->global[1] = (size_t)gy * ly;
    l->global[2] = (size_t)gz;
}

/* ---- products ---- */

/* NULL, or why the schedule does not serve the device; `nv` asks for NVIDIA. The portable one
 * also serves CPU devices, where it is slow: tests reach it there, tables put others first. */
const char *lksi_product_device(const struct lksi_limits *dev, bool nv);

/* conv2d (grad false) and conv2d_data_grad (grad true) over `d`. Inputs and outputs are numbered
 * as those operators have them; dense and dense_data_grad number theirs alike. */
const char *lksi_product_declines(const struct lks_conv_dims *d, bool grad,
                                  const struct lksi_limits *dev, bool nv);
void lksi_product_recipe(const struct lks_conv_dims *d, bool grad, const struct lksi_limits *dev,
                         bool nv, struct lksi_recipe *r);

/* conv2d_weight_grad over `d`, whose leaf is filled in: leaves, then their tree. */
const char *lksi_leaves_declines(const struct lks_conv_dims *d, const struct lksi_limits *dev,
                                 bool nv);
void lksi_leaves_recipe(const struct lks_conv_dims *d, const struct lksi_limits *dev, bool nv,
                        struct lksi_recipe *r);

/* NULL, or why that tree does not serve. */
const char *lksi_tree_declines(const struct lks_leaf *f, U64 elements,
                               const struct lksi_limits *dev);
/* Adds the launch of the tree over f->leaves sums of `elements` each, f->cut a sample. */
void lksi_tree_launch(struct lksi_recipe *r, const struct lks_leaf *f, U32 elements,
                      struct lksi_arg from, struct lksi_arg to);

/* ---- several products at once, of numbers that stand in workspaces ---- */

/* What is multiplied: `places` products beside each other, whose channels are multiples of 4.
 * source[rows][places][c], weights[places][c][k] -> result[rows][places][k] */
struct lksi_places {
    U32 rows, places, c, k;
};
/* NULL, or why lksi_places_launch does not serve. */
const char *lksi_places_decline(const struct lksi_places *p, const struct lksi_limits *dev, bool nv);
void lksi_places_launch(struct lksi_recipe *r, const struct lksi_places *p,
                        const struct lksi_limits *dev, bool nv, struct lksi_arg source,
                        struct lksi_arg weights, struct lksi_arg result);

/* NULL, or why lksi_leaves_launch does not serve. */
const char *lksi_leaves_fit(const struct lks_conv_dims *d, const struct lksi_limits *dev, bool nv);
/* Leaves of conv2d_weight_grad over `d`, in part[leaf][k][r][s][c / groups]. `turn`: each turn has its
 * own d->leaf.leaves of them. */
void lksi_leaves_launch(struct lksi_recipe *r, const struct lks_conv_dims *d,
                        const struct lksi_limits *dev, bool nv, struct lksi_arg x,
                        struct lksi_arg dy, struct lksi_arg part, bool turn);

static inline U32 lksi_up(U32 a, U32 b)
{
    return (a + b - 1) / b;
}

#endif
