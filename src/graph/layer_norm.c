/*
 * layer_norm.c - normalisations with scale and shift.
 */
#include <string.h>

#include "graph/layer.h"
#include "op/attr.h"

/* gamma and beta, of one element a channel. */
static lks_status add_affine(const struct lksi_layer_head *l, int64_t channels, lksi_value *gamma,
                             lksi_value *beta)
{
    struct lksi_desc d = lksi_desc_make(LKSI_F32, 1, channels);
    lks_status st = lksi_layer_param(l, "weight", &d, channels, channels, LKSI_START_SCALE, gamma);
    if (st == LKS_OK)
        st = lksi_layer_param(l, "bias", &d, channels, channels, LKSI_START_BIAS, beta);
    return st;
}

static lks_status batch_norm(lks_graph *g, lks_value x, const struct lks_batch_norm_params *p,
                             lks_value *y)
{
    static const struct lks_batch_norm_params none;
    struct lksi_batch_norm_attr attr;
    struct lksi_norm norm = {0};
    struct lksi_layer_head l;
    lksi_value in[3] = {x}, out[4];
    lks_status st = lksi_layer_check(g, "lks_graph_batch_norm", x, y);
    if (st != LKS_OK)
        return st;
    p = p != NULL ? p : &none;
    if (!(p->eps >= 0) || p->eps > 1e30 || !(p->momentum >= 0 && p->momentum <= 1))
        return lksi_fail(LKS_E_ARGUMENT, "batch_norm: eps is %g (expected 0 or more), momentum %g "
                                         "(expected 0 to 1)", p->eps, p->momentum);
    const struct lksi_desc *d = &g->value[x].desc;
    int64_t channels = d->dim[d->rank - 1];
    memset(&attr, 0, sizeof attr);
    attr.eps = p->eps > 0 ? (float)p->eps : 1e-5f;
    attr.momentum = p->momentum > 0 ? (float)p->momentum : 0.1f;
    if (!lksi_grow(&g->norm, &g->cap_norm, g->n_norm + 1, sizeof *g->norm))
        return LKS_E_MEMORY;
    lksi_layer_begin(&l, g, "batch_norm", p->name, NULL);
    st = add_affine(&l, channels, &in[1], &in[2]);
    if (st == LKS_OK)
        st = lksi_layer_buffer(&l, "running_mean", channels, 0.0f, &norm.running_mean);
    if (st == LKS_OK)
        st = lksi_layer_buffer(&l, "running_var", channels, 1.0f, &norm.running_var);
    norm.node = g->n_node;
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, l.name, "batch_norm", &attr, 3, in, out);
    if (st != LKS_OK)
        return st;
    norm.mean = out[1];
    norm.variance = out[2];
    g->norm[g->n_norm++] = norm;
    *y = out[0];
    return LKS_OK;
}

lks_status lks_graph_batch_norm(lks_graph *g, lks_value x, const struct lks_batch_norm_params *p,
                                lks_value *y)
{
    LKSI_RETURN_WHOLE(g, batch_norm(g, x, p, y));
}

/* Group, layer and instance normalisation. */
static lks_status add_row_norm(lks_graph *g, const char *prefix, lks_value x, const char *given,
                               const char *share, struct lksi_group_norm_attr attr, double eps,
                               lks_value *y)
{
    struct lksi_layer_head l;
    lksi_value in[3] = {x}, out[3];
    const struct lksi_desc *d = &g->value[x].desc;
    lks_status st;
    if (!(eps >= 0) || eps > 1e30)
        return lksi_fail(LKS_E_ARGUMENT, "normalisation: eps is %g, expected 0 or more", eps);
    attr.eps = eps > 0 ? (float)eps : 1e-5f;
    lksi_layer_begin(&l, g, prefix, given, share);
    st = add_affine(&l, d->dim[d->rank - 1], &in[1], &in[2]);
    if (st == LKS_OK)
        st = lksi_graph_add_node(g, l.name, "group_norm", &attr, 3, in, out);
    if (st == LKS_OK)
        *y = out[0];
    return st;
}

lks_status lks_graph_group_norm(lks_graph *g, lks_value x, const struct lks_group_norm_params *p,
                                lks_value *y)
{
    struct lksi_group_norm_attr attr;
    lks_status st = lksi_layer_check(g, "lks_graph_group_norm", x, y);
    if (st != LKS_OK)
        return st;
    if (p == NULL || p->groups < 1)
        return lksi_fail(LKS_E_ARGUMENT, "group_norm: `groups` must be 1 or more");
    memset(&attr, 0, sizeof attr);
    attr.groups = p->groups;
    LKSI_RETURN_WHOLE(
        g, add_row_norm(g, "group_norm", x, p->name, p->share, attr, p->eps, y));
}

lks_status lks_graph_layer_norm(lks_graph *g, lks_value x, const struct lks_norm_params *p,
                                lks_value *y)
{
    struct lksi_group_norm_attr attr;
    lks_status st = lksi_layer_check(g, "lks_graph_layer_norm", x, y);
    if (st != LKS_OK)
        return st;
    memset(&attr, 0, sizeof attr);
    attr.groups = attr.layer = 1;
    LKSI_RETURN_WHOLE(g, add_row_norm(g, "layer_norm", x, p != NULL ? p->name : NULL,
                                      p != NULL ? p->share : NULL, attr,
                                      p != NULL ? p->eps : 0.0, y));
}

lks_status lks_graph_instance_norm(lks_graph *g, lks_value x, const struct lks_norm_params *p,
                                   lks_value *y)
{
    struct lksi_group_norm_attr attr;
    lks_status st = lksi_layer_check(g, "lks_graph_instance_norm", x, y);
    if (st != LKS_OK)
        return st;
    memset(&attr, 0, sizeof attr);
    attr.groups = g->value[x].desc.dim[g->value[x].desc.rank - 1];
    LKSI_RETURN_WHOLE(g, add_row_norm(g, "instance_norm", x, p != NULL ? p->name : NULL,
                                      p != NULL ? p->share : NULL, attr,
                                      p != NULL ? p->eps : 0.0, y));
}
