/*
 * conv2d_gpu.c - schedules `nv` and `gpu` of the three convolution operators, see product_gpu.h.
 */
#include "op/conv2d.h"
#include "op/conv_gpu.h"
#include "op/product_gpu.h"

#define SCHEDULE(name, nv, declines, recipe)                                                       \
    const char *lksi_##name##_declines(const struct lksi_call *call,                               \
                                       const struct lksi_limits *dev)                              \
    {                                                                                              \
        return declines(lksi_conv_dims(call), dev, nv);                                            \
    }                                                                                              \
    void lksi_##name##_recipe(const struct lksi_call *call, const struct lksi_limits *dev,         \
                              struct lksi_recipe *r)                                               \
    {                                                                                              \
        recipe(lksi_conv_dims(call), dev, nv, r);                                                  \
    }
#define FORWARD_DECLINES(d, dev, nv)  lksi_product_declines(d, false, dev, nv)
#define FORWARD_RECIPE(d, dev, nv, r) lksi_product_recipe(d, false, dev, nv, r)
#define DATA_DECLINES(d, dev, nv)     lksi_product_declines(d, true, dev, nv)
#define DATA_RECIPE(d, dev, nv, r)    lksi_product_recipe(d, true, dev, nv, r)

SCHEDULE(conv2d_nv, true, FORWARD_DECLINES, FORWARD_RECIPE)
SCHEDULE(conv2d_gpu, false, FORWARD_DECLINES, FORWARD_RECIPE)
SCHEDULE(conv2d_data_grad_nv, true, DATA_DECLINES, DATA_RECIPE)
SCHEDULE(conv2d_data_grad_gpu, false, DATA_DECLINES, DATA_RECIPE)
SCHEDULE(conv2d_weight_grad_nv, true, lksi_leaves_declines, lksi_leaves_recipe)
SCHEDULE(conv2d_weight_grad_gpu, false, lksi_leaves_declines, lksi_leaves_recipe)
