/*
 * winograd_ref.c - the C loops of the operators of winograd.h. A part is a block of tiles times 16
 * output channels (weight gradient: 4 input times 16 output channels); all it needs is transformed
 * by it, and the 16 products run over lanes.
 */
#include <string.h>

#include "op/winograd.h"
#include "op/ref_tile.h"

#define TILES 32 /* of a part */
#define CHAIN 16 /* channels transformed at a time */

/* ---- forward, data gradient ---- */

struct block {
    F32 sum[16][TILES][REF_LANES], acc[16][TILES][REF_LANES];
    F32 v[16][TILES][CHAIN], u[16][CHAIN][REF_LANES];
};

static U64 tiles_of(const struct lksi_winograd_view *v)
{
    return (U64)v->n * v->th * v->tw;
}

static U64 parts_of(const struct lksi_winograd_view *v)
{
    return (tiles_of(v) + TILES - 1) / TILES * ((v->k + REF_LANES - 1) / REF_LANES);
}

/* The patch of a tile for channels [c, c + n), transformed. */
REF_INLINE void patch(const F32 *x, U64 n, U32 h, U32 w, U32 channels, U32 row, U32 col, U32 c,
                      U32 count, F32 (*v)[TILES][CHAIN], U32 t)
{
    const F32 *from[16];
    for (U32 i = 0; i < 16; i++) {
        U32 y = row + i / 4, z = col + i % 4;
        from[i] = y < h && z < w ? x + ((n * h + y) * w + z) * channels + c : ref_zeros;
    }
    for (U32 q = 0; q < count; q++) {
        F32 d[16];
        for (U32 i = 0; i < 16; i++)
            d[i] = from[i][q];
        LKS_WINOGRAD_PATCH(F32, d)
        for (U32 i = 0; i < 16; i++)
            v[i][t][q] = d[i];
    }
}

REF_INLINE void kernels(struct block *b, const struct lksi_winograd_view *v, const F32 *weights,
                        U32 c, U32 count, U32 k0, U32 lanes)
{
    for (U32 q = 0; q < count; q++) {
        for (U32 j = 0; j < REF_LANES; j++) {
            F32 g[9] = {0}, u[16];
            const F32 *from = weights + (c + q) * v->c_step + (k0 + j) * v->k_step;
            for (U32 i = 0; j < lanes && i < 9; i++)
                g[i] = from[(v->turned ? 8 - i : i) * v->tap];
            LKS_WINOGRAD_KERNEL(F32, g, u)
            for (U32 i = 0; i < 16; i++)
                b->u[i][q][j] = u[i];
        }
    }
}

/* acc[t][lane] = fma(v[t][q], u[q][lane], acc[t][lane]) for q upward, at one place. */
REF_INLINE void product(F32 (*acc)[REF_LANES], F32 (*v)[CHAIN], F32 (*u)[REF_LANES], U32 tiles,
                        U32 count)
{
    for (U32 t = 0; t < tiles; t++) {
        F32 a[REF_LANES];
        memcpy(a, acc[t], sizeof a);
        for (U32 q = 0; q < count; q++)
            for (int j = 0; j < REF_LANES; j++)
                a[j] = lks_fma(v[t][q], u[q][j], a[j]);
        memcpy(acc[t], a, sizeof a);
    }
}

/* What follows the sum of element `e` of the result, of channel k. */
REF_INLINE F32 end(const struct lks_conv_dims *d, bool grad, const F32 *extra, F32 v, U64 e, U32 k)
{
    if (d->extra == (grad ? 2u : 1u))
        v = v + extra[k];
    v = v + 0.0f;
    if (grad && d->extra == 1)
        v = lks_select(extra[e] <= 0.0f, 0.0f, v);
    return !grad && d->relu != 0 ? lks_conv_relu(v) : v;
}

REF_INLINE void finish(const struct block *b, const struct lksi_winograd_view *v,
                       const struct lks_conv_dims *d, bool grad, const F32 *extra, F32 *result,
                       U64 tile, U32 t, U32 k0, U32 lanes)
{
    U32 tw = (U32)(tile % v->tw), th = (U32)(tile / v->tw % v->th);
    U64 n = tile / v->tw / v->th;
    for (U32 j = 0; j < lanes; j++) {
        F32 m[16], y[4];
        for (U32 i = 0; i < 16; i++)
            m[i] = b->sum[i][t][j];
        LKS_WINOGRAD_OUTPUTS(F32, m, y)
        for (U32 i = 0; i < 4; i++) {
            U32 row = 2 * th + i / 2, col = 2 * tw + i % 2;
            U64 e = ((n * v->oh + row) * v->ow + col) * v->k + k0 + j;
            if (row < v->oh && col < v->ow)
                result[e] = end(d, grad, extra, y[i], e, k0 + j);
        }
    }
}

REF_INLINE void end_piece(struct block *b)
{
    for (U32 i = 0; i < 16; i++)
        for (U32 t = 0; t < TILES; t++)
            for (int j = 0; j < REF_LANES; j++) {
                b->sum[i][t][j] = b->sum[i][t][j] + b->acc[i][t][j];
                b->acc[i][t][j] = 0.0f;
            }
}

REF_INLINE void run(const struct lksi_call *call, bool grad, const void *const *in,
                    void *const *out, U64 p0, U64 p1)
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    const struct lksi_winograd_view v = lksi_winograd_view(d, grad);
    const U64 total = tiles_of(&v), blocks = (total + TILES - 1) / TILES;
    struct block b;
    for (U64 part = p0; part < p1; part++) {
        U64 first = part % blocks * TILES;
        U32 tiles = (U32)(total - first < TILES ? total - first : TILES);
        U32 k0 = (U32)(part / blocks) * REF_LANES;
        U32 lanes = v.k - k0 < REF_LANES ? v.k - k0 : REF_LANES;
        memset(b.sum, 0, sizeof b.sum);
        memset(b.acc, 0, sizeof b.acc);
        for (U32 c = 0; c < v.c; c += CHAIN) {
            U32 count = v.c - c < CHAIN ? v.c - c : CHAIN;
            if (c > 0 && c % LKS_PIECE == 0)
                end_piece(&b);
            kernels(&b, &v, in[1], c, count, k0, lanes);
            for (U32 t = 0; t < tiles; t++) {
                U64 tile = first + t;
                patch(in[0], tile / v.tw / v.th, v.h, v.w, v.c,
                      2 * (U32)(tile / v.tw % v.th) + v.row, 2 * (U32)(tile % v.tw) + v.col, c,
                      count, b.v, t);
            }
            for (U32 i = 0; i < 16; i++)
                product(b.acc[i], b.v[i], b.u[i], tiles, count);
        }
        end_piece(&b);
        for (U32 t = 0; t < tiles; t++)
            finish(&b, &v, d, grad, d->extra != 0 ? in[2] : NULL, out[0], first + t, t, k0, lanes);
    }
}

U64 lksi_winograd_ref_parts(const struct lksi_call *call)
{
    struct lksi_winograd_view v = lksi_winograd_view(lksi_conv_dims(call), false);
    return parts_of(&v);
}

LKSI_CLONES void lksi_winograd_ref(const struct lksi_call *call, const void *const *in,
                                   void *const *out, U64 p0, U64 p1)
{
    run(call, false, in, out, p0, p1);
}

U64 lksi_winograd_data_grad_ref_parts(const struct lksi_call *call)
{
    struct lksi_winograd_view v = lksi_winograd_view(lksi_conv_dims(call), true);
    return parts_of(&v);
}

LKSI_CLONES void lksi_winograd_data_grad_ref(const struct lksi_call *call, const void *const *in,
                                             void *const *out, U64 p0, U64 p1)
{
    run(call, true, in, out, p0, p1);
}

/* ---- weight gradient ---- */

U64 lksi_winograd_weight_grad_ref_parts(const struct lksi_call *call)
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    return (U64)((d->c + REF_ROWS - 1) / REF_ROWS) * ((d->k + REF_LANES - 1) / REF_LANES);
}

/* Sums of 4 input by 16 output channels at one place. */
struct place {
    struct ref_tile v, piece; /* the sum, of the piece under way */
    struct ref_tiles sample, batch;
};

struct weights {
    U32 c0, rows, k0, lanes;
    F32 x[16][TILES][CHAIN]; /* [place][.][channel], of one tile */
    F32 f[16][REF_LANES];
};

/* Outputs' gradients of a tile, spread. */
REF_INLINE void spread(struct weights *w, const struct lks_conv_dims *d, const F32 *dy, U32 n,
                       U32 th, U32 tw)
{
    for (U32 j = 0; j < w->lanes; j++) {
        F32 e[4], f[16];
        for (U32 i = 0; i < 4; i++) {
            U32 row = 2 * th + i / 2, col = 2 * tw + i % 2;
            e[i] = row < d->oh && col < d->ow
                       ? dy[(((U64)n * d->oh + row) * d->ow + col) * d->k + w->k0 + j]
                       : 0.0f;
        }
        LKS_WINOGRAD_SPREAD(F32, e, f)
        for (U32 i = 0; i < 16; i++)
            w->f[i][j] = f[i];
    }
}

REF_INLINE void leaf(struct weights *w, struct place *p, const struct lks_conv_dims *d,
                     const F32 *x, const F32 *dy, U32 index)
{
    U32 n0, n1, r0, r1, place = 0;
    for (int i = 0; i < 16; i++) {
        memset(&p[i].v, 0, sizeof p[i].v);
        memset(&p[i].piece, 0, sizeof p[i].piece);
    }
    lks_leaf_range(&d->leaf, index, &n0, &n1, &r0, &r1);
    for (U32 n = n0; n < n1; n++) {
        for (U32 th = r0; th < r1; th++) {
            for (U32 tw = 0; tw < d->leaf.cols; tw++, place++) {
                for (int i = 0; i < 16 && place % LKS_STRETCH == 0; i++)
                    ref_tile_turn(&p[i].v, &p[i].piece);
                patch(x, n, d->h, d->w, d->c, 2 * th - d->pad_h, 2 * tw - d->pad_w, w->c0, w->rows,
                      w->x, 0);
                spread(w, d, dy, n, th, tw);
                for (int i = 0; i < 16; i++)
                    for (int r = 0; r < REF_ROWS; r++)
                        for (int j = 0; j < REF_LANES; j++)
                            p[i].piece.v[r][j] =
                                lks_fma(w->x[i][0][r], w->f[i][j], p[i].piece.v[r][j]);
            }
        }
    }
    for (int i = 0; i < 16; i++)
        ref_tile_turn(&p[i].v, &p[i].piece);
}

REF_INLINE void finish_weights(const struct weights *w, const struct place *p,
                               const struct lks_conv_dims *d, F32 *dw)
{
    for (U32 r = 0; r < w->rows; r++) {
        for (U32 j = 0; j < w->lanes; j++) {
            F32 q[16], out[9];
            for (int i = 0; i < 16; i++)
                q[i] = p[i].v.v[r][j];
            LKS_WINOGRAD_WEIGHTS(F32, q, out)
            for (U32 tap = 0; tap < 9; tap++)
                dw[((U64)(w->k0 + j) * 9 + tap) * d->c + w->c0 + r] = out[tap] + 0.0f;
        }
    }
}

LKSI_CLONES void lksi_winograd_weight_grad_ref(const struct lksi_call *call, const void *const *in,
                                               void *const *out, U64 p0, U64 p1)
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    const U32 across = (d->c + REF_ROWS - 1) / REF_ROWS;
    struct weights w;
    struct place p[16];
    memset(&w, 0, sizeof w);
    for (U64 part = p0; part < p1; part++) {
        w.c0 = (U32)(part % across) * REF_ROWS;
        w.k0 = (U32)(part / across) * REF_LANES;
        w.rows = d->c - w.c0 < REF_ROWS ? d->c - w.c0 : REF_ROWS;
        w.lanes = d->k - w.k0 < REF_LANES ? d->k - w.k0 : REF_LANES;
        for (int i = 0; i < 16; i++)
            p[i].batch.count = p[i].sample.count = 0;
        for (U32 j = 0; j < d->leaf.leaves; j++) {
            leaf(&w, p, d, in[0], in[1], j);
            for (int i = 0; i < 16; i++) {
                ref_tiles_push(&p[i].sample, &p[i].v);
                if (p[i].sample.count == d->leaf.cut) {
                    ref_tiles_root(&p[i].sample, &p[i].v);
                    ref_tiles_push(&p[i].batch, &p[i].v);
                    p[i].sample.count = 0;
                }
            }
        }
        for (int i = 0; i < 16; i++)
            ref_tiles_root(&p[i].batch, &p[i].v);
        finish_weights(&w, p, d, out[0]);
    }
}
