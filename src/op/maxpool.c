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

static lks_status check_axis(const char *op, const char *axis, int64_t size, int kernel, int stride,
                             int before, int after)
{
    if (kernel < 1 || stride < 1 || kernel > 32767 || stride > 32767)
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: kernel %d and stride %d along the %s, both must be 1 "
                         "to 32767",
                         op, kernel, stride, axis);
    if (before < 0 || after < 0 || before >= kernel || after >= kernel)
        return lksi_fail(
            LKS_E_ARGUMENT,
            "%s: padding %d and %d along the %s, 0 to %d (less than the kernel) wanted", op, before,
            after, axis, kernel - 1);
    if (size + before + after < kernel)
        return lksi_fail(LKS_E_ARGUMENT, "%s: the kernel of %d does not fit the padded %s of %lld",
                         op, kernel, axis, (long long)(size + before + after));
    return LKS_OK;
}

/* Fills the dims, and *y with the shape of the pooled image. */
static lks_status window(struct lksi_call *call, struct lksi_desc *y)
{
    const struct lksi_maxpool_attr *a = call->attr;
    const int64_t *d = call->in[0].dim;
    lks_status st = lksi_want(call, 0, "x", LKSI_F32, 4, 4);
    if (st == LKS_OK)
        st = check_axis(call->op->name, "height", d[1], a->kernel_h, a->stride_h, a->pad_top,
                        a->pad_bottom);
    if (st == LKS_OK)
        st = check_axis(call->op->name, "width", d[2], a->kernel_w, a->stride_w, a->pad_left,
                        a->pad_right);
    if (st != LKS_OK)
        return st;
    *y = lksi_desc_make(LKSI_F32, 4, d[0],
                        (d[1] + a->pad_top + a->pad_bottom - a->kernel_h) / a->stride_h + 1,
                        (d[2] + a->pad_left + a->pad_right - a->kernel_w) / a->stride_w + 1, d[3]);
    LKSI_SET_DIMS(call, maxpool_dims,
                  {.n = (U32)d[0],
                   .h = (U32)d[1],
                   .w = (U32)d[2],
                   .c = (U32)d[3],
                   .oh = (U32)y->dim[1],
                   .ow = (U32)y->dim[2],
                   .kh = (U32)a->kernel_h,
                   .kw = (U32)a->kernel_w,
                   .sh = (U32)a->stride_h,
                   .sw = (U32)a->stride_w,
                   .pt = (U32)a->pad_top,
                   .pl = (U32)a->pad_left,
                   .relu_mask = a->relu_mask != 0});
    return LKS_OK;
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

static lks_status grad(struct lksi_builder *b, const struct lksi_call *call, const lksi_value *in,
                       const lksi_value *out, const lksi_value *dout, const bool *need,
                       lksi_value *din)
{
    struct lksi_maxpool_attr a = *(const struct lksi_maxpool_attr *)call->attr;
    lksi_value pair[2] = {in[0], dout[0]};
    (void)out;
    (void)need;
    a.relu_mask = 0;
    return b->apply(b, "maxpool_grad", &a, 2, pair, &din[0]);
}

/* Of maxpool_grad and of maxpool_pick, which undo each other's direction. Nothing flows to x: the
 * winners are steps in it. */
static lks_status grad_of(const char *name, struct lksi_builder *b, const struct lksi_call *call,
                          const lksi_value *in, const lksi_value *dout, const bool *need,
                          lksi_value *din)
{
    lksi_value pair[2] = {in[0], dout[0]};
    return need[1] ? b->apply(b, name, call->attr, 2, pair, &din[1]) : LKS_OK;
}

static lks_status grad_grad(struct lksi_builder *b, const struct lksi_call *call,
                            const lksi_value *in, const lksi_value *out, const lksi_value *dout,
                            const bool *need, lksi_value *din)
{
    (void)out;
    return grad_of("maxpool_pick", b, call, in, dout, need, din);
}

static lks_status grad_pick(struct lksi_builder *b, const struct lksi_call *call,
                            const lksi_value *in, const lksi_value *out, const lksi_value *dout,
                            const bool *need, lksi_value *din)
{
    (void)out;
    return grad_of("maxpool_grad", b, call, in, dout, need, din);
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
    static const struct {
        int64_t n, h, w, c;
        struct lksi_maxpool_attr a; /* kernel, stride, padding */
    } cases[] = {
        {1, 1, 1, 1, {1, 1, 1, 1, 0, 0, 0, 0, 0}},
        {2, 4, 4, 16, {2, 2, 2, 2, 0, 0, 0, 0, 0}},
        {3, 6, 8, 33, {2, 2, 2, 2, 0, 0, 0, 0, 0}},
        {2, 7, 5, 17, {2, 2, 2, 2, 0, 0, 0, 0, 0}},  /* stride drops the tails */
        {2, 7, 9, 15, {3, 3, 2, 2, 1, 1, 1, 1, 0}},  /* windows overlap, padded */
        {1, 8, 8, 64, {3, 3, 2, 2, 0, 1, 0, 1, 0}},  /* padded on one side */
        {2, 5, 6, 3, {3, 2, 1, 1, 2, 1, 1, 0, 0}},   /* every pixel in many windows */
        {1, 11, 13, 5, {2, 3, 3, 5, 0, 0, 1, 2, 0}}, /* pixels between the windows */
        {1, 1, 17, 31, {1, 4, 1, 3, 0, 0, 3, 3, 0}},
        {5, 3, 3, 48, {3, 3, 3, 3, 0, 0, 0, 0, 0}}, /* global */
        {2, 9, 9, 32, {2, 2, 2, 2, 1, 1, 1, 1, 0}},
        {64, 28, 28, 32, {2, 2, 2, 2, 0, 0, 0, 0, 0}},
        {16, 112, 112, 64, {3, 3, 2, 2, 1, 1, 1, 1, 0}},
    };
    int count = (int)LKSI_COUNT(cases) - (long_run ? 0 : 2);
    struct lksi_maxpool_attr *a = attr;
    if (index >= count)
        return false;
    *a = cases[index].a;
    call->n_in = 1;
    call->in[0] =
        lksi_desc_make(LKSI_F32, 4, cases[index].n, cases[index].h, cases[index].w, cases[index].c);
    return true;
}

static bool test_case_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_maxpool_attr *a = attr;
    const int64_t *d = call->in[0].dim;
    if (!test_case(index / 2, long_run, call, attr))
        return false;
    a->relu_mask = index % 2;
    call->n_in = 2;
    call->in[1] = lksi_desc_make(
        LKSI_F32, 4, d[0], (d[1] + a->pad_top + a->pad_bottom - a->kernel_h) / a->stride_h + 1,
        (d[2] + a->pad_left + a->pad_right - a->kernel_w) / a->stride_w + 1, d[3]);
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
