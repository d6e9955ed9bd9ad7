/*
 * test_model.c - what a program learns of a model file through the C API: the example MLP.
 */
#include <lockstep/lockstep.h>

#include "helpers.h"

#define MLP  SOURCE_ROOT "/docs/examples/models/mlp.yaml"
#define DATA SOURCE_ROOT "/docs/examples/data/mnist10k/"

static lks_model *model;

static void setup(void)
{
    EXPECT_OK(lks_model_open(&model, MLP));
}

static void teardown(void)
{
    lks_model_destroy(&model);
    cr_assert_null(model);
    lks_model_destroy(&model);
}

TestSuite(model, .init = setup, .fini = teardown, .timeout = 120);

Test(model, head)
{
    struct lks_trainer_params p;
    cr_assert_str_eq(lks_model_name(model), "mlp");
    cr_assert_eq(lks_model_classes(model), 10);
    cr_assert_float_eq(lks_model_normalize(model).mean, 0.1307, 1e-12);
    cr_assert_float_eq(lks_model_normalize(model).std, 0.3081, 1e-12);
    cr_assert_eq(lks_graph_parameter_count(lks_model_graph(model)), 6);
    cr_assert_eq(lks_graph_scalar_count(lks_model_graph(model)),
                 784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);
    lks_model_trainer_params(model, &p);
    cr_assert(p.batch == 64 && p.epochs == 5 && p.seed == 1 && p.device == NULL);
}

Test(model, layers)
{
    static const struct {
        const char *name, *type, *from;
        int64_t out, parameters, multiply_adds;
    } want[] = {{"dense1", "dense", "input", 256, 784 * 256 + 256, 784 * 256},
                {"relu1", "relu", "dense1", 256, 0, 0},
                {"dense2", "dense", "relu1", 128, 256 * 128 + 128, 256 * 128},
                {"relu2", "relu", "dense2", 128, 0, 0},
                {"dense3", "dense", "relu2", 10, 128 * 10 + 10, 128 * 10}};
    struct lks_layer_info info = {.name = "untouched"};
    cr_assert_eq(lks_model_layer_count(model), LKSI_COUNT(want));
    for (size_t i = 0; i < LKSI_COUNT(want); i++) {
        lks_value v = -1;
        int rank;
        int64_t dim[4];
        EXPECT_OK(lks_model_layer(model, i, &info));
        cr_assert_str_eq(info.name, want[i].name);
        cr_assert_str_eq(info.type, want[i].type);
        cr_assert_str_eq(info.from, want[i].from);
        cr_assert(info.rank == 1 && info.dims[0] == want[i].out, "%s", info.name);
        cr_assert(info.parameters == want[i].parameters, "%s", info.name);
        cr_assert(info.multiply_adds == want[i].multiply_adds, "%s", info.name);
        EXPECT_OK(lks_model_value(model, info.name, &v));
        EXPECT_OK(lks_graph_shape(lks_model_graph(model), v, &rank, dim));
        cr_assert(rank == 1 && dim[0] == want[i].out);
    }
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_model_layer(model, LKSI_COUNT(want), &info), "5");
    cr_assert_str_eq(info.name, "dense3", "written on failure");
}

Test(model, values)
{
    lks_value v = -7;
    int rank;
    int64_t dim[4];
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_model_value(model, "dense4", &v), "dense4");
    cr_assert_eq(v, -7, "written on failure");
    EXPECT_OK(lks_model_value(model, "input", &v));
    EXPECT_OK(lks_graph_shape(lks_model_graph(model), v, &rank, dim));
    cr_assert(rank == 3 && dim[0] == 28 && dim[1] == 28 && dim[2] == 1);
}

/* The model's data are what the files hold, read by themselves. */
Test(model, data)
{
    const lks_dataset *train = lks_model_train_data(model), *test = lks_model_test_data(model);
    const struct lks_normalize n = lks_model_normalize(model);
    lks_dataset *same = NULL;
    EXPECT_OK(lks_dataset_open_idx(&same, DATA "train-images-idx3-ubyte.gz",
                                   DATA "train-labels-idx1-ubyte.gz", &n));
    cr_assert(lks_dataset_count(same) > 0 && lks_dataset_count(train) == lks_dataset_count(same));
    cr_assert_str_eq(lks_dataset_sha256(train), lks_dataset_sha256(same));
    for (size_t i = 0; i < 20; i++)
        cr_assert_eq(lks_dataset_label(train, i), lks_dataset_label(same, i));
    lks_dataset_destroy(&same);
    cr_assert(test != NULL && strcmp(lks_dataset_sha256(test), lks_dataset_sha256(train)) != 0);
    EXPECT_FAIL(LKS_E_IO, lks_dataset_open_idx(&same, DATA "none", DATA "none", NULL), "none");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_dataset_open_idx(&same, NULL, DATA "none", NULL), "NULL");
    EXPECT_FAIL(LKS_E_INPUT,
                lks_dataset_open_idx(&same, DATA "train-labels-idx1-ubyte.gz",
                                     DATA "train-images-idx3-ubyte.gz", NULL),
                "train-");
    cr_assert_null(same, "written on failure");
}

/* MLP with `from` replaced by `to`, and its data by their full paths; NULL if it is refused. */
static lks_model *changed(const char *from, const char *to, lks_status want)
{
    char *folder = scratch_make(), text[4096], out[8192], *at;
    const char *path = in_folder(folder, "m.yaml");
    lks_model *m = NULL;
    FILE *f = fopen(MLP, "rb");
    size_t n;
    cr_assert(f != NULL);
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    at = strstr(text, from);
    cr_assert(at != NULL, "%s is not in the file", from);
    snprintf(out, sizeof out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    while ((at = strstr(out, "../data")) != NULL) {
        char rest[4096];
        snprintf(rest, sizeof rest, "%s", at + 7);
        snprintf(at, sizeof out - (size_t)(at - out), "%s/docs/examples/data%s", SOURCE_ROOT, rest);
    }
    write_bytes(path, out, strlen(out));
    cr_assert_eq(lks_model_open(&m, path), want, "%s", lks_error_message());
    cr_assert((m == NULL) == (want != LKS_OK));
    scratch_remove(folder);
    return m;
}

/* Of the network: not of comments, paths and training. */
Test(model, digest)
{
    char mine[65];
    lks_model *m;
    snprintf(mine, sizeof mine, "%s", lks_model_sha256(model));
    cr_assert_eq(strlen(mine), 64);
    m = changed("# A multi", "# Another multi", LKS_OK);
    cr_assert_str_eq(lks_model_sha256(m), mine);
    lks_model_destroy(&m);
    m = changed("batch: 64", "batch: 32", LKS_OK);
    cr_assert_str_eq(lks_model_sha256(m), mine);
    lks_model_destroy(&m);
    m = changed("out: 128", "out: 127", LKS_OK);
    cr_assert_str_neq(lks_model_sha256(m), mine);
    lks_model_destroy(&m);
    m = changed("he_normal", "glorot_uniform", LKS_OK);
    cr_assert_str_neq(lks_model_sha256(m), mine);
    lks_model_destroy(&m);
}

Test(model, refusals)
{
    lks_model *m = NULL;
    EXPECT_FAIL(LKS_E_IO, lks_model_open(&m, SOURCE_ROOT "/none.yaml"), "none.yaml");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_model_open(&m, NULL), "NULL");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_model_open(NULL, MLP), "NULL");
    cr_assert_null(m, "written on failure");
    changed("out: 128", "out: none", LKS_E_INPUT);
    cr_assert(strstr(lks_error_message(), "m.yaml:10") != NULL, "%s", lks_error_message());
    changed("train-images", "no-images", LKS_E_IO);
}
