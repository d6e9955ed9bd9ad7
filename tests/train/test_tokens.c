/*
 * test_tokens.c - a transformer on tokens: the same bits on `ref`, by plain and by fast kernels; its
 * loss falls; a token that the table lacks stops the step; refusals.
 */
#include "train_help.h"

#define LENGTH 12
#define WORDS  9
#define WIDTH  20
#define HEADS  2

static int32_t text[SAMPLES * LENGTH], next[SAMPLES * LENGTH];

/* Each token follows from the one two places before, but for some that are drawn. */
static lks_dataset *make_text(void)
{
    lks_dataset *data;
    uint32_t state = 99;
    int32_t last = 1, before = 2;
    for (int i = 0; i < SAMPLES * LENGTH; i++) {
        int32_t token = (before * 2 + 1) % WORDS;
        state = state * 1664525u + 1013904223u;
        if (state >> 24 < 40)
            token = (int32_t)(state >> 8) % WORDS & 7;
        text[i] = last;
        next[i] = token;
        before = last;
        last = token;
    }
    EXPECT_OK(lks_dataset_create(
        &data, lks_dataset_params(.count = SAMPLES, .rank = 1, .dims = {LENGTH}, .tokens = text,
                                  .labels = next, .positions = LENGTH, .classes = WORDS)));
    return data;
}

/* [LENGTH,WIDTH] as [HEADS,LENGTH,WIDTH/HEADS], and back. */
static lks_value split(lks_graph *g, lks_value x)
{
    EXPECT_OK(lks_graph_reshape(g, x, 3, (int64_t[]){LENGTH, HEADS, WIDTH / HEADS}, &x));
    EXPECT_OK(lks_graph_transpose(g, x, (int[]){1, 0, 2}, &x));
    return x;
}

static lks_value merge(lks_graph *g, lks_value x)
{
    EXPECT_OK(lks_graph_transpose(g, x, (int[]){1, 0, 2}, &x));
    EXPECT_OK(lks_graph_reshape(g, x, 2, (int64_t[]){LENGTH, WIDTH}, &x));
    return x;
}

static lks_value linear(lks_graph *g, lks_value x, int out)
{
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = out, .last_axis = true), &x));
    return x;
}

static lks_value attention(lks_graph *g, lks_value x)
{
    lks_value q, k, v, y;
    EXPECT_OK(lks_graph_layer_norm(g, x, NULL, &y));
    q = split(g, linear(g, y, WIDTH));
    k = split(g, linear(g, y, WIDTH));
    v = split(g, linear(g, y, WIDTH));
    EXPECT_OK(lks_graph_matmul(g, q, k, false, true, &y));
    EXPECT_OK(lks_graph_mul_number(g, y, 0.316227766, &y));
    EXPECT_OK(lks_graph_softmax(g, y, true, &y));
    EXPECT_OK(lks_graph_matmul(g, y, v, false, false, &y));
    EXPECT_OK(lks_graph_add(g, x, linear(g, merge(g, y), WIDTH), &x));
    return x;
}

/* The table is used twice: for what is read, and for the scores of what comes next. */
static lks_graph *transformer(void)
{
    lks_graph *g;
    lks_value x, y;
    const int64_t dims[] = {LENGTH};
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input_tokens(g, "text", 1, dims, &x));
    EXPECT_OK(lks_graph_embedding(
        g, x, lks_embedding_params(.name = "table", .vocabulary = WORDS, .out = WIDTH), &x));
    EXPECT_OK(lks_graph_positions(g, x, NULL, &x));
    x = attention(g, x);
    EXPECT_OK(lks_graph_layer_norm(g, x, NULL, &y));
    y = linear(g, y, 32);
    EXPECT_OK(lks_graph_gelu(g, y, &y));
    EXPECT_OK(lks_graph_add(g, x, linear(g, y, WIDTH), &x));
    EXPECT_OK(lks_graph_layer_norm(g, x, NULL, &x));
    EXPECT_OK(lks_graph_dense(
        g, x, lks_dense_params(.share = "table", .out = WORDS, .no_bias = true, .last_axis = true),
        &x));
    EXPECT_OK(lks_graph_softmax_loss(g, x, NULL, &x));
    EXPECT_OK(lks_graph_add_loss(g, "loss", x, 1.0));
    return g;
}

/* Batches of 13 in blocks of 4, so that the last block is short; the last step's batch is of 1. */
static struct lks_trainer_params text_params(lks_device *device)
{
    struct lks_trainer_params p = small_params(device);
    p.batch = 13;
    return p;
}

static void digest_of(lks_device *device, bool plain, const lks_dataset *data, char *hex)
{
    lks_graph *g = transformer();
    struct lks_trainer_params p = text_params(device);
    lks_trainer *t;
    p.plain = plain;
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .test = data, .max_steps = 6)));
    EXPECT_OK(lks_trainer_weights_sha256(t, hex));
    lks_trainer_destroy(&t);
    lks_graph_destroy(&g);
}

Test(tokens, transformer_has_the_same_bits_everywhere)
{
    lks_dataset *data = make_text();
    lks_device *ref = open_or_skip("ref"), *cpu = open_or_skip("cpu");
    char want[65], got[65];
    digest_of(ref, false, data, want);
    digest_of(ref, true, data, got);
    cr_expect_str_eq(got, want, "the items in C");
    digest_of(cpu, true, data, got);
    cr_expect_str_eq(got, want, "plain kernels");
    digest_of(cpu, false, data, got);
    cr_expect_str_eq(got, want, "fast kernels");
    lks_device_close(&ref);
    lks_device_close(&cpu);
    lks_dataset_destroy(&data);
}

static lks_status keep_loss(void *user, const struct lks_epoch_info *info)
{
    double *loss = user;
    loss[info->epoch == 0 ? 0 : 1] = info->train_loss;
    return LKS_OK;
}

Test(tokens, transformer_learns)
{
    lks_dataset *data = make_text();
    lks_device *ref = open_or_skip("ref");
    lks_graph *g = transformer();
    struct lks_trainer_params p = text_params(ref);
    double loss[2] = {0, 0};
    lks_trainer *t;
    p.epochs = 40;
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .on_epoch = keep_loss,
                                                .user = loss)));
    cr_expect(loss[0] > 1.5 && loss[1] < 0.9, "the loss goes from %g to %g", loss[0], loss[1]);
    lks_trainer_destroy(&t);
    lks_graph_destroy(&g);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

static void stray_token_on(const char *select, int32_t token)
{
    lks_dataset *data = make_text();
    lks_device *device = open_or_skip(select);
    lks_graph *g = transformer();
    struct lks_trainer_params p = text_params(device);
    char before[65], after[65];
    lks_trainer *t;
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    EXPECT_OK(lks_trainer_weights_sha256(t, before));
    for (int i = 0; i < SAMPLES; i++)
        text[i * LENGTH + 5] = token;
    cr_assert_eq(lks_trainer_fit(t, lks_fit_params(.train = data)), LKS_E_NONFINITE);
    cr_expect(strstr(lks_error_message(), "operator `table` (embedding)") != NULL, "%s",
              lks_error_message());
    EXPECT_OK(lks_trainer_weights_sha256(t, after));
    cr_expect_str_eq(before, after);
    lks_trainer_destroy(&t);
    lks_graph_destroy(&g);
    lks_device_close(&device);
    lks_dataset_destroy(&data);
}

Test(tokens, a_stray_token_stops_ref)
{
    stray_token_on("ref", -1);
}

Test(tokens, a_stray_token_stops_the_cpu)
{
    stray_token_on("cpu", WORDS);
    stray_token_on("cpu", INT32_MIN);
}

Test(tokens, refusals)
{
    lks_graph *g;
    lks_value tokens, x, y;
    const int64_t dims[] = {LENGTH};
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input_tokens(g, "text", 1, dims, &tokens));
    EXPECT_OK(lks_graph_input(g, "x", 1, dims, &x));
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_embedding(g, tokens, NULL, &y), "`vocabulary`");
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lks_graph_embedding(g, tokens, lks_embedding_params(.vocabulary = 3), &y), "`out`");
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lks_graph_embedding(g, x, lks_embedding_params(.vocabulary = 3, .out = 2), &y),
                "an input of integers");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_graph_positions(g, tokens, NULL, &y), "a value of floats");
    lks_graph_destroy(&g);
}
