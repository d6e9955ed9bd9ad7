/*
 * main.c - the ONNX project's own tests on this library.
 *
 * Usage: onnx-nodes [--device DEVICE]... [--list] [--verbose] [--spoil] [--only PREFIX] FOLDER...
 *
 * A FOLDER holds test_NAME/model.onnx and test_NAME/test_data_set_0. A case is out of scope for one
 * of the reasons of enum net_reason alone: its model has an operator that this project does not
 * have (no table and not in `owed`), or what a map says with net_beyond. Everything else that does
 * not give the expected outputs is a failure. Tolerances are ONNX's own: rtol 1e-3, atol 1e-7.
 * Cases out of scope are counted by reason; --list names them. Devices after the first must give
 * the bits of the first. The last line is "N of M in scope pass"; status 1 unless all do. --spoil
 * makes each expected output wrong by 0.2 percent in one element; status 1 unless all fail.
 */
#include <dirent.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

struct options {
    const char *device[MAX_DEVICES];
    int n_device;
    bool list, verbose, spoil;
    const char *only;
};

/* Reasons and how often. */
static struct {
    char why[320];
    int count;
} reason[512];
static size_t n_reason;

static void count_reason(const char *why)
{
    size_t i = 0;
    while (i < n_reason && strcmp(reason[i].why, why) != 0)
        i++;
    if (i == n_reason && i < LKSI_COUNT(reason))
        snprintf(reason[n_reason++].why, sizeof reason[0].why, "%s", why);
    if (i < n_reason)
        reason[i].count++;
}

static int by_count(const void *a, const void *b)
{
    const int x = *(const int *)((const char *)a + sizeof reason[0].why);
    const int y = *(const int *)((const char *)b + sizeof reason[0].why);
    return x != y ? y - x : strcmp(a, b);
}

static bool go_through(const char *folder, const struct options *opt, int *count)
{
    struct dirent **entry = NULL;
    int n = scandir(folder, &entry, NULL, alphasort);
    if (n < 0) {
        perror(folder);
        return false;
    }
    for (int i = 0; i < n; i++) {
        char path[600];
        struct test *t = calloc(1, sizeof *t);
        snprintf(path, sizeof path, "%.300s/%.255s", folder, entry[i]->d_name);
        const char *name = strncmp(entry[i]->d_name, "test_", 5) == 0 ? entry[i]->d_name + 5 : NULL;
        if (t != NULL && name != NULL &&
            (opt->only == NULL || strncmp(name, opt->only, strlen(opt->only)) == 0)) {
            enum outcome o = test_try(t, path, opt->n_device, opt->device, opt->spoil);
            count[o]++;
            if (o == OUT_OF_SCOPE)
                count_reason(t->why);
            if ((o == FAIL && !opt->spoil) || (opt->spoil && o == PASS) ||
                (o == OUT_OF_SCOPE && opt->list) || opt->verbose)
                printf("%-12s %s%s%s\n",
                       o == PASS   ? "pass"
                       : o == FAIL ? "FAIL"
                                   : "out of scope",
                       name, t->why[0] != '\0' ? ": " : "", t->why);
            test_free(t);
        }
        free(t);
        free(entry[i]);
    }
    free(entry);
    return true;
}

static int report(const int *count, bool spoil)
{
    qsort(reason, n_reason, sizeof reason[0], by_count);
    printf("out of scope, %d cases:\n", count[OUT_OF_SCOPE]);
    for (size_t i = 0; i < n_reason; i++)
        printf("  %4d  %s\n", reason[i].count, reason[i].why);
    printf("%d of %d in scope pass\n", count[PASS], count[PASS] + count[FAIL]);
    return count[spoil ? PASS : FAIL] == 0 && count[spoil ? FAIL : PASS] > 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"device", required_argument, NULL, 'd'}, {"list", no_argument, NULL, 'l'},
        {"verbose", no_argument, NULL, 'v'},      {"spoil", no_argument, NULL, 's'},
        {"only", required_argument, NULL, 'o'},   {0}};
    struct options opt = {0};
    int c, count[3] = {0};
    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (c == 'd' && opt.n_device < MAX_DEVICES)
            opt.device[opt.n_device++] = optarg;
        else if (c == 'l')
            opt.list = true;
        else if (c == 'v')
            opt.verbose = true;
        else if (c == 's')
            opt.spoil = true;
        else if (c == 'o')
            opt.only = optarg;
        else
            return 2;
    }
    if (optind >= argc) {
        fprintf(stderr, "usage: onnx-nodes [--device DEVICE]... [--list] [--verbose] [--spoil] "
                        "[--only PREFIX] FOLDER...\n");
        return 2;
    }
    if (opt.n_device == 0)
        opt.device[opt.n_device++] = "ref";
    for (int i = optind; i < argc; i++)
        if (!go_through(argv[i], &opt, count))
            return 2;
    return report(count, opt.spoil);
}
