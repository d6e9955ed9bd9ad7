/*
 * layer_embedding.c - tables of rows by token, and learned positions.
 */
#include "graph/layer.h"

static lks_status embedding(lks_graph *g, lks_value tokens, const struct lks_embedding_params *p,
                            lks_value *y)
{
    lks_status st = lksi_layer_check(g, "lks_graph_embedding", tokens, y);
    struct lksi_layer_head l;
    lksi_value in[2] = {LKSI_NONE, tokens}, out;
    if (st != LKS_OK)
        return st;
    if (p == NULL || p->out < 1 || p->vocabulary < 1)
        return lksi_fail(LKS_E_ARGUMENT, "embedding: `vocabulary` and `out` must be 1 or more");
    if (g->value[tokens].desc.dtype != LKSI_I32)
        return lksi_fail(LKS_E_ARGUMENT, "embedding: it takes tokens, an input of integers");
    struct lksi_desc w =
        lksi_desc_make(LKSI_F32, 2, (int64_t)p->vocabulary, (int64_t)p->out);
    lksi_layer_begin(&l, g, "embedding", p->name, p->share);
    st = lksi_layer_param(&l, "weight", &w, p->vocabulary, p->out, LKSI_START_INIT, &in[0]);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, l.name, "embedding", NULL, 2, in, &out);
    if (st == LKS_OK)
        *y = out;
    return st;
}

lks_status lks_graph_embedding(lks_graph *g, lks_value tokens,
                               const struct lks_embedding_params *p, lks_value *y)
{
    LKSI_RETURN_WHOLE(g, embedding(g, tokens, p, y));
}

/* The parameter has no batch, so that the sum over the samples is its gradient. */
static lks_status positions(lks_graph *g, lks_value x, const struct lks_positions_params *p,
                            lks_value *y)
{
    lks_status st = lksi_layer_check(g, "lks_graph_positions", x, y);
    struct lksi_layer_head l;
    struct lksi_desc w;
    lksi_value in[2] = {x}, out;
    if (st != LKS_OK)
        return st;
    w = g->value[x].desc;
    if (w.dtype != LKSI_F32 || w.rank < 2)
        return lksi_fail(LKS_E_ARGUMENT, "positions: a value of floats wanted");
    w.rank--;
    for (int k = 0; k < w.rank; k++)
        w.dim[k] = w.dim[k + 1];
    lksi_layer_begin(&l, g, "positions", p != NULL ? p->name : NULL, p != NULL ? p->share : NULL);
    st = lksi_layer_param(&l, "weight", &w, w.dim[0], w.dim[w.rank - 1], LKSI_START_INIT, &in[1]);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, l.name, "add_wide", NULL, 2, in, &out);
    if (st == LKS_OK)
        *y = out;
    return st;
}

lks_status lks_graph_positions(lks_graph *g, lks_value x, const struct lks_positions_params *p,
                               lks_value *y)
{
    LKSI_RETURN_WHOLE(g, positions(g, x, p, y));
}
