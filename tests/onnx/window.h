/*
 * window.h - windows over one or two dimensions: what convolutions and pools read from a node.
 */
#ifndef LKS_TESTS_ONNX_WINDOW_H
#define LKS_TESTS_ONNX_WINDOW_H

#include "net.h"

/* Index 0 is the height, 1 the width; a sequence is one row high. */
struct window {
    int axes; /* of the window, 1 or 2 */
    int64_t n, c, in[2], kernel[2], stride[2], dilation[2], before[2], after[2];
};

/* Reads the attributes and input `x`'s shape; the kernel's size comes from `kernel_shape`, else
 * from the last dimensions of `weights` (or NULL). Pads are as given, `auto_pad` is for
 * window_pads. */
bool window_read(struct net *net, const Onnx__NodeProto *n, const struct net_shape *x,
                 const struct net_shape *weights, struct window *w);
/* `auto_pad` of a convolution or a pool. */
void window_pads(const Onnx__NodeProto *n, struct window *w);
/* 'U' SAME_UPPER, 'L' SAME_LOWER, 'V' VALID, 'N' NOTSET */
char window_auto(const Onnx__NodeProto *n);

/* [N,C,...] to [N,H,W,C] and back. */
bool window_enter(struct net *net, lksi_value x, const struct window *w, lksi_value *out);
bool window_leave(struct net *net, lksi_value y, lksi_value *out);
/* The shape [N,C,...] of an image [N,H,W,C] of the graph. */
struct net_shape window_shape(const struct net *net, lksi_value y, const struct window *w);

#endif
