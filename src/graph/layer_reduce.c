/*
 * layer_reduce.c - sums over axes, softmax and matrix products.
 */
#include <string.h>

#include "graph/layer_shape.h"
#include "op/attr.h"

/* `word` is what it is called outside. */
static lks_status reduce(lks_graph *g, const char *word, const char *op, lks_value x, int n,
                         const int *axes, bool keep, lks_value *y)
{
    lks_status st = lksi_layer_check(g, word, x, y);
    struct lksi_reduce_attr a;
    if (st != LKS_OK)
        return st;
    int rank = g->value[x].desc.rank - 1;
    memset(&a, 0, sizeof a);
    a.keep = keep;
    for (int k = 0; k < rank && n == 0; k++)
        a.axes |= 2u << k;
    if (n < 0 || (n > 0 && axes == NULL) || rank < 1)
        return lksi_fail(LKS_E_ARGUMENT, "%s: a list of axes of a sample wanted", word);
    for (int i = 0; i < n; i++) {
        int k = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (k < 0 || k >= rank || (a.axes >> (k + 1) & 1u) != 0)
            return lksi_fail(LKS_E_ARGUMENT, "%s: axis %d; each of %d to %d at most once wanted "
                             "(the batch is not counted)", word, axes[i], -rank, rank - 1);
        a.axes |= 2u << k;
    }
    return lksi_layer_apply(g, word, op, &a, 1, &x, y);
}

#define REDUCE(name, op)                                                                           \
    lks_status lks_graph_##name(lks_graph *g, lks_value x, int n, const int *axes, bool keep,      \
                                lks_value *y)                                                      \
    {                                                                                              \
        return reduce(g, #name, op, x, n, axes, keep, y);                                          \
    }
REDUCE(sum, "sum")
REDUCE(mean, "mean")
REDUCE(max, "reduce_max")
REDUCE(min, "reduce_min")

static lks_status softmax(lks_graph *g, const char *op, lks_value x, bool causal, lks_value *y)
{
    struct lksi_softmax_attr a = {causal};
    lks_status st = lksi_layer_check(g, op, x, y);
    if (st == LKS_OK && g->value[x].desc.rank < (causal ? 3 : 2))
        st = lksi_fail(LKS_E_ARGUMENT, "%s: a sample needs %d axes or more", op, causal ? 2 : 1);
    return st == LKS_OK ? lksi_layer_apply(g, op, op, &a, 1, &x, y) : st;
}

lks_status lks_graph_softmax(lks_graph *g, lks_value x, bool causal, lks_value *y)
{
    return softmax(g, "softmax", x, causal, y);
}

lks_status lks_graph_log_softmax(lks_graph *g, lks_value x, lks_value *y)
{
    return softmax(g, "log_softmax", x, false, y);
}

/* In the words of one sample. */
static lks_status check_product(const lks_graph *g, lks_value a, lks_value b, bool transpose_a,
                                bool transpose_b)
{
    const struct lksi_desc d = lksi_sample(g, a), e = lksi_sample(g, b);
    char one[96], two[96];
    if (d.rank < 2 || e.rank < 2)
        return lksi_fail(LKS_E_ARGUMENT, "matmul: samples of [.., rows, columns] wanted, not %s and "
                                         "%s", lksi_desc_text(&d, one), lksi_desc_text(&e, two));
    int64_t columns = d.dim[d.rank - (transpose_a ? 2 : 1)];
    int64_t rows = e.dim[e.rank - (transpose_b ? 1 : 2)];
    bool fit = d.rank == e.rank && columns == rows;
    for (int k = 0; k < d.rank - 2 && fit; k++)
        fit = d.dim[k] == e.dim[k];
    return fit ? LKS_OK
               : lksi_fail(LKS_E_ARGUMENT,
                           "matmul: %s%s and %s%s do not fit: the columns of the first are %lld, the "
                           "rows of the second %lld, which must be equal, as must all sizes before "
                           "the last two",
                           lksi_desc_text(&d, one), transpose_a ? " transposed" : "",
                           lksi_desc_text(&e, two), transpose_b ? " transposed" : "",
                           (long long)columns, (long long)rows);
}

lks_status lks_graph_matmul(lks_graph *g, lks_value a, lks_value b, bool transpose_a,
                            bool transpose_b, lks_value *y)
{
    struct lksi_matmul_attr t = {transpose_a, transpose_b};
    lks_value pair[2] = {a, b};
    lks_status st = lksi_layer_check(g, "lks_graph_matmul", a, y);
    if (st == LKS_OK)
        st = lksi_layer_check(g, "lks_graph_matmul", b, y);
    if (st == LKS_OK)
        st = check_product(g, a, b, transpose_a, transpose_b);
    return st == LKS_OK ? lksi_layer_apply(g, "matmul", "matmul", &t, 2, pair, y) : st;
}
