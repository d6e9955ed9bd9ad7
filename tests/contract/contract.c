/*
 * contract.c - the front end of src/check for the test run: TAP, one line a schedule of an
 * operator.
 *
 *     contract check DEVICE | accuracy | gradient   [--op X] [--schedule S] [--case I] [--regime R]
 *                                                   [--seed N] [--long] [--soft-divsqrt]
 *                                                   [--max-flops N] [--smallest N] [--share I/N]
 *
 * --share 0/4 takes every fourth operator, from the first on; --smallest 2 the two smallest cases
 * for each kernel. Device `cpu` skips where there is none. Program binaries are cached in a scratch
 * folder.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check/accuracy.h"
#include "check/check.h"

static int lines;
static bool soft_divsqrt; /* the contract's own division and square root, whatever the device has */

/* TAP comments: every line of `text` behind a '#'. */
static void comment(const char *text)
{
    while (*text != '\0') {
        int n = (int)strcspn(text, "\n");
        printf("# %.*s\n", n, text);
        text += n + (text[n] == '\n');
    }
}

static void on_row(void *user, const struct lksi_check_row *row)
{
    (void)user;
    printf("%sok %d - %s %s: %d of %d runs, %d cases, %d declined",
           row->verdict == LKSI_CHECK_FAILED ? "not " : "", ++lines, row->op->name, row->schedule,
           row->passed, row->runs, row->cases, row->declined);
    if (row->verdict == LKSI_CHECK_NOT_HERE)
        printf(" # SKIP %s", row->reason != NULL ? row->reason : "not asked for");
    printf("\n");
    if (row->verdict == LKSI_CHECK_FAILED) {
        struct lksi_str s = {0};
        lksi_check_failure_text(&row->failure, &s);
        comment(s.failed ? "(no memory for the text)" : s.text);
        free(s.text);
    }
    fflush(stdout);
}

static void on_accuracy(void *user, const struct lksi_accuracy_row *row)
{
    (void)user;
    printf("%sok %d - %s: %d cases, %llu values, worst %.3g of what is allowed",
           row->failed ? "not " : "", ++lines, row->op->name, row->cases,
           (unsigned long long)row->values, row->worst);
    if (row->skipped > 0)
        printf(", %llu on kinks", (unsigned long long)row->skipped);
    printf("\n");
    if (row->failed)
        comment(row->text);
    fflush(stdout);
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

static lks_status check(const char *device, const struct lksi_check_options *options,
                        size_t *failed)
{
    char folder[] = "/tmp/lockstep-contract-XXXXXX";
    struct lksi_dev_params params = {.select = device};
    struct lksi_dev *dev = NULL;
    lks_status st;
    if (mkdtemp(folder) == NULL)
        return lksi_fail(LKS_E_IO, "no scratch folder under /tmp");
    params.cache_dir = folder;
    params.soft_divsqrt = soft_divsqrt;
    st = lksi_dev_open(&dev, &params);
    if (st == LKS_OK) {
        printf("# device: %s, %s\n", lksi_dev_limits(dev)->name, lksi_dev_limits(dev)->version);
        st = lksi_check_run(dev, options, on_row, NULL, failed);
    } else if (st == LKS_E_DEVICE && strcmp(device, "cpu") == 0) {
        printf("ok %d - # SKIP %s\n", ++lines, lks_error_message());
        st = LKS_OK;
    }
    lksi_dev_close(&dev);
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return st;
}

/* Every n-th operator of the library from number `first` on, ended by NULL. */
static bool take_share(struct lksi_check_options *o, const char *text)
{
    unsigned first, n;
    size_t all = 0, count = 0;
    const struct lksi_op **ops;
    if (sscanf(text, "%u/%u", &first, &n) != 2 || first >= n)
        return false;
    while (lksi_op_at(all) != NULL)
        all++;
    ops = calloc(all + 1, sizeof *ops); /* lives as long as the program */
    if (ops == NULL)
        return false;
    for (size_t i = first; i < all; i += n)
        ops[count++] = lksi_op_at(i);
    o->ops = ops;
    return count > 0;
}

static bool parse(int argc, char **argv, struct lksi_check_options *o)
{
    for (int i = 0; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--long") == 0) {
            o->long_run = true;
            continue;
        }
        if (strcmp(argv[i], "--soft-divsqrt") == 0) {
            soft_divsqrt = true;
            continue;
        }
        if (value == NULL)
            return false;
        if (strcmp(argv[i], "--op") == 0)
            o->op = value;
        else if (strcmp(argv[i], "--schedule") == 0)
            o->schedule = value;
        else if (strcmp(argv[i], "--case") == 0)
            o->only_case = 1 + atoi(value);
        else if (strcmp(argv[i], "--max-flops") == 0)
            o->max_flops = atof(value);
        else if (strcmp(argv[i], "--smallest") == 0)
            o->smallest = atoi(value);
        else if (strcmp(argv[i], "--share") == 0) {
            if (!take_share(o, value))
                return false;
        } else if (strcmp(argv[i], "--regime") == 0)
            o->regime = value;
        else if (strcmp(argv[i], "--seed") == 0)
            o->seed = strtoull(value, NULL, 10);
        else
            return false;
        i++;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct lksi_check_options options = {.seed = 1};
    const char *suite = argc > 1 ? argv[1] : "";
    bool on_device = strcmp(suite, "check") == 0;
    int skip = on_device ? 3 : 2;
    size_t failed = 0;
    lks_status st = LKS_OK;
    struct timespec from, to;
    if (argc < skip || !parse(argc - skip, argv + skip, &options)) {
        fprintf(stderr, "usage: contract check DEVICE | accuracy | gradient [filters]\n");
        return 2;
    }
    clock_gettime(CLOCK_MONOTONIC, &from);
    if (on_device)
        st = check(argv[2], &options, &failed);
    else if (strcmp(suite, "accuracy") == 0)
        st = lksi_accuracy_run(&options, on_accuracy, NULL, &failed);
    else if (strcmp(suite, "gradient") == 0)
        st = lksi_gradient_run(&options, on_accuracy, NULL, &failed);
    else
        st = lksi_fail(LKS_E_ARGUMENT, "no suite `%s`", suite);
    if (st != LKS_OK) {
        printf("not ok %d - %s: %s\n", ++lines, suite, lks_status_name(st));
        comment(lks_error_message());
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("# %.1f s\n1..%d\n",
           (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9, lines);
    return failed > 0 || st != LKS_OK || lines == 0;
}
