/*
 * resample.c - resample and resample_grad: images in another height and width.
 */
#include <stdio.h>
#include <string.h>

#include "contract/resample.h"
#include "op/attr.h"
#include "op/flat.h"
#include "op/resample.h"
#include "op/shape.h"

LKSI_ITEM(resample, in[0], out[0])
LKSI_ITEM(resample_grad, in[0], out[0])

static const struct resample_dims *dims_of(const struct lksi_call *call)
{
    return (const void *)call->dims.bytes;
}

/* ---- shapes ---- */

static lks_status fill_axis(const struct lksi_call *call, const char *what,
                            const struct lksi_resample_axis *a, struct lks_resample_axis *d)
{
    int64_t shift = 0, last;
    if (a->in < 1 || a->out < 1 || a->a < 0 || a->d < 1 || a->d > 1 << 24)
        return lksi_fail(LKS_E_ARGUMENT, "%s: the %s goes from %d to %d in steps of %d/%d; sizes "
                                         "from 1 and whole numbers below 2^24 wanted",
                         call->op->name, what, a->in, a->out, a->a, a->d);
    if (a->b < 0)
        shift = (-(int64_t)a->b + a->d - 1) / a->d;
    last = (int64_t)a->a * (a->out - 1) + a->b + shift * a->d;
    if (last > INT32_MAX || (a->in + shift) * a->d > INT64_MAX / 2 || a->in + shift > INT32_MAX)
        return lksi_fail(LKS_E_ARGUMENT, "%s: the %s goes from %d to %d, which 31 bits do not "
                                         "count", call->op->name, what, a->in, a->out);
    *d = (struct lks_resample_axis){(U32)a->in, (U32)a->out, (U32)a->a,
                                    (U32)(a->b + shift * a->d), (U32)a->d, (U32)shift};
    return LKS_OK;
}

static lks_status infer_for(struct lksi_call *call, bool grad)
{
    const struct lksi_resample_attr *a = call->attr;
    struct resample_dims d = {.linear = a->linear != 0};
    struct lksi_desc x = call->in[0], y = x, wanted = x;
    char text[96];
    lks_status st = lksi_want(call, 0, grad ? "dy" : "x", LKSI_F32, 4, 4);
    if (st == LKS_OK)
        st = fill_axis(call, "height", &a->h, &d.h);
    if (st == LKS_OK)
        st = fill_axis(call, "width", &a->w, &d.w);
    if (st != LKS_OK)
        return st;
    wanted.dim[1] = grad ? a->h.out : a->h.in;
    wanted.dim[2] = grad ? a->w.out : a->w.in;
    y.dim[1] = grad ? a->h.in : a->h.out;
    y.dim[2] = grad ? a->w.in : a->w.out;
    st = lksi_want_desc(call, 0, grad ? "dy" : "x", wanted);
    if (st != LKS_OK)
        return st;
    if ((double)y.dim[0] * (double)y.dim[1] * (double)y.dim[2] * (double)y.dim[3] > INT32_MAX ||
        lksi_desc_count(&x) > INT32_MAX)
        return lksi_fail(LKS_E_ARGUMENT, "%s: %s has more elements than 31 bits count",
                         call->op->name, lksi_desc_text(&y, text));
    d.n = (U32)x.dim[0];
    d.c = (U32)x.dim[3];
    call->out[0] = y;
    memcpy(call->dims.bytes, &d, sizeof d);
    call->dims_size = sizeof d;
    return LKS_OK;
}

static lks_status infer(struct lksi_call *call)
{
    return infer_for(call, false);
}

static lks_status infer_grad(struct lksi_call *call)
{
    return infer_for(call, true);
}

/* They are linear, and each is the other's gradient. */
static lks_status grad(const struct lksi_backward *g)
{
    bool forward = strcmp(g->call->op->name, "resample") == 0;
    return lksi_flow(g, 0, forward ? "resample_grad" : "resample", g->call->attr, g->dout[0]);
}

static double flops(const struct lksi_call *call)
{
    const struct resample_dims *d = dims_of(call);
    return (d->linear != 0 ? 8.0 : 1.0) * d->n * d->h.out * d->w.out * d->c;
}

/* ---- schedules ---- */

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    const struct resample_dims *d = dims_of(call);
    struct lksi_launch *l = &r->launch[0];
    U64 n = (U64)lksi_desc_count(&call->out[0]);
    r->n_launch = 1;
    l->source = "op/resample.cl";
    l->kernel = call->op->name;
    l->dims = 1;
    l->arg[l->n_arg++] = LKSI_IN(0);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
    if (dev->type == LKSI_DEV_GPU) {
        unsigned vec = d->c % 4 == 0 ? 4 : 1;
        size_t group = lksi_group(dev, 128);
        snprintf(l->defines, sizeof l->defines, "FLAT VEC=%u", vec);
        l->arg[l->n_arg++] = LKSI_U64(n);
        l->local[0] = group;
        l->global[0] = (size_t)((n / vec + group - 1) / group * group);
    } else {
        snprintf(l->defines, sizeof l->defines, "VEC=%u", lksi_lanes(d->c));
        l->local[0] = 1;
        l->global[0] = (size_t)d->n * (size_t)call->out[0].dim[1];
    }
}

static const struct lksi_schedule schedules[] = {{"vec", lksi_flat_declines, recipe},
                                                 {NULL, NULL, NULL}};

/* ---- tests ---- */

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const struct {
        int n, c;
        struct lksi_resample_attr attr;
    } cases[] = {
        {1, 1, {0, {1, 1, 1, 0, 1}, {1, 1, 1, 0, 1}}},
        {2, 3, {0, {4, 8, 1, 0, 2}, {5, 15, 1, 0, 3}}},       /* nearest, 2 x 3 times */
        {2, 16, {0, {5, 9, 1, -2, 1}, {7, 12, 1, -4, 1}}},    /* borders repeated */
        {2, 5, {0, {1, 6, 0, 0, 1}, {1, 3, 0, 0, 1}}},        /* one pixel repeated */
        {3, 4, {0, {7, 3, 14, 6, 6}, {9, 2, 9, 1, 2}}},       /* fewer */
        {1, 1, {1, {1, 5, 2, -4, 10}, {3, 1, 0, 0, 1}}},
        {2, 3, {1, {4, 8, 2, -1, 4}, {5, 15, 2, -2, 6}}},     /* bilinear, half pixels */
        {2, 17, {1, {6, 12, 5, 0, 11}, {7, 14, 6, 0, 13}}},   /* corners meet */
        {2, 64, {1, {3, 7, 6, -4, 14}, {5, 8, 10, -3, 16}}},
        {2, 8, {1, {9, 4, 18, 5, 8}, {11, 3, 22, 8, 6}}},     /* fewer */
        {1, 33, {1, {5, 10, 1, 0, 2}, {6, 6, 1, 0, 1}}},      /* asymmetric; width as it is */
        {2, 4, {1, {4, 11, 7, -30, 9}, {5, 9, 3, 5, 4}}},     /* far over both borders */
        {8, 64, {1, {56, 112, 2, -1, 4}, {56, 112, 2, -1, 4}}},
    };
    int plain = (int)LKSI_COUNT(cases) - 1;
    if (index > plain || (index == plain && !long_run))
        return false;
    const struct lksi_resample_attr *a = &cases[index].attr;
    memcpy(attr, a, sizeof *a);
    call->n_in = 1;
    call->in[0] = lksi_desc_make(LKSI_F32, 4, (int64_t)cases[index].n, (int64_t)a->h.in,
                                 (int64_t)a->w.in, (int64_t)cases[index].c);
    return true;
}

static bool test_case_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    const struct lksi_resample_attr *a = attr;
    if (!test_case(index, long_run, call, attr))
        return false;
    call->in[0].dim[1] = a->h.out;
    call->in[0].dim[2] = a->w.out;
    return true;
}

static const struct lksi_op resample = {
    .name = "resample",
    .contract = "contract/resample.h",
    .dims = "resample_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_resample_attr),
    .infer = infer,
    .item = resample_item_c,
    .ref_parts = lksi_resample_ref_parts,
    .ref = lksi_resample_ref,
    .schedules = schedules,
    .grad = grad,
    .flops = flops,
    .test_case = test_case,
};

static const struct lksi_op resample_grad = {
    .name = "resample_grad",
    .contract = "contract/resample.h",
    .dims = "resample_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_resample_attr),
    .infer = infer_grad,
    .item = resample_grad_item_c,
    .ref_parts = lksi_resample_ref_parts,
    .ref = lksi_resample_grad_ref,
    .schedules = schedules,
    .grad = grad,
    .flops = flops,
    .test_case = test_case_grad,
};

const struct lksi_op *const lksi_ops_resample[] = {&resample, &resample_grad, NULL};
