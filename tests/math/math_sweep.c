/*
 * math_sweep.c - the program math-sweep: the elementary functions over all 2^32 inputs, or a
 * stride of them, in C or on an OpenCL device.
 *
 * For each function it prints the SHA-256 of all results (little-endian patterns, in the order of
 * the inputs' patterns, every NaN as 0x7fc00000) and the largest error against double with the
 * input where it occurs. The hash must be the same on every device; tests/golden/math-sweep.txt
 * holds it for --all, math-stride.txt for --stride 3989.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "device.h"
#include "functions.h"
#include "table.h"

#ifndef MATH_CL_DIR
#define MATH_CL_DIR "cl"
#endif
#ifndef MATH_SRC_DIR
#define MATH_SRC_DIR "tests/math"
#endif

enum { CHUNK = 1 << 22, MAX_THREADS = 256 };

static struct {
    const char *only, *device, *golden, *cl_dir, *src_dir;
    bool all, use_device, soft, no_error;
    uint32_t stride;
    unsigned long long divisions;
    int threads;
} opt = {.stride = 9973, .threads = 1, .cl_dir = MATH_CL_DIR, .src_dir = MATH_SRC_DIR};

static struct math_device *device;

/* One thread's share of a chunk. */
struct share {
    pthread_t thread;
    int index;
    uint32_t first, n, *out;
    struct math_worst worst;
    unsigned long long bad;
};

static void *run_share(void *arg)
{
    struct share *s = arg;
    const struct math_reference *ref = &math_references[s->index];
    if (device == NULL)
        math_table(opt.soft)[s->index].run(s->first, opt.stride, s->n, s->out);
    s->worst = (struct math_worst){0, s->first};
    if (ref->exact != NULL && !opt.no_error)
        s->worst = math_worst_of(ref, s->first, opt.stride, s->n, s->out);
    return NULL;
}

static bool run_shares(struct share *shares, void *(*work)(void *))
{
    int started = 0;
    for (; started < opt.threads; started++)
        if (pthread_create(&shares[started].thread, NULL, work, &shares[started]) != 0)
            break;
    for (int t = 0; t < started; t++)
        pthread_join(shares[t].thread, NULL);
    if (started < opt.threads)
        fprintf(stderr, "math-sweep: cannot start a thread\n");
    return started == opt.threads;
}

/* Values, errors and hash of function `index` over all inputs of the stride. */
static bool sweep(int index, struct math_worst *worst, unsigned char digest[32])
{
    static struct share shares[MAX_THREADS];
    uint64_t total = (((uint64_t)1 << 32) + opt.stride - 1) / opt.stride;
    uint32_t *out = malloc(CHUNK * sizeof *out);
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    bool ok = out != NULL && md != NULL && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1;
    *worst = (struct math_worst){0, 0};
    for (uint64_t done = 0; ok && done < total; done += CHUNK) {
        uint32_t n = total - done < CHUNK ? (uint32_t)(total - done) : CHUNK;
        uint32_t first = (uint32_t)(done * opt.stride), begin = 0;
        if (device != NULL)
            ok = math_device_run(device, math_references[index].name, first, opt.stride, n, out);
        for (int t = 0; t < opt.threads; t++) {
            uint32_t end = (uint32_t)((uint64_t)n * (unsigned)(t + 1) / (unsigned)opt.threads);
            shares[t] = (struct share){.index = index,
                                       .first = first + begin * opt.stride,
                                       .n = end - begin,
                                       .out = out + begin};
            begin = end;
        }
        ok = ok && run_shares(shares, run_share);
        for (int t = 0; t < opt.threads; t++)
            if (shares[t].worst.ulp > worst->ulp)
                *worst = shares[t].worst;
        ok = ok && EVP_DigestUpdate(md, out, n * sizeof *out) == 1;
    }
    ok = ok && EVP_DigestFinal_ex(md, digest, NULL) == 1;
    EVP_MD_CTX_free(md);
    free(out);
    return ok;
}

/* The hash that the golden file gives for `name`; false if it gives none for this stride. */
static bool golden_hash(const char *name, char hex[65])
{
    char line[256], found[128];
    unsigned stride = 0;
    bool ok = false;
    FILE *f = fopen(opt.golden, "r");
    if (f == NULL)
        return false;
    while (!ok && fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "# stride %u", &stride) == 1)
            continue;
        ok = stride == opt.stride && sscanf(line, "%64[0-9a-f] %127s", hex, found) == 2 &&
             strcmp(found, name) == 0;
    }
    fclose(f);
    return ok;
}

/* Prints one function's line; false if a bound or the golden hash is missed. */
static bool report(int index, struct math_worst worst, const unsigned char digest[32])
{
    const struct math_reference *ref = &math_references[index];
    char hex[65], want[65];
    bool ok = true;
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    printf("%s  %s", hex, ref->name);
    if (ref->exact != NULL && !opt.no_error) {
        float x;
        memcpy(&x, &worst.input, sizeof x);
        /* the reference itself may be off by 2^-28 ulp */
        ok = worst.ulp <= ref->bound + 1e-8;
        printf("  max %.6f ulp at %a (0x%08x)%s", worst.ulp, x, worst.input,
               ok ? "" : "  ABOVE ITS BOUND");
    }
    if (opt.golden != NULL) {
        bool given = golden_hash(ref->name, want);
        bool same = given && strcmp(want, hex) == 0;
        printf("  %s", same ? "golden" : given ? "NOT THE GOLDEN HASH" : "NO GOLDEN HASH GIVEN");
        ok = ok && same;
    }
    printf("\n");
    fflush(stdout);
    return ok;
}

/* splitmix64: pairs of patterns for the division, the same on every machine. */
static uint64_t mix(uint64_t i)
{
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void *divide_share(void *arg)
{
    struct share *s = arg;
    uint64_t each = opt.divisions / (unsigned)opt.threads, begin = (uint64_t)s->index * each;
    for (uint64_t i = begin; i < begin + each; i++) {
        uint64_t z = mix(i);
        F32 a = lks_float((U32)z), b = lks_float((U32)(z >> 32));
        if (math_canonical(a / b) == math_canonical(lks_div_soft(a, b)))
            continue;
        if (s->bad++ == 0)
            printf("division: %a / %a is %a, the own sequence gives %a\n", a, b, a / b,
                   lks_div_soft(a, b));
    }
    return NULL;
}

static bool divide(void)
{
    static struct share shares[MAX_THREADS];
    unsigned long long bad = 0;
    for (int t = 0; t < opt.threads; t++)
        shares[t] = (struct share){.index = t};
    if (!run_shares(shares, divide_share))
        return false;
    for (int t = 0; t < opt.threads; t++)
        bad += shares[t].bad;
    printf("division: %llu pairs, %llu wrong\n",
           opt.divisions / (unsigned)opt.threads * (unsigned)opt.threads, bad);
    return bad == 0;
}

/* Division on the device against the native one here. */
static bool divide_on_device(void)
{
    enum { N = 1 << 20 };
    uint32_t *a = malloc(3 * (size_t)N * sizeof *a), *b = a + N, *out = b + N;
    unsigned long long bad = 0, done = 0;
    bool ok = a != NULL;
    for (; ok && done < opt.divisions; done += N) {
        for (uint32_t i = 0; i < N; i++) {
            uint64_t z = mix(done + i);
            a[i] = (uint32_t)z;
            b[i] = (uint32_t)(z >> 32);
        }
        ok = math_device_divide(device, a, b, N, out);
        for (uint32_t i = 0; ok && i < N; i++)
            bad += math_canonical(lks_float(a[i]) / lks_float(b[i])) != out[i];
    }
    free(a);
    printf("division on the device: %llu pairs, %llu wrong\n", done, bad);
    return ok && bad == 0;
}

static bool wanted(const char *name)
{
    size_t length = strlen(name);
    if (opt.only == NULL)
        return opt.divisions == 0;
    for (const char *p = opt.only; (p = strstr(p, name)) != NULL; p += length)
        if ((p == opt.only || p[-1] == ',') && (p[length] == ',' || p[length] == '\0'))
            return true;
    return false;
}

static bool known(const char *list)
{
    for (const char *p = list; *p != '\0'; p += strcspn(p, ","), p += *p == ',') {
        size_t length = strcspn(p, ",");
        bool found = false;
        for (int i = 0; i < MATH_COUNT; i++)
            found = found || (strlen(math_references[i].name) == length &&
                              strncmp(math_references[i].name, p, length) == 0);
        if (!found) {
            fprintf(stderr, "math-sweep: no function named %.*s\n", (int)length, p);
            return false;
        }
    }
    return true;
}

static const char usage[] =
    "usage: math-sweep [options]\n"
    "  --all             all 2^32 inputs (otherwise every 9973rd)\n"
    "  --stride N        every Nth input\n"
    "  --only A,B,...    only these functions\n"
    "  --device[=SEL]    on an OpenCL device: PLATFORM:DEVICE or part of a name; else in C\n"
    "  --soft            with the own division and square root\n"
    "  --threads N       threads on the host (1)\n"
    "  --no-error        hashes only\n"
    "  --golden FILE     compare the hashes with this file, which names its stride\n"
    "  --div N           compare N random divisions of the own sequence with the native ones\n"
    "  --kernels DIR     the folder cl (this build's own)\n"
    "  --tests DIR       the folder tests/math (this build's own)\n"
    "Exit status: 0 all well, 1 a bound or hash is missed, 2 wrong usage, 3 device trouble.\n";

static bool parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"all", no_argument, NULL, 'a'},         {"stride", required_argument, NULL, 's'},
        {"only", required_argument, NULL, 'o'},  {"device", optional_argument, NULL, 'd'},
        {"soft", no_argument, NULL, 'S'},        {"threads", required_argument, NULL, 't'},
        {"no-error", no_argument, NULL, 'n'},    {"golden", required_argument, NULL, 'g'},
        {"div", required_argument, NULL, 'D'},   {"kernels", required_argument, NULL, 'k'},
        {"tests", required_argument, NULL, 'T'}, {NULL, 0, NULL, 0},
    };
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'a':
            opt.all = true;
            break;
        case 's':
            opt.stride = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'o':
            opt.only = optarg;
            break;
        case 'd':
            opt.use_device = true, opt.device = optarg;
            break;
        case 'S':
            opt.soft = true;
            break;
        case 't':
            opt.threads = atoi(optarg);
            break;
        case 'n':
            opt.no_error = true;
            break;
        case 'g':
            opt.golden = optarg;
            break;
        case 'D':
            opt.divisions = strtoull(optarg, NULL, 0);
            break;
        case 'k':
            opt.cl_dir = optarg;
            break;
        case 'T':
            opt.src_dir = optarg;
            break;
        default:
            return false;
        }
    }
    if (opt.all)
        opt.stride = 1;
    return optind == argc && opt.stride > 0 && opt.threads > 0 && opt.threads <= MAX_THREADS &&
           (opt.only == NULL || known(opt.only));
}

int main(int argc, char **argv)
{
    bool ok = true;
    if (!parse(argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    if (opt.use_device) {
        char why[4096] = "";
        struct math_device_params params = {opt.device, opt.cl_dir, opt.src_dir, opt.soft};
        device = math_device_open(&params, why, sizeof why);
        if (device == NULL) {
            fprintf(stderr, "math-sweep: %s\n", why);
            return 3;
        }
        printf("# %s\n", math_device_name(device));
    } else {
        printf("# C, %s, %s division and square root\n",
               math_fast_runs() ? "x86-64-v3" : "baseline", opt.soft ? "own" : "native");
    }
    for (int i = 0; i < MATH_COUNT; i++) {
        struct math_worst worst;
        unsigned char digest[32];
        if (!wanted(math_references[i].name))
            continue;
        if (!sweep(i, &worst, digest)) {
            fprintf(stderr, "math-sweep: %s failed\n", math_references[i].name);
            return 3;
        }
        ok = report(i, worst, digest) && ok;
    }
    if (opt.divisions > 0)
        ok = (device != NULL ? divide_on_device() : divide()) && ok;
    math_device_close(device);
    return ok ? 0 : 1;
}
