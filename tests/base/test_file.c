/*
 * test_file.c - reading, atomic writing under failures, folders and paths.
 */
#include <signal.h>
#include <sys/resource.h>

#include "base/file.h"
#include "helpers.h"

static char *folder;

static void setup(void)
{
    folder = scratch_make();
}

static void teardown(void)
{
    scratch_remove(folder);
}

TestSuite(file, .init = setup, .fini = teardown);

Test(file, round_trip)
{
    struct lksi_bytes b;
    char hex[LKSI_SHA256_HEX];
    const char *path = in_folder(folder, "a");
    EXPECT_OK(lksi_file_write_atomic(path, "abc", 3));
    EXPECT_OK(lksi_file_write_atomic(path, "abc", 3));
    EXPECT_OK(lksi_file_read(path, 3, &b));
    cr_assert_eq(b.size, 3);
    cr_assert_str_eq((char *)b.data, "abc");
    free(b.data);
    EXPECT_OK(lksi_file_sha256(path, hex));
    cr_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_FAIL(LKS_E_INPUT, lksi_file_read(path, 2, &b), path, "3 bytes", "at most 2");
    cr_assert_eq(count_entries(folder), 1);
}

Test(file, hash_over_many_pieces)
{
    char whole[LKSI_SHA256_HEX], streamed[LKSI_SHA256_HEX];
    size_t size = 200001;
    uint8_t *data = malloc(size);
    uint64_t seed = 1;
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)next_random(&seed);
    EXPECT_OK(lksi_file_write_atomic(in_folder(folder, "a"), data, size));
    EXPECT_OK(lksi_file_sha256(in_folder(folder, "a"), streamed));
    EXPECT_OK(lksi_sha256_bytes(data, size, whole));
    cr_assert_str_eq(whole, streamed);
    free(data);
}

Test(file, mode_follows_the_umask)
{
    struct stat info;
    umask(027);
    EXPECT_OK(lksi_file_write_atomic(in_folder(folder, "a"), "x", 1));
    cr_assert_eq(stat(in_folder(folder, "a"), &info), 0);
    cr_assert_eq(info.st_mode & 0777, 0640);
}

Test(file, read_errors)
{
    struct lksi_bytes b = {.size = 99};
    char hex[LKSI_SHA256_HEX];
    EXPECT_FAIL(LKS_E_IO, lksi_file_read(in_folder(folder, "none"), 9, &b), "none`", "No such file",
                "check the spelling");
    EXPECT_FAIL(LKS_E_IO, lksi_file_sha256(in_folder(folder, "none"), hex), "none`");
    EXPECT_FAIL(LKS_E_IO, lksi_file_read(folder, 9, &b), folder, "a folder");
    EXPECT_FAIL(LKS_E_IO, lksi_file_read("/dev/null", 9, &b), "/dev/null", "a device");
    cr_assert_eq(mkfifo(in_folder(folder, "pipe"), 0600), 0);
    EXPECT_FAIL(LKS_E_IO, lksi_file_read(in_folder(folder, "pipe"), 9, &b), "pipe");
    cr_assert_eq(b.size, 99, "written on failure");
}

Test(file, too_short_while_reading)
{
    char data[4];
    uint64_t size;
    int fd;
    write_bytes(in_folder(folder, "a"), "abc", 3);
    EXPECT_OK(lksi_file_open(in_folder(folder, "a"), &fd, &size));
    cr_assert_eq(size, 3);
    EXPECT_FAIL(LKS_E_IO, lksi_file_read_at(fd, "a", 1, data, 4), "ends at byte 3",
                "2 bytes too early");
    close(fd);
}

Test(file, write_errors_leave_nothing)
{
    write_bytes(in_folder(folder, "a"), "old", 3);
    EXPECT_FAIL(LKS_E_IO, lksi_file_write_atomic(in_folder(folder, "no/b"), "x", 1), "no/b`",
                "No such file");
    EXPECT_FAIL(LKS_E_IO, lksi_file_write_atomic(in_folder(folder, "a/b"), "x", 1), "a/b`",
                "a part of the path is a file");
    EXPECT_FAIL(LKS_E_IO, lksi_file_write_atomic(folder, "x", 1), "a folder");
    EXPECT_FAIL(LKS_E_IO, lksi_file_write_atomic("/dev/null", "x", 1), "/dev/null", "a device");
    EXPECT_FAIL(LKS_E_IO, lksi_file_write_atomic("", "x", 1), "path is empty");
    cr_assert_eq(count_entries(folder), 1);
}

/* A limit on the file size stands for a full disk: write fails after some bytes. */
Test(file, full_disk_keeps_the_old_file)
{
    static char big[100000];
    struct rlimit limit = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    struct lksi_bytes b;
    write_bytes(in_folder(folder, "a"), "old", 3);
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_FAIL(LKS_E_IO, lksi_file_write_atomic(in_folder(folder, "a"), big, sizeof big),
                in_folder(folder, "a"), "File too large", "ulimit -f");
    cr_assert_eq(count_entries(folder), 1);
    EXPECT_OK(lksi_file_read(in_folder(folder, "a"), 3, &b));
    cr_assert_str_eq((char *)b.data, "old");
    free(b.data);
}

Test(file, unwritable_folder)
{
    write_bytes(in_folder(folder, "a"), "old", 3);
    cr_assert_eq(chmod(folder, 0555), 0);
    /* Permissions do not bind root, so the attempt runs as somebody else. */
    if (geteuid() == 0)
        cr_assert_eq(seteuid(65534), 0);
    EXPECT_FAIL(LKS_E_IO, lksi_file_write_atomic(in_folder(folder, "a"), "new", 3),
                in_folder(folder, "a"), "Permission denied", "check the permissions");
    cr_assert_eq(count_entries(folder), 1);
    if (getuid() == 0)
        cr_assert_eq(seteuid(0), 0);
    cr_assert_eq(chmod(folder, 0755), 0);
}

Test(file, abort_removes_the_temporary)
{
    struct lksi_file_writer w;
    EXPECT_OK(lksi_file_begin(&w, in_folder(folder, "a")));
    EXPECT_OK(lksi_file_put(&w, "abc", 3));
    cr_assert_eq(count_entries(folder), 1);
    cr_assert_neq(access(in_folder(folder, "a"), F_OK), 0);
    lksi_file_abort(&w);
    lksi_file_abort(&w);
    cr_assert_eq(count_entries(folder), 0);
}

Test(file, symbolic_link_is_followed)
{
    struct stat info;
    struct lksi_bytes b;
    write_bytes(in_folder(folder, "real"), "old", 3);
    cr_assert_eq(symlink("real", in_folder(folder, "link")), 0);
    EXPECT_OK(lksi_file_write_atomic(in_folder(folder, "link"), "new", 3));
    cr_assert_eq(lstat(in_folder(folder, "link"), &info), 0);
    cr_assert(S_ISLNK(info.st_mode));
    EXPECT_OK(lksi_file_read(in_folder(folder, "real"), 9, &b));
    cr_assert_str_eq((char *)b.data, "new");
    free(b.data);
}

Test(file, bare_name_goes_to_the_current_folder)
{
    cr_assert_eq(chdir(folder), 0);
    EXPECT_OK(lksi_file_write_atomic("bare", "x", 1));
    cr_assert_eq(access(in_folder(folder, "bare"), F_OK), 0);
    cr_assert_eq(chdir("/"), 0);
}

Test(file, folders)
{
    struct stat info;
    EXPECT_OK(lksi_make_dirs(in_folder(folder, "x/y//z/")));
    EXPECT_OK(lksi_make_dirs(in_folder(folder, "x/y/z")));
    cr_assert_eq(stat(in_folder(folder, "x/y/z"), &info), 0);
    cr_assert(S_ISDIR(info.st_mode));
    EXPECT_OK(lksi_make_dirs("/"));
    EXPECT_FAIL(LKS_E_IO, lksi_make_dirs(""), "cannot make the folder");
    write_bytes(in_folder(folder, "a"), "x", 1);
    EXPECT_FAIL(LKS_E_IO, lksi_make_dirs(in_folder(folder, "a")), "/a`", "a file stands there");
    EXPECT_FAIL(LKS_E_IO, lksi_make_dirs(in_folder(folder, "a/b")), "/a/b`");
}

static void expect_path(char *got, const char *want)
{
    cr_assert_str_eq(got, want);
    free(got);
}

Test(file, paths)
{
    expect_path(lksi_path_join("a", "b"), "a/b");
    expect_path(lksi_path_join("a/", "b"), "a/b");
    expect_path(lksi_path_join("", "b"), "b");
    expect_path(lksi_path_join("a", "/b"), "/b");
    expect_path(lksi_path_join("/", "b"), "/b");
    expect_path(lksi_path_dirname("a"), ".");
    expect_path(lksi_path_dirname("a/b/c"), "a/b");
    expect_path(lksi_path_dirname("/a"), "/");
}
