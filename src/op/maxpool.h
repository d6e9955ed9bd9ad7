/*
 * maxpool.h - the schedules `vec` of maxpool and maxpool_grad (maxpool_vec.c).
 */
#ifndef LKSI_OP_MAXPOOL_H
#define LKSI_OP_MAXPOOL_H

#include "contract/maxpool.h"
#include "op/op.h"

const char *lksi_maxpool_vec_declines(const struct lksi_call *call, const struct lksi_limits *dev);
void lksi_maxpool_vec_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                             struct lksi_recipe *r);
void lksi_maxpool_grad_vec_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                                  struct lksi_recipe *r);

#endif
