/*
 * concat.h - contract of concat: up to eight tensors joined along one axis.
 *
 * y is seen as rows, everything from the axis on being one row: row r of y is row r of input 0,
 * then row r of input 1, and so on.
 *
 * 1. Each element is copied bit for bit; nothing rounds, so the error is 0.
 * Special values pass, whatever they are; the elements may be integers.
 */
#ifndef LKS_CONTRACT_CONCAT_H
#define LKS_CONTRACT_CONCAT_H

#include "contract/num.h"

#define LKS_CONCAT_IN 8

struct concat_dims {
    U32 n, row;             /* inputs; elements of a row of y */
    U32 end[LKS_CONCAT_IN]; /* where the part of each input ends in a row */
};

/* The input that column c belongs to. */
LKS_INLINE U32 lks_concat_which(LKS_CONST struct concat_dims *d, U32 c)
{
    U32 k = 0;
    while (c >= d->end[k])
        k++;
    return k;
}

#define LKS_CONCAT_PICK(k, a, b, c, d, e, f, g, h)                                                 \
    ((k) == 0   ? (a)                                                                              \
     : (k) == 1 ? (b)                                                                              \
     : (k) == 2 ? (c)                                                                              \
     : (k) == 3 ? (d)                                                                              \
     : (k) == 4 ? (e)                                                                              \
     : (k) == 5 ? (f)                                                                              \
     : (k) == 6 ? (g)                                                                              \
                : (h))

/* Elements [first, end) of y, run by run. */
LKS_INLINE void lks_concat_range(LKS_GLOBAL LKS_CONST U32 *x0, LKS_GLOBAL LKS_CONST U32 *x1,
                                 LKS_GLOBAL LKS_CONST U32 *x2, LKS_GLOBAL LKS_CONST U32 *x3,
                                 LKS_GLOBAL LKS_CONST U32 *x4, LKS_GLOBAL LKS_CONST U32 *x5,
                                 LKS_GLOBAL LKS_CONST U32 *x6, LKS_GLOBAL LKS_CONST U32 *x7,
                                 LKS_GLOBAL U32 *y, LKS_CONST struct concat_dims *d, U64 first,
                                 U64 end)
{
    U64 i = first, r = first / d->row;
    U32 c = (U32)(first - r * d->row), k = lks_concat_which(d, c);
    while (i < end) {
        U32 start = k > 0 ? d->end[k - 1] : 0, width = d->end[k] - start, run = d->end[k] - c;
        LKS_GLOBAL LKS_CONST U32 *x = LKS_CONCAT_PICK(k, x0, x1, x2, x3, x4, x5, x6, x7);
        LKS_GLOBAL LKS_CONST U32 *from = x + r * width + (c - start);
        LKS_GLOBAL U32 *to = y + i;
        run = end - i < run ? (U32)(end - i) : run;
        for (U32 j = 0; j < run; j++)
            to[j] = from[j];
        i += run;
        c = d->end[k];
        k++;
        if (k == d->n) {
            k = 0;
            c = 0;
            r++;
        }
    }
}

LKS_INLINE void concat_item(LKS_GLOBAL LKS_CONST U32 *x0, LKS_GLOBAL LKS_CONST U32 *x1,
                            LKS_GLOBAL LKS_CONST U32 *x2, LKS_GLOBAL LKS_CONST U32 *x3,
                            LKS_GLOBAL LKS_CONST U32 *x4, LKS_GLOBAL LKS_CONST U32 *x5,
                            LKS_GLOBAL LKS_CONST U32 *x6, LKS_GLOBAL LKS_CONST U32 *x7,
                            LKS_GLOBAL U32 *y, LKS_CONST struct concat_dims *d, U64 i)
{
    lks_concat_range(x0, x1, x2, x3, x4, x5, x6, x7, y, d, i, i + 1);
}

#endif
