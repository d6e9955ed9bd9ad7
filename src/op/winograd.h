/*
 * winograd.h - what the files of the operators `winograd`, `winograd_data_grad` and
 * `winograd_weight_grad` share. Attributes, inputs and dims are those of conv2d.h; the dims' leaf
 * is cut over tiles. Contract: cl/contract/winograd.h.
 */
#ifndef LKSI_OP_WINOGRAD_H
#define LKSI_OP_WINOGRAD_H

#include "op/conv2d.h"
#include "contract/winograd.h"

/* winograd and winograd_data_grad as one thing: `c` channels of an h x w source are read, `k`
 * channels of an oh x ow result made; the patch of tile (th, tw) begins at row 2*th + row, column
 * 2*tw + col (wrapping). The kernel of (c, k) begins at weights[c*c_step + k*k_step]. */
struct lksi_winograd_view {
    U32 n, h, w, c, oh, ow, k;
    U32 th, tw; /* tiles */
    U32 row, col;
    U64 c_step, k_step;
    U32 tap; /* elements from one tap to the next */
    bool turned;
};
struct lksi_winograd_view lksi_winograd_view(const struct lks_conv_dims *d, bool grad);

U64 lksi_winograd_ref_parts(const struct lksi_call *call);
void lksi_winograd_ref(const struct lksi_call *call, const void *const *in, void *const *out,
                       U64 p0, U64 p1);
U64 lksi_winograd_data_grad_ref_parts(const struct lksi_call *call);
void lksi_winograd_data_grad_ref(const struct lksi_call *call, const void *const *in,
                                 void *const *out, U64 p0, U64 p1);
U64 lksi_winograd_weight_grad_ref_parts(const struct lksi_call *call);
void lksi_winograd_weight_grad_ref(const struct lksi_call *call, const void *const *in,
                                   void *const *out, U64 p0, U64 p1);

/* The CPU schedules (winograd_cpu.c). */
#define LKSI_WINOGRAD_CPU(name)                                                                    \
    const char *lksi_##name##_cpu_declines(const struct lksi_call *call,                           \
                                           const struct lksi_limits *dev);                         \
    void lksi_##name##_cpu_recipe(const struct lksi_call *call, const struct lksi_limits *dev,     \
                                  struct lksi_recipe *r);
LKSI_WINOGRAD_CPU(winograd)
LKSI_WINOGRAD_CPU(winograd_data_grad)
LKSI_WINOGRAD_CPU(winograd_weight_grad)
#undef LKSI_WINOGRAD_CPU

#endif
