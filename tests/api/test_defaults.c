/*
 * test_defaults.c - what the headers promise of `..._params_default`: the numbers, and that a layer
 * made with them is the layer that zeros make; versions; the list of devices.
 */
#include "graph/graph.h"
#include "train/train_help.h"

static lks_graph *start(lks_value *x, lks_value *tokens)
{
    lks_graph *g;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "x", 3, (const int64_t[]){8, 8, 4}, x));
    EXPECT_OK(lks_graph_input_tokens(g, "tokens", 1, (const int64_t[]){5}, tokens));
    return g;
}

/* Operators, attributes, shapes and parameters are equal. */
static void expect_same(const char *what, const lks_graph *a, const lks_graph *b)
{
    cr_assert(a->n_node == b->n_node && a->n_node > 0 && a->n_param == b->n_param, "%s", what);
    for (size_t i = 0; i < a->n_node; i++) {
        const struct lksi_call *p = &a->node[i].call, *q = &b->node[i].call;
        cr_assert(p->op == q->op, "%s: operator %zu", what, i);
        cr_assert(p->op->attr_size == 0 || memcmp(p->attr, q->attr, p->op->attr_size) == 0,
                  "%s: attributes of operator %zu", what, i);
        for (int k = 0; k < p->n_out; k++)
            cr_assert(lksi_desc_equal(&p->out[k], &q->out[k]), "%s: output %d", what, k);
    }
    for (size_t i = 0; i < a->n_param; i++)
        cr_assert(strcmp(a->param[i].name, b->param[i].name) == 0, "%s: parameter %zu", what, i);
}

/* One graph with the defaults and what must be set, one with zeros and the same. */
#define SAME(call, from, type, ...)                                                                \
    do {                                                                                           \
        lks_value x_, tokens_, y_;                                                                 \
        struct type params_ = type##_default();                                                    \
        lks_graph *with_ = start(&x_, &tokens_), *without_;                                        \
        __VA_ARGS__;                                                                               \
        EXPECT_OK(call(with_, from, &params_, &y_));                                               \
        memset(&params_, 0, sizeof params_);                                                       \
        __VA_ARGS__;                                                                               \
        without_ = start(&x_, &tokens_);                                                           \
        EXPECT_OK(call(without_, from, &params_, &y_));                                            \
        expect_same(#call, with_, without_);                                                       \
        lks_graph_destroy(&with_);                                                                 \
        lks_graph_destroy(&without_);                                                              \
    } while (0)

Test(defaults, make_the_layers_that_zeros_make)
{
    SAME(lks_graph_conv2d, x_, lks_conv2d_params, params_.out = 4; params_.kernel = 3);
    SAME(lks_graph_conv_transpose2d, x_, lks_conv_transpose2d_params, params_.out = 4;
         params_.kernel = 3);
    SAME(lks_graph_dense, x_, lks_dense_params, params_.out = 4);
    SAME(lks_graph_embedding, tokens_, lks_embedding_params, params_.out = 4;
         params_.vocabulary = 9);
    SAME(lks_graph_batch_norm, x_, lks_batch_norm_params, (void)params_);
    SAME(lks_graph_group_norm, x_, lks_group_norm_params, params_.groups = 2);
    SAME(lks_graph_layer_norm, x_, lks_norm_params, (void)params_);
    SAME(lks_graph_instance_norm, x_, lks_norm_params, (void)params_);
    SAME(lks_graph_scale, x_, lks_channel_params, (void)params_);
    SAME(lks_graph_maxpool, x_, lks_pool_params, params_.kernel = 2);
    SAME(lks_graph_avgpool, x_, lks_pool_params, params_.kernel = 2);
    SAME(lks_graph_pad, x_, lks_pad_params, params_.before[0] = 1);
    SAME(lks_graph_resize, x_, lks_resize_params, params_.factor = 2);
    SAME(lks_graph_slice, x_, lks_slice_params, params_.begin[0] = 1);
}

Test(defaults, have_the_numbers_of_the_headers)
{
    const struct lks_conv2d_params conv = lks_conv2d_params_default();
    const struct lks_conv_transpose2d_params back = lks_conv_transpose2d_params_default();
    const struct lks_trainer_params t = lks_trainer_params_default();
    const struct lks_dataset_params data = lks_dataset_params_default();
    const struct lks_device_params device = lks_device_params_default();
    cr_assert(conv.stride == 1 && conv.dilation == 1 && conv.groups == 1 && conv.out == 0);
    cr_assert(back.stride == 1 && back.dilation == 1 && back.groups == 1 && back.out == 0);
    cr_assert(lks_batch_norm_params_default().eps == 1e-5);
    cr_assert(lks_batch_norm_params_default().momentum == 0.1);
    cr_assert(lks_group_norm_params_default().eps == 1e-5);
    cr_assert(lks_norm_params_default().eps == 1e-5);
    cr_assert(lks_dropout_params_default().p == 0.5);
    cr_assert(lks_graph_params_default().init == LKS_INIT_GLOROT_UNIFORM);
    cr_assert(t.batch == 64 && t.leaf == 8 && t.epochs == 1 && t.device == NULL);
    cr_assert(lks_compare_params_default().steps == 1);
    cr_assert(lks_fit_params_default().train == NULL && lks_fit_params_default().max_steps == 0);
    cr_assert(data.h == 1 && data.w == 1 && data.c == 1 && data.count == 0);
    cr_assert(lks_text_params_default().from == 0 && lks_text_params_default().to == 1);
    cr_assert(lks_moving_digits_params_default().digits == 2);
    cr_assert(lks_moving_digits_params_default().speed == 3);
    cr_assert(lks_images_params_default().images == NULL);
    cr_assert(lks_images_params_default().limit == 0);
    cr_assert(lks_softmax_loss_params_default().smoothing == 0);
    cr_assert(!lks_softmax_loss_params_default().ignores);
    cr_assert(lks_positions_params_default().name == NULL);
    cr_assert(device.select == NULL && device.threads == 0 && !device.own_divsqrt);
}

Test(defaults, sgd_as_an_optimizer)
{
    const struct lks_sgd sgd = {.lr = 0.25,
                                .momentum = 0.5,
                                .weight_decay = 0.125,
                                .schedule = LKS_SCHEDULE_COSINE,
                                .nesterov = true};
    const struct lks_optimizer o = lks_optimizer_of_sgd(&sgd);
    cr_assert(o.kind == LKS_OPTIMIZER_SGD && o.lr == 0.25 && o.momentum == 0.5);
    cr_assert(o.weight_decay == 0.125 && o.nesterov && o.schedule.kind == LKS_SCHEDULE_COSINE);
    cr_assert(lks_learning_rate(&o, 0, 10, 5) == 0.25);
    cr_assert(lks_learning_rate(&o, 5, 10, 5) < 0.25);
}

Test(defaults, versions)
{
    char want[32];
    snprintf(want, sizeof want, "%d.%d.%d", LKS_VERSION_MAJOR, LKS_VERSION_MINOR,
             LKS_VERSION_PATCH);
    cr_assert_str_eq(lks_version(), want, "header and library differ");
    cr_assert(lks_contract_version() == LKS_CONTRACT_VERSION);
}

/* `ref` is last, and each line's `select` opens exactly that device, or says why not. */
Test(defaults, devices)
{
    struct lks_device_info *list = NULL;
    size_t count = 0;
    const char *note = NULL;
    EXPECT_OK(lks_device_list(&list, &count, &note));
    cr_assert(count >= 1 && list != NULL && note != NULL);
    cr_assert(list[count - 1].type == LKS_DEVICE_REF);
    cr_assert_str_eq(list[count - 1].select, "ref");
    cr_assert((count == 1) == (note[0] != '\0'), "%zu devices and the note `%s`", count, note);
    for (size_t i = 0; i < count; i++) {
        lks_device *device = NULL;
        lks_status st = lks_device_open(
            &device, lks_device_params(.select = list[i].select, .threads = 1, .cache_dir = ""));
        cr_assert(st == LKS_OK || (st == LKS_E_NUMERICS && device == NULL), "%s: %s",
                  list[i].select, lks_error_message());
        if (st != LKS_OK)
            continue;
        cr_assert_str_eq(lks_device_get_info(device)->name, list[i].name);
        cr_assert_str_eq(lks_device_get_info(device)->platform, list[i].platform);
        lks_device_close(&device);
        cr_assert_null(device);
    }
    free(list);
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_device_list(NULL, &count, &note), "NULL");
}
