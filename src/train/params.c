/*
 * params.c - the first values of parameters.
 *
 * Uniform: w = fma(2, u, -1) * limit with u of Philox element e (exact but for the product);
 * normal: w = n * deviation; scales of normalisations start at 1. limit and deviation are computed in double and rounded once. Seed:
 * the run's; stream "init:NAME"; step 0; e counts the canonical layout.
 */
#include <math.h>
#include <stdlib.h>

#include "contract/philox.h"
#include "train/train.h"

static void fill(const struct lksi_param *p, uint64_t seed, uint32_t stream, float *w, int64_t n)
{
    float limit = (float)sqrt(6.0 / (double)(p->fan_in + p->fan_out));
    float deviation = (float)sqrt(2.0 / (double)p->fan_in);
    for (int64_t e = 0; p->constant && e < n; e++)
        w[e] = p->start;
    if (p->constant || p->init == LKS_INIT_ZERO)
        return;
    for (int64_t e = 0; e < n; e++)
        w[e] = p->init == LKS_INIT_HE_NORMAL
                   ? lks_random_normal(seed, stream, 0, (U64)e) * deviation
                   : lks_fma(2.0f, lks_random_uniform(seed, stream, 0, (U64)e), -1.0f) * limit;
}

static lks_status start_buffers(struct lks_trainer *t)
{
    const struct lks_graph *g = t->model;
    for (size_t i = 0; i < g->n_buffer; i++) {
        const struct lksi_gvalue *v = &g->value[g->buffer[i].value];
        size_t n = (size_t)lksi_desc_count(&v->desc);
        float *w = lksi_alloc(n, sizeof *w);
        lks_status st;
        if (w == NULL)
            return LKS_E_MEMORY;
        for (size_t e = 0; e < n; e++)
            w[e] = g->buffer[i].start;
        st = lks_trainer_set(t, v->name, w, n);
        free(w);
        if (st != LKS_OK)
            return st;
    }
    return LKS_OK;
}

lks_status lksi_params_init(struct lks_trainer *t)
{
    const struct lks_graph *g = t->model;
    for (size_t i = 0; i < g->n_param; i++) {
        const struct lksi_param *p = &g->param[i];
        int64_t n = lksi_desc_count(&g->value[p->value].desc);
        uint32_t stream;
        float *w;
        lks_status st = lksi_streams_add(&t->streams, "init", p->name, &stream);
        if (st != LKS_OK)
            return st;
        w = lksi_alloc((size_t)n, sizeof *w);
        if (w == NULL)
            return LKS_E_MEMORY;
        fill(p, t->params.seed, stream, w, n);
        st = lks_trainer_set(t, p->name, w, (size_t)n);
        free(w);
        if (st != LKS_OK)
            return st;
    }
    return start_buffers(t);
}
