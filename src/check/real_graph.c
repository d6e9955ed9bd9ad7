/*
 * real_graph.c - double-precision operators that autodiff itself needs: parts of a batch, numbers
 * spread over a shape, the stop of a gradient.
 */
#include "check/real.h"
#include "op/attr.h"

static uint64_t count(const struct lksi_real_io *io)
{
    return (uint64_t)lksi_desc_count(&io->call->out[0]);
}

static void copy(const struct lksi_real_io *io)
{
    for (uint64_t e = 0; e < count(io); e++)
        lksi_real_put(io, 0, e, io->in[0][e], 0.0);
}

static void samples(const struct lksi_real_io *io)
{
    const struct lksi_samples_attr *a = io->call->attr;
    uint64_t size = count(io) / (uint64_t)a->count;
    for (uint64_t e = 0; e < count(io); e++)
        lksi_real_put(io, 0, e, io->in[0][(uint64_t)a->first * size + e], 0.0);
}

static void samples_grad(const struct lksi_real_io *io)
{
    const struct lksi_samples_attr *a = io->call->attr;
    uint64_t size = count(io) / (uint64_t)io->call->out[0].dim[0];
    for (uint64_t e = 0; e < count(io); e++) {
        int64_t n = (int64_t)(e / size) - a->first;
        lksi_real_put(io, 0, e,
                      n >= 0 && n < a->count ? io->in[0][(uint64_t)n * size + e % size] : 0.0, 0.0);
    }
}

static void spread(const struct lksi_real_io *io)
{
    for (uint64_t e = 0; e < count(io); e++)
        lksi_real_put(io, 0, e, io->in[0][e % (uint64_t)io->call->in[0].dim[0]], 0.0);
}

const struct lksi_real_entry lksi_real_graph[] = {
    {"samples", samples},
    {"samples_grad", samples_grad},
    {"spread", spread},
    {"stop_gradient", copy},
    {NULL, NULL},
};
