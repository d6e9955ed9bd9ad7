/*
 * matmul.c - the batched matrix product, whose gradients are matrix products too.
 */
#include <stdio.h>
#include <string.h>

#include "contract/matmul.h"
#include "op/attr.h"
#include "op/shape.h"

LKSI_ITEM(matmul, in[0], in[1], out[0])

static const struct matmul_dims *dims_of(const struct lksi_call *call)
{
    return (const void *)call->dims.bytes;
}

static lks_status infer(struct lksi_call *call)
{
    const struct lksi_matmul_attr *t = call->attr;
    const struct lksi_desc *a = &call->in[0], *b = &call->in[1];
    char one[96], two[96];
    int r = a->rank;
    int64_t batch = 1;
    lks_status st = lksi_want(call, 0, "a", LKSI_F32, 2, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = lksi_want(call, 1, "b", LKSI_F32, r, r);
    if (st != LKS_OK)
        return st;
    int64_t m = a->dim[r - 2 + t->transpose_a], k = a->dim[r - 1 - t->transpose_a];
    int64_t n = b->dim[r - 1 - t->transpose_b];
    bool same = k == b->dim[r - 2 + t->transpose_b];
    for (int i = 0; i < r - 2; i++) {
        same = same && a->dim[i] == b->dim[i];
        batch *= a->dim[i];
    }
    if (!same)
        return lksi_fail(LKS_E_ARGUMENT, "matmul: a is %s%s, b is %s%s: equal batches and inner "
                         "dimensions wanted", lksi_desc_text(a, one),
                         t->transpose_a ? " transposed" : "", lksi_desc_text(b, two),
                         t->transpose_b ? " transposed" : "");
    if (m * k > INT32_MAX || k * n > INT32_MAX || m * n > INT32_MAX || batch > INT32_MAX)
        return lksi_fail(LKS_E_ARGUMENT, "matmul: a is %s, b is %s: less than 2^31 elements a "
                         "matrix wanted", lksi_desc_text(a, one), lksi_desc_text(b, two));
    call->out[0] = *a;
    call->out[0].dim[r - 2] = m;
    call->out[0].dim[r - 1] = n;
    LKSI_SET_DIMS(call, matmul_dims,
                  {.batch = (U32)batch,
                   .m = (U32)m,
                   .n = (U32)n,
                   .k = (U32)k,
                   .am = t->transpose_a ? 1u : (U32)k,
                   .ak = t->transpose_a ? (U32)m : 1u,
                   .bk = t->transpose_b ? 1u : (U32)n,
                   .bn = t->transpose_b ? (U32)k : 1u});
    return LKS_OK;
}

static lks_status product(struct lksi_builder *b, lksi_value x, int transpose_x, lksi_value y,
                          int transpose_y, lksi_value *out)
{
    struct lksi_matmul_attr t = {transpose_x, transpose_y};
    lksi_value pair[2] = {x, y};
    return b->apply(b, "matmul", &t, 2, pair, out);
}

/* With A = a or a^T: dA = dy B^T, dB = A^T dy; a stored transposed takes dA^T = B dy^T. */
static lks_status grad(const struct lksi_backward *g)
{
    const struct lksi_matmul_attr *t = g->call->attr;
    struct lksi_builder *b = g->b;
    lksi_value x = g->in[0], y = g->in[1], dy = g->dout[0];
    lks_status st = LKS_OK;
    if (g->need[0])
        st = t->transpose_a ? product(b, y, t->transpose_b, dy, 1, &g->din[0])
                            : product(b, dy, 0, y, !t->transpose_b, &g->din[0]);
    if (st == LKS_OK && g->need[1])
        st = t->transpose_b ? product(b, dy, 1, x, t->transpose_a, &g->din[1])
                            : product(b, x, !t->transpose_a, dy, 0, &g->din[1]);
    return st;
}

/* ---- schedules ---- */

/* Vectors a panel and rows a tile: about 24 accumulators where the matrix is wide enough. */
static void tile_for(U32 n, unsigned *nv, unsigned *mr)
{
    *nv = n <= 16 ? 1 : n <= 32 ? 2 : 4;
    *mr = *nv == 4 ? 6 : 8;
}

static uint64_t packed_bytes(const struct matmul_dims *d)
{
    unsigned nv, mr;
    tile_for(d->n, &nv, &mr);
    return (uint64_t)d->batch * ((d->n + 16 * nv - 1) / (16 * nv)) * 16 * nv * d->k * sizeof(F32);
}

static const char *declines_cpu(const struct lksi_call *call, const struct lksi_limits *dev)
{
    if (dev->type != LKSI_DEV_CPU)
        return "made for CPU devices";
    return packed_bytes(dims_of(call)) > dev->max_alloc
               ? "the packed matrix is above the device's largest allocation"
               : NULL;
}

static struct lksi_launch *add_launch(struct lksi_recipe *r, const char *kernel, size_t x, size_t y,
                                      size_t z, size_t group)
{
    struct lksi_launch *l = &r->launch[r->n_launch++];
    l->source = "op/matmul.cl";
    l->kernel = kernel;
    l->dims = 3;
    l->local[0] = l->local[1] = group;
    l->local[2] = 1;
    l->global[0] = x * group;
    l->global[1] = y * group;
    l->global[2] = z;
    return l;
}

static void recipe_cpu(const struct lksi_call *call, const struct lksi_limits *dev,
                       struct lksi_recipe *r)
{
    const struct matmul_dims *d = dims_of(call);
    unsigned nv, mr;
    struct lksi_launch *l;
    (void)dev;
    tile_for(d->n, &nv, &mr);
    size_t panels = (d->n + 16 * nv - 1) / (16 * nv);
    r->n_work = 1;
    r->work_bytes[0] = packed_bytes(d);
    l = add_launch(r, "pack", (d->k + 63) / 64, panels, d->batch, 1);
    snprintf(l->defines, sizeof l->defines, "PACK NV=%u", nv);
    l->arg[l->n_arg++] = LKSI_IN(1);
    l->arg[l->n_arg++] = LKSI_WORK(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l = add_launch(r, "product", (d->m + mr - 1) / mr, panels, d->batch, 1);
    snprintf(l->defines, sizeof l->defines, "PRODUCT MR=%u NV=%u", mr, nv);
    l->arg[l->n_arg++] = LKSI_IN(0);
    l->arg[l->n_arg++] = LKSI_WORK(0);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
}

/* It also serves CPU devices, where it is slow: tests reach it there. */
static const char *declines_gpu(const struct lksi_call *call, const struct lksi_limits *dev)
{
    (void)call;
    return dev->max_group < 256 || dev->max_item[0] < 16 || dev->max_item[1] < 16
               ? "work-groups are too small"
               : NULL;
}

static void recipe_gpu(const struct lksi_call *call, const struct lksi_limits *dev,
                       struct lksi_recipe *r)
{
    const struct matmul_dims *d = dims_of(call);
    struct lksi_launch *l =
        add_launch(r, "tiled", (d->n + 63) / 64, (d->m + 63) / 64, d->batch, 16);
    (void)dev;
    snprintf(l->defines, sizeof l->defines, "TILED");
    l->arg[l->n_arg++] = LKSI_IN(0);
    l->arg[l->n_arg++] = LKSI_IN(1);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
}

static const struct lksi_schedule schedules[] = {
    {"cpu", declines_cpu, recipe_cpu}, {"gpu", declines_gpu, recipe_gpu}, {NULL, NULL, NULL}};

/* ---- the C loop: a part is 16 columns of one matrix ---- */

#define LANES 16
#define DEEP  LKS_PIECE /* a piece of the chain */

static U64 ref_parts(const struct lksi_call *call)
{
    const struct matmul_dims *d = dims_of(call);
    return (U64)d->batch * ((d->n + LANES - 1) / LANES);
}

LKSI_CLONES static void ref(const struct lksi_call *call, const void *const *in, void *const *out,
                            U64 p0, U64 p1)
{
    const struct matmul_dims *d = dims_of(call);
    U64 blocks = (d->n + LANES - 1) / LANES;
    F32 packed[DEEP][LANES];
    for (U64 part = p0; part < p1; part++) {
        U64 s = part / blocks;
        U32 n0 = (U32)(part % blocks) * LANES, lanes = d->n - n0 < LANES ? d->n - n0 : LANES;
        const F32 *a = (const F32 *)in[0] + s * d->m * d->k;
        const F32 *b = (const F32 *)in[1] + s * d->k * d->n + (U64)n0 * d->bn;
        F32 *y = (F32 *)out[0] + s * d->m * d->n + n0;
        for (U32 k0 = 0; k0 < d->k; k0 += DEEP) {
            U32 deep = d->k - k0 < DEEP ? d->k - k0 : DEEP;
            for (U32 k = 0; k < deep; k++)
                for (U32 j = 0; j < LANES; j++)
                    packed[k][j] =
                        j < lanes ? b[(U64)(k0 + k) * d->bk + (U64)j * d->bn] : 0.0f;
            for (U32 m = 0; m < d->m; m++) {
                const F32 *row = a + (U64)m * d->am + (U64)k0 * d->ak;
                F32 acc[LANES] = {0};
                for (U32 k = 0; k < deep; k++) {
                    F32 v = row[(U64)k * d->ak];
                    for (int j = 0; j < LANES; j++)
                        acc[j] = lks_fma(v, packed[k][j], acc[j]);
                }
                for (U32 j = 0; j < lanes; j++)
                    y[(U64)m * d->n + j] = (k0 > 0 ? y[(U64)m * d->n + j] : 0.0f) + acc[j];
            }
        }
    }
}

static double flops(const struct lksi_call *call)
{
    const struct matmul_dims *d = dims_of(call);
    return 2.0 * d->batch * d->m * (double)d->n * d->k;
}

/* ---- tests ---- */

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const struct {
        int rank;
        int64_t one, two, m, n, k;
    } cases[] = {
        {2, 1, 1, 1, 1, 1},     {2, 1, 1, 5, 17, 3},    {3, 3, 1, 7, 16, 9},
        {3, 2, 1, 33, 31, 65},  {3, 1, 1, 64, 64, 64},  {4, 2, 3, 40, 32, 33},
        {4, 3, 2, 6, 63, 17},   {3, 2, 1, 65, 66, 15},  {3, 2, 1, 17, 70, 300},
        {3, 5, 1, 1, 40, 64},   {2, 1, 1, 100, 3, 257}, {3, 2, 1, 9, 18, 2570}, {4, 8, 8, 256, 256, 64},
    };
    struct lksi_matmul_attr *t = attr;
    int c = index / 4;
    if (c >= (int)LKSI_COUNT(cases) - (long_run ? 0 : 1))
        return false;
    t->transpose_a = index & 1;
    t->transpose_b = index >> 1 & 1;
    call->n_in = 2;
    for (int i = 0; i < 2; i++) {
        struct lksi_desc *x = &call->in[i];
        bool turn = i == 0 ? t->transpose_a : t->transpose_b;
        int64_t rows = i == 0 ? cases[c].m : cases[c].k, columns = i == 0 ? cases[c].k : cases[c].n;
        *x = (struct lksi_desc){.dtype = LKSI_F32, .rank = cases[c].rank};
        int r = 0;
        if (x->rank > 2)
            x->dim[r++] = cases[c].one;
        if (x->rank > 3)
            x->dim[r++] = cases[c].two;
        x->dim[r++] = turn ? columns : rows;
        x->dim[r++] = turn ? rows : columns;
    }
    return true;
}

static const struct lksi_op matmul = {
    .name = "matmul",
    .contract = "contract/matmul.h",
    .dims = "matmul_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_matmul_attr),
    .infer = infer,
    .item = matmul_item_c,
    .ref_parts = ref_parts,
    .ref = ref,
    .schedules = schedules,
    .grad = grad,
    .flops = flops,
    .product = true,
    .test_case = test_case,
};

const struct lksi_op *const lksi_ops_matmul[] = {&matmul, NULL};
