/*
 * layer_loss.c - losses and random numbers.
 */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "base/stream.h"
#include "graph/layer.h"
#include "op/attr.h"

struct lks_softmax_loss_params lks_softmax_loss_params_default(void)
{
    return (struct lks_softmax_loss_params){0};
}

/* A loss function returns the mean over a batch; at batch 1 its shape alone does not show that. */
static bool is_mean(const lks_graph *g, lks_value v)
{
    static const char *const ops[] = {"batch_mean", "batch_sum", "loss_ratio", "loss_sum"};
    int node = g->value[v].node;
    for (size_t i = 0; node >= 0 && i < LKSI_COUNT(ops); i++)
        if (strcmp(g->node[node].call.op->name, ops[i]) == 0)
            return true;
    return false;
}

static lks_status begin_loss(lks_graph *g, const char *name, struct lksi_loss **out)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    size_t length = name != NULL ? strlen(name) : 0;
    for (size_t i = 0; i < g->n_loss && length > 0; i++)
        if (strcmp(g->losses[i].name, name) == 0) {
            *out = &g->losses[i];
            return LKS_OK;
        }
    if (length == 0 || length > 32 || strspn(name, letters) != length)
        return lksi_fail(LKS_E_ARGUMENT, "lks_graph_add_loss: a loss is named by up to 32 letters, "
                                         "digits and `_`");
    if (g->n_loss == LKSI_MAX_LOSSES)
        return lksi_fail(LKS_E_ARGUMENT, "lks_graph_add_loss: `%s` would be loss %d; at most %d",
                         name, LKSI_MAX_LOSSES + 1, LKSI_MAX_LOSSES);
    *out = &g->losses[g->n_loss];
    **out = (struct lksi_loss){.name = lksi_strdup(name), .value = LKSI_NONE};
    if ((*out)->name == NULL)
        return LKS_E_MEMORY;
    g->n_loss++;
    return LKS_OK;
}

static lks_status add_loss(lks_graph *g, const char *name, lks_value value, double weight)
{
    struct lksi_loss_sum_attr attr = {0};
    struct lksi_loss *l = NULL;
    lks_status st = begin_loss(g, name, &l);
    if (st != LKS_OK)
        return st;
    if (l->n_term == LKSI_MAX_TERMS)
        return lksi_fail(LKS_E_ARGUMENT, "lks_graph_add_loss: `%s` has %d terms already", name,
                         LKSI_MAX_TERMS);
    l->term[l->n_term] = value;
    l->weight[l->n_term++] = (float)weight;
    memcpy(attr.weight, l->weight, (size_t)l->n_term * sizeof(float));
    l->value = value;
    if (l->n_term > 1 || l->weight[0] != 1.0f) /* the sum of fewer terms falls away unused */
        st = lksi_graph_add_node(g, name, "loss_sum", &attr, l->n_term, l->term, &l->value);
    g->loss = g->losses[0].value;
    return st;
}

lks_status lks_graph_add_loss(lks_graph *g, const char *name, lks_value value, double weight)
{
    lks_status st = lksi_layer_check(g, "lks_graph_add_loss", value, &value);
    if (st != LKS_OK)
        return st;
    if (!is_mean(g, value))
        return lksi_fail(LKS_E_ARGUMENT, "lks_graph_add_loss: value %d is not the mean over a batch; "
                                         "take lks_graph_loss_mean of it", (int)value);
    if (!(weight >= -(double)FLT_MAX && weight <= (double)FLT_MAX))
        return lksi_fail(LKS_E_ARGUMENT, "lks_graph_add_loss: the weight %g is no 32-bit float",
                         weight);
    LKSI_RETURN_WHOLE(g, add_loss(g, name, value, weight));
}

size_t lks_graph_loss_count(const lks_graph *g)
{
    return g != NULL ? g->n_loss : 0;
}

const char *lks_graph_loss_name(const lks_graph *g, size_t index)
{
    return g != NULL && index < g->n_loss ? g->losses[index].name : NULL;
}

/* The input "label": one label, or one a position. */
static lks_status label_input(lks_graph *g, struct lksi_desc label, lksi_value *out)
{
    char has[96], wants[96];
    label.dtype = LKSI_I32;
    if (g->label == LKSI_NONE) {
        lks_status st = lksi_graph_add_input(g, "label", &label, true, out);
        if (st == LKS_OK)
            g->label = *out;
        return st;
    }
    *out = g->label;
    if (lksi_desc_equal(&g->value[g->label].desc, &label))
        return LKS_OK;
    return lksi_fail(LKS_E_ARGUMENT, "the labels are %s, this loss needs %s",
                     lksi_desc_text(&g->value[g->label].desc, has), lksi_desc_text(&label, wants));
}

/* The operator with its labels; its outputs serve as the network's, if there are none yet. */
static lks_status cross_entropy(lks_graph *g, const char *name, lksi_value logits,
                                const struct lksi_cross_entropy_attr *attr, lksi_value out[4])
{
    lksi_value in[2] = {logits};
    struct lksi_desc label = g->value[logits].desc;
    lks_status st;
    label.rank--;
    label.dim[label.rank] = 0;
    st = label_input(g, label, &in[1]);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, name, "softmax_cross_entropy", attr, 2, in, out);
    if (st == LKS_OK && g->logits == LKSI_NONE) {
        g->logits = logits;
        g->prob = out[1];
        g->hit = out[2];
    }
    return st;
}

static lks_status softmax_cross_entropy(lks_graph *g, lks_value logits)
{
    const struct lksi_cross_entropy_attr plain = {0};
    lksi_value out[4], mean;
    lks_status st = cross_entropy(g, "loss", logits, &plain, out);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, "loss_mean", "batch_mean", NULL, 1, &out[0], &mean);
    return st == LKS_OK ? add_loss(g, "loss", mean, 1.0) : st;
}

lks_status lks_graph_softmax_cross_entropy(lks_graph *g, lks_value logits)
{
    lks_status st = lksi_layer_check(g, "lks_graph_softmax_cross_entropy", logits, &logits);
    if (st != LKS_OK)
        return st;
    if (g->loss != LKSI_NONE)
        return lksi_fail(LKS_E_ARGUMENT, "softmax_cross_entropy: the graph has a loss already");
    if (g->value[logits].desc.rank != 2)
        return lksi_fail(LKS_E_ARGUMENT, "softmax_cross_entropy: its input has %d dimensions, "
                                         "expected 1 (classes); put a dense layer before it",
                         g->value[logits].desc.rank - 1);
    LKSI_RETURN_WHOLE(g, softmax_cross_entropy(g, logits));
}

/* The mean over each sample, then over the batch. */
static lks_status mean_of(lks_graph *g, const char *name, lksi_value x, lksi_value *out)
{
    struct lksi_sample_mean_attr attr = {0};
    lks_status st = LKS_OK;
    if (g->value[x].desc.rank > 1)
        st = lksi_graph_add_node(g, name, "sample_mean", &attr, 1, &x, &x);
    return st == LKS_OK ? lksi_graph_add_node(g, name, "batch_mean", NULL, 1, &x, out) : st;
}

static lks_status softmax_loss(lks_graph *g, lks_value logits,
                               const struct lks_softmax_loss_params *p, lks_value *loss)
{
    struct lksi_cross_entropy_attr attr;
    lksi_value out[4], pair[2];
    lks_status st = LKS_OK;
    memset(&attr, 0, sizeof attr);
    attr.smoothing = p->smoothing;
    attr.ignores = p->ignores;
    attr.ignored = p->ignored;
    attr.n_weight = p->weights != NULL ? p->n_weights : 0;
    if (attr.n_weight < 0 || attr.n_weight > (int)LKSI_COUNT(attr.weight))
        return lksi_fail(LKS_E_ARGUMENT, "softmax_loss: %d class weights, at most %zu",
                         attr.n_weight, LKSI_COUNT(attr.weight));
    for (int i = 0; i < attr.n_weight; i++) {
        attr.weight[i] = p->weights[i];
        if (!(attr.weight[i] >= 0 && attr.weight[i] <= FLT_MAX))
            return lksi_fail(LKS_E_ARGUMENT, "softmax_loss: weight %d is %g, expected 0 or more", i,
                             (double)attr.weight[i]);
    }
    LKSI_TRY(cross_entropy(g, "softmax_loss", logits, &attr, out));
    LKSI_TRY(mean_of(g, "loss_mean", out[0], &pair[0]));
    if (attr.n_weight > 0 || attr.ignores) {
        LKSI_TRY(mean_of(g, "weight_mean", out[3], &pair[1]));
        LKSI_TRY(lksi_graph_add_node(g, "loss_ratio", "loss_ratio", NULL, 2, pair, &pair[0]));
    }
    *loss = pair[0];
fail:
    return st;
}

lks_status lks_graph_softmax_loss(lks_graph *g, lks_value logits,
                                  const struct lks_softmax_loss_params *params, lks_value *loss)
{
    const struct lks_softmax_loss_params none = {0};
    lks_status st = lksi_layer_check(g, "lks_graph_softmax_loss", logits, loss);
    if (st != LKS_OK)
        return st;
    if (g->value[logits].desc.rank < 2)
        return lksi_fail(LKS_E_ARGUMENT, "softmax_loss: its input has no classes");
    LKSI_RETURN_WHOLE(g, softmax_loss(g, logits, params != NULL ? params : &none, loss));
}

static lks_status element_loss(lks_graph *g, const struct lksi_element_loss_attr *attr, int n_in,
                               const lks_value *in, lks_value *loss)
{
    static const char *const names[] = {"mse", "l1", "huber", "smooth_l1", "bce"};
    lksi_value each;
    lks_status st =
        lksi_graph_add_node(g, names[attr->kind], "element_loss", attr, n_in, in, &each);
    return st == LKS_OK ? mean_of(g, names[attr->kind], each, loss) : st;
}

static lks_status check_kind(lks_loss_kind kind, double beta, struct lksi_element_loss_attr *attr)
{
    memset(attr, 0, sizeof *attr);
    if (kind < LKS_LOSS_MSE || kind > LKS_LOSS_BCE)
        return lksi_fail(LKS_E_ARGUMENT, "there is no loss %d", (int)kind);
    attr->kind = (int)kind;
    attr->beta = beta != 0 ? (float)beta : 1.0f;
    return LKS_OK;
}

lks_status lks_graph_loss_to(lks_graph *g, lks_loss_kind kind, lks_value x, lks_value target,
                             double beta, lks_value *loss)
{
    struct lksi_element_loss_attr attr;
    const lks_value in[2] = {x, target};
    lks_status st = lksi_layer_check(g, "lks_graph_loss_to", x, loss);
    if (st == LKS_OK)
        st = lksi_layer_check(g, "lks_graph_loss_to", target, loss);
    if (st == LKS_OK)
        st = check_kind(kind, beta, &attr);
    if (st != LKS_OK)
        return st;
    LKSI_RETURN_WHOLE(g, element_loss(g, &attr, 2, in, loss));
}

lks_status lks_graph_loss_to_number(lks_graph *g, lks_loss_kind kind, lks_value x, double target,
                                    double beta, lks_value *loss)
{
    struct lksi_element_loss_attr attr;
    lks_status st = lksi_layer_check(g, "lks_graph_loss_to_number", x, loss);
    if (st == LKS_OK)
        st = check_kind(kind, beta, &attr);
    if (st != LKS_OK)
        return st;
    if (!(target >= -(double)FLT_MAX && target <= (double)FLT_MAX))
        return lksi_fail(LKS_E_ARGUMENT, "the target %g is no 32-bit float", target);
    attr.constant = 1;
    attr.target = (float)target;
    LKSI_RETURN_WHOLE(g, element_loss(g, &attr, 1, &x, loss));
}

lks_status lks_graph_loss_mean(lks_graph *g, lks_value x, lks_value *loss)
{
    lks_status st = lksi_layer_check(g, "lks_graph_loss_mean", x, loss);
    if (st != LKS_OK)
        return st;
    LKSI_RETURN_WHOLE(g, mean_of(g, "mean", x, loss));
}

static lks_status random_numbers(lks_graph *g, const char *name, bool normal, int rank,
                                 const int64_t *dims, lks_value *out)
{
    struct lksi_random_attr attr;
    lksi_value in[2] = {LKSI_NONE};
    memset(&attr, 0, sizeof attr);
    for (size_t v = 0; v < g->n_value && in[0] == LKSI_NONE; v++)
        if (g->value[v].kind == LKSI_VALUE_INPUT && g->value[v].batched)
            in[0] = (lksi_value)v;
    if (in[0] == LKSI_NONE)
        return lksi_fail(LKS_E_ARGUMENT, "random `%s`: the graph has no input yet, which gives the "
                                         "size of the batch", name);
    attr.stream = lksi_stream_id("noise", name);
    for (size_t i = 0; i < g->n_node; i++)
        if (strcmp(g->node[i].call.op->name, "random") == 0 && strcmp(g->node[i].name, name) == 0)
            return lksi_fail(LKS_E_ARGUMENT, "random `%s`: the name is taken, and with it the "
                                             "numbers", name);
    attr.normal = normal;
    attr.rank = rank;
    for (int i = 0; i < rank; i++)
        attr.dim[i] = dims[i];
    lks_status st = lksi_graph_step_value(g, &in[1]);
    return st == LKS_OK ? lksi_graph_add_node(g, name, "random", &attr, 2, in, out) : st;
}

lks_status lks_graph_random(lks_graph *g, const char *name, bool normal, int rank,
                            const int64_t *dims, lks_value *out)
{
    if (g == NULL || name == NULL || dims == NULL || out == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_graph_random: an argument is NULL");
    if (rank < 1 || rank > 4)
        return lksi_fail(LKS_E_ARGUMENT, "random `%s`: %d dimensions, 1 to 4 wanted", name, rank);
    LKSI_RETURN_WHOLE(g, random_numbers(g, name, normal, rank, dims, out));
}
