/*
 * test_network.c - a whole small network: its gradients by autodiff against central differences in
 * double, and the same network after fusion, which may move no bit.
 */
#include "net.h"

#define LEAF 2

/* Convolutions, pooling, dense layers. */
static void build_model(struct lks_graph **model)
{
    lks_value x;
    EXPECT_OK(lks_graph_create(model, NULL));
    EXPECT_OK(lks_graph_input(*model, "image", 3, (int64_t[]){9, 8, 2}, &x));
    EXPECT_OK(lks_graph_conv2d(*model, x, lks_conv2d_params(.out = 4, .kernel = 3, .pad = 1), &x));
    EXPECT_OK(lks_graph_relu(*model, x, &x));
    EXPECT_OK(lks_graph_maxpool(*model, x, lks_pool_params(.kernel = 2), &x));
    EXPECT_OK(lks_graph_conv2d(
        *model, x, lks_conv2d_params(.out = 6, .kernel = 3, .pad = 2, .groups = 2, .stride = 2),
        &x));
    EXPECT_OK(lks_graph_relu(*model, x, &x));
    EXPECT_OK(lks_graph_conv2d(*model, x, lks_conv2d_params(.out = 5, .kernel = 2), &x));
    EXPECT_OK(lks_graph_maxpool(*model, x, lks_pool_params(.kernel = 2, .stride = 1), &x));
    EXPECT_OK(lks_graph_flatten(*model, x, &x));
    EXPECT_OK(lks_graph_dense(*model, x, lks_dense_params(.out = 7), &x));
    EXPECT_OK(lks_graph_relu(*model, x, &x));
    EXPECT_OK(lks_graph_dense(*model, x, lks_dense_params(.out = CLASSES), &x));
    EXPECT_OK(lks_graph_softmax_cross_entropy(*model, x));
}

static void open_net(struct net *t)
{
    struct lks_graph *model;
    build_model(&model);
    net_open(t, model, BATCH, LEAF);
    net_all_gradients(t);
    net_run(t);
}

Test(network, gradients)
{
    struct net t;
    int compared;
    open_net(&t);
    cr_expect(fabs((double)t.f[t.g->loss][0] - t.d[t.g->loss][0]) < 1e-5);
    compared = compare_gradients(&t);
    cr_expect(t.g->n_param == 10 && compared > 80, "%zu parameters, %d compared", t.g->n_param,
              compared);
    net_close(&t);
}

Test(network, fusion_moves_no_bit)
{
    struct net t;
    float *before[16], loss;
    size_t dead = 0;
    open_net(&t);
    loss = t.f[t.g->loss][0];
    t.g->value[t.g->loss].keep = true;
    for (size_t p = 0; p < t.g->n_param; p++) {
        size_t bytes = size_of(&t, t.grad[p]) * sizeof(float);
        before[p] = malloc(bytes);
        memcpy(before[p], t.f[t.grad[p]], bytes);
        memset(t.f[t.grad[p]], 0xff, bytes);
        t.g->value[t.grad[p]].keep = true;
    }
    t.f[t.g->loss][0] = -1.0f;
    EXPECT_OK(lksi_graph_fuse(t.g));
    EXPECT_OK(lksi_graph_prune(t.g));
    run_items(&t);
    for (size_t i = 0; i < t.g->n_node; i++)
        dead += t.g->node[i].dead;
    cr_expect(dead >= 5, "only %zu operators were absorbed", dead);
    cr_expect(lks_bits(t.f[t.g->loss][0]) == lks_bits(loss));
    for (size_t p = 0; p < t.g->n_param; p++) {
        cr_expect(memcmp(before[p], t.f[t.grad[p]], size_of(&t, t.grad[p]) * 4) == 0,
                  "the gradient of %s moved", t.g->param[p].name);
        free(before[p]);
    }
    net_close(&t);
}
