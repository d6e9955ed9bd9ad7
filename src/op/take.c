/*
 * take.c - take and take_pixels: batches out of a data set on the device.
 */
#include <stdio.h>
#include <string.h>

#include "contract/take.h"
#include "op/attr.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(take, in[0], in[1], out[0])
LKSI_ITEM(take_pixels, in[0], in[1], in[2], out[0])

static lks_status infer(struct lksi_call *call)
{
    struct lksi_desc y = call->in[0];
    lks_status st = lksi_want(call, 0, "x", call->in[0].dtype, 1, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = lksi_want(call, 1, "which", LKSI_I32, 1, 1);
    if (st != LKS_OK)
        return st;
    y.dim[0] = call->in[1].dim[0];
    call->out[0] = y;
    LKSI_SET_DIMS(call, take_dims, {(U64)(lksi_desc_count(&y) / y.dim[0]), 1u});
    return LKS_OK;
}

/* As many words as the batch would take are the least that a data set has. */
static lks_status infer_pixels(struct lksi_call *call)
{
    const struct lksi_pixels_attr *a = call->attr;
    struct lksi_desc y = {.dtype = LKSI_F32, .rank = a->rank};
    int64_t n = 1;
    lks_status st = lksi_want(call, 1, "which", LKSI_I32, 1, 1);
    if (st != LKS_OK)
        return st;
    if (a->rank < 1 || a->rank > LKSI_MAX_RANK || a->dim[0] != call->in[1].dim[0])
        return lksi_fail(LKS_E_ARGUMENT, "take_pixels: %d dimensions, the first %lld; 1 to %d wanted, "
                                         "the first the length of `which`",
                         a->rank, (long long)a->dim[0], LKSI_MAX_RANK);
    for (int k = 0; k < a->rank; k++) {
        if (a->dim[k] < 1 || a->dim[k] > INT32_MAX || n > INT64_MAX / a->dim[k])
            return lksi_fail(LKS_E_ARGUMENT, "take_pixels: dimension %d is %lld", k,
                             (long long)a->dim[k]);
        y.dim[k] = a->dim[k];
        n *= a->dim[k];
    }
    if (a->channels < 1 || n / a->dim[0] % a->channels != 0)
        return lksi_fail(LKS_E_ARGUMENT, "take_pixels: %d channels", a->channels);
    st = lksi_want(call, 0, "x", LKSI_I32, 1, 1);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 2, "the table",
                            lksi_desc_make(LKSI_F32, 1, (int64_t)256 * a->channels));
    if (st != LKS_OK)
        return st;
    if (4 * call->in[0].dim[0] < n / a->dim[0])
        return lksi_fail(LKS_E_ARGUMENT, "take_pixels: x holds %lld words, a sample has %lld bytes",
                         (long long)call->in[0].dim[0], (long long)(n / a->dim[0]));
    call->out[0] = y;
    LKSI_SET_DIMS(call, take_dims, {(U64)(n / a->dim[0]), (U32)a->channels});
    return LKS_OK;
}

/* ---- the schedule: each work-item takes `chunk` neighbours of one sample ---- */

static const struct take_dims *dims_of(const struct lksi_call *call)
{
    return (const void *)call->dims.bytes;
}

static const char *declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    (void)dev;
    return lksi_desc_count(&call->out[0]) > INT32_MAX ? "more than 2^31 elements" : NULL;
}

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    struct lksi_launch *l = &r->launch[0];
    const struct take_dims *d = dims_of(call);
    bool gpu = dev->type == LKSI_DEV_GPU, pixels = call->n_in == 3;
    U64 chunk = gpu ? 4 : 8192, per = (d->size + chunk - 1) / chunk;
    U64 n = (U64)call->out[0].dim[0], items = n * per;
    size_t group = gpu ? lksi_group(dev, 128) : 1;
    r->n_launch = 1;
    l->source = "op/take.cl";
    l->kernel = pixels ? "take_pixels" : "take";
    snprintf(l->defines, sizeof l->defines, "VEC=%d WHOLE=%d%s", gpu ? 4 : 16, d->size % 4 == 0,
             pixels ? " PIXELS" : "");
    for (int i = 0; i < call->n_in; i++)
        l->arg[l->n_arg++] = LKSI_IN(i);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_U32(n);
    l->arg[l->n_arg++] = LKSI_U32(d->size);
    l->arg[l->n_arg++] = LKSI_U32(chunk);
    l->arg[l->n_arg++] = LKSI_U32(per);
    if (pixels)
        l->arg[l->n_arg++] = LKSI_U32(d->c);
    l->dims = 1;
    l->local[0] = group;
    l->global[0] = (size_t)((items + group - 1) / group * group);
}

static const struct lksi_schedule schedules[] = {{"flat", declines, recipe}, {NULL, NULL, NULL}};

/* ---- tests ---- */

/* A sample of [w, c] out of `all`. */
struct take_case {
    int64_t all, n, w, c;
};

static bool next_case(int index, bool long_run, struct take_case *c)
{
    static const struct take_case cases[] = {
        {1, 1, 1, 1},    {3, 1, 5, 3},     {7, 9, 1, 1},      {130, 129, 1, 1},   {9, 5, 7, 3},
        {64, 16, 28, 28}, {5, 3, 1021, 3}, {4, 8, 2049, 4},   {3, 2, 4099, 2},    {2, 3, 8192, 1},
        {2, 3, 8195, 1}, {11, 33, 17, 1}, {40, 64, 40000, 3},
    };
    if (index >= (int)LKSI_COUNT(cases) - (long_run ? 0 : 1))
        return false;
    *c = cases[index];
    return true;
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct take_case c;
    (void)attr;
    if (!next_case(index, long_run, &c))
        return false;
    call->n_in = 2;
    call->in[0] = lksi_desc_make(index % 3 == 0 ? LKSI_I32 : LKSI_F32, 3, c.all, c.w, c.c);
    call->in[1] = lksi_desc_make(LKSI_I32, 1, c.n);
    return true;
}

static bool test_case_pixels(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_pixels_attr *a = attr;
    struct take_case c;
    if (!next_case(index, long_run, &c))
        return false;
    a->rank = 3;
    a->dim[0] = c.n;
    a->dim[1] = c.w;
    a->dim[2] = c.c;
    a->channels = (int32_t)c.c;
    call->n_in = 3;
    call->in[0] = lksi_desc_make(LKSI_I32, 1, (c.all * c.w * c.c + 3) / 4);
    call->in[1] = lksi_desc_make(LKSI_I32, 1, c.n);
    call->in[2] = lksi_desc_make(LKSI_F32, 1, 256 * c.c);
    return true;
}

/* Numbers of samples that are there, and any bytes. */
static uint32_t test_input(const struct lksi_call *call, int index, uint32_t bits)
{
    uint64_t words = (uint64_t)lksi_desc_count(&call->in[0]), size = dims_of(call)->size;
    uint32_t mixed = (bits + 1u) * 2654435761u;
    if (index == 1)
        return (uint32_t)((mixed >> 3) % (words * (call->n_in == 3 ? 4 : 1) / size));
    return index == 0 && call->n_in == 3 ? mixed : bits;
}

static const struct lksi_op take = {
    .name = "take",
    .contract = "contract/take.h",
    .dims = "take_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .infer = infer,
    .item = take_item_c,
    .schedules = schedules,
    .test_case = test_case,
    .test_input = test_input,
};

static const struct lksi_op take_pixels = {
    .name = "take_pixels",
    .contract = "contract/take.h",
    .dims = "take_dims",
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_pixels_attr),
    .infer = infer_pixels,
    .item = take_pixels_item_c,
    .schedules = schedules,
    .test_case = test_case_pixels,
    .test_input = test_input,
};

const struct lksi_op *const lksi_ops_take[] = {&take, &take_pixels, NULL};
