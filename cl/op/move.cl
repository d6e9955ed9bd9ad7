/*
 * move.cl - schedules of move. Macros: RANK of the dims, and one of
 *   ROWS   a work-item copies `piece` rows of a plane (CPU)
 *   FLAT   a work-item copies one element (GPU)
 *   TILE   squares of TILE x TILE, for transpositions: the last axis of y (`a`) is not the last
 *          of x, but axis `b` is. With LOCAL a group turns a square in local memory (GPU), else a
 *          work-item copies it (CPU).
 */
#include "contract/move.h"

#ifdef ROWS
__kernel void LKS_KERNEL(rows)(__global const U32 *restrict x, __global U32 *restrict y,
                               struct move_dims d, U32 piece)
{
    U32 n = d.axis[RANK - 2].out, first = (U32)get_global_id(0) * piece;
    U32 end = n - first < piece ? n : first + piece;
    lks_move_rows(x, y, &d, RANK, (U32)get_global_id(1), first, end);
}
#endif

#ifdef FLAT
__kernel void LKS_KERNEL(flat)(__global const U32 *restrict x, __global U32 *restrict y,
                               struct move_dims d, U64 n)
{
    U64 i = get_global_id(0);
    if (i < n) {
        U32 from = lks_move_from(&d, RANK, (U32)i);
        y[i] = from == LKS_MOVE_NONE ? d.value : x[from];
    }
}
#endif

#ifdef TILE
/* `o` counts over all axes but b and the last. Returns where it reads x; *to: where it writes. */
static U32 LKS_FN(outer)(const struct move_dims *d, U32 b, U32 o, U32 *to)
{
    U32 from = 0, at = 0, weight = d->axis[RANK - 1].out;
    for (U32 k = RANK - 1; k-- > 0;) {
        if (k != b) {
            U32 rest = o / d->axis[k].out, c = o - rest * d->axis[k].out;
            U32 s = lks_move_at(&d->axis[k], c);
            from = s == LKS_MOVE_NONE || from == LKS_MOVE_NONE ? LKS_MOVE_NONE : from + s;
            at += c * weight;
            o = rest;
        }
        weight *= d->axis[k].out;
    }
    *to = at;
    return from;
}

/* yb: stride of axis b in y. */
__kernel void LKS_KERNEL(tile)(__global const U32 *restrict x, __global U32 *restrict y,
                               struct move_dims d, U32 b, U32 yb)
{
    U32 na = d.axis[RANK - 1].out, sa = d.axis[RANK - 1].stride, nb = 1, to;
    U32 from = LKS_FN(outer)(&d, b, (U32)get_global_id(2), &to);
    for (U32 k = 0; k < RANK; k++)
        nb = k == b ? d.axis[k].out : nb;
#ifdef LOCAL
    __local U32 square[TILE][TILE + 1];
    U32 a0 = (U32)get_group_id(0) * TILE, b0 = (U32)get_group_id(1) * TILE;
    U32 lx = (U32)get_local_id(0), ly = (U32)get_local_id(1);
    for (U32 j = ly; j < TILE; j += LOCAL)
        if (a0 + j < na && b0 + lx < nb)
            square[j][lx] = from == LKS_MOVE_NONE ? d.value : x[from + (a0 + j) * sa + b0 + lx];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (U32 j = ly; j < TILE; j += LOCAL)
        if (b0 + j < nb && a0 + lx < na)
            y[to + (b0 + j) * yb + a0 + lx] = square[lx][j];
#else
    U32 a0 = (U32)get_global_id(0) * TILE, b0 = (U32)get_global_id(1) * TILE;
    U32 a1 = na - a0 < TILE ? na : a0 + TILE, b1 = nb - b0 < TILE ? nb : b0 + TILE;
    for (U32 j = b0; j < b1; j++)
        for (U32 i = a0; i < a1; i++)
            y[to + j * yb + i] = from == LKS_MOVE_NONE ? d.value : x[from + i * sa + j];
#endif
}
#endif
