/*
 * binary.cl - schedule `flat` of the operators on two tensors. A work-item takes a chunk of
 * neighbours, run by run along the last axis, where each operand moves by 1 or stands still.
 * Macros: OF, the function of contract/binary.h; A and B, those steps; PICK_DY for the gradients
 * that take dy; VEC, neighbours that a work-item of a GPU reads at once (ACROSS).
 */
#include "contract/binary.h"
#include "op/vec.h"

#ifdef PICK_DY
#define MORE_ARGS __global const F32 *restrict dy,
#define VALUE(k)  OF(p[(k) * A], q[(k) * B], dy[i + (k)])
#else
#define MORE_ARGS
#define VALUE(k)  OF(p[(k) * A], q[(k) * B])
#endif

__kernel void LKS_KERNEL(binary)(__global const F32 *restrict a, __global const F32 *restrict b,
                                 MORE_ARGS __global F32 *restrict y, U64 n, U32 chunk,
                                 struct binary_dims d)
{
    U64 i = get_global_id(0) * (U64)chunk, end = i + chunk < n ? i + chunk : n;
    U64 last = d.size[d.axes - 1u];
    while (i < end) {
        struct lks_pair at = lks_binary_at(&d, i);
        U64 left = last - i % last, rest = end - i;
        U32 run = left < rest ? (U32)left : (U32)rest;
        __global const F32 *p = a + at.a, *q = b + at.b;
#ifdef ACROSS
        if (run == VEC) { /* the chunk of a work-item */
            F32 u[VEC], v[VEC], out[VEC];
            STORE(A ? LOAD(p) : (V)(p[0]), u);
            STORE(B ? LOAD(q) : (V)(q[0]), v);
            UNROLL for (int k = 0; k < VEC; k++)
#ifdef PICK_DY
                out[k] = OF(u[k], v[k], dy[i + k]);
#else
                out[k] = OF(u[k], v[k]);
#endif
            STORE(LOAD(out), y + i);
            return;
        }
#endif
        for (U32 k = 0u; k < run; k++)
            y[i + k] = VALUE(k);
        i += run;
    }
}
#undef MORE_ARGS
#undef VALUE
