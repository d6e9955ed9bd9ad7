/*
 * conv2d_data_grad_cpu.c - the CPU schedule of conv2d_data_grad: the forward kernel with the roles
 * of k and c exchanged, one class of positions modulo the stride after the other. Kernels:
 * cl/op/conv_cpu.cl.
 */
#include <stdio.h>

#include "op/conv_cpu.h"
#include "op/conv_gpu.h"

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    bool depth = lksi_conv_cpu_depth(d);
    U32 wide = depth ? d->c : d->c / d->groups;
    struct lksi_conv_tile t = lksi_conv_cpu_tile(wide, depth, r->tuned[0]);
    U32 kg = d->k / d->groups, chain = d->r * d->s * kg, nb = t.vec * t.nv;
    U64 blocks = (d->c / wide) * lksi_div_up(wide, nb);
    U32 zeros = depth ? nb : kg;
    /* the largest class; the others stop short of it */
    U64 positions = d->n * lksi_div_up(d->h, d->stride_h) * lksi_div_up(d->w, d->stride_w);
    U64 tiles = lksi_div_up(positions, t.mr), classes = (U64)d->stride_h * d->stride_w;
    double flops = 2.0 * t.mr * nb * chain / (double)classes;
    U32 per = lksi_conv_cpu_per_item(flops, tiles * blocks * classes, dev, r->tuned[1]);
    struct lksi_launch *l = &r->launch[0];

    r->n_work = 3; /* packed weights, zeros, packed bias */
    r->work_bytes[0] = blocks * chain * nb * 4;
    r->work_bytes[1] = (U64)zeros * 4;
    r->work_bytes[2] = d->extra == 2 ? blocks * nb * 4 : 64;
    l->kernel = "pack";
    const struct lksi_arg pack[] = {
        LKSI_IN(1),   LKSI_IN(d->extra == 2 ? 2 : 1), LKSI_WORK(0),   LKSI_WORK(2),
        LKSI_WORK(1), LKSI_DIMS,                      LKSI_U32(zeros)};
    lksi_launch_args(l, pack, LKSI_COUNT(pack));
    lksi_launch_size(l, lksi_div_up(chain, LKSI_CONV_PACKED), blocks, 1);
    l++;
    l->kernel = "conv";
    const struct lksi_arg conv[] = {
        LKSI_IN(0),  LKSI_WORK(0), LKSI_WORK(1),
        d->extra == 2 ? LKSI_WORK(2) : LKSI_IN(call->n_in > 2 ? 2 : 0),
        LKSI_OUT(0), LKSI_DIMS,    LKSI_U32(per)};
    lksi_launch_args(l, conv, LKSI_COUNT(conv));
    lksi_launch_size(l, lksi_div_up(tiles, per), blocks, classes);
    r->n_launch = 2;
    for (int i = 0; i < r->n_launch; i++) {
        r->launch[i].source = "op/conv_cpu.cl";
        snprintf(r->launch[i].defines, sizeof r->launch[i].defines,
                 "MR=%u NV=%u VEC=%u GRAD=1 FRAMED=0 DEPTH=%u PIECES=%u", t.mr, t.nv, t.vec, depth,
                 lks_piece_many(d->r * d->s, kg) != 0);
    }
}

static bool tile(const struct lksi_call *call, const struct lksi_limits *dev, int index,
                 char text[LKSI_CHOICE_TEXT])
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    bool depth = lksi_conv_cpu_depth(d);
    (void)dev;
    return lksi_conv_cpu_tile_name(depth ? d->c : d->c / d->groups, depth, index, text);
}

static const struct lksi_tunable tunables[] = {
    {"tile", tile}, {"work", lksi_conv_cpu_work}, {NULL, NULL}};

const struct lksi_schedule lksi_conv2d_data_grad_schedules[] = {
    {"depth", lksi_conv_depth_declines, lksi_conv_depth_grad_recipe},
    {"few", lksi_conv_few_grad_declines, lksi_conv_few_grad_recipe},
    {"cpu", lksi_conv_cpu_declines, recipe, tunables, 0},
    LKSI_GPU_LINES(conv2d_data_grad, product),
    {NULL, NULL, NULL},
};
