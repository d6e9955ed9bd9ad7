/*
 * regime.h - seeded inputs for the harness, in regimes that each bring one kind of fault to light.
 */
#ifndef LKSI_CHECK_REGIME_H
#define LKSI_CHECK_REGIME_H

#include "op/op.h"

enum lksi_regime {
    LKSI_REGIME_UNIFORM,   /* [-1, 1) */
    LKSI_REGIME_WIDE,      /* exponents over 2^-16 .. 2^16: another order of a sum shows */
    LKSI_REGIME_SUBNORMAL, /* mostly subnormal numbers */
    LKSI_REGIME_ZEROS,     /* half of the values are +0 or -0 */
    LKSI_REGIME_TIES,      /* eight distinct values */
    LKSI_REGIME_UNDERFLOW, /* products of any two values underflow, half of them to -0 */
    LKSI_REGIMES
};

const char *lksi_regime_name(enum lksi_regime regime);
/* True and `*regime` set if `name` is one. */
bool lksi_regime_find(const char *name, enum lksi_regime *regime);

/*
 * Element `e` of stream `stream` (32-bit pattern). Counter-based: no element depends on another.
 */
uint32_t lksi_regime_bits(enum lksi_regime regime, uint64_t seed, uint32_t stream, uint64_t e);

/*
 * Fills input `index` of a call. F32 by regime; I32 with integers in [0, r), r being the last
 * dimension of the first F32 input (the classes of a loss), the regime then only a stream. The
 * operator's `test_input`, where it has one, has the last word on every element.
 */
void lksi_regime_fill(enum lksi_regime regime, uint64_t seed, const struct lksi_call *call,
                      int index, void *data);

#endif
