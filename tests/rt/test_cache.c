/*
 * The cache of program binaries: cold, warm, damaged, shared by processes, refused, grown; and the
 * texts beside them. Each test has its own folder, for lockstep and for PoCL.
 */
#include <ftw.h>
#include <sys/wait.h>

#include "base/file.h"
#include "rt/rt_cl.h"
#include "rt_help.h"

static const char unit_text[] = "#include \"contract/num.h\"\n"
                                "__kernel void LKS_KERNEL(put)(__global U32 *x)\n"
                                "{ x[get_global_id(0)] = VALUE + (U32)get_global_id(0); }\n";

struct place {
    char *folder;
    const char *cache;
    struct lksi_dev *dev;
};

static void prepare(struct place *p)
{
    if (!has_cpu())
        cr_skip_test("no OpenCL CPU device");
    p->folder = scratch_make();
    p->cache = in_folder(p->folder, "cache/deep");
    p->dev = NULL;
}

static void reopen(struct place *p, bool late)
{
    const struct lksi_dev_params params = {
        .select = "cpu", .cache_dir = p->cache, .always_binaries = true};
    lksi_dev_close(&p->dev);
    EXPECT_OK(lksi_dev_open(&p->dev, &params));
    p->dev->late = late;
}

static void finish(struct place *p)
{
    lksi_dev_close(&p->dev);
    scratch_remove(p->folder);
}

static char *found_kernel;
static time_t found_time;

static int newer_kernel(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    size_t length = strlen(path);
    (void)where;
    if (kind == FTW_F && length > 3 && strcmp(path + length - 3, ".so") == 0 &&
        info->st_mtim.tv_sec >= found_time) {
        free(found_kernel);
        found_kernel = strdup(path);
        found_time = info->st_mtim.tv_sec;
    }
    return 0;
}

/* The latest of the kernels that PoCL has compiled into `folder`; the caller's. */
static char *newest_kernel(const char *folder)
{
    nftw(folder, newer_kernel, 16, FTW_PHYS);
    return found_kernel;
}

/* Builds, runs, settles; the digest goes to `digest` (may be NULL). */
static void use(struct place *p, const char *defines, size_t group, char *digest)
{
    struct lksi_program *program = NULL;
    struct lksi_buf *buf = NULL;
    uint32_t got[64];
    EXPECT_OK(build_text(&program, p->dev, unit_text, defines));
    EXPECT_OK(lksi_buf_create(&buf, p->dev, sizeof got));
    run_kernel(program, 0, "put", buf, 64, group);
    EXPECT_OK(lksi_buf_read(buf, 0, got, sizeof got));
    for (uint32_t i = 0; i < 64; i++)
        if (got[i] != (uint32_t)atoi(defines + 6) + i)
            cr_assert_fail("item %u: %u", i, got[i]);
    EXPECT_OK(lksi_program_settle(program));
    if (digest != NULL)
        strcpy(digest, lksi_program_digest(program, 0));
    lksi_buf_destroy(&buf);
    lksi_program_destroy(&program);
}

/* Runs `use` with an empty log, and tells whether the program came from the cache. */
static bool from_cache(struct place *p, const char *defines, size_t group, char *digest)
{
    capture_log();
    use(p, defines, group, digest);
    int hit = count_log("taken from the cache"), miss = count_log("built from source");
    cr_assert(hit + miss == 1, "%s", log_text);
    return hit == 1;
}

static void check_cold_and_warm(bool late)
{
    struct place p;
    char first[LKSI_SHA256_HEX], second[LKSI_SHA256_HEX];
    prepare(&p);
    reopen(&p, late);
    cr_expect(!from_cache(&p, "VALUE=7u", 8, first));
    size_t entries = count_entries(p.cache);
    cr_expect(from_cache(&p, "VALUE=7u", 8, NULL));
    reopen(&p, late);
    cr_expect(from_cache(&p, "VALUE=7u", 8, second));
    cr_expect_str_eq(first, second);
    cr_expect(strlen(first) == 64);
    cr_expect(count_entries(p.cache) == entries, "a warm run leaves the folder as it is");
    cr_expect(!from_cache(&p, "VALUE=8u", 8, second));
    cr_expect_str_neq(first, second);
    cr_expect(count_entries(p.cache) == entries + 1);
    finish(&p);
}

Test(cache, cold_and_warm)
{
    check_cold_and_warm(true);
}

Test(cache, cold_and_warm_where_builds_are_early)
{
    check_cold_and_warm(false);
}

Test(cache, options_belong_to_the_key)
{
    struct place p;
    prepare(&p);
    reopen(&p, false);
    cr_expect(!from_cache(&p, "VALUE=7u", 8, NULL));
    strcpy(p.dev->options, "-cl-std=CL1.2 -DLKS_SOFT_DIVSQRT=1");
    cr_expect(!from_cache(&p, "VALUE=7u", 8, NULL));
    p.dev->identity[0] ^= 1; /* another driver */
    cr_expect(!from_cache(&p, "VALUE=7u", 8, NULL));
    finish(&p);
}

/* Finds the file of the program with VALUE=7u: the entry that building it adds. */
static char *entry_of_seven(struct place *p)
{
    struct lksi_program *program = NULL;
    struct lksi_str path = {0};
    EXPECT_OK(build_text(&program, p->dev, unit_text, "VALUE=7u"));
    cr_assert(p->dev->late); /* then the digest is the key */
    lksi_str_add(&path, "%s/%s.bin", p->cache, lksi_program_digest(program, 0));
    lksi_program_destroy(&program);
    cr_assert(access(path.text, R_OK) == 0, "%s", path.text);
    return path.text;
}

Test(cache, damaged_entries_are_built_again)
{
    struct place p;
    struct lksi_bytes good = {0}, bad = {0};
    uint64_t seed = 1;
    prepare(&p);
    reopen(&p, true);
    use(&p, "VALUE=7u", 8, NULL);
    char *path = entry_of_seven(&p);
    EXPECT_OK(lksi_file_read(path, SIZE_MAX / 2, &good));
    for (int round = 0; round < 6; round++) {
        size_t size = good.size;
        EXPECT_OK(lksi_file_read(path, SIZE_MAX / 2, &bad));
        if (round % 3 == 0)
            size = round == 0 ? 0 : round == 3 ? 100 : good.size - 1; /* cut off */
        else if (round % 3 == 1)
            bad.data[next_random(&seed) % good.size] ^= 1 << next_random(&seed) % 8;
        else
            bad.data[round * 16] ^= 128; /* in the header */
        write_bytes(path, bad.data, size);
        free(bad.data);
        cr_expect(!from_cache(&p, "VALUE=7u", 8, NULL), "round %d", round);
        cr_expect(count_log("damaged") == 1, "round %d: %s", round, log_text);
        cr_expect(from_cache(&p, "VALUE=7u", 8, NULL), "round %d was not stored again", round);
    }
    free(good.data);
    free(path);
    finish(&p);
}

Test(cache, a_binary_that_the_driver_refuses_is_built_again)
{
    struct place p;
    struct lksi_entry entry = {.bytes = 5};
    prepare(&p);
    reopen(&p, true);
    use(&p, "VALUE=7u", 8, NULL);
    char *path = entry_of_seven(&p), *key = strndup(strrchr(path, '/') + 1, 64);
    entry.binary = (unsigned char *)strdup("hello");
    lksi_cache_store(p.dev, key, &entry); /* whole, but no program */
    lksi_entry_free(&entry);
    cr_expect(!from_cache(&p, "VALUE=7u", 8, NULL));
    cr_expect(count_log("refuses its cached binary") == 1, "%s", log_text);
    cr_expect(from_cache(&p, "VALUE=7u", 8, NULL));
    free(key);
    free(path);
    finish(&p);
}

Test(cache, a_late_binary_grows_with_new_groups_and_rests_otherwise)
{
    struct place p;
    struct stat first, second, third;
    char *pocl = scratch_make();
    setenv("POCL_CACHE_DIR", pocl, 1); /* PoCL's own cache must not know the groups already */
    prepare(&p);
    reopen(&p, true);
    use(&p, "VALUE=7u", 8, NULL);
    char *path = entry_of_seven(&p);
    stat(path, &first);
    reopen(&p, true);
    use(&p, "VALUE=7u", 8, NULL); /* nothing new: not written */
    stat(path, &second);
    cr_expect(first.st_ino == second.st_ino && first.st_mtim.tv_nsec == second.st_mtim.tv_nsec);
    use(&p, "VALUE=7u", 16, NULL); /* a program from a binary meets a new group size */
    stat(path, &third);
    cr_expect(third.st_size > second.st_size + 1000, "%ld bytes, then %ld", (long)second.st_size,
              (long)third.st_size);
    cr_expect(from_cache(&p, "VALUE=7u", 16, NULL));
    free(path);
    finish(&p);
    scratch_remove(pocl);
}

static int one_process(struct place *p)
{
    for (int i = 0; i < 3; i++) {
        reopen(p, true);
        capture_log();
        use(p, "VALUE=7u", 8, NULL);
        if (count_log("damaged") + count_log("refuses") + count_log("cannot be written") > 0)
            return 2;
    }
    lksi_dev_close(&p->dev);
    return 0;
}

Test(cache, processes_share_a_folder)
{
    struct place p;
    pid_t child[3];
    p.folder = scratch_make(); /* no OpenCL call before the fork */
    p.cache = in_folder(p.folder, "cache");
    p.dev = NULL;
    setenv("POCL_CACHE_DIR", p.folder, 1);
    for (int i = 0; i < 3; i++) {
        child[i] = fork();
        if (child[i] == 0)
            _exit(has_cpu() ? one_process(&p) : 77);
    }
    bool skip = false;
    for (int i = 0; i < 3; i++) {
        int status = 0;
        cr_assert(waitpid(child[i], &status, 0) == child[i]);
        skip = skip || (WIFEXITED(status) && WEXITSTATUS(status) == 77);
        cr_expect(skip || (WIFEXITED(status) && WEXITSTATUS(status) == 0), "child %d: %d", i,
                  status);
    }
    if (!skip) {
        reopen(&p, true);
        cr_expect(from_cache(&p, "VALUE=7u", 8, NULL));
        cr_expect(count_entries(p.cache) == 2, "no temporary file is left");
    }
    finish(&p);
}

Test(cache, a_folder_that_cannot_be_written_is_one_log_line)
{
    struct place p;
    prepare(&p);
    write_bytes(in_folder(p.folder, "cache"), "a file", 6); /* in the place of a folder; root too */
    capture_log();
    reopen(&p, true);
    use(&p, "VALUE=7u", 8, NULL);
    use(&p, "VALUE=8u", 8, NULL);
    EXPECT_OK(lksi_cache_put(p.dev, "key", "text"));
    char *text = "unset";
    EXPECT_OK(lksi_cache_get(p.dev, "key", &text));
    cr_expect(text == NULL);
    cr_expect(count_log("cannot be written") == 1, "%s", log_text);
    finish(&p);
}

Test(cache, no_cache)
{
    struct place p;
    char *text = "unset";
    prepare(&p);
    p.cache = "";
    reopen(&p, true);
    cr_expect(!from_cache(&p, "VALUE=7u", 8, NULL));
    cr_expect(!from_cache(&p, "VALUE=7u", 8, NULL));
    EXPECT_OK(lksi_cache_put(p.dev, "key", "text"));
    EXPECT_OK(lksi_cache_get(p.dev, "key", &text));
    cr_expect(text == NULL);
    cr_expect(count_entries(p.folder) == 0);
    finish(&p);
}

Test(cache, texts)
{
    struct place p;
    char *text = "unset";
    p.folder = scratch_make();
    p.cache = p.folder;
    p.dev = NULL;
    const struct lksi_dev_params params = {.select = "ref", .cache_dir = p.cache};
    EXPECT_OK(lksi_dev_open(&p.dev, &params));
    EXPECT_OK(lksi_cache_get(p.dev, "a key with / and spaces", &text));
    cr_expect(text == NULL);
    EXPECT_OK(lksi_cache_put(p.dev, "a key with / and spaces", "one"));
    EXPECT_OK(lksi_cache_put(p.dev, "a key with / and spaces", "two\nlines"));
    EXPECT_OK(lksi_cache_put(p.dev, "empty", ""));
    EXPECT_OK(lksi_cache_get(p.dev, "a key with / and spaces", &text));
    cr_assert(text != NULL);
    cr_expect_str_eq(text, "two\nlines");
    free(text);
    EXPECT_OK(lksi_cache_get(p.dev, "empty", &text));
    cr_assert(text != NULL);
    cr_expect_str_eq(text, "");
    free(text);
    p.dev->identity[0] ^= 1; /* another device does not see it */
    EXPECT_OK(lksi_cache_get(p.dev, "empty", &text));
    cr_expect(text == NULL);
    p.dev->identity[0] ^= 1;

    DIR *dir = opendir(p.folder); /* damage both */
    struct dirent *e;
    while ((e = readdir(dir)) != NULL) {
        if (e->d_name[0] != '.')
            write_bytes(in_folder(p.folder, e->d_name), "0123", 4);
    }
    closedir(dir);
    capture_log();
    EXPECT_OK(lksi_cache_get(p.dev, "empty", &text));
    cr_expect(text == NULL && count_log("damaged") == 1);
    finish(&p);
}

Test(cache, the_users_folder)
{
    char *folder;
    setenv("XDG_CACHE_HOME", "/x/y", 1);
    setenv("HOME", "/home/me", 1);
    folder = lksi_cache_folder(NULL);
    cr_expect_str_eq(folder, "/x/y/lockstep");
    free(folder);
    setenv("XDG_CACHE_HOME", "not/absolute", 1);
    folder = lksi_cache_folder(NULL);
    cr_expect_str_eq(folder, "/home/me/.cache/lockstep");
    free(folder);
    cr_expect(lksi_cache_folder("") == NULL);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    cr_expect(lksi_cache_folder(NULL) == NULL);
}

/* PoCL keeps kernels itself: our folder gets no binary, and a second program compiles none. */
Test(cache, no_binaries_where_the_implementation_keeps_kernels)
{
    struct place p;
    struct stat before, after;
    char *pocl = scratch_make(), *own;
    setenv("POCL_CACHE_DIR", pocl, 1);
    prepare(&p);
    const struct lksi_dev_params params = {.select = "cpu", .cache_dir = p.cache};
    EXPECT_OK(lksi_dev_open(&p.dev, &params));
    if (strcmp(p.dev->limits.platform, "Portable Computing Language") != 0)
        cr_skip_test("the CPU device is not PoCL");
    cr_assert(p.dev->keeps_kernels);
    use(&p, "VALUE=7u", 8, NULL);
    EXPECT_OK(lksi_cache_put(p.dev, "key", "text")); /* texts are kept */
    cr_expect(count_entries(p.cache) == 1);
    own = newest_kernel(pocl);
    cr_assert(own != NULL && stat(own, &before) == 0);
    lksi_dev_close(&p.dev);
    EXPECT_OK(lksi_dev_open(&p.dev, &params));
    use(&p, "VALUE=7u", 8, NULL);
    cr_assert(stat(own, &after) == 0);
    cr_expect(before.st_ino == after.st_ino && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
    free(own);
    finish(&p);
    scratch_remove(pocl);
}
