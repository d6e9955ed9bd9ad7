/*
 * blocks.c - adds what flows back to one value from several uses.
 *
 * Gradients that are sums over the samples (lksi_op.sums_samples) are added block by block before
 * the tree over the blocks (numerics.md, rule 8): the operator is asked for each block of `leaf`
 * samples anew, on a copy of those samples. Its sum over a block is the root of a complete subtree
 * of the sum over the batch, so no order is invented here. All other gradients are added whole, in
 * graph order (rule 9), behind that sum.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/blocks.h"
#include "op/attr.h"

#define LEVELS 40 /* of a tree over blocks */

/* A gradient that can be cut: output `slot` of a node, seen through views. */
struct use {
    lksi_value whole;
    size_t node;
    int slot;
    int64_t samples;
};

static lks_status add(struct lks_graph *g, lksi_value a, lksi_value b, lksi_value *sum)
{
    return lksi_graph_add_node(g, "add_gradients", "add", NULL, 2, (lksi_value[]){a, b}, sum);
}

/* The node that computes `v`, behind views. */
static int source(const struct lks_graph *g, lksi_value v)
{
    int node = g->value[v].node;
    while (node >= 0 && g->node[node].call.op->view)
        node = g->value[g->node[node].in[0]].node;
    return node;
}

/* How often the batch's first dimension goes into input k's. */
static int64_t rows_a_sample(const struct lksi_call *call, int k, int64_t samples)
{
    return call->in[k].dim[0] / samples;
}

/* True if `v` is a sum over samples that may be cut into blocks. */
static bool cuttable(const struct lks_graph *g, lksi_value v, struct use *use)
{
    int node = source(g, v);
    const struct lksi_call *call = node >= 0 ? &g->node[node].call : NULL;
    lksi_value root = v;
    if (call == NULL || call->op->sums_samples == 0)
        return false;
    while (g->value[root].node != node)
        root = g->node[g->value[root].node].in[0];
    *use = (struct use){.whole = v, .node = (size_t)node};
    while (g->node[node].out[use->slot] != root)
        use->slot++;
    for (int k = 0; k < call->n_in; k++)
        if ((call->op->sums_samples >> k & 1u) != 0 &&
            (use->samples == 0 || call->in[k].dim[0] < use->samples))
            use->samples = call->in[k].dim[0];
    return true;
}

/* The samples of block `block` of input k. */
static lks_status cut_input(struct lks_graph *g, const struct use *u, int k, int64_t block,
                            lksi_value *out)
{
    const struct lksi_gnode *n = &g->node[u->node];
    int64_t first = block * g->leaf, left = u->samples - first;
    int64_t rows = rows_a_sample(&n->call, k, u->samples);
    lksi_value whole = n->in[k]; /* adding moves the array */
    struct lksi_samples_attr a = {first * rows, (left < g->leaf ? left : g->leaf) * rows};
    return lksi_graph_add_node(g, "block", "samples", &a, 1, &whole, out);
}

/* The views between the node and the gradient, on top of `v`. */
static lks_status same_views(struct lks_graph *g, const struct use *u, lksi_value above,
                             lksi_value *v)
{
    size_t node = (size_t)g->value[above].node;
    if (node == u->node)
        return LKS_OK;
    lks_status st = same_views(g, u, g->node[node].in[0], v);
    const struct lksi_gnode n = g->node[node];
    return st == LKS_OK
               ? lksi_graph_add_node(g, n.name, n.call.op->name, n.call.attr, 1, v, v)
               : st;
}

/* The gradient of one use over one block. */
static lks_status use_of_block(struct lks_graph *g, const struct use *u, int64_t block,
                               lksi_value *part)
{
    const struct lksi_gnode n = g->node[u->node]; /* adding moves the array */
    lksi_value in[LKSI_MAX_IN], out[LKSI_MAX_OUT];
    lks_status st = LKS_OK;
    for (int k = 0; k < n.call.n_in && st == LKS_OK; k++) {
        in[k] = n.in[k];
        if ((n.call.op->sums_samples >> k & 1u) != 0)
            st = cut_input(g, u, k, block, &in[k]);
    }
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, n.name, n.call.op->name, n.call.attr, n.call.n_in, in, out);
    if (st != LKS_OK)
        return st;
    *part = out[u->slot];
    return same_views(g, u, u->whole, part);
}

static lks_status sum_of_block(struct lks_graph *g, const struct use *use, size_t n, int64_t block,
                               lksi_value *sum)
{
    lksi_value total = LKSI_NONE, part;
    lks_status st = LKS_OK;
    for (size_t i = 0; i < n && st == LKS_OK; i++) {
        if (block * g->leaf >= use[i].samples)
            continue;
        st = use_of_block(g, &use[i], block, &part);
        if (st == LKS_OK && total != LKSI_NONE)
            st = add(g, total, part, &part);
        total = part;
    }
    *sum = total;
    return st;
}

/* The tree over the blocks, as the counter of cl/contract/sum.h: one partial sum a level. */
static lks_status sum_blocks(struct lks_graph *g, const struct use *use, size_t n, int64_t blocks,
                             lksi_value *sum)
{
    lksi_value level[LEVELS], v = LKSI_NONE;
    lks_status st = LKS_OK;
    for (int64_t b = 0; b < blocks; b++) {
        int l = 0;
        LKSI_TRY(sum_of_block(g, use, n, b, &v));
        for (; (b >> l & 1) != 0; l++)
            LKSI_TRY(add(g, level[l], v, &v));
        level[l] = v;
    }
    v = LKSI_NONE;
    for (int l = 0; l < LEVELS; l++) {
        if ((blocks >> l & 1) == 0)
            continue;
        if (v == LKSI_NONE)
            v = level[l];
        else
            LKSI_TRY(add(g, level[l], v, &v));
    }
    *sum = v;
fail:
    return st;
}

static lks_status sum_whole(struct lks_graph *g, const struct use *use, size_t n, lksi_value *sum)
{
    lks_status st = LKS_OK;
    *sum = use[0].whole;
    for (size_t i = 1; i < n && st == LKS_OK; i++)
        st = add(g, *sum, use[i].whole, sum);
    return st;
}

/* The second sum over the samples that cannot be cut; -1 if there is one at most, which is added
 * whole. */
static int uncuttable(const struct lks_graph *g, const lksi_value *part, size_t n)
{
    int met = 0;
    for (size_t i = 0; i < n; i++) {
        int node = source(g, part[i]);
        if (node >= 0 && g->node[node].call.op->needs_batch && ++met == 2)
            return node;
    }
    return -1;
}

/* Splits the gradients into those that are cut and `rest`; returns the most blocks of one. */
static int64_t sort_uses(const struct lks_graph *g, const lksi_value *part, size_t n,
                         struct use *use, size_t *n_use, lksi_value *rest, size_t *n_rest)
{
    int64_t blocks = 1;
    for (size_t i = 0; i < n; i++) {
        if (!cuttable(g, part[i], &use[*n_use])) {
            rest[(*n_rest)++] = part[i];
            continue;
        }
        int64_t b = (use[*n_use].samples + g->leaf - 1) / g->leaf;
        blocks = b > blocks ? b : blocks;
        (*n_use)++;
    }
    return blocks;
}

lks_status lksi_graph_sum_uses(struct lks_graph *g, const lksi_value *part, size_t n, bool cut,
                               lksi_value *sum)
{
    struct use *use;
    lksi_value *rest, total = LKSI_NONE;
    size_t n_use = 0, n_rest = 0;
    lks_status st = LKS_OK;
    int bad = n > 1 ? uncuttable(g, part, n) : -1;
    if (n == 1) {
        *sum = part[0];
        return LKS_OK;
    }
    if (bad >= 0)
        return lksi_fail(LKS_E_ARGUMENT,
                         "%s: its parameter is used more than once, and its gradient cannot be "
                         "added block by block, since the statistics span the batch; give each "
                         "use parameters of its own, or take group_norm or layer_norm",
                         g->node[bad].name);
    use = lksi_alloc(n, sizeof *use);
    rest = lksi_alloc(n, sizeof *rest);
    if (use == NULL || rest == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    int64_t blocks = sort_uses(g, part, n, use, &n_use, rest, &n_rest);
    if (n_use > 1 && cut && blocks > 1)
        LKSI_TRY(sum_blocks(g, use, n_use, blocks, &total));
    else if (n_use > 0)
        LKSI_TRY(sum_whole(g, use, n_use, &total));
    for (size_t i = 0; i < n_rest; i++) {
        if (total == LKSI_NONE)
            total = rest[i];
        else
            LKSI_TRY(add(g, total, rest[i], &total));
    }
    *sum = total;
fail:
    free(use);
    free(rest);
    return st;
}
