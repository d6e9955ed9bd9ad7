/*
 * softmax_cross_entropy.c - cross entropy over positions, with smoothing, class weights, an ignored label.
 */
#include <string.h>

#include "contract/softmax_cross_entropy.h"
#include "op/attr.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(softmax_cross_entropy, in[0], in[1], out[0], out[1], out[2], out[3])
LKSI_ITEM(softmax_cross_entropy_grad, in[0], in[1], in[2], out[0])

static void set_dims(struct lksi_call *call, int64_t classes)
{
    const struct lksi_cross_entropy_attr *a = call->attr;
    struct cross_entropy_dims d = {.f = (U32)classes,
                                  .smooth = a->smoothing > 0,
                                  .weighted = a->n_weight > 0,
                                  .ignores = a->ignores != 0,
                                  .ignored = a->ignored,
                                  .keep = (F32)(1.0 - a->smoothing),
                                  .part = (F32)(a->smoothing / (double)classes)};
    double total = 0.0;
    for (int64_t f = 0; f < classes; f++)
        total += a->n_weight > 0 ? (double)a->weight[f] : 1.0;
    d.total = (F32)total;
    memcpy(d.w, a->weight, sizeof d.w);
    _Static_assert(sizeof d <= LKSI_DIMS_MAX, "dims do not fit");
    memcpy(call->dims.bytes, &d, sizeof d);
    call->dims_size = sizeof d;
}

/* Checks both calls; *rows: the shape of labels, loss, weights and hits. */
static lks_status infer_rows(struct lksi_call *call, const char *what, struct lksi_desc *rows)
{
    const struct lksi_cross_entropy_attr *a = call->attr;
    int64_t classes;
    lks_status st = lksi_want(call, 0, what, LKSI_F32, 2, LKSI_MAX_RANK);
    if (st != LKS_OK)
        return st;
    *rows = call->in[0];
    classes = rows->dim[--rows->rank];
    rows->dim[rows->rank] = 0;
    rows->dtype = LKSI_I32;
    st = lksi_want_desc(call, 1, "the labels", *rows);
    if (st != LKS_OK)
        return st;
    rows->dtype = LKSI_F32;
    if (!(a->smoothing >= 0 && a->smoothing < 1))
        return lksi_fail(LKS_E_ARGUMENT, "%s: smoothing is %g, expected 0 to below 1",
                         call->op->name, a->smoothing);
    if (a->n_weight != 0 && (a->n_weight != classes || classes > LKS_LOSS_CLASSES))
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: %d class weights for %lld classes; expected one each, and at most %d "
                         "classes",
                         call->op->name, a->n_weight, (long long)classes, LKS_LOSS_CLASSES);
    set_dims(call, classes);
    return LKS_OK;
}

static lks_status infer(struct lksi_call *call)
{
    struct lksi_desc rows;
    lks_status st = infer_rows(call, "the logits", &rows);
    if (st != LKS_OK)
        return st;
    call->out[0] = call->out[2] = call->out[3] = rows;
    call->out[1] = call->in[0];
    return LKS_OK;
}

static lks_status infer_grad(struct lksi_call *call)
{
    struct lksi_desc rows;
    lks_status st = infer_rows(call, "prob", &rows);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 2, "dloss", rows);
    if (st == LKS_OK)
        call->out[0] = call->in[0];
    return st;
}

static U64 items(const struct lksi_call *call)
{
    return (U64)lksi_desc_count(&call->in[1]);
}

/* The weights do not depend on the logits. */
static lks_status grad(const struct lksi_backward *g)
{
    const lksi_value *dout = g->dout;
    if (dout[1] != LKSI_NONE || dout[2] != LKSI_NONE)
        return lksi_fail(LKS_E_ARGUMENT, "softmax_cross_entropy: only the loss has a gradient, "
                                         "not the probabilities or the hits");
    if (dout[0] == LKSI_NONE)
        return LKS_OK;
    return lksi_flow(g, 0, "softmax_cross_entropy_grad", g->call->attr, g->out[1], g->in[1], dout[0]);
}

/* ---- schedule `gpu` ---- */

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    struct lksi_launch *l = &r->launch[0];
    (void)dev;
    r->n_launch = 1;
    l->source = "op/softmax_cross_entropy_gpu.cl";
    l->kernel = "rows";
    for (int i = 0; i < 2; i++)
        l->arg[l->n_arg++] = LKSI_IN(i);
    for (int i = 0; i < 4; i++)
        l->arg[l->n_arg++] = LKSI_OUT(i);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->dims = 1;
    l->global[0] = (size_t)items(call) * 32;
    l->local[0] = 32;
}

static const struct lksi_schedule schedules[] = {{"gpu", lksi_lanes_declines, recipe},
                                                 {NULL, NULL, NULL}};

/* An exp counts as 16, a log as 24: the operations of their contracts, roughly. */
static double flops(const struct lksi_call *call)
{
    return (double)lksi_desc_count(&call->in[0]) * 20.0 + (double)items(call) * 24.0;
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const int64_t cases[][3] = {{1, 1, 1},    {2, 3, 2},    {3, 1, 10},   {5, 4, 31},
                                       {2, 2, 32},   {4, 2, 33},   {2, 5, 96},   {1, 2, 100},
                                       {3, 1, 1000}, {2, 1, 4095}, {1, 2, 4096}, {2, 1, 4097},
                                       {1, 1, 12289}, {32, 20, 64}, {300, 1, 20011}};
    struct lksi_cross_entropy_attr *a = attr;
    int64_t classes;
    if (index >= 4 * ((int)LKSI_COUNT(cases) - (long_run ? 0 : 2)))
        return false;
    classes = cases[index / 4][2];
    a->smoothing = index % 2 == 1 ? 0.1 : 0.0;
    a->ignores = index % 4 >= 2 && classes > 1;
    a->n_weight = index % 4 >= 1 && classes <= LKS_LOSS_CLASSES ? (int)classes : 0;
    for (int i = 0; i < a->n_weight; i++)
        a->weight[i] = 0.5f + (float)(i % 7) * 0.25f;
    call->n_in = 2;
    if (cases[index / 4][1] == 1) {
        call->in[0] = lksi_desc_make(LKSI_F32, 2, cases[index / 4][0], classes);
        call->in[1] = lksi_desc_make(LKSI_I32, 1, cases[index / 4][0]);
    } else {
        call->in[0] = lksi_desc_make(LKSI_F32, 3, cases[index / 4][0], cases[index / 4][1], classes);
        call->in[1] = lksi_desc_make(LKSI_I32, 2, cases[index / 4][0], cases[index / 4][1]);
    }
    return true;
}

static bool test_case_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    if (!test_case(index, long_run, call, attr))
        return false;
    call->n_in = 3;
    call->in[2] = call->in[1];
    call->in[2].dtype = LKSI_F32;
    return true;
}

static const struct lksi_op softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .contract = "contract/softmax_cross_entropy.h",
    .dims = "cross_entropy_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 4,
    .attr_size = sizeof(struct lksi_cross_entropy_attr),
    .infer = infer,
    .items = items,
    .item = softmax_cross_entropy_item_c,
    .schedules = schedules,
    .grad = grad,
    .flops = flops,
    .test_case = test_case,
};

static const struct lksi_op softmax_cross_entropy_grad = {
    .name = "softmax_cross_entropy_grad",
    .contract = "contract/softmax_cross_entropy.h",
    .dims = "cross_entropy_dims",
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_cross_entropy_attr),
    .infer = infer_grad,
    .item = softmax_cross_entropy_grad_item_c,
    .test_case = test_case_grad,
};

const struct lksi_op *const lksi_ops_softmax_cross_entropy[] = {&softmax_cross_entropy, &softmax_cross_entropy_grad, NULL};
