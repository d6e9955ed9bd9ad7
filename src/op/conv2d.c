/*
 * conv2d.c - the operator `conv2d`, and the shape rules and test cases that its two gradient
 * operators share. Contract: cl/contract/conv2d.h; C loop: conv2d_ref.c.
 */
#include <string.h>

#include "op/conv_cpu.h"
#include "contract/conv2d.h"

#define POSITIONS_MAX 0x7fffffffll

/* ---- shapes, shared ---- */

lks_status lksi_conv_check_rank(const struct lksi_call *call, int index, int rank,
                                const char *shape)
{
    char text[96];
    const struct lksi_desc *d = &call->in[index];
    if (d->dtype != LKSI_F32)
        return lksi_fail(LKS_E_ARGUMENT, "%s: input %d must be f32", call->op->name, index);
    bool positive = d->rank == rank;
    for (int i = 0; i < d->rank; i++)
        positive = positive && d->dim[i] > 0;
    if (!positive)
        return lksi_fail(LKS_E_ARGUMENT, "%s: input %d is %s, expected %s with no empty dimension",
                         call->op->name, index, lksi_desc_text(d, text), shape);
    return LKS_OK;
}

/* Outputs along one axis. */
static lks_status axis(const char *op, const char *name, int64_t size, uint32_t before,
                       uint32_t after, int64_t kernel, uint32_t dilation, uint32_t stride, U32 *out)
{
    int64_t padded = size + before + after;
    if (kernel - 1 > POSITIONS_MAX / (int64_t)dilation || padded > POSITIONS_MAX)
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: %s of %lld with padding %u + %u, or kernel %lld with dilation %u, "
                         "is above 2^31 - 1",
                         op, name, (long long)size, before, after, (long long)kernel, dilation);
    int64_t reach = (kernel - 1) * dilation + 1;
    if (reach > padded)
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: kernel of %lld with dilation %u reaches over %lld, more than the "
                         "padded %s %lld (%lld + %u + %u)",
                         op, (long long)kernel, dilation, (long long)reach, name, (long long)padded,
                         (long long)size, before, after);
    *out = (U32)((padded - reach) / stride + 1);
    return LKS_OK;
}

static lks_status check_attr(const char *op, const struct lksi_conv2d_attr *a,
                             const struct lksi_conv_sizes *z)
{
    if (a->stride_h == 0 || a->stride_w == 0 || a->dilation_h == 0 || a->dilation_w == 0)
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: stride %u x %u and dilation %u x %u must be at least 1", op,
                         a->stride_h, a->stride_w, a->dilation_h, a->dilation_w);
    if (a->stride_h > POSITIONS_MAX || a->stride_w > POSITIONS_MAX)
        return lksi_fail(LKS_E_ARGUMENT, "%s: stride %u x %u is above 2^31 - 1", op, a->stride_h,
                         a->stride_w);
    if (a->groups == 0 || z->c % a->groups != 0 || z->k % a->groups != 0)
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: %u groups must divide both the %lld input and the %lld output "
                         "channels",
                         op, a->groups, (long long)z->c, (long long)z->k);
    if (z->cg != z->c / a->groups)
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: weights have %lld input channels, expected %lld (%lld channels in "
                         "%u groups)",
                         op, (long long)z->cg, (long long)(z->c / a->groups), (long long)z->c,
                         a->groups);
    return LKS_OK;
}

/* True if the product of three positive factors is at most POSITIONS_MAX. */
static bool fits(int64_t a, int64_t b, int64_t c)
{
    return a <= POSITIONS_MAX && b <= POSITIONS_MAX / a && c <= POSITIONS_MAX / (a * b);
}

lks_status lksi_conv_fill(struct lks_conv_dims *d, const char *op, const struct lksi_conv2d_attr *a,
                          const struct lksi_conv_sizes *z)
{
    lks_status st;
    U32 oh = 0, ow = 0;
    LKSI_TRY(check_attr(op, a, z));
    if (!fits(z->n, z->h, z->w) || !fits(z->r, z->s, z->cg) || !fits(z->c, z->k, 1))
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: %lld x %lld x %lld positions, %lld x %lld x %lld taps or %lld x "
                         "%lld channels are above 2^31 - 1",
                         op, (long long)z->n, (long long)z->h, (long long)z->w, (long long)z->r,
                         (long long)z->s, (long long)z->cg, (long long)z->c, (long long)z->k);
    LKSI_TRY(
        axis(op, "height", z->h, a->pad_top, a->pad_bottom, z->r, a->dilation_h, a->stride_h, &oh));
    LKSI_TRY(
        axis(op, "width", z->w, a->pad_left, a->pad_right, z->s, a->dilation_w, a->stride_w, &ow));
    if (!fits(z->n, oh, ow))
        return lksi_fail(LKS_E_ARGUMENT, "%s: %lld x %u x %u output positions are above 2^31 - 1",
                         op, (long long)z->n, oh, ow);
    *d = (struct lks_conv_dims){
        .n = (U32)z->n,
        .h = (U32)z->h,
        .w = (U32)z->w,
        .c = (U32)z->c,
        .oh = oh,
        .ow = ow,
        .k = (U32)z->k,
        .r = (U32)z->r,
        .s = (U32)z->s,
        .stride_h = a->stride_h,
        .stride_w = a->stride_w,
        .pad_h = a->pad_top,
        .pad_w = a->pad_left,
        .dil_h = a->dilation_h,
        .dil_w = a->dilation_w,
        .groups = a->groups,
    };
    return LKS_OK;
fail:
    return st;
}

double lksi_conv_flops(const struct lksi_call *call)
{
    const struct lks_conv_dims *d = lksi_conv_dims(call);
    return 2.0 * d->n * d->oh * d->ow * d->k * d->r * d->s * (d->c / d->groups);
}

/* ---- test cases, shared ---- */

/* N,H,W,C, K,R,S, strides, pad top/bottom/left/right, dilations, groups, relu, leaf, extra.
 * Channels and positions stand around the tiles of the schedules (6 positions, 4 to 64
 * channels). */
#define CASE(n, h, w, c, k, r, s, sh, sw, pt, pb, pl, pr, dh, dw, g, relu, leaf, extra)            \
    {                                                                                              \
        {n, h, w, c, k, r, s, (c) / (g)}, {sh, sw, pt, pb, pl, pr, dh, dw, g, relu}, leaf, extra   \
    }

/* clang-format off */
static const struct lksi_conv_case cases[] = {
    CASE(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 8, false),
    CASE(2, 5, 7, 1, 32, 5, 5, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1, 8, true),
    CASE(9, 6, 5, 3, 17, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 8, true),
    CASE(3, 4, 4, 16, 15, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, false),
    CASE(2, 7, 6, 15, 16, 3, 2, 1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 2, true),
    CASE(2, 5, 5, 17, 63, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 8, true),
    CASE(1, 6, 7, 31, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 8, false),
    CASE(1, 5, 6, 64, 65, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 8, true),
    CASE(1, 7, 5, 65, 33, 2, 3, 1, 1, 1, 0, 2, 1, 1, 1, 1, 0, 8, true),
    CASE(5, 9, 8, 5, 7, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 0, 2, true),      /* stride 2 */
    CASE(2, 11, 13, 4, 19, 5, 3, 3, 2, 2, 0, 0, 3, 1, 1, 1, 1, 8, false),  /* stride 3 x 2 */
    CASE(2, 10, 11, 3, 5, 4, 4, 4, 4, 0, 0, 0, 0, 1, 1, 1, 0, 8, true),    /* drops the tail */
    CASE(2, 9, 9, 2, 8, 1, 1, 3, 3, 0, 0, 0, 0, 1, 1, 1, 0, 8, false),     /* holes in dx */
    CASE(2, 12, 11, 6, 10, 3, 3, 1, 1, 2, 2, 2, 2, 2, 2, 1, 1, 4, true),   /* dilation */
    CASE(1, 13, 14, 3, 9, 3, 2, 2, 3, 3, 1, 0, 4, 3, 2, 1, 0, 8, true),    /* both */
    CASE(2, 6, 6, 8, 12, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 4, 1, 8, true),     /* groups */
    CASE(3, 7, 7, 10, 10, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 10, 0, 8, true),   /* depthwise */
    CASE(2, 6, 7, 37, 37, 3, 3, 1, 2, 1, 1, 1, 0, 1, 1, 37, 1, 8, true),   /* the same, wider */
    CASE(2, 5, 5, 65, 65, 3, 2, 1, 1, 1, 1, 0, 1, 2, 1, 65, 0, 8, true),   /* and wider */
    CASE(2, 7, 19, 40, 40, 3, 3, 2, 2, 0, 1, 1, 0, 1, 1, 40, 1, 8, true),  /* stride 2 */
    CASE(1, 6, 23, 144, 144, 5, 3, 1, 1, 2, 2, 1, 1, 1, 1, 144, 0, 8, true), /* many channels */
    CASE(2, 1, 70, 24, 24, 1, 5, 1, 2, 0, 0, 4, 4, 1, 2, 24, 0, 8, true),  /* a sequence */
    CASE(2, 9, 11, 17, 17, 2, 9, 3, 4, 0, 0, 5, 1, 1, 1, 17, 1, 8, true),  /* tiles of taps */
    CASE(2, 5, 6, 3, 9, 5, 3, 1, 1, 2, 2, 1, 1, 1, 1, 3, 0, 8, false),     /* 3 outputs each */
    CASE(2, 8, 6, 34, 36, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1, 2, 1, 8, true),    /* wide groups */
    CASE(2, 3, 3, 4, 4, 2, 2, 1, 1, 5, 4, 6, 5, 1, 1, 1, 0, 8, true),      /* mostly padding */
    CASE(13, 3, 3, 2, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 8, false),    /* leaves of 8 and 5 */
    CASE(13, 3, 2, 3, 18, 2, 2, 1, 1, 1, 0, 1, 0, 1, 1, 1, 0, 1, false),   /* leaf 1 */
    CASE(11, 23, 22, 1, 2, 1, 3, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 8, false),  /* joins 2 */
    CASE(3, 33, 37, 2, 3, 1, 2, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 8, false),   /* cut, uneven */
    CASE(5, 40, 40, 1, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 2, true),    /* cut in two */
    CASE(2, 3, 1031, 1, 2, 1, 3, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 8, false),  /* a row a leaf */
    CASE(3, 65, 64, 3, 4, 3, 3, 1, 1, 0, 2, 1, 1, 1, 1, 1, 0, 8, false),   /* many leaves */
    CASE(3, 40, 41, 1, 130, 1, 2, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 8, false), /* wide leaves: */
    CASE(2, 50, 50, 2, 40, 3, 3, 1, 1, 1, 1, 2, 2, 1, 2, 1, 0, 8, false),  /* part of a sample */
    CASE(3, 1, 29, 7, 11, 1, 5, 1, 2, 0, 0, 2, 2, 1, 1, 1, 0, 8, true),    /* one row */
    CASE(3, 29, 1, 7, 11, 5, 1, 2, 1, 2, 2, 0, 0, 1, 1, 1, 0, 8, true),    /* one column */
    /* chains of several pieces, on either side */
    CASE(1, 5, 4, 256, 20, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 8, true),   /* 5 + 4 taps */
    CASE(1, 5, 6, 18, 260, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 0, 8, true),
    CASE(2, 3, 4, 1285, 7, 2, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 8, true),   /* taps cut, odd */
    CASE(1, 6, 3, 12, 1284, 2, 2, 2, 1, 1, 1, 0, 1, 1, 1, 1, 0, 8, false),
    CASE(1, 4, 5, 2564, 3, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 8, true),   /* three, few outputs */
    CASE(1, 7, 6, 3, 149, 5, 4, 1, 1, 2, 2, 1, 2, 1, 1, 1, 0, 8, true),    /* 8 + 8 + 4 taps, odd */
    CASE(1, 6, 5, 15, 11, 10, 9, 1, 2, 5, 4, 4, 4, 1, 1, 1, 1, 8, true),   /* few, many taps */
    CASE(1, 5, 6, 330, 66, 3, 3, 1, 1, 2, 2, 2, 2, 2, 2, 2, 0, 8, true),   /* groups, dilation */
};
static const struct lksi_conv_case long_cases[] = {
    CASE(64, 28, 28, 1, 32, 5, 5, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1, 8, true),
    CASE(16, 14, 14, 32, 64, 5, 5, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1, 8, true),
    CASE(2, 56, 56, 64, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 8, false),
    CASE(2, 28, 28, 128, 96, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 0, 8, true),
    CASE(1, 57, 55, 67, 131, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2, true),
    CASE(2, 112, 109, 3, 64, 7, 7, 2, 2, 3, 3, 3, 3, 1, 1, 1, 0, 8, true),
    CASE(4, 31, 29, 48, 48, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 48, 1, 8, true),
    CASE(2, 14, 14, 256, 128, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 8, true),
};
/* clang-format on */
#undef CASE

bool lksi_conv_case_at(int index, bool long_run, struct lksi_conv_case *c)
{
    size_t i = (size_t)index, n = LKSI_COUNT(cases);
    if (i < n)
        *c = cases[i];
    else if (long_run && i - n < LKSI_COUNT(long_cases))
        *c = long_cases[i - n];
    else
        return false;
    return true;
}

void lksi_conv_case_out(const struct lksi_conv_case *c, int64_t *oh, int64_t *ow)
{
    const struct lksi_conv2d_attr *a = &c->attr;
    *oh =
        (c->z.h + a->pad_top + a->pad_bottom - a->dilation_h * (c->z.r - 1) - 1) / a->stride_h + 1;
    *ow =
        (c->z.w + a->pad_left + a->pad_right - a->dilation_w * (c->z.s - 1) - 1) / a->stride_w + 1;
}

/* ---- conv2d ---- */

lks_status lksi_conv2d_infer(struct lksi_call *call)
{
    lks_status st;
    char text[96];
    const struct lksi_conv2d_attr *a = call->attr;
    const int64_t *x = call->in[0].dim, *w = call->in[1].dim;
    struct lks_conv_dims d;
    LKSI_TRY(lksi_conv_check_rank(call, 0, 4, "[N,H,W,C]"));
    LKSI_TRY(lksi_conv_check_rank(call, 1, 4, "[K,R,S,C/groups]"));
    LKSI_TRY(
        lksi_conv_fill(&d, call->op->name, a,
                       &(struct lksi_conv_sizes){x[0], x[1], x[2], x[3], w[0], w[1], w[2], w[3]}));
    if (call->n_in > 2) {
        LKSI_TRY(lksi_conv_check_rank(call, 2, 1, "[K]"));
        if (call->in[2].dim[0] != w[0])
            return lksi_fail(LKS_E_ARGUMENT, "%s: bias is %s, expected [%lld]", call->op->name,
                             lksi_desc_text(&call->in[2], text), (long long)w[0]);
    }
    d.extra = call->n_in > 2;
    d.relu = a->relu != 0;
    memcpy(call->dims.bytes, &d, sizeof d);
    call->dims_size = sizeof d;
    call->n_out = 1;
    call->out[0] = lksi_desc_make(LKSI_F32, 4, x[0], (int64_t)d.oh, (int64_t)d.ow, w[0]);
    return LKS_OK;
fail:
    return st;
}
_Static_assert(sizeof(struct lks_conv_dims) <= LKSI_DIMS_MAX, "dims must fit");

struct lksi_conv_names lksi_conv_names(const struct lksi_op *op)
{
    if (strncmp(op->name, "winograd", 8) == 0)
        return (struct lksi_conv_names){"winograd", "winograd_data_grad", "winograd_weight_grad"};
    return (struct lksi_conv_names){"conv2d", "conv2d_data_grad", "conv2d_weight_grad"};
}

lks_status lksi_conv2d_grad(const struct lksi_backward *g)
{
    const struct lksi_conv_names to = lksi_conv_names(g->call->op);
    const struct lksi_conv2d_attr *a = g->call->attr;
    const struct lks_conv_dims *d = lksi_conv_dims(g->call);
    struct lksi_conv2d_data_grad_attr data = {*a, d->h, d->w};
    struct lksi_conv2d_weight_grad_attr weight = {*a, d->r, d->s};
    lksi_value dy = g->dout[0];
    lks_status st = LKS_OK;
    if (a->relu != 0)
        st = lksi_apply(g->b, "relu_grad", NULL, &dy, g->out[0], dy);
    if (st == LKS_OK)
        st = lksi_flow(g, 0, to.data_grad, &data, dy, g->in[1]);
    if (st == LKS_OK)
        st = lksi_flow(g, 1, to.weight_grad, &weight, g->in[0], dy);
    if (st == LKS_OK && g->call->n_in > 2)
        st = lksi_flow(g, 2, "bias_grad", NULL, dy);
    return st;
}

/* A relu behind becomes step 4 of the contract. */
bool lksi_conv2d_absorb(void *attr, lksi_value *in, int *n_in, const struct lksi_op *next,
                        const void *next_attr, const lksi_value *next_in, int slot)
{
    struct lksi_conv2d_attr *a = attr;
    (void)in, (void)n_in, (void)next_attr, (void)next_in;
    if (strcmp(next->name, "relu") != 0 || slot != 0)
        return false;
    a->relu = 1;
    return true;
}

void lksi_conv_case_call(const struct lksi_conv_case *c, struct lksi_call *call, void *attr)
{
    memcpy(attr, &c->attr, sizeof c->attr);
    call->leaf = c->leaf;
    call->n_in = c->extra ? 3 : 2;
    call->in[0] = lksi_desc_make(LKSI_F32, 4, c->z.n, c->z.h, c->z.w, c->z.c);
    call->in[1] = lksi_desc_make(LKSI_F32, 4, c->z.k, c->z.r, c->z.s, c->z.cg);
    call->in[2] = lksi_desc_make(LKSI_F32, 1, c->z.k);
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_conv_case c;
    if (!lksi_conv_case_at(index, long_run, &c))
        return false;
    lksi_conv_case_call(&c, call, attr);
    return true;
}

LKSI_ITEM(conv2d, in[0], in[1], in[2], out[0])

LKSI_CONV_OP(conv2d, conv2d, "contract/conv2d.h", lksi_conv2d_infer,
             lksi_conv2d_schedules, test_case, .max_in = 3, .absorb = lksi_conv2d_absorb);

const struct lksi_op *const lksi_ops_conv2d[] = {&conv2d, NULL};
