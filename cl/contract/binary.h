/*
 * binary.h - contract of the operators on two tensors, y = f(a, b), which broadcast as in NumPy:
 * shapes are aligned at their last dimension; a dimension that is 1 or missing repeats.
 * LKS_BINARY lists them; `add`, for equal shapes, has a header of its own and the same bits.
 *
 * 1. f is one operation, rounded once: half an ulp. maximum, minimum and the comparisons are exact.
 *    pow is lks_pow of pow.h, 1 ulp, with its special values.
 * Special values follow IEEE-754. maximum and minimum give a where a and b are equal, so that
 * maximum(-0, +0) = -0, and a NaN if either is one. A comparison with a NaN is 0. mul_zero is the
 * product, but +0 where a or b is a zero, whatever the other one is: gradients of pow need 0 * inf.
 *
 * LKS_BINARY_PICK lists the gradients of maximum and minimum: dx = condition(a, b) ? dy : +0, in
 * the shape of dy, which is that of a and b broadcast. On ties all of it flows into a.
 */
#ifndef LKS_CONTRACT_BINARY_H
#define LKS_CONTRACT_BINARY_H

#include "contract/num.h"
#include "contract/pow.h"

/* Axes of y, outermost first; neighbours that both operands pass alike are one axis. a and b are
 * the steps of the operands along them, 0 where one repeats. */
struct binary_dims {
    U64 n; /* elements of y */
    U64 size[5], a[5], b[5];
    U32 axes;
};

struct lks_pair {
    U64 a, b;
};

/* The elements of a and b behind element i of y. */
LKS_INLINE struct lks_pair lks_binary_at(LKS_CONST struct binary_dims *d, U64 i)
{
    struct lks_pair at;
    U32 k;
    at.a = 0u;
    at.b = 0u;
    for (k = d->axes; k > 0u; k -= 1u) {
        U64 c = i % d->size[k - 1u];
        i = i / d->size[k - 1u];
        at.a += c * d->a[k - 1u];
        at.b += c * d->b[k - 1u];
    }
    return at;
}

/* U(name, f(a, b)) */
#define LKS_BINARY(U)                                                                              \
    U(add_wide, a + b)                                                                             \
    U(sub, a - b)                                                                                  \
    U(mul, a * b)                                                                                  \
    U(mul_zero, lks_select(a == 0.0f || b == 0.0f, 0.0f, a * b))                                   \
    U(pow, lks_pow(a, b))                                                                          \
    U(div, lks_div(a, b))                                                                          \
    U(maximum, lks_select(a >= b || lks_isnan(a), a, b))                                           \
    U(minimum, lks_select(a <= b || lks_isnan(a), a, b))                                           \
    U(equal, lks_select(a == b, 1.0f, 0.0f))                                                       \
    U(greater, lks_select(a > b, 1.0f, 0.0f))                                                      \
    U(less, lks_select(a < b, 1.0f, 0.0f))

/* U(name, condition(a, b)) */
#define LKS_BINARY_PICK(U)                                                                         \
    U(maximum_grad_a, a >= b)                                                                      \
    U(maximum_grad_b, !(a >= b))                                                                   \
    U(minimum_grad_a, a <= b)                                                                      \
    U(minimum_grad_b, !(a <= b))

#define LKS_BINARY_ITEM(of, item, expression)                                                      \
    LKS_INLINE F32 of(F32 a, F32 b)                                                                \
    {                                                                                              \
        return expression;                                                                         \
    }                                                                                              \
    LKS_INLINE void item(LKS_GLOBAL LKS_CONST F32 *a, LKS_GLOBAL LKS_CONST F32 *b,                 \
                         LKS_GLOBAL F32 *y, LKS_CONST struct binary_dims *d, U64 i)                \
    {                                                                                              \
        struct lks_pair at = lks_binary_at(d, i);                                                  \
        y[i] = of(a[at.a], b[at.b]);                                                               \
    }

#define LKS_BINARY_PICK_ITEM(of, item, condition)                                                  \
    LKS_INLINE F32 of(F32 a, F32 b, F32 dy)                                                        \
    {                                                                                              \
        return lks_select(condition, dy, 0.0f);                                                    \
    }                                                                                              \
    LKS_INLINE void item(LKS_GLOBAL LKS_CONST F32 *a, LKS_GLOBAL LKS_CONST F32 *b,                 \
                         LKS_GLOBAL LKS_CONST F32 *dy, LKS_GLOBAL F32 *dx,                         \
                         LKS_CONST struct binary_dims *d, U64 i)                                   \
    {                                                                                              \
        struct lks_pair at = lks_binary_at(d, i);                                                  \
        dx[i] = of(a[at.a], b[at.b], dy[i]);                                                       \
    }

#define LKS_BINARY_MAKE(name, f)      LKS_BINARY_ITEM(name##_of, name##_item, f)
#define LKS_BINARY_MAKE_PICK(name, c) LKS_BINARY_PICK_ITEM(name##_of, name##_item, c)

LKS_BINARY(LKS_BINARY_MAKE)
LKS_BINARY_PICK(LKS_BINARY_MAKE_PICK)

#endif
