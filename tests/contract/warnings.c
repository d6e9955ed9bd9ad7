/*
 * warnings.c - every kernel, built with the compiler's warnings on, and none told: TAP, one line an
 * operator.
 *
 *     warnings [--op X] [--share I/N] | --self-test
 *
 * The kernels are those that the cases of the contract harness use, once as the CPU device serves
 * them and once as if it were a GPU, which builds what it could not run. Skips without a CPU device.
 */
#include <ftw.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "plan/bind.h"
#include "rt/rt_cl.h"

/* PoCL takes no -W of clang's, but the text may ask for it. A unit uses a part of its headers. */
#define ASK                                                                                        \
    "#pragma clang diagnostic warning \"-Wall\"\n"                                                 \
    "#pragma clang diagnostic warning \"-Wextra\"\n"                                               \
    "#pragma clang diagnostic ignored \"-Wunused-function\"\n"                                    \
    "#pragma clang diagnostic ignored \"-Wunused-parameter\"\n"

enum { BATCH = 40 };

/* Calls whose kernels are built as one program. */
struct batch {
    struct lksi_stage stage[BATCH];
    void *attr[BATCH];
    size_t n;
};

/* Kernels seen, "source defines options kernel". */
static struct {
    char **text;
    size_t n, cap;
} seen;

static char said[1 << 16]; /* by the compiler, since it was last emptied */
static int lines;

static void keep(void *user, lks_log_level level, const char *message)
{
    const char *text = strstr(message, "the compiler says: ");
    size_t used = strlen(said);
    (void)user, (void)level;
    if (text != NULL)
        snprintf(said + used, sizeof said - used, "%s\n", text);
}

/* True if one of its kernels is new. */
static bool is_new(const struct lksi_stage *stage)
{
    bool any = false;
    for (int l = 0; l < stage->recipe.n_launch; l++) {
        const struct lksi_launch *x = &stage->recipe.launch[l];
        bool known = x->host != NULL;
        struct lksi_str s = {0};
        lksi_str_add(&s, "%s %s %s %s", x->plain != NULL ? x->plain->name : x->source, x->defines,
                     x->options != NULL ? x->options : "", x->kernel);
        for (size_t i = 0; i < seen.n && !known; i++)
            known = strcmp(seen.text[i], s.text) == 0;
        if (known || !lksi_grow(&seen.text, &seen.cap, seen.n + 1, sizeof *seen.text)) {
            free(s.text);
            continue;
        }
        seen.text[seen.n++] = s.text;
        any = true;
    }
    return any;
}

static lks_status build(struct lksi_dev *dev, struct batch *b)
{
    const struct lksi_build_progress quiet = {NULL, NULL};
    struct lksi_program *program = NULL;
    lks_status st = b->n > 0 ? lksi_stages_build(&program, dev, b->stage, b->n, quiet) : LKS_OK;
    for (size_t i = 0; i < b->n; i++) {
        lksi_stage_close(&b->stage[i]);
        free(b->attr[i]);
    }
    lksi_program_destroy(&program);
    b->n = 0;
    return st;
}

/* All schedules that serve the call. */
static lks_status add_call(struct lksi_dev *dev, struct batch *b, const struct lksi_call *call)
{
    const struct lksi_schedule *s;
    lks_status st = LKS_OK;
    for (size_t i = 0; st == LKS_OK && (s = lksi_op_schedule(call->op, i)) != NULL; i++) {
        struct lksi_pick pick = {s, {0}, NULL, 0};
        struct lksi_call copy = *call;
        void *attr = lksi_alloc(1, call->op->attr_size + 1);
        if (attr == NULL)
            return LKS_E_MEMORY;
        memcpy(attr, call->attr, call->op->attr_size);
        copy.attr = attr;
        if (!lksi_stage_pick(&b->stage[b->n], dev, &copy, &pick) || !is_new(&b->stage[b->n])) {
            lksi_stage_close(&b->stage[b->n]);
            free(attr);
            continue;
        }
        b->attr[b->n++] = attr;
        if (b->n == BATCH)
            st = build(dev, b);
    }
    return st;
}

static lks_status add_op(struct lksi_dev *dev, struct batch *b, const struct lksi_op *op)
{
    char attr[4096];
    for (int c = 0;; c++) {
        struct lksi_call call, made;
        memset(&call, 0, sizeof call);
        memset(attr, 0, sizeof attr);
        call.leaf = 8;
        if (!op->test_case(c, false, &call, attr))
            return build(dev, b);
        lks_status st = lksi_call_make(&made, op, attr, call.leaf, call.n_in, call.in);
        if (st == LKS_OK)
            st = add_call(dev, b, &made);
        if (st != LKS_OK)
            return st;
    }
}

static bool check_op(struct lksi_dev *dev, const struct lksi_op *op)
{
    static struct batch b;
    lks_status st = LKS_OK;
    size_t before = seen.n;
    const enum lksi_dev_type type = dev->limits.type;
    said[0] = '\0';
    for (int gpu = 0; gpu < 2 && st == LKS_OK; gpu++) {
        dev->limits.type = gpu ? LKSI_DEV_GPU : type;
        st = add_op(dev, &b, op);
    }
    dev->limits.type = type;
    bool good = st == LKS_OK && strstr(said, "warning:") == NULL;
    printf("%sok %d - %s: %zu kernels\n", good ? "" : "not ", ++lines, op->name, seen.n - before);
    for (const char *p = st != LKS_OK ? lks_error_message() : good ? "" : said; *p != '\0';) {
        int n = (int)strcspn(p, "\n");
        printf("# %.*s\n", n, p);
        p += n + (p[n] == '\n');
    }
    fflush(stdout);
    return good;
}

/* A kernel that gives cause to warn. */
static bool self_test(struct lksi_dev *dev)
{
    const struct lksi_unit unit = {
        .text = "#include \"contract/num.h\"\n"
                "__kernel void LKS_KERNEL(k)(__global int *x) { int unused; x[0] = 1; }\n"};
    struct lksi_program *program = NULL;
    lks_status st = lksi_program_build(&program, dev, &unit, 1, (struct lksi_build_progress){0});
    bool good = st == LKS_OK && strstr(said, "warning:") != NULL && strstr(said, "unused") != NULL;
    printf("%sok %d - a warning is seen\n# %s\n", good ? "" : "not ", ++lines,
           st == LKS_OK ? said : lks_error_message());
    lksi_program_destroy(&program);
    return good;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

/* The kernels as the library has them, in `folder`, with the wish for warnings in front. */
static bool write_kernels(const char *folder)
{
    bool good = true;
    for (const struct lksi_embedded *e = lksi_embedded_files; e->name != NULL && good; e++) {
        char path[256], above[256];
        snprintf(path, sizeof path, "%s/%s", folder, e->name);
        snprintf(above, sizeof above, "%s", path);
        FILE *f = lksi_make_dirs(dirname(above)) == LKS_OK ? fopen(path, "w") : NULL;
        if (f == NULL)
            return false;
        good = (strcmp(e->name, "contract/num.h") != 0 || fputs(ASK, f) >= 0) &&
               fputs(e->text, f) >= 0;
        good = fclose(f) == 0 && good;
    }
    return good;
}

static bool run(struct lksi_dev *dev, const char *only, unsigned share, unsigned of)
{
    const struct lksi_op *op;
    bool good = true;
    for (size_t i = 0; (op = lksi_op_at(i)) != NULL; i++)
        if (!op->view && (only != NULL ? strcmp(only, op->name) == 0 : i % of == share))
            good = check_op(dev, op) && good;
    return good && lines > 0;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/lockstep-warnings-XXXXXX";
    const struct lksi_dev_params params = {.select = "cpu", .cache_dir = "", .kernel_dir = folder};
    struct lksi_dev *dev = NULL;
    const char *only = NULL;
    unsigned share = 0, of = 1;
    bool self = argc == 2 && strcmp(argv[1], "--self-test") == 0, good = true;
    if (argc == 3 && strcmp(argv[1], "--op") == 0)
        only = argv[2];
    else if (!(argc == 3 && strcmp(argv[1], "--share") == 0 &&
               sscanf(argv[2], "%u/%u", &share, &of) == 2 && share < of) &&
             argc != 1 && !self) {
        fprintf(stderr, "usage: warnings [--op X | --share I/N | --self-test]\n");
        return 2;
    }
    /* What PoCL has compiled before it does not warn of again. */
    if (mkdtemp(folder) == NULL || setenv("POCL_CACHE_DIR", folder, 1) != 0 ||
        !write_kernels(folder)) {
        fprintf(stderr, "no scratch folder under /tmp\n");
        return 1;
    }
    lks_log_set(keep, NULL, LKS_LOG_DEBUG);
    lks_status st = lksi_dev_open(&dev, &params);
    if (st == LKS_OK)
        good = self ? self_test(dev) : run(dev, only, share, of);
    else
        printf("ok %d - # SKIP %s\n", ++lines, lks_error_message());
    lksi_dev_close(&dev);
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    for (size_t i = 0; i < seen.n; i++)
        free(seen.text[i]);
    free(seen.text);
    printf("1..%d\n", lines);
    return !good;
}
