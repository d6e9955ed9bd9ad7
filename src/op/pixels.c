/*
 * pixels.c - bytes as floats, by a table: how pictures come to the device in a quarter of the bytes.
 */
#include <string.h>

#include "contract/pixels.h"
#include "op/attr.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(pixels, in[0], in[1], out[0])

static lks_status infer(struct lksi_call *call)
{
    const struct lksi_pixels_attr *a = call->attr;
    struct lksi_desc y = {.dtype = LKSI_F32, .rank = a->rank};
    lks_status st = LKS_OK;
    int64_t n = 1;
    if (a->rank < 1 || a->rank > LKSI_MAX_RANK)
        return lksi_fail(LKS_E_ARGUMENT, "pixels: %d dimensions, 1 to %d wanted", a->rank,
                         LKSI_MAX_RANK);
    for (int k = 0; k < a->rank; k++) {
        if (a->dim[k] < 1 || a->dim[k] > INT32_MAX || n > INT64_MAX / a->dim[k])
            return lksi_fail(LKS_E_ARGUMENT, "pixels: dimension %d is %lld", k,
                             (long long)a->dim[k]);
        y.dim[k] = a->dim[k];
        n *= a->dim[k];
    }
    if (a->channels < 1 || n % a->channels != 0)
        return lksi_fail(LKS_E_ARGUMENT, "pixels: %d channels", a->channels);
    st = lksi_want_desc(call, 0, "x", lksi_desc_make(LKSI_I32, 1, (n + 3) / 4));
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "the table",
                            lksi_desc_make(LKSI_F32, 1, (int64_t)256 * a->channels));
    if (st != LKS_OK)
        return st;
    call->out[0] = y;
    LKSI_SET_DIMS(call, pixels_dims, {(U64)n, (U32)a->channels});
    return LKS_OK;
}

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    const struct lksi_pixels_attr *a = call->attr;
    struct lksi_launch *l = &r->launch[0];
    lksi_flat_recipe(call, dev, "op/pixels.cl", "pixels", r);
    l->arg[l->n_arg++] = LKSI_U32(a->channels);
}

static const struct lksi_schedule schedules[] = {{"flat", lksi_flat_declines, recipe},
                                                 {NULL, NULL, NULL}};

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const int64_t cases[][3] = {{1, 1, 1},   {2, 3, 1},   {5, 7, 3},    {1, 1, 3},
                                       {3, 11, 4},  {64, 33, 1}, {9, 1021, 3}, {2, 4099, 2},
                                       {1, 8195, 1}, {16, 40000, 3}};
    struct lksi_pixels_attr *a = attr;
    const int64_t *c = cases[index];
    if (index >= (int)LKSI_COUNT(cases) - (long_run ? 0 : 1))
        return false;
    a->rank = 3;
    a->dim[0] = c[0];
    a->dim[1] = c[1];
    a->dim[2] = c[2];
    a->channels = (int32_t)c[2];
    call->n_in = 2;
    call->in[0] = lksi_desc_make(LKSI_I32, 1, (c[0] * c[1] * c[2] + 3) / 4);
    call->in[1] = lksi_desc_make(LKSI_F32, 1, 256 * c[2]);
    return true;
}

/* Any bytes. */
static uint32_t test_input(const struct lksi_call *call, int index, uint32_t bits)
{
    (void)call;
    return index == 0 ? (bits + 1u) * 2654435761u : bits;
}

static const struct lksi_op pixels = {
    .name = "pixels",
    .contract = "contract/pixels.h",
    .dims = "pixels_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_pixels_attr),
    .infer = infer,
    .item = pixels_item_c,
    .schedules = schedules,
    .test_case = test_case,
    .test_input = test_input,
};

const struct lksi_op *const lksi_ops_pixels[] = {&pixels, NULL};
