/*
 * test_optimizer.c - each optimiser against its formula in double precision over 20 steps; clipping,
 * groups, frozen parameters, averages; one hash on every kind of kernel; resume; what is refused.
 */
#include <float.h>
#include <math.h>

#include "model/safetensors.h"
#include "train_help.h"

#define STEPS 20
#define N     (17 * CLASSES) /* dense2.weight */

static struct lks_trainer_params with(lks_device *device, const struct lks_optimizer *o, size_t n)
{
    return (struct lks_trainer_params){.device = device, .batch = 12, .leaf = 4, .seed = 7,
                                       .epochs = 3, .optimizers = o, .n_optimizers = n};
}

static lks_trainer *trainer_of(const struct lks_trainer_params *p)
{
    lks_trainer *t;
    lks_graph *g = make_graph();
    EXPECT_OK(lks_trainer_create(&t, g, p));
    lks_graph_destroy(&g);
    return t;
}

/* ---- formulas, as PyTorch's documentation has them ---- */

struct state {
    double p, a, b, c; /* parameter and what the optimiser keeps of it */
};

static void formula(const struct lks_optimizer *o, int t, double lr, double wd, double g,
                    struct state *s)
{
    double left1 = 1 - pow(o->beta1, t), left2 = 1 - pow(o->beta2, t);
    if (o->kind == LKS_OPTIMIZER_ADAMW)
        s->p *= 1 - lr * wd;
    else if (o->kind != LKS_OPTIMIZER_LAMB)
        g += wd * s->p;
    switch (o->kind) {
    case LKS_OPTIMIZER_SGD:
        s->a = o->momentum * s->a + g;
        s->p -= lr * (o->nesterov ? g + o->momentum * s->a : s->a);
        return;
    case LKS_OPTIMIZER_ADAM:
    case LKS_OPTIMIZER_ADAMW:
    case LKS_OPTIMIZER_LAMB:
        s->a = o->beta1 * s->a + (1 - o->beta1) * g;
        s->b = o->beta2 * s->b + (1 - o->beta2) * g * g;
        s->c = s->a / left1 / (sqrt(s->b / left2) + o->eps);
        if (o->kind == LKS_OPTIMIZER_LAMB)
            s->c += wd * s->p; /* lamb_steps goes on */
        else
            s->p -= lr * s->c;
        return;
    case LKS_OPTIMIZER_RMSPROP:
        s->a = o->alpha * s->a + (1 - o->alpha) * g * g;
        s->b = o->alpha * s->b + (1 - o->alpha) * g;
        s->c = o->momentum * s->c + g / (sqrt(s->a - (o->centered ? s->b * s->b : 0)) + o->eps);
        s->p -= lr * s->c;
        return;
    case LKS_OPTIMIZER_ADAGRAD:
        s->a += g * g;
        s->p -= lr / (1 + (t - 1) * o->lr_decay) * g / (sqrt(s->a) + o->eps);
        return;
    }
}

/* LAMB's trust: |p| / |direction| of the tensor. */
static void lamb_step(struct state *s, int n, double lr)
{
    double pp = 0, uu = 0;
    for (int i = 0; i < n; i++) {
        pp += s[i].p * s[i].p;
        uu += s[i].c * s[i].c;
    }
    for (int i = 0; i < n; i++)
        s[i].p -= lr * sqrt(pp / uu) * s[i].c;
}

static float draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)((double)(*state >> 8) * 0x1p-23 - 1.0);
}

/* Steps with gradients of our own, compared with the formula. Group "*.bias": a tenth of the rate, no
 * decay. */
static void against_formula(struct lks_optimizer o, double bound)
{
    static const char *const biases[] = {"*.bias"};
    static const struct lks_param_group group = {
        .params = biases, .n_params = 1, .lr_scale = 0.1, .has_weight_decay = true};
    static const char *const names[2] = {"dense2.weight", "dense2.bias"};
    static const int size[2] = {N, CLASSES};
    static const double scale[2] = {1.0, 0.1};
    static struct state s[2][N];
    lks_dataset *data = make_data();
    lks_device *device = open_or_skip("ref");
    struct lks_trainer_params p = with(device, &o, 1);
    float x[12 * SIDE * SIDE] = {0.5f}, v[N];
    int32_t labels[12] = {0};
    struct lks_batch batch = {.x = x, .labels = labels, .samples = 12};
    uint32_t seed = 99;
    p.groups = &group;
    p.n_groups = 1;
    lks_trainer *t = trainer_of(&p);
    memset(s, 0, sizeof s);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < size[k]; i++) {
            v[i] = draw(&seed);
            s[k][i].p = (double)v[i];
            if (o.kind == LKS_OPTIMIZER_ADAGRAD)
                s[k][i].a = o.initial_accumulator;
        }
        EXPECT_OK(lks_trainer_set(t, names[k], v, (size_t)size[k]));
    }
    for (int step = 0; step < STEPS; step++) {
        double lr = lks_learning_rate(&o, (uint64_t)step, 0, 0);
        EXPECT_OK(lks_trainer_forward(t, &batch, NULL));
        EXPECT_OK(lks_trainer_backward(t));
        for (int k = 0; k < 2; k++) {
            double wd = k == 0 ? o.weight_decay : 0;
            for (int i = 0; i < size[k]; i++) {
                v[i] = draw(&seed);
                formula(&o, step + 1, lr * scale[k], wd, (double)v[i], &s[k][i]);
            }
            EXPECT_OK(lks_trainer_set_gradient(t, names[k], v, (size_t)size[k]));
            if (o.kind == LKS_OPTIMIZER_LAMB)
                lamb_step(s[k], size[k], lr * scale[k]);
        }
        EXPECT_OK(lks_trainer_update(t));
    }
    for (int k = 0; k < 2; k++) {
        EXPECT_OK(lks_trainer_get(t, names[k], v, (size_t)size[k]));
        for (int i = 0; i < size[k]; i++)
            cr_assert(fabs((double)v[i] - s[k][i].p) <= bound * (1 + fabs(s[k][i].p)),
                      "%s: %s[%d] is %.9g, %.9g by the formula", lks_optimizer_name(o.kind),
                      names[k], i, (double)v[i], s[k][i].p);
    }
    lks_trainer_destroy(&t);
    lks_device_close(&device);
    lks_dataset_destroy(&data);
}

Test(optimizer, sgd_is_its_formula)
{
    struct lks_optimizer o = lks_optimizer_default(LKS_OPTIMIZER_SGD);
    o.momentum = 0.9;
    o.weight_decay = 0.01;
    against_formula(o, 2e-6);
    o.nesterov = true;
    o.schedule = (struct lks_lr_schedule){.kind = LKS_SCHEDULE_STEP, .every = 6, .warmup = 3};
    against_formula(o, 2e-6);
}

Test(optimizer, adam_and_adamw_are_their_formulas)
{
    struct lks_optimizer o = lks_optimizer_default(LKS_OPTIMIZER_ADAM);
    o.lr = 0.02;
    o.weight_decay = 0.1;
    against_formula(o, 2e-6);
    o.kind = LKS_OPTIMIZER_ADAMW;
    o.beta1 = 0.5;
    against_formula(o, 2e-6);
    o.beta1 = 0;
    against_formula(o, 2e-6);
}

Test(optimizer, rmsprop_is_its_formula)
{
    struct lks_optimizer o = lks_optimizer_default(LKS_OPTIMIZER_RMSPROP);
    o.weight_decay = 0.02;
    against_formula(o, 5e-6);
    o.momentum = 0.8;
    against_formula(o, 5e-6);
    o.centered = true;
    against_formula(o, 5e-6);
}

Test(optimizer, adagrad_is_its_formula)
{
    struct lks_optimizer o = lks_optimizer_default(LKS_OPTIMIZER_ADAGRAD);
    o.lr = 0.1;
    o.weight_decay = 0.02;
    against_formula(o, 2e-6);
    o.lr_decay = 0.1;
    o.initial_accumulator = 0.25;
    against_formula(o, 2e-6);
}

Test(optimizer, lamb_is_its_formula)
{
    struct lks_optimizer o = lks_optimizer_default(LKS_OPTIMIZER_LAMB);
    o.lr = 0.02;
    against_formula(o, 5e-6);
}

/* ---- all of them over whole trainings ---- */

static size_t all_kinds(struct lks_optimizer *o)
{
    size_t n = 0;
    for (int kind = LKS_OPTIMIZER_SGD; kind <= LKS_OPTIMIZER_LAMB; kind++)
        o[n++] = lks_optimizer_default((lks_optimizer_kind)kind);
    o[0].momentum = 0.9;
    o[0].nesterov = true;
    o[0].schedule = (struct lks_lr_schedule){.kind = LKS_SCHEDULE_ONE_CYCLE};
    o[1].schedule = (struct lks_lr_schedule){.kind = LKS_SCHEDULE_COSINE, .warmup = 4};
    o[1].clip_norm = 0.5;
    o[2].schedule = (struct lks_lr_schedule){.kind = LKS_SCHEDULE_STEP, .every = 1,
                                             .every_epochs = true, .factor = 0.5};
    o[2].clip_value = 0.01;
    o[3].centered = true;
    o[3].momentum = 0.5;
    o[4].initial_accumulator = 0.1;
    o[5].clip_norm = 1;
    o[5].clip_value = 0.1;
    o[n] = lks_optimizer_default(LKS_OPTIMIZER_RMSPROP);
    o[n++].schedule = (struct lks_lr_schedule){.kind = LKS_SCHEDULE_LINEAR, .min = 0.001};
    return n;
}

static const char *const frozen[] = {"conv1.bias"};
static const char *const late[] = {"dense*", "conv?.bias"};
static const struct lks_param_group groups[] = {
    {.params = late, .n_params = 2, .lr_scale = 0.5, .has_weight_decay = true,
     .weight_decay = 0.003}};

static struct lks_trainer_params full(lks_device *device, const struct lks_optimizer *o)
{
    struct lks_trainer_params p = with(device, o, 1);
    p.frozen = frozen;
    p.n_frozen = 1;
    p.groups = groups;
    p.n_groups = 1;
    p.ema = 0.9;
    return p;
}

static void digests(const struct lks_trainer_params *p, const lks_dataset *data, char *hex,
                    char *ema)
{
    lks_trainer *t = trainer_of(p);
    char *folder = scratch_make();
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
    EXPECT_OK(lks_trainer_weights_sha256(t, hex));
    EXPECT_OK(lks_trainer_save_ema(t, in_folder(folder, "ema")));
    EXPECT_OK(lks_trainer_load_weights(t, in_folder(folder, "ema")));
    EXPECT_OK(lks_trainer_weights_sha256(t, ema));
    scratch_remove(folder);
    lks_trainer_destroy(&t);
}

Test(optimizer, one_digest_on_ref_cpu_and_plain)
{
    struct lks_optimizer o[8];
    size_t n = all_kinds(o);
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref"), *cpu = open_or_skip("cpu");
    for (size_t k = 0; k < n; k++) {
        char want[65], ema[65];
        for (int way = 0; way < 3; way++) { /* ref, fast kernels, plain kernels */
            struct lks_trainer_params p = full(way == 0 ? ref : cpu, &o[k]);
            char got[65], got_ema[65];
            p.plain = way == 2;
            digests(&p, data, way == 0 ? want : got, way == 0 ? ema : got_ema);
            if (way == 0)
                continue;
            cr_assert_str_eq(got, want, "%s, way %d", lks_optimizer_name(o[k].kind), way);
            cr_assert_str_eq(got_ema, ema, "average of %s, way %d", lks_optimizer_name(o[k].kind),
                             way);
        }
        cr_assert_str_neq(want, ema);
    }
    lks_device_close(&cpu);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

Test(optimizer, resume_gives_the_same_bits_and_refuses_another)
{
    struct lks_optimizer o[8];
    size_t n = all_kinds(o);
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref");
    char *folder = scratch_make();
    for (size_t k = 0; k < n; k++) {
        struct lks_trainer_params p = full(ref, &o[k]), q = full(ref, &o[(k + 1) % 6]);
        char want[65], ema[65], got[65];
        const char *path = in_folder(folder, "checkpoint");
        digests(&p, data, want, ema);
        lks_trainer *t = trainer_of(&p);
        EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .max_steps = 7)));
        EXPECT_OK(lks_trainer_save_checkpoint(t, data, path));
        lks_trainer_destroy(&t);
        t = trainer_of(&q);
        EXPECT_FAIL(LKS_E_MISMATCH, lks_trainer_load_checkpoint(t, data, path), "`optimizer`",
                    lks_optimizer_name(o[k].kind), lks_optimizer_name(o[(k + 1) % 6].kind));
        lks_trainer_destroy(&t);
        t = trainer_of(&p);
        EXPECT_OK(lks_trainer_load_checkpoint(t, data, path));
        EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
        EXPECT_OK(lks_trainer_weights_sha256(t, got));
        cr_assert_str_eq(got, want, "%s", lks_optimizer_name(o[k].kind));
        EXPECT_OK(lks_trainer_save_ema(t, path));
        EXPECT_OK(lks_trainer_load_weights(t, path));
        EXPECT_OK(lks_trainer_weights_sha256(t, got));
        cr_assert_str_eq(got, ema, "average of %s", lks_optimizer_name(o[k].kind));
        lks_trainer_destroy(&t);
    }
    scratch_remove(folder);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

/* A checkpoint of sgd as the first versions wrote it: without the keys that came later. */
Test(optimizer, old_checkpoints_of_sgd_load)
{
    static const char *const old[] = {"graph", "data", "samples", "seed", "batch", "leaf",
                                      "drop_last", "no_shuffle", "schedule", "epochs", "lr",
                                      "momentum", "weight_decay", "step", "epoch_loss",
                                      "epoch_hits", "epoch_samples"};
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref");
    struct lks_trainer_params p = small_params(ref), q = p;
    struct lks_optimizer adam = lks_optimizer_default(LKS_OPTIMIZER_ADAM);
    struct lksi_safetensors *file;
    struct lksi_st_meta meta[LKSI_COUNT(old)];
    char *folder = scratch_make(), want[65], got[65];
    const char *path = in_folder(folder, "checkpoint");
    lks_trainer *t = trainer_of(&p);
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .max_steps = 4)));
    EXPECT_OK(lks_trainer_save_checkpoint(t, data, path));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
    EXPECT_OK(lks_trainer_weights_sha256(t, want));
    lks_trainer_destroy(&t);
    EXPECT_OK(lksi_safetensors_read(path, &file));
    cr_assert(file->meta_count > LKSI_COUNT(old) + 1);
    for (size_t i = 0; i < LKSI_COUNT(old); i++)
        meta[i] = (struct lksi_st_meta){old[i], lksi_safetensors_meta(file, old[i])};
    EXPECT_OK(lksi_safetensors_write(path, file->tensors, file->count, meta, LKSI_COUNT(old)));
    lksi_safetensors_destroy(&file);
    t = trainer_of(&p);
    EXPECT_OK(lks_trainer_load_checkpoint(t, data, path));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
    EXPECT_OK(lks_trainer_weights_sha256(t, got));
    cr_assert_str_eq(got, want);
    lks_trainer_destroy(&t);
    q.sgd.nesterov = true;
    t = trainer_of(&q);
    EXPECT_FAIL(LKS_E_MISMATCH, lks_trainer_load_checkpoint(t, data, path), "`nesterov`");
    lks_trainer_destroy(&t);
    q.optimizers = &adam;
    q.n_optimizers = 1;
    t = trainer_of(&q);
    EXPECT_FAIL(LKS_E_MISMATCH, lks_trainer_load_checkpoint(t, data, path), "`optimizer`", "sgd",
                "adam");
    lks_trainer_destroy(&t);
    scratch_remove(folder);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

/* ---- clipping, freezing, several ---- */

Test(optimizer, clips_by_norm_then_by_value)
{
    struct lks_optimizer o = {.kind = LKS_OPTIMIZER_SGD, .lr = 1, .clip_norm = 2};
    lks_device *device = open_or_skip("ref");
    float x[12 * SIDE * SIDE] = {0.5f}, zero[2048] = {0}, g[CLASSES] = {3, -4, 12, 84}, v[CLASSES];
    int32_t labels[12] = {0};
    struct lks_batch batch = {.x = x, .labels = labels, .samples = 12};
    for (int round = 0; round < 3; round++) {
        struct lks_trainer_params p = with(device, &o, 1);
        lks_trainer *t = trainer_of(&p);
        const char *name;
        size_t n;
        EXPECT_OK(lks_trainer_set(t, "dense2.bias", zero, CLASSES));
        EXPECT_OK(lks_trainer_forward(t, &batch, NULL));
        EXPECT_OK(lks_trainer_backward(t));
        for (size_t i = 0; i < 8; i++) {
            EXPECT_OK(lks_trainer_parameter(t, i, &name, &n));
            EXPECT_OK(lks_trainer_set_gradient(t, name, strcmp(name, "dense2.bias") == 0 ? g : zero,
                                               n));
        }
        EXPECT_OK(lks_trainer_update(t));
        EXPECT_OK(lks_trainer_get(t, "dense2.bias", v, CLASSES));
        for (int i = 0; i < CLASSES; i++) { /* |g| is 85 */
            double limit = o.clip_norm > 0 ? fmin(1, o.clip_norm / (85 + 1e-6)) : 1;
            double want = (double)g[i] * limit;
            if (o.clip_value > 0)
                want = fmin(fmax(want, -o.clip_value), o.clip_value);
            cr_assert_float_eq((double)v[i], -want, 1e-6 * (1 + fabs(want)), "round %d, %d: %g, %g",
                               round, i, (double)v[i], -want);
        }
        lks_trainer_destroy(&t);
        o.clip_norm = round == 0 ? 100 : 0; /* longer than the gradient: it stays */
        o.clip_value = round == 1 ? 5 : 0;
    }
    lks_device_close(&device);
}

/* The guard looks before the clipping, which would make an infinity finite. */
Test(optimizer, clipping_hides_no_infinity)
{
    struct lks_optimizer o = {.kind = LKS_OPTIMIZER_SGD, .lr = 1, .clip_value = 2};
    lks_device *device = open_or_skip("ref");
    struct lks_trainer_params p = with(device, &o, 1);
    lks_trainer *t = trainer_of(&p);
    float x[12 * SIDE * SIDE] = {0.5f}, g[CLASSES] = {0, INFINITY, 0, 0}, a[CLASSES], b[CLASSES];
    int32_t labels[12] = {0};
    struct lks_batch batch = {.x = x, .labels = labels, .samples = 12};
    EXPECT_OK(lks_trainer_get(t, "dense2.bias", a, CLASSES));
    EXPECT_OK(lks_trainer_forward(t, &batch, NULL));
    EXPECT_OK(lks_trainer_backward(t));
    EXPECT_OK(lks_trainer_set_gradient(t, "dense2.bias", g, CLASSES));
    cr_assert_eq(lks_trainer_update(t), LKS_E_NONFINITE);
    EXPECT_OK(lks_trainer_get(t, "dense2.bias", b, CLASSES));
    cr_assert(memcmp(a, b, sizeof a) == 0);
    lks_trainer_destroy(&t);
    lks_device_close(&device);
}

Test(optimizer, frozen_parameters_stay_and_have_no_gradient)
{
    static const char *const convs[] = {"conv*"};
    struct lks_optimizer o = lks_optimizer_default(LKS_OPTIMIZER_ADAMW);
    lks_dataset *data = make_data();
    lks_device *device = open_or_skip("cpu");
    struct lks_trainer_params p = with(device, &o, 1);
    float before[270], after[270];
    p.frozen = convs;
    p.n_frozen = 1;
    lks_trainer *t = trainer_of(&p);
    EXPECT_OK(lks_trainer_get(t, "conv2.weight", before, 270));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
    EXPECT_OK(lks_trainer_get(t, "conv2.weight", after, 270));
    cr_assert(memcmp(before, after, sizeof before) == 0);
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_get_gradient(t, "conv2.weight", after, 270), "frozen");
    EXPECT_OK(lks_trainer_get(t, "dense1.bias", before, 17));
    cr_assert(before[0] != 0 || before[1] != 0, "dense1 was trained");
    lks_trainer_destroy(&t);
    lks_device_close(&device);
    lks_dataset_destroy(&data);
}

/* Each of two optimisers moves its own parameters as it does where the others are frozen; the second
 * rests in two of three steps. */
Test(optimizer, several_share_a_network)
{
    static const char *const own[2][1] = {{"conv*"}, {"dense*"}};
    struct lks_optimizer o[2] = {lks_optimizer_default(LKS_OPTIMIZER_RMSPROP),
                                 lks_optimizer_default(LKS_OPTIMIZER_LAMB)};
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref"), *cpu = open_or_skip("cpu");
    char want[65], got[65];
    float before[17], after[17];
    for (int k = 0; k < 2; k++) {
        o[k].params = own[k];
        o[k].n_params = 1;
    }
    o[1].every = 3;
    struct lks_trainer_params p = with(ref, o, 2);
    lks_trainer *t = trainer_of(&p);
    EXPECT_OK(lks_trainer_get(t, "dense1.bias", before, 17));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .max_steps = 2)));
    EXPECT_OK(lks_trainer_get(t, "dense1.bias", after, 17));
    cr_assert(memcmp(before, after, sizeof before) == 0, "it rests in the first two steps");
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .max_steps = 3)));
    EXPECT_OK(lks_trainer_get(t, "dense1.bias", after, 17));
    cr_assert(memcmp(before, after, sizeof before) != 0, "and moves in the third");
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
    EXPECT_OK(lks_trainer_weights_sha256(t, want));
    lks_trainer_destroy(&t);
    p.device = cpu;
    t = trainer_of(&p);
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
    EXPECT_OK(lks_trainer_weights_sha256(t, got));
    cr_assert_str_eq(got, want);
    lks_trainer_destroy(&t);
    lks_device_close(&cpu);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

/* The average by its formula, and evaluation with it. */
Test(optimizer, averages_and_evaluates_with_them)
{
    struct lks_optimizer o = lks_optimizer_default(LKS_OPTIMIZER_ADAM);
    lks_dataset *data = make_data();
    lks_device *device = open_or_skip("ref");
    struct lks_trainer_params p = with(device, &o, 1);
    char *folder = scratch_make();
    double e[17], loss, hits, other, plain;
    float v[17];
    p.ema = 0.8;
    p.evaluate_ema = true;
    lks_trainer *t = trainer_of(&p);
    EXPECT_OK(lks_trainer_get(t, "dense1.bias", v, 17));
    for (int i = 0; i < 17; i++)
        e[i] = (double)v[i];
    for (uint64_t step = 1; step <= 9; step++) {
        EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data, .max_steps = step)));
        EXPECT_OK(lks_trainer_get(t, "dense1.bias", v, 17));
        for (int i = 0; i < 17; i++)
            e[i] = 0.8 * e[i] + 0.2 * (double)v[i];
    }
    EXPECT_OK(lks_trainer_evaluate(t, data, &loss, &hits));
    EXPECT_OK(lks_trainer_save_ema(t, in_folder(folder, "ema")));
    EXPECT_OK(lks_trainer_save_weights(t, in_folder(folder, "weights")));
    lks_trainer_destroy(&t);
    p.ema = 0;
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_create(&t, NULL, &p), "");
    p.evaluate_ema = false;
    t = trainer_of(&p);
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_save_ema(t, in_folder(folder, "x")), "no average");
    EXPECT_OK(lks_trainer_load_weights(t, in_folder(folder, "weights")));
    EXPECT_OK(lks_trainer_evaluate(t, data, &plain, &hits));
    EXPECT_OK(lks_trainer_load_weights(t, in_folder(folder, "ema")));
    EXPECT_OK(lks_trainer_evaluate(t, data, &other, &hits));
    cr_assert_eq(other, loss, "the evaluation of the average is that of its file");
    cr_assert_neq(plain, loss);
    EXPECT_OK(lks_trainer_get(t, "dense1.bias", v, 17));
    for (int i = 0; i < 17; i++)
        cr_assert_float_eq((double)v[i], e[i], 1e-7);
    lks_trainer_destroy(&t);
    scratch_remove(folder);
    lks_device_close(&device);
    lks_dataset_destroy(&data);
}

/* ---- what is refused ---- */

Test(optimizer, wrong_numbers_and_patterns_are_refused)
{
    static const char *const nothing[] = {"dense9*"}, *const all[] = {"*"};
    lks_device *device = open_or_skip("ref");
    struct lks_optimizer good = lks_optimizer_default(LKS_OPTIMIZER_ADAM), o = good, two[2];
    struct lks_param_group group = {.params = nothing, .n_params = 1};
    struct lks_trainer_params p = with(device, &o, 1);
    lks_graph *g = make_graph();
    lks_trainer *t = NULL;
#define REFUSED(change, ...)                                                                       \
    do {                                                                                           \
        o = good;                                                                                  \
        p = with(device, &o, 1);                                                                   \
        change;                                                                                    \
        EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_create(&t, g, &p), __VA_ARGS__);                   \
    } while (0)
    REFUSED(o.beta1 = 1, "adam: beta1 is 1", "below 1");
    REFUSED(o.eps = 0, "adam: eps is 0", "above 0");
    REFUSED(o.lr = NAN, "adam: lr is");
    REFUSED(o.alpha = 0.5, "adam does not read alpha");
    REFUSED(o.nesterov = true, "nesterov");
    REFUSED(o.centered = true, "centered");
    REFUSED(o.clip_norm = -1, "clip_norm is -1");
    REFUSED(o.kind = (lks_optimizer_kind)9, "no optimiser 9");
    REFUSED(o.schedule.kind = (lks_schedule)7, "no schedule 7");
    REFUSED(o.schedule.min = 1, "min is 1");
    REFUSED(o.schedule.kind = LKS_SCHEDULE_STEP, "needs `every`");
    REFUSED(o.schedule.factor = 2, "factor is 2");
    REFUSED(o.schedule.rise = 1, "rise 1");
    REFUSED(p.n_optimizers = 0, "n_optimizers is 0");
    REFUSED((p.groups = &group, p.n_groups = 1), "groups: no parameter fits `dense9*`");
    REFUSED((p.frozen = nothing, p.n_frozen = 1), "frozen: no parameter fits `dense9*`");
    REFUSED((p.frozen = all, p.n_frozen = 1), "no parameters to train");
    REFUSED(p.ema = 1, "ema is 1");
    REFUSED(p.evaluate_ema = true, "evaluate_ema");
    two[0] = two[1] = good;
    REFUSED((p.optimizers = two, p.n_optimizers = 2), "belongs to optimisers 1 and 2");
    cr_assert_null(t);
    lks_graph_destroy(&g);
    lks_device_close(&device);
}
