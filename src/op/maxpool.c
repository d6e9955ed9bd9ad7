/*
 * maxpool.c - maxpool, maxpool_grad and maxpool_pick, the gradient of the gradient.
 */
#include <string.h>

#include "contract/maxpool.h"
#include "op/attr.h"
#include "op/maxpool.h"
#include "op/shape.h"

LKSI_ITEM(maxpool, in[0], out[0])
LKSI_ITEM(maxpool_grad, in[0], in[1], out[0])
LKSI_ITEM(maxpool_pick, in[0], in[1], out[0])

/* ---- shapes ---- */

/* One axis: its sizes in the order of the attributes; *out is the number of windows. */
static lks_status check_axis(const char *op, const char *axis, int64_t size, int kernel, int stride,
                             int before, int after, int dilation, bool ceil, int64_t *out)
{
    int64_t reach = (int64_t)dilation * (kernel - 1) + 1;
    if (kernel < 1 || stride < 1 || kernel > 32767 || stride > 32767)
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: kernel %d and stride %d along the %s, both must be 1 "
                         "to 32767",
                         op, kernel, stride, axis);
    if (dilation < 1 || dilation > 32767)
        return lksi_fail(LKS_E_ARGUMENT, "%s: dilation %d along the %s, 1 to 32767 wanted", op,
                         dilation, axis);
    if (before < 0 || after < 0 || before >= reach || after >= reach)
        return lksi_fail(
            LKS_E_ARGUMENT,
            "%s: padding %d and %d along the %s, 0 to %lld (less than the kernel) wanted", op,
            before, after, axis, (long long)reach - 1);
    if (size + before + after < reach)
        return lksi_fail(LKS_E_ARGUMENT, "%s: the kernel of %lld does not fit the padded %s of %lld",
                         op, (long long)reach, axis, (long long)(size + before + after));
    *out = (size + before + after - reach + (ceil ? stride - 1 : 0)) / stride + 1;
    if (ceil && (*out - 1) * stride >= size + before)
        *out -= 1;
    /* Only windows that begin in the padding could have all their taps beside the image. */
    for (int64_t o = 0; o < *out && o * stride < before; o++) {
        int64_t t = (before - o * stride + dilation - 1) / dilation;
        if (t >= kernel || o * stride + t * dilation >= size + before)
            return lksi_fail(LKS_E_ARGUMENT,
                             "%s: window %lld along the %s has no tap in the image, only in its "
                             "padding of %d",
                             op, (long long)o, axis, before);
    }
    return LKS_OK;
}

lks_status lksi_pool_window(const char *op, const struct lksi_maxpool_attr *a,
                            const struct lksi_desc *x, struct maxpool_dims *dims,
                            struct lksi_desc *y)
{
    const int64_t *d = x->dim;
    int dh = a->dilation_h != 0 ? a->dilation_h : 1, dw = a->dilation_w != 0 ? a->dilation_w : 1;
    int64_t oh = 0, ow = 0;
    lks_status st = check_axis(op, "height", d[1], a->kernel_h, a->stride_h, a->pad_top,
                               a->pad_bottom, dh, a->ceil != 0, &oh);
    if (st == LKS_OK)
        st = check_axis(op, "width", d[2], a->kernel_w, a->stride_w, a->pad_left, a->pad_right, dw,
                        a->ceil != 0, &ow);
    if (st != LKS_OK)
        return st;
    *y = lksi_desc_make(LKSI_F32, 4, d[0], oh, ow, d[3]);
    *dims = (struct maxpool_dims){.n = (U32)d[0],
                                  .h = (U32)d[1],
                                  .w = (U32)d[2],
                                  .c = (U32)d[3],
                                  .oh = (U32)oh,
                                  .ow = (U32)ow,
                                  .kh = (U32)a->kernel_h,
                                  .kw = (U32)a->kernel_w,
                                  .sh = (U32)a->stride_h,
                                  .sw = (U32)a->stride_w,
                                  .pt = (U32)a->pad_top,
                                  .pl = (U32)a->pad_left,
                                  .relu_mask = a->relu_mask != 0,
                                  .dh = (U32)dh,
                                  .dw = (U32)dw};
    return LKS_OK;
}

/* Fills the dims, and *y with the shape of the pooled image. */
static lks_status window(struct lksi_call *call, struct lksi_desc *y)
{
    struct maxpool_dims d;
    lks_status st = lksi_want(call, 0, "x", LKSI_F32, 4, 4);
    if (st == LKS_OK)
        st = lksi_pool_window(call->op->name, call->attr, &call->in[0], &d, y);
    if (st == LKS_OK)
        LKSI_SET_DIMS(call, maxpool_dims, d);
    return st;
}

static lks_status infer(struct lksi_call *call)
{
    struct lksi_desc y;
    lks_status st = window(call, &y);
    if (st == LKS_OK)
        call->out[0] = y;
    return st;
}

static lks_status infer_grad(struct lksi_call *call)
{
    struct lksi_desc y;
    lks_status st = window(call, &y);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "dy", y);
    if (st == LKS_OK)
        call->out[0] = call->in[0];
    return st;
}

static lks_status infer_pick(struct lksi_call *call)
{
    struct lksi_desc y;
    lks_status st = window(call, &y);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "v", call->in[0]);
    if (st == LKS_OK)
        call->out[0] = y;
    return st;
}

/* ---- gradient and fusion ---- */

static lks_status grad(const struct lksi_backward *g)
{
    struct lksi_maxpool_attr a = *(const struct lksi_maxpool_attr *)g->call->attr;
    a.relu_mask = 0;
    return lksi_flow(g, 0, "maxpool_grad", &a, g->in[0], g->dout[0]);
}

/* Of maxpool_grad and of maxpool_pick, which undo each other's direction. Nothing flows to x: the
 * winners are steps in it. */

static lks_status grad_grad(const struct lksi_backward *g)
{
    return lksi_flow(g, 1, "maxpool_pick", g->call->attr, g->in[0], g->dout[0]);
}

static lks_status grad_pick(const struct lksi_backward *g)
{
    return lksi_flow(g, 1, "maxpool_grad", g->call->attr, g->in[0], g->dout[0]);
}

/* The gradient of the relu that made x. */
static bool absorb_grad(void *attr, lksi_value *in, int *n_in, const struct lksi_op *next,
                        const void *next_attr, const lksi_value *next_in, int slot)
{
    struct lksi_maxpool_attr *a = attr;
    (void)n_in;
    (void)next_attr;
    if (a->relu_mask || strcmp(next->name, "relu_grad") != 0 || slot != 1 || next_in[0] != in[0])
        return false;
    a->relu_mask = 1;
    return true;
}

static double flops(const struct lksi_call *call)
{
    const struct lksi_maxpool_attr *a = call->attr;
    return (double)lksi_desc_count(&call->out[0]) * a->kernel_h * a->kernel_w;
}

static double flops_grad(const struct lksi_call *call)
{
    const struct lksi_maxpool_attr *a = call->attr;
    return (double)lksi_desc_count(&call->in[1]) * a->kernel_h * a->kernel_w;
}

/* ---- harness cases ---- */

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    return lksi_pool_case(index, long_run, false, &call->in[0], attr) && (call->n_in = 1, true);
}

static bool test_case_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_maxpool_attr *a = attr;
    struct maxpool_dims d;
    if (!test_case(index / 2, long_run, call, attr) ||
        lksi_pool_window("maxpool_grad", a, &call->in[0], &d, &call->in[1]) != LKS_OK)
        return false;
    a->relu_mask = index % 2;
    call->n_in = 2;
    return true;
}

static bool test_case_pick(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_maxpool_attr *a = attr;
    if (!test_case(index / 2, long_run, call, attr))
        return false;
    a->relu_mask = index % 2;
    call->n_in = 2;
    call->in[1] = call->in[0];
    return true;
}

static const struct lksi_schedule schedules[] = {
    {"vec", lksi_maxpool_vec_declines, lksi_maxpool_vec_recipe}, {NULL, NULL, NULL}};

static const struct lksi_schedule schedules_grad[] = {
    {"vec", lksi_maxpool_vec_declines, lksi_maxpool_grad_vec_recipe}, {NULL, NULL, NULL}};

static const struct lksi_op maxpool = {
    .name = "maxpool",
    .contract = "contract/maxpool.h",
    .dims = "maxpool_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_maxpool_attr),
    .infer = infer,
    .item = maxpool_item_c,
    .schedules = schedules,
    .grad = grad,
    .flops = flops,
    .test_case = test_case,
};

static const struct lksi_op maxpool_grad = {
    .name = "maxpool_grad",
    .contract = "contract/maxpool.h",
    .dims = "maxpool_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_maxpool_attr),
    .infer = infer_grad,
    .item = maxpool_grad_item_c,
    .schedules = schedules_grad,
    .grad = grad_grad,
    .absorb = absorb_grad,
    .flops = flops_grad,
    .test_case = test_case_grad,
};

static const struct lksi_op maxpool_pick = {
    .name = "maxpool_pick",
    .contract = "contract/maxpool.h",
    .dims = "maxpool_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_maxpool_attr),
    .infer = infer_pick,
    .item = maxpool_pick_item_c,
    .grad = grad_pick,
    .flops = flops,
    .test_case = test_case_pick,
};

const struct lksi_op *const lksi_ops_maxpool[] = {&maxpool, &maxpool_grad, &maxpool_pick, NULL};
