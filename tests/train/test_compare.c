/*
 * test_compare.c - two devices compared operator by operator: equal where they are, and a planted
 * fault is named.
 */
#include "train_help.h"

static lks_trainer *make_trainer(lks_device *device)
{
    struct lks_trainer_params p = small_params(device);
    lks_graph *g = make_graph();
    lks_trainer *t;
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    lks_graph_destroy(&g);
    return t;
}

static bool count_steps(void *user, uint64_t step, uint64_t tensors, uint64_t bytes)
{
    cr_assert_eq(step, *(uint64_t *)user);
    cr_assert(tensors > 20 && bytes > 1000);
    ++*(uint64_t *)user;
    return true;
}

Test(compare, ref_and_cpu_agree_over_an_epoch_and_its_short_batch)
{
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref"), *cpu = open_or_skip("cpu");
    lks_trainer *a = make_trainer(ref), *b = make_trainer(cpu);
    struct lks_difference d;
    uint64_t steps = 0;
    bool same = false;
    EXPECT_OK(lks_compare(a, b, lks_compare_params(.train = data, .steps = 7,
                                                   .on_step = count_steps, .user = &steps),
                          &same, &d));
    cr_assert(same);
    cr_assert_eq(steps, 7);
    cr_assert_eq(lks_trainer_steps(a), 7);
    lks_trainer_destroy(&a);
    lks_trainer_destroy(&b);
    lks_device_close(&cpu);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

Test(compare, one_bit_in_one_parameter_is_found)
{
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref");
    lks_trainer *a = make_trainer(ref), *b = make_trainer(ref);
    struct lks_difference d;
    float w[5];
    uint32_t bits;
    bool same = true;
    EXPECT_OK(lks_trainer_get(b, "conv2.bias", w, 5));
    memcpy(&bits, &w[3], sizeof bits);
    bits ^= 0x3f800000u; /* 0 becomes 1 */
    memcpy(&w[3], &bits, sizeof bits);
    EXPECT_OK(lks_trainer_set(b, "conv2.bias", w, 5));
    EXPECT_OK(lks_compare(a, b, lks_compare_params(.train = data, .steps = 3), &same, &d));
    cr_assert(!same);
    cr_assert_eq(d.step, 0);
    cr_assert_str_eq(d.operation, "conv2");
    cr_assert_str_eq(d.op, "conv2d");
    cr_assert_eq(d.index % 5, 3, "the channel of the changed bias");
    cr_assert(d.bits_a != d.bits_b && d.differing > 0 && d.differing <= d.elements);
    lks_trainer_destroy(&a);
    lks_trainer_destroy(&b);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

Test(compare, different_seeds_are_no_comparison)
{
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref");
    struct lks_trainer_params p = small_params(ref);
    lks_graph *g = make_graph();
    lks_trainer *a = make_trainer(ref), *b;
    struct lks_difference d;
    bool same;
    p.seed++;
    EXPECT_OK(lks_trainer_create(&b, g, &p));
    cr_assert_eq(lks_compare(a, b, lks_compare_params(.train = data), &same, &d), LKS_E_ARGUMENT);
    lks_trainer_destroy(&a);
    lks_trainer_destroy(&b);
    lks_graph_destroy(&g);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}
