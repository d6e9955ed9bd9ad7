/*
 * sgd.c - stochastic gradient descent with momentum and weight decay, in place.
 */
#include <string.h>

#include "contract/sgd.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(sgd, in[0], in[1], in[2], in[3], in[4], out[0], out[1])

static lks_status infer(struct lksi_call *call)
{
    lks_status st = lksi_want(call, 0, "the parameters", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "the gradient", call->in[0]);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 2, "the momentum", call->in[0]);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 3, "hyper", lksi_desc_make(LKSI_F32, 1, (int64_t)8));
    if (st == LKS_OK)
        st = lksi_want_desc(call, 4, "the flag", lksi_desc_make(LKSI_I32, 1, (int64_t)1));
    if (st != LKS_OK)
        return st;
    call->out[0] = call->in[0];
    call->out[1] = call->in[0];
    LKSI_SET_DIMS(call, sgd_dims, {(U64)lksi_desc_count(&call->in[0])});
    return LKS_OK;
}

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    lksi_flat_recipe(call, dev, "op/sgd.cl", "sgd", r);
}

static const struct lksi_schedule schedules[] = {{"flat", lksi_flat_declines, recipe},
                                                 {NULL, NULL, NULL}};

/* ---- the C loop ---- */

#define PART 4096

static U64 ref_parts(const struct lksi_call *call)
{
    return ((U64)lksi_desc_count(&call->in[0]) + PART - 1) / PART;
}

/* In place, so the inputs that are outputs are read through the outputs. */
LKSI_CLONES static void ref(const struct lksi_call *call, const void *const *in, void *const *out,
                            U64 p0, U64 p1)
{
    U64 n = (U64)lksi_desc_count(&call->in[0]), end = p1 * PART < n ? p1 * PART : n;
    const F32 *restrict grad = in[1];
    const F32 *hyper = in[3];
    const I32 *flag = in[4];
    F32 *restrict param = out[0];
    F32 *restrict momentum = out[1];
    F32 lr = -hyper[0], mu = hyper[1], wd = hyper[2];
    if (in[0] != out[0])
        memcpy(param + p0 * PART, (const F32 *)in[0] + p0 * PART, (end - p0 * PART) * sizeof(F32));
    if (in[2] != out[1])
        memcpy(momentum + p0 * PART, (const F32 *)in[2] + p0 * PART,
               (end - p0 * PART) * sizeof(F32));
    if (flag[0] != 0)
        return;
    for (U64 i = p0 * PART; i < end; i++) {
        F32 g = lks_fma(wd, param[i], grad[i]);
        F32 m = lks_fma(mu, momentum[i], g);
        param[i] = lks_fma(lr, m, param[i]);
        momentum[i] = m;
    }
}

static double flops(const struct lksi_call *call)
{
    return 6.0 * (double)lksi_desc_count(&call->in[0]);
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    (void)attr;
    if (!lksi_flat_case(index, long_run, &call->in[0]))
        return false;
    call->n_in = 5;
    call->in[1] = call->in[2] = call->in[0];
    call->in[3] = lksi_desc_make(LKSI_F32, 1, (int64_t)8);
    call->in[4] = lksi_desc_make(LKSI_I32, 1, (int64_t)1);
    return true;
}

/* The flag is raised in every other draw. */
static uint32_t test_input(const struct lksi_call *call, int index, uint32_t bits)
{
    (void)call;
    return index == 4 ? bits & 1u : bits;
}

static const struct lksi_op sgd = {
    .name = "sgd",
    .contract = "contract/sgd.h",
    .dims = "sgd_dims",
    .min_in = 5,
    .max_in = 5,
    .n_out = 2,
    .alias = {1, 3},
    .infer = infer,
    .item = sgd_item_c,
    .ref_parts = ref_parts,
    .ref = ref,
    .schedules = schedules,
    .flops = flops,
    .test_case = test_case,
    .test_input = test_input,
};

const struct lksi_op *const lksi_ops_sgd[] = {&sgd, NULL};
