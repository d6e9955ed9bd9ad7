/*
 * digest.c - trains a network whose weights become subnormal and prints the digest. Linked a second
 * time with -ffast-math, which lets a program begin with flush-to-zero; test_fast_math.py compares.
 *
 * Usage: digest DEVICE [started]   With `started` the program begins to use OpenCL itself first.
 * Output: "flush B -> E, N subnormal weights, DIGEST", B and E being 1 if subnormals are flushed
 * at the beginning and at the end; or "refused: TEXT" for LKS_E_NUMERICS. Status 77: no device.
 */
#include <CL/cl.h>

#include "net.h"

static int flushes(void)
{
    volatile float tiny = 0x1p-126f, half = 0.5f, r = tiny * half;
    volatile uint32_t bits;
    float value = r;
    uint32_t copy;
    memcpy(&copy, &value, sizeof copy);
    bits = copy;
    return bits == 0;
}

static void start_opencl(void)
{
    cl_platform_id platform[8];
    cl_device_id id;
    cl_uint n = 0;
    clGetPlatformIDs(8, platform, &n);
    for (cl_uint i = 0; i < n && i < 8; i++)
        if (clGetDeviceIDs(platform[i], CL_DEVICE_TYPE_ALL, 1, &id, NULL) == CL_SUCCESS) {
            cl_context context = clCreateContext(NULL, 1, &id, NULL, NULL, NULL);
            cl_command_queue queue = clCreateCommandQueue(context, id, 0, NULL);
            cl_mem mem = clCreateBuffer(context, CL_MEM_READ_WRITE, 4, NULL, NULL);
            int32_t zero = 0;
            clEnqueueWriteBuffer(queue, mem, CL_TRUE, 0, 4, &zero, 0, NULL, NULL);
            clReleaseMemObject(mem);
            clReleaseCommandQueue(queue);
            clReleaseContext(context);
        }
}

#define CONV1 (6 * 5 * 5)

/* First weights +0 and biases 1: the gradients of subnormal pixels are then the whole weight. */
static lks_status train(struct net *n, float *w)
{
    float bias[6] = {1, 1, 1, 1, 1, 1};
    memset(w, 0, CONV1 * sizeof *w);
    NET_TRY(lks_trainer_set(n->trainer, "conv1.weight", w, CONV1));
    NET_TRY(lks_trainer_set(n->trainer, "conv1.bias", bias, 6));
    for (size_t first = 0; first < 4; first++) {
        float x[8 * NET_SIDE * NET_SIDE];
        int32_t labels[8];
        struct lks_batch batch = {x, labels, 8};
        for (size_t i = 0; i < 8; i++) /* subnormal samples alone */
            net_fill(NULL, 2 * (8 * first + i) + 1, x + i * NET_SIDE * NET_SIDE, labels + i);
        NET_TRY(lks_trainer_step(n->trainer, &batch, NULL));
    }
    NET_TRY(lks_trainer_get(n->trainer, "conv1.weight", w, CONV1));
    return LKS_OK;
}

int main(int argc, char **argv)
{
    int before = flushes(), subnormal = 0;
    struct net n = {0}, plain = {0};
    float w[CONV1];
    char own[65], ready[65];
    lks_status st;
    if (argc > 2)
        start_opencl();
    st = net_open(&n, argc > 1 ? argv[1] : "ref", 5, 2);
    if (st == LKS_OK)
        st = train(&n, w);
    if (st == LKS_OK)
        st = lks_trainer_weights_sha256(n.trainer, own);
    if (st == LKS_OK)
        st = net_open(&plain, argc > 1 ? argv[1] : "ref", 5, 2);
    if (st == LKS_OK)
        st = lks_trainer_fit(plain.trainer, lks_fit_params(.train = plain.data));
    if (st == LKS_OK)
        st = lks_trainer_weights_sha256(plain.trainer, ready);
    if (st == LKS_E_NUMERICS)
        printf("refused: %s\n", lks_error_message());
    else if (st != LKS_OK)
        fprintf(stderr, "%s: %s\n", lks_status_name(st), lks_error_message());
    net_close(&plain);
    net_close(&n);
    if (st != LKS_OK)
        return st == LKS_E_NUMERICS ? 0 : st == LKS_E_DEVICE ? 77 : 1;
    for (int i = 0; i < CONV1; i++) {
        uint32_t bits;
        memcpy(&bits, &w[i], sizeof bits);
        subnormal += (bits & 0x7f800000u) == 0 && (bits & 0x7fffffu) != 0;
    }
    printf("flush %d -> %d, %d subnormal weights, %s %s\n", before, flushes(), subnormal, own,
           ready);
    return 0;
}
