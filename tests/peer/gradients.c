/*
 * gradients.c - one forward and backward pass for tests/peer/gradients.py, which compares it with
 * PyTorch.
 *
 * Usage: gradients MODEL DEVICE WEIGHTS SAMPLES LABELS N OUT
 *
 * WEIGHTS is a safetensors file or "-" (initial weights); SAMPLES holds N samples of raw floats,
 * LABELS N raw 32-bit integers. Prints a line "NAME COUNT" a parameter; OUT receives, in this
 * order, the COUNT floats of each parameter and of its gradient.
 */
#include <stdio.h>
#include <stdlib.h>

#include <lockstep/lockstep.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        lks_status st_ = (call);                                                                   \
        if (st_ != LKS_OK) {                                                                       \
            fprintf(stderr, "%s: %s\n", #call, lks_error_message());                               \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void *read_all(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    char *data = NULL;
    *bytes = 0;
    while (f != NULL && !feof(f)) {
        data = realloc(data, *bytes + 65536);
        if (data == NULL)
            exit(1);
        *bytes += fread(data + *bytes, 1, 65536, f);
    }
    if (f == NULL) {
        perror(path);
        exit(1);
    }
    fclose(f);
    return data;
}

static void write_floats(FILE *out, const float *data, size_t count)
{
    if (fwrite(data, sizeof *data, count, out) != count) {
        perror("write");
        exit(1);
    }
}

static void write_parameters(lks_trainer *trainer, size_t n, FILE *out)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = NULL;
        size_t count = 0;
        float *data;
        TRY(lks_trainer_parameter(trainer, i, &name, &count));
        data = malloc(count * sizeof *data + 1);
        if (data == NULL)
            exit(1);
        printf("%s %zu\n", name, count);
        TRY(lks_trainer_get(trainer, name, data, count));
        write_floats(out, data, count);
        TRY(lks_trainer_get_gradient(trainer, name, data, count));
        write_floats(out, data, count);
        free(data);
    }
}

int main(int argc, char **argv)
{
    struct lks_device_params where = lks_device_params_default();
    struct lks_trainer_params how = lks_trainer_params_default();
    lks_device *device = NULL;
    lks_model *model = NULL;
    lks_trainer *trainer = NULL;
    struct lks_batch batch = {NULL, NULL, 0};
    size_t x_bytes, label_bytes;
    FILE *out;
    if (argc != 8) {
        fprintf(stderr, "usage: gradients MODEL DEVICE WEIGHTS SAMPLES LABELS N OUT\n");
        return 2;
    }
    void *x = read_all(argv[4], &x_bytes), *labels = read_all(argv[5], &label_bytes);
    batch.x = x;
    batch.labels = labels;
    batch.samples = (uint32_t)atoi(argv[6]);
    if (label_bytes != batch.samples * sizeof *batch.labels) {
        fprintf(stderr, "gradients: %s does not hold %u labels\n", argv[5], batch.samples);
        return 2;
    }
    where.select = argv[2];
    TRY(lks_device_open(&device, &where));
    TRY(lks_model_open(&model, argv[1]));
    lks_model_trainer_params(model, &how);
    how.device = device;
    how.batch = batch.samples;
    TRY(lks_trainer_create(&trainer, lks_model_graph(model), &how));
    if (argv[3][0] != '-')
        TRY(lks_trainer_load_weights(trainer, argv[3]));
    TRY(lks_trainer_forward(trainer, &batch, NULL));
    TRY(lks_trainer_backward(trainer));
    out = fopen(argv[7], "wb");
    if (out == NULL) {
        perror(argv[7]);
        return 1;
    }
    write_parameters(trainer, lks_graph_parameter_count(lks_model_graph(model)), out);
    if (fclose(out) != 0) {
        perror(argv[7]);
        return 1;
    }
    lks_trainer_destroy(&trainer);
    lks_model_destroy(&model);
    lks_device_close(&device);
    free(x);
    free(labels);
    return 0;
}
