/*
 * clblast.c - what CLBlast's SGEMM reaches on a device with its own parameters and with others,
 * drawn at random among those that its tuner calls legal and set by CLBlastOverrideParameters.
 *
 *     clblast DEVICE SETS SEED M,N,K...
 *
 * For each shape (a dense layer of M samples, N outputs, K inputs): GFLOP/s by its own parameters,
 * and the best of the sets; how many sets were refused, and how many gave other elements than the
 * chain over k (a sample of them is compared), which are not timed. Each time is the shortest of
 * seven. CLBlast compiles for each set: seconds on most devices.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <clblast_c.h>

#include "contract/philox.h"
#include "rt/rt_cl.h"

enum { ROUNDS = 7, LOOKS = 64, PARAMETERS = 16 };

/* Xgemm's parameters, in alphabetical order as its own database has them. */
static const char *const names[PARAMETERS] = {"GEMMK", "KREG", "KWG",  "KWI", "MDIMA", "MDIMC",
                                              "MWG",   "NDIMB", "NDIMC", "NWG", "SA",    "SB",
                                              "STRM",  "STRN", "VWM",  "VWN"};
struct set {
    size_t v[PARAMETERS];
};
enum { GEMMK, KREG, KWG, KWI, MDIMA, MDIMC, MWG, NDIMB, NDIMC, NWG, SA, SB, STRM, STRN, VWM, VWN };

static uint64_t drawn, seed;

static size_t one_of(const size_t *list, size_t n)
{
    return list[lks_random_word(seed, 0u, 0u, drawn++) % n];
}
#define ONE_OF(...)                                                                                \
    one_of((const size_t[]){__VA_ARGS__}, LKSI_COUNT(((const size_t[]){__VA_ARGS__})))

/* The conditions of CLBlast's tuner for its first kernel (GEMMK 0). */
static bool legal(const size_t *v, const struct lksi_limits *dev)
{
    size_t group = v[MDIMC] * v[NDIMC];
    size_t local = v[KWG] * (v[SA] * v[MWG] + v[SB] * v[NWG]) * sizeof(float);
    return v[KWG] % v[KWI] == 0 && v[MWG] % (v[MDIMC] * v[VWM]) == 0 &&
           v[NWG] % (v[NDIMC] * v[VWN]) == 0 && v[MWG] % (v[MDIMA] * v[VWM]) == 0 &&
           v[NWG] % (v[NDIMB] * v[VWN]) == 0 && group % v[MDIMA] == 0 && group % v[NDIMB] == 0 &&
           v[KWG] % (group / v[MDIMA]) == 0 && v[KWG] % (group / v[NDIMB]) == 0 &&
           group <= dev->max_group && local <= dev->local_memory &&
           v[MWG] * v[NWG] / group <= 256; /* sums a work-item */
}

/* On CPU devices from where good ones are: small work-groups, wide vectors, no local memory. */
static struct set draw(const struct lksi_limits *dev)
{
    const bool cpu = dev->type == LKSI_DEV_CPU;
    struct set s;
    size_t *v = s.v;
    do {
        v[GEMMK] = 0;
        v[KREG] = 1;
        v[KWG] = ONE_OF(16, 32);
        v[KWI] = ONE_OF(2, 8);
        v[MDIMA] = cpu ? ONE_OF(1, 2, 4) : ONE_OF(4, 8, 16, 32);
        v[MDIMC] = cpu ? ONE_OF(1, 2, 4) : ONE_OF(4, 8, 16, 32);
        v[MWG] = ONE_OF(16, 32, 64, 128);
        v[NDIMB] = cpu ? ONE_OF(1, 2, 4) : ONE_OF(4, 8, 16, 32);
        v[NDIMC] = cpu ? ONE_OF(1, 2, 4) : ONE_OF(4, 8, 16, 32);
        v[NWG] = ONE_OF(16, 32, 64, 128);
        v[SA] = cpu ? 0 : ONE_OF(0, 1);
        v[SB] = cpu ? 0 : ONE_OF(0, 1);
        v[STRM] = ONE_OF(0, 1);
        v[STRN] = ONE_OF(0, 1);
        v[VWM] = cpu ? ONE_OF(4, 8, 16) : ONE_OF(1, 2, 4, 8);
        v[VWN] = cpu ? ONE_OF(4, 8, 16) : ONE_OF(1, 2, 4, 8);
    } while (!legal(v, dev));
    return s;
}

struct job {
    struct lksi_dev *dev;
    size_t m, n, k;
    float *a, *b, *c;
    struct lksi_buf *buf[3];
};

static void check(lks_status st)
{
    if (st == LKS_OK)
        return;
    fprintf(stderr, "%s\n", lks_error_message());
    exit(1);
}

static void open_job(struct job *j)
{
    const size_t count[] = {j->m * j->k, j->n * j->k, j->m * j->n};
    float **x[] = {&j->a, &j->b, &j->c};
    for (int i = 0; i < 3; i++) {
        *x[i] = calloc(count[i], sizeof(float));
        if (*x[i] == NULL)
            exit(1);
        for (size_t e = 0; i < 2 && e < count[i]; e++)
            (*x[i])[e] = 2.0f * lks_uniform(lks_random_word(7u, (U32)i, 0u, e)) - 1.0f;
        check(lksi_buf_create(&j->buf[i], j->dev, count[i] * sizeof(float)));
        check(lksi_buf_write(j->buf[i], 0, *x[i], count[i] * sizeof(float), true));
    }
}

static void close_job(struct job *j)
{
    for (int i = 0; i < 3; i++)
        lksi_buf_destroy(&j->buf[i]);
    free(j->a);
    free(j->b);
    free(j->c);
}

/* One product on a C of zeros; false if CLBlast refuses. */
static bool multiply(struct job *j)
{
    return CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeYes, j->m, j->n,
                        j->k, 1.0f, j->buf[0]->mem, 0, j->k, j->buf[1]->mem, 0, j->k, 1.0f,
                        j->buf[2]->mem, 0, j->n, &j->dev->queue, NULL) == CLBlastSuccess &&
           lksi_dev_wait(j->dev, 0) == LKS_OK;
}

static bool is_right(struct job *j)
{
    size_t count = j->m * j->n;
    memset(j->c, 0, count * sizeof(float));
    check(lksi_buf_write(j->buf[2], 0, j->c, count * sizeof(float), true));
    if (!multiply(j))
        return false;
    check(lksi_buf_read(j->buf[2], 0, j->c, count * sizeof(float)));
    for (U64 i = 0; i < LOOKS; i++) {
        size_t e = lks_random_word(9u, 0u, 0u, i) % count, row = e / j->n, column = e % j->n;
        float acc = 0.0f;
        for (size_t k = 0; k < j->k; k++)
            acc = fmaf(j->a[row * j->k + k], j->b[column * j->k + k], acc);
        if (memcmp(&(float){acc + 0.0f}, &j->c[e], sizeof acc) != 0)
            return false;
    }
    return true;
}

/* GFLOP/s of the fastest of a few; 0: refused. */
static double speed(struct job *j)
{
    double least = INFINITY;
    for (int r = 0; r < ROUNDS; r++) {
        double from = lksi_seconds();
        if (!multiply(j))
            return 0;
        double took = lksi_seconds() - from;
        least = took < least ? took : least;
    }
    return 2e-9 * (double)j->m * (double)j->n * (double)j->k / least;
}

static bool set_parameters(struct lksi_dev *dev, const char *kernel, size_t n,
                           const char *const *name, const size_t *value)
{
    const char *copy[PARAMETERS];
    memcpy(copy, name, n * sizeof *copy);
    return CLBlastOverrideParameters(dev->id, kernel, CLBlastPrecisionSingle, n, copy, value) ==
           CLBlastSuccess;
}

static void run_shape(struct job *j, size_t sets)
{
    size_t refused = 0, wrong = 0;
    struct set best = {{0}};
    double most = 0, own;
    open_job(j);
    own = is_right(j) ? speed(j) : 0;
    printf("%zu,%zu,%zu: %.1f GFLOP/s as CLBlast is%s\n", j->m, j->n, j->k, own,
           own == 0 ? " (wrong or refused)" : "");
    /* The kernel that the parameters are of, for small products too. */
    set_parameters(j->dev, "GemmRoutine", 1, &(const char *){"XGEMM_MIN_INDIRECT_SIZE"},
                   &(size_t){1});
    for (size_t i = 0; i < sets; i++) {
        struct set s = draw(lksi_dev_limits(j->dev));
        if (!set_parameters(j->dev, "Xgemm", PARAMETERS, names, s.v) || !multiply(j)) {
            refused++;
            continue;
        }
        if (!is_right(j)) {
            wrong++;
            continue;
        }
        double got = speed(j);
        if (got > most) {
            most = got;
            best = s;
        }
    }
    printf("  best of %zu sets: %.1f GFLOP/s (%zu refused, %zu with other elements)\n ", sets, most,
           refused, wrong);
    for (int p = 0; p < PARAMETERS; p++)
        printf(" %s=%zu", names[p], best.v[p]);
    printf("\n");
    fflush(stdout);
    close_job(j);
}

int main(int argc, char **argv)
{
    struct lksi_dev_params params = {.select = argc > 1 ? argv[1] : NULL};
    struct lksi_dev *dev = NULL;
    if (argc < 5) {
        fprintf(stderr, "usage: clblast DEVICE SETS SEED M,N,K...\n");
        return 2;
    }
    check(lksi_dev_open(&dev, &params));
    seed = strtoull(argv[3], NULL, 10);
    printf("%s, driver %s\n", lksi_dev_limits(dev)->name, lksi_dev_limits(dev)->driver);
    for (int i = 4; i < argc; i++) {
        struct job j = {.dev = dev};
        if (sscanf(argv[i], "%zu,%zu,%zu", &j.m, &j.n, &j.k) != 3)
            return 2;
        run_shape(&j, strtoull(argv[2], NULL, 10));
    }
    lksi_dev_close(&dev);
    return 0;
}
