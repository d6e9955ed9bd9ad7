/*
 * conv_few.c - schedules `few` of conv2d and conv2d_data_grad, for CPU devices and at most four
 * output channels: generators, autoencoders, single maps. Kernels: cl/op/conv_few.cl.
 */
#include <stdio.h>

#include "op/conv_cpu.h"

#define FEW        4
#define SLAB_BYTES (512ull << 10)

/* The smallest and the largest distance from a position (of a class) to what its taps meet. */
struct reach {
    int64_t low, high;
};

static struct reach reach_of(bool grad, U32 taps, U32 stride, U32 dil, U32 pad)
{
    struct reach z = {0, 0};
    bool any = false;
    for (U32 class = 0; class < (grad ? stride : 1); class++) {
        for (U32 t = 0; t < taps; t++) {
            int64_t at = grad ? (int64_t)class + pad - (int64_t)t * dil : (int64_t)t * dil - pad;
            if (grad && at % stride != 0)
                continue;
            at = grad ? at / stride : at;
            z.low = !any || at < z.low ? at : z.low;
            z.high = !any || at > z.high ? at : z.high;
            any = true;
        }
    }
    return z;
}

/* How a sample is cut, and what a slab holds. */
struct layout {
    struct reach h, w;
    U32 m, nv, len; /* output channels, vectors of positions, source channels */
    U64 rows, band, bands, slab_rows, pitch, plane;
};

/* Estimated time a row in bands of `band` rows: fmas, in whole tiles, and its part of a slab. */
static double cost_of(const struct layout *z, U32 taps, U64 band)
{
    U64 vectors = lksi_div_up(band * z->pitch, 16 * z->nv) * z->nv;
    U64 slab = (band + (U64)(z->h.high - z->h.low)) * z->pitch;
    return ((double)vectors * z->m * taps + 0.6 * (double)slab) / (double)band;
}

static struct layout layout_of(const struct lks_conv_dims *d, bool grad,
                               const struct lksi_limits *dev)
{
    static const U32 wide[FEW] = {8, 8, 8, 6}, narrow[FEW] = {6, 3, 2, 1};
    struct layout z = {.h = reach_of(grad, d->r, d->stride_h, d->dil_h, d->pad_h),
                       .w = reach_of(grad, d->s, d->stride_w, d->dil_w, d->pad_w),
                       .m = grad ? d->c : d->k,
                       .len = grad ? d->k : d->c};
    U64 cols = grad ? lksi_div_up(d->w, d->stride_w) : d->ow, halo = (U64)(z.h.high - z.h.low);
    U64 row_bytes, least, want = lksi_div_up(2ull * dev->compute_units, d->n);
    z.nv = (lksi_cpu_wide() ? wide : narrow)[z.m - 1];
    z.rows = grad ? lksi_div_up(d->h, d->stride_h) : d->oh;
    z.pitch = cols + (U64)(z.w.high - z.w.low);
    row_bytes = z.len * z.pitch * 4;
    z.band = SLAB_BYTES / row_bytes > halo ? SLAB_BYTES / row_bytes - halo : 1;
    least = halo > 0 ? 2 * halo : 1; /* below it, most of a slab would be its neighbours' rows */
    if (z.band > lksi_div_up(z.rows, want))
        z.band = lksi_div_up(z.rows, want);
    z.band = z.band < least ? least : z.band;
    z.band = z.band < z.rows ? z.band : z.rows;
    for (U64 b = z.band; b >= least && 2 * b >= z.band; b--)
        if (cost_of(&z, d->r * d->s, b) < cost_of(&z, d->r * d->s, z.band))
            z.band = b;
    z.bands = lksi_div_up(z.rows, z.band);
    z.slab_rows = z.band + halo;
    /* the last tile reads behind the last row; odd numbers of lines spread planes over sets */
    z.plane = lksi_div_up(z.slab_rows * z.pitch + 16 * z.nv + (U64)(z.w.high - z.w.low), 16);
    z.plane = (z.plane | 1) * 16;
    return z;
}

static const char *declines(const struct lksi_call *call, const struct lksi_limits *dev, bool grad)
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    struct layout z;
    if (dev->type != LKSI_DEV_CPU)
        return "made for CPU devices";
    if (d->groups != 1)
        return "made for one group";
    if ((grad ? d->c : d->k) > FEW)
        return "made for at most 4 output channels";
    if (!grad && (d->stride_h != 1 || d->stride_w != 1))
        return "made for strides of 1";
    z = layout_of(d, grad, dev);
    if (z.plane > 0x7fffffffu / 4)
        return "an image is too large";
    return NULL;
}

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev, bool grad,
                   struct lksi_recipe *r)
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    struct layout z = layout_of(d, grad, dev);
    const struct lksi_arg pack[] = {LKSI_IN(1), LKSI_WORK(0), LKSI_DIMS};
    const struct lksi_arg conv[] = {LKSI_IN(0),
                                    LKSI_WORK(0),
                                    LKSI_IN(call->n_in > 2 ? 2 : 0),
                                    LKSI_OUT(0),
                                    LKSI_WORK(1),
                                    LKSI_DIMS,
                                    LKSI_U32(z.band),
                                    LKSI_U32(z.slab_rows),
                                    LKSI_U32(z.pitch),
                                    LKSI_U32(z.plane),
                                    LKSI_U32((U32)(I32)z.h.low),
                                    LKSI_U32((U32)(I32)z.w.low)};
    r->n_work = 2; /* packed weights, slabs */
    r->work_bytes[0] = (U64)d->r * d->s * z.len * z.m * 4;
    r->work_bytes[1] = d->n * z.bands * z.len * z.plane * 4;
    r->n_launch = 2;
    r->launch[0].kernel = "pack";
    lksi_launch_args(&r->launch[0], pack, LKSI_COUNT(pack));
    lksi_launch_size(&r->launch[0], (U64)d->r * d->s, 1, 1);
    r->launch[1].kernel = "conv";
    lksi_launch_args(&r->launch[1], conv, LKSI_COUNT(conv));
    lksi_launch_size(&r->launch[1], z.bands, d->n, 1);
    for (int i = 0; i < r->n_launch; i++) {
        r->launch[i].source = "op/conv_few.cl";
        snprintf(r->launch[i].defines, sizeof r->launch[i].defines, "M=%u NV=%u GRAD=%u", z.m, z.nv,
                 grad);
    }
}

const char *lksi_conv_few_declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    return declines(call, dev, false);
}

void lksi_conv_few_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                          struct lksi_recipe *r)
{
    recipe(call, dev, false, r);
}

const char *lksi_conv_few_grad_declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    return declines(call, dev, true);
}

void lksi_conv_few_grad_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                               struct lksi_recipe *r)
{
    recipe(call, dev, true, r);
}
