/*
 * test_values.c - activations kept, read and written; a caller's own OpenCL context; defaults.
 */
#include <unistd.h>
#include <math.h>

#include <CL/cl.h>

#include "train/train_help.h"

#define N 7

struct net {
    lks_graph *g;
    lks_value image, conv, relu, pool, flat, logits;
};

static struct net make_net(void)
{
    const int64_t dims[] = {SIDE, SIDE, 1};
    struct net n;
    EXPECT_OK(lks_graph_create(&n.g, NULL));
    EXPECT_OK(lks_graph_input(n.g, "image", 3, dims, &n.image));
    EXPECT_OK(lks_graph_conv2d(n.g, n.image, lks_conv2d_params(.out = 3, .kernel = 3), &n.conv));
    EXPECT_OK(lks_graph_relu(n.g, n.conv, &n.relu));
    EXPECT_OK(lks_graph_maxpool(n.g, n.relu, lks_pool_params(.kernel = 2), &n.pool));
    EXPECT_OK(lks_graph_flatten(n.g, n.pool, &n.flat));
    EXPECT_OK(lks_graph_dense(n.g, n.flat, lks_dense_params(.out = CLASSES), &n.logits));
    EXPECT_OK(lks_graph_softmax_cross_entropy(n.g, n.logits));
    return n;
}

static void values_on(const char *select)
{
    static float image[N * SIDE * SIDE], conv[N * 8 * 8 * 3], relu[N * 8 * 8 * 3];
    static float pool[N * 4 * 4 * 3], flat[N * 48], logits[N * CLASSES], prob[N * CLASSES];
    lks_dataset *data = make_data();
    lks_device *device = open_or_skip(select);
    struct net n = make_net();
    const lks_value keep[] = {n.image, n.conv, n.relu, n.pool, n.flat, n.logits};
    struct lks_trainer_params p = small_params(device);
    struct lks_batch batch = {.x = image, .labels = help_labels, .samples = N};
    struct lks_step_info info;
    char with[65], without[65];
    float gw[48 * CLASSES], gb[CLASSES];
    double loss = 0;
    lks_trainer *t, *bare;
    p.sgd.schedule = LKS_SCHEDULE_CONSTANT;
    EXPECT_OK(lks_trainer_create(&bare, n.g, &p));
    p.keep = keep;
    p.n_keep = 6;
    EXPECT_OK(lks_trainer_create(&t, n.g, &p));
    for (int i = 0; i < N * SIDE * SIDE; i++)
        image[i] = (float)help_pixels[i] / 128.0f - 1.0f;
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_get_value(t, n.conv, conv, N * 192), "forward first");
    EXPECT_OK(lks_trainer_forward(t, &batch, &info));
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_get_value(t, n.conv, conv, 192), "1344 elements");
    EXPECT_OK(lks_trainer_get_value(t, n.conv, conv, N * 192));
    EXPECT_OK(lks_trainer_get_value(t, n.relu, relu, N * 192));
    EXPECT_OK(lks_trainer_get_value(t, n.pool, pool, N * 48));
    EXPECT_OK(lks_trainer_get_value(t, n.flat, flat, N * 48));
    EXPECT_OK(lks_trainer_get_value(t, n.logits, logits, N * CLASSES));
    for (int i = 0; i < N * 192; i++)
        cr_assert(relu[i] == (conv[i] <= 0 ? 0.0f : conv[i]), "element %d", i);
    cr_assert(memcmp(pool, flat, sizeof pool) == 0, "a view shows what it views");
    for (int s = 0; s < N; s++) {
        double sum = 0;
        for (int c = 0; c < CLASSES; c++)
            sum += exp((double)logits[s * CLASSES + c]);
        loss += (log(sum) - (double)logits[s * CLASSES + help_labels[s]]) / N;
    }
    cr_assert_float_eq(info.loss, loss, 1e-5, "%g, from the logits %g", (double)info.loss, loss);
    EXPECT_OK(lks_trainer_backward(t));
    EXPECT_OK(lks_trainer_update(t));
    EXPECT_OK(lks_trainer_get_value(t, n.conv, relu, N * 192));
    cr_assert(memcmp(conv, relu, sizeof conv) == 0, "kept to the end of the step");
    EXPECT_OK(lks_trainer_step(bare, &batch, NULL));
    EXPECT_OK(lks_trainer_weights_sha256(t, with));
    EXPECT_OK(lks_trainer_weights_sha256(bare, without));
    cr_assert_str_eq(with, without, "keeping values moves no bit");
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_get_value(bare, n.conv, conv, N * 192), "not kept");

    EXPECT_OK(lks_trainer_forward(t, &batch, NULL));
    memset(pool, 0, sizeof pool);
    EXPECT_OK(lks_trainer_set_value(t, n.pool, pool, N * 48));
    EXPECT_OK(lks_trainer_backward(t));
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_set_value(t, n.pool, pool, N * 48), "forward");
    EXPECT_OK(lks_trainer_get_gradient(t, "dense1.weight", gw, 48 * CLASSES));
    EXPECT_OK(lks_trainer_get_gradient(t, "dense1.bias", gb, CLASSES));
    for (int i = 0; i < 48 * CLASSES; i++)
        cr_assert(gw[i] == 0, "weight %d", i);
    cr_assert(gb[0] != 0 && gb[CLASSES - 1] != 0);
    EXPECT_OK(lks_trainer_predict_floats(t, image, N, prob));
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_get_value(t, n.conv, conv, N * 192), "forward first");
    lks_trainer_destroy(&t);
    lks_trainer_destroy(&bare);
    lks_graph_destroy(&n.g);
    lks_device_close(&device);
    lks_dataset_destroy(&data);
}

Test(values, of_a_step_on_ref)
{
    values_on("ref");
}

Test(values, of_a_step_on_the_cpu)
{
    values_on("cpu");
}

Test(values, that_are_none_are_refused)
{
    lks_device *ref = open_or_skip("ref");
    struct net n = make_net();
    struct lks_trainer_params p = small_params(ref);
    const lks_value wrong[] = {n.conv, 9999};
    lks_trainer *t = NULL;
    p.keep = wrong;
    p.n_keep = 2;
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_create(&t, n.g, &p), "keep[1]", "9999");
    p.keep = NULL;
    EXPECT_FAIL(LKS_E_ARGUMENT, lks_trainer_create(&t, n.g, &p), "keep is NULL");
    cr_assert_null(t);
    lks_graph_destroy(&n.g);
    lks_device_close(&ref);
}

/* ---- the caller's own context and queue ---- */

static void digest_on(lks_device *device, const lks_dataset *data, char *hex)
{
    struct lks_trainer_params p = small_params(device);
    lks_graph *g = make_graph();
    lks_trainer *t;
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
    EXPECT_OK(lks_trainer_weights_sha256(t, hex));
    lks_trainer_destroy(&t);
    lks_graph_destroy(&g);
}

static cl_device_id find_cpu(void)
{
    cl_platform_id platform[16];
    cl_uint n = 0, found = 0;
    cl_device_id id = NULL;
    if (clGetPlatformIDs(16, platform, &n) != CL_SUCCESS)
        return NULL;
    for (cl_uint i = 0; i < n && i < 16 && found == 0; i++)
        if (clGetDeviceIDs(platform[i], CL_DEVICE_TYPE_CPU, 1, &id, &found) != CL_SUCCESS)
            found = 0;
    return found > 0 ? id : NULL;
}

Test(context, of_the_caller_gives_the_same_digest_and_outlives_the_device)
{
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref"), *own, *by_queue;
    cl_device_id id = find_cpu();
    char want[65], got[65];
    cl_uint references = 0;
    cl_int e, value = 5, back = 0;
    if (id == NULL)
        cr_skip_test("no OpenCL CPU device: install pocl-opencl-icd");
    cl_context context = clCreateContext(NULL, 1, &id, NULL, NULL, &e);
    cr_assert_eq(e, CL_SUCCESS);
    cl_command_queue queue = clCreateCommandQueue(context, id, 0, &e);
    cr_assert_eq(e, CL_SUCCESS);
    digest_on(ref, data, want);
    EXPECT_OK(lks_device_open(
        &own, lks_device_params(.cl_context = context, .cl_queue = queue, .cache_dir = "")));
    cr_assert_eq(lks_device_get_info(own)->type, LKS_DEVICE_CPU);
    digest_on(own, data, got);
    cr_assert_str_eq(got, want);
    lks_device_close(&own);
    EXPECT_OK(lks_device_open(&by_queue, lks_device_params(.cl_queue = queue, .cache_dir = "")));
    digest_on(by_queue, data, got);
    cr_assert_str_eq(got, want);
    lks_device_close(&by_queue);
    /* Both are still the caller's, and usable. */
    cl_mem mem = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof value, NULL, &e);
    cr_assert_eq(e, CL_SUCCESS);
    cr_assert_eq(clEnqueueWriteBuffer(queue, mem, CL_TRUE, 0, sizeof value, &value, 0, NULL, NULL),
                 CL_SUCCESS);
    cr_assert_eq(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, sizeof back, &back, 0, NULL, NULL),
                 CL_SUCCESS);
    cr_assert_eq(back, value);
    clReleaseMemObject(mem);
    /* PoCL lets go of a finished command's queue a little later. */
    for (int i = 0; references != 1 && i < 500; i++) {
        if (i > 0)
            usleep(10000);
        clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof references, &references,
                              NULL);
    }
    cr_assert_eq(references, 1, "%u references to the queue are left", references);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}

/* ---- defaults ---- */

Test(defaults, written_out_are_the_zeros)
{
    lks_dataset *data = make_data();
    lks_device *ref = open_or_skip("ref");
    struct lks_trainer_params p = lks_trainer_params_default(), q = {.device = ref};
    struct lks_conv2d_params conv = lks_conv2d_params_default();
    struct lks_graph_params gp = lks_graph_params_default();
    struct lks_fit_params fit = lks_fit_params_default();
    const int64_t dims[] = {SIDE, SIDE, 1};
    char a[65], b[65];
    lks_graph *g, *h;
    lks_trainer *t;
    lks_value x;
    EXPECT_OK(lks_graph_create(&g, &gp));
    EXPECT_OK(lks_graph_input(g, "image", 3, dims, &x));
    conv.out = 3;
    conv.kernel = 3;
    EXPECT_OK(lks_graph_conv2d(g, x, &conv, &x));
    EXPECT_OK(lks_graph_dense(g, x, lks_dense_params(.out = CLASSES), &x));
    EXPECT_OK(lks_graph_softmax_cross_entropy(g, x));
    EXPECT_OK(lks_graph_create(&h, NULL));
    EXPECT_OK(lks_graph_input(h, "image", 3, dims, &x));
    EXPECT_OK(lks_graph_conv2d(h, x, lks_conv2d_params(.out = 3, .kernel = 3), &x));
    EXPECT_OK(lks_graph_dense(h, x, lks_dense_params(.out = CLASSES), &x));
    EXPECT_OK(lks_graph_softmax_cross_entropy(h, x));
    p.device = ref;
    p.sgd.lr = q.sgd.lr = 0.1;
    fit.train = data;
    EXPECT_OK(lks_trainer_create(&t, g, &p));
    EXPECT_OK(lks_trainer_fit(t, &fit));
    EXPECT_OK(lks_trainer_weights_sha256(t, a));
    lks_trainer_destroy(&t);
    EXPECT_OK(lks_trainer_create(&t, h, &q));
    EXPECT_OK(lks_trainer_fit(t, lks_fit_params(.train = data)));
    EXPECT_OK(lks_trainer_weights_sha256(t, b));
    lks_trainer_destroy(&t);
    cr_assert_str_eq(a, b);
    lks_graph_destroy(&g);
    lks_graph_destroy(&h);
    lks_device_close(&ref);
    lks_dataset_destroy(&data);
}
