/*
 * group_norm.c - group, layer and instance normalisation and their gradients.
 */
#include <stdio.h>
#include <string.h>

#include "contract/group_norm.h"
#include "contract/group_norm_second.h"
#include "op/attr.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(group_norm, in[0], in[1], in[2], out[0], out[1], out[2])
LKSI_ITEM(group_norm_grad, in[0], in[1], in[2], in[3], in[4], out[0])
LKSI_ITEM(group_norm_param_grad, in[0], in[1], in[2], in[3], out[0], out[1])
LKSI_ITEM(group_norm_second, in[0], in[1], in[2], in[3], in[4], in[5], out[0], out[1], out[2])

static const struct group_norm_dims *dims_of(const struct lksi_call *call)
{
    return (const struct group_norm_dims *)(const void *)call->dims.bytes;
}

/* ---- shapes ---- */

static lks_status want_image(struct lksi_call *call)
{
    const struct lksi_group_norm_attr *a = call->attr;
    const struct lksi_desc *x = &call->in[0];
    char text[96];
    lks_status st = lksi_want_leaf(call);
    if (st == LKS_OK)
        st = lksi_want(call, 0, "x", LKSI_F32, 2, 4);
    if (st != LKS_OK)
        return st;
    int64_t c = x->dim[x->rank - 1], size = lksi_desc_count(x) / x->dim[0];
    if (a->groups < 1 || c % a->groups != 0 || (a->layer != 0 && a->groups != 1))
        return lksi_fail(LKS_E_ARGUMENT, "%s: %lld channels do not divide into %lld groups",
                         call->op->name, (long long)c, (long long)a->groups);
    if (!(a->eps >= 0.0f) || a->eps > 1e30f || size > INT32_MAX)
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: x is %s, eps %g; eps of 0 or more and samples of less "
                         "than 2^31 elements wanted",
                         call->op->name, lksi_desc_text(x, text), (double)a->eps);
    struct group_norm_dims d = {.n = (U32)x->dim[0],
                                .h = x->rank > 2 ? (U32)x->dim[1] : 1u,
                                .w = x->rank == 4 ? (U32)x->dim[2] : 1u,
                                .c = (U32)c,
                                .leaf = call->leaf,
                                .groups = (U32)a->groups,
                                .cg = (U32)(c / a->groups),
                                .layer = (U32)a->layer,
                                .eps = a->eps};
    d.places = a->layer != 0 ? 1u : d.h * d.w;
    d.count = (F32)((double)d.places * d.cg);
    d.inverse = (F32)(1.0 / ((double)d.places * d.cg));
    LKSI_SET_DIMS(call, group_norm_dims, d);
    return LKS_OK;
}

static struct lksi_desc channels(const struct lksi_call *call)
{
    return lksi_desc_make(LKSI_F32, 1, call->in[0].dim[call->in[0].rank - 1]);
}

/* Samples, or positions of a layer norm. */
static U64 items(const struct lksi_call *call)
{
    const struct group_norm_dims *d = dims_of(call);
    return (U64)d->n * d->h * d->w / d->places;
}

static struct lksi_desc rows(const struct lksi_call *call)
{
    return lksi_desc_make(LKSI_F32, 2, (int64_t)items(call), (int64_t)dims_of(call)->groups);
}

static lks_status infer(struct lksi_call *call)
{
    lks_status st = want_image(call);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "gamma", channels(call));
    if (st == LKS_OK)
        st = lksi_want_desc(call, 2, "beta", channels(call));
    if (st != LKS_OK)
        return st;
    call->out[0] = call->in[0];
    call->out[1] = call->out[2] = rows(call);
    return LKS_OK;
}

static lks_status want_saved(struct lksi_call *call)
{
    lks_status st = want_image(call);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "dy", call->in[0]);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 2, "the mean", rows(call));
    return st == LKS_OK ? lksi_want_desc(call, 3, "invstd", rows(call)) : st;
}

static lks_status infer_grad(struct lksi_call *call)
{
    lks_status st = want_saved(call);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 4, "gamma", channels(call));
    if (st == LKS_OK)
        call->out[0] = call->in[0];
    return st;
}

static lks_status infer_param(struct lksi_call *call)
{
    lks_status st = want_saved(call);
    if (st == LKS_OK)
        call->out[0] = call->out[1] = channels(call);
    return st;
}

static lks_status infer_second(struct lksi_call *call)
{
    lks_status st = infer_grad(call);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 5, "u", call->in[0]);
    if (st == LKS_OK)
        call->out[1] = call->out[2] = call->in[0];
    return st;
}

/* ---- gradient ---- */

static lks_status grad(const struct lksi_backward *g)
{
    const lksi_value *in = g->in, *out = g->out, *dout = g->dout;
    lksi_value two[2];
    lks_status st;
    if (dout[1] != LKSI_NONE || dout[2] != LKSI_NONE)
        return lksi_fail(LKS_E_ARGUMENT, "group_norm: only y has a gradient, not the statistics");
    st = lksi_flow(g, 0, "group_norm_grad", g->call->attr, in[0], dout[0], out[1], out[2], in[1]);
    if (st != LKS_OK || !(g->need[1] || g->need[2]))
        return st;
    st = lksi_apply(g->b, "group_norm_param_grad", g->call->attr, two, in[0], dout[0], out[1],
                    out[2]);
    for (int k = 0; k < 2 && st == LKS_OK; k++)
        g->din[1 + k] = two[k];
    return st;
}

/* x, dy, mean, invstd, gamma. What flows through mean and invstd is in the gradient of x. */
static lks_status grad_grad(const struct lksi_backward *g)
{
    const lksi_value *in = g->in;
    lksi_value three[3];
    lks_status st = lksi_apply(g->b, "group_norm_second", g->call->attr, three, in[0], in[1], in[2],
                               in[3], in[4], g->dout[0]);
    if (st != LKS_OK)
        return st;
    for (int k = 0; k < 2; k++)
        g->din[k] = g->need[k] ? three[k] : LKSI_NONE;
    return lksi_flow(g, 4, "bias_grad", NULL, three[2]);
}

/* ---- schedules ---- */

static const char *declines_rows(const struct lksi_call *call, const struct lksi_limits *dev)
{
    const struct group_norm_dims *d = dims_of(call);
    if (dev->type != LKSI_DEV_CPU)
        return "made for CPU devices";
    return d->groups == 1 || d->cg % 32 == 0 ? NULL : "groups of no multiple of 32 channels";
}

static struct lksi_launch *add_launch(struct lksi_recipe *r, const char *kernel)
{
    struct lksi_launch *l = &r->launch[r->n_launch++];
    l->source = "op/group_norm.cl";
    l->kernel = kernel;
    return l;
}

static void all_arguments(const struct lksi_call *call, struct lksi_launch *l)
{
    for (int i = 0; i < call->n_in; i++)
        l->arg[l->n_arg++] = LKSI_IN(i);
    for (int j = 0; j < call->n_out; j++)
        l->arg[l->n_arg++] = LKSI_OUT(j);
    l->arg[l->n_arg++] = LKSI_DIMS;
}

static void recipe_rows(const struct lksi_call *call, const struct lksi_limits *dev,
                        struct lksi_recipe *r)
{
    const struct group_norm_dims *d = dims_of(call);
    struct lksi_launch *l = add_launch(r, "rows");
    (void)dev;
    snprintf(l->defines, sizeof l->defines, "ROWS VEC=%u%s%s", lksi_lanes(d->cg),
             d->groups == 1 ? " RUN" : "", call->n_in == 5 ? " GRAD" : "");
    all_arguments(call, l);
    l->dims = 1;
    l->local[0] = 1;
    l->global[0] = (size_t)(items(call) * d->groups);
}

static void recipe_lanes(const struct lksi_call *call, const struct lksi_limits *dev,
                         struct lksi_recipe *r)
{
    struct lksi_launch *l = add_launch(r, "lanes");
    (void)dev;
    snprintf(l->defines, sizeof l->defines, "LANES%s", call->n_in == 5 ? " GRAD" : "");
    all_arguments(call, l);
    l->dims = 1;
    l->local[0] = 32;
    l->global[0] = (size_t)(items(call) * dims_of(call)->groups * 32);
}

static void recipe_param(const struct lksi_call *call, const struct lksi_limits *dev,
                         struct lksi_recipe *r)
{
    const struct group_norm_dims *d = dims_of(call);
    uint32_t leaves = lks_leaf_make(d->n, d->h, d->w, d->leaf).leaves;
    size_t group = dev->type == LKSI_DEV_GPU ? lksi_group(dev, 32) : 16;
    struct lksi_launch *l = add_launch(r, "leaves");
    group = lksi_group(dev, group);
    snprintf(l->defines, sizeof l->defines, "LEAVES");
    for (int i = 0; i < 4; i++)
        l->arg[l->n_arg++] = LKSI_IN(i);
    l->arg[l->n_arg++] = LKSI_WORK(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->dims = 2;
    l->local[0] = group;
    l->local[1] = 1;
    l->global[0] = (d->c + group - 1) / group * group;
    l->global[1] = leaves;
    r->n_work = 1;
    r->work_bytes[0] = (uint64_t)leaves * 2 * d->c * sizeof(F32);
    l = add_launch(r, "tree");
    snprintf(l->defines, sizeof l->defines, "TREE");
    l->arg[l->n_arg++] = LKSI_WORK(0);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_OUT(1);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->dims = 1;
    l->local[0] = group;
    l->global[0] = (d->c + group - 1) / group * group;
}

static const struct lksi_schedule schedules[] = {
    {"cpu", declines_rows, recipe_rows},
    {"gpu", lksi_lanes_declines, recipe_lanes},
    {NULL, NULL, NULL}};
static const struct lksi_schedule schedules_param[] = {
    {"cpu", lksi_cpu_declines, recipe_param},
    {"gpu", lksi_gpu_declines, recipe_param},
    {NULL, NULL, NULL}};

/* ---- the C loops: the items, compiled for the clone that runs them ---- */

LKSI_CLONES static void ref(const struct lksi_call *call, const void *const *in, void *const *out,
                            U64 p0, U64 p1)
{
    for (U64 p = p0; p < p1; p++)
        group_norm_item(in[0], in[1], in[2], out[0], out[1], out[2], dims_of(call), p);
}

LKSI_CLONES static void ref_grad(const struct lksi_call *call, const void *const *in,
                                 void *const *out, U64 p0, U64 p1)
{
    for (U64 p = p0; p < p1; p++)
        group_norm_grad_item(in[0], in[1], in[2], in[3], in[4], out[0], dims_of(call), p);
}

LKSI_CLONES static void ref_param(const struct lksi_call *call, const void *const *in,
                                  void *const *out, U64 p0, U64 p1)
{
    for (U64 p = p0; p < p1; p++)
        group_norm_param_grad_item(in[0], in[1], in[2], in[3], out[0], out[1], dims_of(call), p);
}

static U64 param_parts(const struct lksi_call *call)
{
    return dims_of(call)->c;
}

static double flops(const struct lksi_call *call)
{
    return 8.0 * (double)lksi_desc_count(&call->in[0]);
}

/* ---- cases of the harness ---- */

/* Without height and width a vector, without width a sequence. */
static struct lksi_desc shape(int64_t n, int64_t h, int64_t w, int64_t c)
{
    return h == 0   ? lksi_desc_make(LKSI_F32, 2, n, c)
           : w == 0 ? lksi_desc_make(LKSI_F32, 3, n, h, c)
                    : lksi_desc_make(LKSI_F32, 4, n, h, w, c);
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const struct {
        uint32_t leaf;
        int64_t n, h, w, c, groups;
        int layer;
        float eps;
    } cases[] = {
        {8, 1, 0, 0, 1, 1, 0, 0.5f},      {1, 5, 0, 0, 17, 1, 1, 1e-3f},
        {8, 3, 0, 0, 31, 1, 0, 1e-5f},    {8, 9, 0, 0, 32, 1, 1, 1e-5f},
        {2, 7, 0, 0, 66, 2, 0, 1e-5f},    {8, 17, 0, 0, 512, 8, 0, 1e-5f},
        {8, 2, 0, 0, 4097, 1, 1, 1e-5f},  {8, 3, 5, 7, 6, 6, 0, 1e-3f},
        {8, 3, 9, 8, 12, 3, 0, 1e-5f},    {4, 5, 4, 3, 64, 2, 0, 1e-5f},
        {8, 2, 33, 32, 20, 1, 0, 1e-5f},  {8, 3, 7, 5, 48, 1, 1, 1e-5f},
        {8, 1, 65, 64, 33, 33, 0, 1e-5f}, {1, 2, 40, 27, 96, 3, 0, 1e-5f},
        {8, 5, 33, 0, 64, 1, 1, 1e-5f},   {8, 3, 1030, 0, 9, 3, 0, 1e-5f},
        {8, 13, 3, 3, 40, 1, 0, 1e-5f},   {8, 64, 28, 28, 64, 8, 0, 1e-5f},
        {8, 32, 28, 28, 96, 1, 1, 1e-5f},
    };
    struct lksi_group_norm_attr *a = attr;
    if (index >= (int)LKSI_COUNT(cases) - (long_run ? 0 : 2))
        return false;
    call->leaf = cases[index].leaf;
    call->n_in = 3;
    call->in[0] = shape(cases[index].n, cases[index].h, cases[index].w, cases[index].c);
    call->in[1] = call->in[2] = channels(call);
    a->groups = cases[index].groups;
    a->layer = cases[index].layer;
    a->eps = cases[index].eps;
    return true;
}

static bool test_case_param(int index, bool long_run, struct lksi_call *call, void *attr)
{
    const struct lksi_group_norm_attr *a = attr;
    if (!test_case(index, long_run, call, attr))
        return false;
    const struct lksi_desc *x = &call->in[0];
    int64_t positions = lksi_desc_count(x) / x->dim[x->rank - 1];
    call->n_in = 4;
    call->in[1] = *x;
    call->in[2] = call->in[3] =
        lksi_desc_make(LKSI_F32, 2, a->layer != 0 ? positions : x->dim[0], a->groups);
    return true;
}

static bool test_case_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    if (!test_case_param(index, long_run, call, attr))
        return false;
    call->n_in = 5;
    call->in[4] = channels(call);
    return true;
}

static bool test_case_second(int index, bool long_run, struct lksi_call *call, void *attr)
{
    if (!test_case_grad(index, long_run, call, attr))
        return false;
    call->n_in = 6;
    call->in[5] = call->in[0];
    return true;
}

static const struct lksi_op group_norm = {
    .name = "group_norm",
    .contract = "contract/group_norm.h",
    .dims = "group_norm_dims",
    .min_in = 3,
    .max_in = 3,
    .n_out = 3,
    .attr_size = sizeof(struct lksi_group_norm_attr),
    .infer = infer,
    .items = items,
    .item = group_norm_item_c,
    .ref_parts = items,
    .ref = ref,
    .schedules = schedules,
    .grad = grad,
    .flops = flops,
    .test_case = test_case,
};

static const struct lksi_op group_norm_grad = {
    .name = "group_norm_grad",
    .contract = "contract/group_norm.h",
    .dims = "group_norm_dims",
    .min_in = 5,
    .max_in = 5,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_group_norm_attr),
    .infer = infer_grad,
    .items = items,
    .item = group_norm_grad_item_c,
    .ref_parts = items,
    .ref = ref_grad,
    .schedules = schedules,
    .saved = 12,
    .grad = grad_grad,
    .flops = flops,
    .test_case = test_case_grad,
};

static const struct lksi_op group_norm_param_grad = {
    .name = "group_norm_param_grad",
    .contract = "contract/group_norm.h",
    .dims = "group_norm_dims",
    .min_in = 4,
    .max_in = 4,
    .n_out = 2,
    .attr_size = sizeof(struct lksi_group_norm_attr),
    .sums_samples = 15,
    .infer = infer_param,
    .item = group_norm_param_grad_item_c,
    .ref_parts = param_parts,
    .ref = ref_param,
    .schedules = schedules_param,
    .flops = flops,
    .test_case = test_case_param,
};

static const struct lksi_op group_norm_second = {
    .name = "group_norm_second",
    .contract = "contract/group_norm_second.h",
    .dims = "group_norm_dims",
    .min_in = 6,
    .max_in = 6,
    .n_out = 3,
    .attr_size = sizeof(struct lksi_group_norm_attr),
    .infer = infer_second,
    .items = items,
    .item = group_norm_second_item_c,
    .flops = flops,
    .test_case = test_case_second,
};

const struct lksi_op *const lksi_ops_group_norm[] = {
    &group_norm, &group_norm_grad, &group_norm_param_grad, &group_norm_second, NULL};
