/*
 * real_reduce.c - sums over axes in double precision; see real.h.
 */
#include <math.h>
#include <string.h>

#include "check/real.h"
#include "op/attr.h"

/* The element of the smaller tensor that element e of x belongs to. */
static uint64_t place(const struct lksi_desc *x, unsigned axes, uint64_t e)
{
    uint64_t at = 0, step = 1;
    for (int k = x->rank; k-- > 0; e /= (uint64_t)x->dim[k]) {
        if ((axes >> k & 1u) != 0)
            continue;
        at += e % (uint64_t)x->dim[k] * step;
        step *= (uint64_t)x->dim[k];
    }
    return at;
}

static void total(const struct lksi_real_io *io)
{
    const struct lksi_reduce_attr *a = io->call->attr;
    const struct lksi_desc *x = &io->call->in[0];
    uint64_t all = (uint64_t)lksi_desc_count(x), n = (uint64_t)lksi_desc_count(&io->call->out[0]);
    double size = (double)(all / n), scale = 1.0, depth = lksi_real_row_depth(size) + 1.0;
    if ((a->axes & 1u) != 0)
        depth = lksi_real_leaf_depth((uint32_t)x->dim[0],
                                     (uint32_t)(all / n / (uint64_t)x->dim[0]), 1, io->call->leaf);
    if (strncmp(io->call->op->name, "mean", 4) == 0) {
        scale = 1.0 / size;
        depth += 2.0;
    }
    for (uint64_t e = 0; e < n; e++)
        lksi_real_put(io, 0, e, 0.0, 0.0);
    for (uint64_t e = 0; e < all; e++) {
        uint64_t to = place(x, a->axes, e);
        io->out[0][to] += io->in[0][e] * scale;
        if (io->err != NULL) /* the sum of magnitudes first */
            io->err[0][to] += fabs(io->in[0][e]) * scale;
    }
    for (uint64_t e = 0; e < n && io->err != NULL; e++)
        io->err[0][e] = lksi_real_gamma(depth, io->err[0][e]);
}

static void expand(const struct lksi_real_io *io)
{
    const struct lksi_reduce_attr *a = io->call->attr;
    const struct lksi_desc *x = &io->call->out[0];
    bool mean = strcmp(io->call->op->name, "expand_mean") == 0;
    double each = (double)lksi_desc_count(&io->call->in[0]) / (double)lksi_desc_count(x);
    for (uint64_t e = 0; e < (uint64_t)lksi_desc_count(x); e++) {
        double v = io->in[0][place(x, a->axes, e)] * (mean ? each : 1.0);
        lksi_real_put(io, 0, e, v, mean ? lksi_real_gamma(2, fabs(v)) : 0.0);
    }
}

const struct lksi_real_entry lksi_real_reduce[] = {
    {"expand", expand}, {"expand_mean", expand}, {"mean", total}, {"mean_samples", total},
    {"sum", total},     {"sum_samples", total},  {NULL, NULL},
};
