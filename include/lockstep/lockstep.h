/*
 * lockstep.h - deterministic training of neural networks on OpenCL devices: the whole interface.
 *
 * Every device gives the same bits: the sha256 of the weights is the digest of a training. Functions
 * that can fail return lks_status, 0 being success; lks_error_message() says what, where and what to
 * do. Results come through trailing pointers, untouched on failure. Objects are made by create or
 * open, belong to the caller, and go by destroy or close, which take the address of the handle, set
 * it to NULL and accept NULL. Parameter structs may be zero where a comment does not say "required".
 * In C they are often written in place: lks_graph_dense(g, x, lks_dense_params(.out = 10), &x).
 *
 * This program (docs/examples/c/train.c, beside one with an own loop and one with threads) is all
 * that a training needs; cc train.c $(pkg-config --cflags --libs lockstep) builds it:
 *
 * // Trains LeNet on the bundled MNIST digits, prints its accuracy and saves the weights.
 * // Usage: train FOLDER [DEVICE [STEPS]]   (FOLDER: docs/examples/data/mnist10k)
 * #include <stdio.h>
 * #include <stdlib.h>
 *
 * #include <lockstep/lockstep.h>
 *
 * #define TRY(call) do { lks_status st = (call); if (st != LKS_OK) return st; } while (0)
 *
 * static struct {
 *     lks_device *device;
 *     lks_dataset *train, *test;
 *     lks_graph *graph;
 *     lks_trainer *trainer;
 * } my;
 *
 * static lks_status open_data(lks_dataset **data, const char *folder, const char *name)
 * {
 *     const struct lks_normalize normalize = {0.1307, 0.3081};
 *     char images[512], labels[512];
 *     snprintf(images, sizeof images, "%s/%s-images-idx3-ubyte.gz", folder, name);
 *     snprintf(labels, sizeof labels, "%s/%s-labels-idx1-ubyte.gz", folder, name);
 *     return lks_dataset_open_idx(data, images, labels, &normalize);
 * }
 *
 * static lks_status build_lenet(lks_graph *g)
 * {
 *     const int64_t image[3] = {28, 28, 1}; // height, width, channels
 *     struct lks_conv2d_params conv = lks_conv2d_params_default();
 *     struct lks_pool_params pool = lks_pool_params_default();
 *     struct lks_dense_params dense = lks_dense_params_default();
 *     lks_value x;
 *     conv.kernel = 5;
 *     conv.pad = 2;
 *     pool.kernel = 2;
 *     TRY(lks_graph_input(g, "image", 3, image, &x));
 *     for (conv.out = 32; conv.out <= 64; conv.out += 32) {
 *         TRY(lks_graph_conv2d(g, x, &conv, &x));
 *         TRY(lks_graph_relu(g, x, &x));
 *         TRY(lks_graph_maxpool(g, x, &pool, &x));
 *     }
 *     dense.out = 512;
 *     TRY(lks_graph_dense(g, x, &dense, &x));
 *     TRY(lks_graph_relu(g, x, &x));
 *     dense.out = 10;
 *     TRY(lks_graph_dense(g, x, &dense, &x));
 *     return lks_graph_softmax_cross_entropy(g, x);
 * }
 *
 * static lks_status run(const char *folder, const char *device, unsigned long steps)
 * {
 *     struct lks_device_params where = lks_device_params_default();
 *     struct lks_trainer_params how = lks_trainer_params_default();
 *     struct lks_fit_params fit = lks_fit_params_default();
 *     double loss, accuracy;
 *     char sha256[65];
 *     where.select = device; // "cpu", "gpu", "ref", a name; NULL: the best there is
 *     TRY(lks_device_open(&my.device, &where));
 *     TRY(open_data(&my.train, folder, "train"));
 *     TRY(open_data(&my.test, folder, "t10k"));
 *     TRY(lks_graph_create(&my.graph, NULL));
 *     TRY(build_lenet(my.graph));
 *     how.device = my.device;
 *     how.data = my.train; // its bytes become floats on the device
 *     how.epochs = 3;
 *     how.seed = 1;
 *     how.sgd.lr = 0.05;
 *     how.sgd.momentum = 0.9;
 *     how.sgd.schedule = LKS_SCHEDULE_LINEAR;
 *     TRY(lks_trainer_create(&my.trainer, my.graph, &how));
 *     fit.train = my.train;
 *     fit.max_steps = steps; // 0: all epochs
 *     TRY(lks_trainer_fit(my.trainer, &fit));
 *     TRY(lks_trainer_evaluate(my.trainer, my.test, &loss, &accuracy));
 *     TRY(lks_trainer_save_weights(my.trainer, "weights.safetensors"));
 *     TRY(lks_trainer_weights_sha256(my.trainer, sha256));
 *     printf("%s: accuracy %.4f, sha256 %s\n", lks_device_get_info(my.device)->name, accuracy, sha256);
 *     return LKS_OK;
 * }
 *
 * int main(int argc, char **argv)
 * {
 *     lks_status st = LKS_E_ARGUMENT;
 *     if (argc < 2)
 *         fprintf(stderr, "usage: train FOLDER [DEVICE [STEPS]]\n");
 *     else
 *         st = run(argv[1], argc > 2 ? argv[2] : NULL, argc > 3 ? strtoul(argv[3], NULL, 10) : 0);
 *     if (st != LKS_OK)
 *         fprintf(stderr, "%s: %s\n", lks_status_name(st), lks_error_message());
 *     lks_trainer_destroy(&my.trainer); // all of these accept what was never created
 *     lks_graph_destroy(&my.graph);
 *     lks_dataset_destroy(&my.test);
 *     lks_dataset_destroy(&my.train);
 *     lks_device_close(&my.device);
 *     return st == LKS_OK ? 0 : 1;
 * }
 */
#ifndef LOCKSTEP_LOCKSTEP_H
#define LOCKSTEP_LOCKSTEP_H

#include <lockstep/activation.h>
#include <lockstep/arithmetic.h>
#include <lockstep/compare.h>
#include <lockstep/dataset.h>
#include <lockstep/device.h>
#include <lockstep/export.h>
#include <lockstep/gradient.h>
#include <lockstep/graph.h>
#include <lockstep/layers.h>
#include <lockstep/log.h>
#include <lockstep/loss.h>
#include <lockstep/model.h>
#include <lockstep/optimizer.h>
#include <lockstep/pooling.h>
#include <lockstep/reduce.h>
#include <lockstep/shape.h>
#include <lockstep/status.h>
#include <lockstep/trainer.h>
#include <lockstep/version.h>

#endif
