/*
 * conv2d_weight_grad_ref.c - the C loop of conv2d_weight_grad. A part is one tap (r, s) and a tile
 * of 4 x 16 weights of one group: 16 channels of the wider side (dy's k or x's c) against 4 of the
 * other. Leaves are chained in registers and meet in a binary counter of tiles.
 */
#include <string.h>

#include "op/conv2d.h"
#include "op/ref_tile.h"

/* How the tile lies: `wide` channels run in lanes. */
struct shape {
    U32 cg, kg;
    bool k_wide;
    U32 wide, thin; /* channels of the group on either side */
    U64 wide_tiles, thin_tiles;
};

static struct shape shape_of(const struct lks_conv_dims *d)
{
    struct shape z;
    z.cg = d->c / d->groups;
    z.kg = d->k / d->groups;
    z.k_wide = z.kg >= z.cg;
    z.wide = z.k_wide ? z.kg : z.cg;
    z.thin = z.k_wide ? z.cg : z.kg;
    z.wide_tiles = (z.wide + REF_LANES - 1) / REF_LANES;
    z.thin_tiles = (z.thin + REF_ROWS - 1) / REF_ROWS;
    return z;
}

U64 lksi_conv2d_weight_grad_ref_parts(const struct lksi_call *call)
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    struct shape z = shape_of(d);
    return (U64)d->groups * z.wide_tiles * z.thin_tiles * d->r * d->s;
}

/* A row of positions: v[o][lane] = fma(thin[i][o], wide[i][lane], v[o][lane]). A full tile has a
 * loop of its own, of constant bounds; the other handles the edges. */
REF_INLINE void row_full(struct ref_tile *t, const F32 *wide, U64 wide_step, const F32 *thin,
                         U64 thin_step, U32 count)
{
    struct ref_tile v = *t;
    for (U32 i = 0; i < count; i++, wide += wide_step, thin += thin_step) {
        F32 t0 = thin[0], t1 = thin[1], t2 = thin[2], t3 = thin[3];
        for (int j = 0; j < REF_LANES; j++) {
            v.v[0][j] = lks_fma(t0, wide[j], v.v[0][j]);
            v.v[1][j] = lks_fma(t1, wide[j], v.v[1][j]);
            v.v[2][j] = lks_fma(t2, wide[j], v.v[2][j]);
            v.v[3][j] = lks_fma(t3, wide[j], v.v[3][j]);
        }
    }
    *t = v;
}

REF_INLINE void row_one(struct ref_tile *t, const F32 *wide, U64 wide_step, const F32 *thin,
                        U64 thin_step, U32 count)
{
    F32 v[REF_LANES];
    memcpy(v, t->v[0], sizeof v);
    for (U32 i = 0; i < count; i++, wide += wide_step, thin += thin_step)
        for (int j = 0; j < REF_LANES; j++)
            v[j] = lks_fma(thin[0], wide[j], v[j]);
    memcpy(t->v[0], v, sizeof v);
}

REF_INLINE void row_edge(struct ref_tile *t, const F32 *wide, U64 wide_step, const F32 *thin,
                         U64 thin_step, U32 count, U32 lanes, U32 others)
{
    for (U32 i = 0; i < count; i++, wide += wide_step, thin += thin_step)
        for (U32 o = 0; o < others; o++)
            for (U32 j = 0; j < lanes; j++)
                t->v[o][j] = lks_fma(thin[o], wide[j], t->v[o][j]);
}

struct work {
    const struct lks_conv_dims *d;
    struct shape z;
    const F32 *x, *dy; /* at the tile's first channel */
    U32 r, s;
    U32 ow0, ow1; /* columns whose tap s lies inside x */
    U32 lanes, others;
};

REF_INLINE void row(struct ref_tile *v, const struct work *w, const F32 *wide, U64 wide_step,
                    const F32 *thin, U64 thin_step, U32 count)
{
    if (w->lanes == REF_LANES && w->others == REF_ROWS)
        row_full(v, wide, wide_step, thin, thin_step, count);
    else if (w->lanes == REF_LANES && w->others == 1)
        row_one(v, wide, wide_step, thin, thin_step, count);
    else
        row_edge(v, wide, wide_step, thin, thin_step, count, w->lanes, w->others);
}

REF_INLINE void leaf(const struct work *w, U32 index, struct ref_tile *v)
{
    const struct lks_conv_dims *d = w->d;
    U32 n0, n1, r0, r1, place = 0, turn = LKS_STRETCH; /* of the leaf; where a piece begins */
    struct ref_tile sum;
    memset(&sum, 0, sizeof sum);
    memset(v, 0, sizeof *v);
    lks_leaf_range(&d->leaf, index, &n0, &n1, &r0, &r1);
    for (U32 n = n0; n < n1; n++) {
        for (U32 oh = r0; oh < r1; oh++, place += d->ow) {
            U32 ih = lks_conv_in(oh, w->r, d->stride_h, d->dil_h, d->pad_h);
            U32 iw = lks_conv_in(w->ow0, w->s, d->stride_w, d->dil_w, d->pad_w);
            if (ih >= d->h || w->ow0 >= w->ow1)
                continue;
            const F32 *x = w->x + (((U64)n * d->h + ih) * d->w + iw) * d->c;
            const F32 *dy = w->dy + (((U64)n * d->oh + oh) * d->ow + w->ow0) * d->k;
            U64 xs = (U64)d->stride_w * d->c, ys = d->k;
            const F32 *wide = w->z.k_wide ? dy : x, *thin = w->z.k_wide ? x : dy;
            U64 wide_step = w->z.k_wide ? ys : xs, thin_step = w->z.k_wide ? xs : ys;
            for (U32 ow = w->ow0, end; ow < w->ow1; ow = end) {
                while (place + ow >= turn) {
                    ref_tile_turn(&sum, v);
                    turn += LKS_STRETCH;
                }
                end = turn - place < w->ow1 ? turn - place : w->ow1;
                row(v, w, wide + (ow - w->ow0) * wide_step, wide_step,
                    thin + (ow - w->ow0) * thin_step, thin_step, end - ow);
            }
        }
    }
    ref_tile_turn(&sum, v);
    *v = sum;
}

/* The columns [ow0, ow1) that meet the image under tap s. */
REF_INLINE void columns(struct work *w)
{
    const struct lks_conv_dims *d = w->d;
    U32 a = 0, b = d->ow;
    while (a < b && lks_conv_in(a, w->s, d->stride_w, d->dil_w, d->pad_w) >= d->w)
        a++;
    while (b > a && lks_conv_in(b - 1, w->s, d->stride_w, d->dil_w, d->pad_w) >= d->w)
        b--;
    w->ow0 = a;
    w->ow1 = b;
}

REF_INLINE void finish(const struct work *w, const struct ref_tile *v, U32 group, U32 wide0,
                       U32 thin0, F32 *dw)
{
    const struct lks_conv_dims *d = w->d;
    for (U32 o = 0; o < w->others; o++) {
        for (U32 j = 0; j < w->lanes; j++) {
            U32 k = group * w->z.kg + (w->z.k_wide ? wide0 + j : thin0 + o);
            U32 c = w->z.k_wide ? thin0 + o : wide0 + j;
            dw[(((U64)k * d->r + w->r) * d->s + w->s) * w->z.cg + c] = v->v[o][j] + 0.0f;
        }
    }
}

LKSI_CLONES void lksi_conv2d_weight_grad_ref(const struct lksi_call *call, const void *const *in,
                                             void *const *out, U64 p0, U64 p1)
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    struct work w = {.d = d, .z = shape_of(d)};
    struct ref_tiles batch, sample;
    struct ref_tile v;
    for (U64 part = p0; part < p1; part++) {
        U64 rest = part / ((U64)d->r * d->s);
        U32 tap = (U32)(part % ((U64)d->r * d->s));
        U32 thin0 = (U32)(rest % w.z.thin_tiles) * REF_ROWS;
        U32 wide0 = (U32)(rest / w.z.thin_tiles % w.z.wide_tiles) * REF_LANES;
        U32 group = (U32)(rest / w.z.thin_tiles / w.z.wide_tiles);
        w.r = tap / d->s;
        w.s = tap % d->s;
        w.lanes = w.z.wide - wide0 < REF_LANES ? w.z.wide - wide0 : REF_LANES;
        w.others = w.z.thin - thin0 < REF_ROWS ? w.z.thin - thin0 : REF_ROWS;
        w.x = (const F32 *)in[0] + group * w.z.cg + (w.z.k_wide ? thin0 : wide0);
        w.dy = (const F32 *)in[1] + group * w.z.kg + (w.z.k_wide ? wide0 : thin0);
        columns(&w);
        batch.count = 0;
        for (U32 j = 0; j < d->leaf.leaves; j += d->leaf.cut) {
            sample.count = 0;
            for (U32 q = 0; q < d->leaf.cut; q++) {
                leaf(&w, j + q, &v);
                ref_tiles_push(&sample, &v);
            }
            ref_tiles_root(&sample, &v);
            ref_tiles_push(&batch, &v);
        }
        ref_tiles_root(&batch, &v);
        finish(&w, &v, group, wide0, thin0, out[0]);
    }
}
