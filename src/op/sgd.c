/*
 * sgd.c - stochastic gradient descent with momentum and weight decay, in place.
 */
#include <string.h>

#include "contract/sgd.h"
#include "op/flat.h"
#include "op/shape.h"
#include "op/update.h"

LKSI_ITEM(sgd, in[0], in[1], in[2], in[3], in[4], in[5], out[0], out[1])
LKSI_ITEM(sgd_nesterov, in[0], in[1], in[2], in[3], in[4], in[5], out[0], out[1])

static lks_status infer(struct lksi_call *call)
{
    return lksi_update_infer(call, 1);
}

static void recipe_of(const struct lksi_call *call, const struct lksi_limits *dev, int nesterov,
                      struct lksi_recipe *r)
{
    lksi_flat_recipe(call, dev, "op/sgd.cl", "sgd", r);
    strcat(r->launch[0].defines, nesterov ? " NESTEROV=1" : " NESTEROV=0");
}

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    recipe_of(call, dev, 0, r);
}

static void recipe_nesterov(const struct lksi_call *call, const struct lksi_limits *dev,
                            struct lksi_recipe *r)
{
    recipe_of(call, dev, 1, r);
}

static const struct lksi_schedule schedules[] = {{"flat", lksi_flat_declines, recipe},
                                                 {NULL, NULL, NULL}};
static const struct lksi_schedule schedules_nesterov[] = {
    {"flat", lksi_flat_declines, recipe_nesterov}, {NULL, NULL, NULL}};

/* ---- the C loop: a part is some blocks ---- */

#define PART (4 * LKS_UPDATE_BLOCK)

static U64 ref_parts(const struct lksi_call *call)
{
    return ((U64)lksi_desc_count(&call->in[0]) + PART - 1) / PART;
}

/* In place, so the inputs that are outputs are read through the outputs. */
LKSI_CLONES static void block(const F32 *restrict grad, F32 *restrict param,
                              F32 *restrict momentum, U64 n, const F32 *h, int nesterov)
{
    F32 lr = -h[0], mu = h[1], wd = h[2];
    for (U64 i = 0; i < n; i++) {
        F32 g = lks_fma(wd, param[i], grad[i]);
        F32 m = lks_fma(mu, momentum[i], g);
        g = nesterov ? lks_fma(mu, m, g) : m;
        param[i] = lks_fma(lr, g, param[i]);
        momentum[i] = m;
    }
}

static void ref_of(const struct lksi_call *call, const void *const *in, void *const *out, U64 p0,
                   U64 p1, int nesterov)
{
    U64 n = (U64)lksi_desc_count(&call->in[0]), end = p1 * PART < n ? p1 * PART : n;
    F32 *param = out[0], *momentum = out[1];
    for (U64 i = p0 * PART; i < end; i += LKS_UPDATE_BLOCK) {
        U64 size = end - i < LKS_UPDATE_BLOCK ? end - i : LKS_UPDATE_BLOCK;
        F32 h[LKS_UPDATE_HYPER];
        if (in[0] != out[0])
            memcpy(param + i, (const F32 *)in[0] + i, size * sizeof(F32));
        if (in[2] != out[1])
            memcpy(momentum + i, (const F32 *)in[2] + i, size * sizeof(F32));
        if (lks_update_row(in[3], in[4], in[5], i, h))
            block((const F32 *)in[1] + i, param + i, momentum + i, size, h, nesterov);
    }
}

static void ref(const struct lksi_call *call, const void *const *in, void *const *out, U64 p0,
                U64 p1)
{
    ref_of(call, in, out, p0, p1, 0);
}

static void ref_nesterov(const struct lksi_call *call, const void *const *in, void *const *out,
                         U64 p0, U64 p1)
{
    ref_of(call, in, out, p0, p1, 1);
}

static double flops(const struct lksi_call *call)
{
    return 6.0 * (double)lksi_desc_count(&call->in[0]);
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    (void)attr;
    return lksi_update_case(index, long_run, call, 1);
}

/* The momentum has a sign, unlike a mean square. */
static uint32_t test_input(const struct lksi_call *call, int index, uint32_t bits)
{
    return index == 2 ? bits : lksi_update_input(call, index, bits, 1);
}

static const struct lksi_op sgd = {
    .name = "sgd",
    .contract = "contract/sgd.h",
    .dims = "update_dims",
    .min_in = 6,
    .max_in = 6,
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

static const struct lksi_op sgd_nesterov = {
    .name = "sgd_nesterov",
    .contract = "contract/sgd.h",
    .dims = "update_dims",
    .min_in = 6,
    .max_in = 6,
    .n_out = 2,
    .alias = {1, 3},
    .infer = infer,
    .item = sgd_nesterov_item_c,
    .ref_parts = ref_parts,
    .ref = ref_nesterov,
    .schedules = schedules_nesterov,
    .flops = flops,
    .test_case = test_case,
    .test_input = test_input,
};

const struct lksi_op *const lksi_ops_sgd[] = {&sgd, &sgd_nesterov, NULL};
