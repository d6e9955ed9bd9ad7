/*
 * run_dir.c - making, locking, probing and tidying the output folder.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "run_dir.h"

#define PROBE ".lockstep-probe.tmp"

static const char *const names[RUN_FILES] = {
    [RUN_WEIGHTS] = "weights.safetensors",
    [RUN_EMA] = "ema_weights.safetensors",
    [RUN_BEST] = "best.safetensors",
    [RUN_CHECKPOINT] = "checkpoint.safetensors",
    [RUN_METRICS] = "metrics.csv",
    [RUN_STEPS] = "steps.csv",
    [RUN_CURVES] = "curves.svg",
    [RUN_JSON] = "run.json",
};

/* The highest folder on the way to `path` that does not exist yet; NULL if all do. */
static char *first_missing(const char *path)
{
    struct stat info;
    char *copy = lksi_strdup(path);
    for (char *p = copy; p != NULL && *p != '\0';) {
        p += strspn(p, "/");
        p += strcspn(p, "/");
        char end = *p;
        *p = '\0';
        if (stat(copy, &info) != 0)
            return copy;
        *p = end;
    }
    free(copy);
    return NULL;
}

/* rmdir from `path` up to `top`; folders that are not empty, or were never made, do not mind. */
static void remove_empty(const char *path, const char *top)
{
    char *at = lksi_strdup(path);
    while (at != NULL) {
        size_t length = strlen(at);
        while (length > 1 && at[length - 1] == '/')
            at[--length] = '\0';
        if (length >= strlen(top))
            (void)rmdir(at);
        if (length <= strlen(top))
            break;
        char *up = lksi_path_dirname(at);
        free(at);
        at = up;
    }
    free(at);
}

/* `name` is that of a temporary file (base/file.c makes them) and its process is gone, or this one,
 * which has written nothing here yet: what a kill cut short. */
static bool is_leftover(const char *name)
{
    long pid;
    unsigned number;
    int end = -1;
    if (sscanf(name, ".lockstep-%ld-%u.tmp%n", &pid, &number, &end) != 2 || end < 0 ||
        name[end] != '\0')
        return strcmp(name, PROBE) == 0;
    return pid == (long)getpid() || (pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH);
}

static void remove_leftovers(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *e;
    while (dir != NULL && (e = readdir(dir)) != NULL)
        if (is_leftover(e->d_name))
            unlinkat(dirfd(dir), e->d_name, 0);
    if (dir != NULL)
        closedir(dir);
}

static lks_status lock_folder(struct run_dir *d)
{
    d->lock = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->lock < 0)
        return lksi_fail(LKS_E_IO, "cannot open the folder `%s`: %s; choose another with --out",
                         d->path, strerror(errno));
    /* File systems without locks are taken as they are. */
    if (flock(d->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return lksi_fail(LKS_E_IO,
                         "another run is writing to `%s`; wait for it, or choose another "
                         "folder with --out",
                         d->path);
    return LKS_OK;
}

/* Room is asked for with a file that is removed again, since quotas, limits and thin volumes say
 * no only then. */
static lks_status probe(const struct run_dir *d, uint64_t bytes)
{
    char *path = lksi_path_join(d->path, PROBE);
    int fd, error = 0;
    if (path == NULL)
        return LKS_E_MEMORY;
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        error = errno;
    else
        error = posix_fallocate(fd, 0, (off_t)bytes);
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    free(path);
    if (error != 0)
        return lksi_fail(LKS_E_IO, "cannot write %llu bytes to the folder `%s`: %s; %s",
                         (unsigned long long)bytes, d->path, strerror(error),
                         error == EFBIG    ? "raise the limit on file sizes (ulimit -f)"
                         : error == ENOSPC ? "free some space or choose another folder with --out"
                                           : "choose another folder with --out");
    return LKS_OK;
}

lks_status run_dir_open(struct run_dir *d, const char *path, uint64_t bytes)
{
    lks_status st;
    *d = (struct run_dir){.lock = -1};
    d->path = lksi_strdup(path);
    if (d->path == NULL)
        return LKS_E_MEMORY;
    d->made = first_missing(path);
    for (size_t i = 0; i < RUN_FILES; i++) {
        d->file[i] = lksi_path_join(path, names[i]);
        if (d->file[i] == NULL) {
            st = LKS_E_MEMORY;
            goto fail;
        }
    }
    LKSI_TRY(lksi_make_dirs(path));
    LKSI_TRY(lock_folder(d));
    remove_leftovers(path);
    LKSI_TRY(probe(d, bytes));
    return LKS_OK;
fail:
    run_dir_close(d, false);
    return st;
}

bool run_dir_has(const struct run_dir *d, enum run_file file)
{
    return access(d->file[file], F_OK) == 0;
}

lks_status run_dir_clear(const struct run_dir *d)
{
    for (size_t i = 0; i < RUN_FILES; i++)
        if (unlink(d->file[i]) != 0 && errno != ENOENT)
            return lksi_fail(LKS_E_IO,
                             "cannot remove `%s` of an earlier run: %s; choose another "
                             "folder with --out",
                             d->file[i], strerror(errno));
    return LKS_OK;
}

void run_dir_close(struct run_dir *d, bool keep)
{
    if (d->lock >= 0)
        close(d->lock);
    if (!keep && d->made != NULL)
        remove_empty(d->path, d->made);
    for (size_t i = 0; i < RUN_FILES; i++)
        free(d->file[i]);
    free(d->path);
    free(d->made);
    *d = (struct run_dir){.lock = -1};
}
