/*
 * real_binary.c - the operators on two tensors in double precision; see real.h.
 */
#include <math.h>
#include <string.h>

#include "check/real.h"
#include "contract/philox.h"
#include "op/attr.h"

/* The element of operand k that meets the coordinates of y's element e. */
static double operand(const struct lksi_real_io *io, int k, uint64_t e)
{
    const struct lksi_desc *x = &io->call->in[k], *y = &io->call->out[0];
    uint64_t at = 0, step = 1;
    for (int axis = 1; axis <= x->rank; axis++) {
        uint64_t size = (uint64_t)y->dim[y->rank - axis], own = (uint64_t)x->dim[x->rank - axis];
        at += (own == 1 ? 0 : e % size) * step;
        e /= size;
        step *= own;
    }
    return io->in[k][at];
}

#define REAL(name, value, units)                                                                   \
    static void name(const struct lksi_real_io *io)                                                \
    {                                                                                              \
        uint64_t n = (uint64_t)lksi_desc_count(&io->call->out[0]);                                 \
        for (uint64_t e = 0; e < n; e++) {                                                         \
            double a = operand(io, 0, e), b = operand(io, 1, e);                                   \
            double dy = io->call->n_in > 2 ? io->in[2][e] : 0.0, v = value;                        \
            (void)dy;                                                                              \
            lksi_real_put(io, 0, e, v, units > 0 ? lksi_real_gamma(units, fabs(v)) : 0.0);         \
        }                                                                                          \
    }

REAL(add_wide, a + b, 1)
REAL(sub, a - b, 1)
REAL(mul, a *b, 1)
REAL(mul_zero, a == 0 || b == 0 ? 0 : a * b, 1)
REAL(power, pow(a, b), 2)
REAL(div_real, a / b, 1)
REAL(maximum, a > b ? a : b, 0)
REAL(minimum, a < b ? a : b, 0)
REAL(equal, a == b, 0)
REAL(greater, a > b, 0)
REAL(less, a < b, 0)
REAL(maximum_grad_a, a >= b ? dy : 0.0, 0)
REAL(maximum_grad_b, a < b ? dy : 0.0, 0)
REAL(minimum_grad_a, a <= b ? dy : 0.0, 0)
REAL(minimum_grad_b, a > b ? dy : 0.0, 0)

static void dropout(const struct lksi_real_io *io)
{
    const struct lksi_dropout_attr *a = io->call->attr;
    uint64_t n = (uint64_t)lksi_desc_count(&io->call->out[0]);
    uint64_t f = n / (uint64_t)io->call->out[0].dim[0];
    const double *s = io->in[1];
    uint64_t seed = (uint64_t)s[2] | (uint64_t)s[3] << 32;
    for (uint64_t e = 0; e < n; e++) {
        U32 w = lks_random_word(seed, a->stream, (U32)s[0], (uint64_t)s[4] * f + e);
        double v = (w >> 8) * 0x1p-24 >= (double)(float)a->p ? io->in[0][e] / (1.0 - a->p) : 0.0;
        lksi_real_put(io, 0, e, v, lksi_real_gamma(2, fabs(v)));
    }
}

const struct lksi_real_entry lksi_real_binary[] = {
    {"add_wide", add_wide},
    {"div", div_real},
    {"dropout", dropout},
    {"equal", equal},
    {"greater", greater},
    {"less", less},
    {"maximum", maximum},
    {"maximum_grad_a", maximum_grad_a},
    {"maximum_grad_b", maximum_grad_b},
    {"minimum", minimum},
    {"minimum_grad_a", minimum_grad_a},
    {"minimum_grad_b", minimum_grad_b},
    {"mul", mul},
    {"mul_zero", mul_zero},
    {"pow", power},
    {"sub", sub},
    {NULL, NULL},
};
