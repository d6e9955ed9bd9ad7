/*
 * test_conv.c - the convolution operators: refused shapes, the operators their gradient asks for,
 * what they absorb, and the C loops against the contract's items. Schedules are the harness's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "check/regime.h"
#include "op/conv2d.h"
#include "recorder.h"

/* ---- refused shapes ---- */

struct refused {
    const char *text; /* a part of the error */
    int64_t x[4], w[4], bias;
    struct lksi_conv2d_attr attr;
};
static const struct refused refused[] = {
    {"reaches over 5", {1, 4, 9, 1}, {2, 5, 3, 1}, 2, {1, 1, 0, 0, 0, 0, 1, 1, 1, 0}},
    {"reaches over 7", {1, 9, 4, 1}, {2, 3, 3, 1}, 2, {1, 1, 0, 0, 1, 1, 1, 3, 1, 0}},
    {"must be at least 1", {1, 4, 4, 1}, {2, 3, 3, 1}, 2, {0, 1, 0, 0, 0, 0, 1, 1, 1, 0}},
    {"must be at least 1", {1, 4, 4, 1}, {2, 3, 3, 1}, 2, {1, 1, 0, 0, 0, 0, 1, 0, 1, 0}},
    {"0 groups", {1, 4, 4, 4}, {4, 3, 3, 4}, 4, {1, 1, 0, 0, 0, 0, 1, 1, 0, 0}},
    {"3 groups must divide", {1, 4, 4, 4}, {6, 3, 3, 1}, 6, {1, 1, 0, 0, 0, 0, 1, 1, 3, 0}},
    {"2 groups must divide", {1, 4, 4, 4}, {5, 3, 3, 2}, 5, {1, 1, 0, 0, 0, 0, 1, 1, 2, 0}},
    {"expected 2 (4 channels in 2", {1, 4, 4, 4}, {4, 3, 3, 4}, 4, {1, 1, 0, 0, 0, 0, 1, 1, 2, 0}},
    {"bias is [3], expected [2]", {1, 4, 4, 1}, {2, 3, 3, 1}, 3, {1, 1, 0, 0, 0, 0, 1, 1, 1, 0}},
    {"no empty dimension", {0, 4, 4, 1}, {2, 3, 3, 1}, 2, {1, 1, 0, 0, 0, 0, 1, 1, 1, 0}},
    {"positions", {65536, 256, 128, 1}, {1, 1, 1, 1}, 1, {1, 1, 0, 0, 0, 0, 1, 1, 1, 0}},
    {"2^31 - 1", {1, 4, 4, 1}, {1, 3, 1, 1}, 1, {1, 1, 0, 0, 0, 0, 0x7fffffff, 1, 1, 0}},
    {"2^31 - 1", {1, 4, 4, 1}, {1, 1, 1, 1}, 1, {1, 1, 0, 0, 0x7fffffff, 0, 1, 1, 1, 0}},
    {"output positions", {1, 2, 2, 1}, {1, 1, 1, 1}, 1, {1, 1, 65536, 0, 65536, 0, 1, 1, 1, 0}},
};

static void expect_error(lks_status st, const char *text, size_t i)
{
    cr_expect_eq(st, LKS_E_ARGUMENT, "case %zu was not refused", i);
    cr_expect(strstr(lks_error_message(), text) != NULL, "case %zu: \"%s\" lacks \"%s\"", i,
              lks_error_message(), text);
}

Test(conv, refuses_impossible_shapes)
{
    const struct lksi_op *op = lksi_op_find("conv2d");
    for (size_t i = 0; i < LKSI_COUNT(refused); i++) {
        const struct refused *c = &refused[i];
        struct lksi_desc in[3] = {
            lksi_desc_make(LKSI_F32, 4, c->x[0], c->x[1], c->x[2], c->x[3]),
            lksi_desc_make(LKSI_F32, 4, c->w[0], c->w[1], c->w[2], c->w[3]),
            lksi_desc_make(LKSI_F32, 1, c->bias),
        };
        struct lksi_call call;
        expect_error(lksi_call_make(&call, op, &c->attr, 8, 3, in), c->text, i);
    }
}

static const struct lksi_conv2d_attr plain = {1, 1, 0, 0, 0, 0, 1, 1, 1, 0};

Test(conv, gradients_refuse_what_does_not_fit_the_convolution)
{
    struct lksi_call call;
    struct lksi_desc x =
        lksi_desc_make(LKSI_F32, 4, (int64_t)2, (int64_t)6, (int64_t)5, (int64_t)3);
    struct lksi_desc w =
        lksi_desc_make(LKSI_F32, 4, (int64_t)4, (int64_t)3, (int64_t)3, (int64_t)3);
    struct lksi_desc dy =
        lksi_desc_make(LKSI_F32, 4, (int64_t)2, (int64_t)4, (int64_t)3, (int64_t)4);
    struct lksi_desc wrong = dy;
    struct lksi_conv2d_data_grad_attr d = {plain, 6, 5};
    struct lksi_conv2d_weight_grad_attr g = {plain, 3, 3};
    const struct lksi_op *data = lksi_op_find("conv2d_data_grad");
    const struct lksi_op *weight = lksi_op_find("conv2d_weight_grad");
    cr_assert_eq(lksi_call_make(&call, data, &d, 8, 3, (struct lksi_desc[]){dy, w, x}), LKS_OK);
    cr_expect(lksi_desc_equal(&call.out[0], &x));
    cr_assert_eq(lksi_call_make(&call, weight, &g, 8, 2, (struct lksi_desc[]){x, dy}), LKS_OK);
    cr_expect(lksi_desc_equal(&call.out[0], &w));

    wrong.dim[1] = 5;
    expect_error(lksi_call_make(&call, data, &d, 8, 2, (struct lksi_desc[]){wrong, w}),
                 "expected [2,4,3,4]", 0);
    expect_error(lksi_call_make(&call, weight, &g, 8, 2, (struct lksi_desc[]){x, wrong}),
                 "expected [2,4,3,K]", 1);
    expect_error(lksi_call_make(&call, data, &d, 8, 3, (struct lksi_desc[]){dy, w, dy}),
                 "expected f32 [2,6,5,3]", 2);
    expect_error(lksi_call_make(&call, weight, &g, 3, 2, (struct lksi_desc[]){x, dy}),
                 "power of two", 3);
    d.height = 0;
    expect_error(lksi_call_make(&call, data, &d, 8, 2, (struct lksi_desc[]){dy, w}), "height 0", 4);
    g.r = 0;
    expect_error(lksi_call_make(&call, weight, &g, 8, 2, (struct lksi_desc[]){x, dy}),
                 "kernel of 0 x 3", 5);
}

/* ---- the gradient's operators ---- */

Test(conv, gradient_asks_for_its_operators)
{
    struct lksi_conv2d_attr attr = plain;
    attr.relu = 1;
    struct lksi_desc in[3] = {
        lksi_desc_make(LKSI_F32, 4, (int64_t)2, (int64_t)6, (int64_t)5, (int64_t)3),
        lksi_desc_make(LKSI_F32, 4, (int64_t)4, (int64_t)3, (int64_t)3, (int64_t)3),
        lksi_desc_make(LKSI_F32, 1, (int64_t)4),
    };
    struct lksi_call call;
    struct recorder r = {.next = 20};
    lksi_value din[3], dout = 5;
    cr_assert_eq(lksi_call_make(&call, lksi_op_find("conv2d"), &attr, 8, 3, in), LKS_OK);
    cr_assert_eq(ask(&r, &call, &dout, (bool[]){true, true, true}, din), LKS_OK);
    cr_expect_str_eq(r.text, "relu_grad(4,5)=20 conv2d_data_grad(20,2)=21 "
                             "conv2d_weight_grad(1,20)=22 bias_grad(20)=23 ");
    cr_expect(din[0] == 21 && din[1] == 22 && din[2] == 23);

    attr.relu = 0;
    cr_assert_eq(ask(&r, &call, &dout, (bool[]){false, true, false}, din), LKS_OK);
    cr_expect_str_eq(r.text, "conv2d_weight_grad(1,5)=24 ");
    cr_expect(din[0] == LKSI_NONE && din[1] == 24 && din[2] == LKSI_NONE);
}

Test(conv, absorbs_relu_only_where_it_is_the_same)
{
    struct lksi_conv2d_attr attr = plain;
    struct lksi_op relu = {.name = "relu"}, relu_grad = {.name = "relu_grad"};
    lksi_value in[LKSI_MAX_IN] = {1, 2};
    int n_in = 2;
    const struct lksi_op *conv = lksi_op_find("conv2d"), *data = lksi_op_find("conv2d_data_grad");
    cr_expect(!conv->absorb(&attr, in, &n_in, &relu_grad, NULL, (lksi_value[]){3, 4}, 0));
    cr_expect(attr.relu == 0 && conv->absorb(&attr, in, &n_in, &relu, NULL, in, 0));
    cr_expect(attr.relu == 1 && n_in == 2);
    /* as the mask of a relu_grad, a gradient must not vanish in it */
    cr_expect(!data->absorb(&attr, in, &n_in, &relu_grad, NULL, (lksi_value[]){9, 8}, 0));
    cr_expect(data->absorb(&attr, in, &n_in, &relu_grad, NULL, (lksi_value[]){9, 8}, 1));
    cr_expect(n_in == 3 && in[2] == 9);
    cr_expect(!data->absorb(&attr, in, &n_in, &relu_grad, NULL, (lksi_value[]){9, 8}, 1));
}

/* ---- the C loops ---- */

static void expect_ref_is_items(const struct lksi_call *call, enum lksi_regime regime, int index)
{
    const struct lksi_op *op = call->op;
    void *in[LKSI_MAX_IN] = {0};
    size_t bytes = (size_t)lksi_desc_count(&call->out[0]) * 4;
    unsigned char *want = malloc(bytes), *got = malloc(bytes);
    U64 parts = op->ref_parts(call), items = lksi_op_items(call);
    memset(got, 0x55, bytes);
    for (int i = 0; i < call->n_in; i++) {
        in[i] = malloc((size_t)lksi_desc_count(&call->in[i]) * 4);
        lksi_regime_fill(regime, 11, call, i, in[i]);
    }
    for (U64 i = 0; i < items; i++)
        op->item((const void *const *)in, (void *[]){want}, call->dims.bytes, i);
    for (U64 p = parts; p-- > 0;) /* parts are independent: any order will do */
        op->ref(call, (const void *const *)in, (void *[]){got}, p, p + 1);
    for (size_t i = 0; i < bytes / 4; i++) {
        if (memcmp(want + 4 * i, got + 4 * i, 4) != 0) {
            cr_expect_fail("%s, case %d, %s: element %zu differs", op->name, index,
                           lksi_regime_name(regime), i);
            break;
        }
    }
    for (int i = 0; i < call->n_in; i++)
        free(in[i]);
    free(want);
    free(got);
}

static void expect_ref_is_items_everywhere(const char *name)
{
    const struct lksi_op *op = lksi_op_find(name);
    _Alignas(8) unsigned char attr[128];
    struct lksi_call drawn, call;
    cr_assert(op->attr_size <= sizeof attr);
    memset(&drawn, 0, sizeof drawn);
    for (int i = 0; op->test_case(i, false, &drawn, attr); i++) {
        cr_assert_eq(lksi_call_make(&call, op, attr, drawn.leaf, drawn.n_in, drawn.in), LKS_OK,
                     "case %d: %s", i, lks_error_message());
        for (int regime = 0; regime < LKSI_REGIMES; regime++)
            expect_ref_is_items(&call, (enum lksi_regime)regime, i);
    }
}

Test(conv, forward_loop_is_the_contract)
{
    expect_ref_is_items_everywhere("conv2d");
}

Test(conv, data_grad_loop_is_the_contract)
{
    expect_ref_is_items_everywhere("conv2d_data_grad");
}

Test(conv, weight_grad_loop_is_the_contract)
{
    expect_ref_is_items_everywhere("conv2d_weight_grad");
}

Test(conv, winograd_loops_are_the_contract)
{
    expect_ref_is_items_everywhere("winograd");
    expect_ref_is_items_everywhere("winograd_data_grad");
    expect_ref_is_items_everywhere("winograd_weight_grad");
}

Test(conv, winograd_serves_three_by_three_alone)
{
    static const struct {
        int64_t r, s;
        struct lksi_conv2d_attr attr;
    } bad[] = {
        {5, 3, {1, 1, 0, 0, 0, 0, 1, 1, 1, 0}}, {3, 1, {1, 1, 0, 0, 0, 0, 1, 1, 1, 0}},
        {3, 3, {1, 2, 0, 0, 0, 0, 1, 1, 1, 0}}, {3, 3, {1, 1, 0, 0, 0, 0, 2, 1, 1, 0}},
        {3, 3, {1, 1, 0, 0, 0, 0, 1, 1, 2, 0}},
    };
    for (size_t i = 0; i < LKSI_COUNT(bad); i++) {
        int64_t cg = 4 / bad[i].attr.groups;
        struct lksi_desc x = lksi_desc_make(LKSI_F32, 4, 1ll, 8ll, 8ll, 4ll);
        struct lksi_desc w = lksi_desc_make(LKSI_F32, 4, 4ll, bad[i].r, bad[i].s, cg);
        struct lksi_call call;
        expect_error(lksi_call_make(&call, lksi_op_find("winograd"), &bad[i].attr, 8, 2,
                                    (struct lksi_desc[]){x, w}),
                     "serves kernels of 3 x 3 with stride 1", i);
    }
}
