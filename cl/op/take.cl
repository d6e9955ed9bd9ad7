/*
 * take.cl - schedule `flat` of take and take_pixels: a work-item copies `chunk` neighbours of one
 * sample, a multiple of 4, and `per` work-items make a sample. Macros: VEC, words at once; WHOLE,
 * if samples end with a word; PIXELS, for take_pixels.
 */
#include "contract/num.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)

#ifdef PIXELS

/* Bytes `at` to at + left, at most four, of x. */
static U32 LKS_FN(bytes)(__global const U32 *x, U64 at, U32 left)
{
    U32 word = x[at >> 2];
#if !WHOLE
    U32 shift = 8u * (U32)(at & 3u);
    word >>= shift;
    if (shift + 8u * left > 32u)
        word |= x[(at >> 2) + 1u] << (32u - shift);
#endif
    return word;
}

__kernel void LKS_KERNEL(take_pixels)(__global const U32 *restrict x,
                                      __global const U32 *restrict which,
                                      __global const F32 *restrict table, __global F32 *restrict y,
                                      U32 n, U32 size, U32 chunk, U32 per, U32 c)
{
    U32 id = (U32)get_global_id(0), s = id / per;
    if (s >= n)
        return;
    U32 k = (id - s * per) * chunk, end = k + chunk < size ? k + chunk : size, column = k % c;
    U64 from = (U64)which[s] * size;
    y += (U64)s * size;
    for (; k < end; k += 4u) {
        U32 left = end - k < 4u ? end - k : 4u;
        U32 word = LKS_FN(bytes)(x, from + k, left);
        F32 v[4];
        for (U32 j = 0u; j < 4u; j++, word >>= 8) {
            v[j] = table[(word & 255u) * c + column];
            column = column + 1u < c ? column + 1u : 0u;
        }
#if WHOLE
        *(__global float4 *)(y + k) = (float4)(v[0], v[1], v[2], v[3]);
#else
        for (U32 j = 0u; j < left; j++)
            y[k + j] = v[j];
#endif
    }
}

#else

__kernel void LKS_KERNEL(take)(__global const U32 *restrict x, __global const U32 *restrict which,
                               __global U32 *restrict y, U32 n, U32 size, U32 chunk, U32 per)
{
    U32 id = (U32)get_global_id(0), s = id / per;
    if (s >= n)
        return;
    U32 k = (id - s * per) * chunk, end = k + chunk < size ? k + chunk : size;
    x += (U64)which[s] * size;
    y += (U64)s * size;
    for (; k + VEC <= end; k += VEC)
        JOIN(vstore, VEC)(JOIN(vload, VEC)(0, x + k), 0, y + k);
    for (; k < end; k++)
        y[k] = x[k];
}

#endif
