/*
 * softmax.cl - schedules of softmax, log_softmax and their gradients: `cpu` (ROWS, a work-item a
 * row) and `gpu` (LANES, 32 work-items a row). LOG: log_softmax; GRAD: the gradient.
 */
#include "contract/softmax.h"
#include "op/row.h"

#ifdef GRAD
#define ARGUMENTS                                                                                  \
    __global const F32 *restrict x, __global const F32 *restrict dy, __global F32 *restrict y
#else
#define ARGUMENTS __global const F32 *restrict x, __global F32 *restrict y
#endif

/* The result of element e, from the row's sum s and maximum top. In a gradient x is the output of
 * the forward pass; a softmax keeps its exponentials in y. */
#if defined(GRAD) && defined(LOG)
#define RESULT(e) lks_fma(-lks_exp(p[e]), s, g[e])
#elif defined(GRAD)
#define RESULT(e) (p[e] * (g[e] - s))
#elif defined(LOG)
#define RESULT(e) ((p[e] - top) - s)
#else
#define RESULT(e) lks_div(to[e], s)
#endif

#ifdef ROWS
#define BLOCK LKS_ROW_LANES

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
LKS_KERNEL(rows)(ARGUMENTS, struct softmax_row_dims d)
{
    U64 row = get_global_id(0);
    U32 n = lks_softmax_length(&d, row), e = 0u;
    __global const F32 *p = x + row * d.f;
    __global F32 *to = y + row * d.f;
    struct LKS_FN(row) sum;
    F32 s;
#ifdef GRAD
    __global const F32 *g = dy + row * d.f;
#else
    F32 top = p[0];
    for (; e + 16u <= n; e += 16u) {
        float16 v = vload16(0, p + e);
        F32 t[16];
        vstore16(v, 0, t);
        for (U32 k = 0u; k < 16u; k++)
            top = t[k] > top ? t[k] : top;
    }
    for (; e < n; e++)
        top = p[e] > top ? p[e] : top;
#endif
    LKS_FN(begin)(&sum);
    for (e = 0u; e < n; e += BLOCK) {
        U32 m = n - e < BLOCK ? n - e : BLOCK;
        if (sum.fill == LKS_ROW_PIECE)
            LKS_FN(piece)(&sum);
#ifdef GRAD
        if (m == BLOCK) {
#ifdef LOG
            sum.low = sum.low + vload16(0, g + e);
            sum.high = sum.high + vload16(1, g + e);
#else
            sum.low = fma(vload16(0, g + e), vload16(0, p + e), sum.low);
            sum.high = fma(vload16(1, g + e), vload16(1, p + e), sum.high);
#endif
            sum.fill += BLOCK;
        } else {
#ifdef LOG
            TAIL(sum, m, lane[k] + g[e + k]);
#else
            TAIL(sum, m, lks_fma(g[e + k], p[e + k], lane[k]));
#endif
        }
#else
        F32 v[BLOCK];
        if (m == BLOCK) {
            for (U32 k = 0u; k < BLOCK; k++)
                v[k] = lks_exp(p[e + k] - top);
            sum.low = sum.low + vload16(0, v);
            sum.high = sum.high + vload16(1, v);
            sum.fill += BLOCK;
        } else {
            for (U32 k = 0u; k < m; k++)
                v[k] = lks_exp(p[e + k] - top);
            TAIL(sum, m, lane[k] + v[k]);
        }
#ifndef LOG
        for (U32 k = 0u; k < m; k++)
            to[e + k] = v[k];
#endif
#endif
    }
    s = LKS_FN(end)(&sum);
#if defined(LOG) && !defined(GRAD)
    s = lks_log(s);
#endif
    for (e = 0u; e < n; e++)
        to[e] = RESULT(e);
    for (; e < d.f; e++)
        to[e] = 0.0f;
}
#endif

#ifdef LANES
__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void
LKS_KERNEL(lanes)(ARGUMENTS, struct softmax_row_dims d)
{
    __local F32 lane[LKS_ROW_LANES];
    U64 row = get_group_id(0);
    U32 j = get_local_id(0), n = lks_softmax_length(&d, row);
    __global const F32 *p = x + row * d.f;
    __global F32 *to = y + row * d.f;
    struct lks_counter pieces;
    F32 s;
#ifdef GRAD
    __global const F32 *g = dy + row * d.f;
#else
    F32 top = p[j < n ? j : 0u];
    for (U32 e = j; e < n; e += LKS_ROW_LANES)
        top = p[e] > top ? p[e] : top;
    lane[j] = top;
    barrier(CLK_LOCAL_MEM_FENCE);
    top = lane[0];
    for (U32 k = 1u; k < LKS_ROW_LANES; k++)
        top = lane[k] > top ? lane[k] : top;
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    lks_counter_init(&pieces);
    for (U32 e0 = 0u; e0 < n; e0 += LKS_ROW_PIECE) {
        U32 e1 = n - e0 < LKS_ROW_PIECE ? n : e0 + LKS_ROW_PIECE;
        F32 a = 0.0f;
        for (U32 e = e0 + j; e < e1; e += LKS_ROW_LANES) {
#if defined(GRAD) && defined(LOG)
            a = lks_chain(a, g[e]);
#elif defined(GRAD)
            a = lks_fma(g[e], p[e], a);
#else
            F32 v = lks_exp(p[e] - top);
            a = lks_chain(a, v);
#ifndef LOG
            to[e] = v;
#endif
#endif
        }
        lks_counter_push(&pieces, LKS_FN(tree)(a, lane, j));
    }
    s = lks_final(lks_counter_root(&pieces));
#if defined(LOG) && !defined(GRAD)
    s = lks_log(s);
#endif
    /* Each item reads back what it wrote itself. */
    for (U32 e = j; e < d.f; e += LKS_ROW_LANES)
        to[e] = e < n ? RESULT(e) : 0.0f;
}
#endif
