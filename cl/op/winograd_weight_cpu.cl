/*
 * winograd_weight_cpu.cl - schedule `cpu` of winograd_weight_grad.
 *
 *   leaves   a work-item takes a leaf and a block of `rows` by NB = VEC * NV channels: tile after tile
 *            it turns both sides into the 16 places, in local memory, and adds their products to sums
 *            [place][rows][NB] there. -> [leaf][block][place][rows][NB]
 *   weights  the tree over the leaves, if there are several, and the weights from its roots
 * Lanes are channels of dy, or, with SWAP 1, of x; the rows are those of the other.
 * One work-item is a work-group: local memory is its own, and there are no barriers.
 */
#ifndef MR
#define MR   6
#define NV   4
#define VEC  16
#define SWAP 0
#endif
#define NB    (VEC * NV)
#define TILES 32u /* transformed at a time; divides LKS_STRETCH */

#include "contract/winograd.h"
#include "op/winograd_cpu.h"

SQUARES(spread, 2u, LKS_WINOGRAD_SPREAD)

/* Adds the products of `tiles` tiles at one place to sums[rows][NB]. */
static inline void LKS_FN(product)(__local const float *a, __local const float *b, U32 tiles,
                                   U32 rows, __local float *sums)
{
    for (U32 r = 0u; r < rows; r += MR, a += MR, sums += MR * NB) {
        V acc[MR * NV];
        UNROLL for (int i = 0; i < MR * NV; i++)
            acc[i] = LOAD(sums + i * VEC);
        for (U32 t = 0u; t < tiles; t++) {
            V v[NV];
            UNROLL for (int j = 0; j < NV; j++)
                v[j] = LOAD(b + t * NB + VEC * j);
            UNROLL for (int i = 0; i < MR; i++) {
                const V x = (V)(a[t * rows + i]);
                UNROLL for (int j = 0; j < NV; j++)
                    acc[i * NV + j] = fma(x, v[j], acc[i * NV + j]);
            }
        }
        UNROLL for (int i = 0; i < MR * NV; i++)
            STORE(acc[i], sums + i * VEC);
    }
}

/* The nine taps of the weights (row r, lanes l on) of dw's block, from the roots at the 16 places. */
static inline void LKS_FN(finish)(V *q, __global float *dw, U32 r, U32 l, U32 live,
                                  const struct lks_conv_dims *d)
{
    const U64 row_step = SWAP ? (U64)9u * d->c : 1u, lane_step = SWAP ? 1u : (U64)9u * d->c;
    V out[9];
    LKS_WINOGRAD_WEIGHTS(V, q, out)
    dw += r * row_step + l * lane_step;
    ROLLED for (U32 i = 0u; i < 9u; i++, dw += d->c) {
        float lane[VEC];
        if (SWAP && l + VEC <= live) {
            STORE(out[i] + 0.0f, dw);
            continue;
        }
        STORE(out[i] + 0.0f, lane);
        ROLLED for (U32 j = 0u; j < min((U32)VEC, live - l); j++)
            dw[j * lane_step] = lane[j];
    }
}

/* Where the block (r0, l0) of dw begins. */
static inline U64 LKS_FN(block)(U32 r0, U32 l0, U32 c)
{
    return SWAP ? (U64)r0 * 9u * c + l0 : (U64)l0 * 9u * c + r0;
}

/* Work-item (block of rows, block of lanes, leaf). A single leaf is its tree's root: `dw` is finished
 * here, and the part holds no more than sums of pieces. */
__kernel ALONE void LKS_KERNEL(leaves)(__global const float *restrict x,
                                       __global const float *restrict dy,
                                       __global float *restrict part, __global float *restrict dw,
                                       __local float *restrict a, __local float *restrict b,
                                       __local float *restrict sums, struct lks_conv_dims d,
                                       U32 rows)
{
    const struct LKS_FN(picture) mx = {x, d.h, d.w, d.c, 0u - d.pad_h, 0u - d.pad_w};
    const struct LKS_FN(picture) my = {dy, d.oh, d.ow, d.k, 0u, 0u};
    const U32 r0 = (U32)get_global_id(0) * rows, l0 = (U32)get_global_id(1) * NB;
    const U32 r_live = min(rows, (SWAP ? d.k : d.c) - r0);
    const U32 l_live = min((U32)NB, (SWAP ? d.c : d.k) - l0), count = 16u * rows * NB;
    U32 n0, n1, row0, row1;
    lks_leaf_range(&d.leaf, (U32)get_global_id(2), &n0, &n1, &row0, &row1);
    const U32 sample = (row1 - row0) * d.leaf.cols, end = (n1 - n0) * sample;
    part += (((U64)get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) +
             get_global_id(0)) * count;
    for (U32 q0 = 0u; q0 < end; q0 += TILES) {
        const U32 tiles = min(TILES, end - q0);
        if (q0 % LKS_STRETCH == 0u) { /* a piece ends, and one begins (piece.h) */
            if (q0 > 0u)
                for (U32 i = 0u; i < count; i += VEC)
                    STORE(q0 > LKS_STRETCH ? LOAD(part + i) + LOAD(sums + i) : LOAD(sums + i),
                          part + i);
            for (U32 i = 0u; i < count; i += VEC)
                STORE((V)(0.0f), sums + i);
        }
        ROLLED for (U32 t = 0u; t < tiles; t++) {
            const U32 q = q0 + t;
            struct LKS_FN(where) at = LKS_FN(where)(q % sample, row1 - row0, d.leaf.cols);
            at.n = n0 + q / sample;
            at.th += row0;
            LKS_FN(patch)(&mx, at, SWAP ? l0 : r0, SWAP ? l_live : r_live, SWAP ? NB : rows,
                          SWAP ? b + t * NB : a + t * rows, TILES * (SWAP ? NB : rows));
            LKS_FN(spread)(&my, at, SWAP ? r0 : l0, SWAP ? r_live : l_live, SWAP ? rows : NB,
                           SWAP ? a + t * rows : b + t * NB, TILES * (SWAP ? rows : NB));
        }
        for (U32 p = 0u; p < 16u; p++)
            LKS_FN(product)(a + p * TILES * rows, b + p * TILES * NB, tiles, rows,
                            sums + p * rows * NB);
    }
    if (end > LKS_STRETCH)
        for (U32 i = 0u; i < count; i += VEC)
            STORE(LOAD(part + i) + LOAD(sums + i), sums + i);
    if (d.leaf.leaves == 1u) {
        dw += LKS_FN(block)(r0, l0, d.c);
        ROLLED for (U32 r = 0u; r < r_live; r++)
            ROLLED for (U32 l = 0u; l < l_live; l += VEC) {
                V q[16];
                UNROLL for (U32 p = 0u; p < 16u; p++)
                    q[p] = LOAD(sums + (p * rows + r) * NB + l);
                LKS_FN(finish)(q, dw, r, l, l_live, &d);
            }
        return;
    }
    for (U32 i = 0u; i < count; i += VEC)
        STORE(LOAD(sums + i), part + i);
}

/* ---- the tree ---- */

struct LKS_FN(counter) {
    U32 count;
    V part[LKS_TREE_LEVEL];
};

static inline void LKS_FN(push)(struct LKS_FN(counter) *t, V v)
{
    U32 level = 0u;
    for (U32 bits = t->count; (bits & 1u) != 0u; bits >>= 1, level++)
        v = t->part[level] + v;
    t->part[level] = v;
    t->count++;
}

static inline V LKS_FN(root)(const struct LKS_FN(counter) *t)
{
    V v = (V)(0.0f);
    int have = 0;
    for (U32 bits = t->count, level = 0u; bits != 0u; bits >>= 1, level++) {
        if ((bits & 1u) == 0u)
            continue;
        v = have ? t->part[level] + v : t->part[level];
        have = 1;
    }
    return v;
}

/* The root of the leaves of one vector, `step` elements apart. */
static inline V LKS_FN(tree)(__global const float *part, U64 step, const struct lks_leaf *f)
{
    struct LKS_FN(counter) batch, sample;
    batch.count = sample.count = 0u;
    for (U32 leaf = 0u; leaf < f->leaves; leaf++) {
        const V v = LOAD(part + leaf * step);
        if (f->cut == 1u) {
            LKS_FN(push)(&batch, v);
            continue;
        }
        LKS_FN(push)(&sample, v);
        if (sample.count == f->cut) {
            LKS_FN(push)(&batch, LKS_FN(root)(&sample));
            sample.count = 0u;
        }
    }
    return LKS_FN(root)(&batch);
}

/* Work-item (block of rows, block of lanes). */
__kernel ALONE void LKS_KERNEL(weights)(__global const float *restrict part,
                                        __global float *restrict dw, struct lks_conv_dims d,
                                        U32 rows)
{
    const U32 r0 = (U32)get_global_id(0) * rows, l0 = (U32)get_global_id(1) * NB;
    const U32 r_live = min(rows, (SWAP ? d.k : d.c) - r0);
    const U32 l_live = min((U32)NB, (SWAP ? d.c : d.k) - l0), count = 16u * rows * NB;
    const U64 step = (U64)get_global_size(0) * get_global_size(1) * count;
    part += ((U64)get_global_id(1) * get_global_size(0) + get_global_id(0)) * count;
    dw += LKS_FN(block)(r0, l0, d.c);
    ROLLED for (U32 r = 0u; r < r_live; r++)
        ROLLED for (U32 l = 0u; l < l_live; l += VEC) {
            V q[16];
            ROLLED for (U32 p = 0u; p < 16u; p++)
                q[p] = LKS_FN(tree)(part + (p * rows + r) * NB + l, step, &d.leaf);
            LKS_FN(finish)(q, dw, r, l, l_live, &d);
        }
}
