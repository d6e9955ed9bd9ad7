/*
 * dense.c - the fully connected layer and its gradients for the input and the weights.
 */
#include <string.h>

#include "contract/dense.h"
#include "op/attr.h"
#include "op/conv_gpu.h"
#include "op/dense.h"
#include "op/shape.h"

LKSI_ITEM(dense, in[0], in[1], in[2], out[0])
LKSI_ITEM(dense_data_grad, in[0], in[1], in[2], out[0])
LKSI_ITEM(dense_weight_grad, in[0], in[1], out[0])

/* ---- shapes ---- */

static int64_t last(const struct lksi_desc *d)
{
    return d->dim[d->rank - 1];
}

/* `d` with another last dimension. */
static struct lksi_desc with_last(struct lksi_desc d, int64_t size)
{
    d.dim[d.rank - 1] = size;
    return d;
}

/* Input 0 is [N, .., features], fewer than 2^31 positions. */
static lks_status want_rows(const struct lksi_call *call, const char *what)
{
    char text[96];
    lks_status st = lksi_want(call, 0, what, LKSI_F32, 2, LKSI_MAX_RANK);
    if (st == LKS_OK && lksi_desc_count(&call->in[0]) / last(&call->in[0]) > INT32_MAX)
        return lksi_fail(LKS_E_ARGUMENT, "%s: %s is %s, less than 2^31 positions wanted",
                         call->op->name, what, lksi_desc_text(&call->in[0], text));
    return st;
}

static U32 positions(const struct lksi_desc *d)
{
    return (U32)(lksi_desc_count(d) / last(d));
}

static lks_status infer(struct lksi_call *call)
{
    const struct lksi_dense_attr *a = call->attr;
    const struct lksi_desc *x = &call->in[0], *w = &call->in[1];
    lks_status st = want_rows(call, "x");
    if (st == LKS_OK)
        st = lksi_want(call, 1, "the weight", LKSI_F32, 2, 2);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "the weight",
                            lksi_desc_make(LKSI_F32, 2, w->dim[0], last(x)));
    if (st == LKS_OK && call->n_in > 2)
        st = lksi_want_desc(call, 2, "the bias", lksi_desc_make(LKSI_F32, 1, w->dim[0]));
    if (st != LKS_OK)
        return st;
    call->out[0] = with_last(*x, w->dim[0]);
    LKSI_SET_DIMS(call, dense_dims,
                  {.n = positions(x),
                   .i = (U32)last(x),
                   .o = (U32)w->dim[0],
                   .relu = a->relu != 0,
                   .extra = call->n_in > 2});
    return LKS_OK;
}

static lks_status infer_data(struct lksi_call *call)
{
    const struct lksi_desc *dy = &call->in[0], *w = &call->in[1];
    struct lksi_desc dx;
    lks_status st = want_rows(call, "dy");
    if (st == LKS_OK)
        st = lksi_want(call, 1, "the weight", LKSI_F32, 2, 2);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "the weight",
                            lksi_desc_make(LKSI_F32, 2, last(dy), w->dim[1]));
    if (st != LKS_OK)
        return st;
    dx = with_last(*dy, w->dim[1]);
    if (call->n_in > 2)
        st = lksi_want_desc(call, 2, "the mask", dx);
    if (st != LKS_OK)
        return st;
    call->out[0] = dx;
    LKSI_SET_DIMS(
        call, dense_dims,
        {.n = positions(&dx), .i = (U32)last(&dx), .o = (U32)w->dim[0], .extra = call->n_in > 2});
    return LKS_OK;
}

static lks_status infer_weight(struct lksi_call *call)
{
    const struct lksi_desc *x = &call->in[0], *dy = &call->in[1];
    lks_status st = lksi_want_leaf(call);
    if (st == LKS_OK)
        st = want_rows(call, "x");
    if (st == LKS_OK)
        st = lksi_want(call, 1, "dy", LKSI_F32, x->rank, x->rank);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "dy", with_last(*x, last(dy)));
    if (st != LKS_OK)
        return st;
    call->out[0] = lksi_desc_make(LKSI_F32, 2, last(dy), last(x));
    LKSI_SET_DIMS(
        call, dense_dims,
        {.n = (U32)x->dim[0],
         .i = (U32)last(x),
         .o = (U32)last(dy),
         .leaf = call->leaf,
         .rows = (U32)(positions(x) / (U32)x->dim[0])});
    return LKS_OK;
}

/* ---- gradient and fusion ---- */

static lks_status grad(const struct lksi_backward *g)
{
    const struct lksi_dense_attr *a = g->call->attr;
    const struct lksi_desc *y = &g->call->out[0];
    lksi_value dy = g->dout[0];
    lks_status st = LKS_OK;
    if (a->relu)
        st = lksi_apply(g->b, "relu_grad", NULL, &dy, g->out[0], dy);
    if (st == LKS_OK)
        st = lksi_flow(g, 0, "dense_data_grad", NULL, dy, g->in[1]);
    if (st == LKS_OK)
        st = lksi_flow(g, 1, "dense_weight_grad", NULL, g->in[0], dy);
    if (st != LKS_OK || g->call->n_in < 3 || !g->need[2])
        return st;
    if (y->rank > 2) {
        struct lksi_reshape_attr as = {4, {-1, positions(y) / y->dim[0], 1, last(y)}};
        st = lksi_apply(g->b, "reshape", &as, &dy, dy);
    }
    return st == LKS_OK ? lksi_flow(g, 2, "bias_grad", NULL, dy) : st;
}

/* dy, w and maybe a mask: what flows back to dy is a dense layer without a bias. */
static lks_status grad_data(const struct lksi_backward *g)
{
    const struct lksi_dense_attr linear = {0};
    lksi_value dy = g->dout[0];
    lks_status st = LKS_OK;
    if (g->call->n_in > 2)
        st = lksi_apply(g->b, "relu_grad", NULL, &dy, g->in[2], dy);
    if (st == LKS_OK)
        st = lksi_flow(g, 0, "dense", &linear, dy, g->in[1]);
    return st == LKS_OK ? lksi_flow(g, 1, "dense_weight_grad", NULL, dy, g->in[0]) : st;
}

/* x and dy; the gradient of dw takes the place of the weight. */
static lks_status grad_weight(const struct lksi_backward *g)
{
    const struct lksi_dense_attr linear = {0};
    lks_status st = lksi_flow(g, 0, "dense_data_grad", NULL, g->in[1], g->dout[0]);
    return st == LKS_OK ? lksi_flow(g, 1, "dense", &linear, g->in[0], g->dout[0]) : st;
}

static bool absorb(void *attr, lksi_value *in, int *n_in, const struct lksi_op *next,
                   const void *next_attr, const lksi_value *next_in, int slot)
{
    struct lksi_dense_attr *a = attr;
    (void)in;
    (void)n_in;
    (void)next_attr;
    (void)next_in;
    (void)slot;
    if (a->relu || strcmp(next->name, "relu") != 0)
        return false;
    a->relu = 1;
    return true;
}

/* The gradient of the relu before: its output becomes the mask. */
static bool absorb_data(void *attr, lksi_value *in, int *n_in, const struct lksi_op *next,
                        const void *next_attr, const lksi_value *next_in, int slot)
{
    (void)attr;
    (void)next_attr;
    if (*n_in != 2 || strcmp(next->name, "relu_grad") != 0 || slot != 1)
        return false;
    in[(*n_in)++] = next_in[0];
    return true;
}

static double flops(const struct lksi_call *call)
{
    const struct dense_dims *d = lksi_dense_dims(call);
    return 2.0 * d->n * (d->rows > 0 ? d->rows : 1) * d->i * d->o;
}

/* ---- harness cases ---- */

static const int64_t shapes[][3] = {
    /* n, i, o */
    {1, 1, 1},    {1, 17, 10},  {2, 3, 5},     {3, 31, 33},     {5, 32, 12},     {6, 64, 64},
    {7, 63, 65},  {8, 65, 31},  {11, 100, 13}, {12, 128, 32},   {13, 97, 101},   {16, 16, 16},
    {17, 33, 24}, {31, 48, 11}, {32, 80, 25},  {33, 257, 7},    {48, 10, 96},    {65, 49, 48},
    {100, 5, 37}, {1, 300, 70}, {5, 1281, 3},  {7, 2565, 66},   {9, 17, 1290}, {64, 192, 10}, {64, 3136, 512}, {129, 1009, 521}};

static bool shape_case(int index, bool long_run, int64_t *n, int64_t *i, int64_t *o)
{
    if (index >= (int)LKSI_COUNT(shapes) - (long_run ? 0 : 2))
        return false;
    *n = shapes[index][0];
    *i = shapes[index][1];
    *o = shapes[index][2];
    return true;
}

/* Of a positive number of positions a sample, [n, rows, features]; else [n, features]. */
static struct lksi_desc matrix(int64_t n, int64_t rows, int64_t features)
{
    return rows > 0 ? lksi_desc_make(LKSI_F32, 3, n, rows, features)
                    : lksi_desc_make(LKSI_F32, 2, n, features);
}

/* Behind the cases above, positions a sample around the leaves: joined, one, cut. */
static bool rows_case(int index, int64_t *n, int64_t *rows, int64_t *i, int64_t *o)
{
    static const int64_t more[][4] = {{3, 5, 17, 9},     {9, 64, 33, 16},   {2, 1024, 16, 3},
                                      {2, 1025, 20, 5},  {3, 2500, 31, 10}, {17, 7, 65, 40},
                                      {5, 300, 64, 48},  {1, 12, 5, 7}};
    if (index >= (int)LKSI_COUNT(more))
        return false;
    *n = more[index][0];
    *rows = more[index][1];
    *i = more[index][2];
    *o = more[index][3];
    return true;
}

static bool any_case(int index, bool long_run, int64_t *n, int64_t *rows, int64_t *i, int64_t *o)
{
    int plain = (int)LKSI_COUNT(shapes) - (long_run ? 0 : 2);
    *rows = 0;
    return index < plain ? shape_case(index, long_run, n, i, o)
                         : rows_case(index - plain, n, rows, i, o);
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_dense_attr *a = attr;
    int64_t n, rows, i, o;
    if (!any_case(index, long_run, &n, &rows, &i, &o))
        return false;
    a->relu = index % 2;
    call->n_in = index % 3 == 0 ? 2 : 3;
    call->in[0] = matrix(n, rows, i);
    call->in[1] = lksi_desc_make(LKSI_F32, 2, o, i);
    call->in[2] = lksi_desc_make(LKSI_F32, 1, o);
    return true;
}

static bool test_case_data(int index, bool long_run, struct lksi_call *call, void *attr)
{
    int64_t n, rows, i, o;
    (void)attr;
    if (!any_case(index, long_run, &n, &rows, &i, &o))
        return false;
    call->n_in = index % 3 == 0 ? 2 : 3;
    call->in[0] = matrix(n, rows, o);
    call->in[1] = lksi_desc_make(LKSI_F32, 2, o, i);
    call->in[2] = matrix(n, rows, i);
    return true;
}

static bool test_case_weight(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const uint32_t leaf[] = {8, 1, 2, 8, 64};
    int64_t n, rows, i, o;
    (void)attr;
    if (!any_case(index, long_run, &n, &rows, &i, &o))
        return false;
    call->leaf = leaf[index % (int)LKSI_COUNT(leaf)];
    call->n_in = 2;
    call->in[0] = matrix(n, rows, i);
    call->in[1] = matrix(n, rows, o);
    return true;
}

static const struct lksi_schedule schedules[] = {
    {"cpu", lksi_dense_cpu_declines, lksi_dense_cpu_recipe, lksi_dense_cpu_tunables, 0},
    LKSI_GPU_LINES(dense, product),
    {"clblast", lksi_dense_clblast_declines, lksi_dense_clblast_recipe},
    {NULL, NULL, NULL}};

static const struct lksi_schedule data_schedules[] = {
    {"cpu", lksi_dense_data_grad_cpu_declines, lksi_dense_data_grad_cpu_recipe,
     lksi_dense_cpu_tunables, 0},
    LKSI_GPU_LINES(dense_data_grad, product),
    {"clblast", lksi_dense_clblast_declines, lksi_dense_data_grad_clblast_recipe},
    {NULL, NULL, NULL}};

static const struct lksi_schedule weight_schedules[] = {
    {"cpu", lksi_dense_weight_grad_cpu_declines, lksi_dense_weight_grad_cpu_recipe,
     lksi_dense_cpu_tunables, 0},
    LKSI_GPU_LINES(dense_weight_grad, dense_leaves),
    {"clblast", lksi_dense_weight_grad_clblast_declines, lksi_dense_weight_grad_clblast_recipe},
    {NULL, NULL, NULL}};

static const struct lksi_op dense = {
    .name = "dense",
    .contract = "contract/dense.h",
    .dims = "dense_dims",
    .min_in = 2,
    .max_in = 3,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_dense_attr),
    .infer = infer,
    .item = dense_item_c,
    .ref_parts = lksi_dense_ref_parts,
    .ref = lksi_dense_ref,
    .schedules = schedules,
    .grad = grad,
    .absorb = absorb,
    .flops = flops,
    .product = true,
    .test_case = test_case,
};

static const struct lksi_op dense_data_grad = {
    .name = "dense_data_grad",
    .contract = "contract/dense.h",
    .dims = "dense_dims",
    .min_in = 2,
    .max_in = 3,
    .n_out = 1,
    .infer = infer_data,
    .item = dense_data_grad_item_c,
    .ref_parts = lksi_dense_data_grad_ref_parts,
    .ref = lksi_dense_data_grad_ref,
    .schedules = data_schedules,
    .grad = grad_data,
    .absorb = absorb_data,
    .flops = flops,
    .product = true,
    .test_case = test_case_data,
};

static const struct lksi_op dense_weight_grad = {
    .name = "dense_weight_grad",
    .contract = "contract/dense.h",
    .dims = "dense_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .sums_samples = 3,
    .infer = infer_weight,
    .item = dense_weight_grad_item_c,
    .ref_parts = lksi_dense_weight_grad_ref_parts,
    .ref = lksi_dense_weight_grad_ref,
    .schedules = weight_schedules,
    .grad = grad_weight,
    .flops = flops,
    .product = true,
    .test_case = test_case_weight,
};

const struct lksi_op *const lksi_ops_dense[] = {&dense, &dense_data_grad, &dense_weight_grad, NULL};
