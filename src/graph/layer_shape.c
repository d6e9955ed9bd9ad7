/*
 * layer_shape.c - the same elements in another shape or order; parts of them; joins.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/layer.h"
#include "graph/layer_shape.h"
#include "op/attr.h"

struct lksi_desc lksi_sample(const lks_graph *g, lks_value x)
{
    struct lksi_desc d = g->value[x].desc;
    d.rank--;
    memmove(d.dim, d.dim + 1, (size_t)d.rank * sizeof d.dim[0]);
    return d;
}

const char *lksi_sample_text(const lks_graph *g, lks_value x, char text[96])
{
    struct lksi_desc d = lksi_sample(g, x);
    return lksi_desc_text(&d, text);
}

lks_status lksi_layer_view(lks_graph *g, const char *name, lks_value x, int rank,
                           const int64_t *dims, lks_value *y)
{
    struct lksi_reshape_attr a;
    memset(&a, 0, sizeof a);
    a.rank = rank + 1;
    a.dim[0] = -1;
    memcpy(a.dim + 1, dims, (size_t)rank * sizeof dims[0]);
    return lksi_layer_apply(g, name, "reshape", &a, 1, &x, y);
}

struct lksi_move_attr lksi_move_all(int rank)
{
    struct lksi_move_attr a;
    memset(&a, 0, sizeof a);
    a.rank = rank;
    for (int k = 0; k < rank; k++)
        a.axis[k].from = k;
    return a;
}

/* Parts of an input from behind its end, where a move finds nothing and puts `value`. The gradient
 * that would come back is not 0 but 0 times what meets it, a NaN at times: it is stopped. */
static lks_status constant(lks_graph *g, float value, int rank, const int64_t *dims, lks_value *y)
{
    int64_t shape[LKS_MAX_AXES] = {1, 1, 1, 1};
    struct lksi_move_attr a;
    lks_value x = LKSI_NONE;
    if (g == NULL || y == NULL || dims == NULL || rank < 1 || rank > LKS_MAX_AXES)
        return lksi_fail(LKS_E_ARGUMENT, "constant: an argument is NULL, or %d dimensions given, 1 "
                                         "to %d wanted", rank, LKS_MAX_AXES);
    for (int k = 0; k < rank; k++)
        if (dims[k] < 1 || dims[k] > INT32_MAX)
            return lksi_fail(LKS_E_ARGUMENT, "constant: dimension %d is %lld; 1 or more wanted", k,
                             (long long)dims[k]);
    for (size_t v = 0; v < g->n_value && x == LKSI_NONE; v++)
        if (g->value[v].kind == LKSI_VALUE_INPUT && g->value[v].batched &&
            g->value[v].desc.dtype == LKSI_F32)
            x = (lks_value)v;
    if (x == LKSI_NONE)
        return lksi_fail(LKS_E_ARGUMENT, "constant: the graph has no input of floats yet, which "
                                         "gives the size of the batch");
    a = lksi_move_all(rank + 1);
    struct lksi_desc d = lksi_sample(g, x);
    shape[rank - 1] = lksi_desc_count(&d);
    a.axis[1].begin = (int32_t)shape[0];
    for (int k = 0; k < rank; k++)
        a.axis[k + 1].size = (int32_t)dims[k];
    memcpy(&a.value, &value, sizeof a.value);
    lks_status st = lksi_layer_view(g, "constant", x, rank, shape, &x);
    if (st == LKS_OK)
        st = lksi_layer_apply(g, "constant", "stop_gradient", NULL, 1, &x, &x);
    return st == LKS_OK ? lksi_layer_apply(g, "constant", "move", &a, 1, &x, y) : st;
}

lks_status lks_graph_constant(lks_graph *g, float value, int rank, const int64_t *dims, lks_value *y)
{
    LKSI_RETURN_WHOLE(g, constant(g, value, rank, dims, y));
}

/* An axis of a sample with `rank` of them, from 0; negative ones count from the end. */
static lks_status find_axis(const lks_graph *g, const char *name, lks_value x, int axis, int rank,
                            int *out)
{
    struct lksi_desc d = lksi_sample(g, x);
    char text[96];
    if (axis < -rank || axis >= rank)
        return lksi_fail(LKS_E_ARGUMENT, "%s: axis %d for %s; %d to %d wanted (the batch is not "
                                         "counted)", name, axis, lksi_desc_text(&d, text), -rank,
                         rank - 1);
    *out = axis < 0 ? axis + rank : axis;
    return LKS_OK;
}

lks_status lks_graph_flatten(lks_graph *g, lks_value x, lks_value *y)
{
    lks_status st = lksi_layer_check(g, "lks_graph_flatten", x, y);
    if (st != LKS_OK)
        return st;
    const struct lksi_desc *d = &g->value[x].desc;
    int64_t all = lksi_desc_count(d) / d->dim[0];
    return lksi_layer_view(g, "flatten", x, 1, &all, y);
}

lks_status lks_graph_reshape(lks_graph *g, lks_value x, int rank, const int64_t *dims,
                             lks_value *y)
{
    lks_status st = lksi_layer_check(g, "reshape", x, y);
    struct lksi_desc to = {.rank = rank}, from;
    char given[96], wanted[96];
    int64_t all, left;
    int open = -1;
    if (st != LKS_OK)
        return st;
    if (dims == NULL || rank < 1 || rank > LKS_MAX_AXES)
        return lksi_fail(LKS_E_ARGUMENT, "reshape: %d dimensions given, 1 to %d wanted",
                         dims == NULL ? 0 : rank, LKS_MAX_AXES);
    from = lksi_sample(g, x);
    all = left = lksi_desc_count(&from);
    for (int k = 0; k < rank; k++) {
        to.dim[k] = dims[k] == 0 && k < from.rank ? from.dim[k] : dims[k];
        if (to.dim[k] == -1 && open < 0)
            open = k;
        else if (to.dim[k] < 1 || left % to.dim[k] != 0)
            left = 0;
        else
            left /= to.dim[k];
    }
    if (open >= 0 ? left == 0 : left != 1)
        return lksi_fail(LKS_E_ARGUMENT,
                         "reshape: %s has %lld elements, which do not fit the shape %s (without "
                         "the batch; one may be -1)",
                         lksi_desc_text(&from, given), (long long)all,
                         lksi_desc_text(&to, wanted));
    if (open >= 0)
        to.dim[open] = left;
    return lksi_layer_view(g, "reshape", x, rank, to.dim, y);
}

lks_status lks_graph_transpose(lks_graph *g, lks_value x, const int *order, lks_value *y)
{
    lks_status st = lksi_layer_check(g, "transpose", x, y);
    unsigned seen = 0;
    if (st != LKS_OK)
        return st;
    int rank = g->value[x].desc.rank - 1;
    struct lksi_move_attr a = lksi_move_all(rank + 1);
    for (int k = 0; k < rank; k++) {
        int from = order != NULL ? order[k] : -1;
        if (from < 0 || from >= rank || (seen >> from & 1u) != 0)
            return lksi_fail(LKS_E_ARGUMENT,
                             "transpose: axis %d of the result is to be axis %d; each of 0 to %d "
                             "wanted once (the batch is not counted)",
                             k, from, rank - 1);
        seen |= 1u << from;
        a.axis[k + 1].from = from + 1;
    }
    return lksi_layer_apply(g, "transpose", "move", &a, 1, &x, y);
}

/* ---- joins ---- */

static lks_status check_all(lks_graph *g, const char *name, int n, const lks_value *x, lks_value *y)
{
    if (n < 1 || x == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "%s: no values given, 1 or more wanted", name);
    for (int i = 0; i < n; i++) {
        lks_status st = lksi_layer_check(g, name, x[i], y);
        if (st != LKS_OK)
            return st;
    }
    return LKS_OK;
}

/* The shapes agree, but for `axis` (-1: everywhere). In words for one sample. */
static lks_status check_shapes(const lks_graph *g, const char *name, int n, const lks_value *x,
                               int axis)
{
    struct lksi_desc first = lksi_sample(g, x[0]);
    char one[96], other[96];
    for (int i = 1; i < n; i++) {
        struct lksi_desc d = lksi_sample(g, x[i]), wanted = first;
        if (axis >= 0 && d.rank == first.rank)
            wanted.dim[axis] = d.dim[axis];
        if (!lksi_desc_equal(&d, &wanted))
            return lksi_fail(LKS_E_ARGUMENT, "%s: value 0 is %s, value %d is %s; equal shapes "
                                             "wanted%s", name, lksi_desc_text(&first, one), i,
                             lksi_desc_text(&d, other), axis >= 0 ? " but for the joined axis" : "");
    }
    return LKS_OK;
}

/* Eight by eight, and what comes out of that again. `axis` counts the batch. Overwrites x. */
static lks_status join(lks_graph *g, int n, lks_value *x, int axis, lks_value *y)
{
    struct lksi_concat_attr a = {axis};
    do {
        int made = 0;
        for (int i = 0; i < n; i += LKSI_MAX_IN) {
            lks_status st = lksi_layer_apply(g, "concat", "concat", &a,
                                             n - i < LKSI_MAX_IN ? n - i : LKSI_MAX_IN, x + i,
                                             &x[made]);
            if (st != LKS_OK)
                return st;
            made++;
        }
        n = made;
    } while (n > 1);
    *y = x[0];
    return LKS_OK;
}

static lks_status join_copy(lks_graph *g, int n, const lks_value *x, int axis, lks_value *y)
{
    lks_value *copy = lksi_alloc((size_t)n, sizeof *copy);
    lks_status st = LKS_E_MEMORY;
    if (copy != NULL) {
        memcpy(copy, x, (size_t)n * sizeof *copy);
        st = join(g, n, copy, axis, y);
    }
    free(copy);
    return st;
}

lks_status lks_graph_concat(lks_graph *g, int n, const lks_value *x, int axis, lks_value *y)
{
    int at = 0;
    lks_status st = check_all(g, "concat", n, x, y);
    if (st == LKS_OK)
        st = find_axis(g, "concat", x[0], axis, g->value[x[0]].desc.rank - 1, &at);
    if (st == LKS_OK)
        st = check_shapes(g, "concat", n, x, at);
    if (st != LKS_OK)
        return st;
    LKSI_RETURN_WHOLE(g, join_copy(g, n, x, at + 1, y));
}

static lks_status stack(lks_graph *g, int n, const lks_value *x, int axis, lks_value *y)
{
    lks_value *copy = NULL;
    int64_t dims[LKS_MAX_AXES + 1];
    int at = 0, rank;
    lks_status st;
    LKSI_TRY(check_all(g, "stack", n, x, y));
    rank = g->value[x[0]].desc.rank; /* of y's samples */
    LKSI_TRY(find_axis(g, "stack", x[0], axis, rank, &at));
    LKSI_TRY(check_shapes(g, "stack", n, x, -1));
    if (rank > LKS_MAX_AXES)
        return lksi_fail(LKS_E_ARGUMENT, "stack: the values have %d axes, at most %d wanted",
                         rank - 1, LKS_MAX_AXES - 1);
    copy = lksi_alloc((size_t)n, sizeof *copy);
    if (copy == NULL)
        return LKS_E_MEMORY;
    for (int k = 0; k < rank; k++)
        dims[k] = k == at ? 1 : g->value[x[0]].desc.dim[k < at ? k + 1 : k];
    for (int i = 0; i < n; i++)
        LKSI_TRY(lksi_layer_view(g, "stack", x[i], rank, dims, &copy[i]));
    LKSI_TRY(join(g, n, copy, at + 1, y));
fail:
    free(copy);
    return st;
}

lks_status lks_graph_stack(lks_graph *g, int n, const lks_value *x, int axis, lks_value *y)
{
    LKSI_RETURN_WHOLE(g, stack(g, n, x, axis, y));
}

/* ---- parts ---- */

/* The elements that params take from axis k with `size` elements. */
static lks_status cut_axis(const struct lks_slice_params *p, int k, int64_t size,
                           struct lksi_move_axis *a)
{
    int64_t step = p->step[k] == 0 ? 1 : p->step[k], begin = p->begin[k], end = p->end[k], n;
    if (begin < 0 || (begin == 0 && step < 0))
        begin += size;
    begin -= p->begin[k] == 0 && step < 0;
    if (end < 0)
        end += size;
    else if (end == 0)
        end = step > 0 ? size : -1;
    if (step < -size || step > size)
        step = step < 0 ? -size : size;
    bool inside = begin >= 0 && begin < size && end >= -1 && end <= size;
    n = inside ? (end - begin + step - (step > 0 ? 1 : -1)) / step : 0;
    if (n < 1)
        return lksi_fail(LKS_E_ARGUMENT,
                         "slice: axis %d has %lld elements; from %lld to %lld in steps of %lld is "
                         "outside or takes nothing",
                         k, (long long)size, (long long)p->begin[k], (long long)p->end[k],
                         (long long)(p->step[k] == 0 ? 1 : p->step[k]));
    a->begin = (int32_t)begin;
    a->step = (int32_t)step;
    a->size = (int32_t)n;
    return LKS_OK;
}

lks_status lks_graph_slice(lks_graph *g, lks_value x, const struct lks_slice_params *p,
                           lks_value *y)
{
    lks_status st = lksi_layer_check(g, "slice", x, y);
    struct lksi_move_attr a;
    if (st != LKS_OK)
        return st;
    if (p == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "slice: the params are NULL");
    const struct lksi_desc d = lksi_sample(g, x);
    a = lksi_move_all(d.rank + 1);
    for (int k = 0; k < LKS_MAX_AXES && st == LKS_OK; k++)
        if (k < d.rank)
            st = cut_axis(p, k, d.dim[k], &a.axis[k + 1]);
        else if (p->begin[k] != 0 || p->end[k] != 0 || p->step[k] != 0)
            st = lksi_fail(LKS_E_ARGUMENT, "slice: axis %d is given, and x has %d", k, d.rank);
    return st == LKS_OK ? lksi_layer_apply(g, "slice", "move", &a, 1, &x, y) : st;
}

static lks_status select_one(lks_graph *g, lks_value x, int axis, int64_t index, lks_value *y)
{
    lks_status st = lksi_layer_check(g, "select", x, y);
    lks_value part;
    int at = 0;
    if (st != LKS_OK)
        return st;
    struct lksi_desc d = lksi_sample(g, x);
    st = find_axis(g, "select", x, axis, d.rank, &at);
    if (st != LKS_OK)
        return st;
    if (d.rank < 2 || index < -d.dim[at] || index >= d.dim[at])
        return lksi_fail(LKS_E_ARGUMENT,
                         d.rank < 2 ? "select: x has one axis, two or more wanted"
                                    : "select: index %lld of axis %d, which has %lld elements",
                         (long long)index, at, (long long)d.dim[at]);
    struct lksi_move_attr a = lksi_move_all(d.rank + 1);
    a.axis[at + 1].begin = (int32_t)(index < 0 ? index + d.dim[at] : index);
    a.axis[at + 1].size = 1;
    LKSI_TRY(lksi_layer_apply(g, "select", "move", &a, 1, &x, &part));
    memmove(d.dim + at, d.dim + at + 1, (size_t)(d.rank - 1 - at) * sizeof d.dim[0]);
    LKSI_TRY(lksi_layer_view(g, "select", part, d.rank - 1, d.dim, y));
fail:
    return st;
}

lks_status lks_graph_select(lks_graph *g, lks_value x, int axis, int64_t index, lks_value *y)
{
    LKSI_RETURN_WHOLE(g, select_one(g, x, axis, index, y));
}
