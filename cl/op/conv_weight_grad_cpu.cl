/*
 * conv_weight_grad_cpu.cl - gradient of a convolution's weights for CPU devices.
 *
 * One work-item owns a tile of TB x (16 * NV) weights under one tap and chains it over the leaves
 * of a chunk, in float16 accumulators: 16 * NV channels of one tensor in lanes (`vec`: dy, or x
 * with SWAP 1) against TB broadcast elements of the other. Its leaves meet in a binary counter of
 * tiles in private memory; the roots of the chunks go to a workspace, where `tree` joins them.
 *
 * A chunk is chunk_leaves leaves of one cut sample (a power of two, or all of them), or
 * chunk_groups whole samples or groups of joined samples (a power of two): always a complete
 * subtree, or the last of its row.
 *
 * MERGE 1 is for few input channels: x stands in a frame of zeros (conv_frame.h), and the taps
 * (s, c) of a kernel row, adjacent in memory, form one broadcast axis.
 * DEPTH 1 is for as many groups as channels on either side: lanes of x meet lanes of dy, and the TB
 * elements are taps s of a kernel row.
 * `widen` copies dy with zeros behind its channels, where a group has fewer than 16.
 */
#include "contract/conv.h"
#include "op/conv_frame.h"

#define VEC 16
#include "op/vec.h"

#ifndef TB
#define TB    4
#define NV    4
#define SWAP  0
#define MERGE 0
#define DEPTH 0
#endif
#define LEVELS 10 /* of a counter: a chunk has at most 2^(LEVELS - 1) leaves and groups */
#define TV (TB * NV)

/* Channels of either side that a tap joins. */
#define CG(d) ((d)->c / (d)->groups)
#define KG(d) (DEPTH ? (d)->k : (d)->k / (d)->groups)

/* Where the tile of work-item `t` lies. Tiles at an edge are moved back inside; the elements that
 * they then share with a neighbour are left to it. */
struct LKS_FN(tile) {
    U32 r, s, group;
    U32 b, b_skip; /* first broadcast element, and how many the neighbour stores */
    U32 v, v_skip; /* the same in lanes */
};

static inline struct LKS_FN(tile) LKS_FN(tile_at)(U32 t, const struct lks_conv_dims *d)
{
    struct LKS_FN(tile) at;
    const U32 cg = CG(d), kg = KG(d);
    const U32 n_b = MERGE || DEPTH ? d->s * cg : SWAP ? kg : cg, n_v = SWAP ? cg : kg;
    const U32 bs = (n_b + TB - 1u) / TB, vs = (n_v + 16u * NV - 1u) / (16u * NV);
    const U32 b = t % bs * TB, v = t / bs % vs * 16u * NV;
    const U32 taps = MERGE || DEPTH ? d->r : d->r * d->s, tap = t / bs / vs % taps;
    at.b = min(b, n_b - TB);
    at.b_skip = b - at.b;
    at.v = n_v < 16u * NV ? 0u : min(v, n_v - 16u * NV);
    at.v_skip = v - at.v;
    at.r = MERGE || DEPTH ? tap : tap / d->s;
    at.s = MERGE || DEPTH ? 0u : tap % d->s;
    at.group = t / bs / vs / taps;
    return at;
}

/* Stores the finished tile; its vectors are part[0], part[1], ... */
static inline void LKS_FN(store)(const float16 *part, const struct LKS_FN(tile) *at,
                                 __global float *dw, const struct lks_conv_dims *d)
{
    const U32 cg = CG(d), kg = KG(d), n_v = SWAP ? cg : kg;
    const U64 chain = (U64)d->r * d->s * cg;
    const U64 step_b = SWAP ? chain : 1u, step_v = SWAP ? 1u : chain;
    const U32 v1 = min(16u * NV, n_v - at->v);
    float lane[TV * 16];
    dw += at->group * kg * chain + ((U64)at->r * d->s + at->s) * cg + at->b * step_b +
          at->v * step_v;
    for (int i = 0; i < TV; i++)
        vstore16(part[i] + 0.0f, i, lane);
    ROLLED for (U32 v = at->v_skip; v < v1; v++)
        ROLLED for (U32 b = at->b_skip; b < TB; b++)
            dw[b * step_b + v * step_v] = lane[b * 16u * NV + v];
}

/* ---- the counter of tiles ---- */

struct LKS_FN(counter) {
    U32 count;
    float16 part[LEVELS][TV];
};

static inline void LKS_FN(push)(struct LKS_FN(counter) *t, float16 *v)
{
    U32 level = 0u;
    for (U32 bits = t->count; (bits & 1u) != 0u; bits >>= 1, level++)
#pragma unroll
        for (int i = 0; i < TV; i++)
            v[i] = t->part[level][i] + v[i];
#pragma unroll
    for (int i = 0; i < TV; i++)
        t->part[level][i] = v[i];
    t->count++;
}

static inline void LKS_FN(root)(const struct LKS_FN(counter) *t, float16 *v)
{
    int have = 0;
    for (U32 bits = t->count, level = 0u; bits != 0u; bits >>= 1, level++) {
        if ((bits & 1u) == 0u)
            continue;
#pragma unroll
        for (int i = 0; i < TV; i++)
            v[i] = have ? t->part[level][i] + v[i] : t->part[level][i];
        have = 1;
    }
}

/* ---- leaves ---- */

/* x and dy as the tile sees them; fh, fw: the rows and columns x has in memory (of the frame, if
 * there is one); kw: the channels dy has in memory. */
struct LKS_FN(view) {
    __global const float *x, *dy;
    U32 fh, fw, kw;
    U32 ow0, ow1; /* columns whose tap lies inside x */
};

#if DEPTH
/* Column ow of a row, whose tap at.b lies at column iw of x (wrapping); `check`: some may not lie in
 * it. */
static inline void LKS_FN(column)(float16 *acc, __global const float *x, __global const float *dy,
                                  U32 iw, int check, const struct lks_conv_dims *d)
{
    float16 v[NV];
#pragma unroll
    for (int j = 0; j < NV; j++)
        v[j] = vload16(j, dy);
#pragma unroll
    for (int i = 0; i < TB; i++) {
        if (check && iw + i * d->dil_w >= d->w)
            continue;
        __global const float *one = x + (U64)(iw + i * d->dil_w) * d->c;
#pragma unroll
        for (int j = 0; j < NV; j++)
            acc[i * NV + j] = fma(vload16(j, one), v[j], acc[i * NV + j]);
    }
}
#endif

/* A stretch of a leaf: the columns [w0, w1) of the rows [r0, r1) of the samples [n0, n1). */
struct LKS_FN(part) {
    U32 n0, n1, r0, r1, w0, w1;
};

/* Chains it into sum[]. */
static inline void LKS_FN(chain)(float16 *sum, const struct LKS_FN(part) *p,
                                 const struct LKS_FN(view) *m, const struct LKS_FN(tile) *at,
                                 const struct lks_conv_dims *d)
{
    const U32 never = d->r >> 31, ow0 = max(m->ow0, p->w0), ow1 = min(m->ow1, p->w1);
    float16 acc[TV];
#pragma unroll
    for (int i = 0; i < TV; i++)
        acc[i] = sum[never + i];
    for (U32 n = p->n0; n < p->n1; n++) {
        for (U32 oh = p->r0; oh < p->r1; oh++) {
            const U32 ih = oh * d->stride_h + at->r * d->dil_h - (MERGE ? 0u : d->pad_h);
            if (ih >= m->fh)
                continue;
#if DEPTH
            __global const float *x = m->x + ((U64)n * m->fh + ih) * m->fw * d->c;
            __global const float *dy = m->dy + (((U64)n * d->oh + oh) * d->ow + p->w0) * m->kw;
            for (U32 ow = p->w0; ow < p->w1; ow++, dy += m->kw) {
                const U32 iw = ow * d->stride_w + at->b * d->dil_w - d->pad_w;
                if (ow >= ow0 && ow < ow1)
                    LKS_FN(column)(acc, x, dy, iw, 0, d);
                else
                    LKS_FN(column)(acc, x, dy, iw, 1, d);
            }
#else
            __global const float *dy = m->dy + (((U64)n * d->oh + oh) * d->ow + ow0) * m->kw;
            const U32 iw = ow0 * d->stride_w + at->s * d->dil_w - (MERGE ? 0u : d->pad_w);
            __global const float *x = m->x + (((U64)n * m->fh + ih) * m->fw + iw) * d->c;
            for (U32 ow = ow0; ow < ow1; ow++) {
                __global const float *vec = SWAP ? x : dy, *one = SWAP ? dy : x;
                float16 v[NV];
#pragma unroll
                for (int j = 0; j < NV; j++)
                    v[j] = vload16(j, vec);
#pragma unroll
                for (int i = 0; i < TB; i++) {
                    const float16 b = (float16)(one[i]);
#pragma unroll
                    for (int j = 0; j < NV; j++)
                        acc[i * NV + j] = fma(b, v[j], acc[i * NV + j]);
                }
                x += d->stride_w * d->c;
                dy += m->kw;
            }
#endif
        }
    }
#pragma unroll
    for (int i = 0; i < TV; i++)
        sum[never + i] = acc[i];
}

/* The largest stretch that begins at position q of a leaf and ends before position `end`: samples, rows
 * of one, or columns of one. Returns its positions. */
static inline U32 LKS_FN(next)(struct LKS_FN(part) *p, U32 q, U32 end, U32 n0, U32 r0, U32 r1,
                               U32 cols)
{
    const U32 sample = (r1 - r0) * cols, in = q % sample, left = end - q;
    p->n0 = n0 + q / sample;
    p->n1 = p->n0 + 1u;
    p->r0 = r0;
    p->r1 = r1;
    p->w0 = 0u;
    p->w1 = cols;
    if (in == 0u && left >= sample) {
        p->n1 = p->n0 + left / sample;
        return left / sample * sample;
    }
    p->r0 = r0 + in / cols;
    if (in % cols == 0u && left >= cols) {
        p->r1 = min(r1, p->r0 + left / cols);
        return (p->r1 - p->r0) * cols;
    }
    p->r1 = p->r0 + 1u;
    p->w0 = in % cols;
    p->w1 = min(cols, p->w0 + left);
    return p->w1 - p->w0;
}

/* A leaf: its pieces, one after the other (piece.h). */
static inline void LKS_FN(leaf)(float16 *out, U32 leaf, const struct LKS_FN(view) *m,
                                const struct LKS_FN(tile) *at, const struct lks_conv_dims *d)
{
    U32 n0, n1, r0, r1;
    struct LKS_FN(part) p;
    float16 sum[TV];
    lks_leaf_range(&d->leaf, leaf, &n0, &n1, &r0, &r1);
    const U32 count = (n1 - n0) * (r1 - r0) * d->ow;
#pragma unroll
    for (int i = 0; i < TV; i++)
        out[i] = sum[i] = (float16)(0.0f);
    for (U32 q = 0u, end = 0u; q < count;) {
        if (q == end)
            end = min(end + LKS_STRETCH, count);
        q += LKS_FN(next)(&p, q, end, n0, r0, r1, d->ow);
        LKS_FN(chain)(sum, &p, m, at, d);
        if (q == end)
#pragma unroll
            for (int i = 0; i < TV; i++) {
                out[i] = out[i] + sum[i];
                sum[i] = (float16)(0.0f);
            }
    }
}

/* Work-item (tile, chunk). With one chunk in all, `dw` is finished here. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
LKS_KERNEL(leaves)(__global const float *restrict x, __global const float *restrict dy,
                   __global float *restrict dw, __global float *restrict part,
                   struct lks_conv_dims d, U32 fh, U32 fw, U32 kw, U32 chunk_leaves,
                   U32 chunk_groups)
{
    const U32 t = get_global_id(0), chunk = get_global_id(1);
    const struct LKS_FN(tile) at = LKS_FN(tile_at)(t, &d);
    const U32 groups = d.leaf.leaves / d.leaf.cut;
    const U32 per_group = (d.leaf.cut + chunk_leaves - 1u) / chunk_leaves;
    const U32 g0 = chunk / per_group * chunk_groups, g1 = min(g0 + chunk_groups, groups);
    const U32 q0 = chunk % per_group * chunk_leaves, q1 = min(q0 + chunk_leaves, d.leaf.cut);
    struct LKS_FN(counter) batch, sample;
    float16 v[TV];
    struct LKS_FN(view) m = {x + at.group * CG(&d) + (SWAP || DEPTH ? at.v : at.b),
                             dy + at.group * KG(&d) + (SWAP ? at.b : at.v),
                             fh, fw, kw, 0u, d.ow};
    if (!MERGE) {
        /* the first and the last tap of the tile, of one tap the same */
        const U32 shift = (DEPTH ? at.b : at.s) * d.dil_w - d.pad_w;
        const U32 last = shift + (DEPTH ? (TB - 1u) * d.dil_w : 0u);
        while (m.ow0 < m.ow1 && (m.ow0 * d.stride_w + shift >= d.w ||
                                 m.ow0 * d.stride_w + last >= d.w))
            m.ow0++;
        while (m.ow1 > m.ow0 && ((m.ow1 - 1u) * d.stride_w + shift >= d.w ||
                                 (m.ow1 - 1u) * d.stride_w + last >= d.w))
            m.ow1--;
    }
    batch.count = 0u;
    for (U32 g = g0; g < g1; g++) {
        sample.count = 0u;
        for (U32 q = q0; q < q1; q++) {
            LKS_FN(leaf)(v, g * d.leaf.cut + q, &m, &at, &d);
            if (q1 - q0 > 1u)
                LKS_FN(push)(&sample, v);
        }
        if (q1 - q0 > 1u)
            LKS_FN(root)(&sample, v);
        if (g1 - g0 > 1u)
            LKS_FN(push)(&batch, v);
    }
    if (g1 - g0 > 1u)
        LKS_FN(root)(&batch, v);
    if (get_global_size(1) == 1u) {
        LKS_FN(store)(v, &at, dw, &d);
    } else {
        __global float *to = part + ((U64)chunk * get_global_size(0) + t) * (TV * 16u);
        for (U32 i = 0u; i < TV; i++)
            vstore16(v[i], i, to);
    }
}

/* ---- the tree over chunks: work-item (tile) ---- */

static inline void LKS_FN(push_one)(float16 *part, U32 *count, float16 v)
{
    U32 level = 0u;
    for (U32 bits = *count; (bits & 1u) != 0u; bits >>= 1, level++)
        v = part[level] + v;
    part[level] = v;
    *count += 1u;
}

static inline float16 LKS_FN(root_one)(const float16 *part, U32 count)
{
    float16 v = (float16)(0.0f);
    int have = 0;
    for (U32 level = 0u; count != 0u; count >>= 1, level++) {
        if ((count & 1u) == 0u)
            continue;
        v = have ? part[level] + v : part[level];
        have = 1;
    }
    return v;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
LKS_KERNEL(tree)(__global const float *restrict part, __global float *restrict dw,
                 struct lks_conv_dims d, U32 chunks, U32 per_group)
{
    const U32 t = get_global_id(0), tiles = get_global_size(0);
    const struct LKS_FN(tile) at = LKS_FN(tile_at)(t, &d);
    float16 batch[LKS_TREE_LEVEL], sample[LKS_TREE_LEVEL], out[TV];
    for (U32 i = 0u; i < TV; i++) {
        U32 n_batch = 0u, n_sample = 0u;
        for (U32 chunk = 0u; chunk < chunks; chunk++) {
            const float16 v = vload16(i, part + ((U64)chunk * tiles + t) * (TV * 16u));
            LKS_FN(push_one)(sample, &n_sample, v);
            if (n_sample == per_group) {
                LKS_FN(push_one)(batch, &n_batch, LKS_FN(root_one)(sample, n_sample));
                n_sample = 0u;
            }
        }
        out[i] = LKS_FN(root_one)(batch, n_batch);
    }
    LKS_FN(store)(out, &at, dw, &d);
}

/* ---- dy with more channels ---- */

/* Work-item (row of outputs): dy[...][k] to wide[...][kw]. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
LKS_KERNEL(widen)(__global const float *restrict dy, __global float *restrict wide,
                  struct lks_conv_dims d, U32 kw)
{
    const U64 row = get_global_id(0);
    for (U32 ow = 0u; ow < d.ow; ow++) {
        __global const float *from = dy + (row * d.ow + ow) * d.k;
        __global float *to = wide + (row * d.ow + ow) * kw;
        for (U32 k = 0u; k < kw; k++)
            to[k] = k < d.k ? from[k] : 0.0f;
    }
}
