/*
 * conv.h - what the three convolution contracts share: the dims and the walk over taps.
 *
 * Tensors are NHWC: x[n][h][w][c], y and dy[n][oh][ow][k]; weights are w[k][r][s][c/groups]. Group
 * g joins channels [g*c/groups, (g+1)*c/groups) of x with [g*k/groups, (g+1)*k/groups) of y.
 * Output (oh, ow) meets x through tap (r, s) at
 *   ih = oh*stride_h + r*dil_h - pad_h,  iw = ow*stride_w + s*dil_w - pad_w,
 * if that lies inside the image. Padding below and on the right shows only in oh and ow.
 * Every count of positions is below 2^31 (checked when shapes are inferred), so 32 bits hold them;
 * offsets of elements take 64.
 */
#ifndef LKS_CONTRACT_CONV_H
#define LKS_CONTRACT_CONV_H

#include "contract/num.h"
#include "contract/leaf.h"
#include "contract/piece.h"

struct lks_conv_dims {
    U32 n, h, w, c;
    U32 oh, ow, k;
    U32 r, s;
    U32 stride_h, stride_w;
    U32 pad_h, pad_w; /* above and on the left */
    U32 dil_h, dil_w;
    U32 groups;
    U32 extra; /* 1: the optional third input is given (bias; of conv2d_data_grad the mask); 2: of
                  conv2d_data_grad the bias */
    U32 relu;
    struct lks_leaf leaf; /* of the batch over (oh, ow); weight gradient only */
};

/* Row or column of x that output position `o` meets through tap `t`; at or above the size of the
 * image (also as a wrapped negative) where it falls into the padding. */
LKS_INLINE U32 lks_conv_in(U32 o, U32 t, U32 stride, U32 dil, U32 pad)
{
    return o * stride + t * dil - pad;
}

/* Row or column of y whose tap `t` meets position `i` of x; 0xffffffff if there is none among
 * the `count` outputs. */
LKS_INLINE U32 lks_conv_out(U32 i, U32 t, U32 stride, U32 dil, U32 pad, U32 count)
{
    U32 d = i + pad - t * dil; /* wraps where the tap lies beyond */
    U32 o = d / stride;
    return (I32)d >= 0 && o * stride == d && o < count ? o : 0xffffffffu;
}

/* x <= 0 ? +0 : x, with NaN kept. */
LKS_INLINE F32 lks_conv_relu(F32 x)
{
    return lks_select(x <= 0.0f, 0.0f, x);
}

#endif
