/*
 * fill.c - a tensor of one value; the seed of a gradient is a 1.0.
 */
#include <string.h>

#include "contract/fill.h"
#include "op/attr.h"
#include "op/flat.h"
#include "op/shape.h"

static void fill_item_c(const void *const *in, void *const *out, const void *dims, U64 i)
{
    (void)in;
    fill_item(out[0], dims, i);
}

static lks_status infer(struct lksi_call *call)
{
    const struct lksi_fill_attr *a = call->attr;
    char text[96];
    bool ok = a->desc.dtype == LKSI_F32 && a->desc.rank >= 1 && a->desc.rank <= LKSI_MAX_RANK;
    if (!ok)
        return lksi_fail(LKS_E_ARGUMENT,
                         "fill: a tensor of 32-bit floats with 1 to %d dimensions "
                         "wanted",
                         LKSI_MAX_RANK);
    for (int i = 0; i < a->desc.rank; i++)
        if (a->desc.dim[i] < 1 || a->desc.dim[i] > INT32_MAX)
            return lksi_fail(LKS_E_ARGUMENT,
                             "fill: shape %s, every dimension must be 1 to 2^31 - 1",
                             lksi_desc_text(&a->desc, text));
    call->out[0] = a->desc;
    LKSI_SET_DIMS(call, fill_dims, {(U64)lksi_desc_count(&a->desc), a->value, 0});
    return LKS_OK;
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_fill_attr *a = attr;
    call->n_in = 0;
    a->value = index % 2 == 0 ? 1.0f : -0.0f;
    return lksi_flat_case(index, long_run, &a->desc);
}

static const struct lksi_op fill = {
    .name = "fill",
    .contract = "contract/fill.h",
    .dims = "fill_dims",
    .min_in = 0,
    .max_in = 0,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_fill_attr),
    .infer = infer,
    .item = fill_item_c,
    .test_case = test_case,
};

const struct lksi_op *const lksi_ops_fill[] = {&fill, NULL};
