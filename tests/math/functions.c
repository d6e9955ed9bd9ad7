/*
 * functions.c - the functions of functions.h as loops. Built several times: MATH_TABLE is the name
 * of the list that this build defines; see table.h.
 */
#include "functions.h"
#include "table.h"

#define MATH_LOOP(name, expression)                                                                \
    static void run_##name(U32 first, U32 stride, U32 n, U32 *out)                                 \
    {                                                                                              \
        for (U32 i = 0; i < n; i++) {                                                              \
            F32 x = lks_float(first + i * stride);                                                 \
            out[i] = math_canonical(expression);                                                   \
        }                                                                                          \
    }
MATH_FUNCTIONS(MATH_LOOP)

#define MATH_ENTRY(name, expression) {#name, run_##name},
const struct math_fn MATH_TABLE[MATH_COUNT] = {MATH_FUNCTIONS(MATH_ENTRY)};
