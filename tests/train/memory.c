/*
 * memory.c - memory stays flat: a plain program that trains 2,000 steps on a device and compares
 * the resident memory after 200 steps with that after 2,000. Exit status 77 without the device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <lockstep/lockstep.h>

#define SIDE    8
#define SAMPLES 40
#define SLACK   512 /* KiB: what the allocators of library and driver may move */

static long resident_kib(void)
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL || fscanf(f, "%ld %ld", &pages, &resident) != 2)
        resident = -1;
    if (f != NULL)
        fclose(f);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void need(lks_status st, const char *what)
{
    if (st == LKS_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, lks_error_message());
    exit(1);
}

static lks_status fill(void *user, size_t index, float *x, int32_t *label)
{
    (void)user;
    for (int i = 0; i < SIDE * SIDE; i++)
        x[i] = (float)((index * 7 + (size_t)i * 13) % 17) / 17.0f;
    *label = (int32_t)(index % 3);
    return LKS_OK;
}

int main(int argc, char **argv)
{
    const int64_t dims[] = {SIDE, SIDE, 1};
    lks_device *device;
    lks_graph *g;
    lks_value x;
    lks_dataset *data;
    lks_trainer *t;
    long early, late;
    const char *select = argc > 1 ? argv[1] : "ref";
    lks_status st = lks_device_open(&device, lks_device_params(.select = select, .cache_dir = ""));
    if (st == LKS_E_DEVICE)
        return 77;
    need(st, "open");
    need(lks_graph_create(&g, NULL), "graph");
    need(lks_graph_input(g, "image", 3, dims, &x), "input");
    need(lks_graph_conv2d(g, x, lks_conv2d_params(.out = 4, .kernel = 3, .pad = 1), &x), "conv2d");
    need(lks_graph_relu(g, x, &x), "relu");
    need(lks_graph_maxpool(g, x, lks_pool_params(.kernel = 2), &x), "maxpool");
    need(lks_graph_dense(g, x, lks_dense_params(.out = 3), &x), "dense");
    need(lks_graph_softmax_cross_entropy(g, x), "loss");
    need(lks_dataset_create(&data, lks_dataset_params(.count = SAMPLES, .h = SIDE, .w = SIDE,
                                                      .classes = 3, .fill = fill)), "data");
    need(lks_trainer_create(&t, g, lks_trainer_params(.device = device, .batch = 16, .epochs = 700,
                                                      .sgd = {.lr = 0.01})), "trainer");
    need(lks_trainer_fit(t, lks_fit_params(.train = data, .test = data, .max_steps = 200)), "fit");
    early = resident_kib();
    need(lks_trainer_fit(t, lks_fit_params(.train = data, .test = data, .max_steps = 2000)), "fit");
    late = resident_kib();
    printf("%s: %ld KiB after 200 steps, %ld KiB after %d\n", select, early, late,
           (int)lks_trainer_steps(t));
    lks_trainer_destroy(&t);
    lks_dataset_destroy(&data);
    lks_graph_destroy(&g);
    lks_device_close(&device);
    return early > 0 && late <= early + SLACK ? 0 : 1;
}
