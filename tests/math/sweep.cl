/* sweep.cl - one kernel a function of functions.h: out[i] = bits of f(first + i * stride). */
#include "functions.h"

#define MATH_KERNEL(name, expression)                                                              \
    __kernel void sweep_##name(uint first, uint stride, __global uint *out)                        \
    {                                                                                              \
        uint i = (uint)get_global_id(0);                                                           \
        float x = lks_float(first + i * stride);                                                   \
        out[i] = math_canonical(expression);                                                       \
    }
MATH_FUNCTIONS(MATH_KERNEL)

/* out[i] = bits of a[i] / b[i], by the own sequence. */
__kernel void sweep_division(__global const uint *a, __global const uint *b, __global uint *out)
{
    uint i = (uint)get_global_id(0);
    out[i] = math_canonical(lks_div_soft(lks_float(a[i]), lks_float(b[i])));
}

/* out[i] = bits of the row sum of x[i], x[i + step], ..., n elements; then the row of squares. */
__kernel void sweep_rows(__global const float *x, uint step, uint n, __global uint *out)
{
    uint i = (uint)get_global_id(0);
    out[2 * i] = lks_bits(lks_row_sum(x + i, step, n));
    out[2 * i + 1] = lks_bits(lks_row_dot(x + i, step, x + i, step, n));
}
