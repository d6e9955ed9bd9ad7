/*
 * pixels.cl - schedule `flat` of pixels: a word, four elements, at a time. Macro VEC: unused.
 */
#include "contract/num.h"

__kernel void LKS_KERNEL(pixels)(__global const U32 *restrict x, __global const F32 *restrict table,
                                 __global F32 *restrict y, U64 n, U32 chunk, U32 c)
{
    U64 i = get_global_id(0) * (U64)chunk, end = i + chunk < n ? i + chunk : n;
    U32 k = (U32)(i % c);
    for (; i < end; i += 4u) {
        U32 word = x[i >> 2];
        U32 left = end - i < 4u ? (U32)(end - i) : 4u;
        for (U32 j = 0u; j < left; j++, word >>= 8) {
            y[i + j] = table[(word & 255u) * c + k];
            k = k + 1u < c ? k + 1u : 0u;
        }
    }
}
