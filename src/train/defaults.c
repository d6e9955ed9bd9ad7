/*
 * defaults.c - the parameter structs with their defaults written out, for languages without
 * designated initialisers.
 */
#include <lockstep/lockstep.h>

struct lks_device_params lks_device_params_default(void)
{
    return (struct lks_device_params){0};
}

struct lks_dataset_params lks_dataset_params_default(void)
{
    return (struct lks_dataset_params){.h = 1, .w = 1, .c = 1};
}

struct lks_images_params lks_images_params_default(void)
{
    return (struct lks_images_params){0};
}

struct lks_text_params lks_text_params_default(void)
{
    return (struct lks_text_params){.to = 1};
}

struct lks_moving_digits_params lks_moving_digits_params_default(void)
{
    return (struct lks_moving_digits_params){.digits = 2, .speed = 3};
}

struct lks_graph_params lks_graph_params_default(void)
{
    return (struct lks_graph_params){.init = LKS_INIT_GLOROT_UNIFORM};
}

struct lks_conv2d_params lks_conv2d_params_default(void)
{
    return (struct lks_conv2d_params){.stride = 1, .dilation = 1, .groups = 1};
}

struct lks_conv_transpose2d_params lks_conv_transpose2d_params_default(void)
{
    return (struct lks_conv_transpose2d_params){.stride = 1, .dilation = 1, .groups = 1};
}

struct lks_dense_params lks_dense_params_default(void)
{
    return (struct lks_dense_params){0};
}

struct lks_embedding_params lks_embedding_params_default(void)
{
    return (struct lks_embedding_params){0};
}

struct lks_positions_params lks_positions_params_default(void)
{
    return (struct lks_positions_params){0};
}

struct lks_batch_norm_params lks_batch_norm_params_default(void)
{
    return (struct lks_batch_norm_params){.eps = 1e-5, .momentum = 0.1};
}

struct lks_group_norm_params lks_group_norm_params_default(void)
{
    return (struct lks_group_norm_params){.eps = 1e-5};
}

struct lks_norm_params lks_norm_params_default(void)
{
    return (struct lks_norm_params){.eps = 1e-5};
}

struct lks_dropout_params lks_dropout_params_default(void)
{
    return (struct lks_dropout_params){.p = 0.5};
}

struct lks_channel_params lks_channel_params_default(void)
{
    return (struct lks_channel_params){0};
}

struct lks_pool_params lks_pool_params_default(void)
{
    return (struct lks_pool_params){0};
}

struct lks_trainer_params lks_trainer_params_default(void)
{
    return (struct lks_trainer_params){.batch = 64, .leaf = 8, .epochs = 1};
}

struct lks_fit_params lks_fit_params_default(void)
{
    return (struct lks_fit_params){0};
}

struct lks_compare_params lks_compare_params_default(void)
{
    return (struct lks_compare_params){.steps = 1};
}

struct lks_pad_params lks_pad_params_default(void)
{
    return (struct lks_pad_params){0};
}

struct lks_resize_params lks_resize_params_default(void)
{
    return (struct lks_resize_params){0};
}

struct lks_slice_params lks_slice_params_default(void)
{
    return (struct lks_slice_params){0};
}
