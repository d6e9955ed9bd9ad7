/*
 * hash.c - `lockstep hash`: the sha256 of a file of weights, as sha256sum prints it, and of each
 * tensor in it, so that a difference between two runs has a name.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli.h"
#include "model/safetensors.h"

static const struct option_spec specs[] = {OPTION_COMMON};

static int hash_file(const char *path)
{
    struct lksi_digest d;
    lks_status st = lksi_safetensors_digest(path, &d);
    if (st != LKS_OK)
        return fail_library(st);
    printf("%s  %s\n", d.file, path);
    for (size_t i = 0; i < d.content->count; i++) {
        const struct lksi_st_tensor *t = &d.content->tensors[i];
        printf("%s  %s  %s [", d.tensors[i], t->name, lksi_st_dtype_name(t->dtype));
        for (unsigned k = 0; k < t->dims; k++)
            printf("%s%" PRIu64, k == 0 ? "" : ",", t->dim[k]);
        printf("]\n");
    }
    if (!d.content->canonical)
        say_error("`%s` is not in the canonical form, so the digest of the same weights in another "
                  "file may differ; those of the tensors can be compared",
                  path);
    lksi_digest_free(&d);
    return EXIT_OK;
}

static int run(const struct command *self, int argc, char **argv)
{
    char **rest;
    int n_rest, status, none;
    if (!parse_options(self, argc, argv, &none, &rest, &n_rest, &status))
        return status;
    if (n_rest < 1)
        return fail_usage("hash takes one file of weights or more");
    status = EXIT_OK;
    for (int i = 0; status == EXIT_OK && i < n_rest; i++)
        status = hash_file(rest[i]);
    return status;
}

const struct command command_hash = {
    "hash",
    "FILE...",
    "print the sha256 of a weights file and of each tensor in it",
    "The first line is what `sha256sum FILE` prints: the digest of the run. Then a line a tensor:\n"
    "sha256 of its bytes, name, type and shape.",
    specs,
    LKSI_COUNT(specs),
    run,
};
