/*
 * pooling.h - windows over images.
 */
#ifndef LOCKSTEP_POOLING_H
#define LOCKSTEP_POOLING_H

#include <stdbool.h>
#include <stdint.h>

#include <lockstep/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Adds y[n,oh,ow,c] = maximum over r,s of x[n, oh*stride-pad+r, ow*stride-pad+s, c], taps outside
 * the image left out. x is [H,W,C]; y is [OH,OW,C] with OH = (H + 2 pad - kernel) / stride + 1,
 * rounded down: windows that would leave the padded image are dropped. On ties the first tap in
 * order (r, s) takes the gradient.
 */
struct lks_pool_params {
    int32_t kernel; /* required */
    int32_t stride; /* 0 means kernel */
    int32_t pad;
};
#ifndef __cplusplus
#define lks_pool_params(...) (&(struct lks_pool_params){__VA_ARGS__})
#endif
/* All zero. Thread-safe. */
LKS_API struct lks_pool_params lks_pool_params_default(void);
LKS_API lks_status lks_graph_maxpool(lks_graph *graph, lks_value x,
                                     const struct lks_pool_params *params, lks_value *y);

#ifdef __cplusplus
}
#endif
#endif
