/*
 * test_small.c - the dense layer, pooling, the loss, training operators: refused shapes, the
 * operators their gradients ask for, what they absorb, values that the harness does not draw.
 * Schedules and C loops are the harness's.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "helpers.h"
#include "op/attr.h"
#include "recorder.h"

/* A tensor of floats in one word: "2x3"; of integers: "i2". */
static struct lksi_desc desc_of(const char *text)
{
    struct lksi_desc d = {.dtype = *text == 'i' ? LKSI_I32 : LKSI_F32};
    const char *p = *text == 'i' ? text + 1 : text;
    char *end;
    do {
        d.dim[d.rank++] = strtoll(p, &end, 10);
        p = end + 1;
    } while (*end == 'x');
    return d;
}

static lks_status make(struct lksi_call *call, const char *op, const void *attr, uint32_t leaf,
                       const char *const *in)
{
    struct lksi_desc d[LKSI_MAX_IN];
    int n = 0;
    for (; in[n] != NULL; n++)
        d[n] = desc_of(in[n]);
    return lksi_call_make(call, lksi_op_find(op), attr, leaf, n, d);
}
#define IN(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- refused shapes ---- */

struct refused {
    const char *text; /* a part of the error */
    const char *op;
    const char *in[LKSI_MAX_IN + 1];
    uint32_t leaf;
};

static const struct refused refused[] = {
    {"b is [4], [3] wanted", "add", {"3", "4"}, 8},
    {"x must hold 32-bit floats", "relu", {"i3"}, 8},
    {"dy is [3,2], [2,3] wanted", "relu_grad", {"2x3", "3x2"}, 8},
    {"every dimension must be 1", "relu", {"2x0"}, 8},
    {"the weight is [5,3], [5,4] wanted", "dense", {"2x3x4", "5x3"}, 8},
    {"the weight is [5,4], [5,3] wanted", "dense", {"2x3", "5x4"}, 8},
    {"the bias is [4], [5] wanted", "dense", {"2x3", "5x3", "4"}, 8},
    {"the weight is [4,3], [5,3] wanted", "dense_data_grad", {"2x5", "4x3"}, 8},
    {"the mask is [2,5], [2,3] wanted", "dense_data_grad", {"2x5", "5x3", "2x5"}, 8},
    {"dy is [3,5], [2,5] wanted", "dense_weight_grad", {"2x3", "3x5"}, 8},
    {"leaf 3", "dense_weight_grad", {"2x3", "2x5"}, 3},
    {"leaf 0", "bias_grad", {"2x3"}, 0},
    {"2 to 4 dimensions wanted", "bias_grad", {"2"}, 8},
    {"leaf 131072", "batch_mean", {"4"}, 131072},
    {"1 dimension wanted", "batch_mean", {"4x1"}, 8},
    {"the labels is [3], [2] wanted", "softmax_cross_entropy", {"2x10", "i3"}, 8},
    {"the labels must hold 32-bit integers", "softmax_cross_entropy", {"2x10", "2"}, 8},
    {"dloss is [1], [2] wanted", "softmax_cross_entropy_grad", {"2x10", "i2", "1"}, 8},
    {"the first state is [6], [5] wanted", "sgd", {"5", "5", "6", "1x16", "i1", "i1"}, 8},
    {"hyper is [3,8], [rows,16] wanted", "sgd", {"5", "5", "5", "3x8", "i1", "i1"}, 8},
    {"the flag must hold 32-bit integers", "sgd", {"5", "5", "5", "1x16", "1", "i1"}, 8},
    {"a state is [4], [5] wanted", "adam", {"5", "5", "5", "4", "1x16", "i1", "i1"}, 8},
    {"the rows of blocks is [1], [2] wanted", "adagrad",
     {"1025", "1025", "1025", "1x16", "i1", "i1"}, 8},
    {"the directions' norms is [2], [3] wanted", "lamb_apply",
     {"5", "5", "3", "2", "1x16", "i1", "i1", "i1"}, 8},
    {"the parts are [2,3], [parts,2] wanted", "segment_norm", {"5", "i2x3"}, 8},
    {"the norm is [2], [1] wanted", "grad_clip", {"5", "2"}, 8},
    {"the loss is [2], [1] wanted", "guard", {"5", "2", "i1", "i1"}, 8},
    {"the flag is [2], [1] wanted", "guard", {"5", "1", "i2", "i2"}, 8},
};

Test(small, refuses_impossible_shapes)
{
    static const struct lksi_cross_entropy_attr none; /* all zero: serves the other operators too */
    for (size_t i = 0; i < LKSI_COUNT(refused); i++) {
        struct lksi_call call;
        EXPECT_FAIL(LKS_E_ARGUMENT,
                    make(&call, refused[i].op, &none, refused[i].leaf, refused[i].in),
                    refused[i].text, refused[i].op);
    }
}

Test(small, refuses_impossible_pools)
{
    static const struct {
        const char *text;
        struct lksi_maxpool_attr a;
    } pools[] = {
        {"kernel 0 and stride 1 along the height", {0, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}},
        {"stride 0 along the width", {2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
        {"padding 2 and 0 along the height, 0 to 1", {2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0}},
        {"padding 0 and -1 along the width", {2, 2, 2, 2, 0, 0, 0, -1, 0, 0, 0, 0}},
        {"the kernel of 7 does not fit the padded height of 6", {7, 2, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0}},
        {"the kernel of 7 does not fit", {4, 2, 1, 1, 0, 0, 0, 0, 0, 2, 1, 0}},
        {"dilation -1 along the width", {2, 2, 1, 1, 0, 0, 0, 0, 0, 1, -1, 0}},
        {"window 0 along the height has no tap in the image", {2, 2, 1, 1, 3, 3, 0, 0, 0, 9, 1, 0}},
    };
    struct lksi_maxpool_attr two = {2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0};
    struct lksi_avgpool_attr mean = {{2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0}, 0, 5, 0};
    struct lksi_call call;
    EXPECT_FAIL(LKS_E_ARGUMENT, make(&call, "avgpool_grad", &mean, 8, IN("1x2x2x2")),
                "avgpool_grad", "height 5 and width 0");
    mean.width = 5;
    EXPECT_OK(make(&call, "avgpool_grad", &mean, 8, IN("1x2x2x2")));
    EXPECT_FAIL(LKS_E_ARGUMENT, make(&call, "avgpool_grad", &mean, 8, IN("1x2x3x2")),
                "dy is [1,2,3,2], [1,2,2,2] wanted");
    for (size_t i = 0; i < LKSI_COUNT(pools); i++)
        EXPECT_FAIL(LKS_E_ARGUMENT, make(&call, "maxpool", &pools[i].a, 8, IN("1x5x5x2")),
                    pools[i].text, "maxpool");
    EXPECT_FAIL(LKS_E_ARGUMENT, make(&call, "maxpool", &two, 8, IN("5x5x2")), "4 dimensions");
    EXPECT_FAIL(LKS_E_ARGUMENT, make(&call, "maxpool_grad", &two, 8, IN("1x5x5x2", "1x3x2x2")),
                "dy is [1,3,2,2], [1,2,2,2] wanted");
}

Test(small, reshape_infers_one_dimension)
{
    struct lksi_reshape_attr a = {2, {2, -1}};
    struct lksi_call call;
    char text[96];
    EXPECT_OK(make(&call, "reshape", &a, 8, IN("2x3x5")));
    cr_expect_str_eq(lksi_desc_text(&call.out[0], text), "[2,15]");
    a = (struct lksi_reshape_attr){2, {4, -1}};
    EXPECT_FAIL(LKS_E_ARGUMENT, make(&call, "reshape", &a, 8, IN("2x3x5")), "30 elements",
                "[4,-1]");
    a = (struct lksi_reshape_attr){2, {-1, -1}};
    EXPECT_FAIL(LKS_E_ARGUMENT, make(&call, "reshape", &a, 8, IN("2x3x5")), "dimension 1");
    a = (struct lksi_reshape_attr){2, {5, 5}};
    EXPECT_FAIL(LKS_E_ARGUMENT, make(&call, "reshape", &a, 8, IN("2x3x5")), "[5,5]");
    a = (struct lksi_reshape_attr){5, {30, 30, 30, 30, 30}};
    EXPECT_FAIL(LKS_E_ARGUMENT, make(&call, "reshape", &a, 8, IN("2x3x5")), "30 elements");
    a = (struct lksi_reshape_attr){0, {0}};
    EXPECT_FAIL(LKS_E_ARGUMENT, make(&call, "reshape", &a, 8, IN("2x3x5")), "rank 0");
}

Test(small, fill_and_mean_gradient_refuse)
{
    struct lksi_fill_attr f = {1.0f, {LKSI_I32, 1, {3}}};
    struct lksi_call call;
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_call_make(&call, lksi_op_find("fill"), &f, 8, 0, NULL),
                "32-bit floats");
    f.desc = lksi_desc_make(LKSI_F32, 2, (int64_t)3, (int64_t)0);
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_call_make(&call, lksi_op_find("fill"), &f, 8, 0, NULL),
                "[3,0]");
    EXPECT_FAIL(LKS_E_ARGUMENT, make(&call, "batch_mean_grad", NULL, 8, IN("2", "3")), "[1]");
}

/* ---- gradients and fusion ---- */

Test(small, dense_gradient_asks_for_its_operators)
{
    struct lksi_dense_attr attr = {1};
    struct lksi_call call;
    struct recorder r = {.next = 20};
    lksi_value din[3], dout = 5;
    EXPECT_OK(make(&call, "dense", &attr, 8, IN("2x3", "5x3", "5")));
    EXPECT_OK(ask(&r, &call, &dout, (bool[]){true, true, true}, din));
    cr_expect_str_eq(r.text, "relu_grad(4,5)=20 dense_data_grad(20,2)=21 "
                             "dense_weight_grad(1,20)=22 bias_grad(20)=23 ");
    cr_expect(din[0] == 21 && din[1] == 22 && din[2] == 23);
    attr.relu = 0;
    EXPECT_OK(ask(&r, &call, &dout, (bool[]){false, true, false}, din));
    cr_expect_str_eq(r.text, "dense_weight_grad(1,5)=24 ");
    cr_expect(din[0] == LKSI_NONE && din[1] == 24 && din[2] == LKSI_NONE);
}

Test(small, only_the_loss_has_a_gradient)
{
    struct lksi_call call;
    struct recorder r = {.next = 20};
    lksi_value din[2], none = LKSI_NONE;
    bool need[2] = {true, false};
    const struct lksi_cross_entropy_attr plain = {0};
    EXPECT_OK(make(&call, "softmax_cross_entropy", &plain, 8, IN("2x10", "i2")));
    EXPECT_OK(ask(&r, &call, (lksi_value[]){7, none, none, none}, need, din));
    cr_expect_str_eq(r.text, "softmax_cross_entropy_grad(4,2,7)=20 ");
    EXPECT_FAIL(LKS_E_ARGUMENT, ask(&r, &call, (lksi_value[]){7, 8, none, none}, need, din),
                "only the loss");
}

Test(small, absorbs_relu_only_where_it_is_the_same)
{
    const struct lksi_op *relu = lksi_op_find("relu"), *relu_grad = lksi_op_find("relu_grad");
    const struct lksi_op *dense = lksi_op_find("dense"), *data = lksi_op_find("dense_data_grad");
    const struct lksi_op *pool = lksi_op_find("maxpool_grad");
    struct lksi_dense_attr d = {0};
    struct lksi_maxpool_attr p = {2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0};
    lksi_value in[LKSI_MAX_IN] = {1, 2};
    int n_in = 2;
    cr_expect(!dense->absorb(&d, in, &n_in, relu_grad, NULL, (lksi_value[]){3, 4}, 1));
    cr_expect(d.relu == 0 && dense->absorb(&d, in, &n_in, relu, NULL, (lksi_value[]){3}, 0));
    cr_expect(d.relu == 1 && n_in == 2);
    cr_expect(!data->absorb(NULL, in, &n_in, relu_grad, NULL, (lksi_value[]){9, 8}, 0));
    cr_expect(data->absorb(NULL, in, &n_in, relu_grad, NULL, (lksi_value[]){9, 8}, 1));
    cr_expect(n_in == 3 && in[2] == 9);
    cr_expect(!data->absorb(NULL, in, &n_in, relu_grad, NULL, (lksi_value[]){9, 8}, 1));
    /* the mask must be the pooled image itself */
    cr_expect(!pool->absorb(&p, in, &n_in, relu_grad, NULL, (lksi_value[]){7, 8}, 1));
    cr_expect(pool->absorb(&p, in, &n_in, relu_grad, NULL, (lksi_value[]){1, 8}, 1));
    cr_expect(p.relu_mask == 1);
}

/* ---- values ---- */

Test(small, label_out_of_range_gives_nan)
{
    const float logits[] = {1.0f, 2.0f, 3.0f, 3.0f, 1.0f, 3.0f, 5.0f, 5.0f, 1.0f};
    const int32_t labels[] = {3, -1, 1};
    const struct lksi_cross_entropy_attr plain = {0};
    float loss[3], prob[9], hit[3], weight[3];
    struct lksi_call call;
    EXPECT_OK(make(&call, "softmax_cross_entropy", &plain, 8, IN("3x3", "i3")));
    for (U64 n = 0; n < 3; n++)
        call.op->item((const void *[]){logits, labels}, (void *[]){loss, prob, hit, weight},
                      call.dims.bytes, n);
    cr_expect(isnan(loss[0]) && hit[0] == 0.0f);
    cr_expect(isnan(loss[1]) && hit[1] == 0.0f);
    cr_expect(loss[2] > 0.0f && hit[2] == 0.0f, "of equal logits the first is the answer");
}

Test(small, pool_keeps_the_first_nan)
{
    const float x[] = {1.0f, NAN, 5.0f, NAN};
    const float dy[] = {2.0f};
    struct lksi_maxpool_attr two = {2, 2, 2, 2, 0, 0, 0, 0, 0};
    float y[1], dx[4];
    struct lksi_call call;
    EXPECT_OK(make(&call, "maxpool", &two, 8, IN("1x2x2x1")));
    call.op->item((const void *[]){x}, (void *[]){y}, call.dims.bytes, 0);
    cr_expect(isnan(y[0]));
    EXPECT_OK(make(&call, "maxpool_grad", &two, 8, IN("1x2x2x1", "1x1x1x1")));
    for (U64 i = 0; i < 4; i++)
        call.op->item((const void *[]){x, dy}, (void *[]){dx}, call.dims.bytes, i);
    cr_expect(dx[0] == 0.0f && dx[1] == 2.0f && dx[2] == 0.0f && dx[3] == 0.0f);
}
