/*
 * tune.c - `lockstep tune`: options, joining of files, and the watch over the process that works.
 * See tune.h.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "progress.h"
#include "rt/api.h"
#include "tune.h"

enum { LIMIT = 60, MOST_ENDS = 32 };

#define BENCH(member) offsetof(struct options, tune.bench.member)

struct options {
    struct tune_options tune;
    struct number limit;
};

static const struct option_spec specs[] = {
    {"device", 'd', OPTION_LIST, BENCH(device.names), "DEVICE",
     "cpu, gpu, PLATFORM:N or part of a device's name (default:\nthe first GPU, else the CPU device)",
     0},
    {"budget", 0, OPTION_U32, offsetof(struct options, tune.budget), "SECONDS",
     "time to spend (default: 60)", 1},
    {"limit", 0, OPTION_U32, offsetof(struct options, limit), "SECONDS",
     "skip a candidate that takes longer to build and run\n(default: 60)", 1},
    {"out", 'o', OPTION_TEXT, offsetof(struct options, tune.out), "FILE",
     "write to this file (default: the user's file for the\ndevice, which trainings read)", 0},
    {"merge", 0, OPTION_LIST, offsetof(struct options, tune.merge), "FILE",
     "only join this file and those behind the options into\n--out; of two entries about one call "
     "the later stays",
     0},
    {"batch", 'b', OPTION_U32, BENCH(batch), "N", "samples a step, in place of the model file's", 1},
    {"leaf", 0, OPTION_U32, BENCH(leaf), "N", "samples a block of the ordered sums", 1},
    {"op", 0, OPTION_TEXT, BENCH(op), "NAME", "this operator in place of a model's", 0},
    {"in", 0, OPTION_TEXT, BENCH(in), "N,H,W,C", "its shape, as for bench", 0},
    {"features", 'k', OPTION_U32, BENCH(out), "K", "output channels, bench's --out", 1},
    {"kernel", 0, OPTION_U32, BENCH(kernel), "R", "height and width of the window", 1},
    {"stride", 0, OPTION_U32, BENCH(stride), "S", "(default: 1)", 1},
    {"pad", 0, OPTION_U32, BENCH(pad), "P", "at each border (default: 0)", 0},
    {"groups", 0, OPTION_U32, BENCH(groups), "G", "of a convolution (default: 1)", 1},
    OPTION_COMMON,
};

/* ---- joining files ---- */

static lks_status add_files(void *user, struct lksi_tuning_file *f)
{
    const struct text_list *names = user;
    lks_status st = LKS_OK;
    for (size_t i = 0; i < names->count && st == LKS_OK; i++) {
        struct lksi_tuning_file one = {0};
        st = lksi_tuning_read(&one, names->item[i]);
        if (st == LKS_OK)
            st = lksi_tuning_merge(f, &one);
        lksi_tuning_file_free(&one);
    }
    return st;
}

static int merge(struct text_list *names, const char *out)
{
    if (out == NULL)
        return fail_usage("--merge needs --out FILE, the file to join into");
    lks_status st = lksi_tuning_edit(out, add_files, names);
    if (st != LKS_OK)
        return fail_library(st);
    printf("%zu files joined into %s\n", names->count, out);
    return EXIT_OK;
}

/* ---- the process that works ---- */

static int open_and_work(struct tune *t, const char *model_file)
{
    const struct device_choice *choice = &t->o->bench.device;
    struct lks_device *device = NULL;
    int status = open_device(&device, choice);
    if (status != EXIT_OK)
        return status;
    const struct lks_device_info *info = lks_device_get_info(device);
    const struct lksi_dev_params params = {.select = info->select, .tuning = "built-in"};
    char *own = NULL;
    lks_status st = lksi_dev_open(&t->b.dev, &params);
    lks_device_close(&device);
    if (st != LKS_OK)
        return fail_library(st);
    if (lksi_dev_is_ref(t->b.dev)) {
        lksi_dev_close(&t->b.dev);
        return fail_usage("the device ref runs one C loop an operator; there is nothing to choose");
    }
    st = lksi_tuning_open(&t->built_in, t->b.dev, lksi_embedded_tuning);
    if (st != LKS_OK) {
        lksi_dev_close(&t->b.dev);
        return fail_library(st);
    }
    if (t->o->out == NULL)
        own = lksi_tuning_path(lksi_dev_limits(t->b.dev));
    t->path = own != NULL ? own : t->o->out;
    if (t->path == NULL)
        status = fail_usage("neither $XDG_CONFIG_HOME nor $HOME names a folder; give --out FILE");
    else
        status = tune_work(t, model_file);
    if (status == EXIT_OK)
        printf("%s\n", t->path);
    free(own);
    lksi_tuning_close(&t->built_in);
    lksi_dev_close(&t->b.dev);
    return status;
}

/* ---- the watch ---- */

struct watch {
    const struct options *o;
    struct tune_past past;
    double end;       /* of the budget, which begins with the first search; 0: not begun */
    char trying[512]; /* what is being tried; "": nothing */
    char line[1024];
    size_t n_line;
};

static bool remember(char ***list, size_t *n, size_t *cap, const char *text)
{
    char *copy = lksi_strdup(text);
    if (copy == NULL || !lksi_grow(list, cap, *n + 1, sizeof **list)) {
        free(copy);
        return false;
    }
    (*list)[(*n)++] = copy;
    return true;
}

static bool take_line(struct watch *w, const char *line)
{
    if (strncmp(line, "try ", 4) == 0)
        snprintf(w->trying, sizeof w->trying, "%.*s", (int)sizeof w->trying - 1, line + 4);
    if (strncmp(line, "begin ", 6) == 0 && w->end == 0)
        w->end = seconds_now() + (double)(w->o->tune.budget.given ? w->o->tune.budget.value : TUNE_BUDGET);
    if (strncmp(line, "better ", 7) == 0)
        w->past.better++;
    if (strncmp(line, "done ", 5) != 0)
        return true;
    w->trying[0] = '\0';
    return remember(&w->past.done, &w->past.n_done, &w->past.cap_done, line + 5);
}

/* Reads what the process says until it ends, or says nothing for too long. False: it must end. */
static bool listen_to(struct watch *w, int fd)
{
    int limit = (int)(w->o->limit.given ? w->o->limit.value : LIMIT) * 1000;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (;;) {
        char c[256];
        int ready = poll(&p, 1, limit);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        ssize_t n = read(fd, c, sizeof c);
        if (n <= 0)
            return true;
        for (ssize_t i = 0; i < n; i++) {
            if (c[i] != '\n') {
                if (w->n_line + 1 < sizeof w->line)
                    w->line[w->n_line++] = c[i];
                continue;
            }
            w->line[w->n_line] = '\0';
            w->n_line = 0;
            if (!take_line(w, w->line))
                return false;
        }
    }
}

/* One life of the process. False if it ended in another way than by itself. */
static bool live(struct watch *w, const char *model_file, int *status)
{
    int pipes[2], how;
    pid_t pid;
    bool spoke;
    fflush(stdout);
    fflush(stderr);
    if (pipe(pipes) != 0 || (pid = fork()) < 0) {
        *status = fail_usage("a process cannot be started: %s", strerror(errno));
        return true;
    }
    if (pid == 0) { /* OpenCL is started here alone */
        struct tune t = {.o = &w->o->tune, .past = &w->past, .report = pipes[1], .end = w->end};
        close(pipes[0]);
        t.b.o = &w->o->tune.bench;
        *status = open_and_work(&t, model_file);
        fflush(stdout);
        _exit(*status);
    }
    close(pipes[1]);
    w->n_line = 0;
    spoke = listen_to(w, pipes[0]);
    close(pipes[0]);
    if (!spoke)
        kill(pid, SIGKILL);
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    if (spoke && WIFEXITED(how)) {
        *status = WEXITSTATUS(how);
        return true;
    }
    printf("  skipped %s: %s\n", w->trying[0] != '\0' ? w->trying : "what came next",
           spoke ? strsignal(WTERMSIG(how)) : "it took too long");
    return false;
}

static int watch(const struct options *o, const char *model_file)
{
    struct watch w = {.o = o};
    int status = EXIT_OK;
    for (int ends = 0; !live(&w, model_file, &status); ends++) {
        if (w.trying[0] == '\0' || ends == MOST_ENDS) {
            say_error("the device's driver ends the program again and again; nothing more is tried");
            status = EXIT_DEVICE;
            break;
        }
        if (!remember(&w.past.bad, &w.past.n_bad, &w.past.cap_bad, w.trying)) {
            status = fail_library(LKS_E_MEMORY);
            break;
        }
        w.trying[0] = '\0';
    }
    if (status == EXIT_OK)
        printf("%zu of %zu calls have a faster choice than the first one\n", w.past.better,
               w.past.n_done);
    for (size_t i = 0; i < w.past.n_bad; i++)
        free(w.past.bad[i]);
    for (size_t i = 0; i < w.past.n_done; i++)
        free(w.past.done[i]);
    free(w.past.bad);
    free(w.past.done);
    return status;
}

/* ---- the command ---- */

static int run(const struct command *self, int argc, char **argv)
{
    struct options o = {0};
    struct tune_options *t = &o.tune;
    char **rest;
    int n_rest, status;
    if (!parse_options(self, argc, argv, &o, &rest, &n_rest, &status))
        return status;
    if (t->merge.count > 0) {
        for (int i = 0; i < n_rest; i++) {
            if (t->merge.count == LKSI_COUNT(t->merge.item))
                return fail_usage("--merge joins at most %zu files", t->merge.count);
            t->merge.item[t->merge.count++] = rest[i];
        }
        return merge(&t->merge, t->out);
    }
    if (n_rest > 1)
        return fail_usage("tune takes one model file, %d given", n_rest);
    if ((n_rest == 1) == (t->bench.op != NULL))
        return fail_usage("tune takes a model file or --op, %s", n_rest == 1 ? "not both"
                                                                             : "and neither is given");
    if (t->bench.op == NULL && (t->bench.in != NULL || t->bench.out.given ||
                                t->bench.kernel.given || t->bench.stride.given ||
                                t->bench.pad.given || t->bench.groups.given))
        return fail_usage("--in, --features, --kernel, --stride, --pad and --groups are for --op");
    status = t->bench.op != NULL ? bench_check_op(&t->bench) : EXIT_OK;
    t->bench.device.tuning = "none";
    return status == EXIT_OK ? watch(&o, n_rest == 1 ? rest[0] : NULL) : status;
}

const struct command command_tune = {
    "tune",
    "MODEL.yaml | --op NAME | --merge FILE... [options]",
    "look for the fastest schedules and tiles of a device",
    "Tries the schedules of each operator of a training step, and their tiles, the heaviest operator\n"
    "first, until the time is over. Every candidate is first compared with the contract, then timed\n"
    "in turns with the choice that a training makes by itself; it is kept if it is clearly faster,\n"
    "twice. What does not build, gives other bits, crashes or hangs is skipped and told. The file is\n"
    "text, a line an entry; trainings on the same device and driver read it (see --tuning there).\n"
    "It changes speed, never a bit.",
    specs,
    LKSI_COUNT(specs),
    run,
};
