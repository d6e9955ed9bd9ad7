/*
 * conv2d.h - attributes of the convolution operators and what their files share.
 *
 * conv2d:             x[N,H,W,C], w[K,R,S,C/groups], optional bias[K] -> y[N,OH,OW,K]
 * conv2d_data_grad:   dy[N,OH,OW,K], w, optional mask[N,H,W,C] or bias[C] -> dx[N,H,W,C]
 * conv2d_weight_grad: x, dy                                           -> dw[K,R,S,C/groups]
 * OH = (H + pad_top + pad_bottom - dilation_h*(R-1) - 1) / stride_h + 1, rounded down; OW alike.
 */
#ifndef LKSI_OP_CONV2D_H
#define LKSI_OP_CONV2D_H

#include "op/op.h"
#include "contract/conv.h"

/* Strides, dilations and groups are at least 1: there is no meaning in zero. */
struct lksi_conv2d_attr {
    uint32_t stride_h, stride_w;
    uint32_t pad_top, pad_bottom, pad_left, pad_right;
    uint32_t dilation_h, dilation_w;
    uint32_t groups;
    uint32_t relu; /* 1: y = y <= 0 ? +0 : y; the gradients ignore it */
};

struct lksi_conv2d_data_grad_attr {
    struct lksi_conv2d_attr conv;
    uint32_t height, width; /* of x: the stride may have dropped its tail */
};

struct lksi_conv2d_weight_grad_attr {
    struct lksi_conv2d_attr conv;
    uint32_t r, s;
};

/* One convolution as its sizes; `infer` of all three operators goes through it. */
struct lksi_conv_sizes {
    int64_t n, h, w, c, k, r, s, cg; /* cg: the weights' last dimension */
};

/* Checks sizes against attributes and fills `d`. Errors name `op`. */
lks_status lksi_conv_fill(struct lks_conv_dims *d, const char *op,
                          const struct lksi_conv2d_attr *attr, const struct lksi_conv_sizes *z);
/* Fails unless input `index` of the call is f32 of rank `rank`; `shape` says what it should be. */
lks_status lksi_conv_check_rank(const struct lksi_call *call, int index, int rank,
                                const char *shape);
double lksi_conv_flops(const struct lksi_call *call);

/* A convolution of the contract harness. */
struct lksi_conv_case {
    struct lksi_conv_sizes z;
    struct lksi_conv2d_attr attr;
    uint32_t leaf;
    bool extra; /* give the optional input */
};

/* The operators of a contract: of the direct convolution or, where `op` is one of them, of winograd.h.
 * Their attributes, inputs and gradients are alike. */
struct lksi_conv_names {
    const char *forward, *data_grad, *weight_grad;
};
struct lksi_conv_names lksi_conv_names(const struct lksi_op *op);
lks_status lksi_conv2d_infer(struct lksi_call *call);
lks_status lksi_conv2d_data_grad_infer(struct lksi_call *call);
lks_status lksi_conv2d_weight_grad_infer(struct lksi_call *call);
lks_status lksi_conv2d_grad(const struct lksi_backward *g);
lks_status lksi_conv2d_data_grad_grad(const struct lksi_backward *g);
lks_status lksi_conv2d_weight_grad_grad(const struct lksi_backward *g);
bool lksi_conv2d_absorb(void *attr, lksi_value *in, int *n_in, const struct lksi_op *next,
                        const void *next_attr, const lksi_value *next_in, int slot);
bool lksi_conv2d_data_grad_absorb(void *attr, lksi_value *in, int *n_in,
                                  const struct lksi_op *next, const void *next_attr,
                                  const lksi_value *next_in, int slot);
/* The call of a case, for the three kinds of operators; `index` varies the optional input. */
void lksi_conv_case_call(const struct lksi_conv_case *c, struct lksi_call *call, void *attr);
void lksi_conv_case_data_grad(const struct lksi_conv_case *c, int index, struct lksi_call *call,
                              void *attr);
void lksi_conv_case_weight_grad(const struct lksi_conv_case *c, struct lksi_call *call, void *attr);

static inline const struct lks_conv_dims *lksi_conv_dims(const struct lksi_call *call)
{
    return (const struct lks_conv_dims *)(const void *)call->dims.bytes;
}

/* C loops of the device `ref` (NAME_ref.c) and schedules (NAME_cpu.c). */
U64 lksi_conv2d_ref_parts(const struct lksi_call *call);
void lksi_conv2d_ref(const struct lksi_call *call, const void *const *in, void *const *out, U64 p0,
                     U64 p1);
U64 lksi_conv2d_data_grad_ref_parts(const struct lksi_call *call);
void lksi_conv2d_data_grad_ref(const struct lksi_call *call, const void *const *in,
                               void *const *out, U64 p0, U64 p1);
U64 lksi_conv2d_weight_grad_ref_parts(const struct lksi_call *call);
void lksi_conv2d_weight_grad_ref(const struct lksi_call *call, const void *const *in,
                                 void *const *out, U64 p0, U64 p1);

/*
 * The descriptor `struct lksi_op` of an operator NAME that does what KIND does (conv2d,
 * conv2d_data_grad, conv2d_weight_grad), by a contract of its own. More fields follow.
 */
#define LKSI_CONV_OP(NAME, KIND, CONTRACT, INFER, SCHEDULES, CASES, ...)                           \
    static const struct lksi_op NAME = {                                                           \
        .name = #NAME,                                                                             \
        .contract = CONTRACT,                                                                      \
        .dims = "lks_conv_dims",                                                                   \
        .min_in = 2,                                                                               \
        .n_out = 1,                                                                                \
        .attr_size = sizeof(struct lksi_##KIND##_attr),                                            \
        .infer = INFER,                                                                            \
        .item = NAME##_item_c,                                                                     \
        .ref_parts = lksi_##NAME##_ref_parts,                                                      \
        .ref = lksi_##NAME##_ref,                                                                  \
        .schedules = SCHEDULES,                                                                    \
        .grad = lksi_##KIND##_grad,                                                                \
        .flops = lksi_conv_flops,                                                                  \
        .product = true,                                                                           \
        .test_case = CASES,                                                                        \
        __VA_ARGS__                                                                                \
    }

/* Case `index` of the harness, shared by the three direct operators; false past the last. */
bool lksi_conv_case_at(int index, bool long_run, struct lksi_conv_case *c);
/* Output height and width of a case. */
void lksi_conv_case_out(const struct lksi_conv_case *c, int64_t *oh, int64_t *ow);

#endif
