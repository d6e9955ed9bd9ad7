/*
 * move.h - contract of move, which slices, pads, flips, spreads and transposes.
 *
 * Axis k of y reads one axis of x, each axis of x being read by one: coordinate o of y meets
 * t = begin + o*step. Where all t are multiples of `dilate` and s = t / dilate is inside x,
 *     y[o] = x[s], else y[o] = value.
 *
 * 1. Each element is copied bit for bit; nothing rounds, so the error is 0.
 * 2. No two elements of y read one of x, so that the gradient is a move too, with value +0.
 * Special values pass, whatever they are; the elements may be integers.
 */
#ifndef LKS_CONTRACT_MOVE_H
#define LKS_CONTRACT_MOVE_H

#include "contract/num.h"

#define LKS_MOVE_RANK 5
#define LKS_MOVE_NONE 0xffffffffu

/* One axis of y: its size, and of the axis of x that it reads the size and the stride. */
struct lks_move_axis {
    U32 out, in, stride;
    I32 begin, step, dilate;
};

struct move_dims {
    U32 rank;  /* 3 to 5: neighbours that move as one are one axis; axes of one element fill up */
    U32 value; /* bit pattern */
    struct lks_move_axis axis[LKS_MOVE_RANK];
};

/* Where coordinate o of an axis reads x, from the start of that axis; LKS_MOVE_NONE: nowhere. */
LKS_INLINE U32 lks_move_at(LKS_CONST struct lks_move_axis *a, U32 o)
{
    I32 t = a->begin + (I32)o * a->step;
    I32 s = a->dilate == 1 ? t : t / a->dilate;
    return t < 0 || s * a->dilate != t || (U32)s >= a->in ? LKS_MOVE_NONE : (U32)s * a->stride;
}

/* Where element i of y, counted over the first `rank` axes, reads x. */
LKS_INLINE U32 lks_move_from(LKS_CONST struct move_dims *d, U32 rank, U32 i)
{
    U32 from = 0;
    for (U32 k = rank; k-- > 0;) {
        U32 rest = i / d->axis[k].out;
        U32 at = lks_move_at(&d->axis[k], i - rest * d->axis[k].out);
        from = at == LKS_MOVE_NONE || from == LKS_MOVE_NONE ? LKS_MOVE_NONE : from + at;
        i = rest;
    }
    return from;
}

LKS_INLINE void move_item(LKS_GLOBAL LKS_CONST U32 *x, LKS_GLOBAL U32 *y,
                          LKS_CONST struct move_dims *d, U64 i)
{
    U32 from = lks_move_from(d, d->rank, (U32)i);
    y[i] = from == LKS_MOVE_NONE ? d->value : x[from];
}

/* Rows [first, end) of y inside plane `plane`: the last axis is a row, the last two are a plane. */
LKS_INLINE void lks_move_rows(LKS_GLOBAL LKS_CONST U32 *x, LKS_GLOBAL U32 *y,
                              LKS_CONST struct move_dims *d, U32 rank, U32 plane, U32 first,
                              U32 end)
{
    struct lks_move_axis rows = d->axis[rank - 2], a = d->axis[rank - 1];
    U32 base = lks_move_from(d, rank - 2, plane), lo = 0, hi = 0;
    if (a.step == 1 && a.dilate == 1) { /* the part of a row that is inside x */
        lo = a.begin < 0 ? (U32)-a.begin : 0;
        lo = lo < a.out ? lo : a.out;
        hi = (I32)a.in - a.begin < (I32)lo ? lo : (U32)((I32)a.in - a.begin);
        hi = hi < a.out ? hi : a.out;
    }
    for (U32 r = first; r < end; r++) {
        LKS_GLOBAL U32 *to = y + ((U64)plane * rows.out + r) * a.out;
        U32 at = base == LKS_MOVE_NONE ? LKS_MOVE_NONE : lks_move_at(&rows, r);
        if (at == LKS_MOVE_NONE) {
            for (U32 j = 0; j < a.out; j++)
                to[j] = d->value;
        } else if (a.step == 1 && a.dilate == 1) {
            LKS_GLOBAL LKS_CONST U32 *from = x + base + at;
            for (U32 j = 0; j < lo; j++)
                to[j] = d->value;
            if (a.stride == 1) {
                from += (I32)lo + a.begin;
                for (U32 j = 0; j < hi - lo; j++)
                    to[lo + j] = from[j];
            } else {
                for (U32 j = lo; j < hi; j++)
                    to[j] = from[(U32)((I32)j + a.begin) * a.stride];
            }
            for (U32 j = hi; j < a.out; j++)
                to[j] = d->value;
        } else {
            for (U32 j = 0; j < a.out; j++) {
                U32 s = lks_move_at(&a, j);
                to[j] = s == LKS_MOVE_NONE ? d->value : x[base + at + s];
            }
        }
    }
}

#endif
