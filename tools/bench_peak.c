/*
 * bench_peak.c - the two roofs of a device: fma in registers, and copying. cl/op/peak.cl on OpenCL
 * devices, plain C on `ref`. Of several shapes of the kernel the fastest counts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "contract/philox.h"
#include "progress.h"

/* Many short tries: on a busy machine some of them are left alone. */
enum { TRIES = 60, COPY_TRIES = 20, TRY_MS = 2, COPY_MIB = 128, REF_LANES = 96 };

/* Kernel shapes: a CPU device wants wide vectors, a GPU many items. */
static const struct shape {
    bool gpu;
    unsigned vec, chains;
} shapes[] = {{false, 16, 5}, {false, 16, 10}, {false, 16, 24},
              {true, 1, 8},   {true, 2, 8},    {true, 4, 4}};

static bool is_gpu(const struct bench *b)
{
    return lksi_dev_limits(b->dev)->type == LKSI_DEV_GPU;
}

/* ---- fma ---- */

struct fma_run {
    struct lksi_kernel *kernel;
    size_t global, local;
    double flops_a_round;
};

static lks_status launch(const struct fma_run *r, uint32_t rounds, double *ms)
{
    uint64_t ns;
    lks_status st = LKS_OK;
    LKSI_TRY(lksi_kernel_set_data(r->kernel, 3, &rounds, sizeof rounds));
    LKSI_TRY(lksi_kernel_launch(r->kernel, 1, &r->global, &r->local));
    LKSI_TRY(lksi_kernel_time(r->kernel, &ns));
    *ms = (double)ns * 1e-6;
fail:
    return st;
}

/* Enough rounds that starting does not show, then the best of some tries. */
static lks_status best_gflops(const struct fma_run *r, double *best)
{
    uint32_t rounds = 64;
    double ms, gflops;
    lks_status st = launch(r, rounds, &ms); /* compiles */
    for (ms = 0; st == LKS_OK && ms < TRY_MS && rounds < 1u << 24; rounds *= 2)
        st = launch(r, 2 * rounds, &ms);
    for (int i = 0; i < TRIES && st == LKS_OK; i++) {
        st = launch(r, rounds, &ms);
        gflops = st == LKS_OK && ms > 0 ? r->flops_a_round * rounds / ms * 1e-6 : 0;
        if (gflops > *best)
            *best = gflops;
    }
    return st;
}

static lks_status fma_peak(struct bench *b, struct lksi_program *program, size_t unit,
                           const struct shape *shape)
{
    static const float a = 0.9990234375f, c = 0.0009765625f;
    const struct lksi_limits *l = lksi_dev_limits(b->dev);
    struct fma_run r = {.local = is_gpu(b) ? 128 : 1};
    struct lksi_buf *out = NULL;
    lks_status st = LKS_OK;
    r.global = (size_t)l->compute_units * (is_gpu(b) ? 4096 : 16);
    r.flops_a_round = 2.0 * 8.0 * shape->chains * shape->vec * (double)r.global;
    LKSI_TRY(lksi_buf_create(&out, b->dev, 4u * (uint64_t)shape->vec * r.global));
    LKSI_TRY(lksi_kernel_create(&r.kernel, program, unit, "peak_fma"));
    LKSI_TRY(lksi_kernel_set_buf(r.kernel, 0, out));
    LKSI_TRY(lksi_kernel_set_data(r.kernel, 1, &a, sizeof a));
    LKSI_TRY(lksi_kernel_set_data(r.kernel, 2, &c, sizeof c));
    LKSI_TRY(best_gflops(&r, &b->peak_gflops));
fail:
    lksi_kernel_destroy(&r.kernel);
    lksi_buf_destroy(&out);
    return st;
}

/* ---- copying ---- */

static uint64_t copy_bytes(const struct bench *b)
{
    const struct lksi_limits *l = lksi_dev_limits(b->dev);
    uint64_t bytes = (uint64_t)COPY_MIB << 20;
    while (bytes > (1u << 20) && (bytes > l->max_alloc || bytes > l->memory / 8))
        bytes /= 2;
    return bytes;
}

static lks_status fill(struct lksi_buf *buf, uint64_t bytes)
{
    const uint64_t piece = 1u << 20;
    uint32_t *data = lksi_alloc(piece, 1);
    lks_status st = data != NULL ? LKS_OK : LKS_E_MEMORY;
    for (U32 i = 0; st == LKS_OK && i < piece / 4; i++) {
        struct lks_words w = lks_philox(i, 0u, 0u, 0u, 1u, 0u);
        data[i] = 0x3f000000u | (w.w0 & 0x7fffffu); /* [0.5, 1) */
    }
    for (uint64_t at = 0; st == LKS_OK && at < bytes; at += piece)
        st = lksi_buf_write(buf, at, data, piece, true);
    free(data);
    return st;
}

static lks_status copy_peak(struct bench *b, struct lksi_program *program, size_t unit,
                            unsigned vec)
{
    uint64_t bytes = copy_bytes(b), n = bytes / 4, ns;
    uint32_t chunk = is_gpu(b) ? vec : 16384;
    size_t local = is_gpu(b) ? 128 : 1, global = (size_t)((n + chunk - 1) / chunk);
    struct lksi_buf *in = NULL, *out = NULL;
    struct lksi_kernel *k = NULL;
    lks_status st = LKS_OK;
    LKSI_TRY(lksi_buf_create(&in, b->dev, bytes));
    LKSI_TRY(lksi_buf_create(&out, b->dev, bytes));
    LKSI_TRY(fill(in, bytes));
    LKSI_TRY(lksi_kernel_create(&k, program, unit, "peak_copy"));
    LKSI_TRY(lksi_kernel_set_buf(k, 0, in));
    LKSI_TRY(lksi_kernel_set_buf(k, 1, out));
    LKSI_TRY(lksi_kernel_set_data(k, 2, &n, sizeof n));
    LKSI_TRY(lksi_kernel_set_data(k, 3, &chunk, sizeof chunk));
    for (int i = 0; i <= COPY_TRIES; i++) { /* the first one compiles */
        LKSI_TRY(lksi_kernel_launch(k, 1, &global, &local));
        LKSI_TRY(lksi_kernel_time(k, &ns));
        if (i > 0 && ns > 0 && 2.0 * (double)bytes / (double)ns > b->peak_gbs)
            b->peak_gbs = 2.0 * (double)bytes / (double)ns;
    }
fail:
    lksi_kernel_destroy(&k);
    lksi_buf_destroy(&in);
    lksi_buf_destroy(&out);
    return st;
}

static lks_status device_peak(struct bench *b)
{
    const struct lksi_build_progress quiet = {NULL, NULL};
    struct lksi_unit units[LKSI_COUNT(shapes) + 1];
    const struct shape *used[LKSI_COUNT(shapes)];
    char defines[LKSI_COUNT(shapes)][32];
    struct lksi_program *program = NULL;
    size_t n = 0;
    lks_status st = LKS_OK;
    for (size_t i = 0; i < LKSI_COUNT(shapes); i++) {
        if (shapes[i].gpu != is_gpu(b))
            continue;
        snprintf(defines[n], sizeof defines[n], "VEC=%u CHAINS=%u", shapes[i].vec,
                 shapes[i].chains);
        units[n] = (struct lksi_unit){.source = "op/peak.cl", .defines = defines[n], .options = ""};
        used[n++] = &shapes[i];
    }
    units[n] = (struct lksi_unit){
        .source = "op/peak.cl", .defines = is_gpu(b) ? "VEC=4" : "VEC=16", .options = ""};
    LKSI_TRY(lksi_program_build(&program, b->dev, units, n + 1, quiet));
    for (size_t i = 0; i < n; i++)
        LKSI_TRY(fma_peak(b, program, i, used[i]));
    LKSI_TRY(copy_peak(b, program, n, is_gpu(b) ? 4 : 16));
fail:
    lksi_program_destroy(&program);
    return st;
}

/* ---- ref ---- */

struct ref_copy {
    char *to;
    const char *from;
    size_t piece;
};

LKSI_CLONES static void ref_chains(float *out, float a, float c, uint32_t rounds)
{
    float acc[REF_LANES];
    for (int i = 0; i < REF_LANES; i++)
        acc[i] = (float)i;
    for (uint32_t r = 0; r < rounds; r++)
        for (int i = 0; i < REF_LANES; i++)
            acc[i] = lks_fma(acc[i], a, c);
    memcpy(out, acc, sizeof acc);
}

enum { REF_ROUNDS = 20000 };

static void ref_fma_part(void *ctx, uint64_t i)
{
    float *out = ctx;
    ref_chains(out + i * REF_LANES, 0.9990234375f, 0.0009765625f, REF_ROUNDS);
}

static void ref_copy_part(void *ctx, uint64_t i)
{
    const struct ref_copy *c = ctx;
    memcpy(c->to + i * c->piece, c->from + i * c->piece, c->piece);
}

static lks_status ref_peak(struct bench *b)
{
    const uint64_t parts = 4u * (uint64_t)lksi_ref_threads(b->dev);
    struct ref_copy c = {.piece = (size_t)(((uint64_t)COPY_MIB << 20) / parts)};
    float *out = lksi_alloc((size_t)parts * REF_LANES, sizeof *out);
    char *from = lksi_alloc((size_t)parts, c.piece);
    c.to = lksi_alloc((size_t)parts, c.piece);
    c.from = from;
    lks_status st = out != NULL && from != NULL && c.to != NULL ? LKS_OK : LKS_E_MEMORY;
    if (st == LKS_OK)
        memset(from, 0x3f, (size_t)parts * c.piece);
    for (int i = 0; i <= COPY_TRIES && st == LKS_OK; i++) {
        double t0 = seconds_now(), t1, t2;
        lksi_ref_parallel(b->dev, parts, ref_fma_part, out);
        t1 = seconds_now();
        lksi_ref_parallel(b->dev, parts, ref_copy_part, &c);
        t2 = seconds_now();
        double gflops = 2.0 * REF_LANES * REF_ROUNDS * (double)parts / (t1 - t0) * 1e-9;
        double gbs = 2.0 * (double)parts * (double)c.piece / (t2 - t1) * 1e-9;
        if (i > 0 && gflops > b->peak_gflops)
            b->peak_gflops = gflops;
        if (i > 0 && gbs > b->peak_gbs)
            b->peak_gbs = gbs;
    }
    free(out);
    free(from);
    free(c.to);
    return st;
}

lks_status bench_peak(struct bench *b)
{
    lks_status st = lksi_dev_is_ref(b->dev) ? ref_peak(b) : device_peak(b);
    return st == LKS_OK ? st : lksi_fail_prefix(st, "measuring the peaks: ");
}
