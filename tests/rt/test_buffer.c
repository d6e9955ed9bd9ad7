/*
 * Buffers, parts, limits; uploads on the second queue against compute; marks.
 */
#include "rt_help.h"

static void check_buffer(struct lksi_dev *dev)
{
    const uint64_t align = lksi_dev_limits(dev)->base_align;
    struct lksi_buf *whole = NULL, *part = NULL, *bad = NULL;
    unsigned char data[4096], got[4096];
    for (int i = 0; i < 4096; i++)
        data[i] = (unsigned char)(i * 7 + 1);
    EXPECT_OK(lksi_buf_create(&whole, dev, 4093)); /* no multiple of four */
    cr_expect(lksi_buf_bytes(whole) == 4093);
    cr_expect((lksi_buf_host(whole) != NULL) == lksi_dev_is_ref(dev));
    memset(got, 255, sizeof got);
    EXPECT_OK(lksi_buf_read(whole, 0, got, 4093));
    for (int i = 0; i < 4093; i++)
        cr_assert(got[i] == 0, "a new buffer is not zero at %d", i);
    EXPECT_OK(lksi_buf_part(&part, whole, align, 300));
    EXPECT_OK(lksi_buf_write(part, 3, data, 200, false));
    EXPECT_OK(lksi_buf_read(whole, 0, got, 4093));
    for (int i = 0; i < 4093; i++) {
        int k = i - (int)align - 3;
        cr_assert(got[i] == (k >= 0 && k < 200 ? data[k] : 0), "byte %d", i);
    }
    EXPECT_OK(lksi_buf_write(whole, align - 1, data, 400, true));
    EXPECT_OK(lksi_buf_zero(part));
    EXPECT_OK(lksi_buf_read(whole, 0, got, 4093));
    cr_expect(got[align - 1] == data[0] && got[align + 300] == data[301]);
    for (int i = 0; i < 300; i++)
        cr_assert(got[align + (uint64_t)i] == 0);
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_buf_part(&bad, whole, align + 1, 8), "multiples");
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_buf_part(&bad, whole, 2 * align, 4093), "4093");
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_buf_part(&bad, part, 0, 8), "part");
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_buf_write(part, 101, data, 200, true), "300 bytes");
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_buf_read(whole, UINT64_MAX, got, 2), "4093");
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_buf_upload(whole, 4093, data, 1, 0), "4093");
    cr_expect(bad == NULL);
    lksi_buf_destroy(&part);
    lksi_buf_destroy(&whole);
    cr_expect(part == NULL && whole == NULL);
    lksi_buf_destroy(&whole);
    EXPECT_OK(lksi_buf_create(&whole, dev, 0));
    lksi_buf_destroy(&whole);
}

static void check_limits(struct lksi_dev *dev)
{
    const struct lksi_limits *l = lksi_dev_limits(dev);
    struct lksi_buf *buf = NULL;
    EXPECT_FAIL(LKS_E_MEMORY, lksi_buf_create(&buf, dev, l->memory + 1), "does not fit", l->name);
    if (l->max_alloc < l->memory)
        EXPECT_FAIL(LKS_E_MEMORY, lksi_buf_create(&buf, dev, l->max_alloc + 1),
                    "largest single allocation", "CL_DEVICE_MAX_MEM_ALLOC_SIZE", l->name);
    cr_expect(buf == NULL);
}

static void check_marks(struct lksi_dev *dev)
{
    uint64_t mark, first = 0;
    EXPECT_OK(lksi_dev_mark(dev, &first));
    for (uint64_t i = 1; i < 100; i++) {
        EXPECT_OK(lksi_dev_mark(dev, &mark));
        cr_assert(mark == first + i, "marks grow by one");
    }
    EXPECT_OK(lksi_dev_flush(dev));
    EXPECT_OK(lksi_dev_wait(dev, first + 50));
    EXPECT_OK(lksi_dev_wait(dev, first));
    EXPECT_OK(lksi_dev_wait(dev, 0));
    EXPECT_OK(lksi_dev_wait(dev, mark));
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_dev_wait(dev, mark + 1), "never set");
}

Test(buffer, ref)
{
    struct lksi_dev *dev = NULL;
    const struct lksi_dev_params params = {.select = "ref"};
    EXPECT_OK(lksi_dev_open(&dev, &params));
    check_buffer(dev);
    check_limits(dev);
    check_marks(dev);
    lksi_dev_close(&dev);
}

Test(buffer, opencl)
{
    struct lksi_dev *dev = NULL;
    OPEN_CPU(dev);
    check_buffer(dev);
    check_limits(dev);
    check_marks(dev);
    lksi_dev_close(&dev);
}

/*
 * A pipeline with two input slots: while a slow kernel sums slot s, the other slot is uploaded.
 * Round r's slot is filled with r; every sum shows which round's data its kernel saw. Without the
 * order by events, a slow kernel would meet the data of a later round, or of an earlier one.
 */
enum { N = 4096, ROUNDS = 40 };

static const char sum_text[] =
    "__kernel void LKS_KERNEL(sum)(__global const uint *x, __global uint *out, uint r)\n"
    "{\n"
    "    uint s = 0u, i, k;\n"
    "    for (k = 0u; k < 200u; k += 1u)\n"
    "        for (i = 0u; i < 4096u; i += 1u)\n"
    "            s += x[(i * 17u + k) % 4096u];\n"
    "    out[r] = s;\n"
    "}\n";

Test(buffer, uploads_beside_compute_keep_their_order)
{
    struct lksi_dev *dev = NULL;
    struct lksi_program *program = NULL;
    struct lksi_kernel *kernel = NULL;
    struct lksi_buf *slot[2] = {NULL}, *out = NULL;
    static uint32_t data[ROUNDS][N];
    uint32_t got[ROUNDS];
    uint64_t used[2] = {0, 0};
    const size_t one = 1;
    OPEN_CPU(dev);
    EXPECT_OK(build_text(&program, dev, sum_text, ""));
    EXPECT_OK(lksi_kernel_create(&kernel, program, 0, "sum"));
    EXPECT_OK(lksi_buf_create(&out, dev, sizeof got));
    for (int s = 0; s < 2; s++)
        EXPECT_OK(lksi_buf_create(&slot[s], dev, sizeof data[0]));
    for (uint32_t r = 0; r < ROUNDS; r++) {
        for (int i = 0; i < N; i++)
            data[r][i] = r + 1;
        EXPECT_OK(lksi_buf_upload(slot[r % 2], 0, data[r], sizeof data[r] / 2, used[r % 2]));
        EXPECT_OK(lksi_buf_upload(slot[r % 2], sizeof data[r] / 2, data[r], sizeof data[r] / 2,
                                  used[r % 2]));
        EXPECT_OK(lksi_dev_use_uploads(dev));
        EXPECT_OK(lksi_kernel_set_buf(kernel, 0, slot[r % 2]));
        EXPECT_OK(lksi_kernel_set_buf(kernel, 1, out));
        EXPECT_OK(lksi_kernel_set_data(kernel, 2, &r, sizeof r));
        EXPECT_OK(lksi_kernel_launch(kernel, 1, &one, &one));
        EXPECT_OK(lksi_dev_mark(dev, &used[r % 2]));
    }
    EXPECT_OK(lksi_dev_use_uploads(dev)); /* nothing pending: no harm */
    EXPECT_OK(lksi_buf_read(out, 0, got, sizeof got));
    for (uint32_t r = 0; r < ROUNDS; r++)
        cr_expect(got[r] == 200u * N * (r + 1), "round %u summed %u, not %u", r, got[r],
                  200u * N * (r + 1));
    lksi_kernel_destroy(&kernel);
    lksi_program_destroy(&program);
    lksi_buf_destroy(&out);
    lksi_buf_destroy(&slot[0]);
    lksi_buf_destroy(&slot[1]);
    lksi_dev_close(&dev);
}

Test(buffer, an_upload_after_no_mark_does_not_wait_and_is_not_overtaken_by_the_zero_fill)
{
    struct lksi_dev *dev = NULL;
    uint32_t data = 42, got = 0;
    OPEN_CPU(dev);
    for (int i = 0; i < 20; i++) {
        struct lksi_buf *buf = NULL;
        EXPECT_OK(lksi_buf_create(&buf, dev, UINT64_C(4) << 20));
        EXPECT_OK(lksi_buf_upload(buf, UINT64_C(4194300), &data, 4, 0));
        EXPECT_OK(lksi_dev_use_uploads(dev));
        EXPECT_OK(lksi_buf_read(buf, UINT64_C(4194300), &got, 4));
        cr_assert(got == 42);
        lksi_buf_destroy(&buf);
    }
    lksi_dev_close(&dev);
}
