/*
 * unary.cl - schedules `flat` of the functions of one element and their gradients. Macros: OF, the
 * function of contract/unary.h; INPUTS, 1 for y = f(x), 2 for a gradient, 3 for the gradient of
 * one; VEC, neighbours that a work-item of a GPU reads at once (ACROSS). On a CPU device the loop
 * is left to the compiler's vectors, since the functions have no branches.
 */
#include "contract/unary.h"
#include "op/vec.h"

#if INPUTS == 1
#define INPUT_ARGS  __global const F32 *restrict x
#define VALUE(i)    OF(x[i], a, b)
#elif INPUTS == 2
#define INPUT_ARGS  __global const F32 *restrict x, __global const F32 *restrict g
#define VALUE(i)    (OF(x[i], a, b) * g[i])
#else
#define INPUT_ARGS                                                                                 \
    __global const F32 *restrict x, __global const F32 *restrict g, __global const F32 *restrict h
#define VALUE(i)    (OF(x[i], a, b) * g[i] * h[i])
#endif

__kernel void LKS_KERNEL(unary)(INPUT_ARGS, __global F32 *restrict y, U64 n, U32 chunk, F32 a,
                                F32 b)
{
    U64 i = get_global_id(0) * (U64)chunk, end = i + chunk < n ? i + chunk : n;
#ifdef ACROSS
    for (; i + VEC <= end; i += VEC) {
        F32 in[VEC], out[VEC];
        STORE(LOAD(x + i), in);
        UNROLL for (int k = 0; k < VEC; k++)
            out[k] = OF(in[k], a, b);
        V v = LOAD(out);
#if INPUTS > 1
        v = v * LOAD(g + i);
#endif
#if INPUTS > 2
        v = v * LOAD(h + i);
#endif
        STORE(v, y + i);
    }
#endif
    for (; i < end; i++)
        y[i] = VALUE(i);
}
#undef INPUT_ARGS
#undef VALUE
