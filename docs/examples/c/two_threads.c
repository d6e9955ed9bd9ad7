/*
 * two_threads.c - two trainings at once, in two threads, on one device: each thread has its own
 * handles, and each training gives the bits that it gives alone.
 *
 * Usage: two_threads [DEVICE [STEPS]]; the exit status is 0 if all digests agree.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/lockstep.h>

#define SIDE    12
#define SAMPLES 96

#define TRY(call) do { lks_status st = (call); if (st != LKS_OK) return st; } while (0)

struct job {
    const char *device_name;
    uint64_t seed, steps;
    char sha256[65];
    lks_status status;
    char message[512]; /* error texts belong to a thread, so it is copied there */
    lks_device *device;
    lks_dataset *data;
    lks_graph *graph;
    lks_trainer *trainer;
};

/* Sample `index`: a bright square in one of three corners, on a pattern. */
static lks_status fill(void *user, size_t index, float *x, int32_t *label)
{
    (void)user;
    *label = (int32_t)(index % 3);
    for (int i = 0; i < SIDE * SIDE; i++) {
        int row = i / SIDE - (*label == 1 ? 6 : 0), column = i % SIDE - (*label == 2 ? 6 : 0);
        int inside = row >= 1 && row < 5 && column >= 1 && column < 5;
        x[i] = (float)((index * 31 + (size_t)i * 17) % 23) / 23.0f + (inside ? 0.5f : 0.0f);
    }
    return LKS_OK;
}

static lks_status build(lks_graph *g)
{
    const int64_t image[3] = {SIDE, SIDE, 1};
    struct lks_conv2d_params conv = lks_conv2d_params_default();
    struct lks_pool_params pool = lks_pool_params_default();
    struct lks_dense_params dense = lks_dense_params_default();
    lks_value x;
    TRY(lks_graph_input(g, "image", 3, image, &x));
    conv.out = 8;
    conv.kernel = 3;
    conv.pad = 1;
    TRY(lks_graph_conv2d(g, x, &conv, &x));
    TRY(lks_graph_relu(g, x, &x));
    pool.kernel = 2;
    TRY(lks_graph_maxpool(g, x, &pool, &x));
    dense.out = 3;
    TRY(lks_graph_dense(g, x, &dense, &x));
    return lks_graph_softmax_cross_entropy(g, x);
}

static lks_status train(struct job *j)
{
    struct lks_device_params where = lks_device_params_default();
    struct lks_dataset_params data = lks_dataset_params_default();
    struct lks_trainer_params how = lks_trainer_params_default();
    struct lks_fit_params fit = lks_fit_params_default();
    where.select = j->device_name;
    TRY(lks_device_open(&j->device, &where));
    data.count = SAMPLES;
    data.h = data.w = SIDE;
    data.classes = 3;
    data.fill = fill;
    TRY(lks_dataset_create(&j->data, &data));
    TRY(lks_graph_create(&j->graph, NULL));
    TRY(build(j->graph));
    how.device = j->device;
    how.batch = 20; /* and a short one of 16 */
    how.epochs = 1000;
    how.seed = j->seed;
    how.sgd.lr = 0.05;
    how.sgd.momentum = 0.9;
    TRY(lks_trainer_create(&j->trainer, j->graph, &how));
    fit.train = j->data;
    fit.max_steps = j->steps;
    TRY(lks_trainer_fit(j->trainer, &fit));
    return lks_trainer_weights_sha256(j->trainer, j->sha256);
}

static void *run(void *user)
{
    struct job *j = (struct job *)user;
    j->status = train(j);
    if (j->status != LKS_OK)
        snprintf(j->message, sizeof j->message, "%s", lks_error_message());
    lks_trainer_destroy(&j->trainer);
    lks_graph_destroy(&j->graph);
    lks_dataset_destroy(&j->data);
    lks_device_close(&j->device);
    return NULL;
}

int main(int argc, char **argv)
{
    static struct job job[4]; /* two alone, then the same two at once */
    pthread_t thread[2];
    int bad = 0;
    for (int i = 0; i < 4; i++) {
        job[i].device_name = argc > 1 ? argv[1] : NULL;
        job[i].steps = argc > 2 ? strtoul(argv[2], NULL, 10) : 60;
        job[i].seed = (uint64_t)(i % 2 + 1);
    }
    run(&job[0]);
    run(&job[1]);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread[i], NULL, run, &job[2 + i]) != 0)
            return 1;
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 4; i++) {
        printf("seed %d, %s: %s\n", i % 2 + 1, i < 2 ? "alone " : "at once",
               job[i].status == LKS_OK ? job[i].sha256 : job[i].message);
        bad += job[i].status != LKS_OK || strcmp(job[i].sha256, job[i % 2].sha256) != 0;
    }
    if (strcmp(job[0].sha256, job[1].sha256) == 0)
        bad++; /* two seeds give two trainings */
    printf("%s\n", bad == 0 ? "the same bits" : "DIFFERENT");
    return bad == 0 ? 0 : 1;
}
