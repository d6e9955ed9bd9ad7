/*
 * sample.c - chosen items of a run against the contract's item function; see sample.h.
 */
#include <stdlib.h>
#include <string.h>

#include "contract/philox.h"
#include "op/sample.h"

#define DRAWN 256

bool lksi_bits_same(enum lksi_dtype dtype, uint32_t a, uint32_t b)
{
    if (a == b)
        return true;
    return dtype == LKSI_F32 && lks_isnan(lks_float(a)) && lks_isnan(lks_float(b));
}

/* Bit patterns as integers in the order of the numbers. */
static int64_t ordered(uint32_t bits)
{
    int64_t mag = (int64_t)(bits & 0x7fffffffu);
    return (bits & 0x80000000u) != 0u ? -mag - 1 : mag;
}

uint64_t lksi_bits_ulp(enum lksi_dtype dtype, uint32_t a, uint32_t b)
{
    int64_t x, y;
    if (dtype == LKSI_F32) {
        if (lks_isnan(lks_float(a)) || lks_isnan(lks_float(b)))
            return UINT64_MAX;
        x = ordered(a);
        y = ordered(b);
    } else {
        x = (int32_t)a;
        y = (int32_t)b;
    }
    return (uint64_t)(x > y ? x - y : y - x);
}

/* ---- which items ---- */

struct picks {
    uint64_t per_item; /* elements of output 0 */
    uint64_t spread;   /* items, where they are strided; else 0 */
    uint64_t *item;
    size_t count, capacity;
    uint64_t seed;
    uint32_t draws;
    bool failed;
};

static uint64_t draw(struct picks *p, uint64_t below)
{
    uint64_t n = p->draws++;
    struct lks_words w =
        lks_philox((U32)n, 0u, 0x5a3b1e5du, 0u, (U32)p->seed, (U32)(p->seed >> 32));
    return (((uint64_t)w.w0 << 32) | w.w1) % below;
}

static void pick(struct picks *p, uint64_t item)
{
    if (!lksi_grow(&p->item, &p->capacity, p->count + 1, sizeof *p->item)) {
        p->failed = true;
        return;
    }
    p->item[p->count++] = item;
}

/* The item that covers an element of output 0. */
static void pick_element(struct picks *p, uint64_t element)
{
    pick(p, p->spread > 0 ? element % p->spread : element / p->per_item);
}

static uint64_t element_at(const struct lksi_desc *d, const int64_t *at)
{
    uint64_t e = 0;
    for (int i = 0; i < d->rank; i++)
        e = e * (uint64_t)d->dim[i] + (uint64_t)at[i];
    return e;
}

static void pick_corners(struct picks *p, const struct lksi_desc *d)
{
    for (int mask = 0; mask < 1 << d->rank; mask++) {
        int64_t at[LKSI_MAX_RANK];
        for (int i = 0; i < d->rank; i++)
            at[i] = (mask >> i & 1) != 0 ? d->dim[i] - 1 : 0;
        pick_element(p, element_at(d, at));
    }
}

/* The two positions at the first and the last border of tiles of `tile` along dimension k. */
static void pick_borders(struct picks *p, const struct lksi_desc *d, int k, int64_t tile)
{
    int64_t border[2] = {tile, (d->dim[k] - 1) / tile * tile};
    for (int b = 0; b < 2; b++) {
        for (int64_t side = -1; side <= 0; side++) {
            int64_t at[LKSI_MAX_RANK];
            for (int i = 0; i < d->rank; i++)
                at[i] = (int64_t)draw(p, (uint64_t)d->dim[i]);
            at[k] = border[b] + side;
            if (at[k] >= 0 && at[k] < d->dim[k])
                pick_element(p, element_at(d, at));
        }
    }
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

lks_status lksi_sample_items(const struct lksi_call *call, uint64_t seed, uint64_t **items,
                             size_t *count)
{
    const struct lksi_desc *d = &call->out[0];
    uint64_t all = lksi_op_items(call), n = (uint64_t)lksi_desc_count(d);
    struct picks p = {.seed = seed};
    size_t kept = 0;
    if (all > 0 && n > 0) {
        p.per_item = n / all > 0 ? n / all : 1;
        p.spread = call->op->strided ? all : 0;
        pick_corners(&p, d);
        for (int k = 0; k < d->rank; k++)
            for (int64_t tile = 4; tile <= 128 && tile < d->dim[k]; tile *= 2)
                pick_borders(&p, d, k, tile);
        for (int i = 0; i < DRAWN; i++)
            pick(&p, draw(&p, all));
    }
    if (p.failed) {
        free(p.item);
        return LKS_E_MEMORY;
    }
    if (p.count > 0)
        qsort(p.item, p.count, sizeof *p.item, ascending);
    for (size_t i = 0; i < p.count; i++)
        if (kept == 0 || p.item[i] != p.item[kept - 1])
            p.item[kept++] = p.item[i];
    *items = p.item;
    *count = kept;
    return LKS_OK;
}

/* ---- the comparison ---- */

/* Elements of output j that item i covers: *e0, *e0 + *step, ... below *e1. */
static void covered(const struct lksi_call *call, int j, uint64_t i, uint64_t *e0, uint64_t *e1,
                    uint64_t *step)
{
    uint64_t n = (uint64_t)lksi_desc_count(&call->out[j]), all = lksi_op_items(call);
    *step = call->op->strided ? all : 1;
    *e0 = call->op->strided ? i : i * (n / all);
    *e1 = call->op->strided ? n : *e0 + n / all;
}

static bool item_same(const struct lksi_call *call, const void *const *got, void *const *want,
                      uint64_t i, struct lksi_diff *diff)
{
    for (int j = 0; j < call->n_out; j++) {
        const uint32_t *g = got[j], *w = want[j];
        uint64_t e0, e1, step;
        covered(call, j, i, &e0, &e1, &step);
        for (uint64_t e = e0; e < e1; e += step) {
            if (lksi_bits_same(call->out[j].dtype, g[e], w[e]))
                continue;
            *diff =
                (struct lksi_diff){j, e, g[e], w[e], lksi_bits_ulp(call->out[j].dtype, g[e], w[e])};
            return false;
        }
    }
    return true;
}

lks_status lksi_check_sample(const struct lksi_call *call, const void *const *in,
                             const void *const *got, const uint64_t *items, size_t count,
                             bool *same, struct lksi_diff *diff)
{
    lks_status st = LKS_OK;
    void *want[LKSI_MAX_OUT] = {NULL};
    bool equal = true;
    /* Whole outputs, since items index them; only touched pages take memory. */
    for (int j = 0; j < call->n_out; j++) {
        want[j] = lksi_alloc((size_t)lksi_desc_count(&call->out[j]), 4);
        if (want[j] == NULL) {
            st = LKS_E_MEMORY;
            goto fail;
        }
    }
    for (size_t s = 0; s < count && equal; s++) {
        for (int j = 0; j < call->n_out; j++) {
            uint64_t e0, e1, step;
            covered(call, j, items[s], &e0, &e1, &step);
            for (uint64_t e = e0; call->op->alias[j] != 0 && e < e1; e += step)
                ((uint32_t *)want[j])[e] = ((const uint32_t *)in[call->op->alias[j] - 1])[e];
        }
        call->op->item(in, want, call->dims.bytes, items[s]);
        equal = item_same(call, got, want, items[s], diff);
    }
    *same = equal;
fail:
    for (int j = 0; j < call->n_out; j++)
        free(want[j]);
    return st;
}
