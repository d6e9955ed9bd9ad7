/*
 * conv_few.cl - convolution (GRAD 0, strides 1) and its data gradient (GRAD 1) into M output
 * channels, few of them, for CPU devices: lanes are positions, and weights are broadcast.
 *
 * A work-item owns a band of rows of one sample. It first lays the rows of the source that the band
 * meets out as slab[channel][row][column], zeros where a tap leaves the source, so that a tap is
 * one distance for all positions. Then it chains tiles of 16 * NV positions, counted through the
 * slab's rows of `pitch` columns; positions behind the last column of a row are not stored.
 * GRAD 1 takes the positions of dx class by class (row, column modulo the stride); all classes of
 * a band read one slab.
 *   pack    weights as [tap][source channel][M]
 */
#include "contract/conv.h"
#include "op/transpose.h"

#ifndef M
#define M    1
#define NV   8
#define GRAD 0
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
LKS_KERNEL(pack)(__global const float *restrict w, __global float *restrict wp,
                 struct lks_conv_dims d)
{
    const U32 tap = get_global_id(0), taps = d.r * d.s, len = GRAD ? d.k : d.c;
    for (U32 l = 0u; l < len; l++)
        for (U32 m = 0u; m < M; m++)
            wp[((U64)tap * len + l) * M + m] =
                GRAD ? w[((U64)l * taps + tap) * M + m] : w[((U64)m * taps + tap) * len + l];
}

/* `count` columns of `len` channels to columns of planes. */
static inline void LKS_FN(turn)(__global const float *from, __global float *to, U32 count, U32 len,
                                U32 plane)
{
    if (len < 16u || count < 16u) {
        for (U32 l = 0u; l < len; l++)
            for (U32 x = 0u; x < count; x++)
                to[(U64)l * plane + x] = from[(U64)x * len + l];
        return;
    }
    for (U32 x0 = 0u; x0 < count; x0 += 16u) {
        for (U32 l0 = 0u; l0 < len; l0 += 16u) {
            const U32 x = min(x0, count - 16u), l = min(l0, len - 16u);
            float16 v[16];
            for (int i = 0; i < 16; i++)
                v[i] = vload16(0, from + (U64)(x + i) * len + l);
            LKS_FN(transpose)(v);
            for (int i = 0; i < 16; i++)
                vstore16(v[i], 0, to + (U64)(l + i) * plane + x);
        }
    }
}

/* The slab starts at row `row0` and column `col0` of the source, maybe before it. */
static inline void LKS_FN(fill)(__global const float *src, __global float *slab, I32 row0, I32 col0,
                                U32 slab_rows, U32 pitch, U32 plane, U32 src_h, U32 src_w, U32 len)
{
    const U32 left = min((U32)max(-col0, 0), pitch), first = (U32)max(col0, 0);
    const U32 inner = first < src_w ? min(src_w - first, pitch - left) : 0u;
    for (U32 i = 0u; i < slab_rows; i++, slab += pitch) {
        const U32 row = (U32)(row0 + (I32)i);
        const U32 count = row < src_h ? inner : 0u;
        for (U32 l = 0u; l < len; l++) {
            __global float *to = slab + (U64)l * plane;
            for (U32 x = 0u; x < (count > 0u ? left : pitch); x++)
                to[x] = 0.0f;
            for (U32 x = left + count; x < pitch; x++)
                to[x] = 0.0f;
        }
        if (count > 0u)
            LKS_FN(turn)(src + ((U64)row * src_w + first) * len, slab + left, count, len, plane);
    }
}

/* Where vectors of a class go: rows of dst `step` elements apart column by column. */
struct LKS_FN(to) {
    __global float *dst;
    __global const float *mask; /* or 0 */
    U64 first, row_step;        /* elements */
    U32 step, rows, cols, pitch;
};

static inline void LKS_FN(put)(const float16 *v, U32 q, const struct LKS_FN(to) *t)
{
    float lane[M * 16];
    U32 row = q / t->pitch, col = q % t->pitch;
#if M == 1
    if (t->step == 1u && t->mask == 0 && row < t->rows && col + 16u <= t->cols) {
        vstore16(v[0], 0, t->dst + t->first + row * t->row_step + col);
        return;
    }
#endif
    for (int m = 0; m < M; m++)
        vstore16(v[m], m, lane);
    for (U32 i = 0u; i < 16u && row < t->rows; row++, col = 0u) {
        const U32 run = min(16u - i, t->pitch - col), inside = t->cols - min(t->cols, col);
        const U32 stop = i + min(run, inside);
        U64 at = t->first + row * t->row_step + (U64)col * t->step;
        if (t->mask != 0) {
            for (U32 k = i; k < stop; k++, at += t->step)
                for (U32 m = 0u; m < M; m++)
                    t->dst[at + m] = t->mask[at + m] <= 0.0f ? 0.0f : lane[m * 16u + k];
        } else {
            for (U32 k = i; k < stop; k++, at += t->step)
                for (U32 m = 0u; m < M; m++)
                    t->dst[at + m] = lane[m * 16u + k];
        }
        i += run;
    }
}

/* Ends a piece of the chains (piece.h). */
static inline void LKS_FN(end_piece)(float16 *sum, float16 *acc)
{
#pragma unroll
    for (int i = 0; i < M * NV; i++) {
        sum[i] = sum[i] + acc[i];
        acc[i] = (float16)(0.0f);
    }
}

/* Work-item (band of `band` rows of each class, sample). */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
LKS_KERNEL(conv)(__global const float *restrict src, __global const float *restrict wp,
                 __global const float *restrict extra, __global float *restrict dst,
                 __global float *restrict slabs, struct lks_conv_dims d, U32 band, U32 slab_rows,
                 U32 pitch, U32 plane, U32 low_h, U32 low_w)
{
    const U32 row0 = (U32)get_global_id(0) * band, n = get_global_id(1);
#if GRAD
    const U32 src_h = d.oh, src_w = d.ow, len = d.k, dst_h = d.h, dst_w = d.w;
    const U32 step_h = d.stride_h, step_w = d.stride_w;
#else
    const U32 src_h = d.h, src_w = d.w, len = d.c, dst_h = d.oh, dst_w = d.ow;
    const U32 step_h = 1u, step_w = 1u;
#endif
    const U32 piece_taps = lks_piece_taps(len);
    __global float *slab = slabs + ((U64)n * get_global_size(0) + get_global_id(0)) * len * plane;
    LKS_FN(fill)(src + (U64)n * src_h * src_w * len, slab, (I32)(row0 + low_h), (I32)low_w,
                 slab_rows, pitch, plane, src_h, src_w, len);
    for (U32 class = 0u; class < step_h * step_w; class++) {
        const U32 class_h = class / step_w, class_w = class % step_w;
        struct LKS_FN(to) t = {dst, GRAD && d.extra == 1u ? extra : 0, 0u, 0u, step_w * M,
                               0u, 0u, pitch};
        if (class_w >= dst_w || class_h + (U64)row0 * step_h >= dst_h)
            continue;
        t.rows = min(band, (dst_h - class_h + step_h - 1u) / step_h - row0);
        t.cols = (dst_w - class_w + step_w - 1u) / step_w;
        t.first = (((U64)n * dst_h + class_h + (U64)row0 * step_h) * dst_w + class_w) * M;
        t.row_step = (U64)step_h * dst_w * M;
        for (U32 q = 0u; q < t.rows * pitch; q += 16u * NV) {
            float16 acc[M * NV], sum[M * NV];
            U32 piece = 0u;
#pragma unroll
            for (int i = 0; i < M * NV; i++)
                acc[i] = sum[i] = (float16)(0.0f);
            for (U32 r = 0u; r < d.r; r++) {
#if GRAD
                const I32 dr = (I32)(class_h + d.pad_h) - (I32)(r * d.dil_h);
                if (dr % (I32)d.stride_h != 0)
                    continue;
                const U32 off_h = (U32)(dr / (I32)d.stride_h) - low_h;
#else
                const U32 off_h = r * d.dil_h - d.pad_h - low_h;
#endif
                for (U32 s = 0u; s < d.s; s++) {
#if GRAD
                    const I32 ds = (I32)(class_w + d.pad_w) - (I32)(s * d.dil_w);
                    if (ds % (I32)d.stride_w != 0)
                        continue;
                    const U32 off_w = (U32)(ds / (I32)d.stride_w) - low_w;
#else
                    const U32 off_w = s * d.dil_w - d.pad_w - low_w;
#endif
                    __global const float *a = slab + off_h * pitch + off_w + q;
                    __global const float *b = wp + (U64)(r * d.s + s) * len * M;
                    if (piece != (r * d.s + s) / piece_taps) {
                        piece = (r * d.s + s) / piece_taps;
                        LKS_FN(end_piece)(sum, acc);
                    }
                    for (U32 l0 = 0u; l0 < len; l0 += LKS_PIECE) {
                        if (l0 > 0u)
                            LKS_FN(end_piece)(sum, acc);
                        for (U32 l = l0; l < min(l0 + LKS_PIECE, len); l++, a += plane, b += M) {
                            float16 w[M];
#pragma unroll
                            for (int m = 0; m < M; m++)
                                w[m] = (float16)(b[m]);
#pragma unroll
                            for (int j = 0; j < NV; j++) {
                                const float16 x = vload16(j, a);
#pragma unroll
                                for (int m = 0; m < M; m++)
                                    acc[j * M + m] = fma(x, w[m], acc[j * M + m]);
                            }
                        }
                    }
                }
            }
            LKS_FN(end_piece)(sum, acc);
#pragma unroll
            for (int j = 0; j < NV; j++) {
#pragma unroll
                for (int m = 0; m < M; m++) {
                    float16 v = sum[j * M + m];
                    if (d.extra == (GRAD ? 2u : 1u))
                        v = v + extra[m];
                    v = v + 0.0f;
                    if (!GRAD && d.relu != 0u)
                        v = select(v, (float16)(0.0f), v <= 0.0f);
                    acc[j * M + m] = v;
                }
                LKS_FN(put)(acc + j * M, q + 16u * j, &t);
            }
        }
    }
}
