/*
 * shape.h - checks that `infer` functions share. Errors name the operator, the input, the shape
 * given and what would be right.
 */
#ifndef LKSI_OP_SHAPE_H
#define LKSI_OP_SHAPE_H

#include "op/op.h"

/* Input `i` has this type and a rank in [rank_min, rank_max]; every dimension is in [1, 2^31). */
static inline lks_status lksi_want(const struct lksi_call *call, int i, const char *what,
                                   enum lksi_dtype dtype, int rank_min, int rank_max)
{
    const struct lksi_desc *d = &call->in[i];
    char text[96];
    if (d->dtype != dtype)
        return lksi_fail(LKS_E_ARGUMENT, "%s: %s must hold %s", call->op->name, what,
                         dtype == LKSI_F32 ? "32-bit floats" : "32-bit integers");
    if (d->rank < rank_min || d->rank > rank_max) {
        if (rank_min == rank_max)
            return lksi_fail(LKS_E_ARGUMENT, "%s: %s is %s, %d dimension%s wanted", call->op->name,
                             what, lksi_desc_text(d, text), rank_min, rank_min == 1 ? "" : "s");
        return lksi_fail(LKS_E_ARGUMENT, "%s: %s is %s, %d to %d dimensions wanted", call->op->name,
                         what, lksi_desc_text(d, text), rank_min, rank_max);
    }
    for (int k = 0; k < d->rank; k++)
        if (d->dim[k] < 1 || d->dim[k] > INT32_MAX)
            return lksi_fail(LKS_E_ARGUMENT, "%s: %s is %s, every dimension must be 1 to 2^31 - 1",
                             call->op->name, what, lksi_desc_text(d, text));
    return LKS_OK;
}

/* Input `i` is exactly this. */
static inline lks_status lksi_want_desc(const struct lksi_call *call, int i, const char *what,
                                        struct lksi_desc wanted)
{
    char given[96], right[96];
    if (lksi_desc_equal(&call->in[i], &wanted))
        return LKS_OK;
    if (call->in[i].dtype != wanted.dtype)
        return lksi_want(call, i, what, wanted.dtype, 0, LKSI_MAX_RANK);
    return lksi_fail(LKS_E_ARGUMENT, "%s: %s is %s, %s wanted", call->op->name, what,
                     lksi_desc_text(&call->in[i], given), lksi_desc_text(&wanted, right));
}

/* The leaf of rule 8 is a power of two. */
static inline lks_status lksi_want_leaf(const struct lksi_call *call)
{
    if (call->leaf == 0 || call->leaf > 65536 || (call->leaf & (call->leaf - 1)) != 0)
        return lksi_fail(LKS_E_ARGUMENT, "%s: leaf %u, a power of two up to 65536 wanted",
                         call->op->name, call->leaf);
    return LKS_OK;
}

#define LKSI_SET_DIMS(call, type, ...)                                                             \
    do {                                                                                           \
        struct type dims_ = __VA_ARGS__;                                                           \
        _Static_assert(sizeof dims_ <= LKSI_DIMS_MAX, "dims do not fit");                          \
        memcpy((call)->dims.bytes, &dims_, sizeof dims_);                                          \
        (call)->dims_size = sizeof dims_;                                                          \
    } while (0)

#endif
