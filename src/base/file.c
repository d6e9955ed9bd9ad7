/*
 * file.c - whole files, atomic writing, folders and paths.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* One system call never moves more; Linux itself stops below 2 GiB. */
#define CHUNK ((size_t)1 << 30)

/* What a user can do about an error of the system. */
static const char *remedy(int error, const char *path)
{
    switch (error) {
    case ENOENT:
        return path[0] == '/' ? "check the spelling"
                              : "check the spelling; this path starts at the current folder";
    case EACCES:
    case EPERM:
        return "check the permissions of the file and of its folder";
    case ENOSPC:
    case EDQUOT:
        return "free some space or choose another folder";
    case EFBIG:
        return "raise the limit on file sizes (ulimit -f) or choose another file system";
    case EROFS:
        return "the file system is read-only; choose another folder";
    case ENOTDIR:
        return "a part of the path is a file, not a folder";
    case EISDIR:
        return "name a file, not a folder";
    case EMFILE:
    case ENFILE:
        return "too many files are open; raise the limit (ulimit -n)";
    default:
        return "check the path and the file system";
    }
}

static lks_status fail_io(const char *what, const char *path, int error)
{
    return lksi_fail(LKS_E_IO, "cannot %s `%s`: %s; %s", what, path, strerror(error),
                     remedy(error, path));
}

lks_status lksi_file_open(const char *path, int *fd, uint64_t *size)
{
    struct stat info;
    /* O_NONBLOCK, so that a named pipe is refused below instead of waited for. */
    int f = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (f < 0)
        return fail_io("open", path, errno);
    if (fstat(f, &info) != 0) {
        int error = errno;
        close(f);
        return fail_io("open", path, error);
    }
    if (!S_ISREG(info.st_mode)) {
        close(f);
        return lksi_fail(LKS_E_IO, "cannot read `%s`: it is %s, not a regular file; name a file",
                         path, S_ISDIR(info.st_mode) ? "a folder" : "a device or a pipe");
    }
    *fd = f;
    *size = (uint64_t)info.st_size;
    return LKS_OK;
}

lks_status lksi_file_read_at(int fd, const char *path, uint64_t offset, void *data, size_t size)
{
    char *p = data;
    while (size > 0) {
        ssize_t got = pread(fd, p, size < CHUNK ? size : CHUNK, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_io("read", path, errno);
        if (got == 0)
            return lksi_fail(LKS_E_IO,
                             "cannot read `%s`: it ends at byte %llu, %zu bytes too early; another "
                             "program may be writing it",
                             path, (unsigned long long)offset, size);
        p += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return LKS_OK;
}

lks_status lksi_file_read(const char *path, size_t limit, struct lksi_bytes *out)
{
    struct lksi_bytes b = {0};
    uint64_t size;
    int fd = -1;
    lks_status st;
    LKSI_TRY(lksi_file_open(path, &fd, &size));
    if (size > limit || size >= SIZE_MAX) {
        st = lksi_fail(LKS_E_INPUT, "`%s` has %llu bytes, at most %zu are allowed here", path,
                       (unsigned long long)size, limit);
        goto fail;
    }
    b.size = (size_t)size;
    b.data = malloc(b.size + 1);
    if (b.data == NULL) {
        st = lksi_fail(LKS_E_MEMORY, "out of host memory: `%s` has %zu bytes", path, b.size);
        goto fail;
    }
    LKSI_TRY(lksi_file_read_at(fd, path, 0, b.data, b.size));
    b.data[b.size] = 0;
    close(fd);
    *out = b;
    return LKS_OK;
fail:
    if (fd >= 0)
        close(fd);
    free(b.data);
    return st;
}

lks_status lksi_file_sha256(const char *path, char hex[LKSI_SHA256_HEX])
{
    enum { PIECE = 1 << 16 };
    struct lksi_sha256 hash = {0};
    uint8_t *piece = NULL;
    uint64_t size, at;
    int fd = -1;
    lks_status st;
    LKSI_TRY(lksi_file_open(path, &fd, &size));
    LKSI_TRY(lksi_sha256_init(&hash));
    piece = lksi_alloc(PIECE, 1);
    if (piece == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    for (at = 0; at < size; at += PIECE) {
        size_t n = size - at < PIECE ? (size_t)(size - at) : PIECE;
        LKSI_TRY(lksi_file_read_at(fd, path, at, piece, n));
        LKSI_TRY(lksi_sha256_update(&hash, piece, n));
    }
    st = lksi_sha256_final(&hash, hex);
fail:
    if (fd >= 0)
        close(fd);
    free(piece);
    lksi_sha256_drop(&hash);
    return st;
}

/* Where the bytes shall end up: behind a symbolic link, and nothing but a regular file. */
static lks_status resolve_target(const char *path, char **out)
{
    struct stat info;
    char *target;
    if (path[0] == '\0')
        return lksi_fail(LKS_E_IO, "cannot write a file: the path is empty; name a file");
    if (stat(path, &info) == 0) {
        if (!S_ISREG(info.st_mode))
            return lksi_fail(LKS_E_IO,
                             "cannot write `%s`: it is %s, not a regular file; name a file", path,
                             S_ISDIR(info.st_mode) ? "a folder" : "a device or a pipe");
        target = realpath(path, NULL);
        if (target == NULL)
            return fail_io("write", path, errno);
    } else if (errno == ENOENT) {
        target = lksi_strdup(path);
        if (target == NULL)
            return LKS_E_MEMORY;
    } else {
        return fail_io("write", path, errno);
    }
    *out = target;
    return LKS_OK;
}

lks_status lksi_file_begin(struct lksi_file_writer *w, const char *path)
{
    static atomic_uint counter;
    struct lksi_file_writer made = {.fd = -1};
    struct lksi_str temp = {0};
    lks_status st;
    LKSI_TRY(resolve_target(path, &made.path));
    const char *slash = strrchr(made.path, '/');
    int folder = slash != NULL ? (int)(slash - made.path) + 1 : 0;
    /* Names of our own and O_EXCL instead of mkstemp, so that the umask decides the mode. */
    for (int attempt = 0; made.fd < 0; attempt++) {
        temp.length = 0;
        lksi_str_add(&temp, "%.*s.lockstep-%ld-%u.tmp", folder, made.path, (long)getpid(),
                     atomic_fetch_add(&counter, 1u));
        if (temp.failed) {
            st = LKS_E_MEMORY;
            goto fail;
        }
        made.fd = open(temp.text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (made.fd < 0 && (errno != EEXIST || attempt == 100)) {
            st = fail_io("write", path, errno);
            goto fail;
        }
    }
    made.temp = temp.text;
    *w = made;
    return LKS_OK;
fail:
    free(temp.text);
    free(made.path);
    return st;
}

lks_status lksi_file_put(struct lksi_file_writer *w, const void *data, size_t size)
{
    const char *p = data;
    while (size > 0) {
        ssize_t put = write(w->fd, p, size < CHUNK ? size : CHUNK);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return fail_io("write", w->path, put < 0 ? errno : ENOSPC);
        p += put;
        size -= (size_t)put;
    }
    return LKS_OK;
}

/* Makes the rename last through a power cut. Some file systems cannot sync a folder; the file
 * itself is safe by then, so that is no failure. */
static void sync_folder(const char *path)
{
    char *folder = lksi_path_dirname(path);
    int fd = folder != NULL ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    free(folder);
}

static void writer_free(struct lksi_file_writer *w)
{
    free(w->path);
    free(w->temp);
    *w = (struct lksi_file_writer){.fd = -1};
}

lks_status lksi_file_commit(struct lksi_file_writer *w)
{
    lks_status st = LKS_OK;
    if (fsync(w->fd) != 0)
        st = fail_io("write", w->path, errno);
    if (close(w->fd) != 0 && st == LKS_OK)
        st = fail_io("write", w->path, errno);
    w->fd = -1;
    if (st == LKS_OK && rename(w->temp, w->path) != 0)
        st = fail_io("write", w->path, errno);
    if (st == LKS_OK)
        sync_folder(w->path);
    else
        unlink(w->temp);
    writer_free(w);
    return st;
}

void lksi_file_abort(struct lksi_file_writer *w)
{
    if (w->temp == NULL)
        return;
    if (w->fd >= 0)
        close(w->fd);
    unlink(w->temp);
    writer_free(w);
}

lks_status lksi_file_write_atomic(const char *path, const void *data, size_t size)
{
    struct lksi_file_writer w;
    lks_status st = lksi_file_begin(&w, path);
    if (st != LKS_OK)
        return st;
    st = lksi_file_put(&w, data, size);
    if (st != LKS_OK) {
        lksi_file_abort(&w);
        return st;
    }
    return lksi_file_commit(&w);
}

lks_status lksi_make_dirs(const char *path)
{
    struct stat info;
    lks_status st = LKS_OK;
    char *copy;
    if (path[0] == '\0')
        return fail_io("make the folder", path, ENOENT);
    copy = lksi_strdup(path);
    if (copy == NULL)
        return LKS_E_MEMORY;
    for (char *p = copy; st == LKS_OK && *p != '\0';) {
        p += strspn(p, "/");
        p += strcspn(p, "/");
        char end = *p;
        *p = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST)
            st = fail_io("make the folder", copy, errno);
        *p = end;
    }
    if (st == LKS_OK && (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)))
        st = lksi_fail(LKS_E_IO,
                       "cannot make the folder `%s`: a file stands there; remove it or "
                       "choose another folder",
                       path);
    free(copy);
    return st;
}

lks_status lksi_file_check_writable(const char *path)
{
    struct stat info;
    char *dir;
    int error = 0;
    if (stat(path, &info) == 0) {
        if (S_ISDIR(info.st_mode))
            return fail_io("write", path, EISDIR);
        return access(path, W_OK) == 0 ? LKS_OK : fail_io("write", path, errno);
    }
    if (errno != ENOENT)
        return fail_io("write", path, errno);
    dir = lksi_path_dirname(path);
    if (dir == NULL)
        return LKS_E_MEMORY;
    if (path[strlen(path) - 1] == '/')
        error = EISDIR;
    else if (access(dir, W_OK | X_OK) != 0)
        error = errno;
    free(dir);
    return error == 0 ? LKS_OK : fail_io("write", path, error);
}

char *lksi_path_join(const char *dir, const char *name)
{
    struct lksi_str s = {0};
    size_t length = strlen(dir);
    if (name[0] == '/' || length == 0)
        return lksi_strdup(name);
    lksi_str_add(&s, "%s%s%s", dir, dir[length - 1] == '/' ? "" : "/", name);
    if (s.failed) {
        free(s.text);
        return NULL;
    }
    return s.text;
}

char *lksi_path_dirname(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir;
    if (slash == NULL)
        return lksi_strdup(".");
    dir = lksi_strdup(path);
    if (dir != NULL)
        dir[slash == path ? 1 : slash - path] = '\0';
    return dir;
}
