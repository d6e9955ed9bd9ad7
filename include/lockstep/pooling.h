/*
 * pooling.h - windows over images and sequences.
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
 * Windows of kernel x kernel_w taps over x [H,W,C], `dilation` positions apart. Window (oh, ow) has
 * tap (r, s) at row oh*stride - top + r*dilation and column ow*stride_w - left + s*dilation_w; taps
 * outside the image are left out. y is [OH,OW,C] with
 * OH = (H + top + bottom - dilation (kernel - 1) - 1) / stride + 1, rounded down; with `ceil`
 * rounded up, less one if the last window would begin behind the image and its left padding. A
 * window must have a tap in the image, padding is less than a window reaches.
 * Of a sequence [L,C] the windows are `kernel` positions long; the fields for a width say nothing,
 * pads[0] and pads[1] are its ends.
 */
struct lks_pool_params {
    int32_t kernel;               /* required */
    int32_t stride;               /* 0 means kernel, and of the width kernel_w */
    int32_t pad;                  /* at every border */
    int32_t kernel_w, stride_w;   /* of the width, if it differs from that of the height; 0: not */
    int32_t dilation, dilation_w; /* 0 means 1, and dilation_w that of the height */
    int32_t pads[4];              /* top, bottom, left, right; in place of `pad` if one is not 0 */
    bool ceil;
    bool count_pad; /* avgpool: the divisor counts the taps in the padding too */
};
#ifndef __cplusplus
#define lks_pool_params(...) (&(struct lks_pool_params){__VA_ARGS__})
#endif
/* All zero. Thread-safe. */
LKS_API struct lks_pool_params lks_pool_params_default(void);
/* The maximum of each window. On ties the first tap in order (r, s) takes the gradient. */
LKS_API lks_status lks_graph_maxpool(lks_graph *graph, lks_value x,
                                     const struct lks_pool_params *params, lks_value *y);
/* The mean of each window: its sum divided by the number of its taps inside the image. */
LKS_API lks_status lks_graph_avgpool(lks_graph *graph, lks_value x,
                                     const struct lks_pool_params *params, lks_value *y);
/* One window over all positions: y is [1,1,C] of an image, [1,C] of a sequence. */
LKS_API lks_status lks_graph_global_maxpool(lks_graph *graph, lks_value x, lks_value *y);
LKS_API lks_status lks_graph_global_avgpool(lks_graph *graph, lks_value x, lks_value *y);

#ifdef __cplusplus
}
#endif
#endif
