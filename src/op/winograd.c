/*
 * winograd.c - the convolution by Winograd's F(2x2, 3x3) and its gradients. Contract:
 * cl/contract/winograd.h; shape rules and gradients: those of conv2d.c; C loops: winograd_ref.c.
 */
#include <string.h>

#include "op/conv_gpu.h"
#include "op/winograd.h"

/* ---- shapes ---- */

static lks_status check(const char *op, const struct lks_conv_dims *d)
{
    if (d->r != 3 || d->s != 3 || d->stride_h != 1 || d->stride_w != 1 || d->dil_h != 1 ||
        d->dil_w != 1 || d->groups != 1)
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: serves kernels of 3 x 3 with stride 1, dilation 1 and one group, not "
                         "%u x %u with stride %u x %u, dilation %u x %u and %u groups",
                         op, d->r, d->s, d->stride_h, d->stride_w, d->dil_h, d->dil_w, d->groups);
    return LKS_OK;
}

/* The shapes of the direct operator, then ours. */
static lks_status infer(struct lksi_call *call)
{
    lks_status st = lksi_conv2d_infer(call);
    return st == LKS_OK ? check(call->op->name, lksi_conv_dims(call)) : st;
}

static lks_status infer_data_grad(struct lksi_call *call)
{
    lks_status st = lksi_conv2d_data_grad_infer(call);
    return st == LKS_OK ? check(call->op->name, lksi_conv_dims(call)) : st;
}

static lks_status infer_weight_grad(struct lksi_call *call)
{
    struct lks_conv_dims *d = (struct lks_conv_dims *)(void *)call->dims.bytes;
    lks_status st = lksi_conv2d_weight_grad_infer(call);
    if (st == LKS_OK)
        st = check(call->op->name, d);
    if (st == LKS_OK)
        d->leaf = lks_leaf_make(d->n, lks_winograd_tiles(d->oh), lks_winograd_tiles(d->ow),
                                call->leaf);
    return st;
}

struct lksi_winograd_view lksi_winograd_view(const struct lks_conv_dims *d, bool grad)
{
    struct lksi_winograd_view v = {.n = d->n, .tap = d->c, .turned = grad};
    U64 kernel = 9ull * d->c;
    if (grad) {
        v.h = d->oh, v.w = d->ow, v.c = d->k, v.oh = d->h, v.ow = d->w, v.k = d->c;
        v.row = d->pad_h - 2u, v.col = d->pad_w - 2u;
        v.c_step = kernel, v.k_step = 1;
    } else {
        v.h = d->h, v.w = d->w, v.c = d->c, v.oh = d->oh, v.ow = d->ow, v.k = d->k;
        v.row = 0u - d->pad_h, v.col = 0u - d->pad_w;
        v.c_step = 1, v.k_step = kernel;
    }
    v.th = lks_winograd_tiles(v.oh);
    v.tw = lks_winograd_tiles(v.ow);
    return v;
}

/* ---- test cases ---- */

/* N,H,W,C, K, pad top/bottom/left/right, relu, leaf, extra. Sizes stand around tiles of 2 x 2,
 * blocks of tiles, 16 lanes and the leaves of 1024 tiles. */
#define CASE(n, h, w, c, k, pt, pb, pl, pr, relu, leaf, extra)                                     \
    {                                                                                              \
        {n, h, w, c, k, 3, 3, c}, {1, 1, pt, pb, pl, pr, 1, 1, 1, relu}, leaf, extra               \
    }

/* clang-format off */
static const struct lksi_conv_case cases[] = {
    CASE(1, 3, 3, 1, 1, 0, 0, 0, 0, 0, 8, false),       /* one output */
    CASE(2, 4, 6, 1, 5, 0, 0, 0, 0, 1, 8, true),        /* no padding, whole tiles */
    CASE(9, 6, 5, 3, 17, 1, 1, 1, 1, 0, 8, true),       /* half tiles, leaves of 8 and 1 */
    CASE(3, 4, 4, 16, 15, 1, 1, 1, 1, 1, 1, false),     /* leaf 1 */
    CASE(2, 7, 7, 15, 16, 0, 1, 1, 0, 0, 2, true),
    CASE(2, 5, 9, 17, 33, 2, 2, 2, 2, 1, 8, true),      /* wide padding */
    CASE(1, 3, 2, 4, 8, 5, 4, 0, 7, 0, 8, true),        /* mostly padding; patches before dy */
    CASE(2, 1, 1, 6, 4, 1, 1, 1, 1, 0, 8, false),       /* one pixel */
    CASE(1, 14, 13, 31, 64, 1, 1, 1, 1, 0, 8, false),
    CASE(1, 7, 6, 64, 65, 1, 1, 1, 1, 1, 8, true),
    CASE(1, 9, 10, 65, 40, 1, 1, 1, 1, 0, 8, true),
    CASE(13, 3, 3, 2, 3, 1, 1, 1, 1, 0, 8, false),      /* leaves of 8 and 5 */
    CASE(5, 33, 34, 2, 4, 1, 1, 1, 1, 0, 8, true),      /* joins 2 */
    CASE(2, 80, 79, 2, 3, 1, 1, 1, 1, 0, 8, false),     /* a sample is cut in two */
    CASE(3, 97, 64, 1, 4, 0, 2, 1, 1, 0, 4, false),     /* uneven cut */
    CASE(1, 6, 2062, 1, 2, 1, 1, 1, 1, 0, 8, false),    /* a row a leaf */
    CASE(2, 6, 2062, 1, 2, 1, 1, 1, 1, 0, 8, false),    /* a cut in three: a tree inside a tree */
    CASE(1, 3, 4, 1283, 2, 1, 1, 1, 1, 1, 8, true),     /* chains of two pieces */
    CASE(1, 4, 3, 5, 1282, 0, 1, 1, 0, 0, 8, true),
};
static const struct lksi_conv_case long_cases[] = {
    CASE(2, 56, 56, 64, 64, 1, 1, 1, 1, 0, 8, false),
    CASE(3, 28, 27, 128, 96, 1, 1, 1, 1, 1, 8, true),
    CASE(5, 14, 14, 131, 160, 1, 1, 1, 1, 0, 2, true),
    CASE(9, 7, 7, 192, 128, 1, 1, 1, 1, 0, 8, true),
    CASE(2, 112, 111, 3, 64, 1, 1, 1, 1, 0, 8, true),
};
/* clang-format on */
#undef CASE

static bool case_at(int index, bool long_run, struct lksi_conv_case *c)
{
    size_t i = (size_t)index, n = LKSI_COUNT(cases);
    if (i >= n && (!long_run || i - n >= LKSI_COUNT(long_cases)))
        return false;
    *c = i < n ? cases[i] : long_cases[i - n];
    return true;
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_conv_case c;
    bool found = case_at(index, long_run, &c);
    if (found)
        lksi_conv_case_call(&c, call, attr);
    return found;
}

static bool test_case_data_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_conv_case c;
    bool found = case_at(index, long_run, &c);
    if (found)
        lksi_conv_case_data_grad(&c, index, call, attr);
    return found;
}

static bool test_case_weight_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_conv_case c;
    bool found = case_at(index, long_run, &c);
    if (found)
        lksi_conv_case_weight_grad(&c, call, attr);
    return found;
}

/* ---- descriptors ---- */

LKSI_ITEM(winograd, in[0], in[1], in[2], out[0])
LKSI_ITEM(winograd_data_grad, in[0], in[1], in[2], out[0])
LKSI_ITEM(winograd_weight_grad, in[0], in[1], out[0])

#define SCHEDULES(name, kernel)                                                                    \
    static const struct lksi_schedule name##_schedules[] = {                                       \
        {"cpu", lksi_##name##_cpu_declines, lksi_##name##_cpu_recipe, NULL, 0},                    \
        LKSI_GPU_LINES(name, kernel),                                                              \
        {0}};
SCHEDULES(winograd, product)
SCHEDULES(winograd_data_grad, product)
SCHEDULES(winograd_weight_grad, leaves)

LKSI_CONV_OP(winograd, conv2d, "contract/winograd.h", infer,
             winograd_schedules, test_case, .max_in = 3, .absorb = lksi_conv2d_absorb);

LKSI_CONV_OP(winograd_data_grad, conv2d_data_grad, "contract/winograd.h", infer_data_grad,
             winograd_data_grad_schedules, test_case_data_grad, .max_in = 3,
             .absorb = lksi_conv2d_data_grad_absorb);

LKSI_CONV_OP(winograd_weight_grad, conv2d_weight_grad, "contract/winograd.h", infer_weight_grad,
             winograd_weight_grad_schedules, test_case_weight_grad, .max_in = 2, .sums_samples = 3);

const struct lksi_op *const lksi_ops_winograd[] = {&winograd, &winograd_data_grad,
                                                   &winograd_weight_grad, NULL};
