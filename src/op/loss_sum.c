/*
 * loss_sum.c - loss_sum (a loss of several terms), its gradient, and loss_ratio (a weighted mean).
 */
#include <string.h>

#include "contract/loss_sum.h"
#include "op/attr.h"
#include "op/shape.h"

LKSI_ITEM(loss_sum, in[0], in[1], in[2], in[3], in[4], in[5], out[0])
LKSI_ITEM(loss_sum_grad, in[0], out[0])
LKSI_ITEM(loss_ratio, in[0], in[1], out[0])
LKSI_ITEM(loss_ratio_grad, in[0], in[1], in[2], out[0])

static lks_status infer(struct lksi_call *call)
{
    const struct lksi_loss_sum_attr *a = call->attr;
    struct loss_sum_dims d = {.n = (U32)call->n_in};
    lks_status st = LKS_OK;
    for (int i = 0; i < call->n_in && st == LKS_OK; i++)
        st = lksi_want_desc(call, i, "a term", lksi_desc_make(LKSI_F32, 1, (int64_t)1));
    if (st != LKS_OK)
        return st;
    if (a != NULL && call->op->attr_size > 0)
        memcpy(d.w, a->weight, sizeof d.w);
    call->out[0] = call->in[0];
    memcpy(call->dims.bytes, &d, sizeof d);
    call->dims_size = sizeof d;
    return LKS_OK;
}

static lks_status grad(const struct lksi_backward *g)
{
    const struct lksi_loss_sum_attr *a = g->call->attr;
    lks_status st = LKS_OK;
    for (int k = 0; k < g->call->n_in && st == LKS_OK; k++) {
        struct lksi_loss_sum_attr one = {{a->weight[k]}};
        st = lksi_flow(g, k, "loss_sum_grad", &one, g->dout[0]);
    }
    return st;
}

static lks_status grad_ratio(const struct lksi_backward *g)
{
    lks_status st = lksi_flow(g, 0, "loss_ratio", NULL, g->dout[0], g->in[1]);
    if (st == LKS_OK)
        st = lksi_flow(g, 1, "loss_ratio_grad", NULL, g->dout[0], g->out[0], g->in[1]);
    return st;
}

/* Calls with `low` to `high` numbers. */
static bool numbers(int index, int low, int high, struct lksi_call *call)
{
    call->n_in = low + index;
    for (int i = 0; i < call->n_in && call->n_in <= high; i++)
        call->in[i] = lksi_desc_make(LKSI_F32, 1, (int64_t)1);
    return call->n_in <= high;
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_loss_sum_attr *a = attr;
    (void)long_run;
    for (int i = 0; i < (int)LKSI_COUNT(a->weight); i++)
        a->weight[i] = 0.3f - (float)i * 0.7f;
    return numbers(index, 1, (int)LKSI_COUNT(a->weight), call);
}

static bool test_case_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_loss_sum_attr *a = attr;
    (void)long_run;
    a->weight[0] = -0.7f;
    return numbers(index, 1, 1, call);
}

static bool test_case_ratio(int index, bool long_run, struct lksi_call *call, void *attr)
{
    (void)long_run;
    (void)attr;
    return numbers(index, 2, 2, call);
}

static bool test_case_ratio_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    (void)long_run;
    (void)attr;
    return numbers(index, 3, 3, call);
}

/* loss_ratio: the denominator is a mean of weights. */
static uint32_t test_input_ratio(const struct lksi_call *call, int index, uint32_t bits)
{
    return index == call->n_in - 1 ? lks_bits(lks_abs(lks_float(bits)) + 0.5f) : bits;
}

static const struct lksi_op loss_sum = {
    .name = "loss_sum",
    .contract = "contract/loss_sum.h",
    .dims = "loss_sum_dims",
    .min_in = 1,
    .max_in = 6,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_loss_sum_attr),
    .infer = infer,
    .item = loss_sum_item_c,
    .grad = grad,
    .test_case = test_case,
};

static const struct lksi_op loss_sum_grad = {
    .name = "loss_sum_grad",
    .contract = "contract/loss_sum.h",
    .dims = "loss_sum_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_loss_sum_attr),
    .infer = infer,
    .item = loss_sum_grad_item_c,
    .test_case = test_case_grad,
};

static const struct lksi_op loss_ratio = {
    .name = "loss_ratio",
    .contract = "contract/loss_sum.h",
    .dims = "loss_sum_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .infer = infer,
    .item = loss_ratio_item_c,
    .grad = grad_ratio,
    .test_case = test_case_ratio,
    .test_input = test_input_ratio,
};

static const struct lksi_op loss_ratio_grad = {
    .name = "loss_ratio_grad",
    .contract = "contract/loss_sum.h",
    .dims = "loss_sum_dims",
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .infer = infer,
    .item = loss_ratio_grad_item_c,
    .test_case = test_case_ratio_grad,
    .test_input = test_input_ratio,
};

const struct lksi_op *const lksi_ops_loss_sum[] = {&loss_sum, &loss_sum_grad, &loss_ratio,
                                                    &loss_ratio_grad, NULL};
