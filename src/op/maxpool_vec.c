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

static struct lksi_launch *add_launch(struct lksi_recipe *r, const struct lksi_limits *dev,
                                      const struct maxpool_dims *d, const char *kernel,
                                      const char *macro, U64 rows, uint32_t columns)
{
    const char *mask = d->relu_mask != 0 ? " MASK" : "";
    char more[96];
    snprintf(more, sizeof more, "%s", mask);
    if (dev->type == LKSI_DEV_GPU)
        snprintf(more, sizeof more, "%s GPU KH=%u KW=%u SH=%u SW=%u DH=%u DW=%u", mask, d->kh,
                 d->kw, d->sh, d->sw, d->dh, d->dw);
    return lksi_pool_launch(r, dev, d, "op/maxpool.cl", kernel, macro, more, rows, columns);
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
    if (d->kh <= d->sh && d->kw <= d->sw && d->dh == 1 && d->dw == 1)
        apart(dev, d, r);
    else
        overlapping(dev, d, r);
}
