/*
 * test_accuracy.c - the suites of right numbers must catch wrong ones: a contract that loses a
 * term, an operator that nobody wrote in double, gradients that are wrong or forgotten.
 */
#include <criterion/criterion.h>

#include "check/accuracy.h"
#include "check/real.h"
#include "contract/dense.h"
#include "helpers.h"
#include "op/attr.h"

typedef lks_status (*suite_fn)(const struct lksi_check_options *, lksi_accuracy_fn, void *,
                               size_t *);

static void keep(void *user, const struct lksi_accuracy_row *row)
{
    *(struct lksi_accuracy_row *)user = *row;
}

/* Whether a suite fails the one operator, with `text` in what it says. */
static bool fails(suite_fn suite, const struct lksi_op *op, const char *text)
{
    const struct lksi_op *const ops[] = {op, NULL};
    const struct lksi_check_options options = {.ops = ops, .seed = 1};
    struct lksi_accuracy_row row = {0};
    size_t failed;
    EXPECT_OK(suite(&options, keep, &row, &failed));
    cr_assert(row.op == op && failed == (row.failed ? 1u : 0u));
    cr_expect(!row.failed || strstr(row.text, text) != NULL, "%s", row.text);
    return row.failed;
}

static struct lksi_op dense_copy(void)
{
    const struct lksi_op *dense = lksi_op_find("dense");
    cr_assert(dense != NULL);
    return *dense;
}

/* The dense layer with its last term lost, where there are more than 64. */
static void item_tail(const void *const *in, void *const *out, const void *dims, U64 i)
{
    const struct dense_dims *d = dims;
    const F32 *x = in[0], *w = in[1], *bias = in[2];
    U64 n = i / d->o, o = i % d->o;
    F32 acc = 0.0f;
    for (U32 k = 0; k < d->i - (d->i > 64); k++)
        acc = lks_fma(x[n * d->i + k], w[o * d->i + k], acc);
    acc = d->extra != 0 ? acc + bias[o] : acc;
    ((F32 *)out[0])[i] = d->relu != 0 && acc <= 0.0f ? 0.0f : acc + 0.0f;
}

Test(accuracy, catches_a_lost_term)
{
    struct lksi_op op = dense_copy();
    cr_expect(!fails(lksi_accuracy_run, &op, ""));
    op.item = item_tail;
    cr_expect(fails(lksi_accuracy_run, &op, "allowed error"));
}

Test(accuracy, wants_every_operator)
{
    struct lksi_op op = dense_copy();
    op.name = "unheard-of";
    cr_expect(fails(lksi_accuracy_run, &op, "no double-precision function"));
    op = dense_copy();
    op.test_case = NULL;
    cr_expect(fails(lksi_accuracy_run, &op, "no case"));
    for (size_t i = 0; lksi_op_at(i) != NULL; i++)
        cr_expect(lksi_real_find(lksi_op_at(i)->name) != NULL, "%s", lksi_op_at(i)->name);
}

/* The right gradient, after which one input's is forgotten. */
static lks_status grad_forgets(const struct lksi_backward *g)
{
    lks_status st = lksi_op_find("dense")->grad(g);
    g->din[1] = LKSI_NONE;
    return st;
}

/* The relu behind the sum is overlooked. */
static lks_status grad_no_relu(const struct lksi_backward *g)
{
    const struct lksi_dense_attr none = {0};
    struct lksi_call plain = *g->call;
    struct lksi_backward of_plain = *g;
    plain.attr = &none;
    of_plain.call = &plain;
    return lksi_op_find("dense")->grad(&of_plain);
}

/* The gradient of the bias comes out in another shape. */
static lks_status grad_shape(const struct lksi_backward *g)
{
    lks_status st = lksi_op_find("dense")->grad(g);
    g->din[0] = g->dout[0];
    return st;
}

static lks_status grad_refuses(const struct lksi_backward *g)
{
    (void)g;
    return lksi_fail(LKS_E_ARGUMENT, "it refuses");
}

Test(gradient, catches_wrong_gradients)
{
    struct lksi_op op = dense_copy();
    cr_expect(!fails(lksi_gradient_run, &op, ""));
    op.grad = grad_forgets;
    cr_expect(fails(lksi_gradient_run, &op, "gradient of input 1"));
    op.grad = grad_no_relu;
    cr_expect(fails(lksi_gradient_run, &op, "by differences"));
    op.grad = grad_shape;
    cr_expect(fails(lksi_gradient_run, &op, "another shape"));
    op.grad = grad_refuses;
    cr_expect(fails(lksi_gradient_run, &op, "it refuses"));
}
