/*
 * embedding.c - rows of a table by number, and the gradient of the table.
 *
 * The gradient looks at all tokens for each row of the table, 16 at a time: V * positions / 16
 * comparisons, times the vectors of a row. That is little for vocabularies of characters; with
 * 50,000 rows and 2048 positions it is 6 million a vector.
 */
#include <stdio.h>
#include <string.h>

#include "contract/embedding.h"
#include "op/attr.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(embedding, in[0], in[1], out[0])
LKSI_ITEM(embedding_grad, in[0], in[1], out[0])

static const struct embedding_dims *dims_of(const struct lksi_call *call)
{
    return (const struct embedding_dims *)(const void *)call->dims.bytes;
}

/* ---- shapes ---- */

static lks_status want_tokens(const struct lksi_call *call)
{
    char text[96];
    lks_status st = lksi_want(call, 1, "the tokens", LKSI_I32, 1, LKSI_MAX_RANK - 1);
    if (st == LKS_OK && lksi_desc_count(&call->in[1]) > INT32_MAX)
        return lksi_fail(LKS_E_ARGUMENT, "%s: the tokens are %s, less than 2^31 wanted",
                         call->op->name, lksi_desc_text(&call->in[1], text));
    return st;
}

/* The tokens' shape with the length of a row behind it. */
static struct lksi_desc rows_of(const struct lksi_desc *tokens, int64_t length)
{
    struct lksi_desc y = *tokens;
    y.dtype = LKSI_F32;
    y.dim[y.rank++] = length;
    return y;
}

static void set_dims(struct lksi_call *call, int64_t rows, int64_t length)
{
    const struct lksi_desc *t = &call->in[1];
    LKSI_SET_DIMS(call, embedding_dims,
                  {.v = (U32)rows,
                   .d = (U32)length,
                   .n = (U32)t->dim[0],
                   .s = (U32)(lksi_desc_count(t) / t->dim[0]),
                   .leaf = call->leaf});
}

static lks_status infer(struct lksi_call *call)
{
    const struct lksi_desc *table = &call->in[0];
    lks_status st = lksi_want(call, 0, "the table", LKSI_F32, 2, 2);
    if (st == LKS_OK)
        st = want_tokens(call);
    if (st != LKS_OK)
        return st;
    call->out[0] = rows_of(&call->in[1], table->dim[1]);
    set_dims(call, table->dim[0], table->dim[1]);
    return LKS_OK;
}

static lks_status infer_grad(struct lksi_call *call)
{
    const struct lksi_embedding_attr *a = call->attr;
    lks_status st = lksi_want_leaf(call);
    int64_t length;
    if (st == LKS_OK)
        st = want_tokens(call);
    if (st == LKS_OK)
        st = lksi_want(call, 0, "dy", LKSI_F32, 2, LKSI_MAX_RANK);
    if (st != LKS_OK)
        return st;
    length = call->in[0].dim[call->in[0].rank - 1];
    st = lksi_want_desc(call, 0, "dy", rows_of(&call->in[1], length));
    if (st == LKS_OK && (a->rows < 1 || a->rows > INT32_MAX))
        st = lksi_fail(LKS_E_ARGUMENT, "embedding_grad: a table of %lld rows", (long long)a->rows);
    if (st != LKS_OK)
        return st;
    call->out[0] = lksi_desc_make(LKSI_F32, 2, a->rows, length);
    set_dims(call, a->rows, length);
    return LKS_OK;
}

/* ---- gradients: each is the other's ---- */

static lks_status grad(const struct lksi_backward *g)
{
    const struct lksi_embedding_attr a = {g->call->in[0].dim[0]};
    return lksi_flow(g, 0, "embedding_grad", &a, g->dout[0], g->in[1]);
}

static lks_status grad_grad(const struct lksi_backward *g)
{
    return lksi_flow(g, 0, "embedding", NULL, g->dout[0], g->in[1]);
}

/* ---- schedules ---- */

static struct lksi_launch *begin(const struct lksi_call *call, struct lksi_recipe *r,
                                 const char *kernel, unsigned vec, const char *more)
{
    struct lksi_launch *l = &r->launch[r->n_launch++];
    l->source = "op/embedding.cl";
    l->kernel = kernel;
    snprintf(l->defines, sizeof l->defines, "VEC=%u%s", vec, more);
    l->arg[l->n_arg++] = LKSI_IN(0);
    l->arg[l->n_arg++] = LKSI_IN(1);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
    (void)call;
    l->dims = 2;
    return l;
}

/* On a CPU device a work-item copies some rows; on a GPU neighbours copy one row together. */
static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    const struct embedding_dims *d = dims_of(call);
    bool gpu = dev->type == LKSI_DEV_GPU;
    U32 chunk = gpu ? 1 : 64;
    struct lksi_launch *l = begin(call, r, "read", gpu ? 1 : lksi_lanes(d->d), " READ");
    l->arg[l->n_arg++] = LKSI_U32(chunk);
    l->local[0] = 1;
    l->local[1] = gpu ? lksi_group(dev, 64) : 1;
    while (l->local[1] > dev->max_item[1])
        l->local[1] /= 2;
    l->global[0] = (d->n * (U64)d->s + chunk - 1) / chunk;
    l->global[1] = gpu ? (d->d + l->local[1] - 1) / l->local[1] * l->local[1] : 1;
}

static void recipe_grad(const struct lksi_call *call, const struct lksi_limits *dev,
                        struct lksi_recipe *r)
{
    const struct embedding_dims *d = dims_of(call);
    bool gpu = dev->type == LKSI_DEV_GPU;
    unsigned vec = gpu ? 1 : lksi_lanes(d->d);
    struct lksi_launch *l = begin(call, r, "gather", vec, "");
    l->local[0] = gpu ? lksi_group(dev, 32) : 1;
    l->local[1] = 1;
    l->global[0] = ((d->d + vec - 1) / vec + l->local[0] - 1) / l->local[0] * l->local[0];
    l->global[1] = d->v;
}

static const struct lksi_schedule schedules[] = {{"rows", lksi_flat_declines, recipe},
                                                 {NULL, NULL, NULL}};
static const struct lksi_schedule schedules_grad[] = {{"rows", lksi_flat_declines, recipe_grad},
                                                      {NULL, NULL, NULL}};

static double flops(const struct lksi_call *call)
{
    return (double)lksi_desc_count(&call->in[0]);
}

/* ---- the C loop of the gradient: a part is a row of the table ---- */

static U64 ref_parts(const struct lksi_call *call)
{
    return dims_of(call)->v;
}

/* Rows that no token names are +0; the items do the others. */
static void ref(const struct lksi_call *call, const void *const *in, void *const *out, U64 p0,
                U64 p1)
{
    const struct embedding_dims *d = dims_of(call);
    const I32 *token = in[1];
    F32 *to = out[0];
    U64 all = (U64)d->n * d->s;
    for (U64 row = p0; row < p1; row++) {
        U64 p = 0;
        while (p < all && token[p] != (I32)row)
            p++;
        for (U64 i = row * d->d; i < (row + 1) * d->d; i++) {
            if (p < all)
                embedding_grad_item(in[0], token, to, d, i);
            else
                to[i] = 0.0f;
        }
    }
}

/* ---- tests ---- */

/* Rows, length, samples, positions (0: tokens [N]), leaf. */
static const int64_t cases[][5] = {
    {1, 1, 1, 0, 8},      {5, 17, 3, 0, 8},   {9, 16, 2, 7, 8},      {74, 64, 9, 33, 8},
    {31, 33, 20, 64, 4},  {7, 3, 17, 5, 1},   {3, 100, 2, 1024, 8},  {6, 48, 3, 1025, 8},
    {300, 15, 4, 40, 64}, {40, 65, 1, 2500, 2}, {74, 64, 64, 64, 8},
};

static bool shape_case(int index, bool long_run, struct lksi_call *call)
{
    if (index >= (int)LKSI_COUNT(cases) - (long_run ? 0 : 1))
        return false;
    const int64_t *c = cases[index];
    call->leaf = (uint32_t)c[4];
    call->n_in = 2;
    call->in[0] = lksi_desc_make(LKSI_F32, 2, c[0], c[1]);
    call->in[1] = c[3] == 0 ? lksi_desc_make(LKSI_I32, 1, c[2])
                            : lksi_desc_make(LKSI_I32, 2, c[2], c[3]);
    return true;
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    (void)attr;
    return shape_case(index, long_run, call);
}

static bool test_case_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    struct lksi_embedding_attr *a = attr;
    if (!shape_case(index, long_run, call))
        return false;
    a->rows = call->in[0].dim[0];
    call->in[0] = rows_of(&call->in[1], call->in[0].dim[1]);
    return true;
}

/* Tokens come drawn in [0, length): those of a short table wrap. */
static uint32_t test_input(const struct lksi_call *call, int index, uint32_t bits)
{
    return index == 1 ? bits % dims_of(call)->v : bits;
}

static const struct lksi_op embedding = {
    .name = "embedding",
    .contract = "contract/embedding.h",
    .dims = "embedding_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .infer = infer,
    .item = embedding_item_c,
    .schedules = schedules,
    .grad = grad,
    .test_case = test_case,
    .test_input = test_input,
};

static const struct lksi_op embedding_grad = {
    .name = "embedding_grad",
    .contract = "contract/embedding.h",
    .dims = "embedding_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_embedding_attr),
    .sums_samples = 3,
    .infer = infer_grad,
    .item = embedding_grad_item_c,
    .ref_parts = ref_parts,
    .ref = ref,
    .schedules = schedules_grad,
    .grad = grad_grad,
    .flops = flops,
    .test_case = test_case_grad,
    .test_input = test_input,
};

const struct lksi_op *const lksi_ops_embedding[] = {&embedding, &embedding_grad, NULL};
