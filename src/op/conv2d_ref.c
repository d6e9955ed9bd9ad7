/*
 * conv2d_ref.c - the C loop of conv2d. A part is a block of output positions times up to 16 output
 * channels of one group; the chain runs over taps, then channels, as the contract has it.
 */
#include <string.h>

#include "op/conv2d.h"
#include "op/conv_ref.h"

static U64 position_blocks(const struct lks_conv_dims *d)
{
    return ((U64)d->n * d->oh * d->ow + REF_POSITIONS - 1) / REF_POSITIONS;
}

static U64 lane_blocks(const struct lks_conv_dims *d)
{
    return (d->k / d->groups + REF_LANES - 1) / REF_LANES;
}

U64 lksi_conv2d_ref_parts(const struct lksi_call *call)
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    return position_blocks(d) * lane_blocks(d) * d->groups;
}

struct block {
    struct ref_block b;
    U64 p0;
    U32 count, padded; /* positions, and the same rounded up to 4 */
    U32 k0, lanes;     /* output channels */
    U32 c0, cg;        /* input channels of the group */
};

REF_INLINE void pack(struct block *t, const struct lks_conv_dims *d, const F32 *w, U32 r, U32 s,
                     U32 c, U32 n)
{
    for (U32 j = 0; j < REF_LANES; j++) {
        const F32 *from = w + (((U64)(t->k0 + j) * d->r + r) * d->s + s) * t->cg + c;
        for (U32 i = 0; i < n; i++)
            t->b.wp[i][j] = j < t->lanes ? from[i] : 0.0f;
    }
}

/* Points every position at its x under tap (r, s), channel c of the group. */
REF_INLINE void aim(struct block *t, const struct lks_conv_dims *d, const F32 *x, U32 r, U32 s,
                    U32 c)
{
    U64 row = t->p0 / d->ow;
    U32 ow = (U32)(t->p0 % d->ow), oh = (U32)(row % d->oh);
    U64 n = row / d->oh;
    for (U32 p = 0; p < t->padded; p++) {
        U32 ih = lks_conv_in(oh, r, d->stride_h, d->dil_h, d->pad_h);
        U32 iw = lks_conv_in(ow, s, d->stride_w, d->dil_w, d->pad_w);
        t->b.src[p] = p < t->count && ih < d->h && iw < d->w
                          ? x + ((n * d->h + ih) * d->w + iw) * d->c + t->c0 + c
                          : NULL;
        if (++ow == d->ow) {
            ow = 0;
            if (++oh == d->oh) {
                oh = 0;
                n++;
            }
        }
    }
}

REF_INLINE void finish(const struct block *t, const struct lks_conv_dims *d, const F32 *bias,
                       F32 *y)
{
    for (U32 p = 0; p < t->count; p++) {
        F32 *to = y + (t->p0 + p) * d->k + t->k0;
        for (U32 j = 0; j < t->lanes; j++) {
            F32 v = t->b.sum[p][j];
            if (bias != NULL)
                v = v + bias[t->k0 + j];
            v = v + 0.0f;
            to[j] = d->relu != 0 ? lks_conv_relu(v) : v;
        }
    }
}

LKSI_CLONES void lksi_conv2d_ref(const struct lksi_call *call, const void *const *in,
                                 void *const *out, U64 p0, U64 p1)
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    U64 blocks = position_blocks(d), per_group = lane_blocks(d);
    U64 total = (U64)d->n * d->oh * d->ow;
    U32 kg = d->k / d->groups;
    struct block t;
    t.cg = d->c / d->groups;
    U32 taps = lks_piece_taps(t.cg);
    for (U64 part = p0; part < p1; part++) {
        U32 lane = (U32)(part / blocks % per_group), group = (U32)(part / blocks / per_group);
        t.p0 = part % blocks * REF_POSITIONS;
        t.count = (U32)(total - t.p0 < REF_POSITIONS ? total - t.p0 : REF_POSITIONS);
        t.padded = (t.count + 3) / 4 * 4;
        t.k0 = group * kg + lane * REF_LANES;
        t.lanes = kg - lane * REF_LANES < REF_LANES ? kg - lane * REF_LANES : REF_LANES;
        t.c0 = group * t.cg;
        conv_ref_start(&t.b);
        for (U32 tap = 0; tap < d->r * d->s; tap++) {
            for (U32 c = 0; c < t.cg; c += REF_CHAIN) {
                if (tap + c > 0 && lks_piece_begins(tap, c, taps))
                    conv_ref_turn(&t.b, t.padded);
                U32 n = t.cg - c < REF_CHAIN ? t.cg - c : REF_CHAIN;
                pack(&t, d, in[1], tap / d->s, tap % d->s, c, n);
                aim(&t, d, in[0], tap / d->s, tap % d->s, c);
                conv_ref_tap(&t.b, t.padded, n);
            }
        }
        conv_ref_turn(&t.b, t.padded);
        finish(&t, d, d->extra != 0 ? in[2] : NULL, out[0]);
    }
}
