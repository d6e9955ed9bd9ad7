/*
 * file.h - whole files, atomic writing, folders and paths.
 *
 * Every failure here is LKS_E_IO (or LKS_E_MEMORY) and its text holds the path, the system's
 * reason and what to do. All functions may be called from any thread.
 */
#ifndef LKSI_BASE_FILE_H
#define LKSI_BASE_FILE_H

#include "base/base.h"
#include "base/hash.h"

struct lksi_bytes {
    uint8_t *data; /* free() */
    size_t size;
};

/* Opens a regular file for reading. The caller closes *fd. `size` receives its length. */
lks_status lksi_file_open(const char *path, int *fd, uint64_t *size);

/* Reads exactly `size` bytes at `offset`; fewer bytes in the file are LKS_E_IO. */
lks_status lksi_file_read_at(int fd, const char *path, uint64_t offset, void *data, size_t size);

/* Reads a whole regular file of at most `limit` bytes (LKS_E_INPUT beyond). A zero byte that is
 * not counted stands behind the data, so text can be read as a string. */
lks_status lksi_file_read(const char *path, size_t limit, struct lksi_bytes *out);

/* sha256 of a file's bytes in lower-case hex, as sha256sum prints it. */
lks_status lksi_file_sha256(const char *path, char hex[LKSI_SHA256_HEX]);

/*
 * Writing that is seen whole or not at all: bytes go to a temporary file in the same folder,
 * which is synced and renamed over `path` by commit. A symbolic link is followed. A target that
 * exists and is no regular file is refused. On success of begin, exactly one of commit and abort
 * must follow; a failed put or commit leaves `path` as it was, and abort removes the temporary.
 * commit removes it too when it fails.
 */
struct lksi_file_writer {
    char *path, *temp;
    int fd;
};
lks_status lksi_file_begin(struct lksi_file_writer *w, const char *path);
lks_status lksi_file_put(struct lksi_file_writer *w, const void *data, size_t size);
lks_status lksi_file_commit(struct lksi_file_writer *w);
void lksi_file_abort(struct lksi_file_writer *w);

/* begin, one put, commit. */
lks_status lksi_file_write_atomic(const char *path, const void *data, size_t size);

/* Makes a folder and the folders above it; one that exists is fine. */
lks_status lksi_make_dirs(const char *path);

/* LKS_E_IO if a file could not be written there, as far as can be told without writing. */
lks_status lksi_file_check_writable(const char *path);

/* `dir`/`name`, or a copy of `name` if it is absolute or `dir` is empty. free() the result; NULL
 * with the error text set if memory is out. */
char *lksi_path_join(const char *dir, const char *name);

/* The folder part of a path ("." if it has none). free() the result; NULL as above. */
char *lksi_path_dirname(const char *path);

#endif
