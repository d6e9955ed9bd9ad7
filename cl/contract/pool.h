/*
 * pool.h - what the pooling contracts share: the dims of a window over an image, and which of its
 * taps lie inside. Positions are shifted by the padding, so that none is negative: window o begins
 * at o * stride, its tap t lies at o * stride + t * dilation, and the image is [pad, size + pad).
 */
#ifndef LKS_CONTRACT_POOL_H
#define LKS_CONTRACT_POOL_H

#include "contract/num.h"

struct maxpool_dims {
    U32 n, h, w, c, oh, ow;
    U32 kh, kw, sh, sw;
    U32 pt, pl;
    U32 relu_mask; /* maxpool_grad */
    U32 dh, dw;    /* dilation */
    U32 ch0, ch1;  /* avgpool: rows and columns [0, 1) whose taps the divisor counts, shifted */
    U32 cw0, cw1;
};

/* The first tap at `from` or behind it, of a window that begins at `start`. */
LKS_INLINE U32 lks_pool_first(U32 start, U32 from, U32 dil)
{
    return start >= from ? 0u : dil == 1u ? from - start : (from - start + dil - 1u) / dil;
}

/* One past the last of `taps` taps in front of `end`. */
LKS_INLINE U32 lks_pool_end(U32 start, U32 end, U32 dil, U32 taps)
{
    U32 t = lks_pool_first(start, end, dil);
    return t < taps ? t : taps;
}

/* The window whose tap at distance `tap` from its beginning is position `at`; 0xffffffff: none. */
LKS_INLINE U32 lks_pool_window(U32 at, U32 tap, U32 stride)
{
    U32 o = at >= tap ? (at - tap) / stride : 0u;
    return at >= tap && o * stride == at - tap ? o : 0xffffffffu;
}

#endif
