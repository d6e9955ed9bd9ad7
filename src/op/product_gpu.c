/*
 * product_gpu.c - geometry of the schedules `nv` and `gpu` of matrix products and convolutions.
 * Kernels: cl/op/product_gpu.cl, product_pack_gpu.cl, product_weight_gpu.cl, tree_gpu.cl.
 */
#include <stdio.h>
#include <string.h>

#include "op/product_gpu.h"
#include "op/product_tile.h"

#define NVIDIA        0x10deu
#define ELEMENTS      0x7fffffffull /* kernels count elements of one tensor in 31 bits */
#define PART_BYTES    (1ull << 31)
#define TREE_EACH_MAX 2048u
#define TREE_Y_MAX    16u

static void set_tile(struct lksi_launch *l, struct lksi_tile t, const struct lksi_limits *dev,
                     bool nv)
{
    snprintf(l->defines, sizeof l->defines, "PTX=%d COMPACT=%d BM=%u BN=%u TM=%u TN=%u BK=%u S=%u",
             nv, dev->type == LKSI_DEV_CPU, t.bm, t.bn, t.tm, t.tn, t.bk, t.s);
    l->options = nv && t.level == 1 ? "-cl-nv-opt-level=1" : NULL;
}

static void define(struct lksi_launch *l, const char *name, unsigned value)
{
    size_t n = strlen(l->defines);
    snprintf(l->defines + n, sizeof l->defines - n, " %s=%u", name, value);
}

const char *lksi_product_device(const struct lksi_limits *dev, bool nv)
{
    if (nv)
        return dev->type == LKSI_DEV_GPU && dev->vendor_id == NVIDIA ? NULL
                                                                     : "made for NVIDIA's GPUs";
    if (dev->type != LKSI_DEV_GPU && dev->type != LKSI_DEV_CPU)
        return "made for GPUs";
    return dev->max_group < 64 || dev->local_memory < 24 * 1024 ? "work-groups are too small"
                                                                : NULL;
}

static const char *sizes_decline(const struct lks_conv_dims *d)
{
    U64 x = (U64)d->n * d->h * d->w * d->c, y = (U64)d->n * d->oh * d->ow * d->k;
    /* a base in the padding may lie in front of the first element, or behind the last */
    if (x > ELEMENTS / 2 || y > ELEMENTS / 2 ||
        (U64)d->k * d->r * d->s * (d->c / d->groups) > ELEMENTS / 2)
        return "a tensor is too large for 31 bits";
    if ((U64)d->r * d->dil_h * d->w * d->c > ELEMENTS / 4 ||
        (U64)d->r * d->dil_h * d->ow * d->k > ELEMENTS / 4 || d->pad_h > 0xffffffu ||
        d->pad_w > 0xffffffu || (U64)d->pad_h * d->w * d->c > ELEMENTS / 4)
        return "the window or the padding is too large for 31 bits";
    return NULL;
}

/* ---- tiles ---- */

#define TILE(name, kind, nv)                                                                       \
    static bool name(const struct lksi_call *call, const struct lksi_limits *dev, int index,       \
                     char text[LKSI_CHOICE_TEXT])                                                  \
    {                                                                                              \
        (void)call;                                                                                \
        (void)dev;                                                                                 \
        return lksi_tile_name(kind, nv, index, text);                                              \
    }
TILE(nv_tile, LKSI_PRODUCT_FORWARD, true)
TILE(gpu_tile, LKSI_PRODUCT_FORWARD, false)
TILE(nv_weight_tile, LKSI_PRODUCT_WEIGHT, true)
TILE(gpu_weight_tile, LKSI_PRODUCT_WEIGHT, false)

const struct lksi_tunable lksi_product_nv_tunables[] = {{"tile", nv_tile}, {NULL, NULL}};
const struct lksi_tunable lksi_product_gpu_tunables[] = {{"tile", gpu_tile}, {NULL, NULL}};
const struct lksi_tunable lksi_leaves_nv_tunables[] = {{"tile", nv_weight_tile}, {NULL, NULL}};
const struct lksi_tunable lksi_leaves_gpu_tunables[] = {{"tile", gpu_weight_tile}, {NULL, NULL}};

/* ---- conv2d, conv2d_data_grad ---- */

/* The convolution as seen by the product: what is read, what is made. */
struct view {
    U32 src_h, src_w, src_c, dst_h, dst_w, dst_c; /* channels: of a group */
    U32 phases; /* remainders modulo the stride, data gradient only */
    U64 rows;   /* positions of the largest phase */
    U32 chain, cp, np;
    bool vector, walk, direct, turned; /* walk: taps one by one, each filled up to cp */
    bool pieces;                       /* chains are more than one piece */
    struct lksi_tile t;
};

static struct view view_of(const struct lks_conv_dims *d, bool grad, const struct lksi_limits *dev,
                           bool nv, int wanted)
{
    struct view v = {d->h, d->w, d->c / d->groups, d->oh, d->ow, d->k / d->groups, .phases = 1};
    U32 taps = d->r * d->s;
    if (grad) {
        v = (struct view){d->oh,
                          d->ow,
                          d->k / d->groups,
                          d->h,
                          d->w,
                          d->c / d->groups,
                          .phases = d->stride_h * d->stride_w};
        v.rows = (U64)d->n * lksi_up(d->h, d->stride_h) * lksi_up(d->w, d->stride_w);
    } else {
        v.rows = (U64)d->n * d->oh * d->ow;
    }
    v.t = lksi_tile_choose(grad ? LKSI_PRODUCT_DATA : LKSI_PRODUCT_FORWARD, v.rows, v.dst_c,
                           (U64)v.phases * d->groups, lksi_up(taps, v.phases), v.src_c, dev, nv,
                           wanted);
    v.vector = v.src_c % 4 == 0;
    v.pieces = lks_piece_many(taps, v.src_c) != 0;
    v.walk = v.vector || v.pieces;
    v.cp = v.walk ? lksi_up(v.src_c, v.t.bk) * v.t.bk : v.src_c;
    v.chain = lksi_up(taps * v.cp, v.t.bk) * v.t.bk;
    v.direct = grad && v.dst_c % 4 == 0 && (v.walk || taps == 1);
    v.turned = !grad && v.t.turned;
    v.np = lksi_up(v.dst_c, v.t.bn) * v.t.bn;
    return v;
}

const char *lksi_product_declines(const struct lks_conv_dims *d, bool grad,
                                  const struct lksi_limits *dev, bool nv)
{
    const char *reason = lksi_product_device(dev, nv);
    U32 columns = (grad ? d->c : d->k) / d->groups;
    if (reason == NULL)
        reason = sizes_decline(d);
    if (reason == NULL && d->groups > 1 && columns < 8)
        reason = "a group has too few channels for a tile";
    if (reason == NULL && (U64)d->stride_h * d->stride_w * d->groups > 65535)
        reason = "too many groups and strides";
    return reason;
}

static void add_product(struct lksi_launch *l, const struct lks_conv_dims *d, bool grad,
                        const struct view *v, const struct lksi_limits *dev, bool nv,
                        const struct lksi_arg buf[4]);

void lksi_product_recipe(const struct lks_conv_dims *d, bool grad, const struct lksi_limits *dev,
                         bool nv, struct lksi_recipe *r)
{
    struct view v = view_of(d, grad, dev, nv, r->tuned[0]);
    struct lksi_launch *l;
    if (!v.direct && !v.turned) {
        l = &r->launch[r->n_launch++];
        l->source = "op/product_pack_gpu.cl";
        l->kernel = "pack";
        define(l, "GRAD", grad);
        lksi_add(l, LKSI_IN(1));
        lksi_add(l, LKSI_WORK(0));
        lksi_add_pair(l, 0, v.src_c);
        lksi_add_pair(l, 0, v.dst_c);
        lksi_add(l, LKSI_U32(d->r * d->s));
        lksi_add(l, LKSI_U32(v.cp));
        lksi_add(l, LKSI_U32(v.chain));
        lksi_add(l, LKSI_U32(v.np));
        lksi_set_groups(l, 16, 16, lksi_up(v.np, 16), lksi_up(v.chain, 16), d->groups);
        r->n_work = 1;
        r->work_bytes[0] = (U64)d->groups * v.chain * v.np * 4;
    }
    add_product(&r->launch[r->n_launch++], d, grad, &v, dev, nv,
                (const struct lksi_arg[]){LKSI_IN(0),
                                          v.direct || v.turned ? LKSI_IN(1) : LKSI_WORK(0),
                                          LKSI_IN(d->extra ? 2 : 0), LKSI_OUT(0)});
}

/* The arguments `cut` and `piece_taps` of the kernel. */
static void add_pieces(struct lksi_launch *l, const struct view *v)
{
    U32 tiles = v->cp / v->t.bk, taps = lks_piece_taps(v->src_c);
    if (taps == 1)
        lksi_add_pair(l, LKS_PIECE / v->t.bk, tiles);
    else
        lksi_add_pair(l, v->phases > 1 ? tiles : taps * tiles, 0);
    lksi_add(l, LKSI_U32(taps));
}

static void add_product(struct lksi_launch *l, const struct lks_conv_dims *d, bool grad,
                        const struct view *v, const struct lksi_limits *dev, bool nv,
                        const struct lksi_arg buf[4])
{
    l->source = "op/product_gpu.cl";
    l->kernel = "product";
    set_tile(l, v->t, dev, nv);
    define(l, "GRAD", grad);
    define(l, "PHASED", v->phases > 1);
    define(l, "A_WIDTH", v->vector ? 4 : 1);
    define(l, "GATHER", !v->walk);
    define(l, "FULL", v->src_c % v->t.bk == 0);
    define(l, "PIECES", v->pieces);
    define(l, "DIRECT", v->direct);
    define(l, "TURNED", v->turned);
    define(l, "WIDE", v->dst_c % 4 == 0 && !v->turned);
    define(l, "BIAS", d->extra == (grad ? 2 : 1));
    define(l, "MASK", grad && d->extra == 1);
    define(l, "RELU", !grad && d->relu);
    for (int i = 0; i < 4; i++)
        lksi_add(l, buf[i]);
    lksi_add_pair(l, d->n, d->groups);
    lksi_add_pair(l, v->src_h, v->src_w);
    lksi_add_pair(l, v->src_c * d->groups, v->src_c);
    lksi_add_pair(l, v->dst_h, v->dst_w);
    lksi_add_pair(l, v->dst_c * d->groups, v->dst_c);
    lksi_add_pair(l, d->r, d->s);
    lksi_add_pair(l, d->stride_h, d->stride_w);
    lksi_add_pair(l, d->pad_h, d->pad_w);
    lksi_add_pair(l, d->dil_h, d->dil_w);
    lksi_add_pair(l, v->cp, v->np);
    if (v->pieces)
        add_pieces(l, v);
    lksi_set_groups(l, lksi_tile_items(v->t), 1, lksi_up(v->dst_c, v->t.bn),
                    (v->rows + v->t.bm - 1) / v->t.bm, (U64)v->phases * d->groups);
}

/* As the data gradient of a convolution of one tap with as many groups, whose weights are read as they
 * stand. */
static struct lks_conv_dims places_as_conv(const struct lksi_places *p)
{
    return (struct lks_conv_dims){.n = p->rows,
                                  .h = 1,
                                  .w = 1,
                                  .c = p->places * p->k,
                                  .oh = 1,
                                  .ow = 1,
                                  .k = p->places * p->c,
                                  .r = 1,
                                  .s = 1,
                                  .stride_h = 1,
                                  .stride_w = 1,
                                  .dil_h = 1,
                                  .dil_w = 1,
                                  .groups = p->places};
}

const char *lksi_places_decline(const struct lksi_places *p, const struct lksi_limits *dev, bool nv)
{
    struct lks_conv_dims d = places_as_conv(p);
    const char *reason = lksi_product_device(dev, nv);
    return reason != NULL ? reason : sizes_decline(&d);
}

void lksi_places_launch(struct lksi_recipe *r, const struct lksi_places *p,
                        const struct lksi_limits *dev, bool nv, struct lksi_arg source,
                        struct lksi_arg weights, struct lksi_arg result)
{
    struct lks_conv_dims d = places_as_conv(p);
    struct view v = view_of(&d, true, dev, nv, r->tuned[0]);
    add_product(&r->launch[r->n_launch++], &d, true, &v, dev, nv,
                (const struct lksi_arg[]){source, weights, source, result});
}

/* ---- conv2d_weight_grad ---- */

static U32 power_of_two(U32 n)
{
    U32 p = 1;
    while (p < n)
        p *= 2;
    return p;
}

const char *lksi_tree_declines(const struct lks_leaf *f, U64 elements,
                               const struct lksi_limits *dev)
{
    U64 places = (U64)(f->leaves / f->cut) * power_of_two(f->cut);
    if (places > TREE_EACH_MAX * TREE_Y_MAX / 2)
        return "too many leaves";
    if (elements * f->leaves * 4 > PART_BYTES || elements * f->leaves * 4 > dev->max_alloc)
        return "the leaves' sums take too much memory";
    return NULL;
}

const char *lksi_leaves_fit(const struct lks_conv_dims *d, const struct lksi_limits *dev, bool nv)
{
    const char *reason = lksi_product_device(dev, nv);
    if (reason == NULL)
        reason = sizes_decline(d);
    if (reason == NULL && (U64)d->leaf.leaves * d->groups > 65535)
        reason = "too many leaves";
    return reason;
}

const char *lksi_leaves_declines(const struct lks_conv_dims *d, const struct lksi_limits *dev,
                                 bool nv)
{
    const char *reason = lksi_leaves_fit(d, dev, nv);
    U64 elements = (U64)d->k * d->r * d->s * (d->c / d->groups);
    if (reason == NULL && d->groups > 1 && d->k / d->groups < 8)
        reason = "a group has too few channels for a tile";
    return reason != NULL ? reason : lksi_tree_declines(&d->leaf, elements, dev);
}

void lksi_tree_launch(struct lksi_recipe *r, const struct lks_leaf *f, U32 elements,
                      struct lksi_arg from, struct lksi_arg to)
{
    struct lksi_launch *l = &r->launch[r->n_launch++];
    U32 room = power_of_two(f->cut), places = power_of_two(f->leaves / f->cut) * room;
    U32 y = places > 128 ? 8 : places > 16 ? 4 : 1, each = places / y > 8 ? places / y : 8;
    if (each > TREE_EACH_MAX) {
        y = TREE_Y_MAX;
        each = places / y;
    }
    l->source = "op/tree_gpu.cl";
    l->kernel = "tree";
    define(l, "X", 64 / (y > 4 ? 2 : 1));
    define(l, "Y", y);
    lksi_add(l, from);
    lksi_add(l, to);
    lksi_add(l, LKSI_U32(elements));
    lksi_add(l, LKSI_U32(f->leaves / f->cut));
    lksi_add(l, LKSI_U32(f->cut));
    lksi_add(l, LKSI_U32(room));
    lksi_add(l, LKSI_U32(each));
    lksi_set_groups(l, 64 / (y > 4 ? 2 : 1), y, lksi_up(elements, 64 / (y > 4 ? 2 : 1)), 1, 1);
}

void lksi_leaves_launch(struct lksi_recipe *r, const struct lks_conv_dims *d,
                        const struct lksi_limits *dev, bool nv, struct lksi_arg x,
                        struct lksi_arg dy, struct lksi_arg part, bool turn)
{
    const struct lks_leaf *f = &d->leaf;
    U32 c = d->c / d->groups, k = d->k / d->groups, wide = d->r * d->s * c;
    struct lksi_tile t = lksi_tile_choose(LKSI_PRODUCT_WEIGHT, k, wide, (U64)f->leaves * d->groups,
                                          1, f->join * f->step * d->ow, dev, nv,
                                          r->tuned[0]);
    struct lksi_launch *l = &r->launch[r->n_launch++];
    l->source = "op/product_weight_gpu.cl";
    l->kernel = "leaves";
    set_tile(l, t, dev, nv);
    define(l, "A_WIDTH", k % 4 == 0 ? 4 : 1);
    define(l, "B_WIDTH", c % 4 == 0 ? 4 : 1);
    define(l, "PIECES", (U64)f->join * f->step * d->ow > LKS_STRETCH);
    define(l, "RUN", d->ow % 16 == 0 ? 16 : d->ow & (0u - d->ow));
    lksi_add(l, x);
    lksi_add(l, dy);
    lksi_add(l, part);
    lksi_add_pair(l, d->n, d->groups);
    lksi_add_pair(l, d->h, d->w);
    lksi_add_pair(l, d->oh, d->ow);
    lksi_add_pair(l, d->c, d->k);
    lksi_add_pair(l, c, k);
    lksi_add_pair(l, d->r, d->s);
    lksi_add_pair(l, d->stride_h, d->stride_w);
    lksi_add_pair(l, d->pad_h, d->pad_w);
    lksi_add_pair(l, d->dil_h, d->dil_w);
    lksi_add_pair(l, f->join, f->cut);
    lksi_add_pair(l, f->step, f->leaves);
    if (turn) {
        define(l, "TURNS", 1);
        lksi_add(l, LKSI_TURN);
    }
    lksi_set_groups(l, lksi_tile_items(t), 1, lksi_up(wide, t.bn), lksi_up(k, t.bm),
                    (U64)f->leaves * d->groups);
}

void lksi_leaves_recipe(const struct lks_conv_dims *d, const struct lksi_limits *dev, bool nv,
                        struct lksi_recipe *r)
{
    U32 elements = d->k * d->r * d->s * (d->c / d->groups);
    r->n_work = 1;
    r->work_bytes[0] = (U64)d->leaf.leaves * elements * 4;
    lksi_leaves_launch(r, d, dev, nv, LKSI_IN(0), LKSI_IN(1), LKSI_WORK(0), false);
    lksi_tree_launch(r, &d->leaf, elements, LKSI_WORK(0), LKSI_OUT(0));
}
