/*
 * avgpool.cl - schedules `vec` and `lanes` of avgpool, `vec` of avgpool_grad: vectors over the
 * channels.
 *
 *   mean   the mean of every window
 *   lanes  the same, for large windows on a GPU: a work-group is 32 lanes of a row by X vectors
 *   gather the gradient: each pixel looks at its windows
 *
 * Macros: VEC and ROWS, see pool.h. KH, KW: the window, if it has at most 32 taps; KH 0: larger. FULL:
 * all divisors are the same.
 */
#include "contract/avgpool.h"
#include "op/pool.h"

#ifndef KH
#define KH 0
#define KW 0
#endif
#ifndef X
#define X 1
#endif
#define LEVELS 20 /* of a counter: a window has fewer than 2^30 taps, in pieces of 4096 */

/* ---- sums ---- */

#include "op/vec_tree.h"

#if KH
/* A window of few taps, each a lane of its own. */
static V LKS_FN(sum)(__global const F32 *x, const struct maxpool_dims *d,
                     const struct LKS_FN(window) *w, U32 c)
{
    V lane[KH * KW];
    __global const F32 *p = x + c;
    UNROLL for (U32 r = 0u; r < KH; r++)
    {
        const U64 row = (U64)(w->top + r * d->dh - d->pt) * d->w;
        UNROLL for (U32 s = 0u; s < KW; s++)
        {
            int inside = r >= w->r0 && r < w->r1 && s >= w->s0 && s < w->s1;
            lane[r * KW + s] =
                inside ? LOAD(p + (row + (w->left + s * d->dw - d->pl)) * d->c) + 0.0f : (V)(0.0f);
        }
    }
    UNROLL for (U32 s = 1u; s < KH * KW; s *= 2u)
        UNROLL for (U32 i = 0u; i + s < KH * KW; i += 2u * s)
            lane[i] = lane[i] + lane[i + s];
    return lane[0];
}
#else
/* Tree over the lanes, which it clears. */
static V LKS_FN(tree)(V *lane)
{
    V v;
    for (U32 s = 1u; s < LKS_ROW_LANES; s *= 2u)
        for (U32 i = 0u; i + s < LKS_ROW_LANES; i += 2u * s)
            lane[i] = lane[i] + lane[i + s];
    v = lane[0];
    for (U32 i = 0u; i < LKS_ROW_LANES; i++)
        lane[i] = (V)(0.0f);
    return v;
}

static V LKS_FN(sum)(__global const F32 *x, const struct maxpool_dims *d,
                     const struct LKS_FN(window) *w, U32 c)
{
    struct LKS_FN(counter) pieces;
    V lane[LKS_ROW_LANES];
    pieces.count = 0u;
    for (U32 i = 0u; i < LKS_ROW_LANES; i++)
        lane[i] = (V)(0.0f);
    for (U32 r = w->r0; r < w->r1; r++) {
        __global const F32 *p =
            x + ((U64)(w->top + r * d->dh - d->pt) * d->w + (w->left + w->s0 * d->dw - d->pl)) * d->c +
            c;
        for (U32 s = w->s0; s < w->s1; s++, p += d->dw * d->c) {
            const U32 e = r * d->kw + s;
            while (e / LKS_ROW_PIECE > pieces.count)
                LKS_FN(push)(&pieces, LKS_FN(tree)(lane));
            lane[e % LKS_ROW_LANES] = lane[e % LKS_ROW_LANES] + LOAD(p);
        }
    }
    while ((d->kh * d->kw - 1u) / LKS_ROW_PIECE >= pieces.count)
        LKS_FN(push)(&pieces, LKS_FN(tree)(lane));
    return LKS_FN(root)(&pieces);
}
#endif

static V LKS_FN(div)(V v, F32 by)
{
#if LKS_DIVSQRT_IS_SOFT
    F32 lane[VEC];
    STORE(v, lane);
    for (int i = 0; i < VEC; i++)
        lane[i] = lks_div(lane[i], by);
    return LOAD(lane);
#else
    return v / by;
#endif
}

#ifdef MEAN
__kernel void LKS_KERNEL(mean)(__global const F32 *restrict x, __global F32 *restrict y,
                               struct maxpool_dims d)
{
    FOR_ROW(row, (U64)d.n * d.oh)
    {
        U32 n = (U32)row / d.oh, oh = (U32)row % d.oh;
        __global const F32 *image = x + (U64)n * d.h * d.w * d.c;
        FOR_COLUMN(ow, d.ow)
        {
            struct LKS_FN(window) w = LKS_FN(window_at)(&d, oh, ow);
            F32 count = lks_pool_count(&d, oh, ow);
            FOR_CHANNEL(c, d)
            {
                V v = LKS_FN(sum)(image, &d, &w, c) + 0.0f;
                STORE(LKS_FN(div)(v, count), y + (row * d.ow + ow) * d.c + c);
            }
        }
    }
}
#endif

#ifdef LANES
/* Work-item (vector of channels, lane, window). */
__kernel __attribute__((reqd_work_group_size(X, 32, 1))) void
LKS_KERNEL(lanes)(__global const F32 *restrict x, __global F32 *restrict y, struct maxpool_dims d)
{
    __local V tile[32][X];
    const U64 o = get_global_id(2);
    const U32 ow = (U32)(o % d.ow), oh = (U32)(o / d.ow % d.oh);
    const U32 lane = get_local_id(1), column = get_local_id(0);
    const U32 c = min((U32)get_global_id(0) * VEC, d.c - VEC);
    const struct LKS_FN(window) w = LKS_FN(window_at)(&d, oh, ow);
    __global const F32 *image = x + (o / d.ow / d.oh) * d.h * d.w * d.c + c;
    const U32 taps = d.kh * d.kw;
    struct LKS_FN(counter) pieces;
    pieces.count = 0u;
    for (U32 from = 0u; from < taps; from += LKS_ROW_PIECE) {
        const U32 end = min(from + LKS_ROW_PIECE, taps);
        V v = (V)(0.0f);
        for (U32 e = from + lane; e < end; e += 32u) {
            const U32 r = e / d.kw, s = e % d.kw;
            if (r >= w.r0 && r < w.r1 && s >= w.s0 && s < w.s1)
                v = v + LOAD(image + ((U64)(w.top + r * d.dh - d.pt) * d.w +
                                      (w.left + s * d.dw - d.pl)) * d.c);
        }
        tile[lane][column] = v;
        for (U32 s = 1u; s < 32u; s *= 2u) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lane % (2u * s) == 0u)
                tile[lane][column] = tile[lane][column] + tile[lane + s][column];
        }
        if (lane == 0u)
            LKS_FN(push)(&pieces, tile[0][column]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0u && (U32)get_global_id(0) * VEC < d.c)
        STORE(LKS_FN(div)(LKS_FN(root)(&pieces) + 0.0f, lks_pool_count(&d, oh, ow)), y + o * d.c + c);
}
#endif

#ifdef GATHER
__kernel void LKS_KERNEL(gather)(__global const F32 *restrict dy, __global F32 *restrict dx,
                                 struct maxpool_dims d)
{
#ifdef FULL
    const F32 inverse = lks_div(1.0f, (F32)(d.kh * d.kw));
#endif
    FOR_ROW(row, (U64)d.n * d.h)
    {
        U32 n = (U32)row / d.h, at_h = (U32)row % d.h + d.pt, h0, h1;
        LKS_FN(windows)(at_h, d.sh, d.kh, d.dh, d.oh, &h0, &h1);
        FOR_COLUMN(w, d.w)
        {
            U32 at_w = w + d.pl, w0, w1;
            LKS_FN(windows)(at_w, d.sw, d.kw, d.dw, d.ow, &w0, &w1);
            FOR_CHANNEL(c, d)
            {
                V acc = (V)(0.0f);
                /* The tap (r, s) goes up while the window goes down. */
                for (U32 oh = h1; oh-- > h0;) {
                    if ((at_h - oh * d.sh) % d.dh != 0u)
                        continue;
                    for (U32 ow = w1; ow-- > w0;) {
#ifndef FULL
                        const F32 inverse = lks_div(1.0f, lks_pool_count(&d, oh, ow));
#endif
                        if ((at_w - ow * d.sw) % d.dw == 0u)
                            acc = fma(LOAD(dy + (((U64)n * d.oh + oh) * d.ow + ow) * d.c + c),
                                      (V)(inverse), acc);
                    }
                }
                STORE(acc + 0.0f, dx + (row * d.w + w) * d.c + c);
            }
        }
    }
}
#endif
