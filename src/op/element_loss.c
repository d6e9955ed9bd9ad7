/*
 * element_loss.c - element_loss and element_loss_grad: mean squared error, L1, Huber, smooth L1 and
 * binary cross entropy, for each element.
 */
#include <string.h>

#include "contract/element_loss.h"
#include "op/attr.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(element_loss, in[0], in[1], out[0])
LKSI_ITEM(element_loss_grad, in[0], in[1], in[2], out[0])

/* Input 0 is x; `target` is the number of the input that holds the target, if any. */
static lks_status infer_from(struct lksi_call *call, int target)
{
    const struct lksi_element_loss_attr *a = call->attr;
    lks_status st = lksi_want(call, 0, "x", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st != LKS_OK)
        return st;
    if (call->n_in != target + (a->constant ? 0 : 1))
        return lksi_fail(LKS_E_ARGUMENT, "%s: %d inputs given, %d expected", call->op->name,
                         call->n_in, target + (a->constant ? 0 : 1));
    if (!a->constant)
        st = lksi_want_desc(call, target, "the target", call->in[0]);
    if (st != LKS_OK)
        return st;
    if (a->kind < 0 || a->kind > (int)LKS_LOSS_BCE)
        return lksi_fail(LKS_E_ARGUMENT, "%s: there is no loss %d", call->op->name, a->kind);
    if ((a->kind == (int)LKS_LOSS_HUBER || a->kind == (int)LKS_LOSS_SMOOTH_L1) &&
        !(a->beta > 0 && a->beta < lks_inf()))
        return lksi_fail(LKS_E_ARGUMENT, "%s: beta is %g, expected a positive number",
                         call->op->name, (double)a->beta);
    call->out[0] = call->in[0];
    LKSI_SET_DIMS(call, element_loss_dims,
                  {.n = (U64)lksi_desc_count(&call->in[0]),
                   .kind = (U32)a->kind,
                   .fixed = a->constant != 0,
                   .of_target = a->of_target != 0,
                   .target = a->target,
                   .beta = a->beta});
    return LKS_OK;
}

static lks_status infer(struct lksi_call *call)
{
    return infer_from(call, 1);
}

static lks_status infer_grad(struct lksi_call *call)
{
    lks_status st = infer_from(call, 2);
    return st == LKS_OK ? lksi_want_desc(call, 1, "dy", call->in[0]) : st;
}

static lks_status grad(const struct lksi_backward *g)
{
    struct lksi_element_loss_attr a;
    bool two = g->call->n_in > 1;
    lks_status st = LKS_OK;
    memcpy(&a, g->call->attr, sizeof a);
    for (int k = 0; k < g->call->n_in && st == LKS_OK; k++) {
        a.of_target = k;
        st = two ? lksi_flow(g, k, "element_loss_grad", &a, g->in[0], g->dout[0], g->in[1])
                 : lksi_flow(g, k, "element_loss_grad", &a, g->in[0], g->dout[0]);
    }
    return st;
}

static double flops(const struct lksi_call *call)
{
    const struct lksi_element_loss_attr *a = call->attr;
    return (double)lksi_desc_count(&call->in[0]) * (a->kind == (int)LKS_LOSS_BCE ? 40.0 : 4.0);
}

/* Every kind, with a constant target and with an input, over some lengths. */
static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const int64_t lengths[] = {1, 37, 1000, 100003};
    struct lksi_element_loss_attr *a = attr;
    int kinds = (int)LKS_LOSS_BCE + 1;
    a->kind = index % kinds;
    a->constant = index / kinds % 2;
    a->target = index % 3 == 0 ? 1.0f : 0.25f;
    a->beta = index % 2 == 0 ? 1.0f : 0.375f;
    call->n_in = a->constant ? 1 : 2;
    if (index >= 2 * kinds * (int)LKSI_COUNT(lengths) - (long_run ? 0 : 2 * kinds))
        return false;
    call->in[0] = lksi_desc_make(LKSI_F32, 1, lengths[index / (2 * kinds)]);
    call->in[1] = call->in[0];
    return true;
}

static bool test_case_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_element_loss_attr *a = attr;
    if (!test_case(index / 2, long_run, call, attr))
        return false;
    a->of_target = index % 2;
    call->n_in++;
    call->in[2] = call->in[1] = call->in[0];
    return true;
}

static const struct lksi_op element_loss = {
    .name = "element_loss",
    .contract = "contract/element_loss.h",
    .dims = "element_loss_dims",
    .min_in = 1,
    .max_in = 2,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_element_loss_attr),
    .infer = infer,
    .item = element_loss_item_c,
    .grad = grad,
    .flops = flops,
    .test_case = test_case,
};

static const struct lksi_op element_loss_grad = {
    .name = "element_loss_grad",
    .contract = "contract/element_loss.h",
    .dims = "element_loss_dims",
    .min_in = 2,
    .max_in = 3,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_element_loss_attr),
    .infer = infer_grad,
    .item = element_loss_grad_item_c,
    .flops = flops,
    .test_case = test_case_grad,
};

const struct lksi_op *const lksi_ops_element_loss[] = {&element_loss, &element_loss_grad, NULL};
