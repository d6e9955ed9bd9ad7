/*
 * table.h - the functions under test as loops over bit patterns, and their references in double.
 */
#ifndef LKS_TESTS_MATH_TABLE_H
#define LKS_TESTS_MATH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MATH_COUNT = 18 };

struct math_fn {
    const char *name;
    /* out[i] = canonical bits of f at the pattern first + i * stride */
    void (*run)(uint32_t first, uint32_t stride, uint32_t n, uint32_t *out);
};

/* The list as compiled for the baseline, and for x86-64-v3 (FMA instructions); with the native
 * division and square root, and with the own ones. */
extern const struct math_fn math_base[MATH_COUNT], math_base_soft[MATH_COUNT];
extern const struct math_fn math_fast[MATH_COUNT], math_fast_soft[MATH_COUNT];

/* The fastest of the four lists that this processor can run. */
const struct math_fn *math_table(bool soft);
/* True if math_fast and math_fast_soft may be run here. */
bool math_fast_runs(void);

struct math_reference {
    const char *name;
    double (*exact)(double x); /* NULL: only the bits are compared */
    double bound;              /* the promised largest error, ulp */
};

/* In the order of MATH_FUNCTIONS. */
extern const struct math_reference math_references[MATH_COUNT];

/*
 * |got - exact| in ulp of the fp32 number system: the spacing of the binade that holds `exact`,
 * never below 2^-149. Infinite where one is NaN or infinite and the other is not.
 */
double math_error(float got, double exact);

struct math_worst {
    double ulp;
    uint32_t input;
};

/* Largest error among the results `got` at the patterns first + i * stride. */
struct math_worst math_worst_of(const struct math_reference *ref, uint32_t first, uint32_t stride,
                                uint32_t n, const uint32_t *got);

#endif
