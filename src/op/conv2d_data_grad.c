/*
 * conv2d_data_grad.c - the gradient of a convolution for its input. Contract:
 * cl/contract/conv2d_data_grad.h; shape rules: conv2d.c; C loop: conv2d_data_grad_ref.c.
 */
#include <string.h>

#include "op/conv_cpu.h"
#include "contract/conv2d_data_grad.h"

lks_status lksi_conv2d_data_grad_infer(struct lksi_call *call)
{
    lks_status st;
    char text[96];
    const struct lksi_conv2d_data_grad_attr *a = call->attr;
    const int64_t *dy = call->in[0].dim, *w = call->in[1].dim;
    struct lks_conv_dims d;
    LKSI_TRY(lksi_conv_check_rank(call, 0, 4, "[N,OH,OW,K]"));
    LKSI_TRY(lksi_conv_check_rank(call, 1, 4, "[K,R,S,C/groups]"));
    if (a->height == 0 || a->width == 0)
        return lksi_fail(LKS_E_ARGUMENT, "%s: height %u x width %u of x must be at least 1",
                         call->op->name, a->height, a->width);
    struct lksi_conv_sizes z = {dy[0], a->height, a->width, w[3] * a->conv.groups,
                                w[0],  w[1],      w[2],     w[3]};
    LKSI_TRY(lksi_conv_fill(&d, call->op->name, &a->conv, &z));
    if (dy[1] != d.oh || dy[2] != d.ow || dy[3] != w[0])
        return lksi_fail(LKS_E_ARGUMENT, "%s: dy is %s, expected [%lld,%u,%u,%lld]", call->op->name,
                         lksi_desc_text(&call->in[0], text), (long long)dy[0], d.oh, d.ow,
                         (long long)w[0]);
    struct lksi_desc dx = lksi_desc_make(LKSI_F32, 4, dy[0], z.h, z.w, z.c);
    struct lksi_desc bias = lksi_desc_make(LKSI_F32, 1, z.c);
    bool biased = call->n_in > 2 && lksi_desc_equal(&call->in[2], &bias);
    if (call->n_in > 2 && !biased && !lksi_desc_equal(&call->in[2], &dx)) {
        char want[96];
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: mask is %s, expected f32 %s (or a bias of its channels)",
                         call->op->name, lksi_desc_text(&call->in[2], text),
                         lksi_desc_text(&dx, want));
    }
    d.extra = biased ? 2 : call->n_in > 2;
    memcpy(call->dims.bytes, &d, sizeof d);
    call->dims_size = sizeof d;
    call->n_out = 1;
    call->out[0] = dx;
    return LKS_OK;
fail:
    return st;
}

/* dy, w and maybe a mask or a bias: what flows back to dy is a convolution without a bias. */
lks_status lksi_conv2d_data_grad_grad(const struct lksi_backward *g)
{
    const struct lksi_conv_names to = lksi_conv_names(g->call->op);
    const struct lks_conv_dims *d = lksi_conv_dims(g->call);
    struct lksi_conv2d_weight_grad_attr a = {
        ((const struct lksi_conv2d_data_grad_attr *)g->call->attr)->conv, d->r, d->s};
    lksi_value dy = g->dout[0];
    lks_status st = LKS_OK;
    a.conv.relu = 0;
    if (d->extra == 1)
        st = lksi_apply(g->b, "relu_grad", NULL, &dy, g->in[2], dy);
    if (st == LKS_OK && d->extra == 2)
        st = lksi_flow(g, 2, "bias_grad", NULL, dy);
    if (st == LKS_OK)
        st = lksi_flow(g, 0, to.forward, &a.conv, dy, g->in[1]);
    return st == LKS_OK ? lksi_flow(g, 1, to.weight_grad, &a, dy, g->in[0]) : st;
}

/* A relu_grad behind (its inputs: the relu output, the gradient) becomes step 4 of the contract. */
bool lksi_conv2d_data_grad_absorb(void *attr, lksi_value *in, int *n_in,
                                  const struct lksi_op *next, const void *next_attr,
                                  const lksi_value *next_in, int slot)
{
    (void)attr, (void)next_attr;
    if (strcmp(next->name, "relu_grad") != 0 || slot != 1 || *n_in != 2)
        return false;
    in[2] = next_in[0];
    *n_in = 3;
    return true;
}

void lksi_conv_case_data_grad(const struct lksi_conv_case *c, int index, struct lksi_call *call,
                              void *attr)
{
    int64_t oh, ow;
    struct lksi_conv2d_data_grad_attr a = {c->attr, (uint32_t)c->z.h, (uint32_t)c->z.w};
    bool bias = index % 3 == 1;
    lksi_conv_case_out(c, &oh, &ow);
    memcpy(attr, &a, sizeof a);
    call->leaf = c->leaf;
    call->n_in = c->extra || bias ? 3 : 2;
    call->in[0] = lksi_desc_make(LKSI_F32, 4, c->z.n, oh, ow, c->z.k);
    call->in[1] = lksi_desc_make(LKSI_F32, 4, c->z.k, c->z.r, c->z.s, c->z.cg);
    call->in[2] = bias ? lksi_desc_make(LKSI_F32, 1, c->z.c)
                       : lksi_desc_make(LKSI_F32, 4, c->z.n, c->z.h, c->z.w, c->z.c);
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_conv_case c;
    if (!lksi_conv_case_at(index, long_run, &c))
        return false;
    lksi_conv_case_data_grad(&c, index, call, attr);
    return true;
}

LKSI_ITEM(conv2d_data_grad, in[0], in[1], in[2], out[0])

LKSI_CONV_OP(conv2d_data_grad, conv2d_data_grad, "contract/conv2d_data_grad.h",
             lksi_conv2d_data_grad_infer, lksi_conv2d_data_grad_schedules, test_case, .max_in = 3,
             .absorb = lksi_conv2d_data_grad_absorb);

const struct lksi_op *const lksi_ops_conv2d_data_grad[] = {&conv2d_data_grad, NULL};
