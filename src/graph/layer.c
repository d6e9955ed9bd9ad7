/*
 * layer.c - what layers share: names, parameters, inputs.
 */
#include <stdio.h>
#include <string.h>

#include "graph/layer.h"
#include "op/attr.h"

lks_status lksi_layer_check(lks_graph *g, const char *what, lks_value x, const void *out)
{
    if (g == NULL || out == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "%s: the graph or the result pointer is NULL", what);
    if (x < 0 || (size_t)x >= g->n_value)
        return lksi_fail(LKS_E_ARGUMENT, "%s: %d is no value of this graph", what, (int)x);
    return LKS_OK;
}

static lks_status add_input(lks_graph *g, enum lksi_dtype dtype, const char *name, int rank,
                            const int64_t *dims, lks_value *out)
{
    struct lksi_desc d = {.dtype = dtype, .rank = rank + 1};
    int64_t left = INT32_MAX; /* elements, so that a whole batch is counted in 64 bits */
    if (g == NULL || name == NULL || dims == NULL || out == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_graph_input: an argument is NULL");
    if (rank < 1 || rank > 4)
        return lksi_fail(LKS_E_ARGUMENT, "input `%s`: rank %d, expected 1 to 4", name, rank);
    d.dim[0] = g->batch;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 1)
            return lksi_fail(LKS_E_ARGUMENT, "input `%s`: dimension %d is %lld, expected 1 or more",
                             name, i, (long long)dims[i]);
        if (dims[i] > left)
            return lksi_fail(LKS_E_ARGUMENT, "input `%s`: more than 2^31 - 1 elements", name);
        left /= dims[i];
        d.dim[i + 1] = dims[i];
    }
    return lksi_graph_add_input(g, name, &d, true, out);
}

lks_status lks_graph_input(lks_graph *g, const char *name, int rank, const int64_t *dims,
                           lks_value *out)
{
    return add_input(g, LKSI_F32, name, rank, dims, out);
}

lks_status lks_graph_input_tokens(lks_graph *g, const char *name, int rank, const int64_t *dims,
                                  lks_value *out)
{
    return add_input(g, LKSI_I32, name, rank, dims, out);
}

void lksi_layer_begin(struct lksi_layer_head *l, lks_graph *g, const char *prefix,
                      const char *given, const char *share)
{
    int number = 1;
    size_t k = 0;
    while (k < g->n_kind && strcmp(g->kind[k].prefix, prefix) != 0)
        k++;
    if (k == g->n_kind && k < LKSI_COUNT(g->kind))
        g->kind[g->n_kind++].prefix = prefix;
    if (k < g->n_kind)
        number = ++g->kind[k].count;
    l->g = g;
    l->share = share;
    if (given != NULL)
        snprintf(l->name, sizeof l->name, "%s", given);
    else
        snprintf(l->name, sizeof l->name, "%s%d", prefix, number);
}

static lks_status tensor_name(const char *layer, const char *suffix, char *name)
{
    if (snprintf(name, LKSI_LAYER_NAME, "%s.%s", layer, suffix) >= LKSI_LAYER_NAME)
        return lksi_fail(LKS_E_ARGUMENT, "layer name `%.40s...` is longer than 200 bytes", layer);
    return LKS_OK;
}

/* The parameter of another layer. */
static lks_status find_shared(const struct lksi_layer_head *l, const char *suffix,
                              const struct lksi_desc *desc, lksi_value *out)
{
    char name[LKSI_LAYER_NAME], has[96], wants[96];
    lks_status st = tensor_name(l->share, suffix, name);
    if (st != LKS_OK)
        return st;
    for (size_t i = 0; i < l->g->n_param; i++) {
        const struct lksi_param *p = &l->g->param[i];
        const struct lksi_desc *d = &l->g->value[p->value].desc;
        if (strcmp(p->name, name) != 0)
            continue;
        if (!lksi_desc_equal(d, desc))
            return lksi_fail(LKS_E_ARGUMENT, "`%s` is to share `%s`, which is %s; it needs %s",
                             l->name, name, lksi_desc_text(d, has), lksi_desc_text(desc, wants));
        *out = p->value;
        return LKS_OK;
    }
    return lksi_fail(LKS_E_ARGUMENT, "`%s` is to share `%s`, but no earlier layer has it", l->name,
                     name);
}

static lks_status check_size(const char *name, const struct lksi_desc *d)
{
    char text[96];
    return lksi_desc_fits(d)
               ? LKS_OK
               : lksi_fail(LKS_E_ARGUMENT, "`%s` would be %s, more than 2^48 elements", name,
                           lksi_desc_text(d, text));
}

lks_status lksi_layer_param(const struct lksi_layer_head *l, const char *suffix,
                            const struct lksi_desc *desc, int64_t fan_in, int64_t fan_out,
                            enum lksi_param_start start, lksi_value *out)
{
    lks_graph *g = l->g;
    char name[LKSI_LAYER_NAME];
    lksi_value v;
    lks_status st;
    if (l->share != NULL)
        return find_shared(l, suffix, desc, out);
    st = tensor_name(l->name, suffix, name);
    if (st == LKS_OK)
        st = check_size(name, desc);
    if (st != LKS_OK)
        return st;
    if (!lksi_grow(&g->param, &g->cap_param, g->n_param + 1, sizeof *g->param))
        return LKS_E_MEMORY;
    st = lksi_graph_add_state(g, name, desc, LKSI_NONE, 0, &v);
    if (st != LKS_OK)
        return st;
    struct lksi_param *p = &g->param[g->n_param];
    memset(p, 0, sizeof *p);
    p->name = lksi_strdup(name);
    if (p->name == NULL)
        return LKS_E_MEMORY;
    p->value = v;
    p->init = g->init;
    p->fan_in = fan_in;
    p->fan_out = fan_out;
    p->constant = start != LKSI_START_INIT;
    p->start = start == LKSI_START_SCALE ? 1.0f : start == LKSI_START_QUARTER ? 0.25f : 0.0f;
    g->n_param++;
    *out = v;
    return LKS_OK;
}

lks_status lksi_layer_buffer(const struct lksi_layer_head *l, const char *suffix, int64_t n,
                             float start, lksi_value *out)
{
    lks_graph *g = l->g;
    struct lksi_desc d = lksi_desc_make(LKSI_F32, 1, n);
    char name[LKSI_LAYER_NAME];
    lks_status st = tensor_name(l->name, suffix, name);
    if (st != LKS_OK)
        return st;
    if (!lksi_grow(&g->buffer, &g->cap_buffer, g->n_buffer + 1, sizeof *g->buffer))
        return LKS_E_MEMORY;
    st = lksi_graph_add_state(g, name, &d, LKSI_NONE, 0, out);
    if (st == LKS_OK)
        g->buffer[g->n_buffer++] = (struct lksi_buffer){*out, start};
    return st;
}

lks_status lksi_layer_apply(lks_graph *g, const char *name, const char *op, const void *attr,
                            int n_in, const lks_value *in, lks_value *y)
{
    lksi_value out[LKSI_MAX_OUT];
    lks_status st = LKS_OK;
    if (g == NULL || y == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "%s: the graph or the result pointer is NULL", op);
    for (int i = 0; i < n_in && st == LKS_OK; i++)
        st = lksi_layer_check(g, op, in[i], y);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, name != NULL ? name : op, op, attr, n_in, in, out);
    if (st == LKS_OK)
        *y = out[0];
    return st;
}

lks_status lksi_layer_as_image(lks_graph *g, lks_value x, lks_value *y)
{
    const int64_t *d = g->value[x].desc.dim;
    struct lksi_reshape_attr a;
    memset(&a, 0, sizeof a);
    a.rank = 4;
    a.dim[0] = -1;
    a.dim[1] = 1;
    a.dim[2] = d[1];
    a.dim[3] = d[2];
    return lksi_layer_apply(g, "as_image", "reshape", &a, 1, &x, y);
}

lks_status lksi_layer_as_sequence(lks_graph *g, lks_value x, lks_value *y)
{
    const int64_t *d = g->value[x].desc.dim;
    struct lksi_reshape_attr a;
    memset(&a, 0, sizeof a);
    a.rank = 3;
    a.dim[0] = -1;
    a.dim[1] = d[2];
    a.dim[2] = d[3];
    return lksi_layer_apply(g, "as_sequence", "reshape", &a, 1, &x, y);
}
