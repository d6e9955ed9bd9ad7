/*
 * net.h - a small LeNet-like network and data for programs without a test framework.
 */
#ifndef LKS_TESTS_API_NET_H
#define LKS_TESTS_API_NET_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/lockstep.h>

#define NET_SIDE    12
#define NET_SAMPLES 40
#define NET_CLASSES 3

#define NET_TRY(call)                                                                              \
    do {                                                                                           \
        lks_status st_ = (call);                                                                   \
        if (st_ != LKS_OK)                                                                         \
            return st_;                                                                            \
    } while (0)

struct net {
    lks_device *device;
    lks_graph *graph;
    lks_dataset *data;
    lks_trainer *trainer;
};

/* Samples by their bits, so that no floating-point state changes them. Odd ones are subnormal. */
static inline lks_status net_fill(void *user, size_t index, float *x, int32_t *label)
{
    (void)user;
    *label = (int32_t)(index % NET_CLASSES);
    for (int i = 0; i < NET_SIDE * NET_SIDE; i++) {
        uint32_t noise = (uint32_t)((index * 131 + (size_t)i * 71) % 127);
        int lit = (i / NET_SIDE / 4) == *label;
        uint32_t bits = index % 2 != 0 ? noise * 4001u + (lit ? 4000000u : 0u)
                                       : 0x3e000000u + noise * 65536u + (lit ? 0x800000u : 0u);
        memcpy(&x[i], &bits, sizeof bits);
    }
    return LKS_OK;
}

static inline lks_status net_graph(lks_graph *g)
{
    const int64_t dims[3] = {NET_SIDE, NET_SIDE, 1};
    lks_value x;
    NET_TRY(lks_graph_input(g, "image", 3, dims, &x));
    NET_TRY(lks_graph_conv2d(g, x, lks_conv2d_params(.out = 6, .kernel = 5, .pad = 2), &x));
    NET_TRY(lks_graph_relu(g, x, &x));
    NET_TRY(lks_graph_maxpool(g, x, lks_pool_params(.kernel = 2), &x));
    NET_TRY(lks_graph_conv2d(g, x, lks_conv2d_params(.out = 8, .kernel = 3), &x));
    NET_TRY(lks_graph_relu(g, x, &x));
    NET_TRY(lks_graph_dense(g, x, lks_dense_params(.out = 10), &x));
    NET_TRY(lks_graph_relu(g, x, &x));
    NET_TRY(lks_graph_dense(g, x, lks_dense_params(.out = NET_CLASSES), &x));
    return lks_graph_softmax_cross_entropy(g, x);
}

/* Opens the device and makes graph, data and trainer. */
static inline lks_status net_open(struct net *n, const char *select, uint64_t seed, uint32_t epochs)
{
    NET_TRY(lks_device_open(&n->device,
                            lks_device_params(.select = select, .threads = 2, .cache_dir = "")));
    NET_TRY(lks_graph_create(&n->graph, NULL));
    NET_TRY(net_graph(n->graph));
    NET_TRY(lks_dataset_create(&n->data, lks_dataset_params(.count = NET_SAMPLES, .h = NET_SIDE,
                                                            .w = NET_SIDE, .classes = NET_CLASSES,
                                                            .fill = net_fill)));
    return lks_trainer_create(&n->trainer, n->graph,
                              lks_trainer_params(.device = n->device, .batch = 16, .seed = seed,
                                                 .epochs = epochs,
                                                 .sgd = {.lr = 0.02, .momentum = 0.9}));
}

static inline void net_close(struct net *n)
{
    lks_trainer_destroy(&n->trainer);
    lks_dataset_destroy(&n->data);
    lks_graph_destroy(&n->graph);
    lks_device_close(&n->device);
}

#endif
