/*
 * test_pair.c - two networks against each other, each with a loss and an optimiser of its own: both
 * move from the same parameters, the bits are those of every device and of a resumed training.
 */
#include "train_help.h"

static const char *const half[2][1] = {{"d*"}, {"g*"}};

/* Of the discriminator and of the generator. */
static void make_optimizers(struct lks_optimizer o[2])
{
    o[0] = lks_optimizer_default(LKS_OPTIMIZER_ADAM);
    o[1] = lks_optimizer_default(LKS_OPTIMIZER_RMSPROP);
    for (int k = 0; k < 2; k++) {
        o[k].params = half[k];
        o[k].n_params = 1;
        o[k].loss = k == 0 ? "d_loss" : "g_loss";
    }
}

static struct lks_trainer_params with(lks_device *device, const struct lks_optimizer *o, size_t n)
{
    return (struct lks_trainer_params){.device = device,
                                       .batch = 12,
                                       .leaf = 4,
                                       .seed = 7,
                                       .epochs = 3,
                                       .optimizers = o,
                                       .n_optimizers = n};
}

/* A generator g and a discriminator d1, d2, each with a loss and an optimiser. */
static lks_graph *make_pair(void)
{
    const int64_t dims[] = {SIDE, SIDE, 1}, noise[] = {8};
    lks_value side[2], judged[2], loss;
    lks_graph *g;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "image", 3, dims, &side[0]));
    EXPECT_OK(lks_graph_random(g, "noise", true, 1, noise, &side[1]));
    EXPECT_OK(
        lks_graph_dense(g, side[1], lks_dense_params(.out = SIDE * SIDE, .name = "g"), &side[1]));
    for (int k = 0; k < 2; k++) {
        lks_value x = side[k];
        EXPECT_OK(lks_graph_dense(g, x,
                                  lks_dense_params(.out = 12, .name = k == 0 ? "d1" : "e1",
                                                   .share = k == 0 ? NULL : "d1"),
                                  &x));
        EXPECT_OK(lks_graph_relu(g, x, &x));
        EXPECT_OK(lks_graph_dense(
            g, x,
            lks_dense_params(.out = 1, .name = k == 0 ? "d2" : "e2", .share = k == 0 ? NULL : "d2"),
            &judged[k]));
        EXPECT_OK(lks_graph_loss_to_number(g, LKS_LOSS_BCE, judged[k], k == 0 ? 1 : 0, 0, &loss));
        EXPECT_OK(lks_graph_add_loss(g, "d_loss", loss, 1));
    }
    EXPECT_OK(lks_graph_loss_to_number(g, LKS_LOSS_BCE, judged[1], 1, 0, &loss));
    EXPECT_OK(lks_graph_add_loss(g, "g_loss", loss, 1));
    return g;
}

/* Both move in one step from the same parameters: each as it does where the other is frozen. */
Test(pair, two_losses_move_two_halves)
{
    static const char *const names[2] = {"d1.weight", "g.weight"};
    struct lks_optimizer o[2];
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref"), *cpu = open_or_skip("cpu");
    lks_graph *g = make_pair();
    float both[2][1200], alone[1200];
    size_t n[2] = {12 * SIDE * SIDE, SIDE * SIDE * 8};
    char want[65], got[65];
    lks_trainer *t = NULL;
    make_optimizers(o);
    struct lks_trainer_params p = with(ref, o, 2);
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .max_steps = 1)));
    for (int k = 0; k < 2; k++)
        EXPECT_OK(lks_trainer_get(t, names[k], both[k], n[k]));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
    EXPECT_OK(lks_trainer_weights_sha256(t, want));
    lks_trainer_destroy(&t);
    for (int k = 0; k < 2; k++) {
        struct lks_trainer_params q = with(ref, &o[k], 1);
        q.frozen = half[1 - k];
        q.n_frozen = 1;
        EXPECT_OK(lks_trainer_create(&t, g, &q));
        EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .max_steps = 1)));
        EXPECT_OK(lks_trainer_get(t, names[k], alone, n[k]));
        cr_assert(memcmp(alone, both[k], n[k] * sizeof(float)) == 0, "%s", names[k]);
        lks_trainer_destroy(&t);
    }
    p.device = cpu;
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
    EXPECT_OK(lks_trainer_weights_sha256(t, got));
    cr_assert_str_eq(got, want);
    lks_trainer_destroy(&t);
    o[1].loss = "e_loss";
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_create(&t, g, &p), "`e_loss`");
    lks_graph_destroy(&g);
    lks_device_close(&cpu);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

/* The generator moves at each third step only, and a stop between two of them changes nothing. */
Test(pair, resumes_between_two_steps_of_the_generator)
{
    char *folder = scratch_make();
    const char *path = in_folder(folder, "checkpoint");
    struct lks_optimizer o[2];
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref"), *cpu = open_or_skip("cpu");
    lks_graph *g = make_pair();
    float before[800], after[800];
    char want[65], got[65];
    lks_trainer *t = NULL;
    make_optimizers(o);
    o[1].every = 3;
    struct lks_trainer_params p = with(ref, o, 2);
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
    EXPECT_OK(lks_trainer_weights_sha256(t, want));
    lks_trainer_destroy(&t);
    p.device = cpu;
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .max_steps = 3)));
    EXPECT_OK(lks_trainer_get(t, "g.weight", before, 800));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .max_steps = 5)));
    EXPECT_OK(lks_trainer_get(t, "g.weight", after, 800));
    cr_assert(memcmp(before, after, sizeof before) == 0, "it rests in steps 4 and 5");
    EXPECT_OK(lks_trainer_save_checkpoint(t, data, path));
    lks_trainer_destroy(&t);
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    EXPECT_OK(lks_trainer_load_checkpoint(t, data, path));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
    EXPECT_OK(lks_trainer_weights_sha256(t, got));
    cr_assert_str_eq(got, want);
    scratch_remove(folder);
    lks_trainer_destroy(&t);
    lks_graph_destroy(&g);
    lks_device_close(&cpu);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}
