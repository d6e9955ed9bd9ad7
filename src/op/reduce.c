/*
 * reduce.c - sums and means over axes, and expand, which repeats along axes; see op/reduce.h.
 */
#include <stdio.h>
#include <string.h>

#include "contract/reduce.h"
#include "op/attr.h"
#include "op/flat.h"
#include "op/reduce.h"
#include "op/shape.h"

LKSI_ITEM(sum, in[0], out[0])
LKSI_ITEM(mean, in[0], out[0])
LKSI_ITEM(sum_samples, in[0], out[0])
LKSI_ITEM(mean_samples, in[0], out[0])
LKSI_ITEM(expand, in[0], in[1], out[0])
LKSI_ITEM(expand_mean, in[0], in[1], out[0])

static const struct reduce_dims *dims_of(const struct lksi_call *call)
{
    return (const void *)call->dims.bytes;
}

static bool is_mean(const struct lksi_call *call)
{
    return strstr(call->op->name, "mean") != NULL;
}

/* ---- shapes ---- */

struct lksi_desc lksi_reduced(const struct lksi_desc *x, unsigned axes, bool keep)
{
    struct lksi_desc y = {.dtype = LKSI_F32};
    for (int k = 0; k < x->rank; k++) {
        bool off = (axes >> k & 1u) != 0;
        if (!off || keep)
            y.dim[y.rank++] = off ? 1 : x->dim[k];
    }
    if (y.rank == 0)
        y.dim[y.rank++] = 1;
    return y;
}

/* Axis of `size` elements `step` apart, inside the ones before; joins its neighbour if it can. */
static void push_axis(U32 *n, U32 *size, U64 *steps, int64_t count, U64 step, bool join)
{
    if (join) {
        size[*n - 1] *= (U32)count;
        steps[*n - 1] = step;
    } else {
        size[*n] = (U32)count;
        steps[(*n)++] = step;
    }
}

lks_status lksi_reduce_dims(struct lksi_call *call, const struct lksi_desc *x)
{
    const struct lksi_reduce_attr *a = call->attr;
    struct reduce_dims d = {.samples = 1, .positions = 1, .leaf = call->leaf};
    U64 large[LKSI_MAX_RANK], small[LKSI_MAX_RANK], step = 1, kept = 1;
    unsigned before = 0; /* the axis before: reduced or not */
    char text[96];
    if (a->axes == 0 || a->axes >> x->rank != 0)
        return lksi_fail(LKS_E_ARGUMENT, "%s: %s has no such axes (or none is named)",
                         call->op->name, lksi_desc_text(x, text));
    if (lksi_desc_count(x) > INT32_MAX)
        return lksi_fail(LKS_E_ARGUMENT, "%s: x is %s, less than 2^31 elements wanted",
                         call->op->name, lksi_desc_text(x, text));
    for (int k = x->rank; k-- > 0; step *= (U64)x->dim[k]) {
        bool off = (a->axes >> k & 1u) != 0;
        large[k] = step;
        small[k] = off ? 0 : kept;
        kept *= off ? 1 : (U64)x->dim[k];
    }
    for (int k = 0; k < x->rank; k++) {
        unsigned off = a->axes >> k & 1u;
        bool joint = k > 0 && off == before; /* `before` is kept, since GCC 12.2 at -O3 compares the
                                                shifted masks wrongly */
        before = off;
        push_axis(&d.n_all, d.all, d.all_step, x->dim[k], small[k], joint);
        if (off == 0) {
            push_axis(&d.n_kept, d.kept, d.kept_step, x->dim[k], large[k], joint);
        } else if (k == 0) {
            d.samples = (U32)x->dim[0];
            d.sample_step = large[0];
        } else {
            push_axis(&d.n_off, d.off, d.off_step, x->dim[k], large[k], joint && d.n_off > 0);
            d.positions *= (U32)x->dim[k];
        }
    }
    d.scale = (F32)(1.0 / ((double)d.samples * (double)d.positions));
    LKSI_SET_DIMS(call, reduce_dims, d);
    return LKS_OK;
}

static lks_status infer(struct lksi_call *call)
{
    const struct lksi_reduce_attr *a = call->attr;
    bool samples = strstr(call->op->name, "samples") != NULL;
    lks_status st = samples ? lksi_want_leaf(call) : LKS_OK;
    if (st == LKS_OK)
        st = lksi_want(call, 0, "x", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = lksi_reduce_dims(call, &call->in[0]);
    if (st != LKS_OK)
        return st;
    if (samples != ((a->axes & 1u) != 0))
        return lksi_fail(LKS_E_ARGUMENT, "%s: axis 0 is %sreduced, which is the work of %s",
                         call->op->name, samples ? "not " : "", samples ? "sum" : "sum_samples");
    call->out[0] = lksi_reduced(&call->in[0], a->axes, a->keep != 0);
    return LKS_OK;
}

static lks_status infer_expand(struct lksi_call *call)
{
    const struct lksi_reduce_attr *a = call->attr;
    lks_status st = lksi_want(call, 1, "like", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = lksi_reduce_dims(call, &call->in[1]);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 0, "v", lksi_reduced(&call->in[1], a->axes, a->keep != 0));
    if (st == LKS_OK)
        call->out[0] = call->in[1];
    return st;
}

/* ---- gradients: each is the other's ---- */

static lks_status apply_sum(struct lksi_builder *b, const struct lksi_reduce_attr *a, bool mean,
                            lksi_value x, lksi_value *y)
{
    static const char *const name[2][2] = {{"sum", "sum_samples"}, {"mean", "mean_samples"}};
    return b->apply(b, name[mean][a->axes & 1u], a, 1, &x, y);
}

static lks_status grad(const struct lksi_backward *g)
{
    return lksi_flow(g, 0, is_mean(g->call) ? "expand_mean" : "expand", g->call->attr, g->dout[0],
                     g->in[0]);
}

static lks_status grad_expand(const struct lksi_backward *g)
{
    if (!g->need[0])
        return LKS_OK;
    return apply_sum(g->b, g->call->attr, is_mean(g->call), g->dout[0], &g->din[0]);
}

lks_status lksi_sum(struct lksi_builder *b, lksi_value x, unsigned axes, bool keep, lksi_value *y)
{
    struct lksi_reduce_attr a;
    memset(&a, 0, sizeof a);
    a.axes = axes;
    a.keep = keep;
    *y = x;
    return axes == 0 ? LKS_OK : apply_sum(b, &a, false, x, y);
}

lks_status lksi_expand(struct lksi_builder *b, lksi_value v, lksi_value like, unsigned axes,
                       bool keep, lksi_value *y)
{
    struct lksi_reduce_attr a;
    lksi_value pair[2] = {v, like};
    memset(&a, 0, sizeof a);
    a.axes = axes;
    a.keep = keep;
    *y = v;
    return axes == 0 ? LKS_OK : b->apply(b, "expand", &a, 2, pair, y);
}

/* ---- schedules ---- */

/* The layout is [blocks][positions][width]; width 1: whole rows. */
static U32 width_of(const struct reduce_dims *d)
{
    if (d->n_off != 1)
        return 0;
    return (U32)d->off_step[0];
}

static const char *declines_rows(const struct lksi_call *call, const struct lksi_limits *dev)
{
    if (dev->type != LKSI_DEV_CPU)
        return "made for CPU devices";
    return width_of(dims_of(call)) == 1 ? NULL : "the reduced axes are not the last";
}

static const char *declines_lanes(const struct lksi_call *call, const struct lksi_limits *dev)
{
    const char *why = lksi_lanes_declines(call, dev);
    return why != NULL || width_of(dims_of(call)) == 1 ? why : "the reduced axes are not the last";
}

static const char *declines_columns(const struct lksi_call *call, const struct lksi_limits *dev)
{
    const struct reduce_dims *d = dims_of(call);
    if (dev->type != LKSI_DEV_CPU)
        return "made for CPU devices";
    if (width_of(d) < 2)
        return "no columns";
    return d->positions <= LKS_ROW_PIECE ? NULL : "more than one piece a row";
}

static const char *declines_leaves(const struct lksi_call *call, const struct lksi_limits *dev)
{
    const struct reduce_dims *d = dims_of(call);
    uint64_t leaves = lks_leaf_make(d->samples, d->positions, 1, d->leaf).leaves;
    return leaves * (uint64_t)lksi_desc_count(&call->out[0]) * sizeof(F32) > dev->max_alloc
               ? "the partial sums take too much memory"
               : NULL;
}

static struct lksi_launch *add_launch(const struct lksi_call *call, struct lksi_recipe *r,
                                      const char *kernel, const char *defines)
{
    struct lksi_launch *l = &r->launch[r->n_launch++];
    l->source = "op/reduce.cl";
    l->kernel = kernel;
    snprintf(l->defines, sizeof l->defines, "%s%s", defines, is_mean(call) ? " MEAN" : "");
    l->dims = 1;
    return l;
}

static void recipe_rows(const struct lksi_call *call, const struct lksi_limits *dev,
                        struct lksi_recipe *r)
{
    bool gpu = dev->type == LKSI_DEV_GPU;
    struct lksi_launch *l =
        add_launch(call, r, gpu ? "lanes" : "rows", gpu ? "LANES" : "ROWS");
    l->arg[l->n_arg++] = LKSI_IN(0);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->local[0] = gpu ? 32 : 1;
    l->global[0] = (size_t)lksi_desc_count(&call->out[0]) * l->local[0];
}

static void recipe_columns(const struct lksi_call *call, const struct lksi_limits *dev,
                           struct lksi_recipe *r)
{
    U32 width = width_of(dims_of(call)), vec = lksi_lanes(width);
    struct lksi_launch *l;
    char defines[32];
    (void)dev;
    snprintf(defines, sizeof defines, "COLUMNS VEC=%u", vec);
    l = add_launch(call, r, "columns", defines);
    l->arg[l->n_arg++] = LKSI_IN(0);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_U32(width);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->dims = 2;
    l->local[0] = l->local[1] = 1;
    l->global[0] = (width + vec - 1) / vec;
    l->global[1] = (size_t)lksi_desc_count(&call->out[0]) / width;
}

static void recipe_leaves(const struct lksi_call *call, const struct lksi_limits *dev,
                          struct lksi_recipe *r)
{
    const struct reduce_dims *d = dims_of(call);
    uint32_t leaves = lks_leaf_make(d->samples, d->positions, 1, d->leaf).leaves;
    U64 outputs = (U64)lksi_desc_count(&call->out[0]);
    bool run = d->n_kept > 0 && d->kept_step[d->n_kept - 1] == 1, gpu = dev->type == LKSI_DEV_GPU;
    U32 length = run ? d->kept[d->n_kept - 1] : 1, vec = gpu ? 1 : lksi_lanes(length);
    size_t vectors = (size_t)(outputs / length * ((length + vec - 1) / vec));
    size_t lx = gpu ? lksi_group(dev, 32) : 1, tx = lksi_group(dev, gpu ? 64 : 16);
    struct lksi_launch *l;
    char defines[48];
    snprintf(defines, sizeof defines, "LEAVES VEC=%u%s", vec, d->n_off == 1 ? " PLAIN" : "");
    l = add_launch(call, r, "leaves", defines);
    l->arg[l->n_arg++] = LKSI_IN(0);
    l->arg[l->n_arg++] = LKSI_WORK(0);
    l->arg[l->n_arg++] = LKSI_U32(length);
    l->arg[l->n_arg++] = LKSI_U64(outputs);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->dims = 2;
    l->local[0] = lx;
    l->local[1] = 1;
    l->global[0] = (vectors + lx - 1) / lx * lx;
    l->global[1] = leaves;
    r->n_work = 1;
    r->work_bytes[0] = (uint64_t)leaves * outputs * sizeof(F32);
    l = add_launch(call, r, "tree", "TREE");
    l->arg[l->n_arg++] = LKSI_WORK(0);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_U64(outputs);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->local[0] = tx;
    l->global[0] = (size_t)(outputs + tx - 1) / tx * tx;
}

static void recipe_runs(const struct lksi_call *call, const struct lksi_limits *dev,
                        struct lksi_recipe *r)
{
    const struct reduce_dims *d = dims_of(call);
    struct lksi_launch *l = add_launch(call, r, "runs", "RUNS");
    (void)dev;
    l->arg[l->n_arg++] = LKSI_IN(0);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->local[0] = 1;
    l->global[0] = (size_t)lksi_desc_count(&call->out[0]) / d->all[d->n_all - 1];
}

static const struct lksi_schedule schedules[] = {{"cpu", declines_rows, recipe_rows},
                                                 {"columns", declines_columns, recipe_columns},
                                                 {"gpu", declines_lanes, recipe_rows},
                                                 {NULL, NULL, NULL}};
static const struct lksi_schedule schedules_samples[] = {
    {"leaves", declines_leaves, recipe_leaves}, {NULL, NULL, NULL}};
static const struct lksi_schedule schedules_expand[] = {{"cpu", lksi_cpu_declines, recipe_runs},
                                                        {NULL, NULL, NULL}};

static double flops(const struct lksi_call *call)
{
    return (double)lksi_desc_count(&call->in[0]);
}

/* ---- tests ---- */

static bool shape_case(int index, bool long_run, bool samples, struct lksi_call *call, void *attr)
{
    static const struct {
        unsigned axes;
        int rank;
        int64_t dim[5];
    } cases[] = {
        {2, 2, {1, 1}},          {2, 2, {5, 17}},          {2, 2, {3, 64}},
        {2, 2, {7, 4095}},       {2, 2, {2, 4097}},        {2, 2, {2, 12289}},
        {2, 3, {3, 33, 17}},     {2, 3, {2, 5, 3}},        {2, 3, {2, 65, 64}},
        {6, 3, {3, 9, 11}},      {4, 3, {3, 40, 31}},      {6, 4, {2, 7, 8, 16}},
        {10, 4, {2, 3, 5, 35}},  {18, 5, {2, 3, 4, 5, 6}}, {2, 3, {1, 4100, 19}},
        {8, 4, {4, 16, 16, 96}}, {14, 4, {2, 64, 63, 5}},  {4, 4, {3, 2, 37, 1}},
        {6, 4, {8, 28, 28, 64}},
    };
    struct lksi_reduce_attr *a = attr;
    if (index >= (int)LKSI_COUNT(cases) - (long_run ? 0 : 1))
        return false;
    a->axes = cases[index].axes | (samples ? 1u : 0u);
    if (samples && index % 4 == 1) /* the samples alone */
        a->axes = 1;
    a->keep = index % 2;
    call->leaf = index % 3 == 0 ? 8 : index % 3 == 1 ? 1 : 4;
    call->n_in = 1;
    call->in[0] = (struct lksi_desc){.dtype = LKSI_F32, .rank = cases[index].rank};
    memcpy(call->in[0].dim, cases[index].dim, sizeof cases[index].dim);
    if (samples && index % 2 == 0) /* more samples than a block */
        call->in[0].dim[0] += 9;
    return true;
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    return shape_case(index, long_run, false, call, attr);
}

static bool test_case_samples(int index, bool long_run, struct lksi_call *call, void *attr)
{
    return shape_case(index, long_run, true, call, attr);
}

static bool test_case_expand(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_reduce_attr *a = attr;
    if (!shape_case(index / 2, long_run, index % 2 != 0, call, attr))
        return false;
    call->n_in = 2;
    call->in[1] = call->in[0];
    call->in[0] = lksi_reduced(&call->in[1], a->axes, a->keep != 0);
    return true;
}

#define SUM(NAME, TABLE, CASES, SAMPLES)                                                           \
    static const struct lksi_op NAME = {                                                           \
        .name = #NAME,                                                                             \
        .contract = "contract/reduce.h",                                                           \
        .dims = "reduce_dims",                                                                     \
        .min_in = 1,                                                                               \
        .max_in = 1,                                                                               \
        .n_out = 1,                                                                                \
        .attr_size = sizeof(struct lksi_reduce_attr),                                              \
        .sums_samples = SAMPLES,                                                                   \
        .infer = infer,                                                                            \
        .item = NAME##_item_c,                                                                     \
        .schedules = TABLE,                                                                        \
        .grad = grad,                                                                              \
        .flops = flops,                                                                            \
        .test_case = CASES,                                                                        \
    }
#define EXPAND(NAME)                                                                               \
    static const struct lksi_op NAME = {                                                           \
        .name = #NAME,                                                                             \
        .contract = "contract/reduce.h",                                                           \
        .dims = "reduce_dims",                                                                     \
        .min_in = 2,                                                                               \
        .max_in = 2,                                                                               \
        .n_out = 1,                                                                                \
        .attr_size = sizeof(struct lksi_reduce_attr),                                              \
        .infer = infer_expand,                                                                     \
        .item = NAME##_item_c,                                                                     \
        .schedules = schedules_expand,                                                             \
        .grad = grad_expand,                                                                       \
        .test_case = test_case_expand,                                                             \
    }

SUM(sum, schedules, test_case, 0);
SUM(mean, schedules, test_case, 0);
SUM(sum_samples, schedules_samples, test_case_samples, 1);
SUM(mean_samples, schedules_samples, test_case_samples, 0);
EXPAND(expand);
EXPAND(expand_mean);

const struct lksi_op *const lksi_ops_reduce[] = {&sum,    &mean,        &sum_samples, &mean_samples,
                                                 &expand, &expand_mean, NULL};
