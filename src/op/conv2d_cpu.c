/*
 * conv2d_cpu.c - the CPU schedule of conv2d, and the tiles that all three convolution operators
 * choose from. Kernels: cl/op/conv_cpu.cl.
 */
#include <stdio.h>

#include "op/conv_cpu.h"
#include "op/conv_gpu.h"

/* ---- shared ---- */

const char *lksi_conv_cpu_declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    if (dev->type != LKSI_DEV_CPU)
        return "made for CPU devices";
    (void)call;
    return NULL;
}

bool lksi_cpu_wide(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f");
#else
    return false;
#endif
}

/* About 24 vector registers of accumulators where there are 32, 12 where there are 16. Vectors of 8
 * lanes leave fewer lanes idle; processors that split a vector of 16 lose nothing by them. The
 * estimate knows those with a speed; tuning tries all. */
static const struct lksi_conv_tile tiles[] = {
    {6, 4, 16}, {8, 3, 16}, {8, 2, 16}, {8, 1, 16}, {6, 5, 8}, {8, 3, 8},  {12, 1, 8},
    {6, 1, 16}, {12, 2, 16}, {10, 2, 16}, {5, 4, 16}, {14, 1, 16}, {12, 2, 8}, {6, 2, 8}, {4, 3, 8},
};
static const double speed[] = {1.0, 0.95, 0.9, 0.85, 0.85, 0.85, 0.6};

static bool fits(const struct lksi_conv_tile *t, U32 wide, bool inside)
{
    return !inside || (t->vec * t->nv <= wide && t->vec == 16);
}

/* The wanted one of those that fit; NULL past the last. */
static const struct lksi_conv_tile *tile_at(U32 wide, bool inside, int wanted)
{
    for (size_t i = 0; i < LKSI_COUNT(tiles); i++)
        if (fits(&tiles[i], wide, inside) && --wanted == 0)
            return &tiles[i];
    return NULL;
}

bool lksi_conv_cpu_tile_name(U32 wide, bool inside, int wanted, char text[LKSI_CHOICE_TEXT])
{
    const struct lksi_conv_tile *t = tile_at(wide, inside, wanted);
    if (t != NULL)
        snprintf(text, LKSI_CHOICE_TEXT, "%u positions x %u of %u lanes", t->mr, t->nv, t->vec);
    return t != NULL;
}

struct lksi_conv_tile lksi_conv_cpu_tile(U32 wide, bool inside, int wanted)
{
    struct lksi_conv_tile best = {6, 1, 16};
    double cost = 0;
    if (wanted > 0)
        return *tile_at(wide, inside, wanted);
    for (size_t i = 0; lksi_cpu_wide() && i < LKSI_COUNT(speed); i++) {
        U32 nb = tiles[i].vec * tiles[i].nv;
        if (!fits(&tiles[i], wide, inside))
            continue;
        double c = (double)(lksi_div_up(wide, nb) * nb) / speed[i];
        if (cost == 0 || c < cost) {
            cost = c;
            best = tiles[i];
        }
    }
    return best;
}

bool lksi_conv_cpu_depth(const struct lks_conv_dims *d)
{
    return d->groups == d->c && d->groups == d->k && d->c >= 16;
}

/* A work-item takes so many times what the estimate says. */
static const struct {
    const char *name;
    double factor;
} work[] = {{"half", 0.5}, {"double", 2}, {"fourfold", 4}};

bool lksi_conv_cpu_work(const struct lksi_call *call, const struct lksi_limits *dev, int index,
                        char text[LKSI_CHOICE_TEXT])
{
    (void)call;
    (void)dev;
    if ((size_t)index > LKSI_COUNT(work))
        return false;
    snprintf(text, LKSI_CHOICE_TEXT, "%s", work[index - 1].name);
    return true;
}

U32 lksi_conv_cpu_per_item(double flops, U64 all, const struct lksi_limits *dev, int wanted)
{
    U64 enough = (U64)(1e6 / flops) + 1; /* so that starting a work-item does not show */
    U64 share = lksi_div_up(all, 8ull * (dev->compute_units > 0 ? dev->compute_units : 1));
    double n = (double)(enough < share ? enough : share);
    if (wanted > 0)
        n *= work[wanted - 1].factor;
    return (U32)(n > 1 ? n : 1);
}

struct lksi_conv_frame lksi_conv_frame(const struct lks_conv_dims *d)
{
    struct lksi_conv_frame f;
    f.h = (U64)(d->oh - 1) * d->stride_h + (U64)(d->r - 1) * d->dil_h + 1;
    f.w = (U64)(d->ow - 1) * d->stride_w + (U64)(d->s - 1) * d->dil_w + 1;
    f.copy = d->pad_h != 0 || d->pad_w != 0 || f.h > d->h || f.w > d->w;
    f.fits = f.h * f.w <= 0x7fffffffu / d->n;
    if (!f.copy) {
        f.h = d->h;
        f.w = d->w;
    }
    return f;
}

void lksi_conv_frame_launch(struct lksi_launch *l, const struct lks_conv_dims *d,
                            const struct lksi_conv_frame *f, int work)
{
    const struct lksi_arg pad[] = {LKSI_IN(0), LKSI_WORK(work), LKSI_DIMS, LKSI_U32(f->h),
                                   LKSI_U32(f->w)};
    l->kernel = "pad";
    lksi_launch_args(l, pad, LKSI_COUNT(pad));
    lksi_launch_size(l, f->h, d->n, 1);
}

/* ---- conv2d ---- */

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    bool depth = lksi_conv_cpu_depth(d);
    U32 wide = depth ? d->k : d->k / d->groups;
    struct lksi_conv_tile t = lksi_conv_cpu_tile(wide, depth, r->tuned[0]);
    struct lksi_conv_frame f = lksi_conv_frame(d);
    bool pieces = lks_piece_many(d->r * d->s, d->c / d->groups);
    bool framed = d->c < LKSI_CONV_FEW && d->groups == 1 && f.fits && !pieces, copied = framed && f.copy;
    /* taps that stand side by side are one run */
    U32 len = d->dil_w == 1 ? d->s * d->c : d->c, runs = d->dil_w == 1 ? 1 : d->s;
    U32 cg = d->c / d->groups, chain = d->r * d->s * cg, nb = t.vec * t.nv;
    U64 blocks = (d->k / wide) * lksi_div_up(wide, nb),
        all = lksi_div_up((U64)d->n * d->oh * d->ow, t.mr);
    U32 per = lksi_conv_cpu_per_item(2.0 * t.mr * nb * chain, all * blocks, dev, r->tuned[1]);
    U32 zeros = depth ? nb : cg;
    int bias = call->n_in > 2 ? 2 : 0;
    char defines[sizeof r->launch[0].defines];
    snprintf(defines, sizeof defines, "MR=%u NV=%u VEC=%u GRAD=0 FRAMED=%u DEPTH=%u PIECES=%u",
             t.mr, t.nv, t.vec, framed, depth, pieces);

    r->n_work = 3; /* packed weights, packed bias, zeros or frame */
    r->work_bytes[0] = blocks * chain * nb * 4;
    r->work_bytes[1] = blocks * nb * 4;
    r->work_bytes[2] = copied ? (U64)d->n * f.h * f.w * d->c * 4 : (U64)zeros * 4;

    struct lksi_launch *l = &r->launch[r->n_launch++];
    l->kernel = "pack";
    const struct lksi_arg pack[] = {LKSI_IN(1),
                                    LKSI_IN(bias),
                                    LKSI_WORK(0),
                                    LKSI_WORK(1),
                                    LKSI_WORK(2),
                                    LKSI_DIMS,
                                    LKSI_U32(framed ? 0 : zeros)};
    lksi_launch_args(l, pack, LKSI_COUNT(pack));
    lksi_launch_size(l, lksi_div_up(chain, LKSI_CONV_PACKED), blocks, 1);
    if (copied)
        lksi_conv_frame_launch(&r->launch[r->n_launch++], d, &f, 2);
    l = &r->launch[r->n_launch++];
    lksi_launch_size(l, lksi_div_up(all, per), blocks, 1);
    if (framed) {
        l->kernel = "padded";
        const struct lksi_arg conv[] = {copied ? LKSI_WORK(2) : LKSI_IN(0),
                                        LKSI_WORK(0),
                                        LKSI_WORK(1),
                                        LKSI_OUT(0),
                                        LKSI_DIMS,
                                        LKSI_U32(per),
                                        LKSI_U32(f.h),
                                        LKSI_U32(f.w),
                                        LKSI_U32(runs),
                                        LKSI_U32(len),
                                        LKSI_U32(d->dil_w * d->c)};
        lksi_launch_args(l, conv, LKSI_COUNT(conv));
    } else {
        l->kernel = "conv";
        const struct lksi_arg conv[] = {LKSI_IN(0),  LKSI_WORK(0), LKSI_WORK(2), LKSI_WORK(1),
                                        LKSI_OUT(0), LKSI_DIMS,    LKSI_U32(per)};
        lksi_launch_args(l, conv, LKSI_COUNT(conv));
    }
    for (int i = 0; i < r->n_launch; i++) {
        r->launch[i].source = "op/conv_cpu.cl";
        snprintf(r->launch[i].defines, sizeof r->launch[i].defines, "%s", defines);
    }
}

static bool tile(const struct lksi_call *call, const struct lksi_limits *dev, int index,
                 char text[LKSI_CHOICE_TEXT])
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    bool depth = lksi_conv_cpu_depth(d);
    (void)dev;
    return lksi_conv_cpu_tile_name(depth ? d->k : d->k / d->groups, depth, index, text);
}

static const struct lksi_tunable tunables[] = {
    {"tile", tile}, {"work", lksi_conv_cpu_work}, {NULL, NULL}};

const struct lksi_schedule lksi_conv2d_schedules[] = {
    {"depth", lksi_conv_depth_declines, lksi_conv_depth_recipe},
    {"few", lksi_conv_few_declines, lksi_conv_few_recipe},
    {"cpu", lksi_conv_cpu_declines, recipe, tunables, 0},
    LKSI_GPU_LINES(conv2d, product),
    {NULL, NULL, NULL},
};
