/*
 * move.c - move: slices, pads, flips, spreads and transposes; one affine map of indices.
 */
#include <stdio.h>
#include <string.h>

#include "contract/move.h"
#include "op/attr.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(move, in[0], out[0])

static const struct move_dims *dims_of(const struct lksi_call *call)
{
    return (const void *)call->dims.bytes;
}

/* ---- shapes ---- */

/* The attribute with its defaults filled in. */
static struct lksi_move_axis full_axis(const struct lksi_move_attr *a, int k)
{
    struct lksi_move_axis m = a->axis[k];
    m.step = m.step == 0 ? 1 : m.step;
    m.dilate = m.dilate == 0 ? 1 : m.dilate;
    return m;
}

static lks_status check_attr(const struct lksi_call *call)
{
    const struct lksi_move_attr *a = call->attr;
    char text[96];
    unsigned seen = 0;
    if (a->rank != call->in[0].rank)
        return lksi_fail(LKS_E_ARGUMENT, "move: x is %s, %d dimensions wanted",
                         lksi_desc_text(&call->in[0], text), a->rank);
    for (int k = 0; k < a->rank; k++) {
        struct lksi_move_axis m = full_axis(a, k);
        if (m.from < 0 || m.from >= a->rank || (seen >> m.from & 1u) != 0)
            return lksi_fail(LKS_E_ARGUMENT, "move: axis %d reads axis %d; a permutation of 0 to "
                                             "%d wanted", k, m.from, a->rank - 1);
        seen |= 1u << m.from;
        int64_t in = call->in[0].dim[m.from], out = m.size == 0 ? in : m.size;
        int64_t last = m.begin + (out - 1) * (int64_t)m.step;
        if (m.size < 0 || m.dilate < 1 || last > INT32_MAX || last < -INT32_MAX ||
            m.begin == INT32_MIN || m.step == INT32_MIN || in * m.dilate > INT32_MAX)
            return lksi_fail(LKS_E_ARGUMENT,
                             "move: axis %d has size %d, begin %d, step %d, dilate %d, which 31 "
                             "bits do not count", k, m.size, m.begin, m.step, m.dilate);
    }
    return LKS_OK;
}

static bool identity(const struct lks_move_axis *m)
{
    return m->begin == 0 && m->step == 1 && m->dilate == 1 && m->in == m->out;
}

/* Puts axis m behind those of d, or makes it one with the last where they move as one. */
static void push(struct move_dims *d, const struct lks_move_axis *m)
{
    struct lks_move_axis *last = d->rank > 0 ? &d->axis[d->rank - 1] : NULL;
    if (m->out == 1 && m->in == 1 && identity(m))
        return;
    if (last != NULL && identity(m) && last->step == 1 && last->dilate == 1 &&
        last->stride == m->stride * m->in &&
        (int64_t)m->in * (last->begin + (int64_t)last->out) <= INT32_MAX &&
        (int64_t)m->in * last->begin >= -INT32_MAX)
        *last = (struct lks_move_axis){last->out * m->out, last->in * m->in, m->stride,
                                       last->begin * (I32)m->in, 1, 1};
    else
        d->axis[d->rank++] = *m;
}

static void fill_dims(struct lksi_call *call)
{
    const struct lksi_move_attr *a = call->attr;
    const struct lksi_desc *x = &call->in[0];
    struct move_dims d = {.value = a->value};
    U32 stride[LKSI_MAX_RANK] = {0}, s = 1, fill;
    for (int k = x->rank; k-- > 0; s *= (U32)x->dim[k])
        stride[k] = s;
    for (int k = 0; k < a->rank; k++) {
        struct lksi_move_axis m = full_axis(a, k);
        struct lks_move_axis axis = {(U32)call->out[0].dim[k], (U32)x->dim[m.from],
                                     stride[m.from], m.begin, m.step, m.dilate};
        push(&d, &axis);
    }
    fill = d.rank < 3 ? 3 - d.rank : 0;
    memmove(&d.axis[fill], d.axis, d.rank * sizeof d.axis[0]);
    for (U32 k = 0; k < fill; k++)
        d.axis[k] = (struct lks_move_axis){1, 1, 1, 0, 1, 1};
    d.rank += fill;
    memcpy(call->dims.bytes, &d, sizeof d);
    call->dims_size = sizeof d;
}

static lks_status infer(struct lksi_call *call)
{
    const struct lksi_move_attr *a = call->attr;
    char text[96];
    double n = 1;
    lks_status st = lksi_want(call, 0, "x", call->in[0].dtype, 1, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = check_attr(call);
    if (st != LKS_OK)
        return st;
    call->out[0] = call->in[0];
    for (int k = 0; k < a->rank; k++) {
        struct lksi_move_axis m = full_axis(a, k);
        call->out[0].dim[k] = m.size == 0 ? call->in[0].dim[m.from] : m.size;
        n *= (double)call->out[0].dim[k];
    }
    if (n > INT32_MAX || lksi_desc_count(&call->in[0]) > INT32_MAX)
        return lksi_fail(LKS_E_ARGUMENT, "move: %s has more elements than 31 bits count",
                         lksi_desc_text(&call->out[n > INT32_MAX ? 0 : 0], text));
    fill_dims(call);
    return LKS_OK;
}

/* The other way round: o = (s*dilate - begin) / step. */
static lks_status grad(const struct lksi_backward *g)
{
    const struct lksi_move_attr *a = g->call->attr;
    struct lksi_move_attr back;
    memset(&back, 0, sizeof back);
    back.rank = a->rank;
    for (int k = 0; k < a->rank; k++) {
        struct lksi_move_axis m = full_axis(a, k);
        int32_t sign = m.step < 0 ? -1 : 1;
        back.axis[m.from] = (struct lksi_move_axis){
            k, m.size == 0 ? 0 : (int32_t)g->call->in[0].dim[m.from], -m.begin * sign,
            m.dilate * sign, m.step * sign};
    }
    return lksi_flow(g, 0, "move", &back, g->dout[0]);
}

/* ---- ref ---- */

static U64 ref_parts(const struct lksi_call *call)
{
    const struct move_dims *d = dims_of(call);
    U64 n = 1;
    for (U32 k = 0; k + 1 < d->rank; k++)
        n *= d->axis[k].out;
    return n;
}

static void ref(const struct lksi_call *call, const void *const *in, void *const *out, U64 p0,
                U64 p1)
{
    const struct move_dims *d = dims_of(call);
    U32 rows = d->axis[d->rank - 2].out;
    while (p0 < p1) {
        U32 plane = (U32)(p0 / rows), first = (U32)(p0 % rows);
        U32 end = p1 - p0 < rows - first ? first + (U32)(p1 - p0) : rows;
        lks_move_rows(in[0], out[0], d, d->rank, plane, first, end);
        p0 += end - first;
    }
}

/* ---- schedules ---- */

/* The axis of y that is the last of x, if this is a transposition worth its squares; else -1. */
static int turned(const struct move_dims *d)
{
    const struct lks_move_axis *a = &d->axis[d->rank - 1];
    if (a->stride == 1 || !identity(a) || a->out < 8)
        return -1;
    for (U32 k = 0; k + 1 < d->rank; k++)
        if (d->axis[k].stride == 1 && d->axis[k].out >= 8 && identity(&d->axis[k]))
            return (int)k;
    return -1;
}

/* Elements of y over all axes but b and the last. */
static U64 outer_of(const struct move_dims *d, int b)
{
    U64 n = 1;
    for (int k = 0; k + 1 < (int)d->rank; k++)
        n *= k != b ? d->axis[k].out : 1;
    return n;
}

static const char *tile_declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    const struct move_dims *d = dims_of(call);
    int b = turned(d);
    if (b < 0)
        return "not a transposition of two long axes";
    if (outer_of(d, b) > 65535 || d->axis[b].out > 65535 * 32u)
        return "more squares than the second and third dimension of a launch may count";
    if (dev->type == LKSI_DEV_GPU && (dev->max_group < 256 || dev->max_item[0] < 32 ||
                                      dev->max_item[1] < 8 || dev->local_memory < 32 * 33 * 4))
        return "the device has too small work-groups or too little local memory";
    return NULL;
}

static struct lksi_launch *launch(struct lksi_recipe *r, const char *kernel)
{
    struct lksi_launch *l = &r->launch[0];
    r->n_launch = 1;
    l->source = "op/move.cl";
    l->kernel = kernel;
    l->arg[l->n_arg++] = LKSI_IN(0);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
    return l;
}

static void tile_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                        struct lksi_recipe *r)
{
    const struct move_dims *d = dims_of(call);
    struct lksi_launch *l = launch(r, "tile");
    U32 b = (U32)turned(d), yb = 1;
    for (U32 k = b + 1; k < d->rank; k++)
        yb *= d->axis[k].out;
    size_t na = (d->axis[d->rank - 1].out + 31) / 32, nb = (d->axis[b].out + 31) / 32;
    bool gpu = dev->type == LKSI_DEV_GPU;
    snprintf(l->defines, sizeof l->defines, "RANK=%u TILE=32%s", d->rank, gpu ? " LOCAL=8" : "");
    l->arg[l->n_arg++] = LKSI_U32(b);
    l->arg[l->n_arg++] = LKSI_U32(yb);
    l->dims = 3;
    l->local[0] = gpu ? 32 : 1;
    l->local[1] = gpu ? 8 : 1;
    l->local[2] = 1;
    l->global[0] = na * l->local[0];
    l->global[1] = nb * l->local[1];
    l->global[2] = (size_t)outer_of(d, (int)b);
}

static void rows_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                        struct lksi_recipe *r)
{
    const struct move_dims *d = dims_of(call);
    struct lksi_launch *l = launch(r, dev->type == LKSI_DEV_GPU ? "flat" : "rows");
    U32 n = d->axis[d->rank - 1].out, rows = d->axis[d->rank - 2].out, piece;
    if (dev->type == LKSI_DEV_GPU) {
        U64 all = (U64)lksi_desc_count(&call->out[0]);
        snprintf(l->defines, sizeof l->defines, "FLAT RANK=%u", d->rank);
        l->arg[l->n_arg++] = LKSI_U64(all);
        l->dims = 1;
        l->local[0] = lksi_group(dev, 128);
        l->global[0] = (size_t)((all + l->local[0] - 1) / l->local[0] * l->local[0]);
        return;
    }
    piece = n >= 16384 ? 1 : 16384 / n;
    piece = piece < rows ? piece : rows;
    snprintf(l->defines, sizeof l->defines, "ROWS RANK=%u", d->rank);
    l->arg[l->n_arg++] = LKSI_U32(piece);
    l->dims = 2;
    l->local[0] = l->local[1] = 1;
    l->global[0] = (rows + piece - 1) / piece;
    l->global[1] = (size_t)(ref_parts(call) / rows);
}

static const struct lksi_schedule schedules[] = {{"tile", tile_declines, tile_recipe},
                                                 {"rows", lksi_flat_declines, rows_recipe},
                                                 {NULL, NULL, NULL}};

/* ---- tests ---- */

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const struct {
        int64_t dim[LKSI_MAX_RANK];
        struct lksi_move_attr attr;
    } cases[] = {
        {{1}, {1, 0, {{0, 0, 0, 0, 0}}}},
        {{40009}, {1, 0, {{0, 40000, 3, 0, 0}}}},                              /* slice */
        {{2, 5, 7, 3}, {4, 0, {{0}, {1, 3, 1}, {2, 7, 0}, {3, 3, 0}}}},        /* rows */
        {{2, 5, 7, 33}, {4, 0, {{0}, {1, 2, 4, -2}, {2, 7, 6, -1}, {3, 16, 32, -2}}}},
        {{3, 5, 6, 17}, {4, 0x3fc00000, {{0}, {1, 8, -1}, {2, 6, -3}, {3, 20, -2}}}}, /* pad */
        {{2, 3, 4}, {3, 0x80000000, {{0}, {1, 2, -9}, {2, 4, 0}}}},            /* all constant */
        {{2, 3, 4, 5}, {4, 0, {{0}, {1, 9, 0, 1, 3}, {2, 8, -1, 1, 2}, {3, 12, 9, -1, 2}}}},
        {{2, 4, 6, 3}, {4, 0, {{0}, {1, 3, 7, -2, 2}, {2, 6, -3, 2, 3}, {3}}}},
        {{2, 9, 7, 5}, {4, 0, {{0}, {3}, {1}, {2}}}},                          /* NHWC to NCHW */
        {{2, 33, 40, 65}, {4, 0, {{0}, {3}, {1}, {2}}}},
        {{40, 9, 3, 33}, {4, 0, {{3}, {2}, {1}, {0}}}},
        {{2, 64, 5, 7}, {4, 0, {{0}, {2}, {3}, {1}}}},
        {{2, 8, 3, 4, 9}, {5, 0, {{0}, {3}, {2}, {4}, {1}}}},
        {{2, 3, 8, 4, 9}, {5, 0x3f800000, {{0}, {1, 5, -1}, {4}, {3, 2, 1}, {2}}}},
        {{3, 5, 7, 2}, {4, 0, {{0}, {2}, {1}, {3}}}},
    };
    static const struct lksi_move_attr large = {4, 0, {{0}, {3}, {1}, {2}}};
    static const struct lksi_move_attr whole = {2, 7, {{1, 9, -2}, {0}}};
    int given = (int)LKSI_COUNT(cases);
    if (index > given + 1 || (index == given + 1 && !long_run))
        return false;
    call->n_in = 1;
    if (index == given) {
        call->in[0] = lksi_desc_make(LKSI_I32, 2, (int64_t)33, (int64_t)6);
        memcpy(attr, &whole, sizeof whole);
        return true;
    }
    if (index > given) {
        call->in[0] = lksi_desc_make(LKSI_F32, 4, (int64_t)8, (int64_t)56, (int64_t)56, (int64_t)64);
        memcpy(attr, &large, sizeof large);
        return true;
    }
    call->in[0] = (struct lksi_desc){.dtype = LKSI_F32, .rank = cases[index].attr.rank};
    memcpy(call->in[0].dim, cases[index].dim, sizeof call->in[0].dim);
    memcpy(attr, &cases[index].attr, sizeof cases[index].attr);
    return true;
}

static const struct lksi_op move = {
    .name = "move",
    .contract = "contract/move.h",
    .dims = "move_dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_move_attr),
    .infer = infer,
    .item = move_item_c,
    .ref_parts = ref_parts,
    .ref = ref,
    .schedules = schedules,
    .grad = grad,
    .test_case = test_case,
};

const struct lksi_op *const lksi_ops_move[] = {&move, NULL};
