/*
 * num.h - the ground that all contract text stands on, valid as C11 and as OpenCL C 1.2.
 *
 * It gives the types, address-space words, bit casts and the only operations that may round:
 * + - * (written as such, never contracted), lks_fma, lks_div, lks_sqrt, lks_rint, lks_floor,
 * lks_trunc and the conversions between integers and floats. Everything else in cl/contract is
 * built from these. On the host this is the only contract file that includes standard headers.
 *
 * Division and square root are correctly rounded. They are the native ones in host C, and in
 * OpenCL when LKS_NATIVE_DIVSQRT is defined, which the host does only together with the build
 * option -cl-fp32-correctly-rounded-divide-sqrt. Otherwise divsqrt.h computes the same bits.
 * LKS_SOFT_DIVSQRT=1 forces divsqrt.h everywhere, so that it can be tested.
 *
 * Host C must be compiled with -ffp-contract=off and without -ffast-math, and must run in
 * round-to-nearest without flush-to-zero.
 */
#ifndef LKS_CONTRACT_NUM_H
#define LKS_CONTRACT_NUM_H

#ifdef __OPENCL_VERSION__

#pragma OPENCL FP_CONTRACT OFF

#ifdef __FAST_RELAXED_MATH__
#error "contract text must not be built with relaxed math"
#endif

typedef float F32;
typedef int I32;
typedef uint U32;
typedef ulong U64;

#define LKS_GLOBAL __global
#define LKS_INLINE static inline
/* Of functions of one element: compilers vectorise a loop over one only if it has no call left. */
#define LKS_ELEMENT static inline __attribute__((always_inline))

#else /* C11 */

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "contract text must not be built with -ffast-math"
#endif

typedef float F32;
typedef int32_t I32;
typedef uint32_t U32;
typedef uint64_t U64;

#define LKS_GLOBAL
#if defined(__GNUC__)
#define LKS_INLINE  static inline __attribute__((unused))
#define LKS_ELEMENT static inline __attribute__((unused, always_inline))
#else
#define LKS_INLINE  static inline
#define LKS_ELEMENT static inline
#endif

#ifndef __cplusplus
_Static_assert(FLT_EVAL_METHOD == 0, "float expressions must be evaluated in float");
_Static_assert(sizeof(F32) == 4 && FLT_MANT_DIG == 24, "float must be IEEE-754 binary32");
#endif

#endif /* __OPENCL_VERSION__ */

#define LKS_CONST const

/* The bit pattern of x. */
LKS_INLINE U32 lks_bits(F32 x)
{
#ifdef __OPENCL_VERSION__
    return as_uint(x);
#else
    U32 u;
    memcpy(&u, &x, sizeof(u));
    return u;
#endif
}

/* The number with bit pattern u. */
LKS_INLINE F32 lks_float(U32 u)
{
#ifdef __OPENCL_VERSION__
    return as_float(u);
#else
    F32 x;
    memcpy(&x, &u, sizeof(x));
    return x;
#endif
}

/* a * b + c, rounded once. The only fused multiply-add there is. */
LKS_INLINE F32 lks_fma(F32 a, F32 b, F32 c)
{
#ifdef __OPENCL_VERSION__
    return fma(a, b, c);
#else
    return fmaf(a, b, c);
#endif
}

/*
 * acc + x, one link of a plain chain. The written fma has the same bits for every operand. It
 * stands here because Intel's CPU compiler (2026.2) adds in another order where it vectorises
 * `acc = acc + x[i]` inside another loop, and does not where the addition is an fma.
 */
LKS_INLINE F32 lks_chain(F32 acc, F32 x)
{
#ifdef __OPENCL_VERSION__
    return fma(x, 1.0f, acc);
#else
    return acc + x;
#endif
}

/* To the nearest integer, ties to even. */
LKS_INLINE F32 lks_rint(F32 x)
{
#ifdef __OPENCL_VERSION__
    return rint(x);
#else
    return rintf(x);
#endif
}

/* To the next integer towards minus infinity. */
LKS_INLINE F32 lks_floor(F32 x)
{
#ifdef __OPENCL_VERSION__
    return floor(x);
#else
    return floorf(x);
#endif
}

/* To the next integer towards zero. */
LKS_INLINE F32 lks_trunc(F32 x)
{
#ifdef __OPENCL_VERSION__
    return trunc(x);
#else
    return truncf(x);
#endif
}

/* c != 0 ? a : b, for values already computed on both sides. */
LKS_INLINE F32 lks_select(I32 c, F32 a, F32 b)
{
    return c ? a : b;
}

LKS_INLINE U32 lks_select_u(I32 c, U32 a, U32 b)
{
    return c ? a : b;
}

LKS_INLINE I32 lks_select_i(I32 c, I32 a, I32 b)
{
    return c ? a : b;
}

/* Tests on the bit pattern, which no compiler option can fold away. */
LKS_INLINE I32 lks_isnan(F32 x)
{
    return (lks_bits(x) & 0x7fffffffu) > 0x7f800000u;
}

LKS_INLINE I32 lks_isinf(F32 x)
{
    return (lks_bits(x) & 0x7fffffffu) == 0x7f800000u;
}

LKS_INLINE I32 lks_isfinite(F32 x)
{
    return (lks_bits(x) & 0x7fffffffu) < 0x7f800000u;
}

/* |x|, and the magnitude of x with the sign of s; exact on every bit pattern. */
LKS_INLINE F32 lks_abs(F32 x)
{
    return lks_float(lks_bits(x) & 0x7fffffffu);
}

LKS_INLINE F32 lks_copysign(F32 x, F32 s)
{
    return lks_float((lks_bits(x) & 0x7fffffffu) | (lks_bits(s) & 0x80000000u));
}

/* The one NaN and the positive infinity that contract functions return. */
LKS_INLINE F32 lks_nan(void)
{
    return lks_float(0x7fc00000u);
}

LKS_INLINE F32 lks_inf(void)
{
    return lks_float(0x7f800000u);
}

#include "contract/divsqrt.h"

#if (defined(LKS_SOFT_DIVSQRT) && LKS_SOFT_DIVSQRT) ||                                             \
    (defined(__OPENCL_VERSION__) && !defined(LKS_NATIVE_DIVSQRT))
#define LKS_DIVSQRT_IS_SOFT 1
#else
#define LKS_DIVSQRT_IS_SOFT 0
#endif

/* a / b, correctly rounded; subnormals, zeros, infinities and NaN as IEEE-754 has them. */
LKS_INLINE F32 lks_div(F32 a, F32 b)
{
#if LKS_DIVSQRT_IS_SOFT
    return lks_div_soft(a, b);
#else
    return a / b;
#endif
}

/* Square root, correctly rounded; sqrt(-0) = -0, NaN below zero. */
LKS_INLINE F32 lks_sqrt(F32 x)
{
#if LKS_DIVSQRT_IS_SOFT
    return lks_sqrt_soft(x);
#elif defined(__OPENCL_VERSION__)
    return sqrt(x);
#else
    return sqrtf(x);
#endif
}

#endif
