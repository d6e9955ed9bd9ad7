/*
 * helpers.h - what several test programs share: failures by status and text, and scratch folders.
 */
#ifndef LKS_TESTS_HELPERS_H
#define LKS_TESTS_HELPERS_H

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/base.h"

/* Criterion hears of failures only: a forked child of a test that tells it of success may hang. */
#define EXPECT_OK(call)                                                                            \
    do {                                                                                           \
        lks_status got_ = (call);                                                                  \
        if (got_ != LKS_OK)                                                                        \
            cr_assert_fail("%s: %s: %s", #call, lks_status_name(got_), lks_error_message());       \
    } while (0)

/* The call must fail with `status`, and every text that follows must stand in its message. */
#define EXPECT_FAIL(status, call, ...)                                                             \
    do {                                                                                           \
        const char *const parts_[] = {__VA_ARGS__};                                                \
        lks_status got_ = (call);                                                                  \
        cr_assert(got_ == (status), "%s: %s instead of %s: %s", #call, lks_status_name(got_),      \
                  lks_status_name(status), lks_error_message());                                   \
        for (size_t p_ = 0; p_ < LKSI_COUNT(parts_); p_++)                                         \
            cr_assert(strstr(lks_error_message(), parts_[p_]) != NULL,                             \
                      "%s: \"%s\" is missing in: %s", #call, parts_[p_], lks_error_message());     \
    } while (0)

/* A new empty folder under $TMPDIR or /tmp; remove it with scratch_remove. */
static inline char *scratch_make(void)
{
    const char *base = getenv("TMPDIR");
    char *path = NULL;
    int length = asprintf(&path, "%s/lockstep-test-XXXXXX", base != NULL ? base : "/tmp");
    cr_assert(length > 0 && mkdtemp(path) != NULL, "no scratch folder");
    return path;
}

/* `folder`/`name`, kept in one of a few rotating buffers. */
static inline const char *in_folder(const char *folder, const char *name)
{
    static char text[8][512];
    static unsigned turn;
    char *out = text[turn++ % 8];
    snprintf(out, sizeof text[0], "%s/%s", folder, name);
    return out;
}

static inline size_t count_entries(const char *folder)
{
    size_t n = 0;
    DIR *dir = opendir(folder);
    struct dirent *e;
    cr_assert(dir != NULL, "cannot list %s", folder);
    while ((e = readdir(dir)) != NULL)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(dir);
    return n;
}

static inline int remove_entry(const char *path, const struct stat *info, int kind,
                               struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

/* Removes the folder with all it holds and frees the path. */
static inline void scratch_remove(char *folder)
{
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(folder);
}

static inline void write_bytes(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    cr_assert(f != NULL, "cannot write %s", path);
    cr_assert(fwrite(data, 1, size, f) == size);
    cr_assert(fclose(f) == 0);
}

/* A small generator for mutations; the same sequence on every machine. */
static inline uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

#endif
