/*
 * ema.c - ema, an exponential moving average of the parameters, in place.
 */
#include "contract/ema.h"
#include "op/attr.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(ema, in[0], in[1], in[2], out[0])

static lks_status infer(struct lksi_call *call)
{
    const struct lksi_ema_attr *a = call->attr;
    lks_status st = lksi_want(call, 0, "the average", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "the parameters", call->in[0]);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 2, "the flag", lksi_desc_make(LKSI_I32, 1, (int64_t)1));
    if (st == LKS_OK && !(a->w >= 0.0f && a->w <= 1.0f))
        st = lksi_fail(LKS_E_ARGUMENT, "ema: the weight is %g, expected 0 to 1", (double)a->w);
    if (st != LKS_OK)
        return st;
    call->out[0] = call->in[0];
    LKSI_SET_DIMS(call, ema_dims, {(U64)lksi_desc_count(&call->in[0]), a->w});
    return LKS_OK;
}

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    const struct lksi_ema_attr *a = call->attr;
    struct lksi_launch *l = &r->launch[0];
    lksi_flat_recipe(call, dev, "op/ema.cl", "ema", r);
    l->arg[l->n_arg++] = LKSI_F32V(a->w);
}

static const struct lksi_schedule schedules[] = {{"flat", lksi_flat_declines, recipe},
                                                 {NULL, NULL, NULL}};

static double flops(const struct lksi_call *call)
{
    return 3.0 * (double)lksi_desc_count(&call->in[0]);
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_ema_attr *a = attr;
    if (!lksi_flat_case(index, long_run, &call->in[0]))
        return false;
    a->w = index % 2 == 0 ? 0.001f : 0.5f;
    call->n_in = 3;
    call->in[1] = call->in[0];
    call->in[2] = lksi_desc_make(LKSI_I32, 1, (int64_t)1);
    return true;
}

/* The flag is raised in a quarter of the draws. */
static uint32_t test_input(const struct lksi_call *call, int index, uint32_t bits)
{
    (void)call;
    return index == 2 ? bits % 4u == 3u : bits;
}

static const struct lksi_op ema = {
    .name = "ema",
    .contract = "contract/ema.h",
    .dims = "ema_dims",
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .alias = {1},
    .attr_size = sizeof(struct lksi_ema_attr),
    .infer = infer,
    .item = ema_item_c,
    .schedules = schedules,
    .flops = flops,
    .test_case = test_case,
    .test_input = test_input,
};

const struct lksi_op *const lksi_ops_ema[] = {&ema, NULL};
