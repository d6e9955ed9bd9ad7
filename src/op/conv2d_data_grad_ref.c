/*
 * conv2d_data_grad_ref.c - the C loop of conv2d_data_grad. A part is a block of positions of dx
 * times up to 16 channels of one group; the chain runs over taps, then k. Positions of a row are
 * taken stride by stride, so that neighbours in a block meet the same taps.
 */
#include <string.h>

#include "op/conv2d.h"
#include "op/conv_ref.h"

static U64 position_blocks(const struct lks_conv_dims *d)
{
    return ((U64)d->n * d->h * d->w + REF_POSITIONS - 1) / REF_POSITIONS;
}

static U64 lane_blocks(const struct lks_conv_dims *d)
{
    return (d->c / d->groups + REF_LANES - 1) / REF_LANES;
}

U64 lksi_conv2d_data_grad_ref_parts(const struct lksi_call *call)
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    return position_blocks(d) * lane_blocks(d) * d->groups;
}

struct block {
    struct ref_block b;
    U32 count, padded; /* positions, and the same rounded up to 4 */
    U32 n[REF_POSITIONS], h[REF_POSITIONS], w[REF_POSITIONS];
    U32 c0, lanes; /* channels of dx */
    U32 k0, kg;    /* channels of dy of the group */
};

/* Column number i of a row whose columns are taken as 0, st, 2*st, ..., 1, st + 1, ... */
REF_INLINE U32 column(U32 i, U32 width, U32 stride)
{
    U32 longer = width % stride, size = width / stride; /* classes of size + 1, then of size */
    if (i < longer * (size + 1))
        return i % (size + 1) * stride + i / (size + 1);
    i -= longer * (size + 1);
    return i % size * stride + longer + i / size;
}

REF_INLINE void place(struct block *t, const struct lks_conv_dims *d, U64 first, U64 total)
{
    t->count = (U32)(total - first < REF_POSITIONS ? total - first : REF_POSITIONS);
    t->padded = (t->count + 3) / 4 * 4;
    for (U32 p = 0; p < t->count; p++) {
        U64 row = (first + p) / d->w;
        t->w[p] = column((U32)((first + p) % d->w), d->w, d->stride_w);
        t->h[p] = (U32)(row % d->h);
        t->n[p] = (U32)(row / d->h);
    }
}

REF_INLINE void pack(struct block *t, const struct lks_conv_dims *d, const F32 *w, U32 r, U32 s,
                     U32 k, U32 n)
{
    U32 cg = d->c / d->groups;
    for (U32 i = 0; i < n; i++) {
        const F32 *from = w + (((U64)(t->k0 + k + i) * d->r + r) * d->s + s) * cg + t->c0 % cg;
        for (U32 j = 0; j < REF_LANES; j++)
            t->b.wp[i][j] = j < t->lanes ? from[j] : 0.0f;
    }
}

/* Points every position at its dy under tap (r, s), channel k of the group; false if none meets
 * an output. */
REF_INLINE bool aim(struct block *t, const struct lks_conv_dims *d, const F32 *dy, U32 r, U32 s,
                    U32 k)
{
    bool any = false;
    for (U32 p = 0; p < t->padded; p++) {
        t->b.src[p] = NULL;
        if (p >= t->count)
            continue;
        U32 oh = lks_conv_out(t->h[p], r, d->stride_h, d->dil_h, d->pad_h, d->oh);
        U32 ow = lks_conv_out(t->w[p], s, d->stride_w, d->dil_w, d->pad_w, d->ow);
        if (oh >= d->oh || ow >= d->ow)
            continue;
        t->b.src[p] = dy + (((U64)t->n[p] * d->oh + oh) * d->ow + ow) * d->k + t->k0 + k;
        any = true;
    }
    return any;
}

REF_INLINE void finish(const struct block *t, const struct lks_conv_dims *d, const F32 *extra,
                       F32 *dx)
{
    for (U32 p = 0; p < t->count; p++) {
        U64 to = (((U64)t->n[p] * d->h + t->h[p]) * d->w + t->w[p]) * d->c + t->c0;
        for (U32 j = 0; j < t->lanes; j++) {
            F32 v = t->b.sum[p][j];
            v = (d->extra == 2 ? v + extra[t->c0 + j] : v) + 0.0f;
            dx[to + j] = d->extra == 1 ? lks_select(extra[to + j] <= 0.0f, 0.0f, v) : v;
        }
    }
}

LKSI_CLONES void lksi_conv2d_data_grad_ref(const struct lksi_call *call, const void *const *in,
                                           void *const *out, U64 p0, U64 p1)
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    U64 blocks = position_blocks(d), per_group = lane_blocks(d);
    U32 cg = d->c / d->groups;
    struct block t;
    t.kg = d->k / d->groups;
    U32 taps = lks_piece_taps(t.kg);
    for (U64 part = p0; part < p1; part++) {
        U32 lane = (U32)(part / blocks % per_group), group = (U32)(part / blocks / per_group);
        place(&t, d, part % blocks * REF_POSITIONS, (U64)d->n * d->h * d->w);
        t.c0 = group * cg + lane * REF_LANES;
        t.lanes = cg - lane * REF_LANES < REF_LANES ? cg - lane * REF_LANES : REF_LANES;
        t.k0 = group * t.kg;
        conv_ref_start(&t.b);
        for (U32 tap = 0; tap < d->r * d->s; tap++) {
            for (U32 k = 0; k < t.kg; k += REF_CHAIN) {
                if (tap + k > 0 && lks_piece_begins(tap, k, taps))
                    conv_ref_turn(&t.b, t.padded);
                U32 n = t.kg - k < REF_CHAIN ? t.kg - k : REF_CHAIN;
                if (!aim(&t, d, in[0], tap / d->s, tap % d->s, k))
                    break;
                pack(&t, d, in[1], tap / d->s, tap % d->s, k, n);
                conv_ref_tap(&t.b, t.padded, n);
            }
        }
        conv_ref_turn(&t.b, t.padded);
        finish(&t, d, in[2], out[0]);
    }
}
