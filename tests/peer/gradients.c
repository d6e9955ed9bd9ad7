/*
 * gradients.c - one forward and backward pass over samples of a model's own training data, for
 * tests/peer/gradients.py, which compares it with PyTorch.
 *
 * Usage: gradients MODEL DEVICE WEIGHTS SEED FIRST N OUT [LAYER...]
 *
 * WEIGHTS is a safetensors file or "-" (initial weights of SEED). The batch is samples FIRST to
 * FIRST + N. OUT receives, and a line each on standard output names, with the number of elements:
 *     samples COUNT DIM...         the batch, [N][DIM...], floats or (text) 32-bit integers
 *     labels COUNT                 32-bit integers
 *     parameter COUNT NAME         floats
 *     gradient COUNT NAME          floats
 *     value COUNT LAYER            what LAYER gave, floats
 */
#include <stdio.h>
#include <stdlib.h>

#include <lockstep/lockstep.h>

#include "train/train.h"

#define TRY(call)                                                                                  \
    do {                                                                                           \
        lks_status st_ = (call);                                                                   \
        if (st_ != LKS_OK) {                                                                       \
            fprintf(stderr, "%s: %s\n", #call, lks_error_message());                               \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { MAX_KEPT = 2048 };

static void *allocate(size_t bytes)
{
    void *data = malloc(bytes + 1);
    if (data == NULL) {
        fprintf(stderr, "gradients: out of memory\n");
        exit(1);
    }
    return data;
}

static void write_out(FILE *out, const void *data, size_t count)
{
    if (fwrite(data, 4, count, out) != count) {
        perror("write");
        exit(1);
    }
}

/* The batch, whose memory lives as long as the program. */
static struct lks_batch gather(const lks_dataset *data, size_t first, size_t n, FILE *out)
{
    size_t positions = lks_dataset_positions(data), size = 1;
    struct lks_batch batch = {NULL, NULL, (uint32_t)n, NULL};
    int rank;
    int64_t dims[4];
    lks_dataset_dims(data, &rank, dims);
    for (int i = 0; i < rank; i++)
        size *= (size_t)dims[i];
    if (first + n > lks_dataset_count(data)) {
        fprintf(stderr, "gradients: there are %zu samples only\n", lks_dataset_count(data));
        exit(1);
    }
    float *x = allocate(n * size * sizeof *x);
    int32_t *labels = allocate(n * positions * sizeof *labels);
    TRY(lksi_dataset_gather(data->data, NULL, first, n, x, positions > 0 ? labels : NULL));
    printf("samples %zu", n * size);
    for (int i = 0; i < rank; i++)
        printf(" %lld", (long long)dims[i]);
    printf("\nlabels %zu\n", n * positions);
    write_out(out, x, n * size);
    write_out(out, labels, n * positions);
    batch.labels = positions > 0 ? labels : NULL;
    if (data->data->tokens || data->data->ints != NULL)
        batch.tokens = (const int32_t *)(const void *)x;
    else
        batch.x = x;
    return batch;
}

static void write_parameters(lks_trainer *trainer, size_t n, FILE *out)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = NULL;
        size_t count = 0;
        float *data;
        TRY(lks_trainer_parameter(trainer, i, &name, &count));
        data = allocate(count * sizeof *data);
        printf("parameter %zu %s\ngradient %zu %s\n", count, name, count, name);
        TRY(lks_trainer_get(trainer, name, data, count));
        write_out(out, data, count);
        TRY(lks_trainer_get_gradient(trainer, name, data, count));
        write_out(out, data, count);
        free(data);
    }
}

static void write_values(lks_trainer *trainer, const lks_graph *graph, const lks_value *kept, int n,
                         char **names, uint32_t samples, FILE *out)
{
    for (int i = 0; i < n; i++) {
        int rank;
        int64_t dims[4];
        size_t count = samples;
        TRY(lks_graph_shape(graph, kept[i], &rank, dims));
        for (int k = 0; k < rank; k++)
            count *= (size_t)dims[k];
        float *data = allocate(count * sizeof *data);
        printf("value %zu %s\n", count, names[i]);
        TRY(lks_trainer_get_value(trainer, kept[i], data, count));
        write_out(out, data, count);
        free(data);
    }
}

int main(int argc, char **argv)
{
    struct lks_device_params where = lks_device_params_default();
    struct lks_trainer_params how = lks_trainer_params_default();
    static lks_value kept[MAX_KEPT];
    lks_device *device = NULL;
    lks_model *model = NULL;
    lks_trainer *trainer = NULL;
    if (argc < 8 || argc > 8 + MAX_KEPT) {
        fprintf(stderr, "usage: gradients MODEL DEVICE WEIGHTS SEED FIRST N OUT [LAYER...]\n");
        return 2;
    }
    FILE *out = fopen(argv[7], "wb");
    if (out == NULL) {
        perror(argv[7]);
        return 1;
    }
    where.select = argv[2];
    TRY(lks_device_open(&device, &where));
    TRY(lks_model_open(&model, argv[1]));
    const lks_graph *graph = lks_model_graph(model);
    struct lks_batch batch = gather(lks_model_train_data(model), (size_t)atol(argv[5]),
                                    (size_t)atol(argv[6]), out);
    for (int i = 8; i < argc; i++)
        TRY(lks_model_value(model, argv[i], &kept[i - 8]));
    lks_model_trainer_params(model, &how);
    how.device = device;
    how.batch = batch.samples;
    how.seed = (uint64_t)atol(argv[4]);
    how.keep = kept;
    how.n_keep = (size_t)argc - 8;
    TRY(lks_trainer_create(&trainer, graph, &how));
    if (argv[3][0] != '-')
        TRY(lks_trainer_load_weights(trainer, argv[3]));
    TRY(lks_trainer_forward(trainer, &batch, NULL));
    TRY(lks_trainer_backward(trainer));
    write_values(trainer, graph, kept, argc - 8, argv + 8, batch.samples, out);
    write_parameters(trainer, lks_graph_parameter_count(graph), out);
    if (fclose(out) != 0) {
        perror(argv[7]);
        return 1;
    }
    lks_trainer_destroy(&trainer);
    lks_model_destroy(&model);
    lks_device_close(&device);
    return 0;
}
