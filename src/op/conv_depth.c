/*
 * conv_depth.c - schedules `depth` of depthwise convolutions: conv2d and conv2d_data_grad, on CPU
 * devices and on GPUs; conv2d_weight_grad on GPUs. Kernels: cl/op/conv_depth.cl.
 */
#include <stdio.h>

#include "op/conv_cpu.h"
#include "op/flat.h"
#include "op/product_gpu.h"

#define TAPS_MAX 128 /* that the table of a kernel holds, or that it unrolls */

const char *lksi_conv_depth_declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    if (d->groups != d->c || d->groups != d->k)
        return "made for one channel a group";
    if (d->c < 8)
        return "too few channels";
    if ((U64)d->h * d->w * d->c > 0x7fffffffu || (U64)d->oh * d->ow * d->c > 0x7fffffffu)
        return "an image is too large for 31 bits";
    (void)dev;
    if (d->r > TAPS_MAX || d->s > TAPS_MAX || d->r * d->s > TAPS_MAX)
        return "too many taps";
    if (lks_piece_many(d->r * d->s, 1))
        return "chains of more than one piece";
    if ((U64)d->r * d->s * d->c > 0x7fffffffu)
        return "too many weights";
    return NULL;
}

/* Vectors at once: as few lanes done twice as can be, then as many vectors as can be. */
static U32 vectors(U32 c, U32 vec, U32 most)
{
    U32 best = 1, least = 0;
    for (U32 nv = 1; nv <= most && nv * vec <= c; nv++) {
        U32 lanes = (U32)lksi_div_up(c, nv * vec) * nv;
        if (least == 0 || lanes <= least) {
            least = lanes;
            best = nv;
        }
    }
    return best;
}

static void add_rows(const struct lks_conv_dims *d, bool grad, const struct lksi_limits *dev,
                     struct lksi_launch *l)
{
    bool wide = lksi_cpu_wide();
    U32 vec = lksi_lanes(d->c), nv = vectors(d->c, vec, wide ? 6 : 3);
    U32 mr = (wide ? 24 : 6) / nv > 8 ? 8 : (wide ? 24 : 6) / nv;
    U64 rows = (U64)d->n * (grad ? d->h : d->oh);
    U32 cols = grad ? (U32)lksi_div_up(d->w, d->stride_w) : d->ow;
    double row = 2.0 * d->r * d->s * d->c * (grad ? d->w : d->ow);
    U32 per = lksi_conv_cpu_per_item(row, rows, dev, 0);
    /* few rows, as of sequences, are cut */
    U64 items = lksi_div_up(rows, per), want = lksi_div_up(8ull * dev->compute_units, items);
    U32 chunk = (U32)lksi_div_up(cols, want);
    chunk = chunk < 4 * mr ? 4 * mr : (U32)lksi_div_up(chunk, mr) * mr;
    snprintf(l->defines, sizeof l->defines, "ROWS VEC=%u NV=%u MR=%u GRAD=%u", vec, nv, mr, grad);
    l->kernel = "rows";
    l->arg[l->n_arg++] = LKSI_U32(per);
    l->arg[l->n_arg++] = LKSI_U32(chunk);
    lksi_launch_size(l, items, lksi_div_up(cols, chunk), 1);
}

static void add_pixels(const struct lks_conv_dims *d, bool grad, const struct lksi_limits *dev,
                       struct lksi_launch *l)
{
    U32 vec = d->c % 4 == 0 ? 4 : 1;
    size_t lx = lksi_group(dev, 128);
    U64 items = (U64)(d->c / vec) * (grad ? d->w : d->ow);
    snprintf(l->defines, sizeof l->defines,
             "PIXEL VEC=%u NV=1 MR=1 GRAD=%u KR=%u KS=%u SH=%u SW=%u", vec, grad, d->r, d->s,
             d->stride_h, d->stride_w);
    l->kernel = "pixel";
    lksi_launch_size(l, lksi_div_up(items, lx) * lx, (U64)d->n * (grad ? d->h : d->oh), 1);
    l->local[0] = lx;
}

static void recipe(const struct lksi_call *call, bool grad, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    const struct lksi_arg pack[] = {LKSI_IN(1), LKSI_WORK(0), LKSI_DIMS};
    const struct lksi_arg conv[] = {LKSI_IN(0), LKSI_WORK(0), LKSI_IN(d->extra != 0 ? 2 : 0),
                                    LKSI_OUT(0), LKSI_DIMS};
    struct lksi_launch *l = &r->launch[0];
    r->n_launch = 2;
    r->n_work = 1;
    r->work_bytes[0] = (U64)d->r * d->s * d->c * 4;
    l->kernel = "pack";
    snprintf(l->defines, sizeof l->defines, "PACK VEC=1");
    lksi_launch_args(l, pack, LKSI_COUNT(pack));
    lksi_launch_size(l, (U64)d->r * d->s, 1, 1);
    l++;
    lksi_launch_args(l, conv, LKSI_COUNT(conv));
    if (dev->type == LKSI_DEV_GPU)
        add_pixels(d, grad, dev, l);
    else
        add_rows(d, grad, dev, l);
    r->launch[0].source = r->launch[1].source = "op/conv_depth.cl";
}

void lksi_conv_depth_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                            struct lksi_recipe *r)
{
    recipe(call, false, dev, r);
}

void lksi_conv_depth_grad_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                                 struct lksi_recipe *r)
{
    recipe(call, true, dev, r);
}

/* ---- conv2d_weight_grad: a work-item is one weight over one leaf ---- */

const char *lksi_conv_depth_weight_declines(const struct lksi_call *call,
                                            const struct lksi_limits *dev)
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    if (dev->type != LKSI_DEV_GPU)
        return "made for GPUs";
    if (d->groups != d->c || d->groups != d->k)
        return "made for one channel a group";
    if (d->leaf.leaves > 65535 || (U64)d->r * d->s > 65535)
        return "too many leaves or taps";
    return lksi_tree_declines(&d->leaf, (U64)d->k * d->r * d->s, dev);
}

void lksi_conv_depth_weight_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                                   struct lksi_recipe *r)
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    const struct lksi_arg leaves[] = {LKSI_IN(0), LKSI_IN(1), LKSI_WORK(0), LKSI_DIMS};
    struct lksi_launch *l = &r->launch[r->n_launch++];
    size_t lx = lksi_group(dev, 64);
    while (lx / 2 >= d->c && lx > 1)
        lx /= 2;
    r->n_work = 1;
    r->work_bytes[0] = (U64)d->leaf.leaves * d->k * d->r * d->s * 4;
    l->source = "op/conv_depth.cl";
    l->kernel = "leaves";
    snprintf(l->defines, sizeof l->defines, "LEAVES VEC=1");
    lksi_launch_args(l, leaves, LKSI_COUNT(leaves));
    lksi_launch_size(l, lksi_div_up(d->c, lx) * lx, (U64)d->r * d->s, d->leaf.leaves);
    l->local[0] = lx;
    lksi_tree_launch(r, &d->leaf, d->k * d->r * d->s, LKSI_WORK(0), LKSI_OUT(0));
}
