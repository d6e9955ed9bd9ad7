/*
 * maxpool.h - the schedules `vec` of maxpool and maxpool_grad (maxpool_vec.c), and what the two
 * poolings share.
 */
#ifndef LKSI_OP_MAXPOOL_H
#define LKSI_OP_MAXPOOL_H

#include "contract/maxpool.h"
#include "op/attr.h"

const char *lksi_maxpool_vec_declines(const struct lksi_call *call, const struct lksi_limits *dev);
void lksi_maxpool_vec_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                             struct lksi_recipe *r);
void lksi_maxpool_grad_vec_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                                  struct lksi_recipe *r);

/* Checks a window over the image x, and fills the dims, without the divisor's, and the shape of the
 * pooled image. Errors name `op`. */
lks_status lksi_pool_window(const char *op, const struct lksi_maxpool_attr *a,
                            const struct lksi_desc *x, struct maxpool_dims *dims,
                            struct lksi_desc *y);

/* Adds the launch of `kernel` of `source`, which goes over rows x columns x channels; `macro` and
 * `more` are macros. */
struct lksi_launch *lksi_pool_launch(struct lksi_recipe *r, const struct lksi_limits *dev,
                                     const struct maxpool_dims *d, const char *source,
                                     const char *kernel, const char *macro, const char *more,
                                     U64 rows, uint32_t columns);

/* Case `index` of the harness; false past the last. `large`: with windows of more than 4096 taps, of
 * which a plain gradient of the maximum would look at each for each pixel. */
bool lksi_pool_case(int index, bool long_run, bool large, struct lksi_desc *x,
                    struct lksi_maxpool_attr *a);

#endif
