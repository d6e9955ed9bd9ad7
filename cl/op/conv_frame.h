/*
 * conv_frame.h - copies x into a frame of zeros, so that no tap of a convolution leaves the image.
 * For CPU devices and few channels, where the copy is cheap.
 */
#include "contract/conv.h"

/* Work-item (row of the frame, sample). The frame is [n][fh][fw][c]. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
LKS_KERNEL(pad)(__global const float *restrict x, __global float *restrict frame,
                struct lks_conv_dims d, U32 fh, U32 fw)
{
    const U32 n = get_global_id(1), ih = (U32)get_global_id(0) - d.pad_h;
    const U32 left = min(d.pad_w, fw) * d.c, inner = min(d.w, fw - min(d.pad_w, fw)) * d.c;
    __global float *to = frame + ((U64)n * fh + get_global_id(0)) * fw * d.c;
    if (ih >= d.h) {
        for (U32 i = 0u; i < fw * d.c; i++)
            to[i] = 0.0f;
        return;
    }
    __global const float *from = x + ((U64)n * d.h + ih) * d.w * d.c;
    for (U32 i = 0u; i < left; i++)
        to[i] = 0.0f;
    for (U32 i = 0u; i < inner; i++)
        to[left + i] = from[i];
    for (U32 i = left + inner; i < fw * d.c; i++)
        to[i] = 0.0f;
}
