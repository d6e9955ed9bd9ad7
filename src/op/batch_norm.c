/*
 * batch_norm.c - normalisation over the batch, its gradient, its form for evaluation, and the
 * running statistics.
 */
#include <string.h>

#include "op/attr.h"
#include "op/batch_norm.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(batch_norm, in[0], in[1], in[2], in[3], out[0], out[1], out[2], out[3])
LKSI_ITEM(batch_norm_grad, in[0], in[1], in[2], in[3], in[4], out[0], out[1], out[2])
LKSI_ITEM(batch_norm_infer, in[0], in[1], in[2], in[3], in[4], in[5], out[0])
LKSI_ITEM(batch_norm_running, in[0], in[1], in[2], in[3], in[4], out[0], out[1])

/* ---- shapes ---- */

/* The pairs with the last of `leaves` leaves of p positions, `total` in all. */
static void fill_tree(struct lks_chan_tree *t, uint64_t leaves, uint64_t p, uint64_t total)
{
    t->mid = (F32)((double)p / 2.0);
    for (uint32_t level = 0; level < LKS_CHAN_LEVELS; level++) {
        uint64_t right = (leaves - 1) >> level; /* subtree of 2^level leaves that holds the last */
        double a = (double)(p << level), b = (double)total - (double)((right << level) * p);
        if ((right & 1) == 0)
            continue;
        t->last_b[level] = (F32)(b / (a + b));
        t->last_ab[level] = (F32)(a * b / (a + b));
    }
}

static lks_status fill_dims(struct lksi_call *call, const struct lksi_desc *x)
{
    const struct lksi_batch_norm_attr *a = call->attr;
    struct batch_norm_dims d = {.n = (U32)x->dim[0],
                                .h = x->rank == 4 ? (U32)x->dim[1] : 1u,
                                .w = x->rank == 4 ? (U32)x->dim[2] : 1u,
                                .c = (U32)x->dim[x->rank - 1],
                                .leaf = call->leaf,
                                .eps = a->eps,
                                .rest = call->n_in > call->op->min_in,
                                .relu = a->relu != 0};
    struct lks_leaf f = lks_leaf_make(d.n, d.h, d.w, d.leaf);
    uint64_t m = (uint64_t)d.n * d.h * d.w, per_sample = (uint64_t)d.h * d.w;
    const uint64_t most = (uint64_t)1 << LKS_CHAN_LEVELS;
    char text[96];
    if (f.cut > most || (uint64_t)d.n > most || m >> 52 != 0)
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: x is %s, too large: at most 2^20 samples, 2^20 leaves "
                         "a sample and 2^52 positions",
                         call->op->name, lksi_desc_text(x, text));
    d.count = (F32)(double)m;
    d.inverse = (F32)(1.0 / (double)m);
    fill_tree(&d.chan.sample, f.cut, (uint64_t)f.step * d.w, per_sample);
    fill_tree(&d.chan.batch, f.leaves / f.cut, f.join * per_sample, m);
    LKSI_SET_DIMS(call, batch_norm_dims, d);
    return LKS_OK;
}

lks_status lksi_batch_norm_want(struct lksi_call *call)
{
    const struct lksi_batch_norm_attr *a = call->attr;
    const struct lksi_desc *x = &call->in[0];
    char text[96];
    lks_status st = lksi_want_leaf(call);
    if (st == LKS_OK)
        st = lksi_want(call, 0, "x", LKSI_F32, 2, 4);
    if (st != LKS_OK)
        return st;
    if (x->rank == 3)
        return lksi_fail(LKS_E_ARGUMENT, "%s: x is %s, [N,C] or [N,H,W,C] wanted", call->op->name,
                         lksi_desc_text(x, text));
    if (!(a->eps >= 0.0f) || a->eps > 1e30f)
        return lksi_fail(LKS_E_ARGUMENT, "%s: eps is %g, 0 or more wanted", call->op->name,
                         (double)a->eps);
    return fill_dims(call, x);
}

static struct lksi_desc channels(const struct lksi_call *call)
{
    return lksi_desc_make(LKSI_F32, 1, call->in[0].dim[call->in[0].rank - 1]);
}

static lks_status want_channels(const struct lksi_call *call, int first, int n,
                                const char *const *what)
{
    lks_status st = LKS_OK;
    for (int i = 0; i < n && st == LKS_OK; i++)
        st = lksi_want_desc(call, first + i, what[i], channels(call));
    return st;
}

static lks_status infer(struct lksi_call *call)
{
    static const char *const what[] = {"gamma", "beta"};
    lks_status st = lksi_batch_norm_want(call);
    if (st == LKS_OK)
        st = want_channels(call, 1, 2, what);
    if (st == LKS_OK && call->n_in > 3)
        st = lksi_want_desc(call, 3, "the rest", call->in[0]);
    if (st != LKS_OK)
        return st;
    call->out[0] = call->in[0];
    for (int j = 1; j < 4; j++)
        call->out[j] = channels(call);
    return LKS_OK;
}

static lks_status infer_grad(struct lksi_call *call)
{
    static const char *const what[] = {"the mean", "invstd", "gamma"};
    lks_status st = lksi_batch_norm_want(call);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "dy", call->in[0]);
    if (st == LKS_OK)
        st = want_channels(call, 2, 3, what);
    if (st != LKS_OK)
        return st;
    call->out[0] = call->in[0];
    call->out[1] = call->out[2] = channels(call);
    return LKS_OK;
}

static lks_status infer_infer(struct lksi_call *call)
{
    static const char *const what[] = {"gamma", "beta", "the running mean", "the running variance"};
    lks_status st = lksi_batch_norm_want(call);
    if (st == LKS_OK)
        st = want_channels(call, 1, 4, what);
    if (st == LKS_OK && call->n_in > 5)
        st = lksi_want_desc(call, 5, "the rest", call->in[0]);
    if (st == LKS_OK)
        call->out[0] = call->in[0];
    return st;
}

static lks_status infer_running(struct lksi_call *call)
{
    static const char *const what[] = {"the variance", "the running mean", "the running variance"};
    const struct lksi_batch_norm_attr *a = call->attr;
    lks_status st = lksi_want(call, 0, "the mean", LKSI_F32, 1, 1);
    if (st == LKS_OK)
        st = want_channels(call, 1, 3, what);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 4, "the flag", lksi_desc_make(LKSI_I32, 1, (int64_t)1));
    if (st != LKS_OK)
        return st;
    if (!(a->momentum >= 0.0f && a->momentum <= 1.0f) || a->count < 1)
        return lksi_fail(LKS_E_ARGUMENT,
                         "batch_norm_running: momentum %g of %lld positions, 0 to 1 "
                         "of 1 or more wanted",
                         (double)a->momentum, (long long)a->count);
    call->out[0] = call->out[1] = call->in[0];
    LKSI_SET_DIMS(
        call, batch_norm_dims,
        {.c = (U32)call->in[0].dim[0],
         .momentum = a->momentum,
         .unbias = a->count == 1 ? 1.0f : (F32)((double)a->count / ((double)a->count - 1.0))});
    return LKS_OK;
}

static U64 items(const struct lksi_call *call)
{
    return (U64)call->in[0].dim[call->in[0].rank - 1];
}

/* ---- gradient ---- */

static lks_status grad(const struct lksi_backward *g)
{
    struct lksi_batch_norm_attr a;
    const lksi_value *in = g->in, *out = g->out, *dout = g->dout;
    lksi_value dy = dout[0], three[3];
    lks_status st = LKS_OK;
    memcpy(&a, g->call->attr, sizeof a);
    if (dout[1] != LKSI_NONE || dout[2] != LKSI_NONE || dout[3] != LKSI_NONE)
        return lksi_fail(LKS_E_ARGUMENT, "batch_norm: only y has a gradient, not the statistics");
    if (a.relu != 0)
        st = lksi_apply(g->b, "relu_grad", NULL, &dy, out[0], dy);
    a.relu = 0;
    if (g->call->n_in > 3)
        g->din[3] = dy;
    if (st == LKS_OK && (g->need[0] || g->need[1] || g->need[2]))
        st = lksi_apply(g->b, "batch_norm_grad", &a, three, in[0], dy, out[1], out[3], in[1]);
    for (int k = 0; k < 3 && st == LKS_OK; k++)
        g->din[k] = g->need[k] ? three[k] : LKSI_NONE;
    return st;
}

/* An `add` behind, whose other operand becomes `rest`, and a relu behind all. */
static bool absorb(void *attr, lksi_value *in, int *n_in, const struct lksi_op *next,
                   const void *next_attr, const lksi_value *next_in, int slot)
{
    struct lksi_batch_norm_attr *a = attr;
    int plain = strcmp(next->name, "add") == 0 ? *n_in : 0;
    (void)next_attr;
    if (a->relu != 0)
        return false;
    if (plain == 3 || plain == 5) {
        in[(*n_in)++] = next_in[1 - slot];
        return true;
    }
    if (strcmp(next->name, "relu") != 0)
        return false;
    a->relu = 1;
    return true;
}

static double flops(const struct lksi_call *call)
{
    return 8.0 * (double)lksi_desc_count(&call->in[0]);
}

/* ---- cases of the harness ---- */

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const struct {
        uint32_t leaf;
        int64_t n, h, w, c;
        float eps;
    } cases[] = {
        {8, 1, 0, 0, 1, 0.5f},      {1, 5, 0, 0, 17, 0.25f},    {2, 7, 0, 0, 16, 0.1f},
        {8, 65, 0, 0, 10, 1e-3f},   {8, 64, 0, 0, 33, 1e-5f},   {64, 130, 0, 0, 3, 1e-5f},
        {8, 9, 0, 0, 512, 0.1f},    {8, 17, 7, 7, 48, 1e-5f},   {1, 3, 32, 32, 16, 1e-5f},
        {2, 3, 33, 31, 15, 1e-3f},  {8, 3, 32, 33, 64, 1e-5f},  {8, 2, 1, 1025, 3, 1e-5f},
        {2, 2, 3, 1500, 8, 1e-5f},  {8, 11, 11, 13, 31, 1e-5f}, {4, 1, 100, 21, 100, 1e-5f},
        {4, 5, 45, 46, 65, 1e-5f},  {8, 13, 6, 5, 130, 1e-5f},  {2, 5, 3, 4, 200, 1e-3f},
        {4, 1, 40, 41, 64, 1e-5f},  {8, 64, 56, 56, 64, 1e-5f}, {8, 63, 28, 28, 37, 1e-5f},
    };
    if (index >= (int)LKSI_COUNT(cases) - (long_run ? 0 : 2))
        return false;
    call->leaf = cases[index].leaf;
    call->n_in = 3;
    call->in[0] = cases[index].h == 0 ? lksi_desc_make(LKSI_F32, 2, cases[index].n, cases[index].c)
                                      : lksi_desc_make(LKSI_F32, 4, cases[index].n, cases[index].h,
                                                       cases[index].w, cases[index].c);
    call->in[1] = call->in[2] = channels(call);
    call->in[3] = call->in[0];
    call->n_in += index % 3 == 1; /* with a rest */
    ((struct lksi_batch_norm_attr *)attr)->eps = cases[index].eps;
    ((struct lksi_batch_norm_attr *)attr)->relu = index % 3 > 0;
    return true;
}

static bool test_case_grad(int index, bool long_run, struct lksi_call *call, void *attr)
{
    if (!test_case(index, long_run, call, attr))
        return false;
    ((struct lksi_batch_norm_attr *)attr)->relu = 0;
    call->n_in = 5;
    call->in[1] = call->in[0];
    for (int i = 2; i < 5; i++)
        call->in[i] = channels(call);
    return true;
}

static bool test_case_infer(int index, bool long_run, struct lksi_call *call, void *attr)
{
    if (!test_case(index, long_run, call, attr))
        return false;
    call->n_in = call->n_in == 4 ? 6 : 5;
    for (int i = 1; i < 5; i++)
        call->in[i] = channels(call);
    call->in[5] = call->in[0];
    return true;
}

/* A variance is not negative. */
static uint32_t test_input_infer(const struct lksi_call *call, int index, uint32_t bits)
{
    (void)call;
    return index == 4 ? bits & 0x7fffffffu : bits;
}

static bool test_case_running(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const float momenta[] = {0.1f, 0.0f, 1.0f, 0.01f};
    struct lksi_batch_norm_attr *a = attr;
    if (!lksi_flat_case(index, long_run, &call->in[0]) || call->in[0].rank != 1)
        return false;
    a->momentum = momenta[index % 4];
    a->count = 1 + index * index;
    call->n_in = 5;
    for (int i = 1; i < 4; i++)
        call->in[i] = call->in[0];
    call->in[4] = lksi_desc_make(LKSI_I32, 1, (int64_t)1);
    return true;
}

/* The flag is raised in every other draw. */
static uint32_t test_input_running(const struct lksi_call *call, int index, uint32_t bits)
{
    (void)call;
    return index == 4 ? bits & 1u : bits;
}

static const struct lksi_op batch_norm = {
    .name = "batch_norm",
    .contract = "contract/batch_norm.h",
    .dims = "batch_norm_dims",
    .min_in = 3,
    .max_in = 4,
    .n_out = 4,
    .attr_size = sizeof(struct lksi_batch_norm_attr),
    .strided = true,
    .infer = infer,
    .items = items,
    .item = batch_norm_item_c,
    .ref_parts = lksi_batch_norm_ref_parts,
    .ref = lksi_batch_norm_ref,
    .schedules = lksi_batch_norm_schedules,
    .grad = grad,
    .absorb = absorb,
    .flops = flops,
    .test_case = test_case,
};

static const struct lksi_op batch_norm_grad = {
    .name = "batch_norm_grad",
    .contract = "contract/batch_norm.h",
    .dims = "batch_norm_dims",
    .min_in = 5,
    .max_in = 5,
    .n_out = 3,
    .attr_size = sizeof(struct lksi_batch_norm_attr),
    .strided = true,
    .needs_batch = true,
    .infer = infer_grad,
    .items = items,
    .item = batch_norm_grad_item_c,
    .ref_parts = lksi_batch_norm_ref_parts,
    .ref = lksi_batch_norm_grad_ref,
    .schedules = lksi_batch_norm_grad_schedules,
    .grad = lksi_batch_norm_second,
    .saved = 1u << 2 | 1u << 3,
    .flops = flops,
    .test_case = test_case_grad,
};

static const struct lksi_op batch_norm_infer = {
    .name = "batch_norm_infer",
    .contract = "contract/batch_norm.h",
    .dims = "batch_norm_dims",
    .min_in = 5,
    .max_in = 6,
    .n_out = 1,
    .attr_size = sizeof(struct lksi_batch_norm_attr),
    .infer = infer_infer,
    .item = batch_norm_infer_item_c,
    .schedules = lksi_batch_norm_infer_schedules,
    .absorb = absorb,
    .flops = flops,
    .test_case = test_case_infer,
    .test_input = test_input_infer,
};

static const struct lksi_op batch_norm_running = {
    .name = "batch_norm_running",
    .contract = "contract/batch_norm.h",
    .dims = "batch_norm_dims",
    .min_in = 5,
    .max_in = 5,
    .n_out = 2,
    .attr_size = sizeof(struct lksi_batch_norm_attr),
    .alias = {3, 4},
    .infer = infer_running,
    .item = batch_norm_running_item_c,
    .test_case = test_case_running,
    .test_input = test_input_running,
};

const struct lksi_op *const lksi_ops_batch_norm[] = {&batch_norm, &batch_norm_grad,
                                                     &batch_norm_infer, &batch_norm_running, NULL};
