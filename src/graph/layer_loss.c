/*
 * layer_loss.c - losses.
 */
#include "graph/layer.h"

lks_status lks_graph_softmax_cross_entropy(lks_graph *g, lks_value logits)
{
    struct lksi_desc label = lksi_desc_make(LKSI_I32, 1, (int64_t)1);
    lksi_value in[2] = {logits}, out[3], mean;
    lks_status st = lksi_layer_check(g, "lks_graph_softmax_cross_entropy", logits, &logits);
    if (st != LKS_OK)
        return st;
    if (g->loss != LKSI_NONE)
        return lksi_fail(LKS_E_ARGUMENT, "softmax_cross_entropy: the graph has a loss already");
    if (g->value[logits].desc.rank != 2)
        return lksi_fail(LKS_E_ARGUMENT, "softmax_cross_entropy: its input has %d dimensions, "
                                         "expected 1 (classes); put a dense layer before it",
                         g->value[logits].desc.rank - 1);
    label.dim[0] = g->batch;
    st = lksi_graph_add_input(g, "label", &label, true, &in[1]);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, "loss", "softmax_cross_entropy", NULL, 2, in, out);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, "loss_mean", "batch_mean", NULL, 1, &out[0], &mean);
    if (st != LKS_OK)
        return st;
    g->logits = logits;
    g->label = in[1];
    g->loss = mean;
    g->prob = out[1];
    g->hit = out[2];
    return LKS_OK;
}
