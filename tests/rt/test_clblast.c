/*
 * CLBlast's SGEMM against the chain acc = fma(a, b, acc), k upward from +0, + 0.0f at the end.
 */
#include <math.h>

#include "rt_help.h"

struct shape {
    size_t m, n, k;
    bool ta, tb;
};

/* Wide exponents, so that another order of the chain would show. */
static void fill(float *x, size_t n, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t w = next_random(seed);
        x[i] = ldexpf((float)((int32_t)(w % 65536) - 32768) / 32768.0f, (int)(w >> 16) % 17 - 8);
    }
}

static void check_shape(struct lksi_dev *dev, const struct shape *s)
{
    size_t lda = s->ta ? s->m : s->k, ldb = s->tb ? s->k : s->n;
    float *a = calloc(s->m * s->k, 4), *b = calloc(s->k * s->n, 4), *c = calloc(s->m * s->n, 4);
    struct lksi_buf *buf[3] = {NULL};
    uint64_t seed = s->m * 1000003 + s->n * 1009 + s->k;
    bool order_shows = false;
    fill(a, s->m * s->k, &seed);
    fill(b, s->k * s->n, &seed);
    EXPECT_OK(lksi_buf_create(&buf[0], dev, s->m * s->k * 4));
    EXPECT_OK(lksi_buf_create(&buf[1], dev, s->k * s->n * 4));
    EXPECT_OK(lksi_buf_create(&buf[2], dev, s->m * s->n * 4)); /* zero: beta 1 adds +0 */
    EXPECT_OK(lksi_buf_write(buf[0], 0, a, s->m * s->k * 4, false));
    EXPECT_OK(lksi_buf_write(buf[1], 0, b, s->k * s->n * 4, false));
    EXPECT_OK(lksi_clblast_sgemm(dev, s->ta, s->tb, s->m, s->n, s->k, s->k, buf[0],
                                 lda, buf[1], ldb,
                                 buf[2], s->n));
    EXPECT_OK(lksi_buf_read(buf[2], 0, c, s->m * s->n * 4));
    for (size_t i = 0; i < s->m; i++) {
        for (size_t j = 0; j < s->n; j++) {
            float acc = 0.0f, back = 0.0f;
            for (size_t k = 0; k < s->k; k++) {
                size_t r = s->k - 1 - k;
                acc = fmaf(a[s->ta ? k * lda + i : i * lda + k],
                           b[s->tb ? j * ldb + k : k * ldb + j], acc);
                back = fmaf(a[s->ta ? r * lda + i : i * lda + r],
                            b[s->tb ? j * ldb + r : r * ldb + j], back);
            }
            acc += 0.0f;
            order_shows = order_shows || acc != back;
            cr_assert(memcmp(&acc, &c[i * s->n + j], 4) == 0, "%zux%zux%zu at %zu,%zu: %a, not %a",
                      s->m, s->n, s->k, i, j, (double)c[i * s->n + j], (double)acc);
        }
    }
    cr_expect(order_shows || s->k < 3, "these inputs would not show another order");
    for (int i = 0; i < 3; i++)
        lksi_buf_destroy(&buf[i]);
    free(a);
    free(b);
    free(c);
}

Test(clblast, equals_the_chain)
{
    static const struct shape shapes[] = {
        {64, 64, 64, false, false}, {33, 17, 129, false, false}, {1, 10, 512, false, true},
        {100, 7, 31, true, false},  {8, 130, 65, true, true},    {1, 1, 1, false, false},
    };
    struct lksi_dev *dev = NULL;
    OPEN_CPU(dev);
    for (size_t i = 0; i < LKSI_COUNT(shapes); i++)
        check_shape(dev, &shapes[i]);
    lksi_dev_close(&dev);
}

Test(clblast, declines)
{
    struct lksi_limits l = {.type = LKSI_DEV_GPU, .vendor_id = 0x10de};
    struct lksi_dev *dev = NULL;
    struct lksi_buf *b = NULL;
    unsetenv("CLBLAST_BUILD_OPTIONS");
    cr_expect(lksi_clblast_declines(&l) == NULL);
    l.vendor_id = 0x1002;
    cr_expect(strstr(lksi_clblast_declines(&l), "mad()") != NULL);
    l.type = LKSI_DEV_CPU;
    cr_expect(lksi_clblast_declines(&l) == NULL);
    setenv("CLBLAST_BUILD_OPTIONS", "-DX=1", 1);
    cr_expect(strstr(lksi_clblast_declines(&l), "space") != NULL);
    setenv("CLBLAST_BUILD_OPTIONS", "-cl-fast-relaxed-math ", 1);
    cr_expect(strstr(lksi_clblast_declines(&l), "relaxes") != NULL);
    OPEN_CPU(dev);
    EXPECT_OK(lksi_buf_create(&b, dev, 64));
    EXPECT_FAIL(LKS_E_NUMERICS, lksi_clblast_sgemm(dev, false, false, 1, 1, 1, 1, b, 1, b, 1, b, 1),
                "relaxes");
    unsetenv("CLBLAST_BUILD_OPTIONS");
    EXPECT_FAIL(LKS_E_ARGUMENT,
                lksi_clblast_sgemm(dev, false, false, UINT64_C(1) << 31, 1, 1, 1, b, 1, b, 1, b, 1),
                "2147483648");
    EXPECT_FAIL(LKS_E_DEVICE, lksi_clblast_sgemm(dev, false, false, 8, 8, 8, 8, b, 8, b, 8, b, 8),
                "CLBlast");
    lksi_buf_destroy(&b);
    lksi_dev_close(&dev);
}
