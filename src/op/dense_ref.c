/*
 * dense_ref.c - the C loops of the dense layer. A part is a block of rows times 16 columns of the
 * output; the chains of the block run side by side.
 */
#include <string.h>

#include "op/dense.h"
#include "op/ref_tile.h"

static U64 blocks(U64 n, U64 size)
{
    return (n + size - 1) / size;
}

static U32 least(U32 a, U32 b)
{
    return a < b ? a : b;
}

U64 lksi_dense_ref_parts(const struct lksi_call *call)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    return blocks(d->n, REF_POSITIONS) * blocks(d->o, REF_LANES);
}

U64 lksi_dense_data_grad_ref_parts(const struct lksi_call *call)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    return blocks(d->n, REF_POSITIONS) * blocks(d->i, REF_LANES);
}

U64 lksi_dense_weight_grad_ref_parts(const struct lksi_call *call)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    return blocks(d->o, REF_ROWS) * blocks(d->i, REF_LANES);
}

/* Rows [n0, n0 + count) of a matrix, each `k` long, from column k0 on. */
REF_INLINE U32 aim(struct ref_block *b, const F32 *a, U64 k, U32 n0, U32 count, U32 k0)
{
    U32 padded = (count + 3) / 4 * 4;
    for (U32 p = 0; p < padded; p++)
        b->src[p] = p < count ? a + (n0 + p) * k + k0 : NULL;
    return padded;
}

LKSI_CLONES void lksi_dense_ref(const struct lksi_call *call, const void *const *in,
                                void *const *out, U64 p0, U64 p1)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    const F32 *x = in[0], *w = in[1], *bias = d->extra != 0 ? in[2] : NULL;
    F32 *y = out[0];
    U64 row_blocks = blocks(d->n, REF_POSITIONS);
    struct ref_block b;
    for (U64 part = p0; part < p1; part++) {
        U32 n0 = (U32)(part % row_blocks) * REF_POSITIONS;
        U32 o0 = (U32)(part / row_blocks) * REF_LANES;
        U32 count = least(d->n - n0, REF_POSITIONS), lanes = least(d->o - o0, REF_LANES);
        conv_ref_start(&b);
        for (U32 k0 = 0; k0 < d->i; k0 += REF_CHAIN) {
            if (k0 > 0 && k0 % LKS_PIECE == 0)
                conv_ref_turn(&b, count);
            U32 k = least(d->i - k0, REF_CHAIN);
            for (U32 j = 0; j < REF_LANES; j++)
                for (U32 i = 0; i < k; i++)
                    b.wp[i][j] = j < lanes ? w[(U64)(o0 + j) * d->i + k0 + i] : 0.0f;
            conv_ref_tap(&b, aim(&b, x, d->i, n0, count, k0), k);
        }
        conv_ref_turn(&b, count);
        for (U32 p = 0; p < count; p++)
            for (U32 j = 0; j < lanes; j++) {
                F32 v = b.sum[p][j];
                if (bias != NULL)
                    v = v + bias[o0 + j];
                v = v + 0.0f;
                y[(U64)(n0 + p) * d->o + o0 + j] = d->relu != 0 && v <= 0.0f ? 0.0f : v;
            }
    }
}

LKSI_CLONES void lksi_dense_data_grad_ref(const struct lksi_call *call, const void *const *in,
                                          void *const *out, U64 p0, U64 p1)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    const F32 *dy = in[0], *w = in[1], *mask = d->extra != 0 ? in[2] : NULL;
    F32 *dx = out[0];
    U64 row_blocks = blocks(d->n, REF_POSITIONS);
    struct ref_block b;
    for (U64 part = p0; part < p1; part++) {
        U32 n0 = (U32)(part % row_blocks) * REF_POSITIONS;
        U32 i0 = (U32)(part / row_blocks) * REF_LANES;
        U32 count = least(d->n - n0, REF_POSITIONS), lanes = least(d->i - i0, REF_LANES);
        conv_ref_start(&b);
        for (U32 k0 = 0; k0 < d->o; k0 += REF_CHAIN) {
            if (k0 > 0 && k0 % LKS_PIECE == 0)
                conv_ref_turn(&b, count);
            U32 k = least(d->o - k0, REF_CHAIN);
            for (U32 i = 0; i < k; i++)
                for (U32 j = 0; j < REF_LANES; j++)
                    b.wp[i][j] = j < lanes ? w[(U64)(k0 + i) * d->i + i0 + j] : 0.0f;
            conv_ref_tap(&b, aim(&b, dy, d->o, n0, count, k0), k);
        }
        conv_ref_turn(&b, count);
        for (U32 p = 0; p < count; p++)
            for (U32 j = 0; j < lanes; j++) {
                U64 at = (U64)(n0 + p) * d->i + i0 + j;
                F32 v = b.sum[p][j] + 0.0f;
                dx[at] = mask != NULL && mask[at] <= 0.0f ? 0.0f : v;
            }
    }
}

/* ---- the weight gradient: leaves in registers, the tree as a counter of tiles ---- */

/* Samples [n0, n1) for 4 rows at `o` and 16 columns at `x`. */
REF_INLINE void chain(struct ref_tile *to, const F32 *x, U64 step, const F32 *dy, U64 outputs,
                      const U32 *o, U32 n0, U32 n1)
{
    struct ref_tile t;
    memset(&t, 0, sizeof t);
    for (U32 n = n0; n < n1; n++) {
        const F32 *xs = x + n * step, *ds = dy + n * outputs;
        F32 d0 = ds[o[0]], d1 = ds[o[1]], d2 = ds[o[2]], d3 = ds[o[3]];
        for (int j = 0; j < REF_LANES; j++) {
            t.v[0][j] = lks_fma(xs[j], d0, t.v[0][j]);
            t.v[1][j] = lks_fma(xs[j], d1, t.v[1][j]);
            t.v[2][j] = lks_fma(xs[j], d2, t.v[2][j]);
            t.v[3][j] = lks_fma(xs[j], d3, t.v[3][j]);
        }
    }
    *to = t;
}

/* The same for the last columns, one by one. */
REF_INLINE void chain_edge(struct ref_tile *t, const F32 *x, U64 step, U32 lanes, const F32 *dy,
                           U64 outputs, const U32 *o, U32 n0, U32 n1)
{
    memset(t, 0, sizeof *t);
    for (U32 n = n0; n < n1; n++)
        for (U32 r = 0; r < REF_ROWS; r++)
            for (U32 j = 0; j < lanes; j++)
                t->v[r][j] = lks_fma(x[n * step + j], dy[n * outputs + o[r]], t->v[r][j]);
}

LKSI_CLONES void lksi_dense_weight_grad_ref(const struct lksi_call *call, const void *const *in,
                                            void *const *out, U64 p0, U64 p1)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    struct lks_leaf f = lks_leaf_make(d->n, d->rows, 1, d->leaf);
    const F32 *x = in[0], *dy = in[1];
    F32 *dw = out[0];
    U64 row_tiles = blocks(d->o, REF_ROWS);
    struct ref_tiles tree, sample; /* over the batch, over the leaves of a cut sample */
    struct ref_tile t, piece;
    for (U64 part = p0; part < p1; part++) {
        U32 o0 = (U32)(part % row_tiles) * REF_ROWS, i0 = (U32)(part / row_tiles) * REF_LANES;
        U32 rows = least(d->o - o0, REF_ROWS), lanes = least(d->i - i0, REF_LANES);
        U32 o[REF_ROWS];
        for (U32 r = 0; r < REF_ROWS; r++)
            o[r] = o0 + least(r, rows - 1);
        tree.count = sample.count = 0;
        for (U32 leaf = 0; leaf < f.leaves; leaf++) {
            U32 n0, n1, r0, r1;
            lks_leaf_range(&f, leaf, &n0, &n1, &r0, &r1);
            r1 = (n1 - 1) * d->rows + r1;
            memset(&t, 0, sizeof t);
            for (n0 = n0 * d->rows + r0; n0 < r1; n0 = n1) {
                n1 = n0 + least(r1 - n0, LKS_STRETCH);
                if (lanes == REF_LANES)
                    chain(&piece, x + i0, d->i, dy, d->o, o, n0, n1);
                else
                    chain_edge(&piece, x + i0, d->i, lanes, dy, d->o, o, n0, n1);
                ref_tile_turn(&t, &piece);
            }
            if (f.cut > 1) {
                ref_tiles_push(&sample, &t);
                if (sample.count < f.cut)
                    continue;
                ref_tiles_root(&sample, &t);
                sample.count = 0;
            }
            ref_tiles_push(&tree, &t);
        }
        ref_tiles_root(&tree, &t);
        for (U32 r = 0; r < rows; r++)
            for (U32 j = 0; j < lanes; j++)
                dw[(U64)(o0 + r) * d->i + i0 + j] = t.v[r][j] + 0.0f;
    }
}
