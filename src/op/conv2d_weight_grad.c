/*
 * conv2d_weight_grad.c - the gradient of a convolution for its weights. Contract:
 * cl/contract/conv2d_weight_grad.h; shape rules: conv2d.c; C loop: conv2d_weight_grad_ref.c.
 */
#include <string.h>

#include "op/conv_cpu.h"
#include "contract/conv2d_weight_grad.h"

lks_status lksi_conv2d_weight_grad_infer(struct lksi_call *call)
{
    lks_status st;
    char text[96];
    const struct lksi_conv2d_weight_grad_attr *a = call->attr;
    const int64_t *x = call->in[0].dim, *dy = call->in[1].dim;
    struct lks_conv_dims d;
    LKSI_TRY(lksi_conv_check_rank(call, 0, 4, "[N,H,W,C]"));
    LKSI_TRY(lksi_conv_check_rank(call, 1, 4, "[N,OH,OW,K]"));
    if (a->r == 0 || a->s == 0)
        return lksi_fail(LKS_E_ARGUMENT, "%s: kernel of %u x %u must be at least 1", call->op->name,
                         a->r, a->s);
    struct lksi_conv_sizes z = {x[0], x[1], x[2], x[3], dy[3], a->r, a->s, 0};
    z.cg = a->conv.groups != 0 ? z.c / a->conv.groups : 0;
    LKSI_TRY(lksi_conv_fill(&d, call->op->name, &a->conv, &z));
    if (dy[0] != x[0] || dy[1] != d.oh || dy[2] != d.ow)
        return lksi_fail(LKS_E_ARGUMENT, "%s: dy is %s, expected [%lld,%u,%u,K]", call->op->name,
                         lksi_desc_text(&call->in[1], text), (long long)x[0], d.oh, d.ow);
    if (call->leaf == 0 || (call->leaf & (call->leaf - 1)) != 0)
        return lksi_fail(LKS_E_ARGUMENT, "%s: leaf %u must be a power of two", call->op->name,
                         call->leaf);
    d.leaf = lks_leaf_make(d.n, d.oh, d.ow, call->leaf);
    memcpy(call->dims.bytes, &d, sizeof d);
    call->dims_size = sizeof d;
    call->n_out = 1;
    call->out[0] = lksi_desc_make(LKSI_F32, 4, z.k, z.r, z.s, z.cg);
    return LKS_OK;
fail:
    return st;
}

/* x and dy; the gradient of dw takes the place of the weight. */
lks_status lksi_conv2d_weight_grad_grad(const struct lksi_backward *g)
{
    const struct lksi_conv_names to = lksi_conv_names(g->call->op);
    const struct lks_conv_dims *d = lksi_conv_dims(g->call);
    struct lksi_conv2d_data_grad_attr a = {
        ((const struct lksi_conv2d_weight_grad_attr *)g->call->attr)->conv, d->h, d->w};
    lks_status st;
    a.conv.relu = 0;
    st = lksi_flow(g, 0, to.data_grad, &a, g->in[1], g->dout[0]);
    return st == LKS_OK ? lksi_flow(g, 1, to.forward, &a.conv, g->in[0], g->dout[0]) : st;
}

void lksi_conv_case_weight_grad(const struct lksi_conv_case *c, struct lksi_call *call, void *attr)
{
    int64_t oh, ow;
    struct lksi_conv2d_weight_grad_attr a = {c->attr, (uint32_t)c->z.r, (uint32_t)c->z.s};
    lksi_conv_case_out(c, &oh, &ow);
    memcpy(attr, &a, sizeof a);
    call->leaf = c->leaf;
    call->n_in = 2;
    call->in[0] = lksi_desc_make(LKSI_F32, 4, c->z.n, c->z.h, c->z.w, c->z.c);
    call->in[1] = lksi_desc_make(LKSI_F32, 4, c->z.n, oh, ow, c->z.k);
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_conv_case c;
    if (!lksi_conv_case_at(index, long_run, &c))
        return false;
    lksi_conv_case_weight_grad(&c, call, attr);
    return true;
}

LKSI_ITEM(conv2d_weight_grad, in[0], in[1], out[0])

LKSI_CONV_OP(conv2d_weight_grad, conv2d_weight_grad, "contract/conv2d_weight_grad.h",
             lksi_conv2d_weight_grad_infer, lksi_conv2d_weight_grad_schedules, test_case, .max_in = 2, .sums_samples = 3);

const struct lksi_op *const lksi_ops_conv2d_weight_grad[] = {&conv2d_weight_grad, NULL};
