/*
 * maxpool_vec.c - schedules `vec` of pooling: vectors over the channels, no divisions by element.
 * On a GPU a work-item is one vector of one window or pixel; elsewhere it is a row of them.
 */
#include <stdio.h>
#include <string.h>

#include "op/flat.h"
#include "op/maxpool.h"

const char *lksi_maxpool_vec_declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    const struct maxpool_dims *d = (const void *)call->dims.bytes;
    (void)dev;
    if ((U64)d->n * d->h > UINT32_MAX)
        return "more rows than 32 bits count";
    return NULL;
}

/* A kernel over rows x columns x channels. */
static struct lksi_launch *add_launch(struct lksi_recipe *r, const struct lksi_limits *dev,
                                      const struct maxpool_dims *d, const char *kernel,
                                      const char *macro, U64 rows, uint32_t columns)
{
    struct lksi_launch *l = &r->launch[r->n_launch++];
    const char *mask = d->relu_mask != 0 ? " MASK" : "";
    l->source = "op/maxpool.cl";
    l->kernel = kernel;
    l->dims = 3;
    if (dev->type == LKSI_DEV_GPU) {
        unsigned vec = d->c % 4 == 0 ? 4 : 1;
        size_t vectors = d->c / vec, lx = 1, ly = lksi_group(dev, 64);
        while (lx < vectors && ly > 1) {
            lx *= 2;
            ly /= 2;
        }
        snprintf(l->defines, sizeof l->defines, "%s VEC=%u%s", macro, vec, mask);
        l->local[0] = lx;
        l->local[1] = ly;
        l->local[2] = 1;
        l->global[0] = (vectors + lx - 1) / lx * lx;
        l->global[1] = (columns + ly - 1) / ly * ly;
    } else {
        snprintf(l->defines, sizeof l->defines, "%s ROWS VEC=%u%s", macro, lksi_lanes(d->c), mask);
        l->local[0] = l->local[1] = l->local[2] = 1;
        l->global[0] = l->global[1] = 1;
    }
    l->global[2] = (size_t)rows;
    return l;
}

void lksi_maxpool_vec_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                             struct lksi_recipe *r)
{
    const struct maxpool_dims *d = (const void *)call->dims.bytes;
    struct lksi_launch *l = add_launch(r, dev, d, "pool", "POOL", (U64)d->n * d->oh, d->ow);
    l->arg[l->n_arg++] = LKSI_IN(0);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
}

static void apart(const struct lksi_limits *dev, const struct maxpool_dims *d,
                  struct lksi_recipe *r)
{
    struct lksi_launch *l = add_launch(r, dev, d, "apart", "APART", (U64)d->n * d->oh, d->ow);
    l->arg[l->n_arg++] = LKSI_IN(0);
    l->arg[l->n_arg++] = LKSI_IN(1);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
}

static void overlapping(const struct lksi_limits *dev, const struct maxpool_dims *d,
                        struct lksi_recipe *r)
{
    struct lksi_launch *l = add_launch(r, dev, d, "winners", "WINNERS", (U64)d->n * d->oh, d->ow);
    l->arg[l->n_arg++] = LKSI_IN(0);
    l->arg[l->n_arg++] = LKSI_WORK(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l = add_launch(r, dev, d, "gather", "GATHER", (U64)d->n * d->h, d->w);
    l->arg[l->n_arg++] = LKSI_IN(0);
    l->arg[l->n_arg++] = LKSI_IN(1);
    l->arg[l->n_arg++] = LKSI_WORK(0);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
    r->n_work = 1;
    r->work_bytes[0] = (U64)d->n * d->oh * d->ow * d->c * sizeof(I32);
}

void lksi_maxpool_grad_vec_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                                  struct lksi_recipe *r)
{
    const struct maxpool_dims *d = (const void *)call->dims.bytes;
    if (d->kh <= d->sh && d->kw <= d->sw)
        apart(dev, d, r);
    else
        overlapping(dev, d, r);
}
