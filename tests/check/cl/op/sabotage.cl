/*
 * sabotage.cl - the dense layer with one fault, chosen by a macro. The harness must catch each.
 */
#include "contract/dense.h"

__kernel void LKS_KERNEL(sabotage)(__global const float *x, __global const float *w,
                                   __global const float *bias, __global float *y,
                                   __global uint *work, struct dense_dims d, U64 count)
{
    U64 i = get_global_id(0);
    if (i >= count)
        return;
    U64 n = i / d.o, o = i % d.o;
    U32 terms = d.i;
    F32 acc = 0.0f;
#ifdef TAIL /* whole fours only */
    terms = terms / 4u * 4u;
#endif
    for (U32 t = 0u; t < terms; t += 1u) {
#ifdef SWAPPED
        U32 k = terms - 1u - t;
#else
        U32 k = t;
#endif
#ifdef UNFUSED
        acc = x[n * d.i + k] * w[o * d.i + k] + acc;
#else
        acc = lks_fma(x[n * d.i + k], w[o * d.i + k], acc);
#endif
    }
    if (d.extra != 0u)
        acc = acc + bias[o];
#ifndef UNNORMALISED
    acc = acc + 0.0f;
#endif
#ifdef UNSTABLE /* follows what a workspace happened to hold */
    if ((work[0] & 1u) == 0u)
        acc = acc + 1.0f;
#endif
#ifdef UNWRITTEN
    if (i + 1u == count)
        return;
#endif
    y[i] = d.relu != 0u && acc <= 0.0f ? 0.0f : acc;
#ifdef BEHIND
    if (i + 1u == count)
        y[count] = acc;
#endif
#ifdef BEFORE
    if (i == 0u)
        y[-1] = acc;
#endif
#ifdef WORK
    if (i == 0u)
        work[4] = 0u;
#endif
}

__kernel void LKS_KERNEL(spoil)(__global float *x)
{
    x[0] = x[0] + 1.0f;
}
