/*
 * grad_clip.c - grad_clip, gradients limited by their global norm and one by one, in place.
 */
#include "contract/grad_clip.h"
#include "op/attr.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(grad_clip, in[0], in[1], out[0])

static lks_status infer(struct lksi_call *call)
{
    const struct lksi_grad_clip_attr *a = call->attr;
    lks_status st = lksi_want(call, 0, "the gradient", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "the norm", lksi_desc_make(LKSI_F32, 1, (int64_t)1));
    if (st == LKS_OK && (!(a->limit >= 0.0f) || !(a->value >= 0.0f)))
        st = lksi_fail(LKS_E_ARGUMENT, "grad_clip: limit is %g, value %g; 0 or more wanted",
                       (double)a->limit, (double)a->value);
    if (st != LKS_OK)
        return st;
    call->out[0] = call->in[0];
    LKSI_SET_DIMS(call, grad_clip_dims,
                  {(U64)lksi_desc_count(&call->in[0]), a->limit, a->value});
    return LKS_OK;
}

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    const struct lksi_grad_clip_attr *a = call->attr;
    struct lksi_launch *l = &r->launch[0];
    lksi_flat_recipe(call, dev, "op/grad_clip.cl", "grad_clip", r);
    l->arg[l->n_arg++] = LKSI_F32V(a->limit);
    l->arg[l->n_arg++] = LKSI_F32V(a->value);
}

static const struct lksi_schedule schedules[] = {{"flat", lksi_flat_declines, recipe},
                                                 {NULL, NULL, NULL}};

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_grad_clip_attr *a = attr;
    if (!lksi_flat_case(index, long_run, &call->in[0]))
        return false;
    a->limit = index % 3 == 0 ? 0.0f : 0.25f;
    a->value = index % 3 == 1 ? 0.0f : 0.125f;
    call->n_in = 2;
    call->in[1] = lksi_desc_make(LKSI_F32, 1, (int64_t)1);
    return true;
}

static uint32_t test_input(const struct lksi_call *call, int index, uint32_t bits)
{
    (void)call;
    return index == 1 ? bits & 0x7fffffffu : bits;
}

static const struct lksi_op grad_clip = {
    .name = "grad_clip",
    .contract = "contract/grad_clip.h",
    .dims = "grad_clip_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .alias = {1},
    .attr_size = sizeof(struct lksi_grad_clip_attr),
    .infer = infer,
    .item = grad_clip_item_c,
    .schedules = schedules,
    .test_case = test_case,
    .test_input = test_input,
};

const struct lksi_op *const lksi_ops_grad_clip[] = {&grad_clip, NULL};
