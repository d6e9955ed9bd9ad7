/*
 * regime.c - seeded inputs for the harness; see regime.h.
 */
#include <string.h>

#include "check/regime.h"
#include "contract/philox.h"

static const char *const names[LKSI_REGIMES] = {"uniform", "wide", "subnormal",
                                                "zeros",   "ties", "underflow"};

const char *lksi_regime_name(enum lksi_regime regime)
{
    return names[regime];
}

bool lksi_regime_find(const char *name, enum lksi_regime *regime)
{
    for (int i = 0; i < LKSI_REGIMES; i++) {
        if (strcmp(names[i], name) == 0) {
            *regime = (enum lksi_regime)i;
            return true;
        }
    }
    return false;
}

/* sign and significand of `word`, exponent 2^low .. 2^(low+span-1) by `pick`. */
static U32 scaled(U32 word, U32 pick, I32 low, U32 span)
{
    U32 exponent = (U32)(127 + low) + pick % span;
    return (word & 0x807fffffu) | exponent << 23;
}

static U32 uniform(U32 word)
{
    return lks_bits(2.0f * lks_uniform(word) - 1.0f);
}

static U32 subnormal(U32 word, U32 pick)
{
    switch (pick % 8u) {
    case 0: /* the smallest normal numbers, whose differences are subnormal */
        return scaled(word, pick >> 3, -126, 4u);
    case 1: /* factors that keep a product subnormal */
        return uniform(word);
    case 2: /* a few units of 2^-149 */
        return (word & 0x80000003u);
    default:
        return word & 0x807fffffu;
    }
}

uint32_t lksi_regime_bits(enum lksi_regime regime, uint64_t seed, uint32_t stream, uint64_t e)
{
    static const F32 ties[8] = {-2.0f, -1.0f, -0.5f, 0.0f, 0.5f, 1.0f, 1.5f, 2.0f};
    struct lks_words w =
        lks_philox((U32)e, (U32)(e >> 32), stream, (U32)regime, (U32)seed, (U32)(seed >> 32));
    switch (regime) {
    case LKSI_REGIME_WIDE:
        return scaled(w.w0, w.w1, -16, 33u);
    case LKSI_REGIME_SUBNORMAL:
        return subnormal(w.w0, w.w1);
    case LKSI_REGIME_ZEROS:
        return (w.w1 & 1u) != 0u ? w.w0 & 0x80000000u : uniform(w.w0);
    case LKSI_REGIME_TIES:
        return lks_bits(ties[w.w0 % 8u]);
    case LKSI_REGIME_UNDERFLOW:
        return w.w1 % 4u == 0u ? w.w0 & 0x80000000u : scaled(w.w0, w.w1 >> 2, -90, 14u);
    default:
        return uniform(w.w0);
    }
}

static U32 class_range(const struct lksi_call *call)
{
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i].dtype == LKSI_F32 && call->in[i].rank > 0)
            return (U32)call->in[i].dim[call->in[i].rank - 1];
    return 2u;
}

void lksi_regime_fill(enum lksi_regime regime, uint64_t seed, const struct lksi_call *call,
                      int index, void *data)
{
    uint64_t n = (uint64_t)lksi_desc_count(&call->in[index]);
    U32 *out = data, range = class_range(call);
    for (uint64_t e = 0; e < n; e++) {
        if (call->in[index].dtype == LKSI_I32)
            out[e] = lks_philox((U32)e, (U32)(e >> 32), (U32)index, (U32)regime, (U32)seed,
                                (U32)(seed >> 32))
                         .w2 %
                     range;
        else
            out[e] = lksi_regime_bits(regime, seed, (U32)index, e);
        if (call->op->test_input != NULL)
            out[e] = call->op->test_input(call, index, out[e]);
    }
}
