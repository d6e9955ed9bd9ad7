/*
 * avgpool.c - avgpool and avgpool_grad. Kernels: cl/op/avgpool.cl.
 */
#include <stdio.h>
#include <string.h>

#include "contract/avgpool.h"
#include "op/flat.h"
#include "op/maxpool.h"
#include "op/shape.h"

LKSI_ITEM(avgpool, in[0], out[0])
LKSI_ITEM(avgpool_grad, in[0], out[0])

/* ---- shapes ---- */

/* The window over the image x; *y is the shape of the pooled image. */
static lks_status window(struct lksi_call *call, const struct lksi_desc *x, struct lksi_desc *y)
{
    const struct lksi_avgpool_attr *a = call->attr;
    const struct lksi_maxpool_attr *p = &a->window;
    struct maxpool_dims d;
    lks_status st = lksi_pool_window(call->op->name, p, x, &d, y);
    if (st != LKS_OK)
        return st;
    d.ch0 = a->count_pad ? 0 : d.pt;
    d.ch1 = d.h + d.pt + (a->count_pad ? (U32)p->pad_bottom : 0);
    d.cw0 = a->count_pad ? 0 : d.pl;
    d.cw1 = d.w + d.pl + (a->count_pad ? (U32)p->pad_right : 0);
    d.relu_mask = 0;
    LKSI_SET_DIMS(call, maxpool_dims, d);
    return LKS_OK;
}

static lks_status infer(struct lksi_call *call)
{
    struct lksi_desc y;
    lks_status st = lksi_want(call, 0, "x", LKSI_F32, 4, 4);
    if (st == LKS_OK)
        st = window(call, &call->in[0], &y);
    if (st == LKS_OK)
        call->out[0] = y;
    return st;
}

static lks_status infer_grad(struct lksi_call *call)
{
    const struct lksi_avgpool_attr *a = call->attr;
    struct lksi_desc x, y;
    lks_status st = lksi_want(call, 0, "dy", LKSI_F32, 4, 4);
    if (st != LKS_OK)
        return st;
    if (a->height < 1 || a->width < 1)
        return lksi_fail(LKS_E_ARGUMENT, "%s: height %d and width %d of x, both must be 1 or more",
                         call->op->name, a->height, a->width);
    x = lksi_desc_make(LKSI_F32, 4, call->in[0].dim[0], (int64_t)a->height, (int64_t)a->width,
                       call->in[0].dim[3]);
    st = window(call, &x, &y);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 0, "dy", y);
    if (st == LKS_OK)
        call->out[0] = x;
    return st;
}

/* ---- gradients ---- */

static lks_status grad(const struct lksi_backward *g)
{
    struct lksi_avgpool_attr a = *(const struct lksi_avgpool_attr *)g->call->attr;
    a.height = (int)g->call->in[0].dim[1];
    a.width = (int)g->call->in[0].dim[2];
    return lksi_flow(g, 0, "avgpool_grad", &a, g->dout[0]);
}

/* Both are linear, each the other's transpose. */
static lks_status grad_grad(const struct lksi_backward *g)
{
    return lksi_flow(g, 0, "avgpool", g->call->attr, g->dout[0]);
}

/* One addition a tap of the pooled image. */
static double flops(const struct lksi_call *call)
{
    const struct maxpool_dims *d = (const void *)call->dims.bytes;
    return (double)d->n * d->oh * d->ow * d->c * d->kh * d->kw;
}

/* ---- schedules ---- */

static const struct maxpool_dims *dims(const struct lksi_call *call)
{
    return (const void *)call->dims.bytes;
}

static void add_args(struct lksi_launch *l)
{
    l->arg[l->n_arg++] = LKSI_IN(0);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
}

static const char *vec_declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    (void)dev;
    return (U64)dims(call)->n * dims(call)->h > UINT32_MAX ? "more rows than 32 bits count" : NULL;
}

static void vec_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                       struct lksi_recipe *r)
{
    const struct maxpool_dims *d = dims(call);
    char taps[32] = " KH=0 KW=0";
    if (d->kh * d->kw <= LKS_ROW_LANES)
        snprintf(taps, sizeof taps, " KH=%u KW=%u", d->kh, d->kw);
    add_args(lksi_pool_launch(r, dev, d, "op/avgpool.cl", "mean", "MEAN", taps, (U64)d->n * d->oh,
                              d->ow));
}

/* A large window is a whole work-group's. */
static const char *lanes_declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    const struct maxpool_dims *d = dims(call);
    if (dev->type != LKSI_DEV_GPU)
        return "made for GPUs";
    if (d->kh * d->kw < 64)
        return "the windows are small";
    return lksi_group(dev, 128) < 128 ? "work-groups are too small" : NULL;
}

static void lanes_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                         struct lksi_recipe *r)
{
    const struct maxpool_dims *d = dims(call);
    struct lksi_launch *l = &r->launch[r->n_launch++];
    unsigned vec = d->c % 4 == 0 ? 4 : 1;
    (void)dev;
    l->source = "op/avgpool.cl";
    l->kernel = "lanes";
    snprintf(l->defines, sizeof l->defines, "LANES VEC=%u X=4", vec);
    add_args(l);
    l->dims = 3;
    l->local[0] = 4;
    l->local[1] = 32;
    l->local[2] = 1;
    l->global[0] = (d->c / vec + 3) / 4 * 4;
    l->global[1] = 32;
    l->global[2] = (size_t)d->n * d->oh * d->ow;
}

static void grad_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                        struct lksi_recipe *r)
{
    const struct maxpool_dims *d = dims(call);
    /* no window leaves what the divisor counts */
    bool full = d->ch0 == 0 && d->cw0 == 0 && (d->oh - 1) * d->sh + (d->kh - 1) * d->dh < d->ch1 &&
                (d->ow - 1) * d->sw + (d->kw - 1) * d->dw < d->cw1;
    add_args(lksi_pool_launch(r, dev, d, "op/avgpool.cl", "gather", "GATHER", full ? " FULL" : "",
                              (U64)d->n * d->h, d->w));
}

static const struct lksi_schedule schedules[] = {
    {"lanes", lanes_declines, lanes_recipe}, {"vec", vec_declines, vec_recipe}, {NULL, NULL, NULL}};

static const struct lksi_schedule schedules_grad[] = {{"vec", vec_declines, grad_recipe},
                                                      {NULL, NULL, NULL}};

/* ---- tests ---- */

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_avgpool_attr *a = attr;
    a->count_pad = index % 2;
    call->n_in = 1;
    return lksi_pool_case(index / 2, long_run, true, &call->in[0], &a->window);
}

static bool test_case_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_avgpool_attr *a = attr;
    struct lksi_desc x;
    struct maxpool_dims d;
    if (!test_case(index, long_run, call, attr))
        return false;
    x = call->in[0];
    a->height = (int)x.dim[1];
    a->width = (int)x.dim[2];
    return lksi_pool_window("avgpool_grad", &a->window, &x, &d, &call->in[0]) == LKS_OK;
}

static const struct lksi_op avgpool = {
    .name = "avgpool",
    .contract = "contract/avgpool.h",
    .dims = "maxpool_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_avgpool_attr),
    .infer = infer,
    .item = avgpool_item_c,
    .schedules = schedules,
    .grad = grad,
    .flops = flops,
    .test_case = test_case,
};

static const struct lksi_op avgpool_grad = {
    .name = "avgpool_grad",
    .contract = "contract/avgpool.h",
    .dims = "maxpool_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_avgpool_attr),
    .infer = infer_grad,
    .item = avgpool_grad_item_c,
    .schedules = schedules_grad,
    .grad = grad_grad,
    .flops = flops,
    .test_case = test_case_grad,
};

const struct lksi_op *const lksi_ops_avgpool[] = {&avgpool, &avgpool_grad, NULL};
